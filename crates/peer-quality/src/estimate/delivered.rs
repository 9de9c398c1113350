//! The delivered model (EST-1, EST-8): what our own completed fetches say a peer needs for a body of any size.
//!
//! Two quantities, time to first byte and seconds per byte of the body, because a peer is near or far and fast or slow independently, and fetches of
//! different sizes can only be compared through both (settled difference 10). The slowness of a body counts by its bytes, so a history of tiny
//! bodies says how near a peer is and little about how fast (scenario A13).

use crate::estimate::forecast::{Basis, Forecast, TAIL_Z};
use crate::estimate::lateness::{LATE_LN, Lateness};
use crate::estimate::log_estimate::{LogEstimate, ln};
use crate::estimate::population::Prior;
use crate::estimate::ramp::Ramp;
use crate::measure::Sample;
use crate::units::{Bytes, Slowness};

/// A body of this many bytes counts half a sample of slowness. Below it the wait is mostly distance; larger makes peers slow to learn.
/// 32 KiB is the largest frame of the DIG wire: a body within one frame shows no rate.
const HALF_SAMPLE: Bytes = Bytes::from_kib(32);
/// Without a measured first byte, a body this small is taken as all distance.
const ALL_DISTANCE: Bytes = Bytes::from_kib(4);

/// What one lost packet may cost, seconds (RFC 6298, before the round trip is known). Lower takes a request that was given up early for a collapse, higher excuses what
/// hosts with short deadlines see.
const RTO_S: f64 = 1.0;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delivered {
    first_byte: LogEstimate,
    body: LogEstimate,
    lateness: Lateness,
}

impl Delivered {
    /// Folds in a delivered body that says as much as `evidence` in (0, 1] of a sample about the rate. True when it was taken for a change of the peer's rate.
    #[inline]
    pub fn observe(&mut self, sample: &Sample, evidence: f32) -> bool {
        let shown_s = sample.first_byte_s.or_else(|| (sample.bytes <= ALL_DISTANCE).then_some(sample.wait_s));
        let first_byte_s = shown_s.unwrap_or_else(|| self.first_byte.value().unwrap_or(0.0).min(sample.wait_s * 0.5));
        // A slowness is always positive and finite. Both logarithms come first, so that neither waits for what is done with the other.
        let slowness_ln = ln(sample.body(first_byte_s).secs_per_byte());
        if let Some(shown_s) = shown_s {
            self.first_byte.observe(shown_s, 1.0);
        }
        let bytes = sample.bytes.as_f64() as f32;
        let weight = evidence * bytes / (bytes + HALF_SAMPLE.as_f64() as f32);
        let usual_ln = (self.body.weight() > 0.0).then_some(self.body.mean_ln());
        let changed = self.body.observe_ln(slowness_ln, weight);
        if let Some(usual_ln) = usual_ln.filter(|_| !changed) {
            self.lateness.observe(slowness_ln - usual_ln);
        }
        changed
    }

    /// No body came for so long that the record is old: the next one, if slow, is believed at once.
    pub fn doubt(&mut self) {
        self.body.doubt();
    }

    /// Seconds of a request that ran out of time which say nothing of the rate: the first byte, and one lost packet. Nothing is excused where nothing is known.
    pub fn excused_s(&self) -> f64 {
        if self.is_measured() { self.first_byte.value().unwrap_or(0.0) + RTO_S } else { 0.0 }
    }

    /// Folds in what a request that ran out of time says at least: it can only make the peer look slower. One that shows a
    /// collapse is believed at once: whoever dribbled through a whole deadline has shown more than one late body (B14).
    pub fn observe_censored(&mut self, at_least: Slowness) {
        let slowness_ln = ln(at_least.secs_per_byte());
        let behind = if self.is_measured() { slowness_ln - self.body.mean_ln() } else { f32::INFINITY };
        if behind >= LATE_LN {
            self.body.doubt();
        }
        if behind > 0.0 {
            self.body.observe_ln(slowness_ln, 1.0);
        }
    }

    /// What to expect, filling in from `prior` what was never seen.
    pub fn forecast(&self, prior: &Prior) -> Forecast {
        let basis = match (self.body.value(), self.first_byte.value()) {
            (Some(_), _) => Basis::Measured,
            (None, Some(_)) => Basis::Predicted,
            (None, None) => Basis::Prior,
        };
        let first_byte =
            self.first_byte.value().unwrap_or(if basis == Basis::Measured { 0.0 } else { prior.first_byte_s });
        let first_byte_tail = self.first_byte.quantile(TAIL_Z as f32).unwrap_or(first_byte * prior.tail_factor);
        let body = self.body.value().unwrap_or(prior.slowness.secs_per_byte());
        let body_tail = self.body.quantile(TAIL_Z as f32).unwrap_or(body * prior.tail_factor);
        let body_tail = body_tail.max(body * self.lateness.tail_factor());
        let body = body * self.lateness.mean_factor();
        Forecast {
            first_byte_s: first_byte as f32,
            secs_per_byte: body as f32,
            first_byte_tail_s: first_byte_tail as f32,
            secs_per_byte_tail: body_tail as f32,
            first_byte_error_s: error(&self.first_byte, first_byte, first_byte_tail),
            secs_per_byte_error: error(&self.body, body, body_tail),
            ramp: Ramp::default(),
            basis,
        }
    }

