//! Measurement on the wire, property by property (MEAS-1 to MEAS-9, MEAS-11), over a peer that echoes what it received last.
#![allow(missing_docs)]

mod wire_peer;

use peer_quality::measure::wire::{
    Attribution, Burst, Channel, Connection, Echo, Event, GATE_FLOOR, HOLD, KernelFacts, MAX_OUTSTANDING, Reply, Stamp,
    State,
};
use peer_quality::units::{Bytes, Span, Time};
use wire_peer::{SDU, burst, connection, ms, stalls, us, warm};

// The seven properties of the Haskell multiplexer's instrumentation, with its tolerances.

#[test]
fn a_matched_echo_is_the_round_trip() {
    for delay in [1, 2, 7, 80, 268, 499, 500] {
        let mut c = connection();
        let sent = c.on_egress(Reply::Prompt, ms(0));
        let seen = c.on_ingress(Stamp { send: 9, echo: sent.send }, SDU, ms(delay));
        assert_eq!(seen.echo, Echo::Matched(Span::from_millis(delay)), "exact where it is reported");
        let median = c.rtt_quantile(0.5, ms(delay)).unwrap().as_secs_f64();
        assert!((median / (delay as f64 * 1e-3) - 1.0).abs() <= 0.008, "{median}");
    }
}

#[test]
fn an_unknown_echo_is_no_sample() {
    let mut c = connection();
    assert_eq!(c.on_ingress(Stamp { send: 9, echo: 0 }, SDU, ms(1)).echo, Echo::Absent);
    assert_eq!(c.on_ingress(Stamp { send: 9, echo: 999 }, SDU, ms(2)).echo, Echo::Unknown);
    assert_eq!((c.rtt_quantile(0.5, ms(2)), c.rtt(ms(2))), (None, None));
    assert_eq!((c.counters().absent, c.counters().unknown, c.counters().matched), (1, 1, 0));
}

#[test]
fn the_freshest_cookie_is_echoed() {
    let mut c = connection();
    assert_eq!(c.on_egress(Reply::Prompt, ms(0)).echo, 0);
    c.on_ingress(Stamp { send: 100, echo: 0 }, SDU, ms(1));
    c.on_ingress(Stamp { send: 200, echo: 0 }, SDU, ms(2));
    c.on_ingress(Stamp { send: 0, echo: 0 }, SDU, ms(3));
    assert_eq!(c.on_egress(Reply::Prompt, ms(4)).echo, 200);
}

#[test]
fn a_match_drops_older_cookies() {
    let mut c = connection();
    let older = c.on_egress(Reply::Prompt, ms(0)).send;
    let newer = c.on_egress(Reply::Prompt, ms(10)).send;
    assert!(matches!(c.on_ingress(Stamp { send: 1, echo: newer }, SDU, ms(50)).echo, Echo::Matched(_)));
    assert_eq!(c.on_ingress(Stamp { send: 1, echo: older }, SDU, ms(51)).echo, Echo::Unknown);
    assert_eq!(c.outstanding(), 0);
}

#[test]
fn a_cookie_is_reused_within_a_millisecond() {
    let mut c = connection();
    let first = c.on_egress(Reply::Prompt, us(0)).send;
    assert_eq!(c.on_egress(Reply::Prompt, us(100)).send, first);
    assert_eq!(c.on_egress(Reply::Prompt, us(999)).send, first);
    let next = c.on_egress(Reply::Prompt, us(1_000)).send;
    assert!(next != first && next != 0);
    assert!(matches!(c.on_ingress(Stamp { send: 1, echo: first }, SDU, ms(20)).echo, Echo::Matched(_)));
    assert_eq!(c.on_ingress(Stamp { send: 1, echo: first }, SDU, ms(21)).echo, Echo::Repeated);
}

#[test]
fn gaps_of_a_burst_are_reported() {
    let mut c = warm(20);
    let at = |extra: u64| us(10_000_000 + extra);
    let gaps = [0, 1_000, 3_000, 3_000].map(|extra| c.on_ingress(Stamp::default(), SDU, at(extra)).gap);
    let expected = [None, Some(1_000), Some(2_000), Some(0)].map(|gap| gap.map(Span::from_micros));
    assert_eq!(gaps, expected, "the read that opens has none, the second SDU of one read adds none");
}

