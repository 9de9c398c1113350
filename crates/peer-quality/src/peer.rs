//! Everything known of one peer, and the terms of its next quote.

use crate::audit::{Cooling, Proof, Standing};
use alloc::boxed::Box;

use crate::estimate::population::{Prior, Vote};
use crate::estimate::predicted::Deviation;
use crate::estimate::{
    Delivered, Forecast, Idleness, Path, Ramp, Rating, Refusals, Reliability, Retention, Saturation, Verdict, Wire,
};
use crate::measure::{Burst, Delivery, End, Fault, Kernel, Pending, RoundTrip, Sample, Throughput};
use crate::rank::quote::{Capacity, Terms};
use crate::table::Tier;
use crate::units::{Span, Time};

/// How long a condemned peer rests between trials: the same bound within which every peer is tried again.
const CONDEMNED_REST: Span = crate::audit::cooling::LONGEST;

/// A peer that headed one of this many decisions was among the best.
const LED_LATELY: u64 = 64;

/// A stretch of busy time counts as this many ends: it has at least as many.
const STRETCH_ENDS: u8 = 4;

/// A total rate further than this factor beyond what its requests take one by one is out of date. Lower takes slow start for it, higher follows a peer that turned slow later.
const STALE_CAPACITY: f32 = 2.0;

/// One peer's record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) delivered: Delivered,
    pub(crate) reliability: Reliability,
    pub(crate) proof: Proof,
    pub(crate) pending: Pending,
    throughput: Throughput,
    /// Requests that a decision promised and nobody confirmed yet.
    pub(crate) reserved: u32,
    pub(crate) path: Path,
    pub(crate) connected: bool,
    pub(crate) samples: u32,
    pub(crate) last_end: Option<Time>,
    /// When a failure was last charged.
    last_failure: Option<Time>,
    pub(crate) cooling: Cooling,
    /// The last decision that took it; 0 is never.
    pub(crate) last_tried: u64,
    pub(crate) scope: u64,
    pub(crate) salt: u32,
    /// The last decision whose best it was; 0 is never.
    pub(crate) led: u64,
    /// Ends since its rate changed while it was among the best, plus one; 0 stands for never.
    ends_since_change: u8,
    /// The concurrency that its vote in the population stands for; 0 is none.
    voted: u16,
    saturation: Option<Saturation>,
    refusals: Refusals,
    idleness: Idleness,
    /// What the wire says; nothing for hosts that do not see it.
    wire: Option<Box<Wire>>,
    /// The forecast, until something changes it: quotes are far more frequent than ends.
    forecast: Option<Forecast>,
}

/// What a failure is charged to, as it was before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncharged {
    delivered: Delivered,
    reliability: Reliability,
    cooling: Cooling,
    last_failure: Option<Time>,
    saturation: Option<Saturation>,
    retention: Option<Retention>,
}

impl Peer {
    /// What the next failure is charged to.
    pub(crate) fn uncharged(&self) -> Uncharged {
        Uncharged {
            delivered: self.delivered,
            reliability: self.reliability,
            cooling: self.cooling,
            last_failure: self.last_failure,
            saturation: self.saturation,
            retention: self.wire.as_ref().map(|wire| wire.retention),
        }
    }

    /// Takes back what was charged since `before`.
    pub(crate) fn discharge(&mut self, before: &Uncharged) {
        self.delivered = before.delivered;
        self.reliability = before.reliability;
        self.cooling = before.cooling;
        self.last_failure = before.last_failure;
        self.saturation = before.saturation;
        if let (Some(wire), Some(retention)) = (&mut self.wire, before.retention) {
            wire.retention = retention;
        }
        self.forecast = None;
    }

    /// Whether a completed delivery took no longer than its own record has it.
    pub(crate) fn is_on_time(&self, delivery: &Delivery) -> bool {
        let usual = self.delivered.forecast(&Prior::default());
        self.delivered.is_measured() && delivery.elapsed.as_secs_f64() <= f64::from(usual.tail_s(delivery.bytes))
    }

