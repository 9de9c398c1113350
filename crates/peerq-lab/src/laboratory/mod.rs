//! The laboratory as the runner uses it: the simulator and every policy by name.

mod watch;

use std::sync::LazyLock;

use crate::model::{RunResult, Workload, World};
use crate::policy::PolicyKind;
use crate::report::{Bench, RunLog};
use crate::sim::run;

use watch::Watcher;

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
        let mut built = kind.build(world, workload, seed).map_err(|impossible| impossible.to_string())?;
        // Whoever sees the wire can raise signals, even if there is nothing to raise.
        log.signals = built.sight().map(|_| Vec::new());
        run(world, workload, &mut *built, seed, &mut Watcher::new(log)).map_err(|impossible| impossible.to_string())
    }
}

#[cfg(test)]
mod tests;