    /// Mean time to first byte, seconds.
    pub fn first_byte_s(&self) -> Option<f64> {
        self.first_byte.value()
    }

    /// Whether the rate of any body was seen.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.body.weight() > 0.0
    }

    /// Mean slowness of a body.
    pub fn slowness(&self) -> Option<Slowness> {
        self.body.value().map(Slowness::from_secs_per_byte)
    }

    /// Whether some deliveries take many times as long as the rest.
    pub fn is_fitful(&self) -> bool {
        self.lateness.is_habit()
    }

    /// What deliveries that take many times as long cost in the mean: a factor, at least 1.
    pub fn late_factor(&self) -> f64 {
        self.lateness.mean_factor()
    }

    /// Relative spread of the body's rate: 0 without samples, 0.1 is steady, 1 and more swings widely.
    pub fn volatility(&self) -> f64 {
        if self.body.value().is_some() { self.body.spread_ln().into() } else { 0.0 }
    }

    /// Whether the latest body was surprisingly fast: a second one like it will be believed.
    pub fn is_faster_than_known(&self) -> bool {
        self.body.surprises() < 0
    }

    /// The logarithms that the population averages: (first byte, body); absent where nothing was seen.
    #[inline]
    pub(crate) fn logs(&self) -> (Option<f32>, Option<f32>) {
        let seen = |estimate: &LogEstimate| (estimate.weight() > 0.0).then(|| estimate.mean_ln());
        (seen(&self.first_byte), seen(&self.body))
    }
}

/// Standard error of a mean that is e^ln: its spread over the root of the samples behind it; without samples, as far off as the tail is away.
fn error(estimate: &LogEstimate, mean: f64, tail: f64) -> f32 {
    match estimate.weight() {
        0.0 => (tail - mean) as f32,
        weight => mean as f32 * estimate.spread_ln() / libm::sqrtf(weight.max(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::population::Prior;
    use crate::measure::{Delivery, End};
    use crate::units::Span;

    fn feed(model: &mut Delivered, bytes: u64, elapsed_ms: u64, first_byte_ms: Option<u64>) {
        let delivery = Delivery {
            bytes: Bytes::new(bytes),
            elapsed: Span::from_millis(elapsed_ms),
            first_byte: first_byte_ms.map(Span::from_millis),
            end: End::Completed,
        };
        model.observe(&Sample::of(&delivery).unwrap(), 1.0);
    }

    #[test]
    fn a_body_is_predicted_from_bodies_of_other_sizes() {
        let mut model = Delivered::default();
        for _ in 0..20 {
            feed(&mut model, 1_000_000, 1_050, Some(50));
            feed(&mut model, 4_000_000, 4_050, Some(50));
        }
        let forecast = model.forecast(&Prior::default());
        assert_eq!(forecast.basis, Basis::Measured);
        assert!((forecast.mean_s(Bytes::new(2_000_000)) - 2.05).abs() < 0.02);
        assert!(forecast.tail_s(Bytes::new(2_000_000)) > forecast.mean_s(Bytes::new(2_000_000)));
    }

    #[test]
    fn tiny_bodies_say_how_near_and_not_how_fast() {
        // A13: a thousand bytes in 51 ms is distance, not a rate of 20 kB/s.
        let mut near = Delivered::default();
        for _ in 0..100 {
            feed(&mut near, 1_000, 51, Some(50));
        }
        let mut fast = Delivered::default();
        for _ in 0..100 {
            feed(&mut fast, 4_000_000, 180, Some(80));
        }
        let prior = Prior::default();
        let (near, fast) = (near.forecast(&prior), fast.forecast(&prior));
        assert!(near.mean_s(Bytes::new(1_000)) < fast.mean_s(Bytes::new(1_000)));
        assert!(fast.mean_s(Bytes::new(4_000_000)) < near.mean_s(Bytes::new(4_000_000)));
    }

    #[test]
    fn running_out_of_time_makes_slower_and_never_faster() {
        let mut model = Delivered::default();
        for _ in 0..10 {
            feed(&mut model, 1_000_000, 1_000, Some(10));
        }
        let before = model.slowness().unwrap();
        model.observe_censored(Slowness::from_bytes_per_sec(50e6));
        assert_eq!(model.slowness(), Some(before));
        // Four times as slow may be an accident: two in a row and the rate is believed.
        model.observe_censored(Slowness::from_bytes_per_sec(250e3));
        assert!(model.slowness().unwrap().bytes_per_sec() > 500e3);
        model.observe_censored(Slowness::from_bytes_per_sec(250e3));
        assert!(model.slowness().unwrap().bytes_per_sec() < 300e3);
    }

    #[test]
    fn one_dribble_through_a_whole_deadline_is_believed() {
        // B14: an hour of good bodies, and then a few bytes for eighteen seconds.
        let mut model = Delivered::default();
        for _ in 0..100 {
            feed(&mut model, 1_000_000, 1_000, Some(10));
        }
        model.observe_censored(Slowness::from_bytes_per_sec(2e3));
        assert!(model.slowness().unwrap().bytes_per_sec() < 3e3);
    }

    #[test]
    fn an_unknown_peer_is_the_average() {
        let prior = Prior::default();
        let forecast = Delivered::default().forecast(&prior);
        assert_eq!(forecast.basis, Basis::Prior);
        assert_eq!(forecast.first_byte_s, prior.first_byte_s as f32);
    }
}
