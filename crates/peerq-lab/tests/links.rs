//! What connections and links do to transfers (LAB-1).

mod common;

use common::{downloads, group, one_fetch, watched, world};
use peer_quality::measure::{End, Fault};
use peer_quality::units::Span;
use peerq_lab::model::{
    Behaviour, Change, Client, History, Loss, Outage, PeerGroup, Range, Serve, SharedLink, Workload, World,
};

const MIB: u64 = 1 << 20;

/// Bytes per second from the first request's start to the last one's end.
fn throughput(world: &World, workload: &Workload) -> f64 {
    let (result, _) = watched(world, workload, 1);
    result.requests.iter().map(|request| request.bytes).sum::<u64>() as f64 / result.seconds
}

#[test]
fn the_downlink_is_a_bottleneck_for_all() {
    // A6: 8 peers of 10 MB/s, downlink 200 KB/s, 2 MB chunks.
    let mut world = world(vec![group("peer", 8, 1e7, 50.0)]);
    world.client.downlink = Some(2e5);
    let mut workload = downloads(1, 16, 2_000_000, 8);
    if let Workload::Downloads { range_timeout_s, .. } = &mut workload {
        *range_timeout_s = 500.0;
    }
    let rate = throughput(&world, &workload);
    assert!((0.95 * 2e5..=2e5).contains(&rate), "{rate}");
}

#[test]
fn a_shared_link_is_a_bottleneck_for_its_own() {
    // A6's variant: 4 mirrors share 20 MB/s, one independent peer has 5 MB/s.
    let mirrors = PeerGroup { shares: Some("uplink".into()), ..group("mirror", 4, 2e7, 50.0) };
    let mut world = world(vec![mirrors, group("other", 1, 5e6, 50.0)]);
    world.shared = vec![SharedLink { name: "uplink".into(), rate: 2e7 }];
    let (result, _) = watched(&world, &downloads(1, 250, MIB, 10), 1);
    let bytes: Vec<u64> = result.peers.iter().map(|peer| peer.bytes).collect();
    // Each mirror gets a quarter of the shared link, so all five are equal.
    assert!(bytes.iter().all(|bytes| bytes.abs_diff(50 * MIB) <= 2 * MIB), "{bytes:?}");
    let rate = 250.0 * MIB as f64 / result.seconds;
    assert!((0.9 * 25e6..=25e6).contains(&rate), "{rate}");
}

#[test]
fn requests_to_one_peer_share_its_uplink() {
    let peer = || world(vec![group("peer", 1, 1e7, 50.0)]);
    let (_, ledger) = watched(&peer(), &downloads(1, 4, 10 * MIB, 4), 1);
    let ends: Vec<f64> = ledger.ends().map(|(at, ..)| at).collect();
    assert!(ends.iter().all(|at| (at - ends[0]).abs() < 1e-3 && (4.2..4.6).contains(at)), "{ends:?}");
    // More of them never deliver more than the uplink.
    assert!(throughput(&peer(), &downloads(1, 64, MIB, 8)) <= 1e7);
}

#[test]
fn an_idle_connection_restarts_slowly() {
    // B16: 40 kB need two round trips from the initial window; a warm window needs one.
    let took = |pause_s| {
        let workload = Workload::Downloads {
            requests: 5,
            ranges: 1,
            range_bytes: 40_000,
            sources: 1,
            in_flight: 1,
            pause_s,
            range_timeout_s: 30.0,
        };
        let (result, _) = watched(&world(vec![group("peer", 1, 1e8, 100.0)]), &workload, 1);
        result.requests.iter().map(|request| request.end_s.unwrap() - request.start_s).collect::<Vec<_>>()
    };
    let cold = took(60.0);
    assert!(cold.iter().all(|took| (took - 0.2).abs() < 0.01), "{cold:?}");
    let warm = took(0.0);
    assert!((warm[4] - 0.1).abs() < 0.01, "{warm:?}");
}

