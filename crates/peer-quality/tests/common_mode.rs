//! Whose fault it is when requests fail together (AUD-7): an outage of our own charges nobody, and hostile peers that fail side by side are charged.
#![allow(missing_docs)]

use peer_quality::measure::{Burst, Delivery, End, Fault};
use peer_quality::rank::Work;
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Fact, Seed, View};

const SENT: Fact = Fact::Sent { requests: 1 };

fn ended(bytes: u64, secs: u64, end: End) -> Fact {
    let first_byte = Some(Span::from_millis(50));
    Fact::Ended(Delivery { bytes: Bytes::new(bytes), elapsed: Span::from_secs(secs), first_byte, end })
}

fn late(bytes: u64) -> Fact {
    ended(bytes, 30, End::Failed(Fault::Timeout))
}

fn completed(secs: u64) -> Fact {
    ended(2_000_000, secs, End::Completed)
}

/// `peers` peers that each delivered ten times, by second 100.
fn measured(peers: u32) -> Engine<u32> {
    let mut engine = Engine::new(64, Seed::new(1));
    for second in 0..10 {
        for peer in 0..peers {
            engine.handle(peer, SENT, Time::from_secs(second * 10));
            engine.handle(peer, completed(1), Time::from_secs(second * 10 + 1));
        }
    }
    engine
}

fn view(engine: &Engine<u32>, peer: u32, at: u64) -> View {
    engine.view(engine.find(&peer).unwrap(), Time::from_secs(at))
}

/// `rounds` requests to each of the peers, 30 s each, that all end as `end`.
fn fail_together(engine: &mut Engine<u32>, peers: &[u32], rounds: u64, end: Fact) -> u64 {
    for round in 0..rounds {
        let at = 100 + 30 * round;
        for &peer in peers {
            engine.handle(peer, SENT, Time::from_secs(at));
        }
        for &peer in peers {
            engine.handle(peer, end, Time::from_secs(at + 30));
        }
    }
    100 + 30 * rounds
}

#[test]
fn in_an_outage_of_our_own_the_faster_stays_the_cheaper() {
    // The fast one has more in flight, and loses more, one after the other.
    let mut engine = measured(8);
    for second in 0..10 {
        engine.handle(0, SENT, Time::from_secs(90 + second));
        let quick = Delivery {
            bytes: Bytes::new(2_000_000),
            elapsed: Span::from_millis(200),
            first_byte: Some(Span::from_millis(50)),
            end: End::Completed,
        };
        engine.handle(0, Fact::Ended(quick), Time::from_micros((90 + second) * 1_000_000 + 200_000));
    }
    let mut at = fail_together(&mut engine, &[0, 1, 2, 3, 4, 5, 6, 7], 1, late(0));
    for _ in 0..2 {
        engine.handle(0, SENT, Time::from_secs(at));
        at += 30;
        engine.handle(0, late(0), Time::from_secs(at));
    }
    let slots: Vec<_> = engine.slots().collect();
    let work = Work {
        range: Bytes::new(2_000_000),
        ranges: Some(100),
        sources: 8,
        scope: 1,
        decision: 1,
        in_flight: 0,
        wanted: None,
    };
    let explained = engine.explain(&work, &slots, Time::from_secs(at));
    let cost = |peer: u32| explained.candidates.iter().find(|one| one.peer == peer).unwrap().cost_s;
    assert!((1..8).all(|other| cost(0) < cost(other)), "{} {}", cost(0), cost(1));
}

#[test]
fn an_outage_of_our_own_charges_nobody_however_its_requests_end() {
    let ends = [late(0), late(700_000), ended(0, 30, End::Failed(Fault::Transport)), ended(9, 30, End::Interrupted)];
    for end in ends {
        let mut engine = measured(8);
        let before: Vec<_> = (0..8).map(|peer| view(&engine, peer, 100).reliability).collect();
        let at = fail_together(&mut engine, &[0, 1, 2, 3, 4, 5, 6, 7], 3, end);
        engine.handle(0, SENT, Time::from_secs(at));
        engine.handle(0, completed(1), Time::from_secs(at + 1));
        for peer in 1..8 {
            let after = view(&engine, peer, at + 1);
            assert_eq!(after.reliability, before[peer as usize], "{end:?}");
            assert!(!after.cooling);
        }
    }
}