    /// Requests in flight, reservations included.
    pub(crate) fn in_flight(&mut self, now: Time) -> u32 {
        if !self.pending.is_empty() {
            self.pending.expire(now);
        }
        self.pending.len().saturating_add(self.reserved)
    }

    /// Recommended most in flight, at least 1: its own, or that of its `class`.
    pub(crate) fn limit(&self, class: u32, now: Time) -> u32 {
        let useful = self.saturation.as_ref().map_or(class, Saturation::limit);
        self.refusals.ceiling(now).map_or(useful, |ceiling| useful.min(ceiling))
    }

    /// What is lost by forgetting it.
    pub(crate) fn tier(&self) -> Tier {
        if self.connected {
            Tier::Pinned
        } else if self.reserved > 0 || !self.pending.is_empty() {
            Tier::Busy
        } else if self.delivered.is_measured() {
            Tier::Measured
        } else {
            Tier::Cold
        }
    }

    /// Requests were sent.
    pub(crate) fn sent(&mut self, requests: u32, now: Time) {
        self.pending.sent(requests, now);
        self.idleness.sent(self.delivered.first_byte_s(), now);
        if let Some(wire) = &mut self.wire {
            wire.sent(now);
        }
    }

    /// There is a live link, or there is none any more.
    pub(crate) fn linked(&mut self, connected: bool) {
        self.connected = connected;
        self.idleness.reconnected();
        if let Some(wire) = &mut self.wire {
            wire.reconnected();
        }
    }

    /// Learns from a burst of SDUs.
    pub(crate) fn burst(&mut self, burst: &Burst, prior: &Prior, now: Time) -> Option<Deviation> {
        let burst = burst.checked()?;
        let open_since = self.pending.oldest();
        self.wire_mut().burst(&burst, open_since, prior, now)
    }

    /// Learns how far it is.
    pub(crate) fn round_trip(&mut self, reading: &RoundTrip, now: Time) {
        if let Some(reading) = reading.checked() {
            self.wire_mut().round_trip(reading, now);
        }
    }

    /// Learns that its echoes fell silent.
    pub(crate) fn echoes_silent(&mut self) {
        self.wire_mut().echoes_silent();
    }

    /// Learns what the kernel knows.
    pub(crate) fn kernel(&mut self, reading: Kernel, now: Time) {
        self.wire_mut().kernel(reading, now);
    }

    /// Whether anything came from its wire.
    pub(crate) fn sees_wire(&self) -> bool {
        self.wire.is_some()
    }

    fn wire_mut(&mut self) -> &mut Wire {
        self.forecast = None;
        let recorded_at = self.last_end.unwrap_or_default();
        self.wire.get_or_insert_with(|| Box::new(Wire::new(recorded_at)))
    }

