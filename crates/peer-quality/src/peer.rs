//! Everything known of one peer, and the terms of its next quote.

pub(crate) mod card;
mod flow;
pub(crate) mod roster;
mod uncharged;

use alloc::boxed::Box;

use crate::audit::{Cooling, Proof, Standing};
use crate::estimate::population::{Prior, Vote};
use crate::estimate::predicted::Deviation;
use crate::estimate::trust::staleness::RECORD_LIFE;
use crate::estimate::{Connection, Delivered, Forecast, Path, Rating, Reliability, Saturation, Verdict, Wire};
use crate::facts::AddressGroup;
use crate::measure::{Burst, DISPATCH_TTL, Delivery, End, Fault, Kernel, RoundTrip, Sample};
use crate::peer::card::{Card, Coverage, Kind, Times, with_ramp};
use crate::peer::flow::{Ending, Flow};
pub(crate) use crate::peer::uncharged::Uncharged;
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
    /// What is in flight; nothing for hosts that do not say what they send.
    flow: Option<Box<Flow>>,
    pub(crate) path: Path,
    pub(crate) connected: bool,
    pub(crate) samples: u32,
    pub(crate) last_end: Option<Time>,
    /// When a body was last learned from.
    sampled_at: Time,
    /// When a failure was last charged.
    last_failure: Option<Time>,
    pub(crate) cooling: Cooling,
    /// The last decision whose best it was; 0 is never.
    pub(crate) led: u64,
    /// Ends since its rate changed while it was among the best, plus one; 0 stands for never.
    ends_since_change: u8,
    /// The concurrency that its vote in the population stands for; 0 is none.
    voted: u16,
    /// The address group for which it has a vote; none before its first end, or while its group has all the votes that one may have.
    pub(crate) seat: Option<AddressGroup>,
    saturation: Option<Saturation>,
    /// Its record of deliveries has changed since its card was written.
    delivered_anew: bool,
    /// What the wire says; nothing for hosts that do not see it.
    wire: Option<Box<Wire>>,
}

impl Peer {
    /// Requests in flight at `now`; releases those that never ended.
    #[inline]
    pub(crate) fn in_flight(&mut self, now: Time) -> u32 {
        let Some(flow) = &mut self.flow else { return 0 };
        if !flow.pending.is_empty() {
            flow.pending.expire(now);
        }
        flow.pending.len()
    }

    /// Requests in flight as of the last fact or question.
    #[inline]
    pub(crate) fn pending(&self) -> u32 {
        self.flow.as_ref().map_or(0, |flow| flow.pending.len())
    }

    /// Requests in flight at `now`, for observers.
    pub(crate) fn pending_at(&self, now: Time) -> u32 {
        let stale = |at: Time| now.since(at) > DISPATCH_TTL;
        match &self.flow {
            Some(flow) if flow.pending.oldest().is_some_and(stale) => {
                let mut pending = flow.pending.clone();
                pending.expire(now);
                pending.len()
            }
            _ => self.pending(),
        }
    }

    fn oldest_pending(&self) -> Option<Time> {
        self.flow.as_ref().and_then(|flow| flow.pending.oldest())
    }

    /// Whether it has a request in flight that was sent before the one that ended so.
    pub(crate) fn has_older(&self, delivery: &Delivery, now: Time) -> bool {
        self.oldest_pending().is_some_and(|at| now.since(at) > delivery.elapsed)
    }

    #[inline]
    fn ceiling(&self, now: Time) -> Option<u32> {
        self.flow.as_ref().and_then(|flow| flow.refusals.ceiling(now))
    }

    fn flow_mut(&mut self) -> &mut Flow {
        self.flow.get_or_insert_default()
    }

    /// Recommended most in flight, at least 1: its own, or that of its `class`.
    #[inline]
    pub(crate) fn limit(&self, class: u32, now: Time) -> u32 {
        let useful = self.saturation.as_ref().map_or(class, Saturation::limit);
        self.ceiling(now).map_or(useful, |ceiling| useful.min(ceiling))
    }

