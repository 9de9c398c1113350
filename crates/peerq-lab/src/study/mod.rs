//! Studies: sets of plans under one name, each with a table of its own.
//!
//! The one idea: a comparison answers how fast each policy is; a study asks the same plans one other question, says what would be a good answer, and whether it
//! came out.
//!
//! | study | question | file |
//! |---|---|---|
//! | `drawn` | how near does each policy come to the yardstick where nobody chose the world? | [`drawn`](mod@drawn) |
//! | `adversaries` | what do hostile peers gain, and by how much are they overrated? | [`adversaries`] |
//! | `specs` | are the invariants of the selector specification kept? | [`specs`](mod@specs) |

pub mod adversaries;
pub mod drawn;
mod goal;
mod repeats;
pub mod specs;
mod work;

use std::collections::BTreeMap;

pub use adversaries::Adversaries;
pub use drawn::Drawn;
pub use goal::Goal;
pub use specs::Specs;

use crate::plan::{self, Plan, PlanError};
use crate::policy::PolicyKind;
use crate::report::{Bench, Lines, Progress, Selection, Summary, run};
use specs::{Bound, Row};

/// Which study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    /// Every policy in the worlds of the adversaries.
    Adversaries,
    /// The invariants of the selector specification.
    Specs,
    /// Every policy in worlds drawn from seeds.
    Drawn,
}

impl Study {
    /// All of them.
    pub const ALL: [Study; 3] = [Study::Adversaries, Study::Specs, Study::Drawn];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Study::Adversaries => "adversaries",
            Study::Specs => "specs",
            Study::Drawn => "drawn",
        }
    }

    /// The study of that name, in either case.
    pub fn named(name: &str) -> Option<Study> {
        Study::ALL.into_iter().find(|study| study.name().eq_ignore_ascii_case(name))
    }

    /// Names of the policies that it compares.
    pub fn policies(self) -> Vec<&'static str> {
        match self {
            Study::Adversaries | Study::Drawn => PolicyKind::ALL.map(PolicyKind::name).to_vec(),
            Study::Specs => specs::POLICIES.to_vec(),
        }
    }

    /// Whether it compares that policy. Whether there is one of an unknown name is for others to say.
    pub fn compares(self, policy: &str) -> bool {
        self != Study::Specs || self.policies().contains(&policy)
    }

    /// Whether results are those of all its plans and no others.
    pub fn is_of(self, lines: &Lines) -> bool {
        let names = |plans: Vec<Plan>| plans.into_iter().map(|plan| plan.name).collect::<Vec<_>>();
        self.plans().is_ok_and(|plans| lines.plans.iter().map(|plan| &plan.plan).eq(&names(plans)))
    }

    /// Its plans.
    ///
    /// # Errors
    /// None in a released laboratory.
    pub fn plans(self) -> Result<Vec<Plan>, PlanError> {
        match self {
            Study::Adversaries => {
                Ok(plan::builtin()?.into_iter().filter(|plan| plan.scenario.starts_with('B')).collect())
            }
            Study::Specs => specs::plans(),
            Study::Drawn => Ok(drawn::plans()),
        }
    }
}

/// Plans whose runs are repeated for invariant F: what they start from is nothing, so that trials are drawn.
const REPEATED: [&str; 2] = ["s1-convergence", "s5-exploration"];

/// Seeds with which selectors are asked for replacements twice.
const REPLACED_SEEDS: u32 = 100;

/// Growth of work that still is bounded by the number of peers, sorting included.
const GROWTH_MAX: f64 = 1.3;

/// The study of the selector specification, of `lines` and of what is measured besides: runs repeated as `selection` says, and work timed by `clock`, seconds
/// from any origin.
///
/// # Errors
/// A policy that the bench does not have is named.
pub fn specs(
    bench: &dyn Bench,
    (lines, summaries): (&Lines, &[Summary]),
    selection: &Selection,
    clock: &dyn Fn() -> f64,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<Specs, String> {
    let mut plans = Study::Specs.plans().map_err(|error| error.to_string())?;
    plans.retain(|plan| REPEATED.contains(&plan.name.as_str()));
    let again = run(bench, &plans, selection, watch)?;
    let ran = |policy: &str| lines.runs.iter().any(|run| run.policy == policy);
    let each = |of: &dyn Fn(&str) -> Option<f64>| -> BTreeMap<String, Option<f64>> {
        specs::POLICIES.into_iter().filter(|name| ran(name)).map(|name| (name.to_owned(), of(name))).collect()
    };
    let whole = Bound::AtLeast(1.0);
    let repeats = vec![
        Row::measured("runs the same when run again", whole, each(&|name| repeats::share(lines, &again, name))),
        Row::measured(
            "replacements the same when asked again",
            whole,
            each(&|name| repeats::replacements(name, REPLACED_SEEDS)),
        ),
    ];
    let growth = each(&|name| work::growth(name, clock));
    let work = Row::measured("power of 256 to 4096 peers that time grows with", Bound::AtMost(GROWTH_MAX), growth);
    specs::specs(summaries, repeats, work).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;
    use crate::report::page;
    use crate::report::testing::{PLAN, Toy};

    #[test]
    fn results_of_a_whole_study_are_shown_as_one_and_those_of_a_part_are_not() {
        let mut plans = Study::Adversaries.plans().unwrap();
        let selection = Selection { seeds: Some(1), ..Selection::default() };
        let lines = |plans: &[Plan]| run(&Toy, plans, &selection, &|_| ()).unwrap();
        let whole = lines(&plans);
        assert!(Study::Adversaries.is_of(&whole) && page(&whole).contains("id=\"adversaries\""));
        plans.pop();
        assert!(!page(&lines(&plans)).contains("id=\"adversaries\""));
        assert!(!Study::Adversaries.is_of(&lines(&[parse("toy.toml", PLAN).unwrap()])));
    }
}
