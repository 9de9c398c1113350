//! The liveness phase: the faults of the same world heal, and work that starts some time later is done within a budget.

use crate::model::{Behaviour, Change, Workload, World};
use crate::policy::PolicyKind;
use crate::sim::{draw, run};

use super::draw::HEALED_S;
use super::{Drawn, Found};

/// Between the healing and the first closure that has to be on time, seconds: what hung before is given up by then, and pauses after failures are over.
const GRACE_S: f64 = 60.0;
/// Closures in all, one each [`EVERY_S`] seconds.
const CLOSURES: u32 = 30;
const EVERY_S: f64 = 5.0;
const CLOSURE_BYTES: u64 = 1_000_000;
const CHUNK_BYTES: u64 = 250_000;
/// A closure may take so many times what its fastest peer alone would need…
const SLACK: f64 = 30.0;
/// …and so many seconds besides, for round trips, trials of the healed and our own pauses.
const ALLOWANCE_S: f64 = 30.0;

pub(super) fn check(drawn: &Drawn, kind: PolicyKind, seed: u64) -> Found {
    let world = healed(&drawn.world);
    let workload = Workload::Closures {
        requests: CLOSURES,
        closure_bytes: CLOSURE_BYTES,
        chunk_bytes: CHUNK_BYTES,
        every_s: EVERY_S,
        deadline_s: 14.0,
        in_flight: 4,
    };
    let ran =
        kind.build(&world, &workload, seed).and_then(|mut policy| run(&world, &workload, &mut *policy, seed, &mut ()));
    let result = match ran {
        Ok(result) => result,
        Err(impossible) => {
            let broken = vec![format!("the healed world is impossible: {impossible}")];
            return Found { broken, ..Found::default() };
        }
    };
    let budget_s = budget_s(&world, seed);
    let late = |request: &&crate::model::RequestResult| {
        request.start_s >= HEALED_S + GRACE_S && request.end_s.is_none_or(|end_s| end_s - request.start_s > budget_s)
    };
    let mut broken = Vec::new();
    if let Some(request) = result.requests.iter().find(late) {
        let took =
            request.end_s.map_or("never ended".to_owned(), |end_s| format!("took {:.1} s", end_s - request.start_s));
        broken.push(format!(
            "a closure of {:.1} s, long after all faults healed, {took}; its budget is {budget_s:.1} s",
            request.start_s
        ));
    }
    Found { events: result.events, text: format!("{result:?}"), broken }
}

/// The world, with everybody honest and every link at its first rate from [`HEALED_S`] on.
fn healed(world: &World) -> World {
    let mut world = world.clone();
    for group in &mut world.peers {
        group.changes.push(Change {
            at_s: HEALED_S,
            rate: Some(group.rate),
            rtt_ms: None,
            behaviour: Some(Behaviour::Honest),
        });
    }
    world
}

fn budget_s(world: &World, seed: u64) -> f64 {
    let Ok(drawn) = draw(world, seed) else { return 0.0 };
    let link = |peer: &crate::sim::PeerDraw| {
        let own = peer.at(HEALED_S).rate;
        let shared = peer.shares.and_then(|link| drawn.shared.get(link)).copied().unwrap_or(f64::INFINITY);
        own.min(shared)
    };
    let best = drawn.peers.iter().map(link).fold(0.0, f64::max).min(world.client.downlink.unwrap_or(f64::INFINITY));
    ALLOWANCE_S + SLACK * CLOSURE_BYTES as f64 / best
}
