//! One candidate in the yardstick's plan: what it delivers by when, behind what it still owes.

use super::PeerIndex;
use super::truth::Ramp;

/// The longest plan, seconds: later ends are as good as never.
pub(super) const HORIZON_S: f64 = 86_400.0;
/// Rates that are worth dividing by, bytes per second.
pub(super) const RATES: (f64, f64) = (1e-3, 1e15);
/// Requests to one peer whose fate is looked up together.
pub(super) const LOOKAHEAD: usize = 8;
/// Rounds of slow start that matter: 2³⁰ windows are more than any link takes.
pub(super) const MAX_ROUNDS: u32 = 30;

/// One candidate in a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) peer: PeerIndex,
    /// Seconds to the first byte of its next range.
    pub(super) first_byte_s: f64,
    /// Seconds until it has delivered what it owes.
    pub(super) owes_s: f64,
    /// All its requests together, bytes per second.
    pub(super) rate: f64,
    /// One request alone.
    pub(super) alone: f64,
    /// Of its next requests, how many are of use, 0..=1.
    pub(super) share: f64,
    /// What becomes of its next requests: none is served, else fails after so many seconds.
    pub(super) mishaps: [Option<f64>; LOOKAHEAD],
    pub(super) shared: Option<(u32, f64)>,
    pub(super) in_flight: u32,
    /// Seconds since the oldest of those was sent.
    pub(super) oldest_s: f64,
    pub(super) most: u32,
    pub(super) ramp: Option<Ramp>,
    /// When its rate changes, seconds from now, and to what.
    pub(super) change: Option<(f64, f64)>,
}

impl Source {
    pub(super) fn start_s(&self) -> f64 {
        self.owes_s.max(self.first_byte_s)
    }

    /// Bytes within `span_s` from the first one on, and what of the span is left when the link is full.
    pub(super) fn ramped(&self, span_s: f64) -> (f64, f64) {
        let Some(ramp) = self.ramp else { return (0.0, span_s) };
        let (mut bytes, mut left_s, mut window) = (0.0, span_s, ramp.window);
        for _ in 0..MAX_ROUNDS {
            if window >= self.rate * ramp.round_s {
                break;
            }
            if left_s < ramp.round_s {
                return (bytes + window.min(left_s.max(0.0) * self.rate), 0.0);
            }
            bytes += window;
            left_s -= ramp.round_s;
            window *= 2.0;
        }
        (bytes, left_s)
    }

    /// Ranges of `range` bytes that it can deliver within `span_s`, besides what it owes.
    pub(super) fn delivers_by(&self, span_s: f64, range: f64) -> f64 {
        let start_s = self.start_s();
        if span_s < start_s + (1.0 - 1e-9) * range / self.alone {
            let turned = self.change.is_some_and(|(at_s, then)| at_s < span_s && then > self.rate);
            if !turned {
                return 0.0;
            }
        }
        let mut bytes = 0.0;
        let until_s = self.change.map_or(span_s, |(at_s, _)| at_s.min(span_s));
        if until_s > start_s {
            let (ramped, full_s) = self.ramped(until_s - start_s);
            bytes += ramped + full_s.max(0.0) * self.rate;
        }
        if let Some((at_s, then)) = self.change {
            bytes += (span_s - start_s.max(at_s)).max(0.0) * then;
        }
        // A whisker above, so that exact fits are not lost to rounding.
        (bytes * self.share / range + 1e-9).floor()
    }

    /// Seconds of a body of `bytes`.
    pub(super) fn body_s(&self, bytes: f64) -> f64 {
        let (mut left, mut at_s) = (bytes, 0.0);
        if let Some(ramp) = self.ramp {
            let mut window = ramp.window;
            for _ in 0..MAX_ROUNDS {
                if left <= window || window >= self.rate * ramp.round_s {
                    break;
                }
                left -= window;
                at_s += ramp.round_s;
                window *= 2.0;
            }
        }
        at_s + left / self.rate
    }

    /// Ranges per second with `in_flight` at once: requests sent together share the link and end together, so each round costs a first byte.
    pub(super) fn pace(&self, in_flight: u32, range: f64) -> f64 {
        let count = f64::from(in_flight);
        let body_s = (range / self.alone).max(count * range / self.rate);
        self.share * count / (self.first_byte_s + body_s)
    }

    /// Whether less than this share of the time of what is in flight has passed.
    pub(super) fn is_early(&self, range: f64, share: f64) -> bool {
        let all_s = self.first_byte_s + f64::from(self.in_flight) * range / self.rate;
        self.oldest_s < self.first_byte_s.max(share * all_s)
    }

    /// How many in flight keep its link full.
    pub(super) fn depth(&self, range: f64, spare: f64) -> u32 {
        let fill = self.rate / range * (self.first_byte_s + range / self.alone);
        ((fill + spare).ceil() as u32).clamp(1, self.most)
    }
}

/// A share of a link: not-a-number and nothing are next to nothing.
pub(super) fn sane(rate: f64) -> f64 {
    if rate.is_nan() { RATES.0 } else { rate.clamp(RATES.0, RATES.1) }
}

pub(super) fn sane_s(seconds: f64) -> f64 {
    if seconds.is_nan() { HORIZON_S } else { seconds.clamp(0.0, HORIZON_S) }
}
