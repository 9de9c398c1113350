//! Peers that try to look better on the wire than they deliver (scenarios B1, B3, B7, B8; the weak points known of the published instrumentation).
#![allow(missing_docs)]

mod wire_peer;

use peer_quality::measure::wire::{Channel, Connection, Echo, Event, GATE_FLOOR, Reply, Stamp, State};
use peer_quality::units::{Bytes, Span, Time};
use wire_peer::{SDU, burst, connection, ms, stalls, us, warm};

/// A stream in micro-bursts of 50 kB at line rate (100 µs an SDU), with `idle_ms` of silence after each; the end.
fn micro_bursts(c: &mut Connection, rounds: u64, idle_ms: u64) -> Time {
    let mut now = ms(10_000);
    for _ in 0..rounds {
        for _ in 0..5 {
            c.on_ingress(Stamp::default(), 10_000, now);
            now = now + Span::from_micros(100);
        }
        now = now + Span::from_millis(idle_ms);
    }
    now
}

#[test]
fn an_idle_gap_pacer_earns_no_byte_across_a_gap_and_shows_stalls() {
    let mut c = warm(20);
    c.on_transfer_open(ms(10_000));
    let end = micro_bursts(&mut c, 100, 500);
    c.on_transfer_end(end);
    let summary = c.stalls(end);
    let found = burst(&mut c).unwrap();
    // Of each 50 kB the opening read never counts, nor does the gap: 40 kB in 400 µs remain, thin and fast.
    assert_eq!((found.bytes, found.gaps), (Bytes::new(100 * 40_000), 400));
    assert!((found.gap - 100.0 * 400e-6).abs() < 1e-9);
    assert!(summary.count >= 16 && summary.longest >= Span::from_millis(500), "what the rate hides, the stalls show");
}

#[test]
fn a_pacer_that_lets_its_window_go_cold_earns_nothing_at_all() {
    let mut c = warm(20);
    let end = micro_bursts(&mut c, 100, 1_100);
    c.on_timeout(end + Span::from_secs(2));
    // Only what follows the warm-up's own window counts; each later burst is a ramp.
    assert!(burst(&mut c).is_none_or(|burst| burst.bytes <= Bytes::new(40_000)));
}

#[test]
fn a_busy_filler_reads_as_slow_as_it_is() {
    // B3: the closure in micro-bursts, the silence filled with small SDUs of other replies, each with a fresh echo.
    let mut c = warm(20);
    c.on_transfer_open(ms(10_000));
    let (mut now, mut bytes) = (ms(10_000), 0_u64);
    for _ in 0..40 {
        for _ in 0..5 {
            c.on_ingress(Stamp::default(), 10_000, now);
            now = now + Span::from_micros(100);
            bytes += 10_000;
        }
        for _ in 0..25 {
            now = now + Span::from_millis(20);
            let sent = c.on_egress(Reply::Prompt, now).send;
            now = now + Span::from_micros(50);
            c.on_ingress(Stamp { send: 1, echo: sent }, 100, now);
            bytes += 100;
        }
    }
    c.on_transfer_end(now);
    let elapsed = now.since(ms(10_000)).as_secs_f64();
    let found = burst(&mut c).unwrap();
    let ratio = found.slowness().bytes_per_sec() / (bytes as f64 / elapsed);
    assert!((ratio - 1.0).abs() < 0.2, "within 20 % of the true rate: {ratio}");
    assert_eq!(c.stalls(now).count, 0);
}

#[test]
fn an_echo_holder_lengthens_its_own_round_trip_and_its_gate_alike() {
    // B7: +150 ms on every echo never trips the gate, and costs exactly 150 ms of rank.
    let run = |held_ms: u64| {
        let mut c = connection();
        for nth in 0..200 {
            let sent = c.on_egress(Reply::Prompt, ms(nth * 400)).send;
            c.on_ingress(Stamp { send: 1, echo: sent }, SDU, ms(nth * 400 + 20 + held_ms));
        }
        (c.rtt(ms(80_000)).unwrap(), c.gate())
    };
    let ((honest, near), (holder, far)) = (run(0), run(150));
    assert!(holder.median - honest.median >= Span::from_millis(148), "{honest:?} {holder:?}");
    assert!(far > near && far <= Span::from_millis(260));
}

