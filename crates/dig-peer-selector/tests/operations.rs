//! Hostile input is normal input (EST-12, SEL-02, invariant F): any sequence of calls keeps the bounds, gives sane answers and is repeatable.
#![allow(missing_docs)]

mod common;

use common::*;
use dig_peer_selector::{
    Candidate, CandidateAddr, ContentRequest, DISPATCH_TTL_SECS, FailureReason, OutcomeKind, OutcomeResult, PoolEvent,
    PoolRemovalReason, RangePlanDelta, Selection, TransferOutcome, TraversalKind,
};
use proptest::prelude::*;

const CAPACITY: usize = 12;

#[derive(Clone, Debug)]
enum Op {
    Select {
        content: u8,
        peers: Vec<u8>,
        parallelism: usize,
        ranges: Option<usize>,
        total: Option<u64>,
    },
    Rebalance {
        content: u8,
        active: Vec<u8>,
        need: usize,
    },
    Outcome {
        peer: u8,
        content: u8,
        whole: bool,
        result: OutcomeResult,
        bytes: u64,
        ms: u64,
        rtt: Option<u64>,
        at: u64,
    },
    Dispatch {
        peer: u8,
        count: u32,
    },
    Added {
        peer: u8,
    },
    Removed {
        peer: u8,
        reason: PoolRemovalReason,
    },
    Class {
        peer: u8,
        relayed: bool,
    },
    Upsert {
        peer: u8,
        addresses: usize,
    },
    Forget {
        peer: u8,
    },
    Advance {
        secs: u64,
    },
    SetClock {
        secs: u64,
    },
}