#[test]
fn two_slow_peers_at_the_end_of_a_transfer_are_charged() {
    // The others have nothing left to do; what the slow ones held goes to one of them.
    let mut engine = measured(8);
    let at = fail_together(&mut engine, &[0, 1], 1, late(300_000));
    engine.handle(2, SENT, Time::from_secs(at + 1));
    engine.handle(2, completed(1), Time::from_secs(at + 2));
    for peer in [0, 1] {
        assert!(view(&engine, peer, at).reliability.unwrap() < 1.0);
    }
    // And what they delivered is on record as at least this slow.
    assert!(view(&engine, 0, at).slowness > view(&engine, 2, at).slowness);
}

#[test]
fn most_peers_failing_beside_one_that_delivers_are_charged() {
    let mut engine = measured(8);
    engine.handle(7, SENT, Time::from_micros(129_500_000));
    let at = fail_together(&mut engine, &[0, 1, 2, 3, 4, 5, 6], 1, late(300_000));
    engine.handle(7, completed(1), Time::from_micros(at * 1_000_000 + 500_000));
    for peer in 0..7 {
        assert!(view(&engine, peer, at + 1).reliability.unwrap() < 1.0);
    }
}

#[test]
fn most_peers_dribbling_together_are_charged_where_the_wire_shows_it() {
    // B14: seven of eight are hostile; all but one of the requests under way run out of time, and the next request comes on time.
    let burst = Burst { gap_s: 1.0, bytes: Bytes::from_kib(20), gaps: 2, residual_variance: 0.0 };
    let after = |dribbles: bool, end: End| {
        let mut engine = measured(8);
        for peer in 0..7 {
            engine.handle(peer, SENT, Time::from_secs(100));
        }
        for peer in 0..7 {
            let at = if dribbles { 129 } else { 101 };
            engine.handle(peer, Fact::Burst(burst), Time::from_secs(at));
        }
        for peer in 0..7 {
            engine.handle(peer, ended(300_000, 30, end), Time::from_secs(130));
        }
        engine.handle(7, SENT, Time::from_secs(131));
        engine.handle(7, completed(1), Time::from_secs(132));
        (0..7).all(|peer| view(&engine, peer, 132).reliability.unwrap() < 1.0)
    };
    assert!(after(true, End::Failed(Fault::Timeout)), "their bytes came to the end");
    assert!(!after(false, End::Failed(Fault::Timeout)), "they were cut off");
    assert!(!after(true, End::Failed(Fault::Transport)), "a link that breaks delivers up to then");
}

#[test]
fn corrupt_bytes_are_never_put_back() {
    let mut engine = measured(8);
    let at = fail_together(&mut engine, &[0, 1, 2, 3, 4, 5, 6, 7], 1, late(0));
    engine.handle(3, ended(9, 1, End::Failed(Fault::Verification)), Time::from_secs(at));
    engine.handle(0, completed(1), Time::from_secs(at + 1));
    assert!(view(&engine, 3, at + 1).reliability.unwrap() < view(&engine, 4, at + 1).reliability.unwrap());
}

#[test]
fn a_crowd_that_is_slow_to_the_end_is_charged_however_many_requests_it_held() {
    // B14: the others were done within a second, and only those who dribble are left.
    let mut engine = measured(9);
    for peer in 0..9 {
        engine.handle(peer, Fact::Sent { requests: 3 }, Time::from_secs(100));
    }
    for peer in 5..9 {
        (0..3).for_each(|_| {
            engine.handle(peer, completed(1), Time::from_secs(101));
        });
    }
    for peer in 0..5 {
        (0..3).for_each(|_| {
            engine.handle(peer, late(300_000), Time::from_secs(130));
        });
    }
    // It was sent after they had failed, so it says nothing of our link while they were slow: that the others delivered does.
    engine.handle(5, SENT, Time::from_secs(131));
    engine.handle(5, completed(1), Time::from_secs(132));
    for peer in 0..5 {
        assert!(view(&engine, peer, 132).reliability.unwrap() < 1.0);
    }
}

#[test]
fn what_an_outage_held_up_charges_nobody_when_it_fails_after_it() {
    let mut engine = measured(8);
    let before = view(&engine, 3, 100).reliability;
    let at = fail_together(&mut engine, &[0, 1, 2, 3, 4, 5, 6, 7], 1, late(0));
    engine.handle(3, SENT, Time::from_secs(at));
    engine.handle(0, SENT, Time::from_secs(at + 1));
    engine.handle(0, completed(1), Time::from_secs(at + 2));
    engine.handle(3, late(0), Time::from_secs(at + 30));
    assert_eq!(view(&engine, 3, at + 30).reliability, before);
    // The next one was sent when all was well.
    engine.handle(3, SENT, Time::from_secs(at + 30));
    engine.handle(3, late(0), Time::from_secs(at + 60));
    assert!(view(&engine, 3, at + 60).reliability < before);
}
