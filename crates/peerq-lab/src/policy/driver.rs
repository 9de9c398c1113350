//! How a client uses a selector: the same plain logic for ours, for its bare engine and for the published one (HOST-D1).
//!
//! A selector is asked only when a range can be sent, and told exactly what is left: with `rebalance` when a source failed since or the last ranges are out, else
//! with `select`. Its answer is taken as it stands: in rounds in the order of rank, each peer up to the concurrency recommended, until the client's slots are full. An empty
//! answer means waiting for an end; where none can come, anybody is asked.

use std::collections::{BTreeMap, BTreeSet};

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Time};

use super::allotment::Allotment;
use super::in_flight::InFlight;
use super::{Ask, Candidate, Grant, Opinion, PeerIndex, Policy, Review, Reviewed, Sight};

/// Contents with a history; the one with the lowest number goes first.
const MAX_CONTENTS: usize = 256;
/// Most ranges named one by one in a question; a selector plans no further ahead.
pub(crate) const MAX_NEED: u32 = 65_536;

/// A question to a selector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) content: u64,
    /// Bytes of a range.
    pub(crate) range: Bytes,
    /// Ranges that nobody was asked for yet.
    pub(crate) ranges: u32,
    /// Sources wanted at once.
    pub(crate) sources: u32,
    /// How many questions about this content came before.
    pub(crate) decision: u64,
    /// Ranges of it in flight.
    pub(crate) in_flight: u32,
    /// Ranges that can be sent now.
    pub(crate) free: u32,
    pub(crate) candidates: &'a [Candidate],
    pub(crate) now: Time,
}

/// One peer of a selector's answer, in the order of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) peer: PeerIndex,
    /// How many more ranges it may have in flight.
    pub(crate) room: u32,
}

/// What a selector has learned of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Learned {
    /// Bytes per second of one range's body.
    pub(crate) rate: Option<f64>,
    pub(crate) first_byte_s: Option<f64>,
}

/// A selector, as clients see it.
pub(crate) trait Selector {
    /// Whether [`rebalance`](Self::rebalance) is of use.
    const REBALANCES: bool;

