//! Cooling off after failures in a row: a peer that fails is left alone for a while, longer each time, and then tried with one request.
//!
//! Failing fast must not look fast (scenario A8), and a peer that healed must be found again within a bounded time (A3): the
//! pause doubles from one second, is no shorter than the failure took (or a silent peer would hold a slot most of the time), and never exceeds [`LONGEST`]. A clock that stands still says nothing, so then decisions count instead of seconds.

use crate::units::{Span, Time};

/// Failures in a row that start a pause. One is the ordinary loss of a network.
const FAILURES: u16 = 2;
/// The first pause. Shorter hammers a dead peer, longer starves a request whose only holder hiccuped.
const FIRST: Span = Span::from_secs(1);
/// The longest pause: the bound within which a recovered peer is tried again (scenario A3).
pub const LONGEST: Span = Span::from_secs(60);

/// Decisions that end a pause while the clock stands still. Fewer would try a dead peer in every burst of decisions.
const DECISIONS: u64 = 8;

/// Until when a peer is left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cooling {
    since: Time,
    since_decision: u64,
    span: Span,
}

impl Cooling {
    /// The pause after `consecutive` failures, the last of which `took` so long and came at `now` when `decision` decisions had been made.
    #[inline]
    pub fn after(consecutive: u16, took: Span, now: Time, decision: u64) -> Cooling {
        if consecutive < FAILURES {
            return Cooling::default();
        }
        let doublings = u32::from(consecutive - FAILURES).min(16);
        let span = Span::from_micros(FIRST.as_micros() << doublings).max(took).min(LONGEST);
        Cooling { since: now, since_decision: decision, span }
    }

    /// What is left of the pause at `now`; zero when it is over. A clock that goes back leaves at most the whole pause.
    pub fn left(&self, now: Time) -> Span {
        self.span - now.since(self.since)
    }

    /// Whether there was no pause since the last success.
    pub fn is_none(&self) -> bool {
        self.span == Span::ZERO
    }

    /// Whether the peer is being left alone, `decision` decisions having been made.
    pub fn is_on(&self, now: Time, decision: u64) -> bool {
        let waited_out = now == self.since && decision.saturating_sub(self.since_decision) >= DECISIONS;
        self.left(now) > Span::ZERO && !waited_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_bound() {
        let now = Time::from_secs(100);
        let pause = |failures, took| Cooling::after(failures, Span::from_secs(took), now, 0).left(now).as_millis();
        let pauses = [0, 1, 2, 3, 4, 8, 9, u16::MAX].map(|failures| pause(failures, 0));
        assert_eq!(pauses, [0, 0, 1_000, 2_000, 4_000, 60_000, 60_000, 60_000]);
        let after_long_ones = [1, 2, 5, 6].map(|failures| pause(failures, 10));
        assert_eq!(after_long_ones, [0, 10_000, 10_000, 16_000], "no shorter than the failure");
        assert_eq!(pause(2, 1_000), 60_000);
    }

    #[test]
    fn the_pause_ends_by_itself_and_survives_clock_steps() {
        let cooling = Cooling::after(2, Span::ZERO, Time::from_secs(100), 0);
        assert!(cooling.is_on(Time::from_secs(100) + Span::from_millis(999), 1_000));
        assert!(!cooling.is_on(Time::from_secs(101), 0));
        assert!(cooling.left(Time::ZERO) <= LONGEST);
    }

    #[test]
    fn decisions_stand_in_for_a_clock_that_stands_still() {
        let now = Time::from_secs(100);
        let cooling = Cooling::after(9, Span::ZERO, now, 50);
        assert!(cooling.is_on(now, 57) && !cooling.is_on(now, 58));
    }
}
