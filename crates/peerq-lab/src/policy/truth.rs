//! What the yardstick knows and nobody else does: every true rate, delay, failure and change of a run.
//!
//! The simulator implements it over the same draws that it runs on. Answers are about the future as it will be if nobody else interferes; shares of links that
//! several transfers use at once are for the planner to work out.

use peer_quality::units::{Bytes, Time};

use super::PeerIndex;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It is delivered and accepted.
    Delivers {
        /// From sending it to the first byte, seconds, stalls included.
        first_byte_s: f64,
        /// Bytes per second of its body, were it alone.
        rate: f64,
    },
    /// It fails, or what it brings is refused.
    Fails {
        /// From sending it to its end, seconds.
        after_s: f64,
    },
    /// Nothing ever comes, or too late to be of use: it is given up.
    Hangs,
}

/// See the module documentation.
pub trait Truth {
    /// What becomes of a request of `range` bytes to `peer`, sent at `at`, when `ahead` others are sent to it before.
    fn fate(&self, peer: PeerIndex, ahead: u32, range: Bytes, at: Time) -> Fate;

    /// Bytes per second that `peer` delivers at `at` to all its requests together.
    fn capacity(&self, peer: PeerIndex, at: Time) -> f64;

    /// The next moment after `after` at which the peer's capacity changes.
    fn changes_at(&self, _peer: PeerIndex, _after: Time) -> Option<Time> {
        None
    }

    /// The link that `peer` shares with others, and its bytes per second.
    fn shared(&self, _peer: PeerIndex) -> Option<(u32, f64)> {
        None
    }

    /// Requests that `peer` serves at once.
    fn at_once(&self, _peer: PeerIndex) -> Option<u32> {
        None
    }

    /// The client's downlink, bytes per second.
    fn downlink(&self) -> Option<f64> {
        None
    }
}

/// Nothing is known: for policies that do not look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unknown;

impl Truth for Unknown {
    fn fate(&self, _peer: PeerIndex, _ahead: u32, _range: Bytes, _at: Time) -> Fate {
        Fate::Delivers { first_byte_s: 0.1, rate: 1e6 }
    }

    fn capacity(&self, _peer: PeerIndex, _at: Time) -> f64 {
        1e6
    }
}
