//! What a client sees that measures on the wire (LAB-1, LAB-2): when SDUs are read, what they echo, and what acts on the wire look like through the engine's wire layer.

mod common;

use common::{Ledger, Looker, group, looked, world};
use peer_quality::measure::wire::{Burst, Event};
use peer_quality::units::Bytes;
use peerq_lab::model::{Behaviour, Client, PeerGroup, Range, Wire, Workload, World};
use peerq_lab::plan;
use peerq_lab::policy::{PolicyKind, engine_gated};
use peerq_lab::report::{self, Selection};
use peerq_lab::sim::{self, Fact};

const SDU: u64 = 12_288;

/// One fetch after the other from one peer.
fn fetches(requests: u32, range_bytes: u64) -> Workload {
    let range_timeout_s = 10_000.0;
    Workload::Downloads { requests, ranges: 1, range_bytes, sources: 1, in_flight: 1, pause_s: 0.0, range_timeout_s }
}

fn alone(peer: PeerGroup, workload: &Workload) -> Looker {
    looked(&world(vec![peer]), workload, 1)
}

fn on_wire(wire: Wire, rate: f64, rtt_ms: f64) -> PeerGroup {
    PeerGroup { wire: Some(wire), ..group("it", 1, rate, rtt_ms) }
}

fn median_ms(looker: &mut Looker) -> f64 {
    let (connection, now) = looker.connection();
    connection.rtt(now).expect("echoes matched").median.as_secs_f64() * 1e3
}

/// All bursts together.
fn total(looker: &Looker) -> Burst {
    let bursts =
        looker.events.iter().filter_map(|event| if let Event::Burst(burst) = event { Some(burst) } else { None });
    bursts.fold(Burst::default(), |sum, one| Burst {
        gap: sum.gap + one.gap,
        bytes: Bytes::new(sum.bytes.get() + one.bytes.get()),
        gaps: sum.gaps + one.gaps,
        residual_variance: 0.0,
    })
}

fn rate(burst: &Burst) -> f64 {
    burst.slowness().bytes_per_sec()
}

#[test]
fn sdus_of_a_constant_rate_are_read_at_even_moments() {
    // The first window covers the path, so the rate is constant from the first byte on.
    let looker = alone(group("it", 1, 1e6, 10.0), &fetches(1, 100_000));
    assert_eq!(looker.reads.len(), 9);
    for (nth, (at_s, payload)) in (1..).zip(&looker.reads) {
        let end = (nth * SDU).min(100_000);
        assert_eq!(u64::from(*payload), end - (nth - 1) * SDU);
        assert!((at_s - (0.01 + end as f64 / 1e6)).abs() < 3e-6, "{nth}: {at_s}");
    }
}

#[test]
fn in_slow_start_sdus_wait_for_the_rounds_that_bring_their_last_bytes() {
    let looker = alone(group("it", 1, 1e9, 100.0), &fetches(1, 300_000));
    for (nth, (at_s, _)) in (1..).zip(&looker.reads) {
        let end = (nth * SDU).min(300_000) as f64;
        let (mut sent, mut window, mut round_s) = (0.0, 14_600.0, 0.1);
        while sent + window < end {
            (sent, window, round_s) = (sent + window, 2.0 * window, round_s + 0.1);
        }
        assert!((at_s - (round_s + (end - sent) / 1e9)).abs() < 3e-6, "{nth}: {at_s}");
    }
}

#[test]
fn after_a_stall_the_rest_is_read_later_by_its_length() {
    let stalls = PeerGroup { behaviour: Behaviour::Stalls { share: 1.0, for_s: 0.15 }, ..group("it", 1, 1e6, 10.0) };
    let (stalled, smooth) =
        (alone(stalls, &fetches(1, 100_000)), alone(group("it", 1, 1e6, 10.0), &fetches(1, 100_000)));
    for ((at_s, _), (usual_s, _)) in stalled.reads.iter().zip(&smooth.reads) {
        let expected_s = if *usual_s <= 0.01 + 0.05 { *usual_s } else { usual_s + 0.15 };
        assert!((at_s - expected_s).abs() < 1e-5, "{at_s} for {expected_s}");
    }
}

#[test]
fn echoes_time_the_path() {
    for rtt_ms in [12.0, 80.0, 268.0] {
        let peer = PeerGroup { jitter: 0.1, ..group("it", 1, 30e6, rtt_ms) };
        let mut looker = alone(peer, &fetches(200, 200_000));
        let median_ms = median_ms(&mut looker);
        assert!((median_ms / rtt_ms - 1.0).abs() < 0.06, "{median_ms} for {rtt_ms}");
        let (connection, _) = looker.connection();
        let counters = connection.counters();
        assert_eq!((counters.unknown, counters.forgotten, counters.absent), (0, 0, 0), "honest");
    }
}

