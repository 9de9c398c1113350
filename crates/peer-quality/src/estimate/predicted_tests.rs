// Tests of the prediction: scenarios B1, B2, B7, B13, B16 at the level of one peer, and EST-12.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::measure::{Delivery, End};
use crate::units::Span;

const SDU: u64 = 12_288;

fn secs(at: f64) -> Time {
    Time::from_micros((at * 1e6) as u64)
}

fn trip(millis: f64) -> RoundTrip {
    RoundTrip { median_s: millis * 1e-3, high_s: millis * 1.2e-3, tail_s: millis * 1.5e-3 }
}

fn steady(bytes: u64, bytes_per_s: f64) -> Burst {
    Burst {
        gap_s: bytes as f64 / bytes_per_s,
        bytes: Bytes::new(bytes),
        gaps: (bytes / SDU).max(1) as u32,
        residual_variance: 1e-9,
    }
}

fn population_s() -> f64 {
    Prior::default().slowness.secs_per_byte()
}

fn rate_of(wire: &Wire, now: f64) -> f64 {
    wire.rating(&Prior::default(), secs(now)).slowness.secs_per_byte()
}

/// A record of completed fetches of 1 MB at this rate.
fn record(bytes_per_s: f64) -> Delivered {
    let mut delivered = Delivered::default();
    for _ in 0..8 {
        let delivery = Delivery {
            bytes: Bytes::new(1_000_000),
            elapsed: Span::from_micros((0.05e6 + 1e12 / bytes_per_s) as u64),
            first_byte: Some(Span::from_millis(50)),
            end: End::Completed,
        };
        delivered.observe(&Sample::of(&delivery).unwrap(), 1.0);
    }
    delivered
}

fn feed(wire: &mut Wire, times: core::ops::Range<usize>, burst: &Burst, prior: &Prior, now: Time) {
    for _ in times {
        wire.burst(burst, None, prior, now);
    }
}

/// Bursts that a gate of `gate_s` seconds makes of arrivals of one SDU each: (when it is over, burst).
fn gated(arrivals: &[f64], gate_s: f64) -> Vec<(f64, Burst)> {
    let mut bursts = Vec::new();
    let mut open = Burst::default();
    for (nth, &at) in arrivals.iter().enumerate().skip(1) {
        let gap_s = at - arrivals[nth - 1];
        if gap_s > gate_s {
            bursts.push((arrivals[nth - 1], core::mem::take(&mut open)));
            continue;
        }
        open.gap_s += gap_s;
        open.bytes = Bytes::new(open.bytes.get() + SDU);
        open.gaps += 1;
    }
    bursts.extend(arrivals.last().map(|&last| (last, open)));
    bursts
}

#[test]
fn nothing_from_the_wire_is_the_average() {
    let (wire, prior) = (Wire::default(), Prior::default());
    let forecast = wire.forecast(&Delivered::default(), &prior, Time::from_secs(5));
    let average = Delivered::default().forecast(&prior);
    assert_eq!((forecast.basis, forecast.first_byte_s), (Basis::Prior, average.first_byte_s));
    assert!((forecast.secs_per_byte / average.secs_per_byte - 1.0).abs() < 1e-6);
    assert!((forecast.secs_per_byte_tail / average.secs_per_byte_tail - 1.0).abs() < 0.01);
}

#[test]
fn a_fresh_record_wins_outright_and_an_old_one_gives_way_to_prediction_and_average() {
    // EST-8: the record says 100 kB/s, the wire says 50 MB/s.
    let (delivered, prior) = (record(1e5), Prior::default());
    let mut wire = Wire::new(Time::ZERO);
    wire.round_trip(trip(50.0), Time::ZERO);
    feed(&mut wire, 0..20, &steady(1_000_000, 50e6), &prior, Time::ZERO);
    let at = |secs: f64| wire.forecast(&delivered, &prior, self::secs(secs));
    let measured = delivered.forecast(&prior).secs_per_byte;
    assert_eq!((at(0.0).basis, at(0.0).secs_per_byte), (Basis::Measured, measured));
    let half_life = RECORD_LIFE.as_secs_f64() * 2.0_f64.ln();
    assert_eq!(at(half_life - 1.0).basis, Basis::Measured);
    assert_eq!(at(half_life + 1.0).basis, Basis::Predicted);
    assert_eq!(at(1e6).basis, Basis::Predicted, "it did answer once: a distance is known");
    assert!((f64::from(at(1e6).secs_per_byte) / population_s() - 1.0).abs() < 1e-3);
    let passing: Vec<f32> = (0..60).map(|minute| at(60.0 * f64::from(minute)).secs_per_byte).collect();
    assert!(passing.windows(2).all(|pair| pair[1] <= pair[0] * 1.000_01), "{passing:?}");
    assert!(passing.iter().all(|&s| f64::from(s) >= population_s()), "no better than the average by claims alone");
}