    /// Sets its clock.
    fn set_clock(&mut self, now: Time);
    fn select(&mut self, question: &Question<'_>) -> Vec<Choice>;
    /// Whoever is in `active` is busy with this content or just failed.
    fn rebalance(&mut self, question: &Question<'_>, active: &[PeerIndex]) -> Vec<Choice>;
    /// Nothing of a content is left to be asked for.
    fn finished(&mut self, _question: &Question<'_>) {}
    /// Whether [`review`](Self::review) is of use.
    const REVIEWS: bool;
    /// Which of the ranges under way should move, and to whom.
    fn review(&mut self, _review: &Review<'_>) -> Reviewed {
        Reviewed::default()
    }
    fn dispatched(&mut self, peer: PeerIndex, now: Time);
    fn record(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time);
    fn connected(&mut self, peer: PeerIndex, up: bool, now: Time);
    fn learned(&self, peer: PeerIndex, now: Time) -> Learned;
    /// Whether it keeps the peer out of ordinary work.
    fn is_demoted(&self, peer: PeerIndex, now: Time) -> bool;
    /// Where it measures on the wire.
    fn sight(&mut self) -> Option<&mut dyn Sight> {
        None
    }
    /// Bytes per second that it credits the peer with just now; `learned` at the last end.
    fn credited_rate(&self, _peer: PeerIndex, learned: Option<f64>, _now: Time) -> Option<f64> {
        learned
    }
    /// How far it trusts what it measured itself.
    fn trust(&self, _peer: PeerIndex, _now: Time) -> Option<f64> {
        None
    }
    /// Seconds that it expects a fetch to take.
    fn predicted_s(&self, _peer: PeerIndex, _range: Bytes, _now: Time) -> Option<f64> {
        None
    }
}

/// What changes from question to question about one content.
#[derive(Clone, Debug, Default)]
struct History {
    /// The candidates of the latest `select`, ascending.
    known: Vec<PeerIndex>,
    /// Peers that failed since the latest question.
    failed: BTreeSet<PeerIndex>,
    questions: u64,
}

/// A selector driven as a policy.
#[derive(Clone, Debug)]
pub(crate) struct Driver<S> {
    name: &'static str,
    selector: S,
    in_flight: InFlight,
    histories: BTreeMap<u64, History>,
    learned: BTreeMap<PeerIndex, Learned>,
}

impl<S: Selector> Driver<S> {
    pub(crate) fn new(name: &'static str, selector: S) -> Self {
        Driver { name, selector, in_flight: InFlight::default(), histories: BTreeMap::new(), learned: BTreeMap::new() }
    }

    fn history(&mut self, content: u64) -> &mut History {
        if self.histories.len() >= MAX_CONTENTS && !self.histories.contains_key(&content) {
            self.histories.pop_first();
        }
        self.histories.entry(content).or_default()
    }

    /// Asks the selector, in the way that fits.
    fn choices(&mut self, ask: &Ask<'_>) -> Vec<Choice> {
        let mut active: Vec<PeerIndex> = self.in_flight.peers_of(ask.content).collect();
        let history = self.history(ask.content);
        let question = question(ask, history.questions);
        history.questions += 1;
        let is_known = |one: &Candidate| history.known.binary_search(&one.peer).is_ok();
        let known = !history.known.is_empty() && ask.candidates.iter().all(is_known);
        let ending = ask.ranges_left <= ask.free;
        let failed = std::mem::take(&mut history.failed);
        let mut choices = Vec::new();
        if S::REBALANCES && known && (ending || !failed.is_empty()) {
            active.extend(failed);
            active.sort_unstable();
            active.dedup();
            choices = self.selector.rebalance(&question, &active);
            choices.retain(|choice| ask.candidates.iter().any(|one| one.peer == choice.peer));
        }
        if choices.is_empty() {
            choices = self.selector.select(&question);
            let history = self.history(ask.content);
            history.known = ask.candidates.iter().map(|one| one.peer).collect();
            history.known.sort_unstable();
        }
        choices
    }
}

fn question<'a>(ask: &Ask<'a>, decision: u64) -> Question<'a> {
    Question {
        content: ask.content,
        range: ask.range,
        ranges: ask.ranges_left,
        sources: ask.sources.max(1),
        decision,
        in_flight: ask.in_flight,
        free: ask.free,
        candidates: ask.candidates,
        now: ask.now,
    }
}

impl<S: Selector> Policy for Driver<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        if ask.free == 0 || ask.ranges_left == 0 || ask.candidates.is_empty() {
            return Vec::new();
        }
        self.selector.set_clock(ask.now);
        let mut choices = self.choices(ask);
        if choices.is_empty() && self.in_flight.is_empty() {
            choices = ask.candidates.iter().map(|one| Choice { peer: one.peer, room: 1 }).collect();
        }
        let mut allotment = Allotment::new(ask);
        while allotment.left() > 0 && choices.iter().any(|choice| choice.room > 0) {
            for choice in choices.iter_mut().filter(|choice| choice.room > 0) {
                choice.room -= 1;
                allotment.give(choice.peer, 1);
            }
        }
        let grants = allotment.grants();
        let left = ask.ranges_left - grants.iter().map(|grant| grant.ranges).sum::<u32>();
        for grant in &grants {
            self.in_flight.granted(ask.content, grant.peer, grant.ranges);
        }
        if left == 0 {
            self.selector.finished(&question(ask, 0));
        }
        grants
    }

    fn reviews(&self) -> bool {
        S::REVIEWS
    }

    fn review(&mut self, review: &Review<'_>) -> Reviewed {
        self.selector.set_clock(review.now);
        let mut reviewed = self.selector.review(review);
        if !review.can_drop {
            reviewed.moves.truncate(review.free as usize);
            for one in &reviewed.moves {
                self.in_flight.granted(review.content, one.to, 1);
            }
        }
        reviewed
    }

    fn sent(&mut self, peer: PeerIndex, _range: Bytes, now: Time) {
        self.selector.set_clock(now);
        self.selector.dispatched(peer, now);
    }

    fn ended(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time) {
        self.in_flight.ended(content, peer);
        if matches!(delivery.end, End::Failed(_) | End::Interrupted)
            && let Some(history) = self.histories.get_mut(&content)
        {
            history.failed.insert(peer);
        }
        self.selector.set_clock(now);
        self.selector.record(peer, content, range, delivery, now);
        let learned = self.selector.learned(peer, now);
        self.learned.insert(peer, learned);
    }

    fn connected(&mut self, peer: PeerIndex, up: bool, now: Time) {
        self.selector.set_clock(now);
        self.selector.connected(peer, up, now);
    }

    fn sight(&mut self) -> Option<&mut dyn Sight> {
        self.selector.sight()
    }

    fn predicted_s(&self, peer: PeerIndex, range: Bytes, now: Time) -> Option<f64> {
        self.selector.predicted_s(peer, range, now)
    }

    fn trust(&self, peer: PeerIndex, now: Time) -> Option<f64> {
        self.selector.trust(peer, now)
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        let learned = self.learned.get(&peer).and_then(|learned| learned.rate);
        let credited_rate = self.selector.credited_rate(peer, learned, now);
        Opinion { demoted: self.selector.is_demoted(peer, now), credited_rate }
    }
}
