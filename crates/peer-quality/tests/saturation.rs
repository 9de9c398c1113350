//! Saturation in closed loop (EST-10): a host that keeps as many requests in flight as recommended, over a link of known rate and delay.
#![allow(missing_docs)]

use peer_quality::measure::{Delivery, End};
use peer_quality::rank::Work;
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Fact, Seed};

const RANGE: f64 = 262_144.0;

/// A link that shares its rate fairly among the requests whose round trip is over.
struct Link {
    bytes_per_s: f64,
    round_trip_s: f64,
}

struct Request {
    sent_s: f64,
    first_byte_s: Option<f64>,
    left: f64,
}

/// Runs `requests` requests to their end; the recommended number in flight after each.
fn run(link: &Link, requests: usize) -> Vec<u32> {
    let mut engine = Engine::new(4, Seed::new(1));
    let slot = engine.admit(0_u8).slot().unwrap();
    let mut now_s: f64 = 1.0;
    let mut running: Vec<Request> = Vec::new();
    let mut limits = Vec::new();
    let at = |secs: f64| Time::from_micros((secs * 1e6) as u64);
    while limits.len() < requests {
        let limit = engine.view(slot, at(now_s)).limit as usize;
        while running.len() < limit {
            engine.handle_at(slot, Fact::Sent { requests: 1 }, at(now_s));
            running.push(Request { sent_s: now_s, first_byte_s: None, left: RANGE });
        }
        let sending = |request: &&Request| request.sent_s + link.round_trip_s <= now_s + 1e-9;
        let share = link.bytes_per_s / running.iter().filter(sending).count().max(1) as f64;
        let end_of = |request: &Request| {
            let starts = request.sent_s + link.round_trip_s;
            if starts <= now_s + 1e-9 { now_s + request.left / share } else { starts }
        };
        let next = running.iter().map(end_of).fold(f64::INFINITY, f64::min);
        for request in &mut running {
            let starts = request.sent_s + link.round_trip_s;
            if starts <= now_s + 1e-9 {
                request.first_byte_s.get_or_insert(now_s);
                request.left -= share * (next - now_s);
            }
        }
        now_s = next;
        let ended: Vec<Request> = running.extract_if(.., |request| request.left <= 1e-6).collect();
        for request in ended {
            let delivery = Delivery {
                bytes: Bytes::new(RANGE as u64),
                elapsed: Span::from_millis(((now_s - request.sent_s) * 1e3).ceil() as u64),
                first_byte: request
                    .first_byte_s
                    .map(|at| Span::from_millis(((at - request.sent_s) * 1e3).ceil() as u64)),
                end: End::Completed,
            };
            engine.handle_at(slot, Fact::Ended(delivery), at(now_s));
            limits.push(engine.view(slot, at(now_s)).limit);
        }
    }
    limits
}

