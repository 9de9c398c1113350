//! The yardstick: a planner that knows the [truth](super::truth).
//!
//! For every question it finds the earliest moment by which everything left can be delivered, each peer at its true rate behind what it still has to deliver,
//! within shared links and the client's downlink (algorithms: "order and plan", with knowledge in place of estimates). Only who delivers at least one
//! range by then takes part, so no slow peer holds the end; among those, slots in flight go where one more adds most.
//!
//! Who would fail is not asked. A peer of whose requests some fail is asked for one that fails only where the failure comes back before the end and nobody else
//! has use for the slot, to get at those behind it.

use std::collections::BTreeMap;
use std::rc::Rc;

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};

use super::allotment::Allotment;
use super::in_flight::InFlight;
use super::truth::{Fate, Truth};
use super::{Ask, Grant, Opinion, PeerIndex, Policy};

/// Rounds of the search for the end: each halves the error of a span below a day.
const BISECTIONS: u32 = 40;
/// The longest plan, seconds: later ends are as good as never.
const HORIZON_S: f64 = 86_400.0;
/// In flight beyond what fills a peer's link, so that it never idles between an end and the next request.
const SPARE: f64 = 1.0;
/// Least rate that is worth dividing by, bytes per second.
const MIN_RATE: f64 = 1e-3;

/// See the module documentation.
pub struct Clairvoyant {
    truth: Rc<dyn Truth>,
    in_flight: InFlight,
    /// Until when each peer delivers what was granted to it.
    drained: BTreeMap<PeerIndex, Time>,
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
    /// When its rate changes, seconds from now, and to what.
    change: Option<(f64, f64)>,
}

impl Source {
    /// Ranges of `range` bytes that it can deliver within `span_s`, besides what it owes.
    fn delivers_by(&self, span_s: f64, range: f64) -> f64 {
        let start_s = self.owes_s.max(self.first_byte_s);
        let bytes = match self.change {
            Some((at_s, then)) => {
                let before_s = (span_s.min(at_s) - start_s).max(0.0);
                let after_s = (span_s - start_s.max(at_s)).max(0.0);
                before_s * self.rate + after_s * then
            }
            None => (span_s - start_s).max(0.0) * self.rate,
        };
        // A whisker above, so that exact fits are not lost to rounding.
        (bytes / range + 1e-9).floor()
    }

    /// Ranges per second with `in_flight` at once.
    fn pace(&self, in_flight: u32, range: f64) -> f64 {
        let one = 1.0 / (self.first_byte_s + range / self.alone.max(MIN_RATE));
        (f64::from(in_flight) * one).min(self.rate / range)
    }

    /// How many in flight keep its link full.
    fn depth(&self, range: f64) -> u32 {
        let fill = self.rate / range * (self.first_byte_s + range / self.alone.max(MIN_RATE));
        ((fill + SPARE).ceil() as u32).clamp(1, self.most)
    }
}

impl Clairvoyant {
    /// Knowing `truth`.
    pub fn new(truth: Rc<dyn Truth>) -> Self {
        Clairvoyant { truth, in_flight: InFlight::default(), drained: BTreeMap::new() }
    }

    fn source(&self, peer: PeerIndex, ahead: u32, ask: &Ask<'_>) -> Result<Source, Fate> {
        let fate = self.truth.fate(peer, ahead, ask.range, ask.now);
        let Fate::Delivers { first_byte_s, rate } = fate else { return Err(fate) };
        let total = self.truth.capacity(peer, ask.now).max(MIN_RATE);
        let change = self.truth.changes_at(peer, ask.now).map(|at| {
            let then = self.truth.capacity(peer, at).max(MIN_RATE);
            (at.since(ask.now).as_secs_f64(), then)
        });
        let owes_s = self.drained.get(&peer).map_or(0.0, |at| at.since(ask.now).as_secs_f64());
        Ok(Source {
            peer,
            first_byte_s: first_byte_s.max(0.0),
            owes_s,
            rate: total,
            alone: rate.clamp(MIN_RATE, total),
            shared: self.truth.shared(peer),
            in_flight: self.in_flight.at(peer),
            most: self.truth.at_once(peer).unwrap_or(u32::MAX).max(1),
            change,
        })
    }