#[test]
fn an_idle_gap_pacer_is_average_for_any_gate() {
    // B1: four SDUs at line rate, then half a second of silence, while we wait for the closure; ten times faster than the population within a burst.
    let line = SDU as f64 / 12.5e6;
    let arrivals: Vec<f64> = (0..240)
        .flat_map(|burst| (0..4).map(move |nth| 1.0 + f64::from(burst) * 0.5 + f64::from(nth) * line))
        .collect();
    for rtt_ms in [12.0, 50.0, 100.0, 268.0] {
        for multiple in [0.5, 1.0, 2.0, 4.0] {
            let gate_s = multiple * f64::max(0.03, 1.5 * 1.2e-3 * rtt_ms);
            let mut wire = Wire::default();
            wire.round_trip(trip(rtt_ms), secs(0.5));
            for (at, burst) in gated(&arrivals, gate_s) {
                let Some(burst) = burst.checked() else { continue };
                wire.burst(&burst, Some(secs(0.9)), &Prior::default(), secs(at));
                let ratio = rate_of(&wire, at) / population_s();
                assert!(ratio > 0.9, "gate {gate_s} s at {at} s: {ratio} of the average");
                assert!(ratio < 1.1 || gate_s > 0.49, "only silence inside a burst reads as slowness: {ratio}");
            }
        }
    }
}

#[test]
fn filling_the_silence_is_measured_as_slow() {
    // The other horn: gaps within the gate are counted.
    let arrivals: Vec<f64> = (0..2_000).map(|nth| 0.2 * f64::from(nth)).collect();
    let mut wire = Wire::default();
    for (at, burst) in gated(&arrivals, 0.3) {
        wire.burst(&burst, Some(Time::ZERO), &Prior::default(), secs(at));
    }
    let true_s = 0.2 / SDU as f64;
    assert!(rate_of(&wire, 400.0) / true_s > 0.8);
}

#[test]
fn a_persistent_pacer_banks_nothing_across_a_silence() {
    // B2: ten minutes of warmth at 50 MB/s while its closures came at 100 kB/s, then twenty minutes of silence.
    let prior = Prior::default();
    // The second delivers like the average, and claims to be far better.
    let records = [1e5, 1.25e6].map(record);
    let mut wire = Wire::default();
    wire.round_trip(trip(50.0), Time::ZERO);
    for second in 0..600 {
        wire.burst(&steady(500_000, 50e6), None, &prior, Time::from_secs(second));
        if second % 60 == 59 {
            wire.ended(Bytes::ZERO, Some(false), true, Time::from_secs(second));
        }
    }
    assert!(rate_of(&wire, 600.0) < 0.2 * population_s(), "the claim itself is warm");
    for minute in 0..120 {
        let now = Time::from_secs(600 + 60 * minute);
        for delivered in &records {
            let s = f64::from(wire.forecast(delivered, &prior, now).secs_per_byte);
            assert!(s >= 0.999 * population_s(), "minute {minute}: {s}");
        }
    }
    // And a crumb on its return does not bring the warmth back.
    let back = Time::from_secs(1_800);
    wire.burst(&steady(12_288, 50e6), None, &prior, back);
    assert!(f64::from(wire.forecast(&records[0], &prior, back).secs_per_byte) >= population_s());
    // Without any record the claim alone is nearly gone.
    assert!(rate_of(&wire, 1_800.0) > 0.6 * population_s());
}

