//! Plans: a world, a workload, the policies to compare, and what must come out (LAB-5).
//!
//! The one idea: a plan is data. It is read from TOML, says in one sentence what it shows, and carries its own pass marks, so that "met" is never a matter
//! of taste. The built-in plans ([`builtin()`]) are files of the same form; others are [drawn()] from a seed.

mod builtin;
mod check;
mod drawn;
mod error;
mod parse;
mod validate;

use serde::Deserialize;

use crate::model::{Workload, World};

pub use builtin::{builtin, find};
pub use check::{Check, Take, What};
pub use drawn::drawn;
pub use error::PlanError;
pub use parse::{load, parse};

/// Seeds of a run where neither the plan nor the caller says how many.
pub const DEFAULT_SEEDS: u32 = 20;

/// Most seeds of one run; more belongs into shards.
pub const MAX_SEEDS: u32 = 100_000;

/// The part up to which the product is built: plans of later parts are shown as not yet met and fail nothing.
pub const DELIVERED: Part = Part::B;

/// One experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Names it on the command line and in results: lower-case words joined by `-`.
    pub name: String,
    /// The scenario that it is a world of, such as `A1`.
    pub scenario: String,
    /// The part of the product with which it is expected to be met.
    pub part: Part,
    /// World and right outcome, in a sentence.
    pub about: String,
    /// Whether it belongs to the quick set.
    #[serde(default)]
    pub quick: bool,
    /// Peers, links, client.
    pub world: World,
    /// What is fetched.
    pub workload: Workload,
    /// What is taken out of the world for the control run that `_over_control` checks refer to.
    pub control: Option<Control>,
    /// Policies to run; all of them where absent.
    pub policies: Option<Vec<String>>,
    /// Seeds; [`DEFAULT_SEEDS`] where absent.
    pub seeds: Option<u32>,
    /// Pass marks.
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// The part of the product whose arrival a plan waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, Deserialize)]
pub enum Part {
    /// The laboratory itself.
    B,
    /// Measuring, estimating, ranking.
    C,
    /// Saturation and planning of whole requests.
    D,
    /// Audit, hedging, sizes.
    E,
    /// Whole hosts over time.
    F,
}

/// How the control world differs from the plan's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Groups that are absent.
    #[serde(default)]
    pub without: Vec<String>,
    /// Whether the client neither pauses nor loses its link.
    #[serde(default)]
    pub calm: bool,
    /// Whether nothing changes during the run.
    #[serde(default)]
    pub unchanged: bool,
}

impl Plan {
    /// Refuses what cannot be run or judged, of a plan that was made rather than read.
    ///
    /// # Errors
    /// [`PlanError::Impossible`] names the field.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        validate::check(self).map_err(|impossible| PlanError::Impossible {
            file: self.name.clone(),
            field: impossible.field,
            reason: impossible.reason,
        })
    }

    /// The world of the control run, if the plan has one.
    pub fn control_world(&self) -> Option<World> {
        let control = self.control.as_ref()?;
        let mut world = self.world.clone();
        world.peers.retain(|group| !control.without.contains(&group.name));
        if control.calm {
            world.client.outages.clear();
            world.client.pause_every_s = 0.0;
        }
        if control.unchanged {
            world.peers.iter_mut().for_each(|group| group.changes.clear());
        }
        Some(world)
    }
}
