//! Pieces that come too late: to wait for one, to give it up, or to ask a second peer for it as well (HEDGE-2 to HEDGE-6).
//!
//! The one idea: a piece that is later than its own peer's record allows is judged by what came of it, never by what another peer claims. What it still needs at that
//! pace is held against what the best proven peer would need for the whole of it from cold, behind its queue, at p95. The other has to be better by a margin that
//! covers the bytes thrown away. At the end of the work a piece that is on time is looked at too, with a wider margin: a known peer may simply be slow, and of a stranger
//! nobody knows.
//!
//! Nothing is given up while most of those under way are late together, or our own link is the bottleneck: then another peer would be late as well. Where a second
//! request is all that it costs, one piece finds out.

mod budget;

use alloc::vec::Vec;

use crate::audit::common_mode::is_quorum;
use crate::rank::plan::{Work, is_admissible};
use crate::rank::quote::Quote;
use crate::table::Slot;
use crate::units::{Bytes, Span, Time};

pub use budget::Budget;

/// A late piece must still need more than this many times what the other peer needs. Lower throws away what was nearly there, higher waits for what will not come.
/// Unmeasured heuristic.
const MARGIN: f32 = 1.5;
/// The same for a piece that is on time: strangers and far peers get pieces while there are many, and keep the last ones waiting. Unmeasured heuristic.
const MARGIN_ON_TIME: f32 = 3.0;
/// Times that a piece was given up which count at most. Each adds once more what a move has to gain: where everybody is slower than their records moving ends, and where three
/// in turn withhold a piece the fourth still gets it soon.
const GIVEN_UP_MAX: u32 = 1000;
/// A late peer is in the way of the other for so many times as long as that one needs.
const IN_THE_WAY: f32 = 2.0;
/// The least share of a piece that asking twice for it is taken to cost: what is sent late is sent all the same, and the cap on duplicates is no higher than four times the
/// budget's share.
const COST_MIN: f32 = 0.25;
/// The most holders of a piece at once (HEDGE-6).
const HOLDERS_MAX: u32 = 2;
/// What a lost packet may cost before a piece is late, seconds: the shortest retransmission timer in use (RFC 6298 has 1 s, Linux 0.2 s). Lower takes every loss for a
/// failing peer, higher waits for what will not come.
const RTO_S: f32 = 0.2;
/// A late piece that nobody else would bring sooner is looked at again after this share of the time that it took so far.
const AGAIN: f32 = 0.25;
/// The shortest time between two looks. Shorter costs the host work, longer holds up pieces of a few milliseconds.
const AGAIN_MIN: Span = Span::from_millis(10);

/// A piece of the work that a peer was asked for, and that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Who has it.
    pub slot: Slot,
    /// Its bytes.
    pub size: Bytes,
    /// When it was asked for.
    pub sent: Time,
    /// What came of it, where the host sees that.
    pub progress: Option<Progress>,
    /// How many peers were asked for it and have not failed, at least 1.
    pub holders: u32,
    /// How often it was given up before.
    pub given_up: u32,
}

/// What came of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes so far.
    pub bytes: Bytes,
    /// When the first of them came, after the piece was asked for.
    pub first_byte: Option<Span>,
}

/// What the host can do about a late piece (HEDGE-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recourse {
    /// Drop one request and ask another peer: costs what came of it (DIG).
    GiveUp,
    /// Ask another peer as well, as nothing can be called back: costs the whole piece again (LeiosFetch).
    Duplicate,
}

/// A piece that another peer brings sooner, with the evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Which of the pieces.
    pub piece: usize,
    /// Who brings it sooner.
    pub to: Slot,
    /// Seconds that it still needs where it is: by what came of it where it is late, else until it would be.
    pub remaining_s: f32,
    /// Seconds that the other needs, at p95.
    pub instead_s: f32,
    /// Whether it is past its time. Where it is not, nothing speaks against its peer but that it is slow: giving it up is a cancel then.
    pub is_late: bool,
}

