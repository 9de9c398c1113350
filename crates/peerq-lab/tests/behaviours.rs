//! Each behaviour does what it says (LAB-2).

mod common;

use common::{Ledger, behaving, downloads, group, watched, world};
use peer_quality::measure::{End, Fault};
use peerq_lab::model::{Behaviour, Kind, RunResult};

const MIB: u64 = 1 << 20;

/// 40 ranges of 1 MiB from one peer of 10 MB/s, one at a time.
fn alone(behaviour: Behaviour) -> (RunResult, Ledger) {
    watched(&world(vec![behaving("it", 1e7, behaviour)]), &downloads(1, 40, MIB, 1), 3)
}

fn share(ledger: &Ledger, end: End) -> f64 {
    ledger.count(end) as f64 / ledger.ends().count() as f64
}

fn seconds(ledger: &Ledger, end: End) -> Vec<f64> {
    ledger.ends().filter(|(_, _, one)| one.end == end).map(|(_, _, one)| one.elapsed.as_secs_f64()).collect()
}

#[test]
fn an_honest_peer_delivers_everything_at_its_rate() {
    let (result, ledger) = alone(Behaviour::Honest);
    assert_eq!((ledger.count(End::Completed), result.peers[0].bytes), (40, 40 * MIB));
    assert_eq!((result.peers[0].true_rate, result.peers[0].kind), (1e7, Some(Kind::Honest)));
    // A warm connection: one round trip and the bytes.
    let last = *seconds(&ledger, End::Completed).last().unwrap();
    assert!((last - (0.05 + 1.048576e6 / 1e7)).abs() < 0.01, "{last}");
}

#[test]
fn a_black_hole_fails_fast_for_its_share() {
    let (result, ledger) = alone(Behaviour::Fails { after_ms: 2.0, share: 0.5 });
    assert!((share(&ledger, End::Failed(Fault::Transport)) - 0.5).abs() < 0.15);
    assert!(seconds(&ledger, End::Failed(Fault::Transport)).iter().all(|elapsed| (elapsed - 0.052).abs() < 1e-4));
    assert_eq!((result.peers[0].true_rate, result.peers[0].kind), (5e6, Some(Kind::Broken)));
}

#[test]
fn a_peer_that_lacks_a_range_says_so_within_a_round_trip_and_stays_honest() {
    let (result, ledger) = alone(Behaviour::Lacks { share: 0.3 });
    assert!((share(&ledger, End::Failed(Fault::Unavailable)) - 0.3).abs() < 0.15);
    assert!(seconds(&ledger, End::Failed(Fault::Unavailable)).iter().all(|elapsed| (elapsed - 0.05).abs() < 1e-4));
    assert_eq!(result.peers[0].kind, Some(Kind::Honest));
}

#[test]
fn a_silent_peer_costs_the_whole_timeout() {
    let (result, ledger) = alone(Behaviour::Silent { share: 0.25 });
    let lost = seconds(&ledger, End::Failed(Fault::Timeout));
    assert!(lost.len() > 4 && lost.iter().all(|elapsed| *elapsed == 30.0));
    assert!(result.requests[0].end_s.unwrap() > 30.0 * lost.len() as f64);
}

#[test]
fn a_corrupter_delivers_all_bytes_and_none_of_use() {
    let (result, ledger) = alone(Behaviour::Corrupts { share: 0.5 });
    let corrupt = ledger.count(End::Failed(Fault::Verification)) as u64;
    assert!(corrupt > 20 && result.peers[0].wasted_bytes == corrupt * MIB && result.peers[0].bytes == 40 * MIB);
}

#[test]
fn a_dribbler_serves_well_first_and_then_at_its_own_rate() {
    let (result, ledger) = alone(Behaviour::Dribbles { after_bytes: 10 * MIB, rate: 1e6 });
    let took = seconds(&ledger, End::Completed);
    assert!(
        took[2..10].iter().all(|elapsed| *elapsed < 0.3)
            && took[11..].iter().all(|elapsed| (*elapsed - 1.1).abs() < 0.05),
        "{took:?}"
    );
    assert_eq!((result.peers[0].true_rate, result.peers[0].kind), (1e6, Some(Kind::Hostile)));
}

#[test]
fn a_trickle_is_given_up_with_the_bytes_that_came() {
    // A9: 1 byte per 5 s; everything else comes from the other peer.
    let peers =
        vec![behaving("trickle", 1e7, Behaviour::Dribbles { after_bytes: 0, rate: 0.2 }), group("good", 1, 1e7, 50.0)];
    let (result, ledger) = watched(&world(peers), &downloads(1, 8, MIB, 2), 1);
    let lost: Vec<_> = ledger.ends().filter(|(_, _, one)| one.end == End::Failed(Fault::Timeout)).collect();
    assert!(!lost.is_empty() && lost.iter().all(|(_, _, one)| one.bytes.get() == 5), "{lost:?}");
    assert_eq!(result.peers[1].bytes, 8 * MIB);
}

#[test]
fn a_pacer_is_fast_in_its_bursts_and_slow_in_all() {
    let (result, ledger) = alone(Behaviour::Paces { burst_bytes: 50_000, gap_ms: 500.0 });
    // 21 bursts, 20 gaps of 0.5 s, and slow start again after each.
    let took = seconds(&ledger, End::Completed);
    assert!(took.iter().all(|elapsed| (10.0..14.0).contains(elapsed)), "{took:?}");
    assert!((result.peers[0].true_rate - 50_000.0 / 0.505).abs() < 1.0);
}

