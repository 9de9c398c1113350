//! Who is chosen: scenarios C22, C24, C26, C27, C28, C30, C33, C38, C40, and the invariants A to E of spec §4.4.
#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;

use common::*;
use dig_peer_selector::{Candidate, ContentRequest, FailureReason, OutcomeResult, RangePlanDelta};

#[test]
fn c22_absurd_parallelism_and_equal_scores_are_ordered_all_the_same() {
    let world = World::new(22);
    let many: Vec<Candidate> = (0..400).map(|id| candidate_of(stranger(id))).collect();
    let req = ContentRequest {
        range_count: Some(usize::MAX),
        total_length: Some(u64::MAX),
        ..ContentRequest::new(content(1), usize::MAX)
    };
    for round in 0..3 {
        let selection = world.selector.select(&req, &many);
        assert!(!selection.is_empty());
        let ranks: Vec<u32> = selection.peers.iter().map(|chosen| chosen.rank).collect();
        assert_eq!(ranks, (0..selection.len() as u32).collect::<Vec<_>>());
        for candidate in &many {
            world.tell(candidate.peer_id, Told { index: round, ..Told::default() });
        }
    }
}

#[test]
fn c24_a_rebalance_names_only_holders_of_the_content() {
    let world = World::new(24);
    world.select([1, 2], 2);
    let other = ContentRequest::new(content(2), 2);
    world.selector.select(&other, &candidates([3]));
    world.tell_often(3, Told { content: content(2), ..Told::rate(50_000_000) }, 10);
    world.tell_often(4, Told::rate(2_000_000), 10);
    let req = ContentRequest::new(content(1), 8);
    let mut chosen = ids(&world.selector.rebalance(&req, &[], &RangePlanDelta::of_count(64)));
    chosen.sort_unstable();
    assert!(!chosen.contains(&3), "a faster peer that only holds another content");
    assert!(chosen.contains(&4), "a delivered range proves that a peer holds it");
    let unheard = ContentRequest::new(content(9), 8);
    assert!(world.selector.rebalance(&unheard, &[], &RangePlanDelta::of_count(4)).is_empty());
}

#[test]
fn c26_a_failing_active_peer_is_replaced() {
    let world = World::new(26);
    world.tell_often(1, Told::rate(10_000_000), 10);
    world.tell_often(2, Told::rate(1_000_000), 10);
    world.select([1, 2], 2);
    for failures in 1..=2 {
        world.tell(peer(1), Told::failed(FailureReason::Transport));
        let req = ContentRequest::new(content(1), 2);
        let replacement = world.selector.rebalance(&req, &[peer(1)], &RangePlanDelta::of_count(1));
        assert_eq!(ids(&replacement), [2], "after {failures} failures");
    }
    let alone = world.selector.rebalance(&ContentRequest::new(content(7), 1), &[peer(1)], &RangePlanDelta::of_count(1));
    assert!(alone.is_empty());
}

#[test]
fn c24_that_nothing_is_needed_any_more_does_not_make_its_holders_forgotten() {
    let world = World::new(1);
    world.select(1..=4, 4);
    let nothing = ContentRequest { range_count: Some(0), ..ContentRequest::new(content(1), 4) };
    assert!(world.selector.select(&nothing, &[]).peers.is_empty());
    // The last range failed after all.
    let again = world.selector.rebalance(&ContentRequest::new(content(1), 4), &[], &RangePlanDelta::of_count(4));
    assert_eq!(again.peers.len(), 4);
}

#[test]
fn c26_a_failing_peer_that_is_the_only_holder_is_tried_again() {
    let world = World::new(26);
    world.select([1], 1);
    (0..3).for_each(|_| world.tell(peer(1), Told::failed(FailureReason::Timeout)));
    let req = ContentRequest::new(content(1), 1);
    let chosen = world.selector.rebalance(&req, &[peer(1)], &RangePlanDelta::of_count(1));
    assert_eq!(ids(&chosen), [1]);
    assert_eq!(chosen.peers[0].max_concurrency, 1);
}

#[test]
fn c27_the_best_of_many_is_picked_and_trials_carry_one_range() {
    for n in [2_u8, 3, 10, 30] {
        let world = World::new(u64::from(n));
        for id in 1..=n {
            world.tell_often(id, Told::rate(if id == 1 { 10_000_000 } else { 100_000 }), 5);
        }
        let mut best = 0;
        for index in 0..400 {
            let selection = world.select(1..=n, 1);
            let chosen = selection.peers[0];
            best += usize::from(chosen.peer_id == peer(1));
            if chosen.exploratory {
                assert_eq!(chosen.max_concurrency, 1);
            }
            let rate = if chosen.peer_id == peer(1) { 10_000_000 } else { 100_000 };
            world.tell(chosen.peer_id, Told { index, ..Told::rate(rate) });
            world.clock.advance(1);
        }
        assert!(best * 100 >= 85 * 400, "{n} peers: best picked {best} of 400");
    }
}

