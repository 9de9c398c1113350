//! Staleness (EST-6): what is known fades with the time since it was last renewed, and a silent peer ends where it began, as the average.
//!
//! The one idea: decay is a function of two moments, applied when a value is read or updated, so nothing has to be swept and nobody gains by falling silent.

use crate::units::Span;

/// How long coverage lasts: after this time 1/e of it is left. Conditions of a path change within minutes.
/// Longer lets trust outlive the conditions it was earned in; shorter makes a peer that serves one transfer a minute start over each time.
/// Unmeasured heuristic.
pub const COVERAGE_LIFE: Span = Span::from_secs(60);
/// How long a peer's own long-run rate lasts before the population's takes its place. Distance and provisioning are steadier than a moment's congestion.
/// Longer keeps a flattering past, shorter forgets what never changed. Unmeasured heuristic.
pub const PERSON_LIFE: Span = Span::from_secs(1_000);
/// How long the record of completed fetches decides before a prediction takes its place (EST-8). Longer condemns a peer for what has passed, shorter lets
/// a slow one back on its claims. Unmeasured heuristic.
pub const RECORD_LIFE: Span = Span::from_secs(1_000);

const _: () =
    assert!(PERSON_LIFE.as_micros() > COVERAGE_LIFE.as_micros(), "a characteristic rate outlasts a momentary one");
const _: () =
    assert!(RECORD_LIFE.as_micros() >= PERSON_LIFE.as_micros(), "no claim outlives the record that audits it");

/// What is left of a value after `elapsed`, in 0..=1: exp(−Δt/T).
pub fn left(elapsed: Span, life: Span) -> f64 {
    libm::exp(-elapsed.as_secs_f64() / life.as_secs_f64())
}

/// What is left of a personal value of which the share `kept` never fades: d + (1 − d)·ρ, d = exp(−Δt/T).
pub fn left_of_person(elapsed: Span, kept: f64) -> f64 {
    let left = left(elapsed, PERSON_LIFE);
    left + (1.0 - left) * kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_is_exponential_and_goes_to_nothing() {
        assert_eq!(left(Span::ZERO, COVERAGE_LIFE), 1.0);
        assert!((left(COVERAGE_LIFE, COVERAGE_LIFE) - (-1.0_f64).exp()).abs() < 1e-12);
        assert_eq!(left(Span::from_micros(u64::MAX), PERSON_LIFE), 0.0);
    }

    #[test]
    fn what_is_kept_bounds_the_fading() {
        let long = Span::from_micros(u64::MAX);
        assert_eq!(left_of_person(Span::ZERO, 0.0), 1.0);
        assert_eq!([0.0, 0.5, 1.0].map(|kept| left_of_person(long, kept)), [0.0, 0.5, 1.0]);
        let after_one_life = left_of_person(PERSON_LIFE, 0.5);
        assert!((after_one_life - (0.5 + 0.5 * (-1.0_f64).exp())).abs() < 1e-12);
    }
}
