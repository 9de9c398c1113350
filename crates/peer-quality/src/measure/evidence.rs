//! Evidence from the wire (MEAS-4, MEAS-7, MEAS-11): checked before anything is estimated from it.
//!
//! The one idea: numbers that a host computed from a hostile stream are clamped to what a network can show, once and here, so that no formula
//! behind has to ask whether its inputs are finite, positive or ordered (EST-12).

pub use crate::facts::{Burst, Kernel, RoundTrip};
use crate::units::Slowness;

/// The shortest round trip that is believed, seconds: a loopback device answers in tens of microseconds. Lower makes windows that vanish, higher
/// makes neighbours look equal.
const RTT_S_MIN: f64 = 1e-6;
/// The longest, seconds. Longer ones are paused hosts; lower would hide how bad a path is, higher only invites overflow.
const RTT_S_MAX: f64 = 600.0;
/// The longest sum of gaps that is believed, seconds: a day.
const GAP_S_MAX: f64 = 86_400.0;

impl Burst {
    /// The burst with finite sums; none where nothing follows about a rate: no gap, or no byte, or no time that the host could see. One read that
    /// drained several SDUs is one arrival and has no gap.
    pub fn checked(&self) -> Option<Burst> {
        let usable = self.gaps > 0 && self.bytes.get() > 0 && self.gap_s > 0.0;
        usable.then(|| Burst {
            gap_s: self.gap_s.min(GAP_S_MAX),
            residual_variance: finite_within(self.residual_variance, 0.0, GAP_S_MAX * GAP_S_MAX),
            ..*self
        })
    }

    /// Seconds per byte while it lasted.
    pub fn slowness(&self) -> Slowness {
        Slowness::from_secs_per_byte(self.gap_s / self.bytes.as_f64())
    }
}

impl RoundTrip {
    /// The quantiles within [1 µs, 10 min] and in order; none without a positive median.
    pub fn checked(&self) -> Option<RoundTrip> {
        (self.median_s > 0.0).then(|| {
            let median_s = self.median_s.clamp(RTT_S_MIN, RTT_S_MAX);
            let high_s = finite_within(self.high_s, median_s, RTT_S_MAX);
            RoundTrip { median_s, high_s, tail_s: finite_within(self.tail_s, high_s, RTT_S_MAX) }
        })
    }
}

impl Kernel {
    /// The round trip within [1 µs, 10 min], where known.
    pub fn round_trip_s(&self) -> Option<f64> {
        (self.rtt_s > 0.0).then(|| self.rtt_s.clamp(RTT_S_MIN, RTT_S_MAX))
    }
}

/// `value` within bounds; what is not a number is the lower bound.
fn finite_within(value: f64, least: f64, most: f64) -> f64 {
    if value.is_nan() { least } else { value.clamp(least, most) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Bytes;

    #[test]
    fn what_shows_no_rate_is_no_burst() {
        let burst = Burst { gap_s: 0.1, bytes: Bytes::new(1000), gaps: 3, residual_variance: 0.0 };
        assert!(burst.checked().is_some());
        for nothing in [
            Burst { gaps: 0, ..burst },
            Burst { bytes: Bytes::ZERO, ..burst },
            Burst { gap_s: 0.0, ..burst },
            Burst { gap_s: f64::NAN, ..burst },
            Burst { gap_s: -1.0, ..burst },
        ] {
            assert_eq!(nothing.checked(), None);
        }
    }

    #[test]
    fn an_absent_kernel_round_trip_is_not_zero() {
        for rtt_s in [0.0, -1.0, f64::NAN] {
            assert_eq!(Kernel { rtt_s, ..Kernel::default() }.round_trip_s(), None);
        }
    }

    proptest! {
        #[test]
        fn checked_evidence_is_finite_and_ordered(a in any::<f64>(), b in any::<f64>(), c in any::<f64>(), bytes in any::<u64>(), gaps in any::<u32>()) {
            if let Some(trip) = (RoundTrip { median_s: a, high_s: b, tail_s: c }).checked() {
                prop_assert!(trip.median_s >= RTT_S_MIN && trip.median_s <= trip.high_s && trip.high_s <= trip.tail_s && trip.tail_s <= RTT_S_MAX);
            }
            let burst = Burst { gap_s: a, bytes: Bytes::new(bytes), gaps, residual_variance: b };
            if let Some(burst) = burst.checked() {
                prop_assert!(burst.gap_s > 0.0 && burst.gap_s.is_finite());
                prop_assert!(burst.residual_variance >= 0.0 && burst.residual_variance.is_finite());
                prop_assert!(burst.slowness().secs_per_byte() > 0.0);
            }
        }
    }
}
