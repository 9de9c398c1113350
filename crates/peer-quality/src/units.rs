//! Newtypes for the quantities of the engine, so that two numbers of different meaning cannot be swapped.
//!
//! Arithmetic saturates: a fact from outside may carry any value, and an answer must stay finite and
//! ordered (EST-12). Conversions to and from `f64` happen here and nowhere else.

use core::fmt;
use core::ops::{Add, Sub};

/// A moment on the host's own clock, in microseconds since an origin that the host chooses.
///
/// The engine never reads a clock. Moments may repeat, jump or go back; [`Time::since`] then saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Later than every other moment.
    pub const MAX: Time = Time(u64::MAX);

    /// A moment `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Time(micros)
    }

    /// A moment `secs` seconds after the origin, saturating.
    pub const fn from_secs(secs: u64) -> Self {
        Time(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero when it lies in the future (a clock that went back).
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros)
    }

    /// A span of `millis` milliseconds, saturating.
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis.saturating_mul(1_000))
    }

    /// A span of `secs` seconds, saturating.
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs.saturating_mul(1_000_000))
    }

    /// Microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            micros @ 0..1_000 => write!(f, "{micros} µs"),
            micros @ 1_000..1_000_000 => write!(f, "{:.1} ms", micros as f64 * 1e-3),
            micros => write!(f, "{:.2} s", micros as f64 * 1e-6),
        }
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Bytes(count)
    }

    /// `count` times 1024 bytes, saturating.
    pub const fn from_kib(count: u64) -> Self {
        Bytes(count.saturating_mul(1024))
    }

    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count as a real number.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

/// Seconds per byte of a body: the reciprocal of a rate, and the quantity that adds up along a transfer.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Slowness(f64);

impl Slowness {
    /// The slowness of `rate` bytes per second; rates that are not positive and finite are clamped.
    #[inline]
    pub fn from_bytes_per_sec(rate: f64) -> Self {
        Slowness::from_secs_per_byte(1.0 / rate)
    }

    /// `secs` seconds per byte, clamped to the range of rates between 1 byte/s and 1 TB/s.
    #[inline]
    pub fn from_secs_per_byte(secs: f64) -> Self {
        // Not a number is what a division by zero of zero bytes leaves: nothing is slower.
        Slowness(if secs.is_nan() { 1.0 } else { secs.clamp(1e-12, 1.0) })
    }

    /// Seconds per byte.
    pub const fn secs_per_byte(self) -> f64 {
        self.0
    }

    /// Bytes per second.
    pub fn bytes_per_sec(self) -> f64 {
        1.0 / self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_goes_back_yields_no_negative_span() {
        assert_eq!(Time::from_secs(1).since(Time::from_secs(5)), Span::ZERO);
        assert_eq!(Time::MAX + Span::from_secs(9), Time::MAX);
    }

    #[test]
    fn slowness_is_finite_for_every_rate() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX] {
            let slowness = Slowness::from_bytes_per_sec(rate).secs_per_byte();
            assert!(slowness.is_finite() && slowness > 0.0, "{rate}");
        }
    }

    #[test]
    fn spans_read_in_the_unit_of_their_size() {
        let shown = [Span::from_micros(7), Span::from_micros(1_500), Span::from_secs(2)]
            .map(|span| std::string::ToString::to_string(&span));
        assert_eq!(shown, ["7 µs", "1.5 ms", "2.00 s"]);
    }
}
