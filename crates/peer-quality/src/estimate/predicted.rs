//! What the wire says of one peer, and the forecast that it makes (EST-1): ramp + seconds per byte · size, before a fetch has completed and after its record has faded.
//!
//! The order of evidence: completed fetches decide while they are fresh (EST-8); as their record ages, the prediction takes their place, and behind the
//! prediction the population. A prediction is a claim that nobody audited, so what replaces an ageing record is never better than both that record
//! and the average: falling silent earns nothing.
//!
//! This state exists only for peers of hosts that see the wire.

use crate::estimate::delivered::Delivered;
use crate::estimate::forecast::{Basis, Forecast, TAIL_Z};
use crate::estimate::population::Prior;
use crate::estimate::ramp::{INITIAL_WINDOW, Ramp, Warmth, retransmission_timeout_s};
use crate::estimate::trust::coverage_half::HALVES_MAX;
use crate::estimate::trust::retention::ON_TIME_TAILS;
use crate::estimate::trust::spread::RateVote;
use crate::estimate::trust::staleness::{RECORD_LIFE, left, left_of_person};
use crate::estimate::trust::{Coverage, Personal, Retention, Sanity, shrinkage};
use crate::estimate::warmth::without_ramp;
use crate::measure::{Burst, Kernel, RoundTrip, Sample};
use crate::units::{Bytes, Slowness, Span, Time};

/// The timer of a connection whose round trip is unknown, seconds (RFC 6298).
const RTO_UNKNOWN_S: f64 = 1.0;
/// How long a kernel's reading is current at least, seconds: hosts poll about once a second. Longer takes a window for open that idling has closed.
const KERNEL_S: f64 = 1.0;
/// The least spread of a rate, as in [`LogEstimate`](crate::estimate::LogEstimate): no error bar makes a tail of nothing.
const SPREAD_MIN: f64 = 0.1;
/// The greatest, a factor of e³ at p95: no error bar makes a peer infinitely slow.
const SPREAD_MAX: f64 = 3.0 / TAIL_Z;

/// Who sent its latest burst within this share of a request's time before its end was delivering to the end. The SDUs of a dribble are far apart: less misses some of
/// them, more takes for delivering who was cut off half-way. Unmeasured heuristic.
const STILL_DELIVERING: f64 = 0.1;

/// See the module documentation. Constant size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wire {
    coverage: Coverage,
    personal: Personal,
    pub(crate) retention: Retention,
    round_trip: Option<(RoundTrip, Time)>,
    /// Whether its bytes come without the echoes they should carry.
    withholds_echoes: bool,
    kernel: Option<(Kernel, Time)>,
    /// The last sending, burst or end.
    active_at: Option<Time>,
    burst_at: Option<Time>,
    /// When a window's worth had arrived since the connection was last cold.
    opened_at: Option<Time>,
    /// When the record of fetches was last renewed.
    recorded_at: Time,
}

/// The terms of a rate (RANK-6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// As read from the wire.
    pub raw: Option<Slowness>,
    /// The peer's prior, faded towards the population.
    pub prior: Slowness,
    /// Weight of the raw rate, 0..=1.
    pub weight: f64,
    /// The blend.
    pub slowness: Slowness,
    /// Its standard error, seconds per byte.
    pub error: f64,
    /// How much of the blend is the peer's own, 0..=1.
    pub own: f64,
    /// Whether it fits the round trip.
    pub sanity: Sanity,
}

/// How a burst deviated from its peer's long-run rate: a reading of the noise within peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// Logarithm of the ratio.
    pub ln: f64,
    /// Coverage of the burst, bytes.
    pub bytes: f64,
}

impl Wire {
    /// The state of a peer whose record of fetches was last renewed at `recorded_at`.
    pub fn new(recorded_at: Time) -> Wire {
        Wire { recorded_at, ..Wire::default() }
    }

    /// The connection is another one: it starts cold.
    pub fn reconnected(&mut self) {
        self.kernel = None;
        self.withholds_echoes = false;
        self.active_at = None;
        self.burst_at = None;
        self.opened_at = None;
    }

    /// Requests were sent.
    pub fn sent(&mut self, now: Time) {
        if self.warmth(now) == Warmth::Cold {
            self.opened_at = None;
        }
        self.active_at = Some(now);
    }

    /// A checked reading of the round trip.
    pub fn round_trip(&mut self, reading: RoundTrip, now: Time) {
        self.round_trip = Some((reading, now));
        self.withholds_echoes = false;
    }

    /// Its echoes fell silent while its bytes kept coming.
    pub fn echoes_silent(&mut self) {
        self.withholds_echoes = true;
    }

    /// Whether its bytes come without the echoes they should carry.
    pub fn withholds_echoes(&self) -> bool {
        self.withholds_echoes
    }

    /// A reading of the kernel.
    pub fn kernel(&mut self, reading: Kernel, now: Time) {
        self.kernel = Some((reading, now));
    }

