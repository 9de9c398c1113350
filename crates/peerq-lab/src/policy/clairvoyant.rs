//! The yardstick: a planner that knows the [truth](super::truth).
//!
//! For every question it finds the earliest moment by which everything left can be delivered, each peer at its true rate behind what it still has to deliver,
//! within shared links and the client's downlink (algorithms: "order and plan", with knowledge in place of estimates). Only who delivers at least one
//! range by then takes part, so no slow peer holds the end; among those, slots in flight go where one more adds most.
//!
//! Who would fail is not asked. A peer of whose requests some fail counts for what it serves of the next few; a request that fails is sent to it only where it comes
//! back well before the end, to get at those behind it.

use std::collections::BTreeMap;

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Span, Time};

use super::allotment::Allotment;
use super::in_flight::InFlight;
use super::truth::{Fate, Ramp, Request, Truth};
use super::{Ask, Grant, Opinion, PeerIndex, Policy};

/// Rounds of the search for the end: each halves the error of a span below a day.
const BISECTIONS: u32 = 36;
/// The longest plan, seconds: later ends are as good as never.
const HORIZON_S: f64 = 86_400.0;
/// In flight beyond what fills a peer's link, so that it never idles between an end and the next request.
const SPARE: f64 = 2.0;
/// Rates that are worth dividing by, bytes per second.
const RATES: (f64, f64) = (1e-3, 1e15);
/// Requests to one peer whose fate is looked up together.
const LOOKAHEAD: usize = 8;
/// A reply this many times later than the peer's soonest is as good as a failure until the end is that far away.
const LATE: f64 = 4.0;
/// What is wasted has to be over by this share of what is left, so that it holds nothing up.
const IN_TIME: f64 = 0.8;
/// Ends this near, and gains this near, are equal.
const EQUAL: f64 = 0.03;
/// What is kept under way on the downlink, as a multiple of its rate: replies that start together leave it idle between them.
const AMPLE: f64 = 2.0;
/// A single range may end this much later than the soonest, where that spreads the load: replies of one peer hold each other up.
const SPREAD: f64 = 0.15;
/// Rounds of slow start that matter: 2³⁰ windows are more than any link takes.
const MAX_ROUNDS: u32 = 30;

/// See the module documentation.
pub struct Clairvoyant {
    truth: Box<dyn Truth>,
    in_flight: InFlight,
    /// Until when each peer delivers what was granted to it.
    drained: BTreeMap<PeerIndex, Time>,
    /// The content of the latest question: what is sent next is for it. None before the first one: what is told then is history.
    content: Option<u64>,
}

/// One candidate in a plan.
#[derive(Clone, Copy, Debug)]
struct Source {
    peer: PeerIndex,
    /// Seconds to the first byte of its next range.
    first_byte_s: f64,
    /// Seconds until it has delivered what it owes.
    owes_s: f64,
    /// All its requests together, bytes per second.
    rate: f64,
    /// One request alone.
    alone: f64,
    /// Of its next requests, how many are of use, 0..=1.
    share: f64,
    /// What becomes of its next requests: none is served, else fails after so many seconds.
    mishaps: [Option<f64>; LOOKAHEAD],
    shared: Option<(u32, f64)>,
    in_flight: u32,
    most: u32,
    ramp: Option<Ramp>,
    /// When its rate changes, seconds from now, and to what.
    change: Option<(f64, f64)>,
}

impl Source {
    fn start_s(&self) -> f64 {
        self.owes_s.max(self.first_byte_s)
    }

    /// Bytes within `span_s` from the first one on, and what of the span is left when the link is full.
    fn ramped(&self, span_s: f64) -> (f64, f64) {
        let Some(ramp) = self.ramp else { return (0.0, span_s) };
        let (mut bytes, mut left_s, mut window) = (0.0, span_s, ramp.window);
        for _ in 0..MAX_ROUNDS {
            if window >= self.rate * ramp.round_s {
                break;
            }
            if left_s < ramp.round_s {
                return (bytes + window.min(left_s.max(0.0) * self.rate), 0.0);
            }
            bytes += window;
            left_s -= ramp.round_s;
            window *= 2.0;
        }
        (bytes, left_s)
    }

