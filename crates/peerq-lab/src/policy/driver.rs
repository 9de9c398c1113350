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

/// Names of the lab's world in a selector's terms.
pub(crate) mod names {
    use dig_dht::{CandidateAddr, ContentId};
    use dig_nat::PeerId;

    use super::{Candidate, PeerIndex};

    pub(crate) fn peer_id(peer: PeerIndex) -> PeerId {
        let mut id = [0; 32];
        // Spread like hashes are, with the index at the end.
        id[..8].copy_from_slice(&u64::from(peer.0).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
        id[28..].copy_from_slice(&peer.0.to_be_bytes());
        PeerId::from_bytes(id)
    }

    pub(crate) fn peer_index(peer: &PeerId) -> PeerIndex {
        let [.., a, b, c, d] = *peer.as_bytes();
        PeerIndex(u32::from_be_bytes([a, b, c, d]))
    }

    pub(crate) fn content_id(content: u64) -> ContentId {
        let mut id = [0; 32];
        id[24..].copy_from_slice(&content.to_be_bytes());
        ContentId::store(id)
    }

    /// An address in the candidate's group: a /16 each.
    pub(crate) fn address(candidate: &Candidate) -> CandidateAddr {
        let [.., high, low] = candidate.group.to_be_bytes();
        let [.., third, fourth] = candidate.peer.0.to_be_bytes();
        CandidateAddr::direct(format!("{}.{low}.{third}.{fourth}", 1 + high % 126), 9444)
    }
}

/// Writes a [`Selector`](crate::policy::driver::Selector) over the `PeerSelector` of `$krate`: two crates have the same public names, and so do the hooks that
/// the calling file defines for what differs: `make`, `set_clock`, `CONFIRMS_DISPATCHES`, `REBALANCES` and `is_demoted`.
macro_rules! bind_selector {
    ($krate:ident) => {
        /// The crate's selector in the lab's terms.
        pub(crate) struct Bound {
            seed: u64,
            selector: $krate::PeerSelector,
            clock: $krate::ClockSource,
            /// The latest candidates, as they were asked about and as the selector wants them.
            candidates: (Vec<PeerIndex>, Vec<$krate::Candidate>),
            failed: std::collections::BTreeSet<PeerIndex>,
            /// Whether a call into the selector is under way. Still set at the next one, it was left by a panic that somebody caught.
            calling: std::cell::Cell<bool>,
        }

        impl Bound {
            pub(crate) fn new(seed: u64) -> Self {
                let (selector, clock) = make(seed);
                Bound {
                    seed,
                    selector,
                    clock,
                    candidates: Default::default(),
                    failed: Default::default(),
                    calling: Default::default(),
                }
            }

            /// Calls the selector.
            fn call<T>(&self, what: impl FnOnce(&$krate::PeerSelector) -> T) -> T {
                self.calling.set(true);
                let answer = what(&self.selector);
                self.calling.set(false);
                answer
            }

            /// What it knows of a peer; nothing after a panic.
            fn snapshot(&self, peer: PeerIndex) -> Option<$krate::PeerSnapshot> {
                if self.calling.get() {
                    return None;
                }
                self.call(|selector| selector.peer_snapshot(&names::peer_id(peer)))
            }

            fn request(question: &Question<'_>) -> $krate::ContentRequest {
                $krate::ContentRequest {
                    content: names::content_id(question.content),
                    total_length: Some(question.range.get().saturating_mul(u64::from(question.ranges))),
                    range_count: Some(question.ranges as usize),
                    parallelism: question.sources as usize,
                }
            }

            fn name_candidates(&mut self, candidates: &[Candidate]) {
                let same = self.candidates.0.iter().copied().eq(candidates.iter().map(|one| one.peer));
                if !same {
                    let given = |one: &Candidate| {
                        let mut given = $krate::Candidate::new(names::peer_id(one.peer), vec![names::address(one)]);
                        let relayed = dig_nat::TraversalKind::Relayed;
                        given.class = Some(if one.relayed { relayed } else { dig_nat::TraversalKind::Direct });
                        given
                    };
                    self.candidates.0 = candidates.iter().map(|one| one.peer).collect();
                    self.candidates.1 = candidates.iter().map(given).collect();
                }
            }

            fn choices(selection: &$krate::Selection) -> Vec<Choice> {
                let choice = |one: &$krate::SelectedPeer| Choice {
                    peer: names::peer_index(&one.peer_id),
                    room: one.max_concurrency,
                    trial: one.exploratory,
                };
                selection.peers.iter().map(choice).collect()
            }
        }

        impl Selector for Bound {
            const REBALANCES: bool = REBALANCES;

            fn set_clock(&mut self, now: Time) {
                if self.calling.get() {
                    // Its lock is poisoned; a fresh one starts with nothing remembered.
                    *self = Bound::new(self.seed);
                }
                set_clock(&self.clock, now);
            }

            fn select(&mut self, question: &Question<'_>) -> Vec<Choice> {
                self.name_candidates(question.candidates);
                let request = Self::request(question);
                Self::choices(&self.call(|selector| selector.select(&request, &self.candidates.1)))
            }

            fn rebalance(&mut self, question: &Question<'_>, active: &[PeerIndex]) -> Vec<Choice> {
                let active: Vec<_> = active.iter().map(|peer| names::peer_id(*peer)).collect();
                let need = $krate::RangePlanDelta::of_count(question.ranges.min(MAX_NEED) as usize);
                let request = Self::request(question);
                Self::choices(&self.call(|selector| selector.rebalance(&request, &active, &need)))
            }

            fn finished(&mut self, question: &Question<'_>) {
                if CONFIRMS_DISPATCHES {
                    // What was promised for it and never dispatched is promised no longer.
                    let request = Self::request(&Question { ranges: 0, ..*question });
                    self.call(|selector| selector.select(&request, &[]));
                }
            }

            fn dispatched(&mut self, peer: PeerIndex, _now: Time) {
                if CONFIRMS_DISPATCHES {
                    self.call(|selector| selector.on_dispatch(&names::peer_id(peer), 1));
                }
            }

            fn record(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, _now: Time) {
                use $krate::{FailureReason, OutcomeResult};
                let failure = |reason| OutcomeResult::Failure { reason };
                let result = match delivery.end {
                    End::Completed => OutcomeResult::Success,
                    End::Interrupted => OutcomeResult::Interrupted { bytes_before: delivery.bytes.get() },
                    End::Cancelled => failure(FailureReason::Cancelled),
                    End::Failed(Fault::Timeout) => failure(FailureReason::Timeout),
                    End::Failed(Fault::Transport) => failure(FailureReason::Transport),
                    End::Failed(Fault::Unavailable) => failure(FailureReason::Unavailable),
                    End::Failed(Fault::Verification) => failure(FailureReason::VerificationFailed),
                    End::Failed(Fault::Unknown) => failure(FailureReason::Other),
                };
                // Rounded up: a delivery that took time took at least a millisecond.
                let millis = |span: Span| span.as_micros().div_ceil(1_000).max(1);
                let outcome = $krate::TransferOutcome {
                    peer_id: names::peer_id(peer),
                    content: names::content_id(content),
                    kind: $krate::OutcomeKind::Range { index: 0, offset: 0, length: range.get() },
                    result,
                    bytes: delivery.bytes.get(),
                    duration_ms: millis(delivery.elapsed),
                    rtt_ms: delivery.first_byte.map(millis),
                    at: self.clock.now(),
                };
                self.call(|selector| selector.record_outcome(&outcome));
                if delivery.end == End::Completed {
                    self.failed.remove(&peer);
                } else {
                    self.failed.insert(peer);
                }
            }

            fn connected(&mut self, peer: PeerIndex, up: bool, _now: Time) {
                let peer_id = names::peer_id(peer);
                let event = if up {
                    let addr = std::net::SocketAddr::from(([10, 0, 0, 1], 9444));
                    $krate::PoolEvent::PeerAdded { peer_id, addr }
                } else {
                    let reason = $krate::PoolRemovalReason::Disconnected;
                    $krate::PoolEvent::PeerRemoved { peer_id, reason }
                };
                self.call(|selector| selector.on_pool_event(&event));
            }

            fn learned(&self, peer: PeerIndex, _now: Time) -> Learned {
                let Some(snapshot) = self.snapshot(peer) else { return Learned::default() };
                Learned { rate: snapshot.throughput_bps, first_byte_s: snapshot.rtt_ms.map(|rtt_ms| rtt_ms / 1_000.0) }
            }

            fn is_demoted(&self, peer: PeerIndex, _now: Time) -> bool {
                // Nobody is kept out who did not fail last, unless for what was proven; and asking is dear.
                self.snapshot(peer).is_some_and(|snapshot| {
                    let suspect = snapshot.hard_failures > 0 || self.failed.contains(&peer);
                    snapshot.banned || (suspect && is_demoted(self, &snapshot, peer))
                })
            }
        }
    };
}
pub(crate) use bind_selector;
