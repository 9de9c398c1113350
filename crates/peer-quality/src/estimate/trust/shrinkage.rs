//! Shrinkage (EST-3): rate = w·raw + (1 − w)·prior with w = cov/(cov + half), the empirical-Bayes weight of a sample of that coverage.
//!
//! Variance never raises the weight: regular emission costs an adversary nothing, delivered bytes do.

use crate::units::Slowness;

/// The weight of a sample of `coverage` bytes, in 0..=1; ½ at `half` bytes. What is negative or not a number weighs nothing.
pub fn weight(coverage: f64, half: f64) -> f64 {
    let (coverage, half) = (coverage.max(0.0), half.max(1.0));
    if coverage.is_finite() { coverage / (coverage + half) } else { 1.0 }
}

/// The blend of a sample and its prior.
pub fn shrink(weight: f64, raw: Slowness, prior: Slowness) -> Slowness {
    let weight = weight.clamp(0.0, 1.0);
    Slowness::from_secs_per_byte(weight * raw.secs_per_byte() + (1.0 - weight) * prior.secs_per_byte())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_weight_is_nothing_a_half_and_all_at_its_three_marks() {
        assert_eq!(weight(0.0, 512e3), 0.0);
        assert_eq!(weight(512e3, 512e3), 0.5);
        assert!(weight(1e18, 512e3) > 0.999_999);
        assert_eq!(weight(f64::INFINITY, 512e3), 1.0);
        assert_eq!(weight(f64::NAN, 512e3), 0.0);
    }

    #[test]
    fn a_sample_without_coverage_is_the_prior_and_one_of_full_weight_itself() {
        let (raw, prior) = (Slowness::from_secs_per_byte(1e-8), Slowness::from_secs_per_byte(1e-6));
        assert_eq!(shrink(0.0, raw, prior), prior);
        assert_eq!(shrink(1.0, raw, prior), raw);
        assert!((shrink(0.5, raw, prior).secs_per_byte() - 5.05e-7).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn a_blend_lies_between_and_moves_with_coverage(
            coverage in any::<f64>(), half in any::<f64>(), more in 0.0..1e9_f64, raw in 1e-12..1.0_f64, prior in 1e-12..1.0_f64,
        ) {
            let less = weight(coverage, half);
            prop_assert!((0.0..=1.0).contains(&less));
            prop_assert!(weight(coverage.max(0.0) + more, half) >= less);
            let blend = shrink(less, Slowness::from_secs_per_byte(raw), Slowness::from_secs_per_byte(prior)).secs_per_byte();
            prop_assert!(blend >= raw.min(prior) * (1.0 - 1e-12) && blend <= raw.max(prior) * (1.0 + 1e-12));
        }
    }
}
