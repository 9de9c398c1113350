//! The published selector (dig-peer-selector 0.15.0), through the same driving logic as ours.
//!
//! Its documentation says that a selection counts as dispatched, and that `on_dispatch` is for what goes out besides, so what is sent is not reported again.
//! Its clock counts seconds. It can panic (scenario C22) and poisons its lock then: whoever catches that restarts it, with nothing remembered.

use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};
use published::{ClockSource, PeerSelector, PeerSnapshot, SelectorConfig};

use super::binding::{bind_selector, names};
use super::driver::{Choice, Driver, Learned, MAX_NEED, Question, Selector};
use super::{Candidate, PeerIndex, Policy, Review, Reviewed};

bind_selector!(published);

/// A selection counts as dispatched.
const CONFIRMS_DISPATCHES: bool = false;
/// Its `rebalance` ranks everybody in the order of a randomly keyed hash table, so no run could be repeated; the stack's own node does not call it either.
const REBALANCES: bool = false;
/// It has nothing of the kind.
const REVIEWS: bool = false;
/// Any time will do; zero is what some code takes for "never".
const ORIGIN_S: u64 = 1_000_000;

/// The policy, with the draws of `seed`.
pub fn published(seed: u64) -> impl Policy {
    Driver::new("published", Bound::new(seed))
}

fn make(seed: u64) -> (PeerSelector, ClockSource) {
    let config = SelectorConfig::deterministic(ORIGIN_S, seed);
    let clock = config.clock.clone();
    (PeerSelector::new(config), clock)
}

fn set_clock(clock: &ClockSource, now: Time) {
    clock.set(ORIGIN_S.saturating_add(now.as_micros() / 1_000_000));
}

fn reviewed(_bound: &Bound, _review: &Review<'_>) -> Reviewed {
    Reviewed::default()
}

/// Its floor for bad sources: a failed verification and a reliability below one half.
fn is_demoted(_bound: &Bound, snapshot: &PeerSnapshot, _peer: PeerIndex) -> bool {
    snapshot.hard_failures > 0 && snapshot.reliability.unwrap_or(1.0) < 0.5
}