#[test]
fn a_burst_ends_by_silence_and_not_by_age() {
    let mut c = warm(20);
    let from = 10_000;
    // Two seconds of one SDU in 10 ms: one burst, where a fixed age of 1 s would have cut it.
    for nth in 0..=200 {
        c.on_ingress(Stamp::default(), SDU, ms(from + 10 * nth));
    }
    assert_eq!(c.live_burst().unwrap().gaps, 200);
    c.on_ingress(Stamp::default(), SDU, ms(from + 2_000) + c.gate());
    assert_eq!(c.live_burst().unwrap().gaps, 201, "at the gate it still extends");
    c.on_ingress(Stamp::default(), SDU, ms(from + 2_001) + c.gate() + c.gate());
    assert_eq!(c.live_burst(), None, "beyond it a new window opens");
    assert_eq!(burst(&mut c).unwrap().gaps, 201);
}

// Cookies.

#[test]
fn cookies_are_nonzero_distinct_and_bounded() {
    let mut c = connection();
    let mut seen = std::collections::BTreeSet::new();
    for nth in 0..MAX_OUTSTANDING as u64 {
        let cookie = c.on_egress(Reply::Prompt, ms(nth)).send;
        assert!(cookie != 0 && seen.insert(cookie), "never an outstanding one");
    }
    assert_eq!(c.outstanding(), MAX_OUTSTANDING);
    for nth in 0..1000 {
        c.on_egress(Reply::Prompt, ms(5_000 + nth));
    }
    assert_eq!((c.outstanding(), c.counters().evicted), (MAX_OUTSTANDING, 1000));
    c.on_timeout(ms(6_000) + HOLD);
    assert_eq!(c.outstanding(), 0);
}

#[test]
fn two_seeds_send_different_cookies_and_one_seed_the_same() {
    let cookies = |seed: u8| -> Vec<u16> {
        let mut c = wire_peer::seeded(seed);
        (0..64).map(|nth| c.on_egress(Reply::Prompt, ms(nth)).send).collect()
    };
    assert_eq!(cookies(1), cookies(1));
    let same = cookies(1).iter().zip(cookies(2)).filter(|(a, b)| **a == *b).count();
    assert!(same < 3);
}

#[test]
fn a_late_honest_echo_is_forgotten_and_no_guess() {
    // A blocking request answered after the hold, again and again: never taken for guessing.
    let mut c = connection();
    let mut now = ms(0);
    for _ in 0..50 {
        let sent = c.on_egress(Reply::Whenever, now);
        now = now + HOLD + Span::from_secs(10);
        for _ in 0..30 {
            now = now + Span::from_millis(1);
            assert_eq!(c.on_ingress(Stamp { send: 3, echo: sent.send }, SDU, now).echo, Echo::Forgotten);
        }
    }
    assert!(!c.is_guessing() && c.rtt(now).is_none());
}

#[test]
fn a_blocking_request_is_kept_out_of_the_distribution() {
    let mut c = connection();
    let mut peer_answers = |reply, sent_ms: u64, after_ms: u64| {
        let sent = c.on_egress(reply, ms(sent_ms)).send;
        c.on_ingress(Stamp { send: 1, echo: sent }, SDU, ms(sent_ms + after_ms)).echo
    };
    assert_eq!(peer_answers(Reply::Prompt, 0, 50), Echo::Matched(Span::from_millis(50)));
    assert_eq!(peer_answers(Reply::Whenever, 100, 9_000), Echo::Unsampled(Span::from_secs(9)));
    assert!(c.rtt(ms(9_100)).unwrap().tail < Span::from_millis(51));
    // One cookie for both: it is answered with the prompt one.
    let shared = c.on_egress(Reply::Whenever, us(20_000_000)).send;
    assert_eq!(c.on_egress(Reply::Prompt, us(20_000_500)).send, shared);
    let echo = c.on_ingress(Stamp { send: 1, echo: shared }, SDU, us(20_050_000)).echo;
    assert_eq!(echo, Echo::Matched(Span::from_millis(50)));
}

#[test]
fn an_echo_faster_than_the_path_is_discarded_and_counted() {
    let mut c = connection();
    c.on_kernel(KernelFacts { rtt_min: Some(Span::from_millis(20)), ..KernelFacts::default() }, ms(0));
    let sent = c.on_egress(Reply::Prompt, ms(0)).send;
    let echo = c.on_ingress(Stamp { send: 1, echo: sent }, SDU, ms(19)).echo;
    assert_eq!((echo, c.counters().too_early), (Echo::TooEarly(Span::from_millis(19)), 1));
    assert_eq!(c.rtt(ms(19)), None);
}