#[test]
fn c28_strangers_alone_are_used_to_the_parallelism_asked_for() {
    let world = World::new(28);
    assert_eq!(world.select(1..=10, 8).len(), 8);
    let few =
        ContentRequest { range_count: Some(8), total_length: Some(8 * MIB), ..ContentRequest::new(content(2), 8) };
    assert_eq!(World::new(28).selector.select(&few, &candidates(1..=10)).len(), 8, "one range each");
}

#[test]
fn c30_of_equal_rates_the_nearer_is_first() {
    let world = World::new(30);
    for (id, rtt_ms) in [(1, 5_000), (2, 20)] {
        world.tell_often(id, Told { rtt_ms: Some(rtt_ms), ..Told::default() }, 10);
    }
    assert_eq!(world.select([1, 2], 2).best().unwrap().peer_id, peer(2));
}

#[test]
fn c33_a_delivery_below_the_clocks_resolution_is_fast() {
    let world = World::new(33);
    world.tell_often(1, Told { bytes: 256 * KIB, ms: 1000, rtt_ms: None, ..Told::default() }, 5);
    world.tell_often(2, Told { bytes: 256 * KIB, ms: 0, rtt_ms: None, ..Told::default() }, 5);
    assert_eq!(world.select([1, 2], 2).best().unwrap().peer_id, peer(2));
}

#[test]
fn c38_corruption_in_one_of_three_ends_at_the_bottom_whatever_the_rate() {
    let world = World::new(38);
    for index in 0..12 {
        let told =
            if index % 3 == 0 { Told::failed(FailureReason::VerificationFailed) } else { Told::rate(10_000_000) };
        world.tell(peer(1), Told { index, ..told });
        world.tell(peer(2), Told { index, ..Told::rate(2_000_000) });
        world.clock.advance(1);
    }
    assert_eq!(ids(&world.select([1, 2], 1)), [2]);
    assert_eq!(world.select([1, 3], 1).best().unwrap().peer_id, peer(3), "below a stranger");
}

#[test]
fn c40_an_interruption_is_half_a_failure_and_still_evidence_of_the_rate() {
    let after = |result| {
        let world = World::new(40);
        world.tell_often(1, Told::default(), 10);
        world.tell(peer(1), Told { result, ..Told::default() });
        world.known(1)
    };
    let interrupted = after(OutcomeResult::Interrupted { bytes_before: MIB });
    let failed = after(OutcomeResult::Failure { reason: FailureReason::Transport });
    let kept = after(OutcomeResult::Success);
    assert!(failed.reliability < interrupted.reliability && interrupted.reliability < kept.reliability);
    assert!(interrupted.throughput_bps.is_some());
}

#[test]
fn what_a_peer_does_not_have_is_remembered_for_the_content_alone() {
    // MEAS-10: neither latency nor unreliability.
    let world = World::new(10);
    world.tell_often(1, Told::rate(10_000_000), 5);
    world.tell_often(2, Told::rate(1_000_000), 5);
    let before = world.known(1).reliability;
    world.tell(peer(1), Told::failed(FailureReason::Unavailable));
    assert_eq!(world.known(1).reliability, before);
    assert_eq!(ids(&world.select([1, 2], 1)), [2]);
    let other = ContentRequest::new(content(2), 1);
    assert_eq!(ids(&world.selector.select(&other, &candidates([1, 2]))), [1]);
}

/// Drives `rounds` of select and record over peers of fixed rates; counts who served.
fn drive(world: &World, rates: &BTreeMap<u8, u64>, parallelism: usize, rounds: usize) -> BTreeMap<u8, usize> {
    let mut served = BTreeMap::new();
    for index in 0..rounds {
        for chosen in world.select(rates.keys().copied(), parallelism).peers {
            let id = chosen.peer_id.as_bytes()[0];
            *served.entry(id).or_default() += 1;
            world.tell(chosen.peer_id, Told { index, ..Told::rate(rates[&id]) });
        }
        world.clock.advance(1);
    }
    served
}

#[test]
fn invariant_a_fast_peers_are_preferred_over_time() {
    let world = World::new(100);
    let served = drive(&world, &BTreeMap::from([(1, 4_000_000), (2, 2_000_000), (3, 100_000)]), 1, 80);
    assert!(served[&1] > 60, "{served:?}");
    assert_eq!(ids(&world.select([3, 2, 1], 3)), [1, 2, 3]);
}

