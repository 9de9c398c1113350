//! What failures say of a peer, and what they do not say of others (EST-9, RANK-1, RANK-3).
#![allow(missing_docs)]

use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::rank::{Reason, Work};
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Fact, Seed, Slot};

const RANGE: Bytes = Bytes::from_kib(1024);
const WORK: Work =
    Work { range: RANGE, ranges: Some(1), sources: 4, scope: 1, decision: 1, in_flight: 0, wanted: Some(1) };

fn engine(peers: u32) -> Engine<u32> {
    let mut engine = Engine::new(64, Seed::new(5));
    (0..peers).for_each(|peer| {
        engine.admit(peer);
    });
    engine
}

/// A request to `peer` that takes so long.
fn fetched(engine: &mut Engine<u32>, peer: u32, millis: u64, bytes: u64, end: End, now: &mut Time) {
    let elapsed = Span::from_millis(millis);
    engine.handle(peer, Fact::Sent { requests: 1 }, *now);
    *now = Time::from_micros(now.as_micros() + elapsed.as_micros());
    let first_byte = (bytes > 0).then(|| Span::from_millis(20));
    engine.handle(peer, Fact::Ended(Delivery { bytes: Bytes::new(bytes), elapsed, first_byte, end }), *now);
}

fn chosen(engine: &mut Engine<u32>, work: &Work, now: Time) -> Vec<u32> {
    let everybody: Vec<Slot> = engine.slots().collect();
    let mut advice = Vec::new();
    engine.decide(work, &everybody, now, &mut advice);
    advice.iter().map(|pick| engine.key(pick.slot)).collect()
}

#[test]
fn many_who_do_not_deliver_make_nobody_else_look_hopeless() {
    // One delivers, eight dribble until their requests are given up, four were never asked.
    let (mut engine, mut now) = (engine(13), Time::from_secs(1));
    for round in 0..3 {
        for peer in 1..9 {
            fetched(&mut engine, peer, 30_000, 5_000 + round, End::Failed(Fault::Timeout), &mut now);
            // One delivers after each of them, so that it is no outage of ours.
            fetched(&mut engine, 0, 100, RANGE.get(), End::Completed, &mut now);
        }
    }
    let stranger = engine.find(&12).unwrap();
    assert!(engine.forecast(stranger, now).mean_s(RANGE) < 1.0, "{:?}", engine.forecast(stranger, now));
    // So they are tried while there is work for a while.
    let work = Work { ranges: Some(100), wanted: Some(8), ..WORK };
    let mut tried = 0;
    for decision in 0..40 {
        let work = Work { decision, ..work };
        tried += chosen(&mut engine, &work, now).iter().filter(|peer| **peer >= 9).count();
    }
    assert!(tried >= 8, "{tried}");
}

#[test]
fn a_host_with_one_slot_meets_strangers_too() {
    let (mut engine, mut now) = (engine(3), Time::from_secs(1));
    (0..9).for_each(|_| fetched(&mut engine, 0, 100, RANGE.get(), End::Completed, &mut now));
    let mut first = Vec::new();
    for decision in 0..12 {
        // Only the first of an answer is ever asked.
        let work = Work { ranges: Some(100), decision, ..WORK };
        first.push(chosen(&mut engine, &work, now)[0]);
    }
    assert!(first.contains(&1) && first.contains(&2), "{first:?}");
    assert!(first.iter().filter(|peer| **peer == 0).count() > 6, "{first:?}");
}

#[test]
fn a_peer_whose_failures_take_long_gets_no_last_range_however_fast_it_is() {
    let (mut engine, mut now) = (engine(2), Time::from_secs(1));
    for _ in 0..20 {
        fetched(&mut engine, 0, 50, RANGE.get(), End::Completed, &mut now);
        fetched(&mut engine, 1, 2_000, RANGE.get(), End::Completed, &mut now);
    }
    let last = Work { sources: 1, ..WORK };
    assert_eq!(chosen(&mut engine, &last, now), [0]);
    // From now on one of three requests to the fast one is silent until it is given up.
    for _ in 0..8 {
        fetched(&mut engine, 0, 30_000, 0, End::Failed(Fault::Timeout), &mut now);
        fetched(&mut engine, 0, 50, RANGE.get(), End::Completed, &mut now);
        fetched(&mut engine, 0, 50, RANGE.get(), End::Completed, &mut now);
        fetched(&mut engine, 1, 2_000, RANGE.get(), End::Completed, &mut now);
    }
    assert_eq!(chosen(&mut engine, &last, now), [1]);
}

#[test]
fn a_peer_that_fails_at_once_is_still_dearer_than_one_that_does_not() {
    let (mut engine, mut now) = (engine(2), Time::from_secs(1));
    for round in 0..30 {
        for peer in 0..2 {
            fetched(&mut engine, peer, 100, RANGE.get(), End::Completed, &mut now);
        }
        if round % 2 == 0 {
            fetched(&mut engine, 0, 1, 0, End::Failed(Fault::Transport), &mut now);
        }
    }
    assert_eq!(chosen(&mut engine, &Work { sources: 1, ..WORK }, now), [1]);
}

