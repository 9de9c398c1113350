//! One connection's own time: it never goes back, whatever the host's clock does.
//!
//! Stamps of two threads may cross by a little: the timeline then stands still until the host's clock has caught up. A clock that was set back by more
//! continues from where the timeline stood. A jump ahead cannot be told from time that passed; but a host that told nothing for longer than any cookie
//! waits was not running, and what its peers did meanwhile is not theirs to answer for.

use super::outstanding::HOLD;
use crate::units::{Span, Time};

/// Steps back up to this are crossed stamps; longer ones a clock that was set.
/// Too long freezes the timeline for as long after a clock was set back; too short makes it run fast where stamps cross often. Unmeasured
/// heuristic: no scheduler delays one stamp by a second.
const CROSSED: Span = Span::from_secs(1);

/// Host time to monotone time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    last: Time,
    /// What steps back added up to.
    offset: Span,
}

/// A moment on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    pub(super) now: Time,
    /// The host was not running before it.
    pub(super) was_suspended: bool,
}

impl Timeline {
    pub(super) fn new(now: Time) -> Self {
        Timeline { last: now, offset: Span::ZERO }
    }

    /// Moves on to `host` if that is neither back nor after `until`: what nearly every call does.
    #[inline]
    pub(super) fn tick_until(&mut self, host: Time, until: Time) -> Option<Time> {
        let mapped = host + self.offset;
        if mapped < self.last || mapped > until {
            return None;
        }
        self.last = mapped;
        Some(mapped)
    }

    pub(super) fn tick(&mut self, host: Time) -> Tick {
        let mapped = host + self.offset;
        if mapped >= self.last {
            let was_suspended = mapped.since(self.last) > HOLD;
            self.last = mapped;
            return Tick { now: mapped, was_suspended };
        }
        let back = self.last.since(mapped);
        if back > CROSSED {
            self.offset = Span::from_micros(self.offset.as_micros().saturating_add(back.as_micros()));
        }
        Tick { now: self.last, was_suspended: false }
    }

    /// Timeline time without moving it: for reading.
    pub(super) fn peek(&self, host: Time) -> Time {
        (host + self.offset).max(self.last)
    }

    /// Timeline time of a moment in the past.
    pub(super) fn past(&self, host: Time) -> Time {
        (host + self.offset).min(self.last)
    }

    /// The latest moment told.
    pub(super) fn last(&self) -> Time {
        self.last
    }

    /// Back to the host's clock.
    pub(super) fn to_host(self, at: Time) -> Time {
        Time::from_micros(at.as_micros().saturating_sub(self.offset.as_micros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossed_stamps_stand_still_and_a_clock_set_back_runs_on() {
        let mut timeline = Timeline::new(Time::from_secs(100));
        assert_eq!(timeline.tick(Time::from_micros(99_999_000)).now, Time::from_secs(100));
        assert_eq!(timeline.tick(Time::from_secs(101)).now, Time::from_secs(101), "no drift from crossing");
        assert_eq!(timeline.tick(Time::from_secs(1)).now, Time::from_secs(101));
        let later = timeline.tick(Time::from_secs(3)).now;
        assert_eq!((later, timeline.to_host(later)), (Time::from_secs(103), Time::from_secs(3)));
    }

    #[test]
    fn a_long_silence_of_the_host_is_a_suspension() {
        let mut timeline = Timeline::new(Time::ZERO);
        assert!(!timeline.tick(Time::from_secs(30)).was_suspended);
        assert!(timeline.tick(Time::from_secs(8 * 3600)).was_suspended);
        assert!(timeline.tick(Time::MAX).was_suspended);
        assert_eq!(timeline.tick(Time::MAX).now, Time::MAX);
    }
}