#[test]
fn kernel_facts_tell_holding_from_distance() {
    for (kernel_ms, echo_ms, expected) in
        [(20, 22, Attribution::Near), (20, 200, Attribution::HoldsEchoes), (260, 270, Attribution::Far)]
    {
        let mut c = connection();
        assert_eq!(c.attribution(), Attribution::Unknown, "nothing requires a kernel");
        let sent = c.on_egress(Reply::Prompt, ms(0)).send;
        c.on_ingress(Stamp { send: 1, echo: sent }, SDU, ms(echo_ms));
        c.on_kernel(KernelFacts { rtt: Span::from_millis(kernel_ms), ..KernelFacts::default() }, ms(echo_ms));
        assert_eq!(c.attribution(), expected);
    }
}

// The window.

#[test]
fn several_sdus_of_one_read_are_one_arrival() {
    let run = |per_read: u32| {
        let mut c = warm(20);
        for read in 0..50 {
            for _ in 0..per_read {
                c.on_ingress(Stamp::default(), 12_000 / per_read, ms(10_000 + read));
            }
        }
        c.on_transfer_end(ms(10_050));
        burst(&mut c).unwrap()
    };
    assert_eq!(run(1), run(10));
    assert!((run(10).slowness().bytes_per_sec() / 12e6 - 1.0).abs() < 1e-9);
}

#[test]
fn an_sdu_without_payload_carries_an_echo_and_nothing_else() {
    let mut c = warm(20);
    c.on_ingress(Stamp::default(), SDU, ms(10_000));
    let sent = c.on_egress(Reply::Prompt, ms(10_000)).send;
    let seen = c.on_ingress(Stamp { send: 1, echo: sent }, 0, ms(10_020));
    assert!(matches!(seen.echo, Echo::Matched(_)) && seen.gap.is_none());
    c.on_ingress(Stamp::default(), 65_535, ms(10_025));
    let live = c.live_burst().unwrap();
    assert_eq!((live.bytes, live.gaps), (Bytes::new(65_535), 1));
    assert!((live.gap - 0.025).abs() < 1e-12, "the empty SDU did not shorten the gap");
}

#[test]
fn a_completed_transfer_leaves_no_stall() {
    let mut c = warm(20);
    c.on_transfer_open(ms(10_000));
    for nth in 0..20 {
        c.on_ingress(Stamp::default(), SDU, ms(10_000 + nth));
    }
    c.on_transfer_end(ms(10_019));
    c.on_timeout(ms(14_000));
    assert_eq!((c.stalls(ms(14_000)).count, c.running_stall(ms(14_000))), (0, None));
    assert_eq!(burst(&mut c).unwrap().gaps, 19);
}

#[test]
fn silence_in_a_transfer_is_a_stall_and_silence_between_is_not() {
    for transfers in [0, 1] {
        let mut c = warm(20);
        for _ in 0..transfers {
            c.on_transfer_open(ms(10_000));
        }
        for nth in 0..20 {
            c.on_ingress(Stamp::default(), SDU, ms(10_000 + nth));
        }
        c.on_timeout(ms(10_400));
        assert_eq!(c.running_stall(ms(10_400)).is_some(), transfers == 1, "known while it lasts");
        c.on_ingress(Stamp::default(), SDU, ms(10_519));
        let found = stalls(&mut c);
        assert_eq!(found.len(), transfers);
        if let [stall] = found[..] {
            assert_eq!((stall.channel, stall.onset, stall.length), (Channel::Data, ms(10_019), Span::from_millis(500)));
        }
    }
}