#[test]
fn a_record_of_fetches_on_time_keeps_warmth_and_a_miss_ends_that() {
    // EST-7.
    let prior = Prior::default();
    let mut wire = Wire::default();
    feed(&mut wire, 0..200, &steady(1_000_000, 12.5e6), &prior, Time::ZERO);
    (0..100).for_each(|_| wire.ended(Bytes::ZERO, Some(true), true, Time::ZERO));
    let kept = rate_of(&wire, 1e5);
    assert!(kept < 0.4 * population_s(), "{kept}");
    wire.ended(Bytes::ZERO, Some(false), true, Time::ZERO);
    assert!((rate_of(&wire, 1e5) / population_s() - 1.0).abs() < 1e-6);
}

#[test]
fn a_far_honest_peer_earns_trust() {
    // B13: 268 ms, 2 MB closures at 2 MB/s in bursts that timeouts of a second or two cut in pieces, one fetch after the other.
    let prior = Prior { coverage_half: crate::estimate::trust::coverage_half::HALF_MAX, ..Prior::default() };
    let mut wire = Wire::default();
    wire.round_trip(trip(268.0), Time::ZERO);
    let mut now = 1.0;
    for fetch in 0..100 {
        let sent = secs(now);
        for piece in 0..2 {
            now += 0.5 + if piece == 1 && fetch % 5 == 0 { 1.5 } else { 0.3 };
            wire.burst(&steady(1_000_000, 2e6), Some(sent), &prior, secs(now));
        }
        wire.ended(Bytes::ZERO, Some(true), true, secs(now));
    }
    let rating = wire.rating(&prior, secs(now));
    assert!(rating.weight >= 0.8, "{rating:?}");
    assert!((rating.slowness.bytes_per_sec() / 2e6 - 1.0).abs() < 0.1, "{rating:?}");
    assert_eq!(rating.sanity, Sanity::Plausible);
}

#[test]
fn a_fetch_after_a_minute_of_silence_is_foretold_with_its_slow_start() {
    // B16: 40 kB, 100 ms, 10 MB/s: two round trips and the bytes.
    let prior = Prior { coverage_half: 1.0, ..Prior::default() };
    let mut wire = Wire::default();
    wire.round_trip(trip(100.0), Time::from_secs(100));
    feed(&mut wire, 0..50, &steady(1_000_000, 10e6), &prior, Time::from_secs(100));
    let size = Bytes::new(40_000);
    let at = |now| wire.forecast(&Delivered::default(), &prior, now);
    let warm_s = at(Time::from_secs(100)).mean_s(size);
    assert!((warm_s / 0.104 - 1.0).abs() < 0.05, "{warm_s}");
    let cold = at(Time::from_secs(160));
    assert!((cold.mean_s(size) / 0.204 - 1.0).abs() < 0.25 && cold.tail_s(size) > cold.mean_s(size), "{cold:?}");
    assert_eq!(cold.ramp_s(Bytes::new(14_600)), 0.0);
}

#[test]
fn slow_start_is_kept_out_of_the_record() {
    // The same 200 kB at 10 MB/s over 100 ms, cold each time: four round trips and 20 ms.
    let mut wire = Wire::default();
    wire.round_trip(trip(100.0), Time::ZERO);
    let sent = Time::from_secs(60);
    assert_eq!(wire.warmth(sent), Warmth::Cold);
    wire.sent(sent);
    let sample = Sample { first_byte_s: Some(0.1), wait_s: 0.42, bytes: Bytes::new(200_000) };
    let (body, evidence) = wire.without_ramp(&sample, Some(sent));
    let left_s = body.wait_s - 0.1;
    assert!(
        left_s > 0.2 * 0.32 - 1e-9 && left_s < 0.1,
        "a fifth of the wait for the body is never slow start: {left_s}"
    );
    assert!((evidence - left_s / 0.32).abs() < 1e-6, "what slow start explains is no evidence: {evidence}");
    assert_eq!(Wire::default().without_ramp(&sample, Some(sent)), (sample, 1.0), "no round trip, no ramp");
    assert_eq!(wire.without_ramp(&sample, None), (sample, 1.0));
}