    /// Ranges that all of them deliver within `span_s`, within the links they share and the downlink.
    fn delivered_by(&self, sources: &[Source], span_s: f64, range: f64) -> f64 {
        let mut total = 0.0;
        let mut links: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for source in sources {
            let ranges = source.delivers_by(span_s, range);
            match source.shared {
                None => total += ranges,
                Some((link, rate)) => {
                    let entry = links.entry(link).or_insert((0.0, rate));
                    // What is under way on the link comes first.
                    entry.0 += ranges + f64::from(source.in_flight);
                    total -= f64::from(source.in_flight);
                }
            }
        }
        total += links.values().map(|(ranges, rate)| ranges.min(span_s * rate / range)).sum::<f64>();
        match self.truth.downlink() {
            Some(rate) => total.min(span_s * rate.max(MIN_RATE) / range),
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
        while allotment.left() > 0 {
            let mut best: Option<(f64, f64, usize)> = None;
            for (at, source) in sources.iter().enumerate() {
                let now = source.in_flight + allotment.of(source.peer);
                if quotas[at] < 1.0 || now >= source.depth(range) {
                    continue;
                }
                let gain = source.pace(now + 1, range) - source.pace(now, range);
                let bodies_s = f64::from(allotment.of(source.peer) + 1) * range / source.rate;
                let finish_s = source.owes_s.max(source.first_byte_s) + bodies_s;
                let better = best.is_none_or(|(most, least_s, _)| gain > most || (gain == most && finish_s < least_s));
                if better {
                    best = Some((gain, finish_s, at));
                }
            }
            let Some((_, _, at)) = best else { break };
            quotas[at] -= 1.0;
            allotment.give(sources[at].peer, 1);
        }
    }

    fn owe(&mut self, peer: PeerIndex, ranges: u32, ask: &Ask<'_>) {
        let Ok(source) = self.source(peer, 0, ask) else { return };
        let start_s = source.owes_s.max(source.first_byte_s);
        let body_s = (ask.range.as_f64() * f64::from(ranges) / source.rate).min(HORIZON_S);
        let span = peer_quality::units::Span::from_micros(((start_s + body_s) * 1e6) as u64);
        self.drained.insert(peer, ask.now + span);
    }
}

impl Policy for Clairvoyant {
    fn name(&self) -> &'static str {
        "clairvoyant"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        let range = ask.range.as_f64().max(1.0);
        let mut allotment = Allotment::new(ask);
        let (mut sources, mut failing) = (Vec::new(), Vec::new());
        for candidate in ask.candidates {
            match self.source(candidate.peer, 0, ask) {
                Ok(source) => sources.push(source),
                Err(Fate::Fails { after_s }) => failing.push((candidate.peer, after_s)),
                Err(_) => {}
            }
        }
        let end_s = self.end_s(&sources, ask.ranges_left, range);
        self.fill(&sources, end_s, range, &mut allotment);
        // Failures that are out of the way before the end cost a slot that nobody needs.
        for (peer, after_s) in failing {
            let waits = self.in_flight.at(peer) == 0 && allotment.left() > 0;
            let hopeful = matches!(self.truth.fate(peer, 1, ask.range, ask.now), Fate::Delivers { .. });
            if waits && (sources.is_empty() || (hopeful && after_s < end_s / 2.0)) {
                allotment.give(peer, 1);
            }
        }
        let grants = allotment.grants();
        for grant in &grants {
            self.in_flight.granted(ask.content, grant.peer, grant.ranges);
            self.owe(grant.peer, grant.ranges, ask);
        }
        grants
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, peer: PeerIndex, content: u64, _range: Bytes, _delivery: &Delivery, now: Time) {
        self.in_flight.ended(content, peer);
        if self.in_flight.at(peer) == 0 {
            self.drained.insert(peer, now);
        }
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        Opinion { demoted: false, credited_rate: Some(self.truth.capacity(peer, now)) }
    }
}

#[cfg(test)]
#[path = "clairvoyant_tests.rs"]
mod tests;
