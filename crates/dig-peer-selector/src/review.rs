//! Ranges under way that come too late, beyond the published interface (HEDGE): which of them another holder would bring sooner.

use std::time::Duration;

use dig_nat::PeerId;
use peer_quality::hedge::{Move, Piece, Progress, Recourse};
use peer_quality::table::Slot;
use peer_quality::units::{Bytes, Span, Time};

/// What is under way for a content, and what the host can do about it.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay<'a> {
    /// The ranges.
    pub ranges: &'a [RangeUnderWay],
    /// What can be done about one that comes too late.
    pub recourse: Recourse,
    /// How many more ranges could be under way, where the host knows: without any a slow one holds up others.
    pub free_slots: Option<u32>,
}

/// A range that a peer was asked for, and that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeUnderWay {
    /// Who was asked.
    pub peer_id: PeerId,
    /// Its bytes.
    pub length: u64,
    /// How long ago.
    pub age: Duration,
    /// What came of it, where the host sees that.
    pub progress: Option<RangeProgress>,
    /// How many peers were asked for it and have not failed, at least 1.
    pub holders: u32,
    /// How often it was given up before: each time a further move has to gain more.
    pub given_up: u32,
}

/// What came of a range so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeProgress {
    /// Bytes.
    pub bytes: u64,
    /// When the first of them came, after the range was asked for.
    pub first_byte: Option<Duration>,
}

/// A range that should move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeMove {
    /// Which of the ranges.
    pub range: usize,
    /// Who would bring it sooner.
    pub to: PeerId,
    /// Seconds that it still needs where it is: by what came of it where it is late, else until it would be.
    pub remaining_s: f32,
    /// Seconds that the other needs for all of it, at p95.
    pub instead_s: f32,
    /// Whether it is past its time: then giving it up is reported as a failure by timeout, else as a cancel.
    pub is_late: bool,
}

/// The answer of a review.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeReview {
    /// What should move, the one that needs longest first.
    pub moves: Vec<RangeMove>,
    /// When to ask again, unless a range ends before; none where nothing changes until then.
    pub again: Option<Duration>,
}

impl RangeUnderWay {
    /// The same in the engine's terms.
    pub(crate) fn piece(&self, slot: Slot, now: Time) -> Piece {
        let progress =
            |seen: RangeProgress| Progress { bytes: Bytes::new(seen.bytes), first_byte: seen.first_byte.map(span) };
        Piece {
            slot,
            size: Bytes::new(self.length),
            sent: Time::from_micros(now.as_micros().saturating_sub(span(self.age).as_micros())),
            progress: self.progress.map(progress),
            holders: self.holders,
            given_up: self.given_up,
        }
    }
}

impl RangeReview {
    /// The engine's answer; `ranges` are the places of its pieces among those that were asked about.
    pub(crate) fn of(moves: &[Move], again: Option<Span>, ranges: &[usize], key: impl Fn(Slot) -> [u8; 32]) -> Self {
        let moved = |one: &Move| RangeMove {
            range: ranges[one.piece],
            to: PeerId::from_bytes(key(one.to)),
            remaining_s: one.remaining_s,
            instead_s: one.instead_s,
            is_late: one.is_late,
        };
        RangeReview {
            moves: moves.iter().map(moved).collect(),
            again: again.map(|again| Duration::from_micros(again.as_micros())),
        }
    }
}

fn span(duration: Duration) -> Span {
    Span::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