/// Ordinary and extreme numbers alike.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..100_000_u64, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn result() -> impl Strategy<Value = OutcomeResult> {
    use FailureReason::*;
    let reason = prop::sample::select(vec![Timeout, Transport, Unavailable, VerificationFailed, Cancelled, Other]);
    prop_oneof![
        4 => Just(OutcomeResult::Success),
        2 => reason.prop_map(|reason| OutcomeResult::Failure { reason }),
        1 => number().prop_map(|bytes_before| OutcomeResult::Interrupted { bytes_before }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let peer = || 0..20_u8;
    let content = || 0..3_u8;
    let peers = || prop::collection::vec(0..20_u8, 0..16);
    let parallelism = prop_oneof![4 => 0..10_usize, 1 => Just(usize::MAX)];
    let reason =
        prop::sample::select(vec![PoolRemovalReason::Disconnected, PoolRemovalReason::Dead, PoolRemovalReason::Banned]);
    prop_oneof![
        6 => (content(), peers(), parallelism, prop::option::of(0..100_usize), prop::option::of(number()))
            .prop_map(|(content, peers, parallelism, ranges, total)| Op::Select { content, peers, parallelism, ranges, total }),
        2 => (content(), peers(), 0..50_usize).prop_map(|(content, active, need)| Op::Rebalance { content, active, need }),
        8 => (peer(), content(), prop::bool::weighted(0.1), result(), number(), number(), prop::option::of(number()), number())
            .prop_map(|(peer, content, whole, result, bytes, ms, rtt, at)| Op::Outcome { peer, content, whole, result, bytes, ms, rtt, at }),
        3 => (peer(), prop_oneof![4 => 0..5_u32, 1 => Just(u32::MAX)]).prop_map(|(peer, count)| Op::Dispatch { peer, count }),
        1 => peer().prop_map(|peer| Op::Added { peer }),
        1 => (peer(), reason).prop_map(|(peer, reason)| Op::Removed { peer, reason }),
        1 => (peer(), any::<bool>()).prop_map(|(peer, relayed)| Op::Class { peer, relayed }),
        1 => (peer(), 0..40_usize).prop_map(|(peer, addresses)| Op::Upsert { peer, addresses }),
        1 => peer().prop_map(|peer| Op::Forget { peer }),
        2 => (0..2 * DISPATCH_TTL_SECS).prop_map(|secs| Op::Advance { secs }),
        1 => number().prop_map(|secs| Op::SetClock { secs }),
    ]
}

/// Carries out one operation; its answer, if it has one, with the most peers it may name.
fn apply(world: &World, op: &Op) -> Option<(Selection, usize)> {
    let selector = &world.selector;
    match op {
        Op::Select { content: id, peers, parallelism, ranges, total } => {
            let req = ContentRequest {
                content: content(*id),
                total_length: *total,
                range_count: *ranges,
                parallelism: *parallelism,
            };
            let selection = selector.select(&req, &candidates(peers.iter().copied()));
            assert!(ids(&selection).iter().all(|chosen| peers.contains(chosen)), "only candidates are chosen");
            return Some((selection, req.effective_parallelism()));
        }
        Op::Rebalance { content: id, active, need } => {
            let active: Vec<_> = active.iter().map(|&id| peer(id)).collect();
            let req = ContentRequest::new(content(*id), 5);
            return Some((selector.rebalance(&req, &active, &RangePlanDelta::of_count(*need)), 5));
        }
        Op::Outcome { peer: id, content: of, whole, result, bytes, ms, rtt, at } => {
            let kind = if *whole {
                OutcomeKind::Request { total_length: *bytes }
            } else {
                OutcomeKind::Range { index: *ms as usize, offset: *bytes, length: *at }
            };
            selector.record_outcome(&TransferOutcome {
                peer_id: peer(*id),
                content: content(*of),
                kind,
                result: *result,
                bytes: *bytes,
                duration_ms: *ms,
                rtt_ms: *rtt,
                at: *at,
            });
        }
        Op::Dispatch { peer: id, count } => selector.on_dispatch(&peer(*id), *count),
        Op::Added { peer: id } => {
            selector
                .on_pool_event(&PoolEvent::PeerAdded { peer_id: peer(*id), addr: "[2001:db8::1]:1".parse().unwrap() });
        }
        Op::Removed { peer: id, reason } => {
            selector.on_pool_event(&PoolEvent::PeerRemoved { peer_id: peer(*id), reason: *reason });
        }
        Op::Class { peer: id, relayed } => {
            let class = if *relayed { TraversalKind::Relayed } else { TraversalKind::Direct };
            selector.on_connection_class(&peer(*id), class);
        }
        Op::Upsert { peer: id, addresses } => {
            let addresses = (0..*addresses).map(|port| CandidateAddr::direct("203.0.113.7", port as u16)).collect();
            selector.upsert_candidate(&Candidate::new(peer(*id), addresses));
        }
        Op::Forget { peer: id } => {
            selector.remove_peer(&peer(*id));
            assert!(selector.peer_snapshot(&peer(*id)).is_none());
        }
        Op::Advance { secs } => world.clock.advance(*secs),
        Op::SetClock { secs } => world.clock.set(*secs),
    }
    None
}

fn check(world: &World, answer: Option<&(Selection, usize)>) {
    assert!(world.selector.registry_size() <= CAPACITY);
    if let Some((selection, most)) = answer {
        assert!(selection.len() <= *most);
        let mut named = ids(selection);
        for (rank, chosen) in selection.peers.iter().enumerate() {
            assert_eq!(chosen.rank as usize, rank);
            assert!((1..=1024).contains(&chosen.max_concurrency));
            assert!(!world.known(chosen.peer_id.as_bytes()[0]).banned);
        }
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), selection.len(), "nobody is named twice");
    }
    for id in 0..20 {
        let Some(known) = world.selector.peer_snapshot(&peer(id)) else { continue };
        let sane = |value: Option<f64>| value.is_none_or(|value| value.is_finite() && value >= 0.0);
        assert!(sane(known.throughput_bps) && sane(known.rtt_ms) && sane(known.reliability), "{known:?}");
        assert!(known.reliability.is_none_or(|share| share <= 1.0));
        assert!(known.throughput_volatility.is_finite());
    }
    let whole = world.selector.snapshot();
    assert!(whole.relayed_penalty > 0.0 && whole.relayed_penalty <= 1.0);
    assert!(whole.last_selected_len <= CAPACITY && whole.dispatched_len <= 3 * CAPACITY);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_calls_keep_the_bounds_and_are_repeatable(seed in any::<u64>(), ops in prop::collection::vec(op(), 1..120)) {
        let (one, other) = (World::with_capacity(seed, CAPACITY), World::with_capacity(seed, CAPACITY));
        for op in &ops {
            let answer = apply(&one, op);
            prop_assert_eq!(&answer, &apply(&other, op));
            check(&one, answer.as_ref());
        }
    }
}

#[test]
fn c36_the_relayed_penalty_counts_failures_and_knows_of_unknown_paths_nothing() {
    let penalty = |world: &World| world.selector.snapshot().relayed_penalty;
    // Relayed links that fail every other time, in turn with direct ones that never do; the classes are told before or after.
    for told_first in [true, false] {
        let world = World::new(36);
        let tell_classes = || {
            world.selector.on_connection_class(&peer(1), TraversalKind::Direct);
            world.selector.on_connection_class(&peer(2), TraversalKind::Relayed);
        };
        if told_first {
            tell_classes();
        }
        for nth in 0..20 {
            world.tell_often(1, Told::default(), 1);
            let failed = Told::failed(FailureReason::Timeout);
            world.tell_often(2, if nth % 2 == 0 { failed } else { Told::default() }, 1);
        }
        if !told_first {
            tell_classes();
        }
        assert!((0.3..0.8).contains(&penalty(&world)), "{told_first}: {}", penalty(&world));
        world.selector.remove_peer(&peer(2));
        assert_eq!(penalty(&world), 1.0, "nothing is left of it");
    }
    // The only ones, beside peers of unknown kind.
    let world = World::new(36);
    world.selector.on_connection_class(&peer(2), TraversalKind::Relayed);
    world.tell_often(2, Told::rate(50_000), 20);
    world.tell_often(3, Told::rate(5_000_000), 20);
    assert_eq!(penalty(&world), 1.0);
}
