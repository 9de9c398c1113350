//! What is to be fetched.

use serde::Deserialize;

/// The work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Downloads of many ranges each, one download after the other, as a DIG client does.
    Downloads {
        /// How many downloads.
        requests: u32,
        /// Ranges of each.
        ranges: u32,
        /// Bytes of a range.
        range_bytes: u64,
        /// Sources asked for at once.
        sources: u32,
        /// Ranges in flight over all peers, at most.
        in_flight: u32,
        /// Seconds between the end of one and the start of the next.
        #[serde(default)]
        pause_s: f64,
        /// Seconds until a range is given up.
        #[serde(default = "range_timeout_s")]
        range_timeout_s: f64,
    },
    /// Independent requests of one range each, arriving at random (Poisson).
    Requests {
        /// How many.
        requests: u32,
        /// Mean arrivals per second.
        per_s: f64,
        /// Bytes of each.
        range_bytes: u64,
        /// Seconds until one is given up.
        #[serde(default = "range_timeout_s")]
        range_timeout_s: f64,
    },
    /// Leios: an endorser block's closure is offered by every peer and needed before a deadline; fetched in chunks.
    Closures {
        /// How many closures.
        requests: u32,
        /// Bytes of a closure.
        closure_bytes: u64,
        /// Bytes of a chunk.
        chunk_bytes: u64,
        /// Seconds between announcements.
        every_s: f64,
        /// Seconds from the announcement to the deadline.
        deadline_s: f64,
        /// Chunks in flight, at most.
        in_flight: u32,
    },
}

fn range_timeout_s() -> f64 {
    30.0
}
