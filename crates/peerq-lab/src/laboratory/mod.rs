//! The laboratory as the runner uses it: the simulator, the policies, and what the yardstick may know.

mod truth;
mod watch;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;

use crate::model::{RunResult, Workload, World};
use crate::policy::PolicyKind;
use crate::report::{Bench, RunLog};
use crate::sim::{draw, run};

use truth::Drawn;
use watch::{Opinions, Watcher};

/// Every policy on the simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Laboratory;

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| PolicyKind::ALL.map(PolicyKind::name).to_vec());

impl Bench for Laboratory {
    fn policies(&self) -> &[&'static str] {
        &NAMES
    }

    fn run(
        &self,
        world: &World,
        workload: &Workload,
        policy: &str,
        seed: u64,
        log: &mut RunLog,
    ) -> Result<RunResult, String> {
        let kind = PolicyKind::named(policy).ok_or_else(|| format!("no policy is named `{policy}`"))?;
        let origin_s = Rc::new(Cell::new(0.0));
        let drawn = draw(world, seed).map_err(|impossible| impossible.to_string())?;
        let built = kind.build(seed, Rc::new(Drawn::new(drawn, origin_s.clone())));
        let mut opinions = Opinions::new(built, log.views);
        let mut watcher = Watcher::new(origin_s.clone(), log);
        let result =
            run(world, workload, &mut opinions, seed, &mut watcher).map_err(|impossible| impossible.to_string())?;
        log.viewed = opinions.since(origin_s.get());
        Ok(result)
    }
}

#[cfg(test)]
mod tests;
