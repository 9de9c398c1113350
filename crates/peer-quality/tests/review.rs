//! What an engine advises about pieces under way (HEDGE-2 to HEDGE-6).
#![allow(missing_docs)]

use peer_quality::hedge::{Move, Piece, Progress, Recourse};
use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::rank::Work;
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Fact, Seed, Slot};
use proptest::prelude::*;

const SIZE: Bytes = Bytes::new(1_000_000);
const NOW: Time = Time::from_secs(1_000);
const WORK: Work =
    Work { range: SIZE, ranges: Some(0), sources: 4, scope: 1, decision: 0, in_flight: 1, wanted: Some(4) };

fn completed(millis: u64) -> Fact {
    let first_byte = Some(Span::from_millis(20));
    Fact::Ended(Delivery { bytes: SIZE, elapsed: Span::from_millis(millis), first_byte, end: End::Completed })
}

/// Peers 0 to 3 deliver a piece in half a second each, ten times by second 100; nothing is known of peer 4.
fn engine() -> Engine<u32> {
    let mut engine = Engine::new(16, Seed::new(5));
    for round in 0..10 {
        for peer in 0..4 {
            engine.handle(peer, Fact::Sent { requests: 1 }, Time::from_secs(10 * round));
            engine.handle(peer, completed(500), Time::from_micros(10_000_000 * round + 500_000));
        }
    }
    engine.admit(4);
    engine
}

fn slot(engine: &Engine<u32>, peer: u32) -> Slot {
    engine.find(&peer).unwrap()
}

/// A piece that `peer` was asked for `millis` ago, and what came of it.
fn piece(engine: &mut Engine<u32>, peer: u32, millis: u64, bytes: Option<u64>) -> Piece {
    let sent = Time::from_micros(NOW.as_micros() - millis * 1_000);
    engine.handle(peer, Fact::Sent { requests: 1 }, sent);
    let progress =
        |bytes| Progress { bytes: Bytes::new(bytes), first_byte: (bytes > 0).then(|| Span::from_millis(20)) };
    Piece { slot: slot(engine, peer), size: SIZE, sent, progress: bytes.map(progress), holders: 1, given_up: 0 }
}

fn review(engine: &mut Engine<u32>, work: &Work, recourse: Recourse, pieces: &[Piece]) -> (Vec<Move>, Option<Span>) {
    let everybody: Vec<Slot> = engine.slots().collect();
    let mut moves = Vec::new();
    let again = engine.review(work, recourse, pieces, &everybody, NOW, &mut moves);
    (moves, again)
}

#[test]
fn a_dribbled_piece_moves_to_a_proven_peer_with_the_evidence() {
    let mut engine = engine();
    let dribbled = piece(&mut engine, 0, 5_000, Some(1_000));
    let (moves, _) = review(&mut engine, &WORK, Recourse::GiveUp, &[dribbled]);
    let [moved] = moves[..] else { panic!("{moves:?}") };
    assert!(moved.is_late && moved.piece == 0 && (1..4).contains(&engine.key(moved.to)), "{moved:?}");
    assert!(moved.remaining_s > 4_000.0 && moved.instead_s < 2.0, "{moved:?}");
}

#[test]
fn what_is_on_time_stays_and_is_looked_at_when_it_would_be_late() {
    let mut engine = engine();
    let fresh = piece(&mut engine, 0, 100, Some(0));
    let (moves, again) = review(&mut engine, &WORK, Recourse::GiveUp, &[fresh]);
    assert!(moves.is_empty());
    let again = again.unwrap();
    assert!(again >= Span::from_millis(400) && again < Span::from_secs(2), "{again:?}");
    assert_eq!(review(&mut engine, &WORK, Recourse::GiveUp, &[]), (vec![], None));
}

#[test]
fn while_other_work_takes_longer_a_late_piece_stays() {
    let mut engine = engine();
    let late = piece(&mut engine, 0, 3_000, Some(500_000));
    piece(&mut engine, 1, 100, Some(0));
    let on_time = piece(&mut engine, 1, 100, Some(0));
    let busy = Work { ranges: Some(100), ..WORK };
    let pieces = [late, on_time];
    assert!(review(&mut engine, &busy, Recourse::GiveUp, &pieces).0.is_empty(), "the rest takes longer");
    assert_eq!(review(&mut engine, &WORK, Recourse::GiveUp, &pieces).0.len(), 1, "nothing else is left");
    let full = Work { wanted: Some(0), ..busy };
    assert_eq!(review(&mut engine, &full, Recourse::GiveUp, &pieces).0.len(), 1, "it takes the place of others");
}