    /// What is lost by forgetting it while this many requests are promised to it.
    #[inline]
    pub(crate) fn tier(&self, reserved: u32) -> Tier {
        if self.connected {
            Tier::Pinned
        } else if reserved > 0 || self.pending() > 0 {
            Tier::Busy
        } else if self.delivered.is_measured() {
            Tier::Measured
        } else {
            Tier::Cold
        }
    }

    /// Requests were sent.
    pub(crate) fn sent(&mut self, requests: u32, now: Time) {
        let first_byte_s = self.delivered.first_byte_s();
        self.flow_mut().sent(requests, first_byte_s, now);
        if let Some(wire) = &mut self.wire {
            wire.sent(now);
        }
    }

    /// There is a live link, or there is none any more.
    pub(crate) fn linked(&mut self, connected: bool) {
        self.connected = connected;
        if let Some(flow) = &mut self.flow {
            flow.idleness.reconnected();
        }
        if let Some(wire) = &mut self.wire {
            wire.reconnected();
        }
    }

    /// Learns from a burst of SDUs.
    pub(crate) fn burst(&mut self, burst: &Burst, prior: &Prior, now: Time) -> Option<Deviation> {
        let burst = burst.checked()?;
        let open_since = self.oldest_pending();
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

    /// Whether it has shown anything of its own useful concurrency.
    pub(crate) fn knows_limit(&self) -> bool {
        self.saturation.is_some()
    }

    fn wire_mut(&mut self) -> &mut Wire {
        let recorded_at = self.last_end.unwrap_or_default();
        self.wire.get_or_insert_with(|| Box::new(Wire::new(recorded_at)))
    }

    /// Learns from the end of a request; `prior` is what is assumed of its kind, `decision` decisions had been made, `reserved` requests are promised to it.
    #[inline]
    pub(crate) fn ended(&mut self, delivery: &Delivery, prior: &Prior, now: Time, decision: u64, reserved: u32) {
        let in_flight = self.in_flight(now).saturating_add(reserved);
        let ending = self.flow.as_mut().map_or(Ending::default(), |flow| flow.ended(delivery, now));
        let Ending { before, settled, stretch } = ending;
        self.last_end = Some(now);
        if delivery.end == End::Cancelled {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        // Requests that were under way when another one failed share its fate: the damage must not grow with their number.
        let same_incident = settled.zip(self.last_failure).is_some_and(|(settled, failed)| settled.at < failed);
        let has_cause = |verdict: &Verdict| matches!(verdict, Verdict::Failed | Verdict::Broken);
        let verdict = verdict_of(delivery.end).filter(|verdict| !has_cause(verdict) || !same_incident);
        if let Some(verdict) = verdict {
            if has_cause(&verdict) {
                self.last_failure = Some(now);
            }
            self.reliability.observe(verdict, delivery.elapsed);
            self.cooling = Cooling::after(self.reliability.consecutive_failures(), delivery.elapsed, now, decision);
        }
        match delivery.end {
            End::Failed(Fault::Verification) => self.proof.offend(),
            End::Failed(Fault::Unavailable) => self.flow_mut().refusals.refused(before.in_flight, now),
            End::Completed => {
                self.proof.pay_back(delivery.bytes);
                if let (Some(settled), Some(flow)) = (settled, &mut self.flow) {
                    flow.refusals.served(settled.concurrency, now);
                }
            }
            _ => {}
        }
        let sent = settled.map(|settled| settled.at);
        self.tell_wire(delivery, verdict_of(delivery.end), sent, prior, now);
        if let Some(sample) = Sample::of(delivery) {
            self.delivered_anew = true;
            // A record of good bodies so far back says nothing against a bad one: falling silent banks nothing (B2).
            if now.since(self.sampled_at) > RECORD_LIFE {
                self.delivered.doubt();
            }
            self.sampled_at = now;
            let timed_from = settled.filter(|settled| settled.is_timed).map(|settled| settled.at);
            let changed = if self.wire.is_none() && timed_from.is_none() {
                // A host that does not say when it sends does not say what it met.
                self.delivered.observe(&sample, 1.0)
            } else {
                let (body, weight) = self.without_ramp(sample, timed_from, now);
                self.delivered.observe(&body, weight as f32)
            };
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
                // A clock that says nothing of it shows no busy time; then the number beside it has to do.
                Some(settled) if !settled.is_timed => saturation.observe_one(settled.concurrency, sample.whole(), true),
                Some(_) => {}
            }
        } else if let Some(at_least) = Sample::censored(delivery, self.delivered.excused_s()) {
            self.delivered_anew = true;
            self.delivered.observe_censored(at_least);
        }
        if let (Some(stretch), Some(saturation)) = (stretch, &mut self.saturation) {
            saturation.observe_total(stretch.concurrency, stretch.bytes_per_sec, STRETCH_ENDS);
        }
    }

    /// Requests in flight to it on average while the one that ended so was.
    pub(crate) fn beside(&mut self, delivery: &Delivery, now: Time) -> Option<f32> {
        self.flow.as_mut().and_then(|flow| flow.pending.beside(delivery.elapsed, now))
    }

    /// Requests beyond `fit` at a time ran out of time: as good as refused.
    pub(crate) fn crowded(&mut self, fit: u32, now: Time) {
        self.flow_mut().refusals.refused(fit.saturating_add(1), now);
    }

    #[inline]
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
        let renews_record = Sample::of(delivery).is_some() || Sample::censored(delivery, 0.0).is_some();
        wire.ended(delivery.bytes, on_time, renews_record, now);
    }

