//! The yardstick: a planner that knows the [truth](super::truth).
//!
//! For every question it finds the earliest moment by which everything left can be delivered, each peer at its true rate behind what it still has to deliver,
//! within shared links and the client's downlink (algorithms: "order and plan", with knowledge in place of estimates). Only who delivers at least one
//! range by then takes part, so no slow peer holds the end; among those, slots in flight go where one more adds most.
//!
//! It keeps the rule that every policy has to keep (AUD-8): once it was sent bytes twice that fail verification, it asks that peer for nothing that others have. Without it the
//! yardstick would be what nobody may do, where a peer is fast and corrupts some of what it sends.
//!
//! Who would fail is not asked. A peer of whose requests some fail counts for what it serves of the next few; a request that fails is sent to it only where it comes
//! back well before the end, to get at those behind it.
//!
//! What this model leaves out (where losses fall, how replies share a window, what a refusal costs) is settled by a rehearsal: the run is tried out with several
//! ways to go on from each turn, and it goes the best. So it is the best of several plans in the world as it is; the optimum can only be faster.

use std::collections::{BTreeMap, VecDeque};

use peer_quality::audit::{Proof, Standing};
use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};

use super::allotment::Allotment;
use super::foresight::Foresight;
use super::in_flight::InFlight;
use super::load::{Load, Offer, SPREAD};
use super::source::{HORIZON_S, LOOKAHEAD, Source, sane, sane_s};
use super::truth::{Fate, Request, Truth};
use super::ways::{Way, Ways};
use super::{Ask, Candidate, Grant, Opinion, PeerIndex, Policy};
use crate::model::{Workload, World};
use crate::sim::{Impossible, Rehearses, rehearse};

/// Rounds of the search for the end: each halves the error of a span below a day.
const BISECTIONS: u32 = 36;
/// A reply this many times later than the peer's soonest is as good as a failure until the end is that far away.
const LATE: f64 = 4.0;
/// What is wasted has to be over by this share of what is left, so that it holds nothing up.
const IN_TIME: f64 = 0.8;
/// Who fails within this share of what is left fails soon.
const KNOCK: f64 = 0.25;

/// See the module documentation.
#[derive(Clone)]
pub struct Clairvoyant<T> {
    truth: T,
    /// Ranges of a content.
    ranges: u32,
    ways: Ways,
    in_flight: InFlight,
    /// Until when each peer delivers what was granted to it.
    drained: BTreeMap<PeerIndex, Time>,
    /// When what is in flight at each peer was sent; as peers mostly end things in the order of their start, the oldest ends first.
    sent_at: BTreeMap<PeerIndex, VecDeque<Time>>,
    /// What is proven against a peer.
    proofs: BTreeMap<PeerIndex, Proof>,
    /// The content of the latest question: what is sent next is for it. None before the first one: what is told then is history.
    content: Option<u64>,
}

