//! The registry (spec §2): scenarios C11, C16, C20, C43, C45, C46.
#![allow(missing_docs)]

mod common;

use common::*;
use dig_peer_selector::{
    Candidate, ContentRequest, FailureReason, PoolEvent, PoolRemovalReason, Provenance, RangePlanDelta, TraversalKind,
};

fn added(id: u8) -> PoolEvent {
    PoolEvent::PeerAdded { peer_id: peer(id), addr: "203.0.113.9:9444".parse().unwrap() }
}

fn removed(id: u8, reason: PoolRemovalReason) -> PoolEvent {
    PoolEvent::PeerRemoved { peer_id: peer(id), reason }
}

#[test]
fn c11_a_candidate_given_three_times_is_one_candidate() {
    let world = World::new(11);
    let selection = world.select([1, 1, 1, 2, 1], 8);
    let mut chosen = ids(&selection);
    chosen.sort_unstable();
    assert_eq!(chosen, [1, 2]);
    assert_eq!(world.selector.registry_size(), 2);
}

#[test]
fn c16_a_ban_outlives_a_flood_of_strangers() {
    let world = World::with_capacity(16, 8);
    world.selector.on_pool_event(&added(1));
    world.selector.on_pool_event(&removed(1, PoolRemovalReason::Banned));
    for id in 0..500 {
        world.selector.upsert_candidate(&candidate_of(stranger(id)));
        assert!(world.selector.registry_size() <= 8);
    }
    assert!(world.select([1], 4).is_empty());
    assert!(world.known(1).banned);
    world.selector.on_pool_event(&added(1));
    assert_eq!(ids(&world.select([1], 4)), [1], "the pool admits it again");
}

#[test]
fn c16_a_stranger_can_be_banned_before_it_was_ever_seen() {
    let world = World::with_capacity(16, 8);
    world.selector.on_pool_event(&removed(7, PoolRemovalReason::Banned));
    assert!(world.select([7], 4).is_empty());
    world.selector.on_pool_event(&removed(8, PoolRemovalReason::Dead));
    assert!(world.selector.peer_snapshot(&peer(8)).is_none(), "an ordinary removal of a stranger is no entry");
}

#[test]
fn failed_verifications_outlive_a_flood_of_strangers() {
    // C18 in its simplest form.
    let world = World::with_capacity(18, 8);
    world.tell_often(1, Told::failed(FailureReason::VerificationFailed), 6);
    (0..500).for_each(|id| world.selector.upsert_candidate(&candidate_of(stranger(id))));
    assert_eq!(ids(&world.select([1, 2], 1)), [2]);
    assert_eq!(world.known(1).hard_failures, 6);
}

#[test]
fn c20_one_seed_is_one_history() {
    let history = |seed| {
        let world = World::new(seed);
        let req = ContentRequest::new(content(1), 6);
        let mut log = vec![world.selector.select(&req, &candidates(1..=40))];
        for round in 0..10 {
            let active: Vec<_> = log[round].peers.iter().map(|chosen| chosen.peer_id).collect();
            log.push(world.selector.rebalance(&req, &active, &RangePlanDelta::of_count(6)));
        }
        log
    };
    let first = history(5);
    assert!(first.iter().all(|selection| !selection.is_empty()));
    for _ in 0..10 {
        assert_eq!(history(5), first);
    }
    assert_ne!(history(6), first, "another seed draws another order among equals");
}

#[test]
fn c43_a_connection_class_ends_with_its_link() {
    let world = World::new(43);
    world.selector.on_pool_event(&added(1));
    world.selector.on_connection_class(&peer(1), TraversalKind::Relayed);
    assert_eq!(world.known(1).connection_class.as_deref(), Some("relayed"));
    world.selector.on_pool_event(&removed(1, PoolRemovalReason::Disconnected));
    assert_eq!(world.known(1).connection_class, None);
    world.selector.on_connection_class(&peer(1), TraversalKind::Direct);
    assert_eq!(world.known(1).connection_class.as_deref(), Some("direct"));
}

#[test]
fn c45_each_feed_leaves_its_provenance() {
    let world = World::new(45);
    world.select([1], 1);
    world.selector.on_pool_event(&added(2));
    world.selector.on_connection_class(&peer(3), TraversalKind::Upnp);
    world.selector.upsert_candidate(&candidate_of(peer(4)));
    world.selector.upsert_candidate_from(&candidate_of(peer(5)), Provenance::Pex);
    let found: Vec<Provenance> = (1..=5).map(|id| world.known(id).provenance).collect();
    use Provenance::*;
    assert_eq!(found, [Dht, Gossip, Nat, Manual, Pex]);
    world.selector.upsert_candidate_from(&candidate_of(peer(3)), Provenance::Pex);
    assert_eq!(world.known(3).provenance, Nat, "weaker evidence changes nothing");
}

#[test]
fn c46_nothing_is_invented_about_a_cold_peer() {
    let world = World::new(46);
    world.selector.upsert_candidate(&Candidate::new(peer(1), vec![]));
    let cold = world.known(1);
    assert_eq!((cold.reliability, cold.throughput_bps, cold.rtt_ms), (None, None, None));
    assert_eq!((cold.samples, cold.hard_failures, cold.in_flight, cold.throughput_volatility), (0, 0, 0, 0.0));
}

#[test]
fn a_reconnecting_peer_keeps_its_record() {
    let world = World::new(2);
    world.selector.on_pool_event(&added(1));
    world.tell_often(1, Told::rate(5_000_000), 5);
    let learned = world.known(1).throughput_bps;
    for reason in [PoolRemovalReason::Disconnected, PoolRemovalReason::Dead] {
        world.selector.on_pool_event(&removed(1, reason));
        world.selector.on_pool_event(&added(1));
    }
    assert!(learned.is_some() && world.known(1).throughput_bps == learned);
}

#[test]
fn a_live_link_is_never_evicted_and_the_bound_holds_all_the_same() {
    let world = World::with_capacity(3, 4);
    (1..=4).for_each(|id| world.selector.on_pool_event(&added(id)));
    let flood: Vec<Candidate> = (0..100).map(|id| candidate_of(stranger(id))).collect();
    let selection = world.selector.select(&ContentRequest::new(content(1), 8), &flood);
    assert!(selection.is_empty(), "nobody of them could be registered");
    assert_eq!(world.selector.registry_size(), 4);
    assert!((1..=4).all(|id| world.known(id).connected));
}
