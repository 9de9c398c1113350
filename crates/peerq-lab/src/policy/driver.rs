//! How a client uses a selector: the same logic for ours, for its bare engine and for the published one (HOST-D1, RANK-3).
//!
//! A selector is asked only when a range can be sent, and told exactly what is left: with `rebalance` when a source failed since or the last ranges are out, else
//! with `select`. What it calls concurrency is room for more. A trial gets one range, and at most one range in twenty while proven peers have work.
//! Near the end a peer that would still be busy with one range when the others have done everything is passed over, since a range is never taken back.

use std::collections::{BTreeMap, BTreeSet};

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Time};

use super::allotment::Allotment;
use super::in_flight::InFlight;
use super::{Ask, Candidate, Grant, Opinion, PeerIndex, Policy};

/// While proven peers do the work, one range in this many goes to a trial: about 5 % (RANK-3).
const RANGES_PER_TRIAL: u32 = 20;
/// An unproven peer is assumed to need this many times the average of a range, near the end.
const UNPROVEN_FACTOR: f64 = 4.0;
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
    pub(crate) candidates: &'a [Candidate],
    pub(crate) now: Time,
}

/// One peer of a selector's answer, in the order of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) peer: PeerIndex,
    /// How many more ranges it may have in flight.
    pub(crate) room: u32,
    /// Whether it is taken to be measured.
    pub(crate) trial: bool,
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
    fn dispatched(&mut self, peer: PeerIndex, now: Time);
    fn record(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time);
    fn connected(&mut self, peer: PeerIndex, up: bool, now: Time);
    fn learned(&self, peer: PeerIndex, now: Time) -> Learned;
    /// Whether it keeps the peer out of ordinary work.
    fn is_demoted(&self, peer: PeerIndex, now: Time) -> bool;
}

/// What changes from question to question about one content.
#[derive(Clone, Debug, Default)]
struct History {
    /// The candidates of the latest `select`, ascending.
    known: Vec<PeerIndex>,
    /// Peers that failed since the latest question.
    failed: BTreeSet<PeerIndex>,
    /// Ranges granted since the latest trial.
    since_trial: u32,
    questions: u64,
    completed: u32,
    completed_s: f64,
}

impl History {
    fn average_s(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.completed_s / f64::from(self.completed))
    }
}

/// A place in the plan.
#[derive(Clone, Copy, Debug)]
struct Place {
    peer: PeerIndex,
    room: u32,
    /// Seconds for one range, where known or assumed.
    range_s: Option<f64>,
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

    fn range_s(&self, peer: PeerIndex, range: Bytes) -> Option<f64> {
        let learned = self.learned.get(&peer)?;
        let range_s = range.as_f64() / learned.rate? + learned.first_byte_s.unwrap_or(0.0);
        (range_s.is_finite() && range_s > 0.0).then_some(range_s)
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

    /// The choices as places: trials first when one is due, and left out otherwise.
    fn places(&self, choices: &[Choice], ask: &Ask<'_>, trial_due: bool, unproven_s: Option<f64>) -> Vec<Place> {
        let place = |choice: &Choice| {
            let proven_s = self.range_s(choice.peer, ask.range);
            let room = if choice.trial && trial_due { choice.room.min(1) } else { choice.room };
            Place { peer: choice.peer, room, range_s: proven_s.or(unproven_s) }
        };
        let (trials, proven): (Vec<&Choice>, Vec<&Choice>) = choices.iter().partition(|choice| choice.trial);
        if proven.is_empty() {
            return trials.into_iter().map(place).collect();
        }
        trials.into_iter().filter(|_| trial_due).take(1).chain(proven).map(place).collect()
    }

    /// Hands out ranges by place, up to each one's room.
    fn hand_out(&self, mut places: Vec<Place>, ask: &Ask<'_>) -> Vec<Grant> {
        let mut allotment = Allotment::new(ask);
        let busy: Vec<(PeerIndex, u32, Option<f64>)> = self
            .in_flight
            .peers_of(ask.content)
            .map(|peer| (peer, self.in_flight.of(ask.content, peer), self.range_s(peer, ask.range)))
            .collect();
        let mut left = ask.ranges_left;
        while allotment.left() > 0 {
            let fits = |place: &Place| place.room > 0 && !is_straggler(place, &places, &busy, &allotment, left);
            let at = places.iter().position(fits);
            // Somebody has to do it, if nobody is at it.
            let at = at.or((busy.is_empty() && left == ask.ranges_left && !places.is_empty()).then_some(0));
            let Some(at) = at else { break };
            allotment.give(places[at].peer, 1);
            places[at].room = places[at].room.saturating_sub(1);
            left -= 1;
        }
        allotment.grants()
    }
}

fn question<'a>(ask: &Ask<'a>, decision: u64) -> Question<'a> {
    Question {
        content: ask.content,
        range: ask.range,
        ranges: ask.ranges_left,
        sources: ask.sources.max(1),
        decision,
        candidates: ask.candidates,
        now: ask.now,
    }
}

/// Whether one range at this place would still be running when the others have done all that is left.
fn is_straggler(
    place: &Place,
    places: &[Place],
    busy: &[(PeerIndex, u32, Option<f64>)],
    granted: &Allotment,
    left: u32,
) -> bool {
    let Some(own_s) = place.range_s else { return false };
    let (mut pace, mut work) = (0.0, f64::from(left));
    let newly = places.iter().map(|one| (one.peer, granted.of(one.peer), one.range_s));
    for (peer, ranges, range_s) in busy.iter().copied().chain(newly) {
        if peer != place.peer && ranges > 0 {
            work += f64::from(ranges);
            pace += range_s.map_or(0.0, |range_s| f64::from(ranges) / range_s);
        }
    }
    pace > 0.0 && own_s > work / pace
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
        let choices = self.choices(ask);
        let history = self.history(ask.content);
        let trial_due = history.since_trial >= RANGES_PER_TRIAL && ask.ranges_left > ask.free;
        let unproven_s = history.average_s().map(|range_s| range_s * UNPROVEN_FACTOR);
        let mut places = self.places(&choices, ask, trial_due, unproven_s);
        if places.is_empty() && self.in_flight.for_content(ask.content) == 0 {
            let alone = |one: &Candidate| Place { peer: one.peer, room: 1, range_s: None };
            places = ask.candidates.iter().map(alone).collect();
        }
        let grants = self.hand_out(places, ask);
        for grant in &grants {
            self.in_flight.granted(ask.content, grant.peer, grant.ranges);
        }
        let granted: u32 = grants.iter().map(|grant| grant.ranges).sum();
        let history = self.history(ask.content);
        history.since_trial = if trial_due { 0 } else { history.since_trial.saturating_add(granted) };
        if granted == ask.ranges_left {
            self.selector.finished(&question(ask, 0));
        }
        grants
    }

    fn sent(&mut self, peer: PeerIndex, _range: Bytes, now: Time) {
        self.selector.set_clock(now);
        self.selector.dispatched(peer, now);
    }

    fn ended(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time) {
        self.in_flight.ended(content, peer);
        if let Some(history) = self.histories.get_mut(&content) {
            match delivery.end {
                End::Completed => {
                    history.completed = history.completed.saturating_add(1);
                    history.completed_s += delivery.elapsed.as_secs_f64();
                }
                End::Cancelled => {}
                End::Failed(_) | End::Interrupted => {
                    history.failed.insert(peer);
                }
            }
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

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        let credited_rate = self.learned.get(&peer).and_then(|learned| learned.rate);
        Opinion { demoted: self.selector.is_demoted(peer, now), credited_rate }
    }
}