#[test]
fn a_long_download_gets_a_cookie_a_second_and_so_a_round_trip() {
    let mut looker = alone(group("it", 1, 1e6, 50.0), &fetches(1, 10_000_000));
    let (connection, _) = looker.connection();
    let matched = connection.counters().matched;
    assert!((9..=11).contains(&matched), "{matched}");
    // An SDU takes 12 ms at this rate, and the echo waits for the next one.
    let median_ms = median_ms(&mut looker);
    assert!((50.0..=75.0).contains(&median_ms), "{median_ms}");
}

#[test]
fn the_rate_that_bursts_show_is_that_of_the_link() {
    let looker = alone(group("it", 1, 20e6, 50.0), &fetches(3, 12_000_000));
    let burst = total(&looker);
    assert!((rate(&burst) / 20e6 - 1.0).abs() < 0.03 && burst.bytes.get() > 20_000_000, "{burst:?}");
}

#[test]
fn a_pause_of_ours_is_one_read_and_no_stall() {
    let client = Client { pause_every_s: 0.5, pause_s: Some(Range::Fixed(0.3)), ..Client::default() };
    let paused = World { client, ..world(vec![group("it", 1, 1e6, 50.0)]) };
    let looker = looked(&paused, &fetches(1, 5_000_000), 4);
    let mut at_once = std::collections::BTreeMap::new();
    for (at_s, payload) in &looker.reads {
        *at_once.entry((at_s * 1e6) as u64).or_insert(0) += u64::from(*payload);
    }
    let pauses = at_once.values().filter(|bytes| **bytes > 200_000).count();
    assert!(pauses >= 3, "0.3 s of 1 MB/s waited: {at_once:?}");
    assert!(!looker.events.iter().any(|event| matches!(event, Event::Stall(_))), "{:?}", looker.events);
    let burst = total(&looker);
    assert!((rate(&burst) / 1e6 - 1.0).abs() < 0.05, "{burst:?}");
}

/// B7.
#[test]
fn held_echoes_lengthen_the_round_trip_by_as_much() {
    let mut looker = alone(on_wire(Wire::HoldsEchoes { by_ms: 150.0 }, 30e6, 80.0), &fetches(100, 12_000_000));
    let median_ms = median_ms(&mut looker);
    assert!((median_ms / 230.0 - 1.0).abs() < 0.06, "{median_ms}");
}

/// B7, the variant.
#[test]
fn stale_echoes_leave_a_cookie_unanswered_while_bytes_come() {
    let silence = |peer| alone(peer, &fetches(5, 12_000_000)).echo_late;
    assert!(silence(on_wire(Wire::EchoesStale, 30e6, 80.0)));
    assert!(!silence(group("it", 1, 30e6, 80.0)), "the same peer without the act");
}

/// B8.
#[test]
fn a_guesser_is_reported_within_two_thousand_sdus_and_moves_no_round_trip() {
    let looker = &mut alone(on_wire(Wire::GuessesEchoes, 30e6, 80.0), &fetches(20, 500_000));
    let at = looker.guessing_after.expect("reported");
    assert!(at <= 2_000, "{at}");
    let (connection, now) = looker.connection();
    let moved = connection.rtt(now).is_some_and(|rtt| rtt.median.as_secs_f64() < 0.08);
    assert!(!moved && connection.counters().unknown > 1_000);
}

fn paces(gap_ms: f64, wire: Option<Wire>) -> PeerGroup {
    let behaviour = Behaviour::Paces { burst_bytes: 50_000, gap_ms };
    PeerGroup { behaviour, wire, ..group("it", 1, 125e6, 12.0) }
}

/// B3: a thousand times as fast between its silences as over them.
#[test]
fn a_busy_filler_reads_as_slow_as_it_is() {
    let filler = total(&alone(paces(500.0, Some(Wire::FillsGaps)), &fetches(4, 2_000_000)));
    assert!((rate(&filler) / 100e3 - 1.0).abs() < 0.2, "{filler:?}");
}

