//! How work grows with the number of peers (invariant G of the specification: a decision and an outcome take time bounded by the size of candidates and registry).
//!
//! A policy that knows all its peers is asked again and again, and told how each range ended; once with few peers, once with many. The figure is the power of the
//! number of peers that the time grows with: 0 is independent of it, 1 proportional, 2 quadratic; sorting adds a little to 1. Time is read from a clock that the
//! caller gives, and this is the one figure of a study that is not a function of seeds: on a busy machine its second digit may differ.

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Span, Time};

use crate::model::{PeerGroup, Workload, World};
use crate::policy::{Ask, Candidate, PeerIndex, Policy, PolicyKind};

/// Few and many peers.
const PEERS: [u32; 2] = [256, 4096];

/// Rounds timed together.
const ROUNDS: u32 = 4;

/// Times of which the shortest counts: it has the least of other work in it.
const TIMES: u32 = 40;

/// Ranges asked for at once.
const RANGES: u32 = 16;

/// Bytes of a range.
const RANGE: u64 = 1 << 20;

/// The power that a policy's work grows with; none for an unknown one, or where the clock stands still. `clock` gives seconds from any origin.
pub(super) fn growth(policy: &str, clock: &dyn Fn() -> f64) -> Option<f64> {
    let [few, many] = PEERS.map(|peers| Some(shortest_s(&mut *build(policy, peers)?, peers, clock)));
    let (few_s, many_s) = (few?, many?);
    let power = libm::log(many_s / few_s) / libm::log(f64::from(PEERS[1]) / f64::from(PEERS[0]));
    power.is_finite().then_some((power * 100.0).round() / 100.0)
}

fn build(policy: &str, peers: u32) -> Option<Box<dyn Policy>> {
    let world = World { peers: vec![PeerGroup::honest("peer", peers, 1e7, 50.0)], ..World::default() };
    let workload = Workload::Downloads {
        requests: 1,
        ranges: RANGES,
        range_bytes: RANGE,
        sources: RANGES,
        in_flight: RANGES,
        pause_s: 0.0,
        range_timeout_s: 30.0,
    };
    PolicyKind::named(policy)?.build(&world, &workload, 1).ok()
}

fn shortest_s(policy: &mut dyn Policy, peers: u32, clock: &dyn Fn() -> f64) -> f64 {
    let candidate = |index| Candidate { peer: PeerIndex(index), group: index, relayed: false, handshake_rtt_s: 0.05 };
    let candidates: Vec<Candidate> = (0..peers).map(candidate).collect();
    let mut now = Time::from_secs(1);
    for one in &candidates {
        policy.connected(one.peer, true, now);
        policy.sent(one.peer, Bytes::new(RANGE), now);
        ended(policy, one.peer, now + Span::from_millis(100));
    }
    let mut shortest_s = f64::INFINITY;
    for _ in 0..TIMES {
        let begun = clock();
        for _ in 0..ROUNDS {
            now = now + Span::from_millis(200);
            round(policy, &candidates, now);
        }
        shortest_s = shortest_s.min(clock() - begun);
    }
    shortest_s
}

/// One decision and the outcomes of what it granted.
fn round(policy: &mut dyn Policy, candidates: &[Candidate], now: Time) {
    let ask = Ask {
        now,
        content: now.as_micros(),
        ranges_left: 4 * RANGES,
        range: Bytes::new(RANGE),
        free: RANGES,
        sources: RANGES,
        in_flight: 0,
        candidates,
    };
    let grants = policy.choose(&ask);
    for grant in &grants {
        (0..grant.ranges).for_each(|_| policy.sent(grant.peer, ask.range, now));
    }
    for grant in &grants {
        (0..grant.ranges).for_each(|_| ended(policy, grant.peer, now + Span::from_millis(100)));
    }
}

fn ended(policy: &mut dyn Policy, peer: PeerIndex, now: Time) {
    let delivery = Delivery {
        bytes: Bytes::new(RANGE),
        elapsed: Span::from_millis(100),
        first_byte: Some(Span::from_millis(50)),
        end: End::Completed,
    };
    policy.ended(peer, 1, Bytes::new(RANGE), &delivery, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_power_is_that_of_the_clock() {
        // Each look at the clock is a second later while few peers are asked about, and sixteen when there are sixteen times as many.
        let (looks, seconds) = (Cell::new(0_u32), Cell::new(0.0));
        let clock = || {
            looks.set(looks.get() + 1);
            seconds.set(seconds.get() + if looks.get() <= 2 * TIMES { 1.0 } else { 16.0 });
            seconds.get()
        };
        assert_eq!(growth("round-robin", &clock), Some(1.0));
        assert_eq!(growth("round-robin", &|| 0.0), None, "a clock that stands still");
        assert_eq!(growth("nobody", &clock), None);
    }
}
