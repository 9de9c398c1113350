//! Stalls: silences that ended an open window, how many and how long (MEAS-8).
//!
//! Kept apart from the rate because the scales do not mix: pauses of a second among gaps of a millisecond. Many stalls are a reason to hedge; none are
//! no reason for trust, since a metronomic pacer has none on purpose.
//!
//! Not counted: between transfers, in slow start, while we do not read, while every peer is silent at once. The last is often known only afterwards, so
//! recent stalls can be forgiven. Bound: the latest [`STALLS_MAX`]; older ones leave first.

use crate::units::{Span, Time};

/// How far back the rate of stalls looks.
/// Longer remembers what has healed; shorter sees too few transfers. The window of the round trips, for the same reason.
pub const STALL_WINDOW: Span = Span::from_secs(60);

/// The most stalls remembered; a peer with more in one window is as bad as can be told.
pub const STALLS_MAX: usize = 16;

/// Which channel went silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// No data came for longer than the gate.
    Data,
    /// Data came, but for longer than the gate no echo of an outstanding cookie.
    Echo,
}

/// A stall whose length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// What went silent.
    pub channel: Channel,
    /// When the silence began, on the host's clock.
    pub onset: Time,
    /// How long it lasted; until the transfer ended, if that came first.
    pub length: Span,
}

/// Stalls of the last [`STALL_WINDOW`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallSummary {
    /// How many, up to [`STALLS_MAX`].
    pub count: u32,
    /// How long together.
    pub total: Span,
    /// The longest.
    pub longest: Span,
}

/// The stalls of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stalls {
    running: Option<(Channel, Time)>,
    recent: [Option<Stall>; STALLS_MAX],
    next: usize,
}

impl Stalls {
    /// A silence that began at `onset` ended a window. One at a time: the first stands.
    pub(super) fn begin(&mut self, channel: Channel, onset: Time) {
        self.running.get_or_insert((channel, onset));
    }

    /// Something came on `channel`, or the transfer ended (no channel).
    pub(super) fn settle(&mut self, channel: Option<Channel>, now: Time) -> Option<Stall> {
        let (running, onset) = self.running?;
        if channel.is_some_and(|channel| channel != running) {
            return None;
        }
        self.running = None;
        let stall = Stall { channel: running, onset, length: now.since(onset) };
        self.recent[self.next] = Some(stall);
        self.next = (self.next + 1) % STALLS_MAX;
        Some(stall)
    }

    /// Takes back what began at or after `since`.
    pub(super) fn forgive(&mut self, since: Time) {
        self.running = self.running.filter(|(_, onset)| *onset < since);
        for stall in &mut self.recent {
            *stall = stall.filter(|stall| stall.onset < since);
        }
    }

    /// Drops the one that runs: nobody can tell how long it lasted.
    pub(super) fn abandon(&mut self) {
        self.running = None;
    }

    pub(super) fn running(&self) -> Option<(Channel, Time)> {
        self.running
    }

    pub(super) fn summary(&self, now: Time) -> StallSummary {
        let mut summary = StallSummary::default();
        for stall in self.recent.iter().flatten().filter(|stall| now.since(stall.onset) <= STALL_WINDOW) {
            summary.count += 1;
            let total = summary.total.as_micros().saturating_add(stall.length.as_micros());
            summary.total = Span::from_micros(total);
            summary.longest = summary.longest.max(stall.length);
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn a_stall_is_settled_by_its_own_channel() {
        let mut stalls = Stalls::default();
        stalls.begin(Channel::Echo, secs(1));
        stalls.begin(Channel::Data, secs(2));
        assert_eq!(stalls.settle(Some(Channel::Data), secs(3)), None);
        let stall = stalls.settle(Some(Channel::Echo), secs(4)).unwrap();
        assert_eq!((stall.onset, stall.length), (secs(1), Span::from_secs(3)));
        assert_eq!(stalls.settle(None, secs(5)), None, "once");
    }

    #[test]
    fn a_common_mode_takes_back_what_began_in_it() {
        let mut stalls = Stalls::default();
        for onset in [10, 20, 30] {
            stalls.begin(Channel::Data, secs(onset));
            stalls.settle(None, secs(onset + 1));
        }
        stalls.forgive(secs(20));
        assert_eq!(stalls.summary(secs(31)).count, 1);
    }

    #[test]
    fn the_memory_is_bounded_and_recent() {
        let mut stalls = Stalls::default();
        for onset in 0..100 {
            stalls.begin(Channel::Data, secs(onset));
            stalls.settle(None, secs(onset + 1));
        }
        let summary = stalls.summary(secs(100));
        assert_eq!((summary.count as usize, summary.longest), (STALLS_MAX, Span::from_secs(1)));
        assert_eq!(stalls.summary(secs(1000)), StallSummary::default());
    }
}
