//! Who watches a run: every fact a policy is told and every decision it makes, in order (LAB-7).

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};

use crate::policy::{Ask, Grant, Opinion, PeerIndex, Signal};

/// What a policy is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// A link to a peer came up or went down.
    Connected {
        /// Who.
        peer: PeerIndex,
        /// Its group, an index into [`World::peers`](crate::model::World::peers).
        group: usize,
        /// Up or down.
        up: bool,
    },
    /// A range was sent.
    Sent {
        /// To whom.
        peer: PeerIndex,
        /// Of which content; [`HISTORY`](super::HISTORY) before the run.
        content: u64,
        /// Bytes asked for.
        range: Bytes,
    },
    /// A range ended.
    Ended {
        /// Whose.
        peer: PeerIndex,
        /// Of which content; [`HISTORY`](super::HISTORY) before the run.
        content: u64,
        /// Bytes asked for.
        range: Bytes,
        /// How.
        delivery: Delivery,
    },
}

/// Watches a run. Times are those the policy sees: a history comes first, and the run starts after it at [`Observer::starts`].
pub trait Observer {
    /// The history, if any, is over; virtual second 0 of world and results is this moment.
    fn starts(&mut self, _at: Time) {}

    /// The policy is about to be told something.
    fn fact(&mut self, _now: Time, _fact: &Fact) {}

    /// The policy answered; `None` is a panic.
    fn decision(&mut self, _now: Time, _ask: &Ask<'_>, _grants: Option<&[Grant]>) {}

    /// Whether the policy is to be asked, after each end, what it thinks of the peer. Without it a policy is asked until it stops trusting the peer.
    fn wants_opinions(&self) -> bool {
        false
    }

    /// Whether the policy is to be asked, before each range is sent, how long it expects it to take.
    fn wants_predictions(&self) -> bool {
        false
    }

    /// A range was delivered in `took_s` seconds, of which `predicted_s` had been expected.
    fn prediction(&mut self, _now: Time, _peer: PeerIndex, _predicted_s: f64, _took_s: f64) {}

    /// The policy raised a signal.
    fn signal(&mut self, _now: Time, _signal: &Signal) {}

    /// What the policy thinks of a peer just now.
    fn opinion(&mut self, _now: Time, _peer: PeerIndex, _opinion: &Opinion) {}
}

/// Nobody watches.
impl Observer for () {}
