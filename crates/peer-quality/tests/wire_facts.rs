//! What the wire adds to the engine (EST-1 … EST-7): predictions before a fetch, and nothing for hosts that do not see it.
#![allow(missing_docs)]

use peer_quality::estimate::{Basis, Sanity};
use peer_quality::measure::{Burst, Delivery, End, RoundTrip};
use peer_quality::rank::{Explained, Work};
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Fact, Seed};

const CLOSURE: Bytes = Bytes::new(12_000_000);

fn completed(bytes: Bytes, bytes_per_s: f64) -> Fact {
    Fact::Ended(Delivery {
        bytes,
        elapsed: Span::from_micros((1e5 + bytes.as_f64() / bytes_per_s * 1e6) as u64),
        first_byte: Some(Span::from_millis(100)),
        end: End::Completed,
    })
}

fn burst(bytes: u64, bytes_per_s: f64) -> Fact {
    Fact::Burst(Burst {
        gap_s: bytes as f64 / bytes_per_s,
        bytes: Bytes::new(bytes),
        gaps: 40,
        residual_variance: 1e-8,
    })
}

fn serve(engine: &mut Engine<u8>, times: std::ops::Range<usize>, peer: u8, burst: Fact, now: Time) {
    for _ in times {
        engine.handle(peer, burst, now);
    }
}

fn trip(millis: f64) -> Fact {
    Fact::RoundTrip(RoundTrip { median_s: millis * 1e-3, high_s: millis * 1.3e-3, tail_s: millis * 2e-3 })
}

fn explained(engine: &Engine<u8>, size: Bytes, now: Time) -> Vec<Explained<u8>> {
    let slots: Vec<_> = engine.slots().collect();
    let work = Work { range: size, ranges: None, sources: 1, scope: 1, decision: 1, in_flight: 0, wanted: None };
    engine.explain(&work, &slots, now).candidates
}

fn of(engine: &Engine<u8>, peer: u8, size: Bytes, now: Time) -> Explained<u8> {
    explained(engine, size, now).into_iter().find(|one| one.peer == peer).unwrap()
}

#[test]
fn before_any_fetch_covered_rates_and_distances_decide() {
    let (mut engine, now) = (Engine::new(8, Seed::new(1)), Time::from_secs(10));
    for (peer, bytes_per_s, millis) in [(0, 20e6, 80.0), (1, 2e6, 80.0), (2, 20e6, 250.0)] {
        engine.handle(peer, trip(millis), now);
        serve(&mut engine, 0..20, peer, burst(500_000, bytes_per_s), now);
    }
    let order = |size| {
        let mut all = explained(&engine, size, now);
        all.sort_by(|a, b| a.cost_s.total_cmp(&b.cost_s));
        all.iter().map(|one| one.peer).collect::<Vec<_>>()
    };
    assert_eq!(order(CLOSURE), [0, 2, 1]);
    assert_eq!(order(Bytes::new(500))[2], 2, "a small body is led by the round trip");
    let near = of(&engine, 0, CLOSURE, now);
    assert_eq!((near.basis, near.sanity, near.t_wait_s), (Basis::Predicted, Some(Sanity::Plausible), None));
    assert!(near.weight.unwrap() > 0.8 && (near.rate.unwrap() / 20e6 - 1.0).abs() < 0.01);
    assert!(near.prior_rate.unwrap() < 20e6 && near.ramp_s == Some(0.0));
}

#[test]
fn a_completed_fetch_outranks_the_claim_and_the_explanation_shows_both() {
    let (mut engine, now) = (Engine::new(8, Seed::new(1)), Time::from_secs(10));
    engine.handle(0, trip(50.0), now);
    serve(&mut engine, 0..20, 0, burst(500_000, 50e6), now);
    engine.handle(0, completed(CLOSURE, 1e5), now);
    let padder = of(&engine, 0, CLOSURE, now);
    assert_eq!(padder.basis, Basis::Measured);
    let shown = padder.wire_terms().unwrap();
    assert!(shown.contains("rate 50.000 MB/s at weight 0.8") && shown.contains("T_wait 120."), "{shown}");
    assert!(padder.body_s > 100.0 && padder.rate.unwrap() > 40e6 && padder.t_wait_s.unwrap() > 100.0);
}

