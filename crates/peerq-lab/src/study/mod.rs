//! Studies: sets of plans under one name, each with a table of its own.
//!
//! The one idea: a comparison answers how fast each policy is; a study asks the same plans one other question, says what would be a good answer, and whether it
//! came out.
//!
//! | study | question | file |
//! |---|---|---|
//! | `adversaries` | what do hostile peers gain, and by how much are they overrated? | [`adversaries`] |

pub mod adversaries;
mod goal;

pub use adversaries::Adversaries;
pub use goal::Goal;

use crate::plan::{self, Plan, PlanError};

/// Which study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    /// Every policy in the worlds of the adversaries.
    Adversaries,
}

impl Study {
    /// All of them.
    pub const ALL: [Study; 1] = [Study::Adversaries];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Study::Adversaries => "adversaries",
        }
    }

    /// The study of that name, in either case.
    pub fn named(name: &str) -> Option<Study> {
        Study::ALL.into_iter().find(|study| study.name().eq_ignore_ascii_case(name))
    }

    /// Its plans.
    ///
    /// # Errors
    /// None in a released laboratory.
    pub fn plans(self) -> Result<Vec<Plan>, PlanError> {
        let mut plans = plan::builtin()?;
        match self {
            Study::Adversaries => plans.retain(|plan| plan.scenario.starts_with('B')),
        }
        Ok(plans)
    }
}
