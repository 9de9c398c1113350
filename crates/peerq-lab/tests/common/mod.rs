//! Worlds and policies for tests of the simulator.
#![allow(dead_code, unreachable_pub)]

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Time};
use peerq_lab::model::{Behaviour, Client, PeerGroup, RunResult, Workload, World};
use peerq_lab::policy::{Ask, Grant, PeerIndex, Policy};
use peerq_lab::sim::{self, Fact, Observer};

/// An honest group on a clean link.
pub fn group(name: &str, count: u32, rate: f64, rtt_ms: f64) -> PeerGroup {
    PeerGroup::honest(name, count, rate, rtt_ms)
}

/// A group that behaves.
pub fn behaving(name: &str, rate: f64, behaviour: Behaviour) -> PeerGroup {
    PeerGroup { behaviour, ..group(name, 1, rate, 50.0) }
}

pub fn world(peers: Vec<PeerGroup>) -> World {
    World { peers, client: Client::default(), ..World::default() }
}

/// One download after the other.
pub fn downloads(requests: u32, ranges: u32, range_bytes: u64, in_flight: u32) -> Workload {
    Workload::Downloads {
        requests,
        ranges,
        range_bytes,
        sources: in_flight,
        in_flight,
        pause_s: 0.0,
        range_timeout_s: 30.0,
    }
}

/// Gives every free range to the candidates in turn.
#[derive(Default)]
pub struct InTurn {
    next: usize,
}

impl Policy for InTurn {
    fn name(&self) -> &'static str {
        "in-turn"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        let grant = |_| {
            self.next += 1;
            let peer = ask.candidates.get(self.next % ask.candidates.len().max(1))?.peer;
            Some(Grant { peer, ranges: 1 })
        };
        (0..ask.free).filter_map(grant).collect()
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, _peer: PeerIndex, _content: u64, _range: Bytes, _delivery: &Delivery, _now: Time) {}
}

/// Counts what is told, and keeps it.
#[derive(Default)]
pub struct Ledger {
    pub start: Time,
    pub facts: Vec<(Time, Fact)>,
    pub decisions: usize,
}

impl Observer for Ledger {
    fn starts(&mut self, at: Time) {
        self.start = at;
    }

    fn fact(&mut self, now: Time, fact: &Fact) {
        self.facts.push((now, *fact));
    }

    fn decision(&mut self, _now: Time, _ask: &Ask<'_>, _grants: Option<&[Grant]>) {
        self.decisions += 1;
    }
}

impl Ledger {
    /// Ends, with the second of each since the run's start.
    pub fn ends(&self) -> impl Iterator<Item = (f64, PeerIndex, Delivery)> + '_ {
        self.facts.iter().filter_map(|(now, fact)| match fact {
            Fact::Ended { peer, delivery, .. } => Some((now.since(self.start).as_secs_f64(), *peer, *delivery)),
            _ => None,
        })
    }

    pub fn count(&self, end: End) -> usize {
        self.ends().filter(|(_, _, delivery)| delivery.end == end).count()
    }

    /// Requests sent and not ended.
    pub fn in_flight(&self) -> i64 {
        self.facts
            .iter()
            .map(|(_, fact)| {
                i64::from(matches!(fact, Fact::Sent { .. })) - i64::from(matches!(fact, Fact::Ended { .. }))
            })
            .sum()
    }
}

/// Runs in turn and watches.
pub fn watched(world: &World, workload: &Workload, seed: u64) -> (RunResult, Ledger) {
    let mut ledger = Ledger::default();
    let result = sim::run(world, workload, &mut InTurn::default(), seed, &mut ledger).expect("a possible world");
    (result, ledger)
}

/// The seconds that one fetch of these bytes takes.
pub fn one_fetch(world: &World, bytes: u64, seed: u64) -> f64 {
    let workload = Workload::Downloads {
        requests: 1,
        ranges: 1,
        range_bytes: bytes,
        sources: 1,
        in_flight: 1,
        pause_s: 0.0,
        range_timeout_s: 10_000.0,
    };
    let result = sim::run(world, &workload, &mut InTurn::default(), seed, &mut ()).expect("a possible world");
    result.requests[0].end_s.expect("it ends") - result.requests[0].start_s
}