/// A stream of one SDU a millisecond under which we send a cookie every 10 ms; `echo` chooses what comes back of the cookies sent so far.
fn stream(c: &mut Connection, millis: u64, echo: impl Fn(u64, &[u16]) -> u16) {
    let mut sent = Vec::new();
    c.on_transfer_open(ms(10_000));
    for nth in 0..millis {
        let now = ms(10_000 + nth);
        if nth % 10 == 0 {
            sent.push(c.on_egress(Reply::Prompt, now).send);
        }
        c.on_ingress(Stamp { send: 1, echo: echo(nth, &sent) }, SDU, now);
    }
}

/// The cookie an honest peer 20 ms away echoes.
fn honest(nth: u64, sent: &[u16]) -> u16 {
    nth.checked_sub(20).map_or(0, |received| sent[(received / 10) as usize])
}

#[test]
fn a_stream_with_fresh_echoes_keeps_counting() {
    let mut c = warm(20);
    stream(&mut c, 2_000, honest);
    assert_eq!((c.state(), c.running_stall(ms(12_000))), (State::Open, None));
    assert_eq!(c.live_burst().unwrap().bytes, Bytes::new(1_999 * u64::from(SDU)));
}

#[test]
fn the_gate_trips_when_echoes_stop_while_a_cookie_is_outstanding() {
    // Data keeps coming at full rate; from 500 ms on no echo matches: none, the same one again, or one that is long settled.
    let variants: [fn(u64, &[u16]) -> u16; 3] = [|_, _| 0, |_, sent| sent[48], |_, sent| sent[0]];
    for echo in variants {
        let mut c = warm(20);
        stream(&mut c, 2_000, |nth, sent| if nth < 500 { honest(nth, sent) } else { echo(nth, sent) });
        let now = ms(12_000);
        assert_eq!(c.state(), State::Starved);
        let (channel, lasted) = c.running_stall(now).unwrap();
        assert!(channel == Channel::Echo && lasted > Span::from_millis(1_400));
        assert!(c.echo_silence(now).is_some_and(|silence| silence == lasted));
        let counted = burst(&mut c).unwrap().bytes.get() / u64::from(SDU);
        let allowed = 500 + c.gate().as_millis() + 10;
        assert!((480..=allowed).contains(&counted), "{counted}: no coverage over a rotting round trip");
        // One fresh echo, and data counts again.
        let fresh = c.on_egress(Reply::Prompt, now).send;
        c.on_ingress(Stamp { send: 1, echo: fresh }, SDU, now + Span::from_millis(20));
        c.on_ingress(Stamp { send: 1, echo: fresh }, SDU, now + Span::from_millis(21));
        // Not from who names cookies long settled: that is guessing, and its hits are not believed.
        let is_back = !c.is_guessing();
        assert_eq!(is_back, c.counters().unknown == 0);
        assert_eq!((c.live_burst().is_some(), stalls(&mut c).len()), (is_back, usize::from(is_back)));
    }
}

#[test]
fn an_echoer_of_stale_cookies_keeps_its_window_and_shows_a_long_round_trip() {
    // B7 variant: the oldest outstanding instead of the freshest. It refreshes the clock, and pays in RTT.
    let mut c = warm(20);
    stream(&mut c, 5_000, |nth, sent| nth.checked_sub(400).map_or(0, |received| sent[(received / 10) as usize]));
    let rtt = c.rtt(ms(15_000)).unwrap();
    assert!(rtt.high >= Span::from_millis(395), "{rtt:?}");
}

