//! Hosts whose clock says little of how long a range takes, as it counts whole seconds, stands still or is moved by hand: scenarios C4 and C30 and invariant D, with the durations that the host
//! reports as the only truth.
#![allow(missing_docs)]

mod common;

use common::*;
use dig_peer_selector::ContentRequest;

/// Seconds that the clock moves before and after the outcomes of a round, whatever they took.
const TICKS: [(u64, u64); 5] = [(0, 0), (1, 0), (0, 1), (10, 0), (7, 2)];

/// The usual recommendation after 200 rounds to a peer that serves `ceiling` ranges at once, each in `ms`.
fn settled(ceiling: u64, ms: u64, (before, after): (u64, u64)) -> u32 {
    let world = World::new(4);
    let mut recommended = Vec::new();
    for _ in 0..300 {
        let at_once = world.select([1], 1).peers[0].max_concurrency;
        world.selector.on_dispatch(&peer(1), at_once);
        world.clock.advance(before);
        let each = Told { ms: ms * u64::from(at_once).max(ceiling) / ceiling, ..Told::default() };
        (0..at_once).for_each(|_| world.tell(peer(1), each));
        world.clock.advance(after);
        recommended.push(at_once);
    }
    let last = &mut recommended[200..];
    last.sort_unstable();
    last[last.len() / 2]
}

#[test]
fn c4_a_ceiling_is_learned_whatever_the_clock_says() {
    for ticks in TICKS {
        for ms in [100, 500, 2_000] {
            for ceiling in [1, 2, 8, 16] {
                let found = settled(ceiling, ms, ticks);
                // Two at least, so that one is on its way while the other waits for its first byte.
                let most = (ceiling as u32 * 3 / 2).max(2);
                assert!(
                    (1..=most).contains(&found) && 2 * found >= ceiling as u32,
                    "{ceiling} {ms} {ticks:?}: {found}"
                );
            }
        }
    }
}

#[test]
fn invariant_d_a_peer_that_recovers_is_back_after_two_good_ranges_whatever_the_clock_says() {
    for (before, after) in TICKS {
        let world = World::new(5);
        let mut chosen = Vec::new();
        for round in 0..200_u64 {
            let first = world.select([1, 2], 1).peers[0].peer_id;
            world.selector.on_dispatch(&first, 1);
            world.clock.advance(before);
            let is_slow = (60..140).contains(&round);
            let ms = if first == peer(2) { 400 } else { 100 + 3_900 * u64::from(is_slow) };
            world.tell(first, Told { ms, ..Told::default() });
            world.clock.advance(after);
            chosen.push(first == peer(1));
        }
        let good = chosen[150..].iter().filter(|is_first| **is_first).count();
        assert!(good >= 45, "{before} {after}: {good} of 50");
    }
}

#[test]
fn c30_of_equal_rates_the_nearer_comes_first_from_the_first_range_on() {
    for (far_ms, near_ms, body_ms) in [(5_000, 20, 10_000), (2_000, 10, 4_000), (3_000, 50, 4_000)] {
        for samples in [1, 2, 3, 20] {
            let world = World::new(30);
            for _ in 0..samples {
                for (id, rtt_ms) in [(1, far_ms), (2, near_ms)] {
                    world.selector.on_dispatch(&peer(id), 1);
                    world.tell(peer(id), Told { ms: rtt_ms + body_ms, rtt_ms: Some(rtt_ms), ..Told::default() });
                }
            }
            let request = ContentRequest { range_count: Some(1), ..ContentRequest::new(content(1), 1) };
            assert_eq!(ids(&world.selector.select(&request, &candidates([1, 2]))), [2], "{far_ms} {samples}");
            let shown = world.known(1).throughput_bps.unwrap() * body_ms as f64 / 1e3 / MIB as f64;
            assert!((0.9..1.1).contains(&shown), "{far_ms} {samples}: {shown} of its rate");
        }
    }
}