#[test]
fn invariant_c_a_straggler_gets_no_range_of_a_short_request() {
    let world = World::new(102);
    for (id, rate) in [(1, 10_000_000), (2, 8_000_000), (3, 50_000)] {
        world.tell_often(id, Told::rate(rate), 10);
    }
    let req =
        ContentRequest { range_count: Some(8), total_length: Some(8 * MIB), ..ContentRequest::new(content(1), 3) };
    let chosen = world.selector.select(&req, &candidates([1, 2, 3]));
    assert!(!ids(&chosen).contains(&3), "{chosen:?}");
    assert!(chosen.peers.iter().map(|one| one.max_concurrency).sum::<u32>() <= 8);
}

#[test]
fn invariant_d_a_degraded_peer_is_left_and_a_recovered_one_found_again() {
    let world = World::new(103);
    drive(&world, &BTreeMap::from([(1, 4_000_000), (2, 1_000_000)]), 1, 40);
    let degraded = drive(&world, &BTreeMap::from([(1, 40_000), (2, 1_000_000)]), 1, 40);
    assert!(degraded[&2] >= 30, "{degraded:?}");
    let recovered = drive(&world, &BTreeMap::from([(1, 4_000_000), (2, 1_000_000)]), 1, 60);
    assert!(recovered[&1] >= 30, "{degraded:?} {recovered:?}");
}

#[test]
fn invariant_d_a_peer_that_failed_is_tried_again_within_a_bound() {
    // A3 at the API: failing for ten minutes, then healed.
    let world = World::new(104);
    drive(&world, &BTreeMap::from([(1, 4_000_000), (2, 1_000_000)]), 1, 20);
    let mut tried_while_down = 0;
    for index in 0..600 {
        let chosen = world.select([1, 2], 1).peers[0].peer_id;
        tried_while_down += usize::from(chosen == peer(1));
        let told = if chosen == peer(1) { Told::failed(FailureReason::Timeout) } else { Told::rate(1_000_000) };
        world.tell(chosen, Told { index, ..told });
        world.clock.advance(1);
    }
    assert!((1..60).contains(&tried_while_down), "{tried_while_down} trials in ten minutes");
    let healed = drive(&world, &BTreeMap::from([(1, 4_000_000), (2, 1_000_000)]), 1, 120);
    assert!(healed[&1] >= 50, "{healed:?}");
}

#[test]
fn invariant_e_everyone_is_tried_and_nobody_unknown_takes_the_bulk() {
    let world = World::new(105);
    let rates: BTreeMap<u8, u64> = (1..=12).map(|id| (id, 1_000_000)).collect();
    assert_eq!(drive(&world, &rates, 3, 60).len(), 12);
    let proven = World::new(106);
    proven.tell_often(1, Told::rate(4_000_000), 20);
    let selection = proven.select(1..=9, 6);
    assert_eq!(selection.best().unwrap().peer_id, peer(1));
    let (tried, trusted): (Vec<_>, Vec<_>) = selection.peers.iter().partition(|chosen| chosen.exploratory);
    let ranges = |of: &[&dig_peer_selector::SelectedPeer]| of.iter().map(|chosen| chosen.max_concurrency).sum::<u32>();
    assert!(!tried.is_empty() && ranges(&tried) < ranges(&trusted), "{selection:?}");
}

#[test]
fn invariant_e_however_long_nobody_was_tried_the_best_leads_and_strangers_are_a_third() {
    for rounds in 0..40 {
        let world = World::new(107);
        for index in 0..rounds {
            world.select([1], 1);
            world.tell(peer(1), Told { index, ..Told::rate(4_000_000) });
        }
        world.tell_often(1, Told::rate(4_000_000), 5);
        let selection = world.select(1..=8, 6);
        let tried = selection.peers.iter().filter(|chosen| chosen.exploratory).count();
        assert_eq!(selection.best().unwrap().peer_id, peer(1), "{rounds}");
        assert!((1..=2).contains(&tried), "{rounds}: {selection:?}");
    }
}

#[test]
fn invariant_e_with_one_source_for_many_ranges_the_first_answer_is_the_best_and_trials_come_later() {
    let world = World::new(108);
    world.tell_often(1, Told::rate(4_000_000), 10);
    world.tell_often(2, Told::rate(3_000_000), 10);
    let mut later = 0;
    for id in 2..60 {
        let request = ContentRequest { range_count: Some(20), ..ContentRequest::new(content(id), 1) };
        for decision in 0..20 {
            let chosen = world.selector.select(&request, &candidates([1, 2])).peers[0].peer_id;
            assert!(decision > 0 || chosen == peer(1), "{id}");
            later += usize::from(chosen == peer(2));
            let rate = if chosen == peer(1) { 4_000_000 } else { 3_000_000 };
            world.tell(chosen, Told { content: content(id), index: decision, ..Told::rate(rate) });
        }
    }
    assert!(later > 0);
}