#[test]
fn every_request_that_was_sent_before_the_window_opened_met_slow_start() {
    let mut wire = Wire::default();
    wire.round_trip(trip(100.0), Time::ZERO);
    let sample = Sample { first_byte_s: Some(0.1), wait_s: 0.42, bytes: Bytes::new(200_000) };
    let ms = |millis: u64| Time::from_micros(1_000 * millis);
    // Two at once, one a moment later; the first to end has opened the window for what is sent from then on.
    for sent in [10_000, 10_000, 10_050] {
        wire.sent(ms(sent));
    }
    wire.ended(sample.bytes, None, true, ms(10_420));
    wire.sent(ms(10_500));
    let slow_start_s = |sent| sample.wait_s - wire.without_ramp(&sample, Some(ms(sent))).0.wait_s;
    assert!(slow_start_s(10_000) > 0.2 && slow_start_s(10_050) > 0.2);
    assert_eq!(slow_start_s(10_500), 0.0);
}

#[test]
fn what_a_cold_fetch_takes_is_what_the_next_one_is_promised() {
    // B16: 40 kB over a connection that rested, two rounds of 11.5 ms; nearly all of it is slow start.
    let (prior, bytes) = (Prior::default(), Bytes::new(40_000));
    let mut wire = Wire::default();
    let mut delivered = Delivered::default();
    for minute in 1..6 {
        let sent = Time::from_secs(60 * minute);
        let ended = sent + Span::from_micros(23_500);
        wire.sent(sent);
        wire.round_trip(trip(11.5), ended);
        let sample = Sample { first_byte_s: Some(0.0115), wait_s: 0.0235, bytes };
        wire.ended(bytes, Some(true), true, ended);
        let (body, evidence) = wire.without_ramp(&sample, Some(sent));
        delivered.observe(&body, evidence as f32);
    }
    let promised_s = wire.forecast(&delivered, &prior, Time::from_secs(360)).mean_s(bytes);
    assert!((promised_s / 0.0235 - 1.0).abs() < 0.25, "{promised_s}");
}

#[test]
fn a_connection_is_warm_while_it_is_used_and_cold_when_new_or_idle() {
    let mut wire = Wire::default();
    wire.round_trip(trip(100.0), Time::ZERO);
    assert_eq!(wire.warmth(Time::ZERO), Warmth::Cold, "new");
    wire.sent(Time::ZERO);
    assert_eq!(wire.warmth(Time::ZERO), Warmth::Cold, "a request opens no window");
    wire.burst(&steady(50_000, 10e6), Some(Time::ZERO), &Prior::default(), secs(0.1));
    assert_eq!(wire.warmth(secs(0.2)), Warmth::Warm);
    assert_eq!(wire.warmth(secs(0.1 + 0.35)), Warmth::Cold, "timer of 0.3 s");
    wire.kernel(Kernel { congestion_window: Bytes::new(99), ..Kernel::default() }, secs(5.0));
    assert_eq!(wire.warmth(secs(5.5)), Warmth::Window(Bytes::new(99)));
    assert_eq!(wire.warmth(secs(7.0)), Warmth::Cold, "an old reading");
    wire.burst(&steady(50_000, 10e6), None, &Prior::default(), secs(8.0));
    wire.reconnected();
    assert_eq!(wire.warmth(secs(8.0)), Warmth::Cold);
}

#[test]
fn among_peers_of_little_coverage_distance_decides() {
    let forecast = |millis: f64| {
        let mut wire = Wire::default();
        wire.round_trip(trip(millis), Time::ZERO);
        wire.burst(&steady(SDU, 50e6), None, &Prior::default(), Time::ZERO);
        wire.forecast(&Delivered::default(), &Prior::default(), Time::ZERO)
    };
    let (near, far) = (forecast(20.0), forecast(200.0));
    assert_eq!(near.basis, Basis::Predicted);
    assert!(near.mean_s(Bytes::new(1_000)) < far.mean_s(Bytes::new(1_000)));
    assert!((near.secs_per_byte / far.secs_per_byte - 1.0).abs() < 0.01);
}

#[test]
fn an_echo_holder_only_ranks_itself_down() {
    // B7: 150 ms on every echo; the kernel sees the path, and the wait for the first byte counts all the same.
    let forecast = |millis: f64| {
        let mut wire = Wire::default();
        wire.round_trip(trip(millis), Time::ZERO);
        wire.kernel(Kernel { rtt_s: 0.05, ..Kernel::default() }, Time::ZERO);
        wire.forecast(&Delivered::default(), &Prior::default(), Time::ZERO)
    };
    let (honest, holder) = (forecast(50.0), forecast(200.0));
    for size in [1_000, 40_000, 1_000_000, 12_000_000].map(Bytes::new) {
        assert!(holder.mean_s(size) > honest.mean_s(size) + 0.1);
    }
}

