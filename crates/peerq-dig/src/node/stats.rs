//! What a node has served (HOST-D4).
//!
//! The one idea: the server counts, since a downloader may lie to itself about where its bytes came from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Totals of one node since it started, and what it does now. Read at one moment, but not atomically together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// File bytes handed to the multiplexer for sending, right or wrong ones; manifests and framing are not in it.
    pub bytes_served: u64,
    /// Manifest bytes sent likewise.
    pub manifest_bytes_served: u64,
    /// Range requests answered to the end, those for manifests and layouts among them.
    pub ranges_served: u64,
    /// Range requests for file data being answered now; one whose last bytes are handed over is not.
    pub ranges_in_flight: u64,
    /// The most of those at any time.
    pub ranges_in_flight_max: u64,
    /// Requests that got an error for an answer: unknown ids, garbage.
    pub requests_refused: u64,
    /// Connections that completed the handshake.
    pub connections: u64,
}

/// The counters behind [`NodeStats`].
#[derive(Default)]
pub(super) struct Counters {
    pub(super) bytes_served: AtomicU64,
    pub(super) manifest_bytes_served: AtomicU64,
    pub(super) ranges_served: AtomicU64,
    pub(super) requests_refused: AtomicU64,
    pub(super) connections: AtomicU64,
    ranges_in_flight: AtomicU64,
    ranges_in_flight_max: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> NodeStats {
        NodeStats {
            bytes_served: self.bytes_served.load(Relaxed),
            manifest_bytes_served: self.manifest_bytes_served.load(Relaxed),
            ranges_served: self.ranges_served.load(Relaxed),
            ranges_in_flight: self.ranges_in_flight.load(Relaxed),
            ranges_in_flight_max: self.ranges_in_flight_max.load(Relaxed),
            requests_refused: self.requests_refused.load(Relaxed),
            connections: self.connections.load(Relaxed),
        }
    }

    /// Counts a range as in flight for as long as the guard lives.
    pub(super) fn range_starts(&self) -> InFlight<'_> {
        let now = self.ranges_in_flight.fetch_add(1, Relaxed) + 1;
        self.ranges_in_flight_max.fetch_max(now, Relaxed);
        InFlight(self)
    }
}

pub(super) struct InFlight<'a>(&'a Counters);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.ranges_in_flight.fetch_sub(1, Relaxed);
    }
}
