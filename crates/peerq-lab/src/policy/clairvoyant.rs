//! The yardstick: a planner that knows the [truth](super::truth).
//!
//! For every question it finds the earliest moment by which everything left can be delivered, each peer at its true rate behind what it still has to deliver,
//! within shared links and the client's downlink (algorithms: "order and plan", with knowledge in place of estimates). Only who delivers at least one
//! range by then takes part, so no slow peer holds the end; among those, slots in flight go where one more adds most.
//!
//! Who would fail is not asked. A peer of whose requests some fail is asked for one that fails only where the failure comes back well before the end and nobody
//! else has use for the slot, to get at those behind it.

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
const SPARE: f64 = 1.0;
/// Rates that are worth dividing by, bytes per second.
const RATES: (f64, f64) = (1e-3, 1e15);
/// Rounds of slow start that matter: 2³⁰ windows are more than any link takes.
const MAX_ROUNDS: u32 = 30;

/// See the module documentation.
pub struct Clairvoyant {
    truth: Box<dyn Truth>,
    in_flight: InFlight,
    /// Until when each peer delivers what was granted to it.
    drained: BTreeMap<PeerIndex, Time>,
    /// The content of the latest question: what is sent next is for it.
    content: u64,
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
        (bytes / range + 1e-9).floor()
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

    /// Ranges per second with `in_flight` at once.
    fn pace(&self, in_flight: u32, range: f64) -> f64 {
        let one = 1.0 / (self.first_byte_s + range / self.alone);
        (f64::from(in_flight) * one).min(self.rate / range)
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
        Clairvoyant { truth, in_flight: InFlight::default(), drained: BTreeMap::new(), content: 0 }
    }

    fn request(peer: PeerIndex, ahead: u32, ask: &Ask<'_>) -> Request {
        Request { peer, content: ask.content, range: ask.range, at: ask.now, ahead }
    }

    /// A candidate as a source, or after how many seconds its next request would fail.
    fn source(&mut self, peer: PeerIndex, ask: &Ask<'_>) -> Result<Source, f64> {
        let (first_byte_s, alone) = match self.truth.fate(&Self::request(peer, 0, ask)) {
            Fate::Delivers { first_byte_s, rate } => (first_byte_s, rate),
            Fate::Fails { after_s } => return Err(sane_s(after_s)),
        };
        let rate = sane(self.truth.capacity(peer, ask.now));
        let change = self.truth.changes_at(peer, ask.now).map(|at| {
            let then = sane(self.truth.capacity(peer, at));
            (at.since(ask.now).as_secs_f64(), then)
        });
        let in_flight = self.in_flight.at(peer);
        Ok(Source {
            peer,
            first_byte_s: sane_s(first_byte_s),
            owes_s: self.drained.get(&peer).map_or(0.0, |at| at.since(ask.now).as_secs_f64()),
            rate,
            alone: sane(alone).min(rate),
            shared: self.truth.shared(peer).map(|(link, rate)| (link, sane(rate))),
            in_flight,
            most: self.truth.at_once(peer).unwrap_or(u32::MAX).max(1),
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
    fn fill(sources: &[Source], end_s: f64, range: f64, allotment: &mut Allotment) {
        let mut quotas: Vec<f64> = sources.iter().map(|source| source.delivers_by(end_s, range)).collect();
        while allotment.left() > 0 {
            let mut best: Option<(f64, f64, usize)> = None;
            for (at, source) in sources.iter().enumerate() {
                let given = allotment.of(source.peer);
                let now = source.in_flight.saturating_add(given);
                if quotas[at] < 1.0 || now >= source.depth(range) {
                    continue;
                }
                let gain = source.pace(now + 1, range) - source.pace(now, range);
                let finish_s = source.start_s() + source.body_s(f64::from(given + 1) * range);
                // Gains within a percent are equal: then the earlier end counts.
                let better = best
                    .is_none_or(|(most, least_s, _)| gain > most * 1.01 || (gain > most * 0.99 && finish_s < least_s));
                if better {
                    best = Some((gain, finish_s, at));
                }
            }
            let Some((_, _, at)) = best else { break };
            quotas[at] -= 1.0;
            allotment.give(sources[at].peer, 1);
        }
    }
}

impl Policy for Clairvoyant {
    fn name(&self) -> &'static str {
        "clairvoyant"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.content = ask.content;
        let range = ask.range.as_f64().max(1.0);
        let mut allotment = Allotment::new(ask);
        let (mut sources, mut failing) = (Vec::new(), Vec::new());
        for candidate in ask.candidates {
            match self.source(candidate.peer, ask) {
                Ok(source) => sources.push(source),
                Err(after_s) => failing.push((candidate.peer, after_s)),
            }
        }
        let end_s = self.end_s(&sources, ask.ranges_left, range);
        Self::fill(&sources, end_s, range, &mut allotment);
        for source in &sources {
            let given = allotment.of(source.peer);
            if given > 0 {
                let owed_s = (source.start_s() + source.body_s(f64::from(given) * range)).min(HORIZON_S);
                self.drained.insert(source.peer, ask.now + Span::from_micros((owed_s * 1e6) as u64));
            }
        }
        // Failures that are out of the way before the end cost a slot that nobody needs.
        for (peer, after_s) in failing {
            if self.in_flight.at(peer) > 0 || allotment.left() == 0 {
                continue;
            }
            let next = self.truth.fate(&Self::request(peer, 1, ask));
            let hopeful = matches!(next, Fate::Delivers { .. }) && after_s < end_s / 4.0;
            if sources.is_empty() || hopeful {
                allotment.give(peer, 1);
            }
        }
        let grants = allotment.grants();
        for grant in &grants {
            self.in_flight.granted(ask.content, grant.peer, grant.ranges);
        }
        grants
    }

    fn sent(&mut self, peer: PeerIndex, range: Bytes, now: Time) {
        self.truth.sent(&Request { peer, content: self.content, range, at: now, ahead: 0 });
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
