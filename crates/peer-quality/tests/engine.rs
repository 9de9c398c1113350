//! The engine as a whole: repeatable, bounded, and never the worse for what it is told.
#![allow(missing_docs)]

use peer_quality::audit::Standing;
use peer_quality::estimate::{Path, population::Prior};
use peer_quality::measure::{Burst, Delivery, End, Fault, Kernel, RoundTrip};
use peer_quality::rank::{Reason, Work};
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Event, Fact, Seed};
use proptest::prelude::*;

fn delivery(bytes: u64, millis: u64, end: End) -> Fact {
    Fact::Ended(Delivery {
        bytes: Bytes::new(bytes),
        elapsed: Span::from_millis(millis),
        first_byte: Some(Span::from_millis(millis / 10)),
        end,
    })
}

fn work(sources: usize) -> Work {
    Work { range: Bytes::from_kib(256), ranges: None, sources, scope: 1, decision: 0, in_flight: 0, wanted: None }
}

#[test]
fn a_standing_that_changes_is_an_event_and_a_return_without_a_slate_wiped_clean() {
    let mut engine = Engine::new(2, Seed::new(1));
    let now = Time::from_secs(1);
    engine.handle(7_u32, delivery(0, 1, End::Failed(Fault::Verification)), now);
    engine.handle(7, delivery(0, 1, End::Failed(Fault::Verification)), now);
    let events: Vec<_> = std::iter::from_fn(|| engine.poll_event()).collect();
    let change = |from, to| Event::StandingChanged { peer: 7, from, to };
    assert_eq!(events, [change(Standing::Fine, Standing::Probation), change(Standing::Probation, Standing::Condemned)]);
    // AUD-8: eviction forgets the record, not the proof.
    (100..200).for_each(|stranger| {
        engine.admit(stranger);
    });
    assert_eq!(engine.find(&7), None);
    let slot = engine.admit(7).slot().unwrap();
    assert_eq!((engine.view(slot, now).standing, engine.view(slot, now).samples), (Standing::Condemned, 0));
}

#[test]
fn a_peer_that_is_fast_again_over_a_cold_connection_is_believed_after_two_ranges() {
    // Invariant D: a trial comes seldom, so its connection is cold each time and slow start could explain all of the wait. What it shows all the same counts in full.
    let mut engine = Engine::new(2, Seed::new(1));
    let mut now = Time::from_secs(100);
    let mut fetch = |millis: u64, idle_s: u64| {
        engine.handle(7_u32, Fact::Sent { requests: 1 }, now);
        now = now + Span::from_millis(millis);
        let (elapsed, first_byte) = (Span::from_millis(millis), Some(Span::from_millis(20)));
        let fact = Fact::Ended(Delivery { bytes: Bytes::from_kib(1024), elapsed, first_byte, end: End::Completed });
        engine.handle(7, fact, now);
        now = now + Span::from_secs(idle_s);
        let slot = engine.find(&7).unwrap();
        engine.forecast(slot, now).mean_s(Bytes::from_kib(1024))
    };
    for _ in 0..20 {
        fetch(4_000, 0);
    }
    fetch(100, 60);
    let expected_s = fetch(100, 60);
    assert!(expected_s < 0.4, "{expected_s}");
}

#[test]
fn events_nobody_polls_are_bounded() {
    let mut engine = Engine::new(1000, Seed::new(1));
    for peer in 0..1000_u32 {
        engine.handle(peer, Fact::Banned, Time::ZERO);
    }
    assert!(std::iter::from_fn(|| engine.poll_event()).count() <= 64);
}

#[test]
fn nobody_waits_for_an_end_that_cannot_come() {
    // A8: everyone is busy with other work. What has nothing in flight itself gets one request; what has can wait, and so can what has one holder.
    let mut engine = Engine::new(16, Seed::new(3));
    let now = Time::from_secs(10);
    for peer in [1_u32, 2] {
        (0..8).for_each(|_| {
            engine.handle(peer, delivery(1 << 18, 50, End::Completed), now);
        });
        engine.handle(peer, Fact::Sent { requests: 100 }, now);
    }
    let slots: Vec<_> = engine.slots().collect();
    let mut requests = |slots: &[_], in_flight| {
        let mut advice = Vec::new();
        engine.decide(&Work { ranges: Some(5), in_flight, ..work(2) }, slots, now, &mut advice);
        advice.iter().map(|pick| pick.requests).sum::<u32>()
    };
    assert_eq!([requests(&slots, 0), requests(&slots, 1), requests(&slots[..1], 0)], [1, 0, 0]);
}

#[test]
fn every_candidate_passed_over_has_a_reason() {
    let mut engine = Engine::new(16, Seed::new(3));
    let now = Time::from_secs(10);
    for (peer, millis) in [(1_u32, 50), (2, 60), (3, 5_000)] {
        (0..8).for_each(|_| {
            engine.handle(peer, delivery(1 << 18, millis, End::Completed), now);
        });
    }
    engine.handle(4, Fact::Banned, now);
    (0..3).for_each(|_| {
        engine.handle(5, delivery(0, 9, End::Failed(Fault::Timeout)), now);
    });
    engine.handle(1, Fact::Sent { requests: 100 }, now);
    let slots: Vec<_> = engine.slots().collect();
    // Ranges of this work are out, so that its next one may wait for a saturated peer.
    let explanation = engine.explain(&Work { in_flight: 1, ..work(1) }, &slots, now);
    let reason = |peer| explanation.candidates.iter().find(|one| one.peer == peer).unwrap().reason;
    assert!(matches!(reason(2), Reason::Chosen { .. }));
    assert_eq!(reason(1), Reason::Saturated);
    assert_eq!(reason(3), Reason::NotNeeded);
    assert_eq!(reason(4), Reason::Banned);
    assert!(matches!(reason(5), Reason::CoolingOff { .. }));
}

