//! What the yardstick knows and nobody else does: every true rate, delay, failure and change of a run.
//!
//! [`Foresight`](super::foresight::Foresight) is the truth of a simulated run. Answers are about the future as it will be if nobody else interferes; shares of links
//! that several transfers use at once are for the planner to work out.

use peer_quality::measure::Delivery;
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
    /// It fails, or what it brings is refused, or it is given up.
    Fails {
        /// From sending it to its end, seconds.
        after_s: f64,
    },
}

/// Slow start of a connection that is new or was idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Bytes of the first round; each next round has twice as many, until the link is full.
    pub window: f64,
    /// Seconds of a round.
    pub round_s: f64,
}

/// One request to be foretold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// To whom.
    pub peer: PeerIndex,
    /// For which content.
    pub content: u64,
    /// Bytes asked for.
    pub range: Bytes,
    /// When it is sent.
    pub at: Time,
    /// How many others are sent to the peer for this content before it.
    pub ahead: u32,
}

/// See the module documentation.
pub trait Truth {
    /// What becomes of a request.
    fn fate(&self, request: &Request) -> Fate;

    /// Whether the fates of its requests at `at` differ from each other; where not, that of the next one stands for all.
    fn is_fickle(&self, _peer: PeerIndex, _at: Time) -> bool {
        false
    }

    /// Bytes per second that `peer` delivers at `at` to all its requests together.
    fn capacity(&self, peer: PeerIndex, at: Time) -> f64;

    /// The next moment after `after` at which the peer's capacity changes.
    fn changes_at(&self, _peer: PeerIndex, _after: Time) -> Option<Time> {
        None
    }

    /// The slow start that the next reply of `peer` begins with; none while its connection is warm.
    fn ramp(&self, _peer: PeerIndex, _at: Time) -> Option<Ramp> {
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

    /// Seconds after which a request is given up.
    fn patience_s(&self) -> f64 {
        f64::INFINITY
    }

    /// The client's downlink, bytes per second.
    fn downlink(&self) -> Option<f64> {
        None
    }

    /// A request was sent.
    fn sent(&mut self, _request: &Request) {}

    /// A request ended; also told of what happened before the run.
    fn ended(&mut self, _peer: PeerIndex, _content: u64, _delivery: &Delivery, _now: Time) {}
}

/// Nothing is known: for policies that do not look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unknown;

impl Truth for Unknown {
    fn fate(&self, _request: &Request) -> Fate {
        Fate::Delivers { first_byte_s: 0.1, rate: 1e6 }
    }

    fn capacity(&self, _peer: PeerIndex, _at: Time) -> f64 {
        1e6
    }
}