    /// Ranges of `range` bytes that it can deliver within `span_s`, besides what it owes.
    fn delivers_by(&self, span_s: f64, range: f64) -> f64 {
        let start_s = self.start_s();
        if span_s < start_s + (1.0 - 1e-9) * range / self.alone {
            let turned = self.change.is_some_and(|(at_s, then)| at_s < span_s && then > self.rate);
            if !turned {
                return 0.0;
            }
        }
        let mut bytes = 0.0;
        let until_s = self.change.map_or(span_s, |(at_s, _)| at_s.min(span_s));
        if until_s > start_s {
            let (ramped, full_s) = self.ramped(until_s - start_s);
            bytes += ramped + full_s.max(0.0) * self.rate;
        }
        if let Some((at_s, then)) = self.change {
            bytes += (span_s - start_s.max(at_s)).max(0.0) * then;
        }
        // A whisker above, so that exact fits are not lost to rounding.
        (bytes * self.share / range + 1e-9).floor()
    }

    /// Seconds of a body of `bytes`.
    fn body_s(&self, bytes: f64) -> f64 {
        let (mut left, mut at_s) = (bytes, 0.0);
        if let Some(ramp) = self.ramp {
            let mut window = ramp.window;
            for _ in 0..MAX_ROUNDS {
                if left <= window || window >= self.rate * ramp.round_s {
                    break;
                }
                left -= window;
                at_s += ramp.round_s;
                window *= 2.0;
            }
        }
        at_s + left / self.rate
    }

    /// Ranges per second with `in_flight` at once: requests sent together share the link and end together, so each round costs a first byte.
    fn pace(&self, in_flight: u32, range: f64) -> f64 {
        let count = f64::from(in_flight);
        let body_s = (range / self.alone).max(count * range / self.rate);
        self.share * count / (self.first_byte_s + body_s)
    }

    /// How many in flight keep its link full.
    fn depth(&self, range: f64) -> u32 {
        let fill = self.rate / range * (self.first_byte_s + range / self.alone);
        ((fill + SPARE).ceil() as u32).clamp(1, self.most)
    }
}

/// A share of a link: not-a-number and nothing are next to nothing.
fn sane(rate: f64) -> f64 {
    if rate.is_nan() { RATES.0 } else { rate.clamp(RATES.0, RATES.1) }
}

fn sane_s(seconds: f64) -> f64 {
    if seconds.is_nan() { HORIZON_S } else { seconds.clamp(0.0, HORIZON_S) }
}

impl Clairvoyant {
    /// Knowing `truth`.
    pub fn new(truth: Box<dyn Truth>) -> Self {
        Clairvoyant { truth, in_flight: InFlight::default(), drained: BTreeMap::new(), content: None }
    }

    fn request(peer: PeerIndex, ahead: u32, ask: &Ask<'_>) -> Request {
        Request { peer, content: ask.content, range: ask.range, at: ask.now, ahead }
    }

    /// A candidate as a source; none if it delivers nothing of what it is asked next.
    fn source(&self, peer: PeerIndex, ask: &Ask<'_>) -> Option<Source> {
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
            most: self.truth.at_once(peer).unwrap_or(u32::MAX).min(in_time).max(1),
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
    fn fill(&self, sources: &[Source], end_s: f64, range: f64, allotment: &mut Allotment) {
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
                let full = quotas[at] < 1.0 || in_flight >= source.depth(range);
                let mishap_s = source.mishaps.get(given as usize).copied().flatten();
                // Replies that start together end together, and then the link waits for requests: one of them starts when another peer's end gives occasion to.
                let abreast = given > 0 && in_flight + 1 == source.depth(range) && given == in_flight;
                let staggers = abreast && ample && others;
                if full || staggers || mishap_s.is_some_and(|mishap_s| mishap_s > IN_TIME * end_s) {
                    continue;
                }
                let more = source.pace(in_flight + 1, range) - source.pace(in_flight, range);
                let end_s = source.start_s() + source.body_s(f64::from(given + 1) * range);
                let gain = load.gain(source, more);
                // A full downlink carries no more for more requests; they only take longer, and what takes too long is given up.
                if load.is_full() {
                    continue;
                }
                let offer = Offer { gain, end_s, in_flight, single };
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
}

/// One more range for one source.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// Ranges per second that it adds.
    gain: f64,
    end_s: f64,
    in_flight: u32,
    /// Whether it is the last one.
    single: bool,
}

impl Offer {
    fn beats(&self, other: &Offer) -> bool {
        let near = |a: f64, b: f64, equal: f64| (a - b).abs() <= equal * a.max(b);
        if self.single {
            // Equals take turns, which keeps their connections warm.
            let equal = near(self.end_s, other.end_s, SPREAD) && self.in_flight != other.in_flight;
            return if equal { self.in_flight < other.in_flight } else { self.end_s < other.end_s };
        }
        if !near(self.gain, other.gain, EQUAL) {
            return self.gain > other.gain;
        }
        if !near(self.end_s, other.end_s, EQUAL) {
            return self.end_s < other.end_s;
        }
        self.in_flight < other.in_flight
    }
}

/// Ranges per second under way, on shared links and on the downlink.
#[derive(Clone, Debug)]
struct Load {
    links: BTreeMap<u32, (f64, f64)>,
    /// Under way, and at most.
    down: (f64, f64),
}

impl Load {
    fn of(sources: &[Source], range: f64, downlink: Option<f64>) -> Load {
        let down = (0.0, downlink.map_or(f64::INFINITY, |rate| AMPLE * sane(rate) / range));
        let mut load = Load { links: BTreeMap::new(), down };
        for source in sources {
            if let Some((link, rate)) = source.shared {
                load.links.entry(link).or_insert((0.0, rate / range));
            }
            if source.in_flight > 0 {
                let pace = load.gain(source, source.pace(source.in_flight, range));
                load.add(source, pace);
            }
        }
        load
    }

