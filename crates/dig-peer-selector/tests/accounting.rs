//! In-flight accounting (spec §5.3): scenarios C1, C2, C7, C8, C9, C13, C23.
#![allow(missing_docs)]

mod common;

use common::*;
use dig_peer_selector::{
    ContentRequest, DISPATCH_TTL_SECS, FailureReason, OutcomeKind, OutcomeResult, RangePlanDelta, TransferOutcome,
};

#[test]
fn c1_selections_without_outcomes_do_not_add_up() {
    let world = World::new(1);
    let most = world.select([1], 1).peers[0].max_concurrency;
    for _ in 0..50 {
        let again = world.select([1], 1);
        assert!(again.peers.iter().all(|chosen| chosen.max_concurrency <= most));
        assert!(world.known(1).in_flight <= most);
    }
}

#[test]
fn c1_another_content_sees_what_is_promised() {
    let world = World::new(1);
    let first = world.select([1], 1).peers[0].max_concurrency;
    let other = world.selector.select(&ContentRequest::new(content(2), 1), &candidates([1]));
    assert!(other.is_empty(), "the peer is promised to its limit: {other:?}");
    assert_eq!(world.known(1).in_flight, first);
}

#[test]
fn c2_a_finished_download_leaves_nothing_in_flight() {
    let world = World::new(2);
    for index in 0..64 {
        world.select([1, 2], 2);
        world.tell(peer(1 + (index % 2) as u8), Told { index, ..Told::default() });
        world.clock.advance(1);
    }
    world.clock.advance(DISPATCH_TTL_SECS + 1);
    assert_eq!((world.known(1).in_flight, world.known(2).in_flight), (0, 0), "read without another selection");
}

#[test]
fn c2_a_host_that_says_nothing_is_left_holds_nothing() {
    let world = World::new(2);
    for left in (0..64).rev() {
        let req = ContentRequest { range_count: Some(left + 1), ..ContentRequest::new(content(1), 2) };
        world.selector.select(&req, &candidates([1]));
        world.tell(peer(1), Told { index: left, ..Told::default() });
    }
    let done = ContentRequest { range_count: Some(0), ..ContentRequest::new(content(1), 2) };
    assert!(world.selector.select(&done, &candidates([1])).is_empty());
    assert_eq!(world.known(1).in_flight, 0);
}

#[test]
fn c2_explicit_dispatches_are_settled_one_by_one() {
    let world = World::new(2);
    for index in 0..64 {
        world.select([1], 1);
        world.selector.on_dispatch(&peer(1), 1);
        world.tell(peer(1), Told { index, ..Told::default() });
    }
    let none_left = ContentRequest { range_count: Some(0), ..ContentRequest::new(content(1), 1) };
    world.selector.select(&none_left, &candidates([1]));
    assert_eq!(world.known(1).in_flight, 0);
}

#[test]
fn c2_what_a_host_does_not_take_is_free_once_all_that_it_took_has_ended() {
    // One range of each of many contents, though more is offered: the best of three stays the best (C27).
    let world = World::new(27);
    (1..=3).for_each(|id| world.tell_often(id, Told { ms: if id == 1 { 100 } else { 10_000 }, ..Told::default() }, 5));
    let mut best = 0;
    for nth in 0..150 {
        let request = ContentRequest::new(content(nth), 1);
        let chosen = world.selector.select(&request, &candidates(1..=3)).peers[0].peer_id;
        world.selector.on_dispatch(&chosen, 1);
        let ms = if chosen == peer(1) { 100 } else { 10_000 };
        world.tell(chosen, Told { content: content(nth), ms, ..Told::default() });
        assert_eq!([1, 2, 3].map(|id| world.known(id).in_flight), [0; 3], "{nth}");
        best += u32::from(chosen == peer(1));
    }
    assert!(best >= 128, "{best} of 150");
}

#[test]
fn c7_interleaved_outcomes_settle_the_dispatches_they_belong_to() {
    // Two slow ranges, then two fast ones; the fast ones end first. What stays in flight must be the slow ones, which expire first.
    let world = World::new(7);
    world.selector.on_dispatch(&peer(1), 2);
    world.clock.advance(200);
    world.selector.on_dispatch(&peer(1), 2);
    world.clock.advance(1);
    for index in [3, 2] {
        world.tell(peer(1), Told { index, ms: 1000, ..Told::default() });
    }
    assert_eq!(world.known(1).in_flight, 2);
    world.clock.advance(DISPATCH_TTL_SECS - 200);
    assert_eq!(world.known(1).in_flight, 0);
}