impl Move {
    /// Bytes that it wastes. A late piece is given up for nothing: it would not have come. Of one that is asked for twice, the late peer sends the more of it in the
    /// other's way the less it is behind.
    pub(crate) fn cost(&self, piece: &Piece, recourse: Recourse) -> Bytes {
        match recourse {
            Recourse::GiveUp if self.is_late => Bytes::ZERO,
            Recourse::GiveUp => piece.progress.map_or(piece.size, |progress| progress.bytes),
            Recourse::Duplicate => {
                let in_the_way = (IN_THE_WAY * self.instead_s / self.remaining_s.max(1e-6)).clamp(COST_MIN, 1.0);
                Bytes::new((piece.size.get() as f32 * in_the_way) as u64)
            }
        }
    }
}

/// What is expected of a piece where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Seconds within which it should have ended, at p95, behind what else its peer was asked for.
    pub(crate) due_s: f32,
    /// Seconds it takes a peer like it alone.
    pub(crate) usual_s: f32,
    /// Whether that rests on what the peer delivered.
    pub(crate) is_measured: bool,
    /// Bytes per second of all requests to the peer.
    pub(crate) pace: f32,
}

/// A piece that may move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    piece: usize,
    remaining_s: f32,
    /// Whether it is past its time.
    is_late: bool,
}

impl Piece {
    /// Seconds since it was asked for; a clock that went back says none.
    fn elapsed_s(&self, now: Time) -> f32 {
        now.since(self.sent).as_secs_f64() as f32
    }

    /// Seconds that it still needs, by what came of it (HEDGE-2).
    fn remaining_s(&self, expected: &Expected, now: Time) -> f32 {
        let elapsed_s = self.elapsed_s(now);
        let Some(Progress { bytes, first_byte }) = self.progress else {
            // Unseen, it takes as long again as it took.
            return elapsed_s;
        };
        if bytes == Bytes::ZERO {
            return elapsed_s + expected.usual_s;
        }
        let body_s = (elapsed_s - first_byte.map_or(0.0, |first| first.as_secs_f64() as f32)).max(0.0);
        let left = self.size.get().saturating_sub(bytes.get());
        body_s / bytes.get() as f32 * left as f32
    }
}

/// The pieces that may move, the one that needs longest first, and seconds until the next of the others would be late. Of those on time only slow
/// peers that are known can be given up, and only besides strangers another is asked.
pub(crate) fn slow(
    pieces: &[Piece],
    expected: &[Expected],
    work: &Work,
    recourse: Recourse,
    now: Time,
) -> (Vec<Slow>, Option<f32>) {
    let is_ending = work.ranges.is_none_or(|ranges| ranges == 0);
    let mut slow = Vec::new();
    let mut next_s: Option<f32> = None;
    for (at, (piece, expected)) in pieces.iter().zip(expected).enumerate() {
        // To ask another as well charges nobody, and the record of one that is known has its lost packets in it.
        let grace_s = if recourse == Recourse::Duplicate && expected.is_measured { 0.0 } else { RTO_S };
        let left_s = expected.due_s + grace_s - piece.elapsed_s(now);
        let is_late = left_s <= 0.0;
        if !is_late {
            next_s = Some(next_s.map_or(left_s, |next| next.min(left_s)));
        }
        // What a stranger on time would have shown is lost with it; one that is known needs no second opinion.
        let may_move = match recourse {
            Recourse::GiveUp => is_late || (is_ending && expected.is_measured),
            // While there is other work a second request for the same is the dearer one.
            Recourse::Duplicate => is_ending && (is_late || !expected.is_measured),
        };
        if piece.holders < HOLDERS_MAX && may_move {
            let remaining_s = match is_late {
                true => piece.remaining_s(expected, now),
                false => expected.due_s - piece.elapsed_s(now),
            };
            slow.push(Slow { piece: at, remaining_s, is_late });
        }
    }
    slow.sort_by(|a, b| b.remaining_s.total_cmp(&a.remaining_s).then(a.piece.cmp(&b.piece)));
    (slow, next_s)
}