    /// A checked burst; `open_since` is when the oldest request in flight was sent. Silence while a fetch is open forfeits coverage in proportion: whoever serves
    /// in fits and starts is credited for the share of the time in which it served.
    pub fn burst(&mut self, burst: &Burst, open_since: Option<Time>, prior: &Prior, now: Time) -> Option<Deviation> {
        let credit = self.served_share(burst, open_since, now);
        let raw = burst.slowness();
        let believed = credit * Sanity::of(raw, self.round_trip_s()).credit();
        let before = self.personal.own();
        self.coverage.add(burst, credit, HALVES_MAX * prior.coverage_half, now);
        let bytes = believed * burst.bytes.as_f64();
        self.personal.observe(raw, bytes, self.retention.kept(), now);
        self.arrived(burst.bytes, now);
        self.active_at = Some(now);
        self.burst_at = Some(now);
        before.map(|own| Deviation { ln: libm::log(raw.secs_per_byte() / own.secs_per_byte()), bytes })
    }

    /// Whether its bytes came throughout the `elapsed` before `now`, to the end.
    pub fn was_delivering(&self, elapsed: Span, now: Time) -> bool {
        // A clock that went back says nothing.
        self.burst_at
            .is_some_and(|at| at <= now && now.since(at).as_secs_f64() <= elapsed.as_secs_f64() * STILL_DELIVERING)
    }

    fn served_share(&self, burst: &Burst, open_since: Option<Time>, now: Time) -> f64 {
        match (self.burst_at, open_since) {
            (Some(before), Some(open_since)) if open_since <= before => {
                let passed_s = now.since(before).as_secs_f64();
                if passed_s > burst.gap_s { burst.gap_s / passed_s } else { 1.0 }
            }
            _ => 1.0,
        }
    }

    fn arrived(&mut self, bytes: Bytes, now: Time) {
        if bytes > INITIAL_WINDOW {
            self.opened_at.get_or_insert(now);
        }
    }

    /// A fetch of which these bytes arrived ended, and said something of its duration; `on_time` as [`deadline_s`](Self::deadline_s) has it, none where nothing may
    /// be concluded.
    pub fn ended(&mut self, bytes: Bytes, on_time: Option<bool>, renews_record: bool, now: Time) {
        self.arrived(bytes, now);
        match on_time {
            Some(true) => self.retention.on_time(),
            Some(false) => self.retention.missed(),
            None => {}
        }
        if renews_record {
            self.recorded_at = now;
        }
        self.active_at = Some(now);
    }

    /// Until when after its sending a fetch of `size` is on time, seconds.
    pub fn deadline_s(&self, delivered: &Delivered, size: Bytes, sent: Option<Time>, prior: &Prior, now: Time) -> f64 {
        let forecast = self.forecast(delivered, prior, now);
        let (_, tail_s) = self.distance_s(delivered, prior, now);
        let warmth = if self.was_cold(sent) { Warmth::Cold } else { Warmth::Warm };
        let ramp_s = Ramp::new(tail_s, tail_s, warmth).extra_s(size, forecast.secs_per_byte);
        ON_TIME_TAILS * f64::from(forecast.tail_s(size) + ramp_s)
    }

    /// A delivery that was sent at `sent` less what slow start cost it, which is not part of the peer's rate (EST-2), and how much it says of a sample about that rate,
    /// in (0, 1].
    pub fn without_ramp(&self, sample: &Sample, sent: Option<Time>) -> (Sample, f64) {
        match self.path_s().filter(|_| self.was_cold(sent)) {
            Some(path_s) => without_ramp(sample, path_s.min(sample.first_byte_s.unwrap_or(path_s))),
            None => (*sample, 1.0),
        }
    }

    /// Whether a request sent then met a connection whose window had not opened.
    fn was_cold(&self, sent: Option<Time>) -> bool {
        sent.is_some_and(|sent| self.opened_at.is_none_or(|opened_at| sent < opened_at))
    }

    /// The state of the connection for a request sent now.
    pub fn warmth(&self, now: Time) -> Warmth {
        let timeout_s =
            self.round_trip.map_or(RTO_UNKNOWN_S, |(trip, _)| retransmission_timeout_s(trip.median_s, trip.high_s));
        let within = |since: Time, secs: f64| now.since(since).as_secs_f64() <= secs;
        let window = self
            .kernel
            .filter(|&(_, at)| within(at, timeout_s.max(KERNEL_S)))
            .map(|(kernel, _)| kernel.congestion_window);
        match (window, self.active_at) {
            (Some(window), _) if window > Bytes::ZERO => Warmth::Window(window),
            (_, Some(active)) if self.opened_at.is_some() && within(active, timeout_s) => Warmth::Warm,
            _ => Warmth::Cold,
        }
    }