#[test]
fn a_staller_takes_its_time_for_some_requests() {
    let (_, ledger) = alone(Behaviour::Stalls { share: 0.2, for_s: 20.0 });
    let took = seconds(&ledger, End::Completed);
    let stalled = took.iter().filter(|elapsed| **elapsed > 20.0).count();
    assert!(
        (3..16).contains(&stalled) && took.iter().all(|elapsed| *elapsed < 0.5 || (20.0..21.0).contains(elapsed)),
        "{took:?}"
    );
}

#[test]
fn a_farmer_serves_well_withholds_one_content_and_reverts() {
    let peers = vec![behaving("farmer", 1e7, Behaviour::Farms { good: 6 }), group("good", 1, 1e7, 50.0)];
    let (result, ledger) = watched(&world(peers), &downloads(12, 2, MIB, 2), 1);
    // One range of each download: the seventh is withheld, then six are served.
    let withheld: Vec<f64> = ledger.ends().filter(|(_, _, one)| one.end != End::Completed).map(|(at, ..)| at).collect();
    assert_eq!(withheld.len(), 1, "{withheld:?}");
    assert_eq!(result.requests.iter().filter(|request| request.end_s.unwrap() - request.start_s > 30.0).count(), 1);
    assert!(result.requests[6].end_s.unwrap() - result.requests[6].start_s > 30.0);
}

#[test]
fn withholders_of_a_kind_withhold_the_same_contents() {
    let withholds = Behaviour::Withholds { share: 0.3 };
    let missed = |name| {
        let peers = vec![behaving(name, 1e7, withholds), group("good", 1, 1e7, 50.0)];
        let (result, _) = watched(&world(peers), &downloads(30, 2, MIB, 2), 1);
        result.requests.iter().map(|request| request.end_s.unwrap() - request.start_s > 30.0).collect::<Vec<_>>()
    };
    let by_a = missed("a");
    assert_eq!(by_a, missed("b"));
    assert!((3..=18).contains(&by_a.iter().filter(|missed| **missed).count()));
}

#[test]
fn a_padder_serves_small_requests_well_and_large_ones_slowly() {
    let pads = || world(vec![behaving("padder", 1e7, Behaviour::Pads { above_bytes: 100_000, factor: 0.1 })]);
    let (_, small) = watched(&pads(), &downloads(1, 20, 100_000, 1), 1);
    let (result, large) = watched(&pads(), &downloads(1, 20, MIB, 1), 1);
    assert!(seconds(&small, End::Completed)[5] < 0.2);
    assert!((seconds(&large, End::Completed)[5] - (0.05 + 1.048576)).abs() < 0.02);
    assert_eq!(result.peers[0].true_rate, 1e6);
}

#[test]
fn covert_flashers_turn_together_even_in_the_middle_of_a_reply() {
    let flash = Behaviour::Flashes { at_s: 1.0, rate: 1e5 };
    let mut peers = vec![behaving("flash", 1e7, flash)];
    peers[0].count = 2;
    let (_, ledger) = watched(&world(peers), &downloads(1, 3, 20 * MIB, 2), 1);
    // 20 MiB need 2.1 s: one second at full rate is 9.5 MB; the rest dribbles until the timeout.
    let first: Vec<_> = ledger.ends().take(2).map(|(_, _, one)| one).collect();
    assert!(first.iter().all(|one| one.end == End::Failed(Fault::Timeout)), "{first:?}");
    assert!(first.iter().all(|one| (10e6..13.0e6).contains(&one.bytes.as_f64())), "{first:?}");
}

#[test]
fn an_honest_past_is_no_hostile_bytes() {
    let share_after = |at_s: f64| {
        let flash = behaving("flash", 1e7, Behaviour::Flashes { at_s, rate: 1e6 });
        let peers = vec![flash, group("good", 1, 1e7, 50.0)];
        let (result, _) = watched(&world(peers), &downloads(1, 20, MIB, 2), 1);
        let [flash, good] = &result.peers[..] else { panic!("{:?}", result.peers) };
        assert_eq!(good.hostile_bytes, 0);
        flash.hostile_bytes as f64 / (flash.bytes + flash.wasted_bytes) as f64
    };
    assert_eq!((share_after(0.0), share_after(1e6)), (1.0, 0.0));
    assert!((0.1..0.95).contains(&share_after(0.5)), "{}", share_after(0.5));
}

#[test]
fn a_whitewasher_comes_back_as_somebody_else_of_the_same_address_group() {
    let peers = vec![behaving("washer", 1e7, Behaviour::Whitewashes { failures: 5 }), group("good", 1, 1e7, 50.0)];
    let (result, ledger) = watched(&world(peers), &downloads(1, 40, MIB, 4), 1);
    let washers: Vec<_> = result.peers.iter().filter(|peer| peer.group == "washer").collect();
    assert!(washers.len() > 2, "{}", washers.len());
    assert!(washers.iter().all(|washer| washer.bytes == 0 && washer.requests <= 5 + 4));
    assert_eq!(
        washers.iter().map(|washer| washer.failures as usize).sum::<usize>(),
        ledger.count(End::Failed(Fault::Transport))
    );
}

#[test]
fn a_cut_ends_everything_on_the_connection() {
    let (_, ledger) =
        watched(&world(vec![behaving("cutter", 1e7, Behaviour::Cuts { share: 0.1 })]), &downloads(1, 60, MIB, 3), 1);
    let interrupted = ledger.count(End::Interrupted);
    assert!(interrupted > 3, "{interrupted}");
    assert_eq!((ledger.count(End::Completed), ledger.in_flight()), (60, 0));
}

#[test]
fn a_boaster_is_what_its_link_is() {
    let (result, _) = alone(Behaviour::Boasts);
    assert_eq!((result.peers[0].true_rate, result.peers[0].bytes), (1e7, 40 * MIB));
}
