//! Intervals by bootstrap over seeds.
//!
//! Whole runs are drawn anew with replacement, as many as there are, and the measure is taken of each such set; the middle 95 % of the values are the interval
//! (percentile bootstrap: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13). The draws come from a seed, so the same runs give the
//! same interval. With fewer than about ten seeds it is too narrow, and with one it is a point.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::quantile::of_sorted;

/// Sets that are drawn. Fewer make the ends of the interval unsteady; more cost time without telling more. Common practice.
const DRAWS: usize = 1_000;
/// What lies below the interval and what lies above it.
const OUTSIDE: f64 = 0.025;

/// A measure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Of the runs as they are.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// `measure` of `runs` with its interval; none where the measure is. Drawn sets without a measure are left out.
pub fn bootstrap<T>(runs: &[T], seed: u64, measure: impl Fn(&[&T]) -> Option<f64>) -> Option<Interval> {
    let all: Vec<&T> = runs.iter().collect();
    let value = measure(&all)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut pick = || &runs[((u64::from(rng.next_u32()) * runs.len() as u64) >> 32) as usize];
    let mut drawn = Vec::with_capacity(runs.len());
    let mut values: Vec<f64> = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        drawn.clear();
        drawn.extend((0..runs.len()).map(|_| pick()));
        values.extend(measure(&drawn).filter(|value| value.is_finite()));
    }
    values.sort_by(f64::total_cmp);
    let low = of_sorted(&values, OUTSIDE).unwrap_or(value);
    let high = of_sorted(&values, 1.0 - OUTSIDE).unwrap_or(value);
    Some(Interval { value, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[&f64]) -> Option<f64> {
        (!values.is_empty()).then(|| values.iter().copied().sum::<f64>() / values.len() as f64)
    }

    #[test]
    fn the_interval_of_a_mean_is_near_the_normal_one() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let interval = bootstrap(&values, 7, mean).unwrap();
        // Standard error of 0..99: 28.87 / 10; times 1.96 is 5.66.
        assert_eq!(interval.value, 49.5);
        assert!((interval.low - (49.5 - 5.66)).abs() < 0.6, "{interval:?}");
        assert!((interval.high - (49.5 + 5.66)).abs() < 0.6, "{interval:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values: Vec<f64> = (0..40).map(|place| f64::from(place * place)).collect();
        assert_eq!(bootstrap(&values, 7, mean), bootstrap(&values, 7, mean));
        assert_ne!(bootstrap(&values, 7, mean), bootstrap(&values, 8, mean));
    }

    #[test]
    fn one_run_is_a_point_and_no_run_is_nothing() {
        assert_eq!(bootstrap(&[3.0], 7, mean), Some(Interval { value: 3.0, low: 3.0, high: 3.0 }));
        assert_eq!(bootstrap(&[], 7, mean), None);
    }
}
