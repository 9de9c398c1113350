//! Facts: what a host tells the engine, one at a time. They are never trusted to be sane.

use crate::estimate::Path;
use crate::measure::Delivery;

/// One fact about one peer. A peer that was never heard of before is admitted by its first fact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// Requests were sent to it just now.
    Sent {
        /// How many.
        requests: u32,
    },
    /// A request to it ended.
    Ended(Delivery),
    /// There is a live link to it.
    Connected,
    /// The link is gone; what was learned stays.
    Disconnected,
    /// How it is reached became known.
    Reached(Path),
    /// The host bans it.
    Banned,
    /// The host admits it again.
    Readmitted,
}
