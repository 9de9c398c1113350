//! A robust running estimate of a positive quantity, kept as a logarithm.
//!
//! Delivery noise is multiplicative, so spread is a factor and one estimator fits microseconds as well as minutes. One absurd sample
//! moves the mean by a bounded step (its innovation is clipped), while a second surprise in the same direction means that the world
//! changed: the memory collapses to what was just seen. That is decay driven by observed volatility (spec §3.2, §4.3; EST-9): long memory when steady,
//! two samples after a step, in both directions.

use libm::{exp, logf, sqrtf};

/// Innovations are clipped at this many spreads when they move the mean.
/// Higher lets one absurd sample through, lower makes honest noise slow to learn. Unmeasured heuristic.
const CLIP_SPREADS: f32 = 3.0;
/// An innovation beyond this many spreads is a surprise. Higher delays the reaction to a change, lower mistakes noise for one. Unmeasured heuristic.
const SURPRISE_SPREADS: f32 = 2.0;
/// Consecutive surprises in one direction that mean a change. One would let a single sample erase a record.
const SURPRISES_TO_RESET: i8 = 2;
/// A sample of less weight than this is no surprise: a tiny body says how near a peer is, and nothing of its rate (scenario A13).
const SURPRISING_WEIGHT: f32 = 0.25;
/// The least spread, as a factor e^0.1 ≈ 10 %: differences below are never surprising (scenario A22).
const MIN_SPREAD: f32 = 0.1;
/// The spread assumed of a quantity seen once: a factor of e^0.5 ≈ 1.6. Unmeasured heuristic.
const FIRST_SPREAD: f32 = 0.5;
/// The longest memory, in samples, of a quantity that varies by [`MIN_SPREAD`]. Longer reacts late to slow drifts, shorter is noisy. Unmeasured heuristic.
const MAX_MEMORY: f32 = 32.0;
/// The shortest memory that volatility alone may cause.
const MIN_MEMORY: f32 = 6.0;
/// Spread counts an innovation up to this size (a factor of e^5 ≈ 150), so that rare, long stalls show in the tail though the mean shrugs them off (C31).
const MAX_INNOVATION: f32 = 5.0;

/// See the module documentation. An estimate without samples has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogEstimate {
    mean_ln: f32,
    variance: f32,
    /// Effective number of samples behind the mean, bounded by the memory.
    weight: f32,
    /// The spread before the surprises: what a second surprise is measured by.
    calm_spread: f32,
    /// Same-signed surprises in a row; the sign is their direction.
    surprises: i8,
}

impl LogEstimate {
    /// Folds in a sample of weight `weight` in (0, 1]; a value that is not positive and finite is ignored. True when it was taken for a change
    /// of the world.
    #[inline]
    pub fn observe(&mut self, value: f64, weight: f32) -> bool {
        value.is_finite() && value > 0.0 && self.observe_ln(ln(value), weight)
    }

    /// The same for the logarithm of a sample, which has to be finite.
    #[inline]
    pub fn observe_ln(&mut self, sample: f32, weight: f32) -> bool {
        let weight = weight.min(1.0);
        if weight.is_nan() || weight <= 0.0 {
            return false;
        }
        if self.weight == 0.0 {
            *self = LogEstimate::at(sample, FIRST_SPREAD, weight);
            return false;
        }
        let spread = self.spread_ln();
        if self.surprises == 0 {
            self.calm_spread = spread;
        }
        let innovation = within(sample - self.mean_ln, MAX_INNOVATION * 4.0);
        if weight >= SURPRISING_WEIGHT && self.is_change(innovation) {
            *self = LogEstimate::at(sample, self.calm_spread, weight);
            return true;
        }
        let memory = (MAX_MEMORY * MIN_SPREAD / spread).clamp(MIN_MEMORY, MAX_MEMORY);
        let samples = (self.weight + weight).min(memory);
        let step = weight / samples;
        let seen = within(innovation, MAX_INNOVATION);
        self.variance = (1.0 - step) * (self.variance + step * seen * seen);
        self.mean_ln += step * within(innovation, CLIP_SPREADS * spread);
        self.weight = samples;
        false
    }

    /// The samples are old: where the next one lies surprisingly high, it is believed at once instead of at the second time.
    pub fn doubt(&mut self) {
        if self.surprises <= 0 {
            self.calm_spread = self.spread_ln();
            self.surprises = 1;
        }
    }

    /// The estimate after one sample of logarithm `mean_ln`.
    #[inline]
    fn at(mean_ln: f32, spread: f32, weight: f32) -> Self {
        LogEstimate { mean_ln, variance: spread * spread, weight, calm_spread: spread, surprises: 0 }
    }