impl<T: Truth> Clairvoyant<T> {
    /// Knowing `truth`, for contents of `ranges` ranges.
    pub fn new(truth: T, ranges: u32) -> Self {
        let (in_flight, ways) = (InFlight::default(), Ways::default());
        let (drained, sent_at, proofs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Clairvoyant { truth, ranges, ways, in_flight, drained, sent_at, proofs, content: None }
    }

    fn is_condemned(&self, peer: PeerIndex) -> bool {
        self.proofs.get(&peer).is_some_and(|proof| proof.standing() >= Standing::Condemned)
    }

    fn request(peer: PeerIndex, ahead: u32, ask: &Ask<'_>) -> Request {
        Request { peer, content: ask.content, range: ask.range, at: ask.now, ahead }
    }

    /// A candidate as a source; none if it delivers nothing of what it is asked next.
    fn source(&self, peer: PeerIndex, ask: &Ask<'_>, way: &Way) -> Option<Source> {
        let fickle = self.truth.is_fickle(peer, ask.now);
        let ahead = if fickle { LOOKAHEAD } else { 1 };
        let fates: Vec<Fate> =
            (0..ahead).map(|ahead| self.truth.fate(&Self::request(peer, ahead as u32, ask))).collect();
        let served = fates.iter().filter_map(|fate| match *fate {
            Fate::Delivers { first_byte_s, rate } => Some((sane_s(first_byte_s), rate)),
            Fate::Fails { .. } => None,
        });
        let (first_byte_s, alone) = served.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let rate = sane(self.truth.capacity(peer, ask.now));
        let alone = sane(alone).min(rate);
        let usual_s = first_byte_s + ask.range.as_f64() / alone;
        let mut mishaps = [None; LOOKAHEAD];
        for (mishap, fate) in mishaps.iter_mut().zip(&fates) {
            *mishap = match *fate {
                Fate::Fails { after_s } => Some(sane_s(after_s)),
                Fate::Delivers { first_byte_s: late_s, .. } if sane_s(late_s) - first_byte_s > LATE * usual_s => {
                    Some(sane_s(late_s) + ask.range.as_f64() / alone)
                }
                Fate::Delivers { .. } => None,
            };
        }
        let of_use = mishaps[..ahead].iter().filter(|mishap| mishap.is_none()).count();
        let change = self.truth.changes_at(peer, ask.now).map(|at| {
            let then = sane(self.truth.capacity(peer, at));
            (at.since(ask.now).as_secs_f64(), then)
        });
        let in_flight = self.in_flight.at(peer);
        // As many as end before they are given up, sharing the link.
        let patience_s = IN_TIME * self.truth.patience_s() - first_byte_s;
        let in_time = (patience_s * rate / ask.range.as_f64().max(1.0)) as u32;
        Some(Source {
            peer,
            first_byte_s,
            owes_s: self.drained.get(&peer).map_or(0.0, |at| at.since(ask.now).as_secs_f64()),
            rate,
            alone,
            share: of_use as f64 / ahead as f64,
            mishaps,
            shared: self.truth.shared(peer).map(|(link, rate)| (link, sane(rate))),
            in_flight,
            oldest_s: self
                .sent_at
                .get(&peer)
                .and_then(|sent| sent.front())
                .map_or(0.0, |at| ask.now.since(*at).as_secs_f64()),
            most: self
                .truth
                .at_once(peer)
                .map_or(u32::MAX, |most| most.saturating_add(way.overbooks))
                .min(in_time)
                .max(1),
            ramp: if in_flight == 0 { self.truth.ramp(peer, ask.now) } else { None },
            change,
        })
    }

    /// Ranges that all of them deliver within `span_s`, within the links they share and the downlink.
    fn delivered_by(&self, sources: &[Source], span_s: f64, range: f64) -> f64 {
        let mut total = 0.0;
        let mut links: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
        for source in sources {
            let ranges = source.delivers_by(span_s, range);
            match source.shared {
                None => total += ranges,
                Some((link, rate)) => {
                    let entry = links.entry(link).or_insert((0.0, 0.0, rate));
                    entry.0 += ranges;
                    entry.1 += f64::from(source.in_flight);
                }
            }
        }
        // What is under way on a link comes first.
        let on_link =
            |(ranges, under_way, rate): &(f64, f64, f64)| ranges.min((span_s * rate / range - under_way).max(0.0));
        total += links.values().map(on_link).sum::<f64>();
        match self.truth.downlink() {
            Some(rate) => total.min(span_s * sane(rate) / range),
            None => total,
        }
    }

    /// The least span in which `ranges` are delivered.
    fn end_s(&self, sources: &[Source], ranges: u32, range: f64) -> f64 {
        let (mut low, mut high) = (0.0, HORIZON_S);
        for _ in 0..BISECTIONS {
            let middle = (low + high) / 2.0;
            if self.delivered_by(sources, middle, range) >= f64::from(ranges) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    /// Gives slots where one more adds most, to who delivers within `end_s`.
    fn fill(&self, sources: &[Source], end_s: f64, range: f64, way: &Way, allotment: &mut Allotment) {
        let mut quotas: Vec<f64> = sources.iter().map(|source| source.delivers_by(end_s, range)).collect();
        let mut load = Load::of(sources, range, self.truth.downlink());
        let single = allotment.left() == 1 && quotas.iter().all(|quota| *quota < 2.0);
        // Near the end every slot is needed.
        let ample = quotas.iter().sum::<f64>() > 4.0 * f64::from(allotment.left());
        let others = quotas.iter().filter(|quota| **quota >= 1.0).count() > 1;
        while allotment.left() > 0 {
            let mut best: Option<(Offer, usize)> = None;
            for (at, source) in sources.iter().enumerate() {
                let given = allotment.of(source.peer);
                let in_flight = source.in_flight.saturating_add(given);
                let full = quotas[at] < 1.0 || in_flight >= source.depth(range, way.spare);
                let mishap_s = source.mishaps.get(given as usize).copied().flatten();
                // Replies that start together end together, and then the link waits for requests: one of them starts when another peer's end gives occasion to.
                let abreast =
                    way.staggers && given > 0 && in_flight + 1 == source.depth(range, way.spare) && given == in_flight;
                let staggers = abreast && ample && others;
                let last = allotment.left() == 1 || in_flight + 1 == source.depth(range, way.spare);
                let waits =
                    way.spaces > 0.0 && last && in_flight > 0 && (given > 0 || source.is_early(range, way.spaces));
                if full || staggers || waits || mishap_s.is_some_and(|mishap_s| mishap_s > IN_TIME * end_s) {
                    continue;
                }
                let more = source.pace(in_flight + 1, range) - source.pace(in_flight, range);
                let end_s = source.start_s() + source.body_s(f64::from(given + 1) * range);
                let gain = load.gain(source, more);
                // A full downlink carries no more for more requests; they only take longer, and what takes too long is given up.
                if load.is_full() {
                    continue;
                }
                let offer = Offer { gain, end_s, in_flight, single, evenly: way.evenly };
                if best.is_none_or(|(other, _)| offer.beats(&other)) {
                    best = Some((offer, at));
                }
            }
            let Some((offer, at)) = best else { break };
            let source = &sources[at];
            let given = allotment.of(source.peer) as usize;
            // What fails comes back and counts for nothing.
            if source.mishaps.get(given).copied().flatten().is_none() {
                quotas[at] -= 1.0;
            }
            load.add(source, offer.gain);
            allotment.give(source.peer, 1);
        }
    }

    /// Asks somebody who fails soon, for an occasion to send after that.
    fn knock(&self, ask: &Ask<'_>, end_s: f64, allotment: &mut Allotment) {
        let lawful = ask.candidates.iter().filter(|one| !self.is_condemned(one.peer));
        let fails_s = |one: &Candidate| match self.truth.fate(&Self::request(one.peer, 0, ask)) {
            Fate::Fails { after_s } if after_s < KNOCK * end_s => Some((after_s, one.peer)),
            _ => None,
        };
        let soonest = lawful.filter_map(fails_s).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, peer)) = soonest {
            allotment.give(peer, 1);
        }
    }
}

impl<T: Truth> Policy for Clairvoyant<T> {
    fn name(&self) -> &'static str {
        "clairvoyant"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.content = Some(ask.content);
        let range = ask.range.as_f64().max(1.0);
        let mut allotment = Allotment::new(ask);
        let way = self.ways.next(ask.content, self.ranges);
        let mut all: Vec<Source> = ask.candidates.iter().filter_map(|one| self.source(one.peer, ask, &way)).collect();
        if all.iter().any(|source| !self.is_condemned(source.peer)) {
            all.retain(|source| !self.is_condemned(source.peer));
        }
        way.narrow(&mut all, |source| source.start_s() + source.body_s(range));
        // First as if only those counted who serve their next request, then with those whose mishap is over in time.
        let serving: Vec<Source> = all.iter().filter(|source| source.mishaps[0].is_none()).copied().collect();
        let first_s = self.end_s(&serving, ask.ranges_left, range);
        let in_time = |source: &&Source| source.mishaps[0].is_none_or(|mishap_s| mishap_s <= IN_TIME * first_s);
        let sources: Vec<Source> = all.iter().filter(in_time).copied().collect();
        let end_s = if sources.len() > serving.len() { self.end_s(&sources, ask.ranges_left, range) } else { first_s };
        let end_s = if ask.ranges_left == 1 { end_s * (1.0 + SPREAD) } else { end_s };
        self.fill(&sources, end_s, range, &way, &mut allotment);
        if way.spaces > 0.0 && allotment.left() == 1 && !sources.is_empty() {
            self.knock(ask, end_s, &mut allotment);
        }
        for source in &sources {
            let given = allotment.of(source.peer);
            if given > 0 {
                let owed_s = (source.start_s() + source.body_s(f64::from(given) * range)).min(HORIZON_S);
                self.drained.insert(source.peer, ask.now + Span::from_micros((owed_s * 1e6) as u64));
            }
        }
        // Who serves and is full has room when one of his ends; the client asks again then.
        let granted = ask.free.min(ask.ranges_left) > allotment.left();
        let room_comes = !sources.is_empty() && !self.in_flight.is_empty();
        if !granted && !room_comes && self.in_flight.for_content(ask.content) == 0 {
            // Everybody's next request fails: those are sent to whoever has them behind him soonest, to get at what follows.
            let mut soonest: Vec<(f64, PeerIndex)> =
                all.iter().filter_map(|source| Some((source.mishaps[0]?, source.peer))).collect();
            soonest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let hopeless = ask.candidates.iter().map(|one| one.peer);
            let first = soonest.first().map(|(_, peer)| *peer);
            match first.or(hopeless.min()) {
                Some(peer) => allotment.give(peer, 1),
                None => 0,
            };
        }
        let grants = allotment.grants();
        for grant in &grants {
            self.in_flight.granted(ask.content, grant.peer, grant.ranges);
        }
        grants
    }