#[test]
fn slow_start_is_neither_a_stall_nor_evidence_about_the_rate() {
    // RTT 100 ms, ten segments doubling: gaps of a round trip, then a full path of 12 MB/s.
    let mut c = connection();
    let sent = c.on_egress(Reply::Prompt, ms(0)).send;
    c.on_transfer_open(ms(100));
    c.on_ingress(Stamp { send: 1, echo: sent }, 1460, ms(100));
    let mut at = us(100_000);
    for round in 0..7_u64 {
        for segment in 0..(10 << round) {
            c.on_ingress(Stamp::default(), 1460, us(101_000 + round * 101_000 + segment * 50));
        }
        assert_eq!(c.state(), State::Ramping, "round {round}");
        at = us(101_000 + (round + 1) * 101_000);
    }
    for segment in 0..20_000_u64 {
        c.on_ingress(Stamp::default(), 1460, at + Span::from_micros(segment * 122));
    }
    let end = at + Span::from_micros(20_000 * 122);
    c.on_transfer_end(end);
    assert_eq!(c.stalls(end).count, 0);
    let rate = burst(&mut c).unwrap().slowness().bytes_per_sec();
    assert!((rate / (1460.0 / 122e-6) - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn a_fast_retransmit_stays_in_the_burst_and_a_timeout_does_not() {
    // B13: far peer, RTT 268 ms; a gap of one round trip folds into the rate, one of a second is a stall.
    for (gap_ms, is_stall) in [(268, false), (390, false), (1_200, true)] {
        let mut c = warm(268);
        c.on_transfer_open(ms(10_000));
        for nth in 0..100 {
            let lost = if nth >= 50 { gap_ms } else { 0 };
            c.on_ingress(Stamp::default(), SDU, ms(10_000 + nth + lost));
        }
        let end = ms(10_100 + gap_ms);
        c.on_transfer_end(end);
        assert_eq!(c.stalls(end).count, u32::from(is_stall), "{gap_ms}");
    }
}

#[test]
fn our_own_pause_charges_nobody() {
    // B12: the same stream with a pause of ours told by the host, beside one without.
    let run = |pause_ms: u64| -> (Burst, u32) {
        let mut c = warm(20);
        c.on_transfer_open(ms(10_000));
        let mut shift = 0;
        for nth in 0..2_000 {
            if nth == 1_000 && pause_ms > 0 {
                c.on_pause(ms(10_000 + nth), ms(10_000 + nth));
                shift = pause_ms;
                c.on_resume(ms(10_000 + nth + shift));
            }
            c.on_ingress(Stamp::default(), SDU, ms(10_000 + nth + shift));
        }
        let end = ms(12_000 + shift);
        c.on_transfer_end(end);
        (burst(&mut c).unwrap(), c.stalls(end).count)
    };
    let (without, _) = run(0);
    for pause_ms in [200, 700, 2_000] {
        let (with, stalled) = run(pause_ms);
        assert_eq!(stalled, 0);
        let ratio = with.slowness().secs_per_byte() / without.slowness().secs_per_byte();
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
        assert!(with.bytes.as_f64() > 0.9 * without.bytes.as_f64());
    }
}

#[test]
fn a_common_mode_found_afterwards_takes_back_its_stalls_and_round_trips() {
    let mut c = warm(20);
    c.on_transfer_open(ms(10_000));
    for nth in 0..20 {
        c.on_ingress(Stamp::default(), SDU, ms(10_000 + nth));
    }
    let sent = c.on_egress(Reply::Prompt, ms(10_050)).send;
    c.on_timeout(ms(10_300));
    assert!(c.running_stall(ms(10_300)).is_some());
    c.on_pause(ms(10_010), ms(10_400));
    assert_eq!(c.running_stall(ms(10_400)), None);
    c.on_resume(ms(11_000));
    let seen = c.on_ingress(Stamp { send: 1, echo: sent }, SDU, ms(11_001));
    assert!(matches!(seen.echo, Echo::Unsampled(_)));
    assert_eq!((c.stalls(ms(11_001)).count, stalls(&mut c).len()), (0, 0));
}

#[test]
fn a_stall_that_nobody_read_yet_is_taken_back_too() {
    let mut c = warm(20);
    c.on_transfer_open(ms(10_000));
    for at in [10_000, 10_001, 10_601, 10_602] {
        c.on_ingress(Stamp::default(), SDU, ms(at));
    }
    assert_eq!(c.stalls(ms(10_602)).count, 1);
    c.on_pause(ms(10_001), ms(10_602));
    c.on_resume(ms(10_602));
    assert_eq!((c.stalls(ms(10_602)).count, stalls(&mut c).len()), (0, 0));
}

#[test]
fn the_wait_before_a_reply_is_no_stall() {
    // A blocking request during which another protocol opened a window that ran out: nothing was promised yet.
    let mut c = warm(20);
    let asked = c.on_egress(Reply::Whenever, ms(10_000)).send;
    c.on_ingress(Stamp::default(), SDU, ms(10_010));
    c.on_ingress(Stamp::default(), SDU, ms(10_011));
    let now = ms(19_000);
    let echo = c.on_ingress(Stamp { send: 1, echo: asked }, SDU, now).echo;
    c.on_transfer_open(now);
    assert_eq!(echo, Echo::Unsampled(Span::from_secs(9)));
    assert_eq!((c.stalls(now).count, c.running_stall(now)), (0, None));
}

#[test]
fn a_one_way_download_asks_for_a_cookie_each_second() {
    let mut c = connection();
    assert_eq!(c.poll_timeout(), None, "nothing is waited for");
    c.on_egress(Reply::Prompt, ms(0));
    c.on_transfer_open(ms(50));
    assert!(!c.wants_cookie(ms(999)) && c.wants_cookie(ms(1_000)));
    assert_eq!(c.poll_timeout(), Some(ms(1_000)));
    c.on_timeout(ms(1_000));
    assert_ne!(c.poll_timeout(), Some(ms(1_000)), "what has passed is not named again");
    assert!(c.wants_cookie(ms(1_000)), "the advice stands");
    c.on_egress(Reply::Prompt, ms(1_001));
    assert!(!c.wants_cookie(ms(1_002)));
    c.on_transfer_end(ms(1_500));
    assert!(!c.wants_cookie(ms(60_000)));
}

#[test]
fn a_peer_without_cookies_is_measured_by_its_data() {
    let mut c = wire_peer::without_cookies();
    assert_eq!(c.on_egress(Reply::Prompt, ms(0)), Stamp::default());
    // A legacy timestamp in the header looks like two cookies.
    for nth in 0..100 {
        let micros = 77_000_000 + nth as u32 * 1_000;
        c.on_ingress(Stamp { send: (micros >> 16) as u16, echo: micros as u16 }, SDU, ms(100 + nth));
    }
    assert!(c.live_burst().is_some() && c.rtt(ms(200)).is_none() && !c.is_guessing());
    assert_eq!((c.counters().absent, c.counters().sdus()), (100, 100));
    assert_eq!(c.gate(), GATE_FLOOR);
    c.on_kernel(KernelFacts { rtt: Span::from_millis(200), ..KernelFacts::default() }, ms(200));
    assert_eq!(c.gate(), Span::from_millis(300));
}

// Clocks.

#[test]
fn a_clock_that_jumps_stops_or_goes_back_costs_no_one_anything() {
    let hours = Span::from_secs(8 * 3600);
    let mut c = warm(20);
    c.on_transfer_open(ms(10_000));
    let start = ms(10_000) + hours;
    let clock = |at: Time, c: &mut Connection| {
        for nth in 0..10 {
            let sent = c.on_egress(Reply::Prompt, at + Span::from_millis(nth));
            c.on_ingress(Stamp { send: 1, echo: sent.send }, SDU, at + Span::from_millis(nth));
        }
    };
    clock(ms(10_001), &mut c);
    clock(start, &mut c);
    assert_eq!(c.stalls(start).count, 0, "eight hours ahead: we were not running");
    clock(ms(10_500), &mut c);
    clock(ms(10_520), &mut c);
    for _ in 0..100 {
        c.on_ingress(Stamp::default(), SDU, ms(10_530));
    }
    assert_eq!(c.stalls(ms(10_530)).count, 0);
    clock(Time::MAX, &mut c);
    clock(Time::ZERO, &mut c);
    while let Some(event) = c.poll_event() {
        if let Event::Burst(burst) = event {
            assert!(burst.gap.is_finite() && burst.gap >= 0.0 && burst.residual_variance.is_finite());
        }
    }
    assert!(c.poll_timeout().is_none_or(|at| at >= Time::ZERO));
}

// Bounds.

#[test]
fn state_stays_within_its_bounds() {
    let mut c = warm(50);
    for nth in 0..200_000_u64 {
        // An SDU each millisecond, jitter of ±25 %, up to 50 cookies outstanding.
        let sent = c.on_egress(Reply::Prompt, ms(20_000 + nth));
        let jitter = Span::from_micros((nth * 7919) % 25_000);
        if nth % 50 == 0 {
            c.on_ingress(Stamp { send: 1, echo: sent.send }, SDU, ms(20_000 + nth) + jitter);
        }
    }
    assert!(c.state_bytes() <= 24 * 1024, "{}", c.state_bytes());
    for nth in 0..10_000 {
        c.on_egress(Reply::Prompt, ms(300_000 + nth));
    }
    assert_eq!(c.outstanding(), MAX_OUTSTANDING);
    assert!(c.state_bytes() <= 96 * 1024, "{}", c.state_bytes());
    println!("state at the cookie cap: {} bytes", c.state_bytes());
    c.on_timeout(ms(400_000));
    assert!(c.state_bytes() <= 24 * 1024, "given back: {}", c.state_bytes());
    println!("state in normal use: {} bytes", c.state_bytes());
}