#[test]
fn advice_does_not_depend_on_how_often_it_is_asked_for() {
    let mut engine = engine();
    let pieces = [piece(&mut engine, 0, 5_000, Some(1_000)), piece(&mut engine, 1, 100, None)];
    let first = review(&mut engine, &WORK, Recourse::GiveUp, &pieces);
    assert!((0..100).all(|_| review(&mut engine, &WORK, Recourse::GiveUp, &pieces) == first));
}

#[test]
fn a_stranger_that_would_take_long_is_doubled_before_it_is_late_and_never_given_up() {
    let mut engine = engine();
    // It is as far as all, in front of a queue of forty.
    let waiting: Vec<Piece> = (0..40).map(|_| piece(&mut engine, 4, 1_000, None)).collect();
    let (given_up, _) = review(&mut engine, &WORK, Recourse::GiveUp, &waiting[..1]);
    assert!(given_up.is_empty(), "{given_up:?}");
    let (doubled, _) = review(&mut engine, &WORK, Recourse::Duplicate, &waiting[..1]);
    assert!(matches!(doubled[..], [Move { is_late: false, .. }]), "{doubled:?}");
    let busy = Work { ranges: Some(9), ..WORK };
    assert!(review(&mut engine, &busy, Recourse::Duplicate, &waiting).0.is_empty(), "there is other work");
}

#[test]
fn a_known_slow_peer_on_time_is_given_up_at_the_end_only_and_not_for_its_fault() {
    let mut engine = engine();
    let queue: Vec<Piece> = (0..40).map(|_| piece(&mut engine, 0, 1_000, Some(0))).collect();
    let last = [queue[39]];
    let fresh = [Piece { sent: NOW, ..last[0] }];
    let (moves, again) = review(&mut engine, &WORK, Recourse::GiveUp, &fresh);
    assert!(moves.is_empty(), "whoever asked for it just now knew of the others: {moves:?}");
    assert!(again.is_some_and(|again| again < Span::from_secs(1)), "{again:?}");
    let busy = Work { ranges: Some(1), ..WORK };
    assert!(review(&mut engine, &busy, Recourse::GiveUp, &last).0.is_empty(), "there is other work");
    let (moves, _) = review(&mut engine, &WORK, Recourse::GiveUp, &last);
    assert!(matches!(moves[..], [Move { is_late: false, .. }]), "{moves:?}");
}

#[test]
fn nothing_moves_while_our_own_link_is_full() {
    let moves = |bytes_each: u64| {
        let mut engine = engine();
        for peer in 10..18 {
            (0..5).for_each(|_| {
                engine.handle(peer, completed(500), Time::from_secs(200));
            });
        }
        let everybody: Vec<Slot> = engine.slots().collect();
        engine.decide(&WORK, &everybody, Time::from_secs(300), &mut Vec::new());
        // All run out of time together; with some bytes of each there are more than our link finishes.
        for peer in 10..18 {
            engine.handle(peer, Fact::Sent { requests: 2 }, Time::from_secs(300));
        }
        let late = Delivery {
            bytes: Bytes::new(bytes_each),
            elapsed: Span::from_secs(30),
            first_byte: None,
            end: End::Failed(Fault::Timeout),
        };
        for peer in (10..18).chain(10..18) {
            engine.handle(peer, Fact::Ended(late), Time::from_secs(330));
        }
        engine.handle(1, Fact::Sent { requests: 1 }, Time::from_secs(331));
        engine.handle(1, completed(9_000), Time::from_secs(340));
        let pieces: Vec<Piece> = (0..3).map(|_| piece(&mut engine, 0, 5_000, Some(1_000))).collect();
        review(&mut engine, &WORK, Recourse::GiveUp, &pieces).0.len()
    };
    assert_eq!((moves(300_000), moves(0)), (0, 3));
}

#[test]
fn duplicates_stay_within_their_share() {
    let mut engine = engine();
    let dribbled = piece(&mut engine, 0, 5_000, Some(1_000));
    let mut asked_twice = 0;
    for _ in 0..10_000 {
        asked_twice += review(&mut engine, &WORK, Recourse::Duplicate, &[dribbled]).0.len();
        engine.handle(1, completed(500), NOW);
    }
    // A twentieth and what the first work may cost, at a quarter each: a dribbler is hardly in the way.
    assert!((2_000..=2_128).contains(&asked_twice), "{asked_twice}");
}

