//! Coverage (EST-4, EST-6, settled difference 9): the bytes behind a rate, and the rate itself, over a leaking memory.
//!
//! The one idea: bytes under the gate cannot be had without delivering them, so they are the receipt for a rate. They add up over bursts and leak with
//! time, which makes a bounded steady state (rate × life) instead of a lifetime's sum. Sums of gaps leak alongside, so the rate is that of what is left.

use crate::estimate::trust::staleness::{COVERAGE_LIFE, left};
use crate::measure::Burst;
use crate::units::{Slowness, Time};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    gap_s: f64,
    bytes: f64,
    /// Variance of the sum of gaps, seconds squared.
    variance: f64,
    at: Time,
}

impl Coverage {
    /// What is left of it at `now`.
    pub fn at(&self, now: Time) -> Coverage {
        self.scaled(left(now.since(self.at), COVERAGE_LIFE), now)
    }

    /// Adds a [checked](Burst::checked) burst of which the share `credit` in 0..=1 counts; no more than `most` bytes are kept.
    pub fn add(&mut self, burst: &Burst, credit: f64, most: f64, now: Time) {
        let before = self.at(now);
        let sum = Coverage {
            gap_s: before.gap_s + credit * burst.gap_s,
            bytes: before.bytes + credit * burst.bytes.as_f64(),
            variance: before.variance + credit * credit * f64::from(burst.gaps) * burst.residual_variance,
            at: now,
        };
        *self = if sum.bytes > most { sum.scaled(most / sum.bytes, now) } else { sum };
    }

    /// Bytes.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// The rate of the bytes, where there are any.
    pub fn slowness(&self) -> Option<Slowness> {
        (self.bytes > 0.0).then(|| Slowness::from_secs_per_byte(self.gap_s / self.bytes))
    }

    /// Standard error of the rate, seconds per byte: residual deviation over the root of the number of gaps, per mean size of a gap (MEAS-7).
    pub fn error(&self) -> f64 {
        if self.bytes > 0.0 { libm::sqrt(self.variance) / self.bytes } else { 0.0 }
    }

    fn scaled(&self, factor: f64, at: Time) -> Coverage {
        Coverage {
            gap_s: self.gap_s * factor,
            bytes: self.bytes * factor,
            variance: self.variance * factor * factor,
            at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Span};

    fn burst(gap_s: f64, bytes: u64) -> Burst {
        Burst { gap_s, bytes: Bytes::new(bytes), gaps: 10, residual_variance: 0.0 }
    }

    #[test]
    fn bursts_add_up_to_the_rate_of_all_their_bytes() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.slowness(), None);
        coverage.add(&burst(1.0, 1_000_000), 1.0, f64::MAX, Time::ZERO);
        coverage.add(&burst(3.0, 1_000_000), 1.0, f64::MAX, Time::ZERO);
        assert_eq!(coverage.bytes(), 2_000_000.0);
        assert!((coverage.slowness().unwrap().bytes_per_sec() - 500_000.0).abs() < 1e-3);
    }

    #[test]
    fn it_leaks_to_a_bounded_steady_state() {
        // 100 kB/s for ever: rate × life.
        let mut coverage = Coverage::default();
        for second in 0..3_600 {
            coverage.add(&burst(0.1, 100_000), 1.0, f64::MAX, Time::from_secs(second));
        }
        assert!((coverage.bytes() / (100_000.0 * 60.0) - 1.0).abs() < 0.02, "{}", coverage.bytes());
        let silent = coverage.at(Time::from_secs(3_599) + Span::from_secs(60));
        assert!((silent.bytes() / coverage.bytes() - (-1.0_f64).exp()).abs() < 1e-9);
        assert_eq!(silent.slowness(), coverage.slowness(), "silence says nothing of the rate");
        assert_eq!(coverage.at(Time::MAX).bytes(), 0.0);
    }

    #[test]
    fn it_never_exceeds_its_bound_and_keeps_its_rate_there() {
        let mut coverage = Coverage::default();
        for _ in 0..100 {
            coverage.add(&burst(1.0, u64::MAX), 1.0, 4e6, Time::ZERO);
            coverage.add(&burst(1.0, 1_000_000), 1.0, 4e6, Time::ZERO);
        }
        assert!(coverage.bytes() <= 4e6 && coverage.slowness().is_some());
    }

    #[test]
    fn the_error_shrinks_with_the_root_of_the_gaps() {
        let fed = |bursts: usize| {
            let mut coverage = Coverage::default();
            for _ in 0..bursts {
                coverage.add(&Burst { residual_variance: 1e-4, ..burst(0.1, 10_000) }, 1.0, f64::MAX, Time::ZERO);
            }
            coverage.error()
        };
        // Ten gaps of 1,000 bytes, each off by 10 ms: 10 ms / √10 / 1,000 bytes.
        assert!((fed(1) / (0.01 / 10_f64.sqrt() / 1_000.0) - 1.0).abs() < 1e-9);
        assert!((fed(100) / fed(1) - 0.1).abs() < 1e-9);
        assert_eq!(Coverage::default().error(), 0.0);
    }

    #[test]
    fn a_clock_that_goes_back_neither_loses_nor_freezes_it() {
        let mut coverage = Coverage::default();
        coverage.add(&burst(1.0, 1_000), 1.0, f64::MAX, Time::from_secs(1_000));
        coverage.add(&burst(1.0, 1_000), 1.0, f64::MAX, Time::ZERO);
        assert_eq!(coverage.bytes(), 2_000.0);
        assert!(coverage.at(Time::from_secs(60)).bytes() < 800.0);
    }
}
