//! Address groups (RANK-3, AUD-2): many identities of one party get the share of one.
#![allow(missing_docs)]

use peer_quality::facts::AddressGroup;
use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::rank::Work;
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Fact, Seed, Slot};

const CROWD: u32 = 100;
const RANGE: Bytes = Bytes::from_kib(256);

/// Five peers of their own and a crowd of one /16.
fn engine() -> (Engine<u32>, Vec<Slot>) {
    let mut engine = Engine::new(256, Seed::new(3));
    for peer in 0..5 + CROWD {
        let group = AddressGroup::numbered(if peer < 5 { 100 + peer } else { 7 });
        engine.handle(peer, Fact::Located(group), Time::ZERO);
    }
    let slots = engine.slots().collect();
    (engine, slots)
}

fn picked(engine: &mut Engine<u32>, slots: &[Slot], decision: u64, now: Time) -> Vec<u32> {
    let mut advice = Vec::new();
    let work = Work { range: RANGE, ranges: Some(100), sources: 5, scope: 1, decision, in_flight: 0, wanted: None };
    engine.decide(&work, slots, now, &mut advice);
    advice.iter().map(|pick| engine.key(pick.slot)).collect()
}

fn end(engine: &mut Engine<u32>, peer: u32, millis: u64, end: End, now: Time) {
    let bytes = if end == End::Completed { RANGE } else { Bytes::ZERO };
    engine.handle(
        peer,
        Fact::Ended(Delivery { bytes, elapsed: Span::from_millis(millis), first_byte: None, end }),
        now,
    );
}

#[test]
fn where_nobody_is_known_a_crowd_takes_one_place() {
    let (mut engine, slots) = engine();
    let picked = picked(&mut engine, &slots, 0, Time::ZERO);
    assert!(picked.len() == 5 && picked.iter().filter(|peer| **peer >= 5).count() <= 1, "{picked:?}");
}

#[test]
fn a_crowd_that_never_delivers_gets_a_twentieth_of_the_decisions() {
    let (mut engine, slots) = engine();
    let (mut crowd, mut all) = (0, 0);
    for decision in 0..400 {
        let now = Time::from_secs(decision);
        for peer in picked(&mut engine, &slots, decision, now) {
            let result = if peer < 5 { End::Completed } else { End::Failed(Fault::Transport) };
            end(&mut engine, peer, 100, result, now);
            crowd += u32::from(peer >= 5);
            all += 1;
        }
    }
    assert!(crowd <= 400 / 20 + 3 && all > 1000, "{crowd} of {all}");
    assert!(crowd >= 10, "and it is not shut out: {crowd}");
}

#[test]
fn a_crowd_does_not_say_what_peers_are_like() {
    let (mut engine, _) = engine();
    for round in 1..5 {
        for peer in 0..5 + CROWD {
            end(&mut engine, peer, if peer < 5 { 100 } else { 20_000 }, End::Completed, Time::from_secs(round));
        }
    }
    let strangers = |engine: &mut Engine<u32>| {
        let slot = engine.admit(9999).slot().unwrap();
        f64::from(engine.forecast(slot, Time::from_secs(9)).mean_s(RANGE))
    };
    // Two votes of seven at two hundred times the time: the mean of the logarithms is 200^(2/7), not five times that of the five.
    let expected = strangers(&mut engine);
    assert!((0.2..0.8).contains(&expected), "{expected}");
    // Those who vote leave, and others of the crowd have their seats at their next end: never more than two.
    for peer in 5..50 {
        engine.remove(&peer);
    }
    for peer in 50..5 + CROWD {
        end(&mut engine, peer, 20_000, End::Completed, Time::from_secs(9));
    }
    assert!((strangers(&mut engine) / expected - 1.0).abs() < 0.2);
}

#[test]
fn who_never_delivers_takes_no_vote_from_the_rest_of_its_group() {
    let (mut engine, _) = engine();
    let now = Time::from_secs(1);
    for peer in 5..50 {
        end(&mut engine, peer, 10, End::Failed(Fault::Transport), now);
    }
    let assumed = |engine: &Engine<u32>| engine.prior(peer_quality::estimate::Path::Unknown).slowness;
    let before = assumed(&engine);
    end(&mut engine, 50, 20_000, End::Completed, now);
    assert!(assumed(&engine) > before);
}