/// Whether a peer has a piece that is late.
pub(crate) fn is_late(pieces: &[Piece], slow: &[Slow], slot: Slot) -> bool {
    slow.iter().any(|one| one.is_late && pieces[one.piece].slot == slot)
}

/// Since when all of those that are late have been so for as long as a piece takes: what came after that was asked for meanwhile.
pub(crate) fn late_since(pieces: &[Piece], expected: &[Expected], slow: &[Slow], now: Time) -> Time {
    let late = slow.iter().filter(|one| one.is_late).map(|one| one.piece);
    let over_s = late
        .map(|at| pieces[at].elapsed_s(now) - expected[at].due_s - expected[at].usual_s)
        .fold(f32::INFINITY, f32::min);
    // A cast from a float saturates; without any the time is now.
    let over_us = if over_s.is_finite() { (f64::from(over_s) * 1e6) as u64 } else { 0 };
    Time::from_micros(now.as_micros().saturating_sub(over_us))
}

/// Whether most of those under way are late together: then it is not their doing (AUD-7). Strangers say nothing: how fast they are is not known.
pub(crate) fn is_common(pieces: &[Piece], expected: &[Expected], slow: &[Slow]) -> bool {
    let count = |slots: &mut dyn Iterator<Item = Slot>| {
        let mut slots: Vec<Slot> = slots.collect();
        slots.sort_unstable();
        slots.dedup();
        slots.len() as u32
    };
    let known = |at: &usize| expected[*at].is_measured;
    let all = count(&mut (0..pieces.len()).filter(known).map(|at| pieces[at].slot));
    let late = slow.iter().filter(|one| one.is_late);
    let late = count(&mut late.map(|late| late.piece).filter(known).map(|at| pieces[at].slot));
    is_quorum(late, all)
}

/// Seconds that what nobody was asked for yet takes those that are not late; none where the host has no slot left, as a slow peer holds up others then.
pub(crate) fn rest_s(pieces: &[Piece], expected: &[Expected], slow: &[Slow], work: &Work) -> f32 {
    let ranges = work.ranges.unwrap_or(0);
    if ranges == 0 || work.wanted == Some(0) {
        return 0.0;
    }
    let mut seen: Vec<Slot> = Vec::new();
    let mut pace = 0.0;
    for (piece, expected) in pieces.iter().zip(expected) {
        if !is_late(pieces, slow, piece.slot) && !seen.contains(&piece.slot) {
            seen.push(piece.slot);
            pace += expected.pace;
        }
    }
    if pace > 0.0 { work.range.get() as f32 * ranges as f32 / pace } else { 0.0 }
}