    fn sent(&mut self, peer: PeerIndex, range: Bytes, now: Time) {
        if let Some(content) = self.content {
            self.sent_at.entry(peer).or_default().push_back(now);
            self.truth.sent(&Request { peer, content, range, at: now, ahead: 0 });
        }
    }

    fn ended(&mut self, peer: PeerIndex, content: u64, _range: Bytes, delivery: &Delivery, now: Time) {
        self.in_flight.ended(content, peer);
        if let Some(sent) = self.sent_at.get_mut(&peer) {
            sent.pop_front();
        }
        if self.in_flight.at(peer) == 0 {
            self.drained.insert(peer, now);
        }
        match delivery.end {
            End::Failed(Fault::Verification) => self.proofs.entry(peer).or_default().offend(),
            End::Completed => {
                if let Some(proof) = self.proofs.get_mut(&peer) {
                    proof.pay_back(delivery.bytes);
                }
            }
            _ => (),
        }
        self.truth.ended(peer, content, delivery, now);
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        Opinion { demoted: false, credited_rate: Some(sane(self.truth.capacity(peer, now))) }
    }
}

impl<T: Truth + Clone> Rehearses for Clairvoyant<T> {
    fn ways(&self, ranges: u32) -> usize {
        Ways::count(ranges)
    }

    fn go(&mut self, content: u64, way: usize) {
        self.ways.go(content, way);
    }

    fn forget_all_but(&mut self, contents: &[u64]) {
        self.ways.forget_all_but(contents);
    }
}

/// The yardstick for the run of `workload` in `world` under `seed`, rehearsed.
///
/// # Errors
/// [`Impossible`] names the field that no world or workload can have.
pub fn clairvoyant(world: &World, workload: &Workload, seed: u64) -> Result<Clairvoyant<Foresight>, Impossible> {
    let foresight = Foresight::new(world, workload, seed)?;
    let ranges = foresight.ranges();
    let fresh = Clairvoyant::new(foresight, ranges);
    let ways = Ways::found(rehearse(world, workload, fresh.clone(), seed)?);
    Ok(Clairvoyant { ways, ..fresh })
}

#[cfg(test)]
#[path = "clairvoyant_tests.rs"]
mod tests;