#[test]
fn a_new_cookie_does_not_hide_a_stall() {
    // Known weakness of a burst bound to one cookie: whoever echoes a fresh one after each stall keeps its stalls out. Here the stall is counted,
    // and a gap within the gate counts whatever cookie it carries.
    let mut c = warm(20);
    c.on_transfer_open(ms(10_000));
    let mut gaps = 0;
    for nth in 0..50 {
        let sent = c.on_egress(Reply::Prompt, ms(10_000 + nth * 25)).send;
        c.on_ingress(Stamp { send: 1, echo: sent }, SDU, ms(10_000 + nth * 25 + 20));
        gaps = c.live_burst().map_or(0, |burst| burst.gaps);
    }
    assert_eq!(gaps, 49, "one burst over 50 cookies");
    let unknown = c.on_ingress(Stamp { send: 1, echo: 9 }, SDU, ms(11_270));
    assert_eq!(
        (unknown.echo, c.live_burst().unwrap().gaps),
        (Echo::Unknown, 50),
        "a peer does not choose which gaps count"
    );
}

#[test]
fn a_full_receive_buffer_does_not_look_like_a_fast_link() {
    // Ten SDUs drained by one read each 10 ms: 12.288 MB/s, not the speed of memory.
    let mut c = warm(20);
    for read in 0..100 {
        for _ in 0..10 {
            c.on_ingress(Stamp::default(), SDU, ms(10_000 + read * 10));
        }
    }
    let live = c.live_burst().unwrap();
    assert_eq!(live.gaps, 99);
    assert!((live.slowness().bytes_per_sec() / (10.0 * f64::from(SDU) / 0.01) - 1.0).abs() < 1e-9);
}

/// A guesser's numbers: no generator, so that runs are alike everywhere.
fn guess(nth: u64) -> u16 {
    (nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16
}

#[test]
fn a_one_byte_guesser_is_reported_within_two_thousand_sdus_and_moves_nothing() {
    // B8: honest echoes first, then one-byte SDUs with guesses in place of echoes, 30 cookies outstanding.
    for salt in 0..20 {
        let mut c = warm(50);
        for nth in 0..100 {
            let sent = c.on_egress(Reply::Prompt, ms(10_000 + nth * 100)).send;
            c.on_ingress(Stamp { send: 1, echo: sent }, SDU, ms(10_050 + nth * 100));
        }
        let before = c.rtt(ms(20_000)).unwrap();
        while c.poll_event().is_some() {}
        let mut reported_at = None;
        for nth in 0..65_536_u64 {
            let now = us(20_000_000 + nth * 200);
            if nth % 50 == 0 {
                c.on_egress(Reply::Prompt, now);
            }
            c.on_ingress(Stamp { send: 1, echo: guess(salt * 100_000 + nth) }, 1, now);
            while let Some(event) = c.poll_event() {
                if event == Event::EchoGuessing {
                    assert_eq!(reported_at.replace(nth), None, "told once");
                }
            }
        }
        assert!(reported_at.is_some_and(|nth| nth < 2_000), "{reported_at:?}");
        let after = c.rtt(us(20_000_000 + 65_536 * 200)).unwrap();
        assert_eq!((after.median, after.high, after.tail), (before.median, before.high, before.tail));
        assert!(c.is_guessing() && c.counters().disbelieved > 0, "hits there were");
    }
}

#[test]
fn a_guess_that_hits_below_the_floor_is_no_sample_even_before_the_report() {
    let mut c = connection();
    let floor = Span::from_millis(20);
    let facts = peer_quality::measure::wire::KernelFacts { rtt_min: Some(floor), ..Default::default() };
    c.on_kernel(facts, ms(0));
    let sent = c.on_egress(Reply::Prompt, ms(0)).send;
    assert!(matches!(c.on_ingress(Stamp { send: 1, echo: sent }, 1, ms(3)).echo, Echo::TooEarly(_)));
    assert_eq!((c.rtt(ms(3)), c.gate()), (None, GATE_FLOOR));
}

#[test]
fn a_metronomic_pacer_gains_no_trust_from_its_small_variance() {
    // Coverage is what trust is made of; the variance of a regular stream is zero and its coverage what it delivered.
    let mut c = warm(20);
    for nth in 0..=100 {
        c.on_ingress(Stamp::default(), 100, ms(10_000 + nth * 29));
    }
    let live = c.live_burst().unwrap();
    assert_eq!((live.bytes, live.standard_error().map(|se| se < 1e-9)), (Bytes::new(10_000), Some(true)));
}