/// Which of the pieces move, and to whom. `rest_s` seconds go by before the work could end without them. Also the seconds until one that is on time has waited for long
/// enough.
pub(crate) fn moves(
    pieces: &[Piece],
    slow: &[Slow],
    quotes: &[Quote],
    rest_s: f32,
    now: Time,
    into: &mut Vec<Move>,
) -> Option<f32> {
    let fit = |quote: &&Quote| is_admissible(quote) && !is_late(pieces, slow, quote.slot);
    // A stranger is better than one that is late only where nobody else is known.
    let takes_strangers = !quotes.iter().filter(fit).any(|quote| quote.is_proven());
    let may_take = |quote: &&Quote| quote.room > 0 && (quote.is_proven() || (takes_strangers && quote.in_flight == 0));
    let mut others: Vec<(f32, u32, &Quote)> =
        quotes.iter().filter(fit).filter(may_take).map(|quote| (quote.tail_s, quote.room, quote)).collect();
    let mut wait_s: Option<f32> = None;
    for one in slow.iter().filter(|one| one.remaining_s > rest_s) {
        let piece = &pieces[one.piece];
        let best = others.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0).then(a.2.key().cmp(&b.2.key())));
        let Some((tail_s, room, quote)) = best else { break };
        let times = (1 + piece.given_up.min(GIVEN_UP_MAX)) as f32;
        let margin = times * if one.is_late { MARGIN } else { MARGIN_ON_TIME };
        if quote.slot == piece.slot || *tail_s * margin >= one.remaining_s {
            continue;
        }
        // Who asked a peer for it just now knew of the other: what is on time is looked at once as much was spent on it as the other needs.
        let left_s = times * *tail_s - piece.elapsed_s(now);
        if !one.is_late && left_s > 0.0 {
            wait_s = Some(wait_s.map_or(left_s, |wait| wait.min(left_s)));
            continue;
        }
        into.push(Move {
            piece: one.piece,
            to: quote.slot,
            remaining_s: one.remaining_s,
            instead_s: *tail_s,
            is_late: one.is_late,
        });
        *tail_s += piece.size.get() as f32 / quote.pace.max(1.0);
        *room -= 1;
        others.retain(|(_, room, _)| *room > 0);
    }
    wait_s
}

