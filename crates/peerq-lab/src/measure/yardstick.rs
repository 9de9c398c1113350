//! Over the yardstick: how much longer than a planner that knows everything.
//!
//! Per plan the ratio of a quantile of completion times, policy over yardstick, on the same seeds; over plans the geometric mean, the one mean of ratios that does not
//! depend on which of the two is the unit (Fleming and Wallace, CACM 29(3), 1986).

use super::completion::completion_s;
use crate::model::RunResult;

/// The geometric mean of positive finite values; others are left out.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u64);
    for value in values.into_iter().filter(|value| *value > 0.0 && value.is_finite()) {
        sum += libm::log(value);
        count += 1;
    }
    (count > 0).then(|| libm::exp(sum / count as f64))
}

/// The `share` quantile of `runs` over that of the yardstick's runs of the same world and seeds; none where either is, or the yardstick's is zero.
pub fn over<'a>(
    runs: impl IntoIterator<Item = &'a RunResult>,
    yardstick: impl IntoIterator<Item = &'a RunResult>,
    share: f64,
) -> Option<f64> {
    let (own_s, best_s) = (completion_s(runs, share)?, completion_s(yardstick, share)?);
    (best_s > 0.0).then(|| own_s / best_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::run_of;

    #[test]
    fn the_mean_of_twice_and_half_is_one() {
        assert!((geometric_mean([2.0, 0.5]).unwrap() - 1.0).abs() < 1e-12);
        assert!((geometric_mean([1.0, 4.0, 16.0]).unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean([0.0, -1.0, f64::NAN, f64::INFINITY]), None);
    }

    #[test]
    fn ratios_are_of_quantiles() {
        let runs = |first, second| [run_of(&[(0.0, Some(first), None)]), run_of(&[(1.0, Some(1.0 + second), None)])];
        assert_eq!(over(&runs(2.0, 6.0), &runs(1.0, 3.0), 0.5), Some(2.0));
        assert_eq!(over(&runs(2.0, 6.0), &runs(0.0, 0.0), 0.5), None);
        assert_eq!(over(&[], &runs(1.0, 3.0), 0.5), None);
    }
}