#[test]
fn nothing_moves_while_the_fault_is_ours() {
    let mut engine = engine();
    let dribbled = piece(&mut engine, 0, 5_000, Some(1_000));
    let timeout = Delivery {
        bytes: Bytes::ZERO,
        elapsed: Span::from_secs(2),
        first_byte: None,
        end: End::Failed(Fault::Timeout),
    };
    // All of a quorum, and nothing came since.
    for peer in 5..10 {
        engine.handle(peer, Fact::Sent { requests: 1 }, Time::from_secs(997));
        engine.handle(peer, Fact::Ended(timeout), Time::from_secs(999));
    }
    assert!(review(&mut engine, &WORK, Recourse::GiveUp, &[dribbled]).0.is_empty());
    engine.handle(1, completed(500), NOW);
    assert_eq!(review(&mut engine, &WORK, Recourse::GiveUp, &[dribbled]).0.len(), 1);
}

#[test]
fn most_late_together_stay_unless_somebody_delivers_meanwhile() {
    let mut engine = engine();
    for peer in 10..15 {
        (0..5).for_each(|_| {
            engine.handle(peer, completed(500), Time::from_secs(200));
        });
    }
    let pieces: Vec<Piece> = (10..15).map(|peer| piece(&mut engine, peer, 9_000, Some(1_000))).collect();
    assert!(review(&mut engine, &WORK, Recourse::GiveUp, &pieces).0.is_empty(), "it may be our link");
    assert_eq!(review(&mut engine, &WORK, Recourse::Duplicate, &pieces).0.len(), 1, "one finds out");
    let mut asked = pieces.clone();
    asked[2].holders = 2;
    assert!(review(&mut engine, &WORK, Recourse::Duplicate, &asked).0.is_empty(), "it was asked to");
    engine.handle(1, completed(500), Time::from_micros(NOW.as_micros() - 1));
    assert!(!review(&mut engine, &WORK, Recourse::GiveUp, &pieces).0.is_empty(), "it is not");
}

#[test]
fn giving_up_soon_is_no_collapse() {
    // A second of silence may be one lost packet: the peer keeps most of its rate.
    let mut engine = engine();
    let slow = Delivery {
        bytes: Bytes::new(20_000),
        elapsed: Span::from_millis(900),
        first_byte: Some(Span::from_millis(20)),
        end: End::Failed(Fault::Timeout),
    };
    let rate = |engine: &Engine<u32>| engine.view(slot(engine, 0), NOW).slowness.unwrap().bytes_per_sec();
    let before = rate(&engine);
    engine.handle(0, Fact::Sent { requests: 1 }, NOW);
    engine.handle(0, Fact::Ended(slow), NOW + Span::from_millis(900));
    assert_eq!(rate(&engine), before);
}

/// Peer, size, moment of sending in microseconds, progress, holders.
type Drawn = (u32, u64, u64, Option<Progress>, u32);

fn any_piece() -> impl Strategy<Value = Drawn> {
    let count = prop_oneof![Just(0), Just(u64::MAX), 0..2_000_000_u64];
    let progress = (count.clone(), proptest::option::of(count.clone()))
        .prop_map(|(bytes, first)| Progress { bytes: Bytes::new(bytes), first_byte: first.map(Span::from_micros) });
    let sent = prop_oneof![Just(0), Just(u64::MAX), 0..2_000_000_000_u64];
    (0..5_u32, count, sent, proptest::option::of(progress), 0..4_u32)
}

proptest! {
    #[test]
    fn any_pieces_get_moves_that_can_be_made(
        drawn in proptest::collection::vec(any_piece(), 0..20),
        ranges in proptest::option::of(any::<u32>()),
        wanted in proptest::option::of(any::<u32>()),
        range in any::<u64>(),
        duplicates in any::<bool>(),
    ) {
        let mut engine = engine();
        let pieces: Vec<Piece> = drawn
            .into_iter()
            .map(|(peer, size, sent, progress, holders)| Piece {
                slot: slot(&engine, peer),
                size: Bytes::new(size),
                sent: Time::from_micros(sent),
                progress,
                holders,
                given_up: holders,
            })
            .collect();
        let work = Work { range: Bytes::new(range), ranges, wanted, ..WORK };
        let recourse = if duplicates { Recourse::Duplicate } else { Recourse::GiveUp };
        let (moves, again) = review(&mut engine, &work, recourse, &pieces);
        let mut moved = Vec::new();
        for one in moves {
            prop_assert!(one.to != pieces[one.piece].slot && pieces[one.piece].holders < 2);
            prop_assert!(one.instead_s < one.remaining_s);
            moved.push(one.piece);
        }
        moved.sort_unstable();
        prop_assert!(moved.windows(2).all(|pair| pair[0] < pair[1]), "one move for each");
        prop_assert!(again.is_none_or(|again| again > Span::ZERO));
    }
}
