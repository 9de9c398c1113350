//! The sender's congestion window: slow start, CUBIC growth, what losses and silence do to it (LAB-1).
//!
//! Sources: RFC 6928 (initial window), RFC 5681 (slow start, restart after idleness, timeout), RFC 9438 (CUBIC). The window changes once per round trip; segments
//! are not simulated.

use crate::sim::queue::{Micros, seconds};

/// Bytes of a segment (Ethernet, IPv4, TCP without options).
pub(crate) const SEGMENT: f64 = 1460.0;
/// Initial window, bytes (RFC 6928).
pub(crate) const INITIAL: f64 = 10.0 * SEGMENT;
/// CUBIC's scaling constant, segments per second cubed (RFC 9438).
const CUBIC_SCALE: f64 = 0.4;
/// What a loss leaves of the window (RFC 9438).
const AFTER_LOSS: f64 = 0.7;
/// Largest window, bytes: what one round of 100 ms at 5 Gb/s needs. Smaller would cap the profiles of networks.md; larger changes nothing.
const LARGEST: f64 = 64.0 * 1024.0 * 1024.0;

/// A congestion window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    size: f64,
    threshold: f64,
    /// Window before the last reduction.
    peak: f64,
    /// When the present growth began; none until it does.
    since: Option<Micros>,
    /// Window at that moment.
    floor: f64,
}

impl Window {
    /// That of a new connection.
    pub(crate) fn new() -> Self {
        Window { size: INITIAL, threshold: f64::INFINITY, peak: 0.0, since: None, floor: INITIAL }
    }

    /// Bytes that may be sent per round trip.
    pub(crate) fn size(&self) -> f64 {
        self.size
    }

    /// A round ended in which `used` bytes were sent; `filled` says that sending them took a round trip or more, so that the link and not the window was the limit.
    pub(crate) fn round(&mut self, used: f64, filled: bool, now: Micros, round_trip_s: f64) {
        if used < self.size / 2.0 {
            return;
        }
        if self.size < self.threshold {
            if filled {
                // Delay rises once the link is full; slow start ends there without a loss (HyStart, RFC 9406).
                self.threshold = self.size;
                self.peak = self.size;
            } else {
                self.size = (self.size + used).min(self.threshold).min(LARGEST);
                return;
            }
        }
        if !filled {
            self.grow(now, round_trip_s);
        }
    }

    /// Congestion avoidance (RFC 9438, sections 4.2 to 4.4).
    fn grow(&mut self, now: Micros, round_trip_s: f64) {
        let since = *self.since.get_or_insert_with(|| {
            self.floor = self.size;
            now
        });
        let elapsed = seconds(now.saturating_sub(since)) + round_trip_s;
        let (floor, peak) = (self.floor / SEGMENT, self.peak.max(self.floor) / SEGMENT);
        let shift = libm::cbrt((peak - floor) / CUBIC_SCALE);
        let offset = elapsed - shift;
        let cubic = CUBIC_SCALE * offset * offset * offset + peak;
        let reno = floor + 3.0 * (1.0 - AFTER_LOSS) / (1.0 + AFTER_LOSS) * elapsed / round_trip_s.max(1e-6);
        let target = cubic.max(reno) * SEGMENT;
        self.size = target.clamp(self.size, 1.5 * self.size).min(LARGEST);
    }

    /// A loss was repaired by fast retransmit.
    pub(crate) fn lost(&mut self) {
        self.peak = self.size;
        self.size = (self.size * AFTER_LOSS).max(2.0 * SEGMENT);
        self.threshold = self.size;
        self.since = None;
    }

    /// The retransmission timer ran out.
    pub(crate) fn timed_out(&mut self) {
        self.peak = self.size;
        self.threshold = (self.size * AFTER_LOSS).max(2.0 * SEGMENT);
        self.size = SEGMENT;
        self.since = None;
    }

    /// Nothing was sent for a while: growth does not count it (RFC 9438, section 5.8).
    pub(crate) fn idled(&mut self, idle: Micros) {
        self.since = self.since.map(|since| since.saturating_add(idle));
    }

    /// Nothing was sent for longer than the retransmission timeout.
    pub(crate) fn restart(&mut self) {
        self.size = self.size.min(INITIAL);
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_until_a_loss_and_then_grows_slowly() {
        let mut window = Window::new();
        for _ in 0..5 {
            window.round(window.size(), false, 0, 0.1);
        }
        assert_eq!(window.size(), 32.0 * INITIAL);
        window.lost();
        assert!((window.size() - 0.7 * 32.0 * INITIAL).abs() < 1.0);
        let before = window.size();
        window.round(before, false, 100_000, 0.1);
        assert!(window.size() > before && window.size() < 1.2 * before);
    }

    #[test]
    fn cubic_returns_to_its_peak_after_the_time_its_formula_gives() {
        let mut window = Window { size: 1000.0 * SEGMENT, ..Window::new() };
        window.lost();
        // cbrt(1000 · 0.3 / 0.4) = 9.09 s.
        let mut now = 0;
        while window.size() < 999.9 * SEGMENT {
            now += 100_000;
            window.round(window.size(), false, now, 0.1);
        }
        assert!((seconds(now) - 9.09).abs() < 1.0, "{}", seconds(now));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut window = Window::new();
        window.round(1000.0, false, 0, 0.1);
        assert_eq!(window.size(), INITIAL);
    }

    #[test]
    fn silence_and_timeouts_restart_slow_start() {
        let mut window = Window { size: 100.0 * INITIAL, ..Window::new() };
        window.restart();
        assert_eq!(window.size(), INITIAL);
        window.timed_out();
        assert_eq!(window.size(), SEGMENT);
    }
}