#[derive(Clone, Debug)]
enum Op {
    Handle(u8, Fact),
    Decide(usize),
    Remove(u8),
    At(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let number = || prop_oneof![3 => 0..10_000_u64, 1 => Just(0), 1 => Just(u64::MAX)];
    let ends = vec![
        End::Completed,
        End::Interrupted,
        End::Cancelled,
        End::Failed(Fault::Timeout),
        End::Failed(Fault::Unavailable),
        End::Failed(Fault::Verification),
    ];
    let ended = (number(), number(), prop::option::of(number()), prop::sample::select(ends)).prop_map(
        |(bytes, elapsed, first_byte, end)| {
            Fact::Ended(Delivery {
                bytes: Bytes::new(bytes),
                elapsed: Span::from_micros(elapsed),
                first_byte: first_byte.map(Span::from_micros),
                end,
            })
        },
    );
    let wire = (number(), number(), any::<f64>(), 0..3_u8).prop_map(|(small, large, real, kind)| match kind {
        0 => Fact::RoundTrip(RoundTrip { median_s: small as f64 * 1e-5, high_s: real, tail_s: real }),
        1 => Fact::Kernel(Kernel { rtt_s: real, congestion_window: Bytes::new(large), retransmits: small }),
        _ => Fact::Burst(Burst {
            gap_s: small as f64 * 1e-5,
            bytes: Bytes::new(large),
            gaps: small as u32,
            residual_variance: real,
        }),
    });
    let plain = prop::sample::select(vec![
        Fact::Connected,
        Fact::Disconnected,
        Fact::EchoSilence,
        Fact::Banned,
        Fact::Readmitted,
        Fact::Reached(Path::Relayed),
        Fact::Reached(Path::Direct),
        Fact::Sent { requests: 3 },
        Fact::Sent { requests: u32::MAX },
    ]);
    prop_oneof![
        6 => (0..12_u8, ended).prop_map(|(peer, fact)| Op::Handle(peer, fact)),
        3 => (0..12_u8, wire).prop_map(|(peer, fact)| Op::Handle(peer, fact)),
        3 => (0..12_u8, plain).prop_map(|(peer, fact)| Op::Handle(peer, fact)),
        3 => (0..9_usize).prop_map(Op::Decide),
        1 => (0..12_u8).prop_map(Op::Remove),
        2 => number().prop_map(Op::At),
    ]
}

proptest! {
    #[test]
    fn any_facts_leave_a_bounded_repeatable_engine(seed in any::<u64>(), ops in prop::collection::vec(op(), 1..150)) {
        let mut engines = [Engine::new(6, Seed::new(seed)), Engine::new(6, Seed::new(seed))];
        let mut now = Time::ZERO;
        for op in ops {
            let mut answers = Vec::new();
            for engine in &mut engines {
                match op {
                    Op::Handle(peer, fact) => { engine.handle(peer, fact, now); }
                    Op::Remove(peer) => { engine.remove(&peer); }
                    Op::At(micros) => now = Time::from_micros(micros),
                    Op::Decide(sources) => {
                        let slots: Vec<_> = engine.slots().collect();
                        let explained = engine.explain(&work(sources), &slots, now);
                        let mut advice = Vec::new();
                        engine.decide(&work(sources), &slots, now, &mut advice);
                        prop_assert!(advice.len() <= sources);
                        prop_assert_eq!(explained.candidates.len(), slots.len());
                        let said = explained.candidates.iter().take_while(|one| one.place.is_some());
                        prop_assert!(said.map(|one| one.peer).eq(advice.iter().map(|pick| engine.key(pick.slot))));
                        answers.push(advice);
                    }
                }
                prop_assert!(engine.len() <= 6);
            }
            prop_assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
        }
        // The population is a sum over the peers: when all have left, nothing of them remains.
        let [mut engine, _] = engines;
        for peer in 0..12_u8 {
            engine.remove(&peer);
        }
        prop_assert_eq!(engine.prior(Path::Unknown), Prior::default());
        prop_assert_eq!(engine.relayed_penalty(), 1.0);
        prop_assert_eq!(engine.in_flight(), 0);
    }
}

#[test]
fn no_place_in_the_table_is_always_first_among_equals() {
    let mut first = std::collections::BTreeMap::<u8, u32>::new();
    for seed in 0..200 {
        let mut engine = Engine::new(32, Seed::new(seed));
        let slots: Vec<_> = (0..25_u8).filter_map(|peer| engine.admit(peer).slot()).collect();
        let mut advice = Vec::new();
        engine.decide(&work(1), &slots, Time::from_secs(1), &mut advice);
        *first.entry(engine.key(advice[0].slot)).or_default() += 1;
    }
    assert!(first.len() > 15 && first.values().all(|&times| times < 30), "{first:?}");
}
