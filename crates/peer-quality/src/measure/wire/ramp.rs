//! The cold phase: rounds that the peer's congestion window limits, which say nothing about its rate (settled difference 8).
//!
//! The tell is rising throughput: in slow start each round trip brings about twice the bytes of the one before. The phase is over with the first
//! round that brought no more than the last, after which the path limits the rate. A connection is cold from its start and after silence longer
//! than a retransmission timeout. Our own kernel's congestion window is no help here: it limits what we send.

use crate::units::{Span, Time};

/// Growth from round to round that is still a ramp.
/// Too low takes jitter for a ramp and learns late; too high ends the ramp early under delayed acknowledgements (growth 1.5) and folds window-limited
/// rounds into the rate. Unmeasured heuristic between 1 and 1.5.
const GROWTH: f64 = 1.25;

/// The most rounds of one ramp: 14,600 B doubled 12 times is 60 MB in a round trip, more than any path here holds.
/// Fewer cut long fat paths short; more let a peer that grows slowly stay unmeasured.
const ROUNDS_MAX: u8 = 12;

/// The rounds of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ramp {
    round_began: Time,
    round_bytes: u64,
    /// Bytes per second of the last full round, 0 before there is one.
    rate: f64,
    rounds: u8,
    bytes: u64,
}

impl Ramp {
    /// A round begins with a read; rounds before it are remembered.
    pub(super) fn begin(&mut self, now: Time, bytes: u64) {
        self.round_began = now;
        self.round_bytes = bytes;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// One more read; true when it ends the ramp. `round` is the round trip.
    pub(super) fn arrived(&mut self, now: Time, bytes: u64, round: Span) -> bool {
        let passed = now.since(self.round_began);
        if passed < round || passed == Span::ZERO {
            self.round_bytes = self.round_bytes.saturating_add(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
            return false;
        }
        let rate = self.round_bytes as f64 / passed.as_secs_f64();
        let is_rising = rate >= GROWTH * self.rate;
        self.rate = rate;
        self.rounds = self.rounds.saturating_add(1);
        self.begin(now, bytes);
        !is_rising || self.rounds >= ROUNDS_MAX
    }

    /// Bytes of this ramp so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    /// Round at which the ramp ends, for rounds of so many bytes.
    fn ends_in(rounds: impl IntoIterator<Item = u64>) -> Option<usize> {
        let mut ramp = Ramp::default();
        ramp.begin(Time::ZERO, 0);
        rounds.into_iter().enumerate().position(|(nth, bytes)| {
            // The round's bytes come together, at its beginning, as slow start sends them.
            ramp.arrived(Time::from_micros(nth as u64 * 101_000 + 101_000), bytes, RTT)
        })
    }

    #[test]
    fn a_ramp_lasts_while_rounds_grow() {
        let slow_start = (0..6).map(|nth| 14_600 << nth).chain([14_600 << 5; 4]);
        assert_eq!(ends_in(slow_start), Some(7));
        assert_eq!(ends_in([50_000; 4]), Some(2), "a path that is full at once");
    }

    #[test]
    fn a_ramp_cannot_last_for_ever() {
        assert!(ends_in((0..40).map(|nth| 100 << nth)).is_some_and(|round| round < 13));
    }
}