/// B1: the cookies that wait out a long silence lengthen its round trips, and with them the gate, until the silence counts and its bursts read slow. Where they read fast,
/// silence in an open fetch forfeits their coverage: one fetch earns less than half of the trust that its bytes, delivered promptly, would. After it, fetches decide.
#[test]
fn an_idle_gap_pacer_is_not_trusted_for_a_fast_reading_nor_credited_with_it() {
    // Coverage of a typical transfer is half of the trust (EST-4).
    let prompt = 500_000.0 / (500_000.0 + 512_000.0);
    let mut read_fast = 0;
    for gap_ms in [100.0, 250.0, 500.0, 1000.0, 2000.0] {
        let pacer = world(vec![paces(gap_ms, None)]);
        let engine = |workload: &Workload| {
            let mut engine = PolicyKind::Engine.build(&pacer, workload, 1).expect("a possible world");
            sim::run(&pacer, workload, &mut *engine, 1, &mut ()).expect("a possible world").peers.remove(0)
        };
        let one = fetches(1, 500_000);
        let (reads, peer) = (rate(&total(&looked(&pacer, &one, 1))), engine(&one));
        if reads > 1.33 * peer.true_rate {
            read_fast += 1;
            assert!(peer.trust.is_none_or(|trust| trust < prompt / 2.0), "{gap_ms}: reads {reads}, {peer:?}");
        }
        for peer in [peer, engine(&fetches(40, 500_000))] {
            let credited = peer.credited_rate.expect("it delivered");
            assert!(credited <= 1.33 * peer.true_rate, "{gap_ms}: {peer:?}");
        }
    }
    assert!(read_fast > 0, "or nothing was shown");
}

/// B4: the wire reads the link, the fetch takes ten times as long, and the fetch decides.
#[test]
fn a_padder_reads_fast_and_is_credited_with_what_it_delivers() {
    let peer = PeerGroup {
        behaviour: Behaviour::Dribbles { after_bytes: 0, rate: 3.75e6 },
        ..on_wire(Wire::Pads, 37.5e6, 80.0)
    };
    let burst = total(&alone(peer.clone(), &fetches(4, 12_000_000)));
    assert!(rate(&burst) > 25e6, "{burst:?}");
    let (world, workload) = (world(vec![peer]), fetches(8, 12_000_000));
    let mut engine = PolicyKind::Engine.build(&world, &workload, 1).expect("a possible world");
    let result = sim::run(&world, &workload, &mut *engine, 1, &mut ()).expect("a possible world");
    let credited = result.peers[0].credited_rate.expect("it delivered");
    assert!(credited <= 1.33 * 3.75e6, "{credited}");
}

#[test]
fn a_run_with_the_wire_is_the_same_bytes_again_and_on_two_threads() {
    let plans = ["b8-echo-guesser", "b3-busy-filler", "b12-estimates-over-pauses"];
    let plans = plans.map(|name| plan::find(name).expect("a plan of the laboratory")).concat();
    let bytes = |threads| {
        let policies = Some(vec!["engine".to_owned()]);
        let selection = Selection { seeds: Some(2), policies, threads: Some(threads), ..Selection::default() };
        let lines =
            report::run(&peerq_lab::laboratory::Laboratory, &plans, &selection, &|_| ()).expect("known policies");
        let mut out = Vec::new();
        lines.write(&mut out).expect("memory takes everything");
        out
    };
    let once = bytes(1);
    assert_eq!(once, bytes(1));
    assert_eq!(once, bytes(2));
}

/// B1: whatever the gate, the pacers of the plan have next to nothing after three fetches.
#[test]
fn no_gate_lets_an_idle_gap_pacer_in() {
    let plan = plan::builtin()
        .expect("they parse")
        .into_iter()
        .find(|plan| plan.name == "b1-idle-gap-pacer")
        .expect("it is there");
    let honest: u32 = plan.world.peers.iter().take_while(|group| group.name != "pacer").map(|group| group.count).sum();
    for gate_scale in [0.5, 1.0, 2.0, 4.0] {
        let (mut engine, mut ledger) = (engine_gated(1, gate_scale), Ledger::default());
        sim::run(&plan.world, &plan.workload, &mut engine, 1, &mut ledger).expect("a possible world");
        let (mut of_pacers, mut all) = (0, 0);
        for (_, fact) in &ledger.facts {
            if let Fact::Ended { peer, content: 3..=1000, delivery, .. } = fact {
                all += delivery.bytes.get();
                of_pacers += if peer.0 >= honest { delivery.bytes.get() } else { 0 };
            }
        }
        assert!(all > 100_000_000 && of_pacers * 50 <= all, "{gate_scale}: {of_pacers} of {all}");
    }
}
