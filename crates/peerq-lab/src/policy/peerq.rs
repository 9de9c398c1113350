//! Ours, through the selector's API, with the clock at the resolution that its system clock has.
//!
//! The manual clock of the specification counts seconds, in which a whole download stands still; the virtual one counts microseconds, like the engine beneath.

use std::time::Duration;

use dig_peer_selector::{
    ClockSource, ContentRequest, PeerSelector, PeerSnapshot, RangeMove, RangeProgress, RangeUnderWay, Reason, Recourse,
    SelectorConfig, UnderWay,
};
use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};

use super::binding::{bind_selector, names};
use super::driver::{Choice, Driver, Learned, MAX_NEED, Question, Selector};
use super::{Candidate, Held, Move, PeerIndex, Policy, Review, Reviewed};

bind_selector!(dig_peer_selector);

/// It wants to hear of what is sent.
const CONFIRMS_DISPATCHES: bool = true;
/// It has an answer of its own for the last ranges and after failures.
const REBALANCES: bool = true;

/// It looks at what is under way.
const REVIEWS: bool = true;

/// The policy, with the draws of `seed`.
pub fn peerq(seed: u64) -> impl Policy {
    Driver::new("peerq", Bound::new(seed))
}

fn make(seed: u64) -> (PeerSelector, ClockSource) {
    let clock = ClockSource::virtual_micros(0);
    let config = SelectorConfig { clock: clock.clone(), rng_seed: Some(seed), ..SelectorConfig::default() };
    (PeerSelector::new(config), clock)
}

fn set_clock(clock: &ClockSource, now: Time) {
    clock.set_micros(now.as_micros());
}

fn reviewed(bound: &Bound, review: &Review<'_>) -> Reviewed {
    let range = |held: &Held| RangeUnderWay {
        peer_id: names::peer_id(held.peer),
        length: held.bytes.get(),
        age: Duration::from_micros(review.now.since(held.sent).as_micros()),
        progress: Some(RangeProgress {
            bytes: held.arrived.get(),
            first_byte: held.first_byte.map(|first| Duration::from_micros(first.as_micros())),
        }),
        holders: held.holders,
        given_up: held.given_up,
    };
    let ranges: Vec<RangeUnderWay> = review.held.iter().map(range).collect();
    let request = ContentRequest {
        content: names::content_id(review.content),
        total_length: Some(review.range.get().saturating_mul(u64::from(review.ranges_left))),
        range_count: Some(review.ranges_left as usize),
        parallelism: review.sources as usize,
    };
    let recourse = if review.can_drop { Recourse::GiveUp } else { Recourse::Duplicate };
    let under_way = UnderWay { ranges: &ranges, recourse, free_slots: Some(review.free) };
    let answer = bound.call(|selector| selector.review(&request, &under_way));
    let moved = |one: &RangeMove| Move { range: one.range, to: names::peer_index(&one.to), is_late: one.is_late };
    Reviewed {
        moves: answer.moves.iter().map(moved).collect(),
        again: answer.again.map(|again| Span::from_micros(again.as_micros() as u64)),
    }
}

fn is_demoted(bound: &Bound, _snapshot: &PeerSnapshot, peer: PeerIndex) -> bool {
    let request = ContentRequest::new(names::content_id(u64::MAX), 1);
    let peer = names::peer_id(peer);
    let explanation = bound.call(|selector| selector.explain(&request, &bound.candidates.1));
    let found = explanation.candidates.iter().find(|one| one.peer == peer);
    found.is_some_and(|one| matches!(one.reason, Reason::Banned | Reason::Condemned | Reason::CoolingOff { .. }))
}

#[cfg(test)]
#[path = "selectors_tests.rs"]
mod tests;