/// When to look again: when the next piece would be late, one that moves should have come from elsewhere, or a late one has grown later by a good part.
pub(crate) fn look_again(
    pieces: &[Piece],
    slow: &[Slow],
    moved: &[Move],
    next_s: Option<f32>,
    now: Time,
) -> Option<Span> {
    let waits = slow.iter().filter(|one| one.is_late && !moved.iter().any(|moved| moved.piece == one.piece));
    let waits = waits.map(|late| pieces[late.piece].elapsed_s(now) * AGAIN);
    let again_s = waits.chain(next_s).chain(moved.iter().map(|moved| moved.instead_s)).reduce(f32::min)?;
    // A cast from a float saturates.
    Some(Span::from_micros((f64::from(again_s) * 1e6) as u64).max(AGAIN_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::quote::Class;
    use crate::seed::Seed;
    use crate::table::Table;

    fn slots(count: usize) -> Vec<Slot> {
        let mut table = Table::<usize, u8>::new(count, Seed::new(0));
        (0..count).map(|at| table.admit(at).slot().unwrap()).collect()
    }

    const NOW: Time = Time::from_secs(100);

    fn piece(slot: Slot, elapsed_s: u64, progress: Option<(u64, u64)>) -> Piece {
        let progress = progress.map(|(bytes, first_ms)| Progress {
            bytes: Bytes::new(bytes),
            first_byte: (bytes > 0).then(|| Span::from_millis(first_ms)),
        });
        Piece {
            slot,
            size: Bytes::new(1_000_000),
            sent: Time::from_secs(100 - elapsed_s),
            progress,
            holders: 1,
            given_up: 0,
        }
    }

    const WORK: Work = Work {
        range: Bytes::new(1_000_000),
        ranges: Some(0),
        sources: 4,
        scope: 0,
        decision: 0,
        in_flight: 1,
        wanted: None,
    };
    const EXPECTED: Expected = Expected { due_s: 1.0, usual_s: 0.5, is_measured: true, pace: 1e6 };

    fn moved(pieces: &[Piece], quotes: &[Quote], rest_s: f32) -> Vec<(usize, Slot)> {
        let (slow, _) = slow(pieces, &alloc::vec![EXPECTED; pieces.len()], &WORK, Recourse::GiveUp, NOW);
        let mut into = Vec::new();
        moves(pieces, &slow, quotes, rest_s, NOW, &mut into);
        into.iter().map(|one| (one.piece, one.to)).collect()
    }

    fn proven(slot: Slot, tail_s: f32, room: u32) -> Quote {
        Quote { basis: crate::estimate::Basis::Measured, tail_s, room, ..Quote::sample(slot) }
    }

    #[test]
    fn what_remains_is_read_from_what_came() {
        let slot = slots(1)[0];
        let remaining = |progress| piece(slot, 10, progress).remaining_s(&EXPECTED, NOW);
        assert_eq!(remaining(None), 10.0, "as long again");
        assert_eq!(remaining(Some((0, 0))), 10.5, "nothing came: as long again, and then the body");
        assert!((remaining(Some((100_000, 0))) - 90.0).abs() < 0.01);
        // AUD-4: a cold cache answers late and then at its usual rate.
        assert!((remaining(Some((500_000, 9_500))) - 0.5).abs() < 0.01);
        assert_eq!(remaining(Some((2_000_000, 0))), 0.0, "more than its size");
    }

    #[test]
    fn a_late_piece_moves_to_the_soonest_proven_peer_with_room() {
        let [a, b, c, d] = slots(4)[..] else { unreachable!() };
        let dribbled = piece(a, 10, Some((1_000, 50)));
        let quotes = [proven(a, 0.1, 4), proven(b, 0.2, 0), Quote::sample(c), proven(d, 0.5, 1)];
        assert_eq!(moved(&[dribbled], &quotes, 0.0), [(0, d)]);
        let banned = Quote { class: Class::Cooling, ..proven(d, 0.5, 1) };
        assert_eq!(moved(&[dribbled], &[quotes[0], quotes[1], quotes[2], banned], 0.0), []);
    }

    #[test]
    fn a_stranger_gets_a_late_piece_only_where_nobody_else_is_known() {
        let [a, b, c] = slots(3)[..] else { unreachable!() };
        let silent = piece(a, 10, None);
        let stranger = Quote { tail_s: 1.0, ..Quote::sample(c) };
        assert_eq!(moved(&[silent], &[proven(a, 0.1, 4), stranger], 0.0), [(0, c)]);
        assert_eq!(moved(&[silent], &[proven(b, 9.0, 0), stranger], 0.0), [], "one that is known is busy");
        assert_eq!(moved(&[silent], &[Quote { in_flight: 1, ..stranger }], 0.0), [], "it has not shown anything yet");
    }

    #[test]
    fn it_stays_where_it_is_on_time_or_nearly_there_or_ends_before_the_rest() {
        let [a, b] = slots(2)[..] else { unreachable!() };
        let quotes = [proven(b, 1.0, 4)];
        assert_eq!(moved(&[piece(a, 0, Some((0, 0)))], &quotes, 0.0), [], "not late");
        assert_eq!(moved(&[piece(a, 2, Some((700_000, 50)))], &quotes, 0.0), [], "less than a second is left");
        assert_eq!(moved(&[piece(a, 2, Some((100_000, 50)))], &quotes, 60.0), [], "the rest takes a minute");
        assert_eq!(moved(&[piece(a, 2, Some((200_000, 50)))], &quotes, 0.0), [(0, b)]);
        let again = Piece { given_up: 9, ..piece(a, 2, Some((200_000, 50))) };
        assert_eq!(moved(&[again], &quotes, 0.0), [], "it was moved nine times");
        let twice = Piece { holders: 2, ..piece(a, 9, None) };
        assert_eq!(moved(&[twice], &quotes, 0.0), [], "HEDGE-6: two have it");
        assert_eq!(moved(&[piece(a, 9, None)], &quotes, 0.0), [(0, b)]);
    }

    #[test]
    fn room_is_spent_and_the_slowest_goes_first() {
        let [a, b, c] = slots(3)[..] else { unreachable!() };
        let pieces = [piece(a, 5, Some((500_000, 0))), piece(a, 5, Some((1_000, 0)))];
        assert_eq!(moved(&pieces, &[proven(b, 0.5, 1)], 0.0), [(1, b)]);
        assert_eq!(moved(&pieces, &[proven(b, 0.5, 1), proven(c, 0.6, 1)], 0.0), [(1, b), (0, c)]);
    }

    #[test]
    fn most_of_five_late_together_are_not_to_blame() {
        let slots = slots(6);
        let common = |late_ones: usize, of: usize| {
            let pieces: Vec<Piece> =
                (0..of).map(|at| piece(slots[at], if at < late_ones { 9 } else { 0 }, None)).collect();
            let (slow, _) = slow(&pieces, &alloc::vec![EXPECTED; of], &WORK, Recourse::GiveUp, NOW);
            is_common(&pieces, &alloc::vec![EXPECTED; of], &slow)
        };
        assert!(common(3, 5) && !common(2, 5) && !common(4, 4));
        let one_peer: Vec<Piece> = (0..9).map(|_| piece(slots[0], 9, None)).collect();
        let (slow, _) = slow(&one_peer, &[EXPECTED; 9], &WORK, Recourse::GiveUp, NOW);
        assert!(!is_common(&one_peer, &[EXPECTED; 9], &slow), "one peer, however many pieces");
    }

    #[test]
    fn a_move_costs_what_it_wastes() {
        let [a, b] = slots(2)[..] else { unreachable!() };
        let held = piece(a, 10, Some((100_000, 50)));
        let cost = |is_late, remaining_s, recourse| {
            Move { piece: 0, to: b, remaining_s, instead_s: 1.0, is_late }.cost(&held, recourse).get()
        };
        assert_eq!(cost(true, 9.0, Recourse::GiveUp), 0, "it would not have come");
        assert_eq!(cost(false, 9.0, Recourse::GiveUp), 100_000);
        let costs = [0.0, 1.5, 4.0, 1e9].map(|remaining_s| cost(true, remaining_s, Recourse::Duplicate));
        assert_eq!(costs, [1_000_000, 1_000_000, 500_000, 250_000]);
    }

    #[test]
    fn together_late_beside_one_who_delivers_is_nobody_elses_fault() {
        let slots = slots(6);
        let pieces: Vec<Piece> = slots[..5].iter().map(|&slot| piece(slot, 9, None)).collect();
        let (slow, _) = slow(&pieces, &[EXPECTED; 5], &WORK, Recourse::GiveUp, NOW);
        // Due after one second, and half a second later still: what came after that was asked for meanwhile.
        assert_eq!(late_since(&pieces, &[EXPECTED; 5], &slow, NOW), Time::from_micros(92_500_000));
        assert_eq!(late_since(&pieces, &[EXPECTED; 5], &[], NOW), NOW);
    }

    #[test]
    fn the_next_look_is_when_something_may_have_changed() {
        let [a] = slots(1)[..] else { unreachable!() };
        let look = |pieces: &[Piece]| {
            let (slow, next_s) = slow(pieces, &alloc::vec![EXPECTED; pieces.len()], &WORK, Recourse::GiveUp, NOW);
            look_again(pieces, &slow, &[], next_s, NOW)
        };
        assert_eq!(look(&[]), None);
        assert_eq!(look(&[piece(a, 0, None)]), Some(Span::from_millis(1_200)), "when it would be late");
        assert_eq!(look(&[piece(a, 20, None)]), Some(Span::from_secs(5)), "a quarter later");
        let late = [piece(a, 20, None)];
        let (slow, next_s) = slow(&late, &[EXPECTED], &WORK, Recourse::GiveUp, NOW);
        let moved = Move { piece: 0, to: a, remaining_s: 20.0, instead_s: 0.5, is_late: true };
        let again = look_again(&late, &slow, &[moved], next_s, NOW);
        assert_eq!(again, Some(Span::from_millis(500)), "when it should have come from elsewhere");
        let future = Piece { sent: Time::from_secs(1_000_000), ..piece(a, 0, None) };
        assert_eq!(look(&[future]), Some(Span::from_millis(1_200)), "the clock went back");
    }
}