    /// The sample less what slow start cost it: the long-run rate is free of it (EST-2). With it the weight that is left. What is faster than the record with slow start in it
    /// shows that at least, with all its weight.
    fn without_ramp(&mut self, sample: Sample, sent: Option<Time>, now: Time) -> (Sample, f64) {
        let first_byte_s = self.delivered.first_byte_s();
        match (&self.wire, sent, &mut self.flow) {
            (Some(wire), ..) => wire.without_ramp(&sample, sent),
            (None, Some(sent), Some(flow)) => {
                let without = flow.idleness.ended(&sample, sent, first_byte_s, now);
                let shown = sample.body(sample.first_byte_s.or(first_byte_s).unwrap_or(0.0));
                let is_faster = || self.delivered.slowness().is_some_and(|usual| shown < usual);
                if without.1 < 1.0 && is_faster() { (sample, 1.0) } else { without }
            }
            (None, ..) => (sample, 1.0),
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
        let together = saturation.highest_level()? * STALE_CAPACITY;
        let most = self.delivered.slowness().map_or(f32::INFINITY, |one| together * one.bytes_per_sec() as f32);
        // The best rates do not show what rare stalls cost (C31).
        let late = self.delivered.late_factor() as f32;
        Some(Capacity {
            total: saturation.best_rate()?.min(most) / late,
            single: saturation.single_rate().map(|single| single.min(most) / late),
        })
    }

    /// Whether anything is known of it that an average could be made of.
    pub(crate) fn has_a_say(&self) -> bool {
        self.delivered.logs() != (None, None) || self.wire.as_ref().is_some_and(|wire| wire.vote().is_some())
    }

    /// Its vote in the population: a function of its record, so that what was added can be taken away again. Who failed last has none but on reliability: the average is of those
    /// that deliver, or a few that do not would make everyone unknown look hopeless.
    #[inline]
    pub(crate) fn vote(&self) -> Vote {
        let has_rates = self.seat.is_some() && self.reliability.consecutive_failures() == 0;
        let vote = match has_rates {
            true => Vote::of(&self.delivered, self.voted, self.wire.as_ref().and_then(|wire| wire.vote())),
            false => Vote::default(),
        };
        // Only paths of known kinds are compared by it.
        if self.path == Path::Unknown { vote } else { vote.with_reliability(self.reliability.share()) }
    }

    /// Votes for the concurrency that it has by now; `class` is that of its kind.
    #[inline]
    pub(crate) fn vote_anew(&mut self, class: u32, now: Time) -> Vote {
        self.voted = u16::try_from(self.limit(class, now)).unwrap_or(u16::MAX);
        self.vote()
    }

    /// Writes down for quotes what does not change until the next fact.
    pub(crate) fn fill(&mut self, card: &mut Card) {
        if self.delivered_anew {
            self.delivered_anew = false;
            // A guess moves with the population; only what rests on the peer alone can be kept.
            let is_measured = self.delivered.is_measured();
            card.times = is_measured.then(|| Times::of(&self.delivered.forecast(&Prior::default())));
        }
        let is_timeless = self.flow.as_ref().is_none_or(|flow| flow.pending.is_empty() && flow.refusals.is_empty())
            && self.cooling.is_none()
            && self.wire.is_none()
            && (card.times.is_some() || self.delivered.first_byte_s().is_none());
        let standing = self.proof.standing();
        card.path = self.path;
        card.coverage =
            if is_timeless && standing != Standing::Condemned { Coverage::Whole } else { Coverage::Partial };
        card.reliability = self.reliability.cautious() as f32;
        card.lost_s = self.reliability.lost_s();
        card.limit = self.saturation.as_ref().map_or(0, |saturation| saturation.limit() as u8);
        card.trials_since_change = self.ends_since_change.wrapping_sub(1);
        card.standing = standing;
        card.is_failing = self.reliability.consecutive_failures() > 1;
        card.is_promising = self.delivered.is_faster_than_known();
        card.is_fitful = self.delivered.is_fitful();
        card.capacity = self.capacity();
        card.connection = self.connection();
    }

    /// How its connection stands, where the host reports what it dispatches.
    fn connection(&self) -> Option<Connection> {
        let is_confirmed = self.saturation.as_ref().is_some_and(Saturation::is_confirmed);
        match &self.flow {
            _ if !is_confirmed => None,
            Some(flow) => flow.connection(),
            None => Some(Connection::Cold),
        }
    }

    /// What to expect of it, with error bars.
    pub(crate) fn forecast(&self, prior: &Prior, now: Time) -> Forecast {
        match &self.wire {
            // What the wire says fades with time, so it is never kept.
            Some(wire) => wire.forecast(&self.delivered, prior, now),
            None => with_ramp(self.delivered.forecast(prior), self.connection(), now),
        }
    }

    /// What one more request would be made of: what its card says, fresh, and what changes with time.
    pub(crate) fn terms(&mut self, card: &Card, kind: &Kind, scope: u64, now: Time, decision: u64) -> Terms {
        let mut terms = card.terms(kind, scope, now);
        if self.wire.is_some() || (card.times.is_none() && self.delivered.first_byte_s().is_some()) {
            terms.forecast = self.forecast(&kind.prior, now);
        }
        terms.ceiling = self.ceiling(now);
        terms.limit = terms.limit.min(terms.ceiling.unwrap_or(u32::MAX));
        terms.in_flight = self.in_flight(now).saturating_add(card.reserved);
        terms.oldest_pending_s = self.oldest_pending().map_or(0.0, |at| now.since(at).as_secs_f64() as f32);
        terms.fresh =
            self.flow.as_ref().map_or(0, |flow| flow.pending.younger_than(terms.forecast.first_byte_s.into(), now));
        terms.cooling = self.cooling.is_on(now, decision);
        terms.withholds_echoes = self.wire.as_ref().is_some_and(|wire| wire.withholds_echoes());
        terms.rested =
            terms.standing == Standing::Condemned && self.last_end.is_none_or(|at| now.since(at) >= CONDEMNED_REST);
        terms
    }
}

#[inline]
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
        const BYTES_MAX: usize = 280;
        let bytes = core::mem::size_of::<Peer>();
        assert!(bytes <= BYTES_MAX, "{bytes}");
        let wire = core::mem::size_of::<Wire>();
        assert!(wire <= 320, "{wire}");
    }
}
