//! The selectors as policies: what the driving logic around them makes of their answers.

use super::*;
use crate::policy::engine::engine;
use crate::policy::published::published;
use crate::policy::testing::{Bench, completed, failed};

fn all(seed: u64) -> [Box<dyn Policy>; 3] {
    [Box::new(peerq(seed)), Box::new(engine(seed)), Box::new(published(seed))]
}

#[test]
fn the_fast_peer_gets_most_of_a_download() {
    // The published selector stays with whoever answered first: a host that takes its answers as they stand never sends anyone else a range.
    for mut policy in [Box::new(peerq(3)) as Box<dyn Policy>, Box::new(engine(3))] {
        let mut bench = Bench::new(3);
        let asked =
            bench.alternate(policy.as_mut(), 200, |peer, _| completed(1_000_000, [2_000, 50, 2_000][peer as usize]));
        assert!(asked[1] >= 120, "{}: {asked:?}", policy.name());
    }
}

#[test]
fn a_corrupter_is_demoted_by_proof() {
    for mut policy in all(3) {
        let mut bench = Bench::new(2);
        for _ in 0..12 {
            bench.ask(policy.as_mut(), 50, 4);
            for (peer, _) in bench.running.clone() {
                let delivery = if peer.0 == 0 { failed(Fault::Verification, 50) } else { completed(1_000_000, 80) };
                bench.end(policy.as_mut(), peer.0, &delivery);
            }
            bench.advance_ms(100);
        }
        assert!(policy.opinion(PeerIndex(0), bench.now).demoted, "{}", policy.name());
        assert!(!policy.opinion(PeerIndex(1), bench.now).demoted, "{}", policy.name());
    }
}

#[test]
fn trials_take_at_most_one_range_in_twenty_while_proven_peers_have_work() {
    for mut policy in [Box::new(peerq(3)) as Box<dyn Policy>, Box::new(engine(3))] {
        let mut bench = Bench::new(1);
        // One peer is proven before the others appear.
        for _ in 0..4 {
            bench.ask(policy.as_mut(), 100, 4);
            bench.end_all(policy.as_mut(), 1_000_000, 100);
        }
        bench.candidates = Bench::new(6).candidates;
        let mut ranges = [0_u32; 2];
        for _ in 0..100 {
            for (peer, count) in bench.ask(policy.as_mut(), 10_000, 4) {
                ranges[usize::from(peer > 0)] += count;
                // Strangers hang, so they stay unproven.
            }
            let done: Vec<u32> = bench.running.iter().map(|(peer, _)| peer.0).filter(|peer| *peer == 0).collect();
            bench.advance_ms(100);
            for peer in done {
                bench.end(policy.as_mut(), peer, &completed(1_000_000, 100));
            }
        }
        assert!(ranges[1] > 0 && ranges[1] * 20 <= ranges[0] + 20, "{}: {ranges:?}", policy.name());
    }
}

#[test]
fn a_straggler_gets_none_of_the_last_ranges() {
    for mut policy in [Box::new(peerq(3)) as Box<dyn Policy>, Box::new(engine(3))] {
        let mut bench = Bench::new(2);
        for _ in 0..12 {
            bench.ask(policy.as_mut(), 1_000, 4);
            for (peer, _) in bench.running.clone() {
                bench.end(policy.as_mut(), peer.0, &completed(1_000_000, if peer.0 == 0 { 50 } else { 20_000 }));
            }
            bench.advance_ms(50);
        }
        for left in [3, 2, 1] {
            assert!(bench.ask(policy.as_mut(), left, 4).iter().all(|(peer, _)| *peer == 0), "{}", policy.name());
        }
    }
}

#[test]
fn identities_and_contents_translate_both_ways() {
    for index in [0, 1, 77, u32::MAX] {
        assert_eq!(names::peer_index(&names::peer_id(PeerIndex(index))), PeerIndex(index));
    }
    assert_ne!(names::content_id(1), names::content_id(2));
}

#[test]
fn the_clock_of_ours_is_fine_and_the_published_one_whole_seconds() {
    let (_, clock) = make(1);
    set_clock(&clock, Time::from_micros(1_500_000));
    assert_eq!(clock.now(), 1);
}
