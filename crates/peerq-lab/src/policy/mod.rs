//! Policies: who is asked (LAB-3). All see the same: candidates, what they send, and how it ends.
//!
//! | file | what it is |
//! |---|---|
//! | [`peerq`] | ours, through the selector's API |
//! | [`engine`] | ours, the engine driven directly by a host that measures on the wire |
//! | [`published`] | the published selector, through the same driving logic |
//! | [`round_robin`], [`lowest_rtt`], [`msgrate`], [`p2c`], [`haskell`] | what is in use elsewhere |
//! | [`clairvoyant`] | the yardstick: it knows the run's [`truth`], by [`foresight`] |

mod allotment;
mod backoff;
mod binding;
pub mod clairvoyant;
pub(crate) mod driver;
pub mod engine;
pub mod foresight;
pub mod haskell;
mod in_flight;
mod kind;
mod load;
pub mod lowest_rtt;
pub mod msgrate;
pub mod p2c;
pub mod peerq;
pub mod published;
pub mod round_robin;
mod sight;
mod source;
mod stream;
#[cfg(test)]
pub(crate) mod testing;
pub mod truth;
mod ways;
mod wires;

pub use engine::engine_gated;
pub use kind::PolicyKind;
pub use sight::{Sight, Signal};

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Span, Time};

/// A peer as policies know it: an index into the world's peers, stable over a run. A whitewashed identity is a new index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerIndex(pub u32);

/// A peer that may be asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Who.
    pub peer: PeerIndex,
    /// Its address group.
    pub group: u32,
    /// Whether a relay carries its bytes.
    pub relayed: bool,
    /// Round trip that the handshake showed, seconds.
    pub handshake_rtt_s: f64,
}

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Virtual now.
    pub now: Time,
    /// Which content.
    pub content: u64,
    /// Ranges of it that nobody was asked for yet.
    pub ranges_left: u32,
    /// Bytes of a range.
    pub range: Bytes,
    /// Ranges that may be sent now.
    pub free: u32,
    /// Sources wanted at once.
    pub sources: u32,
    /// Ranges in flight over all peers for this content.
    pub in_flight: u32,
    /// Who may be asked, by ascending index.
    pub candidates: &'a [Candidate],
}

/// An answer: ranges for one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub peer: PeerIndex,
    /// How many ranges, at least 1.
    pub ranges: u32,
}

/// A range under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who was asked for it.
    pub peer: PeerIndex,
    /// Its bytes.
    pub bytes: Bytes,
    /// When it was asked for.
    pub sent: Time,
    /// Bytes that came of it.
    pub arrived: Bytes,
    /// When the first of them came, after it was asked for.
    pub first_byte: Option<Span>,
    /// How many peers have it; countless where it is there already.
    pub holders: u32,
    /// How often a review gave it up before.
    pub given_up: u32,
}

/// What is under way for a content, shown for review.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// Virtual now.
    pub now: Time,
    /// Which content.
    pub content: u64,
    /// Bytes of a range.
    pub range: Bytes,
    /// Ranges of it that nobody was asked for yet.
    pub ranges_left: u32,
    /// Ranges that may be sent besides; where none can be dropped, second requests.
    pub free: u32,
    /// Sources wanted at once.
    pub sources: u32,
    /// Whether requests can be dropped.
    pub can_drop: bool,
    /// The ranges.
    pub held: &'a [Held],
    /// Who may be asked, by ascending index.
    pub candidates: &'a [Candidate],
}

/// A range that should move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which of those shown.
    pub range: usize,
    /// To whom.
    pub to: PeerIndex,
    /// Whether it is past its time: dropping it is its peer's fault then.
    pub is_late: bool,
}

/// What a policy makes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reviewed {
    /// What should move: dropped where that can be done, else asked for a second time.
    pub moves: Vec<Move>,
    /// When to look again.
    pub again: Option<Span>,
}

/// What a policy thinks of a peer, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Opinion {
    /// Whether it is kept out of ordinary work.
    pub demoted: bool,
    /// Rate it is credited with, bytes per second.
    pub credited_rate: Option<f64>,
}

/// Chooses peers and learns. Calls come in order of virtual time; every granted range is followed by exactly one `sent` and one `ended`.
pub trait Policy {
    /// Stable name in results.
    fn name(&self) -> &'static str;

    /// Who gets ranges now, best first: at most [`Ask::free`] and [`Ask::ranges_left`] in all. Nobody means: wait for an end. If nothing is in flight and
    /// the answer is empty, the client asks again after a second.
    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant>;

    /// A range was sent.
    fn sent(&mut self, peer: PeerIndex, range: Bytes, now: Time);

    /// A range ended.
    fn ended(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time);

    /// Whether it reviews what is under way. The same answer all along.
    fn reviews(&self) -> bool {
        false
    }

    /// Which of the ranges under way should move.
    fn review(&mut self, _review: &Review<'_>) -> Reviewed {
        Reviewed::default()
    }

    /// A link to a peer came up or went down.
    fn connected(&mut self, _peer: PeerIndex, _up: bool, _now: Time) {}

    /// Where it measures on the wire; none for policies that know outcomes only. The same answer all along.
    fn sight(&mut self) -> Option<&mut dyn Sight> {
        None
    }

    /// Seconds that it expects a fetch of these bytes to take which a peer is sent now, beside nothing else; none where it predicts nothing.
    fn predicted_s(&self, _peer: PeerIndex, _range: Bytes, _now: Time) -> Option<f64> {
        None
    }

    /// How far it trusts what it measured of a peer's rate itself, 0 to 1 (EST-3); none where it does not say.
    fn trust(&self, _peer: PeerIndex, _now: Time) -> Option<f64> {
        None
    }

    /// What it thinks of a peer.
    fn opinion(&self, _peer: PeerIndex, _now: Time) -> Opinion {
        Opinion::default()
    }
}