#[test]
fn a_lost_last_packet_costs_a_probe_and_a_lost_repair_the_timer() {
    let times = |rto_floor_ms, loss| {
        let mut world = world(vec![PeerGroup { loss: Loss::Random(loss), ..group("peer", 1, 1e8, 20.0) }]);
        world.tcp.rto_floor_ms = rto_floor_ms;
        let mut times: Vec<f64> = (0..2000).map(|seed| one_fetch(&world, 1_400, seed)).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let linux = times(200.0, 0.1);
    // 90 % pay one round trip, 9 % two more, 1 % a retransmission timeout.
    assert!((linux[1000] - 0.02).abs() < 1e-3 && (linux[1900] - 0.06).abs() < 1e-3, "{} {}", linux[1000], linux[1900]);
    let slowest = linux[1998];
    assert!(slowest >= 0.23, "{slowest}");
    let standard = times(1000.0, 0.1);
    assert!(standard[1998] >= 1.03 && standard[1900] == linux[1900], "{}", standard[1998]);
}

#[test]
fn bursts_of_loss_stall_far_peers_now_and_then() {
    let bursty = Loss::GilbertElliott { good: 1e-5, bad: 0.05, to_bad: 5e-4, to_good: 0.1 };
    let far = |loss| world(vec![PeerGroup { loss, ..group("far", 1, 18.75e6, 268.0) }]);
    let mut times: Vec<f64> = (0..400).map(|seed| one_fetch(&far(bursty), 12_000_000, seed)).collect();
    times.sort_by(f64::total_cmp);
    let clean = one_fetch(&far(Loss::None), 12_000_000, 0);
    assert!(times[0] >= clean && times[200] > clean + 0.1 && times[380] > 1.5 * clean, "{clean} {times:?}");
}

#[test]
fn an_outage_stops_everything_and_charges_its_length_once() {
    let mut world = world(vec![group("peer", 2, 1e7, 50.0)]);
    let before = watched(&world, &downloads(1, 40, MIB, 4), 1).0.seconds;
    world.client.outages = vec![Outage { at_s: 1.0, for_s: 5.0 }];
    let (result, ledger) = watched(&world, &downloads(1, 40, MIB, 4), 1);
    assert!(ledger.ends().all(|(at, ..)| !(1.001..6.0).contains(&at)));
    let lost = result.seconds - before;
    assert!((5.0..6.8).contains(&lost), "{lost}");
}

#[test]
fn what_arrives_during_our_own_pause_is_seen_after_it() {
    let mut world = world(vec![group("peer", 1, 1e7, 50.0)]);
    world.client = Client { pause_every_s: 1.0, pause_s: Some(Range::Between([0.2, 0.5])), ..Client::default() };
    let (paused, ledger) = watched(&world, &downloads(1, 100, MIB, 2), 4);
    world.client = Client::default();
    let (clean, _) = watched(&world, &downloads(1, 100, MIB, 2), 4);
    assert_eq!(ledger.count(End::Completed), 100);
    assert!(paused.seconds > 1.1 * clean.seconds, "{} {}", paused.seconds, clean.seconds);
}

#[test]
fn a_peer_refuses_above_its_limit_at_once() {
    // A21: two at once, the third is refused.
    let peer = PeerGroup { refuses_above: Some(2), ..group("peer", 1, 1e7, 50.0) };
    let (result, ledger) = watched(&world(vec![peer]), &downloads(1, 6, MIB, 3), 1);
    let refused: Vec<_> = ledger.ends().filter(|(_, _, one)| one.end == End::Failed(Fault::Unavailable)).collect();
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|(_, _, one)| one.bytes.get() == 0 && (one.elapsed.as_secs_f64() - 0.05).abs() < 1e-4));
    assert_eq!(result.peers[0].bytes, 6 * MIB);
}

#[test]
fn cold_serves_delay_the_first_byte_only() {
    // B5.
    let serve = Serve { hot_ms: 5.0, cold_ms: 2000.0, cold_share: 0.2 };
    let (_, ledger) =
        watched(&world(vec![PeerGroup { serve, ..group("peer", 1, 1e7, 50.0) }]), &downloads(1, 200, MIB, 1), 1);
    let (mut cold, mut hot) = (0, 0);
    for (_, _, one) in ledger.ends() {
        let first = one.first_byte.unwrap().as_secs_f64();
        let body = one.elapsed.as_secs_f64() - first;
        assert!(body < 0.35, "{body}");
        if (first - 0.055).abs() < 1e-4 { hot += 1 } else { cold += 1 }
    }
    assert!((25..55).contains(&cold) && hot > 140, "{cold} {hot}");
}

#[test]
fn changes_and_joins_happen_when_they_should() {
    let mut falls = group("falls", 1, 1e7, 50.0);
    falls.changes =
        vec![Change { at_s: 2.0, rate: Some(Range::Fixed(1e6)), rtt_ms: Some(Range::Fixed(200.0)), behaviour: None }];
    let late = PeerGroup { joins_at_s: 10.0, ..group("late", 1, 1e7, 50.0) };
    let (result, ledger) = watched(&world(vec![falls, late]), &downloads(1, 60, MIB, 1), 1);
    assert!(ledger.ends().all(|(at, peer, _)| peer.0 == 0 || at > 10.0));
    let elapsed = |from: f64, to: f64| {
        let among = ledger.ends().filter(move |(at, peer, _)| peer.0 == 0 && (from..to).contains(at));
        among.map(|(_, _, one)| one.elapsed.as_secs_f64()).fold(0.0, f64::max)
    };
    assert!(elapsed(0.5, 2.0) < 0.3 && elapsed(4.0, 9.0) > 1.2);
    assert_eq!((result.peers[0].true_rate, result.peers[1].true_rate), (1e6, 1e7));
}

#[test]
fn a_history_is_told_before_the_run_starts() {
    let history = Some(History { samples: 100, bytes: MIB, rate: Some(5e7) });
    let peer = PeerGroup { history, ..group("peer", 1, 2e6, 50.0) };
    let (result, ledger) = watched(&world(vec![peer, group("new", 1, 1e7, 50.0)]), &downloads(1, 4, MIB, 1), 1);
    let told: Vec<_> = ledger.ends().take(100).map(|(_, peer, one)| (peer.0, one.elapsed.as_secs_f64())).collect();
    assert!(told.iter().all(|(peer, elapsed)| *peer == 0 && (elapsed - (0.05 + 1.048576e6 / 5e7)).abs() < 1e-5));
    assert_eq!((ledger.ends().count(), result.requests[0].start_s), (104, 0.0));
    assert!(ledger.start.as_micros() >= 7_000_000);
}

#[test]
fn a_peer_that_stalls_did_so_before() {
    let history = Some(History { samples: 400, bytes: MIB, rate: None });
    let behaviour = Behaviour::Stalls { share: 0.1, for_s: 49.5 };
    let peer = PeerGroup { history, behaviour, ..group("spiky", 1, 2e6, 50.0) };
    let (_, ledger) = watched(&world(vec![peer, group("new", 1, 1e7, 50.0)]), &downloads(1, 1, MIB, 1), 1);
    let stalled = ledger.ends().take(400).filter(|(_, _, one)| one.elapsed > Span::from_secs(49)).count();
    assert!((20..=60).contains(&stalled), "a tenth of 400, within three standard deviations: {stalled}");
}
