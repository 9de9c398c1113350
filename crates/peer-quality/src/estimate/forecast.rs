//! Time to deliver one body (EST-1): ramp + seconds per byte · size, as a mean and at p95, with an error bar and the basis it rests on.

use crate::estimate::ramp::Ramp;
use crate::units::Bytes;

/// Standard deviations of the tail quantile, p95 of a log-normal.
pub const TAIL_Z: f64 = 1.645;

/// What an estimate rests on, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Completed bodies of this peer.
    Measured,
    /// Something of this peer (how far it is, how fast its wire is), the rest from the population.
    Predicted,
    /// Nothing of this peer: the population's average (RANK-3).
    Prior,
}

/// Time to deliver one body of any size from one peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Mean time to first byte over a warm connection, seconds.
    pub first_byte_s: f32,
    /// Mean seconds per byte of the body.
    pub secs_per_byte: f32,
    /// First byte at p95, seconds.
    pub first_byte_tail_s: f32,
    /// Seconds per byte at p95.
    pub secs_per_byte_tail: f32,
    /// Standard error of the mean time to first byte, seconds.
    pub first_byte_error_s: f32,
    /// Standard error of the mean seconds per byte.
    pub secs_per_byte_error: f32,
    /// What a cold connection adds; nothing where its state is unknown.
    pub ramp: Ramp,
    /// What it rests on.
    pub basis: Basis,
}

impl Forecast {
    /// Expected seconds for a body of `size`.
    pub fn mean_s(&self, size: Bytes) -> f32 {
        self.warm_s(size) + self.ramp_s(size)
    }

    /// The same over a warm connection.
    #[inline]
    pub fn warm_s(&self, size: Bytes) -> f32 {
        self.first_byte_s + self.secs_per_byte * size.get() as f32
    }

    /// Seconds for a body of `size` at p95.
    #[inline]
    pub fn tail_s(&self, size: Bytes) -> f32 {
        let ramp_s = self.ramp.extra_tail_s(size, self.secs_per_byte);
        self.first_byte_tail_s + self.secs_per_byte_tail * size.get() as f32 + ramp_s
    }

    /// Expected seconds of slow start beyond the first byte for a body of `size`: part of [`mean_s`](Self::mean_s).
    #[inline]
    pub fn ramp_s(&self, size: Bytes) -> f32 {
        self.ramp.extra_s(size, self.secs_per_byte)
    }

    /// One standard error of [`mean_s`](Self::mean_s), seconds: how far off the forecast itself may be, which is not how widely deliveries spread (AUD-3).
    pub fn error_s(&self, size: Bytes) -> f32 {
        libm::hypotf(self.first_byte_error_s, self.secs_per_byte_error * size.get() as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::ramp::Warmth;

    #[test]
    fn time_to_deliver_is_first_byte_and_bytes_and_ramp() {
        let warm = Forecast {
            first_byte_s: 0.1,
            secs_per_byte: 1e-7,
            first_byte_tail_s: 0.15,
            secs_per_byte_tail: 2e-7,
            first_byte_error_s: 0.03,
            secs_per_byte_error: 4e-8,
            ramp: Ramp::default(),
            basis: Basis::Predicted,
        };
        let size = Bytes::new(1_000_000);
        assert!((warm.mean_s(size) - 0.2).abs() < 1e-6 && (warm.tail_s(size) - 0.35).abs() < 1e-6);
        assert!((warm.error_s(size) - 0.05).abs() < 1e-6, "3, 4, 5");
        let cold = Forecast { ramp: Ramp::new(0.1, 0.15, Warmth::Cold), ..warm };
        assert!((cold.mean_s(size) - warm.mean_s(size) - cold.ramp_s(size)).abs() < 1e-6);
        assert!(cold.ramp_s(size) > 0.2 && cold.tail_s(size) > warm.tail_s(size) + cold.ramp_s(size));
    }
}