#[test]
fn c8_a_dispatch_confirms_what_was_promised() {
    let world = World::new(8);
    let promised = world.select([1], 1).peers[0].max_concurrency;
    assert!(promised >= 3);
    world.selector.on_dispatch(&peer(1), promised);
    assert_eq!(world.known(1).in_flight, promised);
    world.selector.on_dispatch(&peer(2), 3);
    assert_eq!(world.known(2).in_flight, 3, "a dispatch nobody promised counts too");
}

#[test]
fn c9_a_request_outcome_settles_no_range_and_moves_no_rate() {
    let world = World::new(9);
    world.tell(peer(1), Told::default());
    world.selector.on_dispatch(&peer(1), 2);
    let before = world.known(1);
    world.selector.record_outcome(&TransferOutcome {
        peer_id: peer(1),
        content: content(1),
        kind: OutcomeKind::Request { total_length: 1 << 40 },
        result: OutcomeResult::Success,
        bytes: 1 << 40,
        duration_ms: 1,
        rtt_ms: Some(0),
        at: 0,
    });
    let after = world.known(1);
    assert_eq!((after.in_flight, after.throughput_bps, after.samples), (2, before.throughput_bps, before.samples));
}

#[test]
fn c13_a_busy_peer_is_busy_as_long_as_ranges_run() {
    let world = World::new(13);
    world.selector.on_dispatch(&peer(1), 1);
    for index in 0..200 {
        world.selector.on_dispatch(&peer(1), 1);
        world.clock.advance(10);
        world.tell(peer(1), Told { index, ms: 10_000, ..Told::default() });
        world.select([1, 2], 2);
        assert!(world.known(1).in_flight >= 1, "zeroed after {index} ranges");
    }
}

#[test]
fn c13_silence_is_released_after_the_ttl_and_not_before() {
    let world = World::new(13);
    world.selector.on_dispatch(&peer(1), 4);
    world.clock.advance(DISPATCH_TTL_SECS);
    assert_eq!(world.known(1).in_flight, 4);
    world.clock.advance(1);
    assert_eq!(world.known(1).in_flight, 0);
}

#[test]
fn c23_a_removed_peer_is_gone_with_all_it_was_promised() {
    let world = World::new(23);
    world.select([1, 2], 2);
    world.selector.on_dispatch(&peer(1), 2);
    world.selector.remove_peer(&peer(1));
    assert!(world.selector.peer_snapshot(&peer(1)).is_none());
    let left = world.selector.rebalance(&ContentRequest::new(content(1), 2), &[], &RangePlanDelta::of_count(4));
    assert!(!ids(&left).contains(&1), "{left:?}");
    world.select([1], 1);
    assert_eq!(world.known(1).samples, 0, "it comes back as a stranger");
}

#[test]
fn a_clock_that_steps_back_pins_nothing() {
    let world = World::new(14);
    world.select([1], 1);
    world.selector.on_dispatch(&peer(1), 2);
    world.clock.set(10);
    world.select([1], 1);
    world.clock.advance(DISPATCH_TTL_SECS + 1);
    world.select([], 1);
    assert_eq!(world.known(1).in_flight, 0);
}

#[test]
fn sel_07_a_cancelled_range_teaches_nothing_and_frees_its_place() {
    let world = World::new(7);
    world.tell_often(1, Told::default(), 6);
    world.selector.on_dispatch(&peer(1), 1);
    let before = world.known(1);
    let result = OutcomeResult::Failure { reason: FailureReason::Cancelled };
    world.tell(peer(1), Told { bytes: 5, ms: 900_000, result, ..Told::default() });
    let after = world.known(1);
    assert_eq!((before.in_flight, after.in_flight), (1, 0));
    assert_eq!(
        (before.samples, before.reliability, before.throughput_bps, before.rtt_ms),
        (after.samples, after.reliability, after.throughput_bps, after.rtt_ms)
    );
}