#[test]
fn the_error_bar_shrinks_with_evidence() {
    let after = |bursts: usize| {
        let mut wire = Wire::default();
        feed(&mut wire, 0..bursts, &steady(200_000, 2e6), &Prior::default(), Time::ZERO);
        wire.rating(&Prior::default(), Time::ZERO).error
    };
    assert!(after(0) > after(2) && after(2) > after(20));
}

#[derive(Clone, Debug)]
enum Op {
    Burst(f64, u64, u32, f64, Option<u64>),
    RoundTrip(f64, f64, f64),
    Kernel(f64, u64),
    Sent,
    Ended(Option<bool>, bool),
    Reconnected,
    At(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let real = || prop_oneof![any::<f64>(), 0.0..10.0_f64, Just(0.0), Just(f64::INFINITY), Just(f64::NAN)];
    let count = || prop_oneof![any::<u64>(), 0..10_000_000_u64, Just(0), Just(u64::MAX)];
    prop_oneof![
        4 => (real(), count(), any::<u32>(), real(), prop::option::of(count())).prop_map(|(a, b, c, d, e)| Op::Burst(a, b, c, d, e)),
        2 => (real(), real(), real()).prop_map(|(a, b, c)| Op::RoundTrip(a, b, c)),
        1 => (real(), count()).prop_map(|(a, b)| Op::Kernel(a, b)),
        1 => Just(Op::Sent),
        1 => (any::<Option<bool>>(), any::<bool>()).prop_map(|(a, b)| Op::Ended(a, b)),
        1 => Just(Op::Reconnected),
        3 => count().prop_map(Op::At),
    ]
}

proptest! {
    #[test]
    fn any_history_leaves_a_finite_ordered_forecast(ops in prop::collection::vec(op(), 0..60), size in any::<u64>(), recorded in any::<bool>()) {
        // EST-12.
        let (prior, mut wire, mut now) = (Prior::default(), Wire::default(), Time::ZERO);
        let delivered = if recorded { record(1e6) } else { Delivered::default() };
        for op in ops {
            match op {
                Op::Burst(gap_s, bytes, gaps, residual_variance, open) => {
                    if let Some(burst) = (Burst { gap_s, bytes: Bytes::new(bytes), gaps, residual_variance }).checked() {
                        wire.burst(&burst, open.map(Time::from_micros), &prior, now);
                    }
                }
                Op::RoundTrip(median_s, high_s, tail_s) => {
                    if let Some(reading) = (RoundTrip { median_s, high_s, tail_s }).checked() {
                        wire.round_trip(reading, now);
                    }
                }
                Op::Kernel(rtt_s, window) => wire.kernel(Kernel { rtt_s, congestion_window: Bytes::new(window), retransmits: 0 }, now),
                Op::Sent => wire.sent(now),
                Op::Ended(on_time, renews) => wire.ended(Bytes::ZERO, on_time, renews, now),
                Op::Reconnected => wire.reconnected(),
                Op::At(micros) => now = Time::from_micros(micros),
            }
            let rating = wire.rating(&prior, now);
            prop_assert!((0.0..=1.0).contains(&rating.weight) && (0.0..=1.0).contains(&rating.own), "{rating:?}");
            prop_assert!(rating.error.is_finite() && rating.error >= 0.0, "{rating:?}");
            for size in [0, 1, 40_000, size].map(Bytes::new) {
                let forecast = wire.forecast(&delivered, &prior, now);
                let (mean, tail) = (forecast.mean_s(size), forecast.tail_s(size));
                prop_assert!(mean > 0.0 && tail >= mean * 0.999_99 && tail.is_finite(), "{forecast:?}");
                prop_assert!(forecast.error_s(size) >= 0.0 && forecast.error_s(size).is_finite());
                let deadline_s = wire.deadline_s(&delivered, size, Some(now), &prior, now);
                prop_assert!(deadline_s.is_finite() && deadline_s > 0.0);
            }
        }
    }
}