    /// Learns from the end of a request; `prior` is what is assumed of its kind, `decision` decisions had been made.
    pub(crate) fn ended(&mut self, delivery: &Delivery, prior: &Prior, now: Time, decision: u64) {
        let in_flight = self.in_flight(now);
        let before = self.pending.load(now);
        let settled = self.pending.settle(delivery.elapsed, now);
        let stretch = settled.and_then(|_| self.throughput.ended(delivery.bytes, before, self.pending.load(now)));
        self.last_end = Some(now);
        if delivery.end == End::Cancelled {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        // Requests that were under way when another one failed share its fate: the damage must not grow with their number.
        let same_incident = settled.zip(self.last_failure).is_some_and(|(settled, failed)| settled.at < failed);
        let verdict = verdict_of(delivery.end).filter(|verdict| *verdict != Verdict::Failed || !same_incident);
        if let Some(verdict) = verdict {
            if verdict == Verdict::Failed {
                self.last_failure = Some(now);
            }
            self.reliability.observe(verdict);
            self.cooling = Cooling::after(self.reliability.consecutive_failures(), now, decision);
        }
        match delivery.end {
            End::Failed(Fault::Verification) => self.proof.offend(),
            End::Failed(Fault::Unavailable) => self.refusals.refused(before.in_flight, now),
            End::Completed => {
                self.proof.pay_back(delivery.bytes);
                if let Some(settled) = settled {
                    self.refusals.served(settled.concurrency, now);
                }
            }
            _ => {}
        }
        let sent = settled.map(|settled| settled.at);
        self.tell_wire(delivery, verdict_of(delivery.end), sent, prior, now);
        if let Some(sample) = Sample::of(delivery) {
            if self.wire.as_mut().is_some_and(|wire| wire.completed(now)) {
                self.delivered.doubt();
            }
            let (body, weight) = self.without_ramp(sample, sent, now);
            let changed = self.delivered.observe(&body, weight);
            self.ends_since_change = match self.ends_since_change {
                _ if changed && decision.saturating_sub(self.led) < LED_LATELY && self.led > 0 => 1,
                0 => 0,
                ends => ends.saturating_add(1),
            };
            let saturation = self.saturation.get_or_insert_with(|| Saturation::starting_at(prior.concurrency));
            if changed {
                saturation.world_changed();
            }
            match settled {
                // A host that reports no dispatches is taken to keep as many in flight as was recommended.
                None => saturation.observe_one(in_flight.max(1) as f32, sample.whole(), false),
                // A clock that stands still shows no busy time; then the number beside it has to do.
                Some(settled) if settled.at == now => saturation.observe_one(settled.concurrency, sample.whole(), true),
                Some(_) => {}
            }
        } else if let Some(at_least) = Sample::censored(delivery) {
            self.delivered.observe_censored(at_least);
        }
        if let (Some(stretch), Some(saturation)) = (stretch, &mut self.saturation) {
            saturation.observe_total(stretch.concurrency, stretch.bytes_per_sec, STRETCH_ENDS);
        }
        self.forecast = None;
    }

    fn tell_wire(
        &mut self,
        delivery: &Delivery,
        verdict: Option<Verdict>,
        sent: Option<Time>,
        prior: &Prior,
        now: Time,
    ) {
        let Some(wire) = &mut self.wire else { return };
        let on_time = verdict.map(|verdict| {
            let deadline_s = wire.deadline_s(&self.delivered, delivery.bytes, sent, prior, now);
            verdict == Verdict::Kept && delivery.elapsed.as_secs_f64() <= deadline_s
        });
        let renews_record = Sample::of(delivery).is_some() || Sample::censored(delivery).is_some();
        wire.ended(delivery.bytes, on_time, renews_record, now);
    }

    /// The sample less what slow start cost it: the long-run rate is free of it (EST-2). With it the weight that is left.
    fn without_ramp(&mut self, sample: Sample, sent: Option<Time>, now: Time) -> (Sample, f64) {
        match (&self.wire, sent) {
            (Some(wire), _) => wire.without_ramp(&sample, sent),
            (None, Some(sent)) => self.idleness.ended(&sample, sent, self.delivered.first_byte_s(), now),
            // A host that does not say when it sends does not say what it met.
            (None, None) => (sample, 1.0),
        }
    }

    /// The terms of its rate, where the wire is seen.
    pub(crate) fn rating(&self, prior: &Prior, now: Time) -> Option<Rating> {
        self.wire.as_ref().map(|wire| wire.rating(prior, now))
    }

    /// What its requests achieve together, where the host says how many there are.
    fn capacity(&self) -> Option<Capacity> {
        let saturation = self.saturation.as_ref().filter(|saturation| saturation.is_confirmed())?;
        // Totals are learned more slowly than what one request takes: together they move no more than so many times one of them (B2).
        let together = f32::from(saturation.best_level()?) * STALE_CAPACITY;
        let most = self.delivered.slowness().map_or(f32::INFINITY, |one| together * one.bytes_per_sec() as f32);
        Some(Capacity {
            total: saturation.best_rate()?.min(most),
            single: saturation.single_rate().map(|single| single.min(most)),
            late: self.delivered.late_factor() as f32,
        })
    }

    /// Its vote in the population: a function of its record, so that what was added can be taken away again.
    pub(crate) fn vote(&self) -> Vote {
        Vote::of(&self.delivered, u32::from(self.voted), self.wire.as_ref().and_then(|wire| wire.vote()))
    }

    /// Votes for the concurrency that it has by now; `class` is that of its kind.
    pub(crate) fn vote_anew(&mut self, class: u32, now: Time) -> Vote {
        self.voted = u16::try_from(self.limit(class, now)).unwrap_or(u16::MAX);
        self.vote()
    }

    /// What one more request would be made of.
    pub(crate) fn terms(&mut self, prior: &Prior, scope: u64, now: Time, decision: u64) -> Terms {
        let mut forecast = match (&self.wire, self.forecast) {
            // What the wire says fades with time, so it is never kept.
            (Some(wire), _) => wire.forecast(&self.delivered, prior, now),
            (None, Some(forecast)) => forecast,
            (None, None) => {
                let forecast = self.delivered.forecast(prior);
                // A guess moves with the population; only what rests on the peer alone can be kept.
                if forecast.basis == crate::estimate::Basis::Measured {
                    self.forecast = Some(forecast);
                }
                forecast
            }
        };
        if self.wire.is_none() && self.saturation.as_ref().is_some_and(Saturation::is_confirmed) {
            let warmth = self.idleness.warmth(Some(forecast.first_byte_s.into()), now);
            forecast.ramp = Ramp::new(forecast.first_byte_s.into(), forecast.first_byte_tail_s.into(), warmth);
        }
        let standing = self.proof.standing();
        let ceiling = self.refusals.ceiling(now);
        let useful = self.saturation.as_ref().map_or(prior.concurrency, Saturation::limit);
        Terms {
            forecast,
            reliability: self.reliability.cautious() as f32,
            in_flight: self.in_flight(now),
            limit: useful.min(ceiling.unwrap_or(u32::MAX)),
            ceiling,
            oldest_pending_s: self.pending.oldest().map_or(0.0, |at| now.since(at).as_secs_f64() as f32),
            standing,
            cooling: self.cooling.is_on(now, decision),
            failing: self.reliability.consecutive_failures() > 1,
            rested: standing == Standing::Condemned && self.last_end.is_none_or(|at| now.since(at) >= CONDEMNED_REST),
            is_promising: self.delivered.is_faster_than_known(),
            trials_since_change: self.ends_since_change.wrapping_sub(1),
            incumbent: self.scope == scope && self.last_tried > 0,
            withholds_echoes: self.wire.as_ref().is_some_and(|wire| wire.withholds_echoes()),
            capacity: self.capacity(),
        }
    }
}

fn verdict_of(end: End) -> Option<Verdict> {
    match end {
        End::Completed => Some(Verdict::Kept),
        End::Interrupted => Some(Verdict::Broken),
        End::Failed(Fault::Verification) => Some(Verdict::Refuted),
        End::Failed(Fault::Timeout | Fault::Transport | Fault::Unknown) => Some(Verdict::Failed),
        // Not having something is neither latency nor unreliability (MEAS-10).
        End::Failed(Fault::Unavailable) | End::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_small_enough_for_a_million() {
        // A million peers are to fit 600 MiB with the table's own share.
        const BYTES_MAX: usize = 480;
        let bytes = core::mem::size_of::<Peer>();
        assert!(bytes <= BYTES_MAX, "{bytes}");
        let wire = core::mem::size_of::<Wire>();
        assert!(wire <= 320, "{wire}");
    }
}
