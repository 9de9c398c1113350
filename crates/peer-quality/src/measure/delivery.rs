//! Fetch timing (MEAS-10): what may be learned from how one request ended.
//!
//! The one idea: only a completed fetch is an ordinary sample. A timeout, a cancel or a lost hedge says "at least this long" (it is
//! *censored*); "not found" is neither latency nor unreliability; and time below the host's resolution is a bound, not a zero.

use crate::facts::{Delivery, End, Fault};
use crate::units::{Bytes, Slowness, Span};

/// Durations are reported in whole milliseconds by outcome-level hosts, so zero means "less than one": it is read as half of one.
/// Too high hides how fast a local peer is; too low lets one zero reading outrank a record. Half the resolution is the
/// expected error of rounding to the nearest.
const RESOLUTION: Span = Span::from_micros(500);

/// What one completed body says about a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time to first byte, seconds; absent where the host did not measure it.
    pub first_byte_s: Option<f64>,
    /// The whole wait, seconds, at least half the resolution.
    pub wait_s: f64,
    /// Bytes delivered, at least one.
    pub bytes: Bytes,
}

impl Sample {
    /// The sample of a body that arrived, in whole or in part; none where nothing arrived.
    #[inline]
    pub fn of(delivery: &Delivery) -> Option<Sample> {
        let rate_is_evidence = matches!(delivery.end, End::Completed | End::Interrupted);
        if !rate_is_evidence || delivery.bytes == Bytes::ZERO {
            return None;
        }
        let elapsed = delivery.elapsed.max(RESOLUTION).as_secs_f64();
        let first_byte_s = delivery.first_byte.map(|first| first.max(RESOLUTION).as_secs_f64());
        let wait_s = match first_byte_s {
            // No first byte comes after the end: such a host times the body alone (EST-13).
            Some(first_byte_s) if first_byte_s > elapsed => first_byte_s + elapsed,
            _ => elapsed,
        };
        Some(Sample { first_byte_s, wait_s, bytes: delivery.bytes })
    }

    /// The slowness that a request which ran out of time shows at least, where some bytes had come (MEAS-10: censored); `excused_s` seconds of it say nothing.
    #[inline]
    pub fn censored(delivery: &Delivery, excused_s: f64) -> Option<Slowness> {
        let overdue = delivery.end == End::Failed(Fault::Timeout);
        let shown_s = delivery.elapsed.as_secs_f64() - excused_s;
        let shown = overdue && delivery.bytes > Bytes::ZERO && shown_s > RESOLUTION.as_secs_f64();
        shown.then(|| Slowness::from_secs_per_byte(shown_s / delivery.bytes.as_f64()))
    }

    /// Slowness of the body alone, given a time to first byte of `first_byte_s` seconds: at least half the resolution is left for it.
    #[inline]
    pub fn body(&self, first_byte_s: f64) -> Slowness {
        let body_s = (self.wait_s - first_byte_s).max(RESOLUTION.as_secs_f64().min(self.wait_s));
        Slowness::from_secs_per_byte(body_s / self.bytes.as_f64().max(1.0))
    }

    /// Slowness of the whole wait: what one request alone achieved.
    #[inline]
    pub fn whole(&self) -> Slowness {
        Slowness::from_secs_per_byte(self.wait_s / self.bytes.as_f64().max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(bytes: u64, elapsed_ms: u64, first_byte_ms: Option<u64>, end: End) -> Delivery {
        Delivery {
            bytes: Bytes::new(bytes),
            elapsed: Span::from_millis(elapsed_ms),
            first_byte: first_byte_ms.map(Span::from_millis),
            end,
        }
    }

    #[test]
    fn a_zero_duration_is_a_fast_delivery_not_an_infinite_one() {
        // C33, EST-12.
        let sample = Sample::of(&delivery(256 * 1024, 0, None, End::Completed)).unwrap();
        assert_eq!(sample.wait_s, 0.0005);
        assert!(sample.whole().bytes_per_sec() < 1e9);
    }

    #[test]
    fn only_bodies_that_arrived_are_samples() {
        // MEAS-10: censored ends never become latencies.
        for end in [End::Cancelled, End::Failed(Fault::Timeout), End::Failed(Fault::Unavailable)] {
            assert_eq!(Sample::of(&delivery(1000, 10, Some(5), end)), None);
        }
        assert_eq!(Sample::of(&delivery(0, 10, Some(5), End::Completed)), None);
        assert!(Sample::of(&delivery(1000, 10, None, End::Interrupted)).is_some(), "C40");
    }

    #[test]
    fn a_first_byte_after_the_end_adds_to_the_wait() {
        // C30: a time to first byte of 5 s counts in full beside a duration of 1 s.
        let sample = Sample::of(&delivery(1000, 1_000, Some(5_000), End::Completed)).unwrap();
        assert_eq!(sample.wait_s, 6.0);
        let absurd = Sample::of(&delivery(1000, 10, Some(u64::MAX), End::Completed)).unwrap();
        assert!(absurd.wait_s.is_finite() && absurd.body(absurd.wait_s).secs_per_byte() > 0.0);
    }
}
