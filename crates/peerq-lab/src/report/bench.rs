//! What the runner needs of a laboratory: the policies it has, and one run.

use crate::model::{RunResult, Workload, World};

use super::RunLog;

/// The policy that checks are about where they name none.
pub const OURS: &str = "peerq";

/// Ours with sight of the wire.
pub const ENGINE: &str = "engine";

/// The policy that others are measured by: it knows everything.
pub const YARDSTICK: &str = "clairvoyant";

/// A laboratory. Runs are pure: the same arguments give the same result, on whatever thread.
pub trait Bench: Sync {
    /// Names of the policies it can run, in the order of results.
    fn policies(&self) -> &[&'static str];

    /// One run; what happened on the way goes to the log.
    ///
    /// # Errors
    /// The reason why this world cannot be or this policy is not known.
    fn run(
        &self,
        world: &World,
        workload: &Workload,
        policy: &str,
        seed: u64,
        log: &mut RunLog,
    ) -> Result<RunResult, String>;
}