#[test]
fn a_pacer_that_returns_is_never_in_the_top_third() {
    // B2, among eleven honest peers that are measured all the while.
    let mut engine = Engine::new(32, Seed::new(5));
    for second in (0..1_900).step_by(5) {
        let now = Time::from_secs(second);
        for honest in 1..12_u8 {
            engine.handle(honest, trip(60.0 + 10.0 * f64::from(honest)), now);
            engine.handle(honest, completed(Bytes::new(1_000_000), 1e6 + 2e5 * f64::from(honest)), now);
        }
        if second < 600 {
            engine.handle(0, trip(60.0), now);
            serve(&mut engine, 0..10, 0, burst(50_000, 50e6), now);
            if second % 120 == 0 {
                engine.handle(0, completed(Bytes::new(1_000_000), 1e5), now);
            }
        }
        if second >= 30 {
            let own = of(&engine, 0, CLOSURE, now);
            let better = explained(&engine, CLOSURE, now).iter().filter(|one| one.cost_s < own.cost_s).count();
            assert!(better >= 4, "{second} s: {better} peers are better");
        }
    }
}

#[test]
fn silence_makes_a_connection_cold_for_the_next_fetch_alone() {
    // B16, over an engine: 40 kB each minute at 100 ms and 10 MB/s.
    let mut engine = Engine::new(4, Seed::new(1));
    let size = Bytes::new(40_000);
    for minute in 1..40 {
        let sent = Time::from_secs(60 * minute);
        engine.handle(0, trip(100.0), sent);
        engine.handle(0, Fact::Sent { requests: 1 }, sent);
        let ended = sent + Span::from_millis(204);
        engine.handle(0, burst(40_000, 10e6), ended);
        let delivery = Delivery {
            bytes: size,
            elapsed: Span::from_millis(204),
            first_byte: Some(Span::from_millis(100)),
            end: End::Completed,
        };
        engine.handle(0, Fact::Ended(delivery), ended);
    }
    let ended = Time::from_secs(60 * 39) + Span::from_millis(204);
    let cold = of(&engine, 0, size, ended + Span::from_secs(60));
    let foretold_s = cold.first_byte_s + cold.ramp_s.unwrap() + cold.body_s;
    assert!(cold.ramp_s.unwrap() > 0.05 && (foretold_s / 0.204 - 1.0).abs() < 0.25, "{foretold_s} s: {cold:?}");
    assert_eq!(of(&engine, 0, size, ended).ramp_s, Some(0.0));
}

#[test]
fn hosts_that_do_not_see_the_wire_are_told_what_they_were_told_before() {
    let (mut engine, now) = (Engine::new(4, Seed::new(1)), Time::from_secs(10));
    engine.handle(0, completed(CLOSURE, 1e6), now);
    for at in [now, Time::from_secs(100_000)] {
        let one = of(&engine, 0, CLOSURE, at);
        assert_eq!((one.ramp_s, one.rate, one.weight, one.sanity), (None, None, None, None));
        assert_eq!((one.basis, one.t_wait_s), (Basis::Measured, Some(one.first_byte_s + one.body_s)));
    }
}

#[test]
fn facts_that_say_nothing_allocate_nothing_and_change_nothing() {
    let (mut engine, now) = (Engine::new(4, Seed::new(1)), Time::from_secs(10));
    engine.handle(0, Fact::Burst(Burst::default()), now);
    engine.handle(0, Fact::RoundTrip(RoundTrip { median_s: f64::NAN, high_s: 1.0, tail_s: 1.0 }), now);
    assert_eq!(of(&engine, 0, CLOSURE, now).weight, None);
}

#[test]
fn a_peer_that_withholds_echoes_loses_to_its_twin_until_they_come_again() {
    // B7: the bytes come, so what it delivered still decides against a slower peer.
    let (mut engine, now) = (Engine::new(8, Seed::new(1)), Time::from_secs(10));
    for (peer, bytes_per_s) in [(0, 20e6), (1, 20e6), (2, 10e6)] {
        for _ in 0..10 {
            engine.handle(peer, completed(CLOSURE, bytes_per_s), now);
        }
        engine.handle(peer, trip(80.0), now);
    }
    let cost = |engine: &Engine<u8>, peer| of(engine, peer, CLOSURE, now).cost_s;
    assert_eq!(cost(&engine, 0), cost(&engine, 1));
    engine.handle(0, Fact::EchoSilence, now);
    assert!(cost(&engine, 1) < cost(&engine, 0) && cost(&engine, 0) < cost(&engine, 2));
    engine.handle(0, trip(80.0), now);
    assert_eq!(cost(&engine, 0), cost(&engine, 1));
}