    /// What is left of `more` ranges per second within the links.
    fn gain(&self, source: &Source, more: f64) -> f64 {
        let link = source.shared.and_then(|(link, _)| self.links.get(&link));
        let left = |(now, most): &(f64, f64)| (most - now).max(0.0);
        more.max(0.0).min(link.map_or(f64::INFINITY, left)).min(left(&self.down))
    }

    /// Whether the downlink has all it can carry.
    fn is_full(&self) -> bool {
        self.down.0 >= self.down.1
    }

    fn add(&mut self, source: &Source, pace: f64) {
        self.down.0 += pace;
        if let Some(link) = source.shared.and_then(|(link, _)| self.links.get_mut(&link)) {
            link.0 += pace;
        }
    }
}

impl Policy for Clairvoyant {
    fn name(&self) -> &'static str {
        "clairvoyant"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.content = Some(ask.content);
        let range = ask.range.as_f64().max(1.0);
        let mut allotment = Allotment::new(ask);
        let all: Vec<Source> = ask.candidates.iter().filter_map(|one| self.source(one.peer, ask)).collect();
        // First as if only those counted who serve their next request, then with those whose mishap is over in time.
        let serving: Vec<Source> = all.iter().filter(|source| source.mishaps[0].is_none()).copied().collect();
        let first_s = self.end_s(&serving, ask.ranges_left, range);
        let in_time = |source: &&Source| source.mishaps[0].is_none_or(|mishap_s| mishap_s <= IN_TIME * first_s);
        let sources: Vec<Source> = all.iter().filter(in_time).copied().collect();
        let end_s = if sources.len() > serving.len() { self.end_s(&sources, ask.ranges_left, range) } else { first_s };
        let end_s = if ask.ranges_left == 1 { end_s * (1.0 + SPREAD) } else { end_s };
        self.fill(&sources, end_s, range, &mut allotment);
        for source in &sources {
            let given = allotment.of(source.peer);
            if given > 0 {
                let owed_s = (source.start_s() + source.body_s(f64::from(given) * range)).min(HORIZON_S);
                self.drained.insert(source.peer, ask.now + Span::from_micros((owed_s * 1e6) as u64));
            }
        }
        // Who serves and is full has room when one of his ends; the client asks again then.
        if serving.is_empty() && sources.is_empty() && self.in_flight.for_content(ask.content) == 0 {
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
            self.truth.sent(&Request { peer, content, range, at: now, ahead: 0 });
        }
    }

    fn ended(&mut self, peer: PeerIndex, content: u64, _range: Bytes, delivery: &Delivery, now: Time) {
        self.in_flight.ended(content, peer);
        if self.in_flight.at(peer) == 0 {
            self.drained.insert(peer, now);
        }
        self.truth.ended(peer, content, delivery, now);
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        Opinion { demoted: false, credited_rate: Some(sane(self.truth.capacity(peer, now))) }
    }
}

#[cfg(test)]
#[path = "clairvoyant_tests.rs"]
mod tests;