fn usual(limits: &[u32]) -> u32 {
    let mut sorted = limits.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[test]
fn requests_follow_the_product_of_rate_and_delay() {
    // The least number that keeps the link busy is 1 + rate · round trip / range.
    for (bytes_per_s, round_trip_s, bounds) in [
        (2.15e6, 0.004, 1..=3),
        (3.3e6, 0.05, 1..=4),
        (24e6, 0.004, 1..=4),
        (16e6, 0.153, 6..=24),
        (7.5e6, 0.082, 2..=8),
    ] {
        let limits = run(&Link { bytes_per_s, round_trip_s }, 600);
        let settled = usual(&limits[300..]);
        assert!(bounds.contains(&settled), "{bytes_per_s} bytes/s, {round_trip_s} s: {settled}");
        assert!(limits.iter().max() <= Some(&32));
    }
}

/// A link that serves requests one after the other, to a host that comes in bursts with idle time between: each burst as large as recommended.
fn bursts(bytes_per_s: f64, count: usize) -> Vec<u32> {
    let mut engine = Engine::new(4, Seed::new(1));
    let slot = engine.admit(0_u8).slot().unwrap();
    let at = |secs: f64| Time::from_micros((secs * 1e6) as u64);
    let mut limits = Vec::new();
    for burst in 0..count {
        let start_s = 1.0 + 10.0 * burst as f64;
        let requests = engine.view(slot, at(start_s)).limit;
        engine.handle_at(slot, Fact::Sent { requests }, at(start_s));
        for nth in 1..=requests {
            let end_s = start_s + f64::from(nth) * RANGE / bytes_per_s;
            let delivery = Delivery {
                bytes: Bytes::new(RANGE as u64),
                elapsed: Span::from_micros(((end_s - start_s) * 1e6) as u64),
                first_byte: Some(Span::from_millis(3)),
                end: End::Completed,
            };
            engine.handle_at(slot, Fact::Ended(delivery), at(end_s));
        }
        limits.push(requests);
    }
    limits
}

#[test]
fn bursts_served_in_order_are_no_reason_for_larger_bursts() {
    let limits = bursts(2e6, 100);
    assert!(limits.iter().all(|&limit| limit <= 6) && usual(&limits[50..]) <= 4, "{limits:?}");
}

#[test]
fn stalls_and_slow_turns_count_although_the_best_totals_do_not_show_them() {
    // One range at a time: 0.5 s, but one in ten takes 50 s (C31); 0.1 s, and of late 5 s (B2).
    let stalls = |nth: u64| if nth % 10 == 9 { 50_000 } else { 500 };
    let turns_slow = |nth: u64| if nth < 196 { 100 } else { 5_000 };
    let cost_s = |millis: &dyn Fn(u64) -> u64| {
        let (mut engine, mut now) = (Engine::new(4, Seed::new(1)), Time::from_secs(1));
        let slot = engine.admit(0_u8).slot().unwrap();
        for nth in 0..200 {
            engine.handle_at(slot, Fact::Sent { requests: 1 }, now);
            let elapsed = Span::from_millis(millis(nth));
            now = now + elapsed;
            let first_byte = Some(Span::from_millis(10));
            let delivery = Delivery { bytes: Bytes::new(262_144), elapsed, first_byte, end: End::Completed };
            engine.handle_at(slot, Fact::Ended(delivery), now);
        }
        let range = Bytes::new(262_144);
        let work = Work { range, ranges: Some(20), sources: 1, scope: 1, decision: 1, in_flight: 0, wanted: None };
        let one = engine.explain(&work, &[slot], now).candidates[0];
        (one.cost_s, one.tail_s)
    };
    let (mean_s, tail_s) = cost_s(&stalls);
    assert!(mean_s > 2.0 && tail_s > 20.0, "{mean_s} {tail_s}");
    let (mean_s, _) = cost_s(&turns_slow);
    assert!(mean_s > 1.0, "{mean_s}");
}

#[test]
fn a_record_from_before_a_long_silence_says_nothing_against_a_slow_body() {
    // B2, as a host sees it that reports outcomes alone.
    let slower_by = |silence_s: u64| {
        let mut engine = Engine::new(4, Seed::new(1));
        let slot = engine.admit(0_u8).slot().unwrap();
        let body = |millis| {
            let elapsed = Span::from_millis(millis);
            Fact::Ended(Delivery { bytes: Bytes::new(500_000), elapsed, first_byte: None, end: End::Completed })
        };
        for second in 1..60 {
            engine.handle_at(slot, body(100), Time::from_secs(second));
        }
        let secs_per_byte =
            |engine: &Engine<u8>| engine.view(slot, Time::from_secs(9_999)).slowness.unwrap().secs_per_byte();
        let before = secs_per_byte(&engine);
        engine.handle_at(slot, body(5_000), Time::from_secs(60 + silence_s));
        secs_per_byte(&engine) / before
    };
    assert!(slower_by(1) < 5.0, "one accident: {}", slower_by(1));
    assert!(slower_by(1_200) > 20.0, "{}", slower_by(1_200));
}
