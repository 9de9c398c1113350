//! Rate against round trip (EST-13): a rate and the round trip that it came with imply a window, and windows have plausible sizes.
//!
//! A gate, not a judge: what fails it is flagged and counts for less, and no rank rests on the check alone. It only ever adds caution. A rate too fast for
//! its distance loses most of its coverage; one too slow for it keeps its mean, because doubting that would flatter a slow peer.

use crate::estimate::ramp::SEGMENT;
use crate::units::Slowness;

/// The widest plausible window, bytes: nearly thrice what Linux lets a receive buffer grow to by default (6 MiB). Wider lets a faked rate through, narrower
/// flags tuned hosts on long, fat paths. Unmeasured heuristic.
const WINDOW_MAX: f64 = 16.0 * 1024.0 * 1024.0;
/// The narrowest, bytes: one segment in 64 round trips. A retransmission timer at its floor on a near path reaches about that. Unmeasured heuristic.
const WINDOW_MIN: f64 = SEGMENT as f64 / 64.0;
/// What the coverage of a rate too fast for its distance counts for. Unmeasured heuristic.
const DOUBTED_COVERAGE: f64 = 0.25;
/// What the error bar of a flagged rate is multiplied by. Unmeasured heuristic.
const DOUBTED_ERROR: f64 = 2.0;

const _: () = assert!(WINDOW_MIN < WINDOW_MAX && DOUBTED_COVERAGE < 1.0 && DOUBTED_ERROR > 1.0);

/// The verdict on one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sanity {
    /// Nothing contradicts it, or no round trip is known.
    #[default]
    Plausible,
    /// No window is as wide as it needs.
    TooFast,
    /// So near a peer is not so slow by the network's doing.
    TooSlow,
}

impl Sanity {
    /// Judges a rate by the round trip in seconds.
    pub fn of(rate: Slowness, round_trip_s: Option<f64>) -> Sanity {
        match round_trip_s.map(|secs| secs / rate.secs_per_byte()) {
            Some(window) if window > WINDOW_MAX => Sanity::TooFast,
            Some(window) if window < WINDOW_MIN => Sanity::TooSlow,
            _ => Sanity::Plausible,
        }
    }

    /// What share of its coverage counts.
    pub fn credit(self) -> f64 {
        if self == Sanity::TooFast { DOUBTED_COVERAGE } else { 1.0 }
    }

    /// What its error bar is multiplied by.
    pub fn widening(self) -> f64 {
        if self == Sanity::Plausible { 1.0 } else { DOUBTED_ERROR }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_of_real_networks_pass() {
        // Network facts §6.3, and a loopback.
        for (round_trip_s, bytes_per_s) in
            [(0.012, 125e6), (0.09, 37.5e6), (0.268, 18.75e6), (0.2, 1.25e6), (2e-5, 3e9)]
        {
            assert_eq!(Sanity::of(Slowness::from_bytes_per_sec(bytes_per_s), Some(round_trip_s)), Sanity::Plausible);
        }
        assert_eq!(Sanity::of(Slowness::from_bytes_per_sec(1e12), None), Sanity::Plausible);
    }

    #[test]
    fn what_contradicts_its_distance_only_gains_doubt() {
        let fast = Sanity::of(Slowness::from_bytes_per_sec(1.25e9), Some(0.2));
        let slow = Sanity::of(Slowness::from_bytes_per_sec(1_000.0), Some(0.001));
        assert_eq!((fast, slow), (Sanity::TooFast, Sanity::TooSlow));
        assert!(fast.credit() < 1.0 && fast.widening() > 1.0);
        assert!(slow.credit() == 1.0 && slow.widening() > 1.0);
        assert!(Sanity::Plausible.credit() == 1.0 && Sanity::Plausible.widening() == 1.0);
    }
}