#[test]
fn rank_6_an_explanation_names_the_terms_and_changes_nothing() {
    let world = World::new(6);
    world.tell_often(1, Told::rate(10_000_000), 5);
    world.tell_often(2, Told::rate(1_000_000), 5);
    let req = ContentRequest::new(content(1), 1);
    let explanation = world.selector.explain(&req, &candidates([1, 2, 9]));
    assert_eq!(explanation.winner().unwrap().peer, peer(1));
    assert_eq!(explanation.runner_up().unwrap().peer, peer(2));
    assert_eq!(explanation.candidates.len(), 2, "strangers have no terms yet");
    assert_eq!(explanation, world.selector.explain(&req, &candidates([1, 2, 9])));
    assert!(explanation.to_string().contains("first byte"), "{explanation}");
    assert_eq!(world.known(1).in_flight, 0);
}

#[test]
fn c12_a_fast_peer_with_ranges_in_flight_still_gets_most() {
    // A moves 10 MB/s over four ranges, 2.5 MB/s each; B moves 3 MB/s in all. The host dispatches one range per decision, and four run at a time.
    const RANGE: u64 = 40_000_000;
    let world = World::new(12);
    let mut running: Vec<(u8, u64, u64)> = Vec::new(); // who, started, remaining bytes
    let mut served = BTreeMap::<u8, usize>::new();
    for index in 0..2_000 {
        while running.len() < 4 {
            let Some(chosen) = world.select([1, 2], 1).best().copied() else { break };
            let id = chosen.peer_id.as_bytes()[0];
            world.selector.on_dispatch(&chosen.peer_id, 1);
            running.push((id, world.clock.now(), RANGE));
            *served.entry(id).or_default() += 1;
        }
        world.clock.advance(1);
        let at = |id| running.iter().filter(|range| range.0 == id).count().max(1) as u64;
        let rates = [10_000_000 / at(1).max(4), 3_000_000 / at(2)];
        for range in &mut running {
            range.2 = range.2.saturating_sub(rates[usize::from(range.0 - 1)]);
        }
        let ended: Vec<_> = running.extract_if(.., |range| range.2 == 0).collect();
        for (id, started, _) in ended {
            let ms = (world.clock.now() - started) * 1000;
            world.tell(peer(id), Told { index, bytes: RANGE, ms, ..Told::default() });
        }
    }
    assert!(served[&1] >= 2 * served[&2], "{served:?}");
}

#[test]
fn a22_one_absurd_delivery_does_not_outrank_a_record() {
    let world = World::new(22);
    for index in 0..1000 {
        for id in [1, 2] {
            world.selector.on_dispatch(&peer(id), 1);
            world.tell(peer(id), Told { index, ..Told::rate(if id == 1 { 4_000_000 } else { 1_000_000 }) });
        }
    }
    world.selector.on_dispatch(&peer(2), 1);
    world.tell(peer(2), Told { bytes: u64::MAX, ms: 0, rtt_ms: None, ..Told::default() });
    assert_eq!(ids(&world.select([1, 2], 2)), [1, 2]);
}

#[test]
fn a_burst_of_ranges_in_flight_that_fail_together_is_one_failure() {
    // lodestar#9877: the damage of one blip must not grow with the requests in flight.
    let reliability = |in_flight: u32| {
        let world = World::new(9877);
        world.tell_often(1, Told::default(), 20);
        world.selector.on_dispatch(&peer(1), in_flight);
        world.clock.advance(2);
        (0..in_flight).for_each(|_| world.tell(peer(1), Told::failed(FailureReason::Timeout)));
        assert_eq!(world.known(1).in_flight, 0);
        world.known(1).reliability.unwrap()
    };
    assert_eq!(reliability(1), reliability(64));
    // One after the other they count one by one.
    let world = World::new(9877);
    world.tell_often(1, Told::default(), 20);
    for _ in 0..4 {
        world.selector.on_dispatch(&peer(1), 1);
        world.clock.advance(2);
        world.tell(peer(1), Told::failed(FailureReason::Timeout));
    }
    assert!(world.known(1).reliability.unwrap() < 0.7);
}

#[test]
fn a_condemned_peer_is_not_asked_because_the_good_ones_are_busy() {
    let world = World::new(5);
    world.tell_often(1, Told::default(), 5);
    world.tell_often(2, Told::failed(FailureReason::VerificationFailed), 3);
    world.selector.on_dispatch(&peer(1), 500);
    assert!(world.select([1, 2], 4).is_empty());
}