    #[inline]
    fn is_change(&mut self, innovation: f32) -> bool {
        let surprise = SURPRISE_SPREADS * self.calm_spread;
        if innovation.abs() <= surprise {
            self.surprises = 0;
            return false;
        }
        let direction = if innovation > surprise { 1 } else { -1 };
        self.surprises = if direction * self.surprises > 0 { self.surprises + direction } else { direction };
        self.surprises.abs() >= SURPRISES_TO_RESET
    }

    /// The geometric mean, or none without samples.
    pub fn value(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| exp(self.mean_ln.into()))
    }

    /// The mean of the logarithms; 0 without samples.
    #[inline]
    pub fn mean_ln(&self) -> f32 {
        self.mean_ln
    }

    /// Standard deviation of the logarithms, at least 0.1: one spread is a factor of e^spread.
    #[inline]
    pub fn spread_ln(&self) -> f32 {
        sqrtf(self.variance).max(MIN_SPREAD)
    }

    /// The value that is exceeded with the probability of `z` standard deviations of a log-normal; `z = 0` is the mean.
    pub fn quantile(&self, z: f32) -> Option<f64> {
        (self.weight > 0.0).then(|| exp((self.mean_ln + z * self.spread_ln()).into()))
    }

    /// Surprises in a row, negative where they lie below.
    pub fn surprises(&self) -> i8 {
        self.surprises
    }

    /// The effective number of samples behind the value, at most the memory.
    #[inline]
    pub fn weight(&self) -> f32 {
        self.weight
    }
}

/// The logarithm of a positive value, as exact as an estimate needs it.
#[inline]
pub(super) fn ln(value: f64) -> f32 {
    logf((value as f32).clamp(f32::MIN_POSITIVE, f32::MAX))
}

/// `value`, no further from zero than `most`.
#[inline]
fn within(value: f32, most: f32) -> f32 {
    if value > most {
        most
    } else if value < -most {
        -most
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_old_record_is_given_up_at_the_first_surprise_above_it_and_kept_otherwise() {
        let old = fed([1.0; 20]);
        for (next, expected) in [(9.0, 9.0), (1.05, 1.0), (0.1, 1.0)] {
            let (mut doubted, mut trusted) = (old, old);
            doubted.doubt();
            assert_eq!(doubted.value(), old.value());
            doubted.observe(next, 1.0);
            trusted.observe(next, 1.0);
            let value = doubted.value().unwrap();
            assert!((value / expected - 1.0).abs() < 0.1, "{next}: {value}");
            assert!((trusted.value().unwrap() - 1.0).abs() < 0.1);
        }
    }

    fn fed(values: impl IntoIterator<Item = f64>) -> LogEstimate {
        let mut estimate = LogEstimate::default();
        for value in values {
            estimate.observe(value, 1.0);
        }
        estimate
    }

    #[test]
    fn a_steady_stream_converges_and_sharpens() {
        // Spec §3.2 P-monotone-convergence.
        let estimate = fed([7.0; 100]);
        assert!((estimate.value().unwrap() - 7.0).abs() < 1e-5);
        assert_eq!(estimate.spread_ln(), MIN_SPREAD);
    }

    #[test]
    fn one_absurd_sample_moves_little_and_two_move_all_the_way() {
        // P-responsive-degradation in both directions, with a bounded step for a single sample.
        for absurd in [1e-6, 1e6] {
            let mut estimate = fed([1.0; 40]);
            estimate.observe(absurd, 1.0);
            let moved = ln(estimate.value().unwrap()).abs();
            assert!(moved < 0.05, "one sample moved the mean by a factor e^{moved}");
            assert!(estimate.observe(absurd, 1.0));
            assert!((estimate.value().unwrap() / absurd - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn volatility_shows_as_spread() {
        let swinging = fed((0..40).map(|i| if i % 2 == 0 { 2.0 } else { 0.1 }));
        let steady = fed([0.9; 40]);
        assert!(swinging.spread_ln() > 5.0 * steady.spread_ln());
    }

    #[test]
    fn rare_stalls_show_in_the_tail() {
        // C31: one in ten takes fifty seconds, the rest half of one.
        let stalling = fed((0..100).map(|i| if i % 10 == 9 { 50.0 } else { 0.5 }));
        let steady = fed([1.0; 100]);
        assert!(stalling.quantile(0.0).unwrap() < steady.quantile(0.0).unwrap());
        assert!(stalling.quantile(1.65).unwrap() > steady.quantile(1.65).unwrap());
    }

    proptest! {
        #[test]
        fn any_input_leaves_a_finite_ordered_estimate(values in proptest::collection::vec(any::<f64>(), 0..60), weight in any::<f32>()) {
            // EST-12.
            let mut estimate = LogEstimate::default();
            for value in values {
                estimate.observe(value, weight);
                prop_assert!(estimate.mean_ln().is_finite() && estimate.spread_ln().is_finite());
                if let (Some(mean), Some(tail)) = (estimate.quantile(0.0), estimate.quantile(1.65)) {
                    prop_assert!(mean <= tail && mean >= 0.0);
                }
            }
        }
    }
}