#[test]
fn a_peer_that_cuts_every_request_off_is_no_better_than_one_that_fails_half_as_often() {
    let (mut engine, mut now) = (engine(2), Time::from_secs(1));
    for _ in 0..12 {
        fetched(&mut engine, 0, 30, RANGE.get() / 2, End::Interrupted, &mut now);
        fetched(&mut engine, 1, 400, RANGE.get(), End::Completed, &mut now);
    }
    let cutter = engine.find(&0).unwrap();
    assert!(engine.is_failing(cutter), "two in a row are a failure");
    assert!(engine.view(cutter, now).reliability.is_some_and(|share| share < 0.3));
    assert_eq!(chosen(&mut engine, &Work { sources: 1, ..WORK }, now), [1]);
}

#[test]
fn requests_that_one_cut_ended_together_are_one_incident() {
    let share = |together: bool| {
        let (mut engine, mut now) = (engine(1), Time::from_secs(1));
        (0..20).for_each(|_| fetched(&mut engine, 0, 100, RANGE.get(), End::Completed, &mut now));
        let cut = Delivery {
            bytes: Bytes::new(1_000),
            elapsed: Span::from_millis(50),
            first_byte: Some(Span::from_millis(20)),
            end: End::Interrupted,
        };
        let ended = Time::from_micros(now.as_micros() + 50_000);
        let requests = if together { 8 } else { 1 };
        engine.handle(0, Fact::Sent { requests }, now);
        (0..requests).for_each(|_| {
            engine.handle(0, Fact::Ended(cut), ended);
        });
        engine.view(engine.find(&0).unwrap(), ended).reliability.unwrap()
    };
    assert_eq!(share(true), share(false));
}

#[test]
fn where_everybody_who_is_fast_fails_those_that_did_not_fail_are_asked_first() {
    let (mut engine, mut now) = (engine(6), Time::from_secs(1));
    for _ in 0..10 {
        (0..4).for_each(|peer| fetched(&mut engine, peer, 50, RANGE.get(), End::Completed, &mut now));
        (4..6).for_each(|peer| fetched(&mut engine, peer, 4_000, RANGE.get(), End::Completed, &mut now));
    }
    // Four of them fall silent together, and are given up long before one of the others would deliver.
    let mut asked = Vec::new();
    while asked.len() < 30 && asked.last().is_none_or(|peer| *peer < 4) {
        asked.push(chosen(&mut engine, &WORK, now)[0]);
        let peer = asked[asked.len() - 1];
        if peer < 4 {
            fetched(&mut engine, peer, 900, 0, End::Failed(Fault::Timeout), &mut now);
        }
    }
    assert!(asked.len() <= 8, "until it looks like our own link: {asked:?}");
    let everybody: Vec<Slot> = engine.slots().collect();
    let reasons = engine.explain(&WORK, &everybody, now).candidates;
    assert_eq!(reasons.iter().filter(|one| one.reason == Reason::Suspect).count(), 4, "{reasons:?}");
    // One that did not fail delivers, so it was them: their charges stand, however few they are.
    fetched(&mut engine, asked[asked.len() - 1], 4_000, RANGE.get(), End::Completed, &mut now);
    let share = |peer: u32| engine.view(engine.find(&peer).unwrap(), now).reliability.unwrap();
    assert!((0..4).all(|peer| share(peer) < 0.95), "{:?}", [0, 1, 2, 3].map(share));
}

/// Eight at once at a peer of a request each two seconds, given up after `secs`; with their bytes, or silent.
fn crowd(bytes: u64, secs: u64) -> (Engine<u32>, Time) {
    let (mut engine, mut now) = (engine(2), Time::from_secs(1));
    for _ in 0..10 {
        fetched(&mut engine, 0, 2_000, RANGE.get(), End::Completed, &mut now);
        fetched(&mut engine, 1, 50, RANGE.get(), End::Completed, &mut now);
    }
    chosen(&mut engine, &WORK, now);
    engine.handle(0, Fact::Sent { requests: 8 }, now);
    now = Time::from_micros(now.as_micros() + secs * 1_000_000);
    let late = Delivery {
        bytes: Bytes::new(bytes),
        elapsed: Span::from_secs(secs),
        first_byte: (bytes > 0).then(|| Span::from_millis(20)),
        end: End::Failed(Fault::Timeout),
    };
    (0..8).for_each(|_| {
        engine.handle(0, Fact::Ended(late), now);
    });
    (engine, now)
}

#[test]
fn a_peer_given_more_than_it_can_end_in_time_is_given_less_and_not_charged() {
    let (crowded, now) = crowd(300_000, 5);
    let view = crowded.view(crowded.find(&0).unwrap(), now);
    assert_eq!((view.reliability, view.limit), (Some(1.0), 2), "two of two seconds each end within five");
    let (silent, now) = crowd(0, 5);
    assert!(silent.view(silent.find(&0).unwrap(), now).reliability.unwrap() < 1.0, "silence is no crowd");
    let (hasty, now) = crowd(60_000, 1);
    assert!(hasty.view(hasty.find(&0).unwrap(), now).reliability.unwrap() < 1.0, "one alone would be late too");
}

#[test]
fn a_peer_that_is_late_with_a_single_request_is_charged_whatever_it_brought() {
    let (mut engine, mut now) = crowd(300_000, 5);
    fetched(&mut engine, 0, 5_000, 300_000, End::Failed(Fault::Timeout), &mut now);
    assert!(engine.view(engine.find(&0).unwrap(), now).reliability.unwrap() < 1.0);
}