    /// The terms of its rate at `now`.
    pub fn rating(&self, prior: &Prior, now: Time) -> Rating {
        let (kept, population) = (self.retention.kept(), prior.slowness);
        let own_prior = self.personal.rate(population, kept, now);
        let coverage = self.coverage.at(now);
        let raw = coverage.slowness();
        let sanity = raw.map_or(Sanity::Plausible, |raw| Sanity::of(raw, self.round_trip_s()));
        let weight = shrinkage::weight(coverage.bytes() * sanity.credit(), prior.coverage_half);
        let rest = 1.0 - weight;
        let own_share = self.personal.share(kept, now);
        let average_error = rest * prior.rate_spread * own_prior.secs_per_byte();
        Rating {
            raw,
            prior: own_prior,
            weight,
            slowness: shrinkage::shrink(weight, raw.unwrap_or(own_prior), own_prior),
            error: libm::hypot(weight * coverage.error(), average_error) * sanity.widening(),
            own: weight + rest * own_share,
            sanity,
        }
    }

    /// What to expect of its next fetch: the record of completed fetches while it is fresh, then the prediction.
    pub fn forecast(&self, delivered: &Delivered, prior: &Prior, now: Time) -> Forecast {
        let predicted = self.predicted(delivered, prior, now);
        let measured = delivered.forecast(prior);
        if measured.basis != Basis::Measured {
            return predicted;
        }
        let fresh = left(now.since(self.recorded_at), RECORD_LIFE) as f32;
        let bound = measured.secs_per_byte.min(prior.slowness.secs_per_byte() as f32);
        let lift = bound.max(predicted.secs_per_byte) / predicted.secs_per_byte;
        let blend = |measured: f32, predicted: f32| fresh * measured + (1.0 - fresh) * predicted;
        Forecast {
            first_byte_s: blend(measured.first_byte_s, predicted.first_byte_s),
            secs_per_byte: blend(measured.secs_per_byte, predicted.secs_per_byte * lift),
            first_byte_tail_s: blend(measured.first_byte_tail_s, predicted.first_byte_tail_s),
            secs_per_byte_tail: blend(measured.secs_per_byte_tail, predicted.secs_per_byte_tail * lift),
            first_byte_error_s: blend(measured.first_byte_error_s, predicted.first_byte_error_s),
            secs_per_byte_error: blend(measured.secs_per_byte_error, predicted.secs_per_byte_error * lift),
            ramp: predicted.ramp,
            basis: if fresh >= 0.5 { Basis::Measured } else { predicted.basis },
        }
    }

    fn predicted(&self, delivered: &Delivered, prior: &Prior, now: Time) -> Forecast {
        let rating = self.rating(prior, now);
        let secs_per_byte = rating.slowness.secs_per_byte();
        let spread = (rating.error / secs_per_byte).clamp(SPREAD_MIN, SPREAD_MAX);
        let (first_byte_s, first_byte_tail_s) = self.distance_s(delivered, prior, now);
        let path_s = self.path_s().map_or(first_byte_s, |path_s| path_s.min(first_byte_s));
        let near = delivered.first_byte_s().is_some() || self.own_distance(now) >= 0.5;
        Forecast {
            first_byte_s: first_byte_s as f32,
            secs_per_byte: secs_per_byte as f32,
            first_byte_tail_s: first_byte_tail_s as f32,
            secs_per_byte_tail: (secs_per_byte * libm::exp(TAIL_Z * spread)) as f32,
            first_byte_error_s: ((first_byte_tail_s - first_byte_s) / TAIL_Z) as f32,
            secs_per_byte_error: rating.error as f32,
            ramp: Ramp::new(path_s, path_s * (first_byte_tail_s / first_byte_s), self.warmth(now)),
            basis: if near || rating.own >= 0.5 { Basis::Predicted } else { Basis::Prior },
        }
    }

    /// One round trip, in the middle and at p95, seconds: the peer's own, faded towards what is assumed of anyone.
    fn distance_s(&self, delivered: &Delivered, prior: &Prior, now: Time) -> (f64, f64) {
        let assumed_s = delivered.first_byte_s().unwrap_or(prior.first_byte_s);
        let assumed_tail_s = assumed_s * prior.tail_factor;
        let Some((trip, _)) = self.round_trip else { return (assumed_s, assumed_tail_s) };
        let own = self.own_distance(now);
        (own * trip.median_s + (1.0 - own) * assumed_s, own * trip.tail_s + (1.0 - own) * assumed_tail_s)
    }

    fn own_distance(&self, now: Time) -> f64 {
        self.round_trip.map_or(0.0, |(_, at)| left_of_person(now.since(at), self.retention.kept()))
    }

    fn round_trip_s(&self) -> Option<f64> {
        self.round_trip.map(|(trip, _)| trip.median_s)
    }

    /// The round trip of the path itself: a kernel sees no echo that a peer sits on.
    fn path_s(&self) -> Option<f64> {
        let kernel_s = self.kernel.and_then(|(kernel, _)| kernel.round_trip_s());
        match (self.round_trip_s(), kernel_s) {
            (Some(echo_s), Some(kernel_s)) => Some(echo_s.min(kernel_s)),
            (echo_s, kernel_s) => echo_s.or(kernel_s),
        }
    }

    /// Its vote on what peers are like.
    pub fn vote(&self) -> Option<RateVote> {
        self.personal.vote()
    }
}

#[cfg(test)]
#[path = "predicted_tests.rs"]
mod tests;
