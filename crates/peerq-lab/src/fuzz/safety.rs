//! The safety phase: whatever the world does, answers stay within bounds and nothing gets lost.

use std::collections::BTreeMap;

use peer_quality::units::Time;

use crate::model::{Kind, RunResult};
use crate::policy::{Ask, Grant, Opinion, PeerIndex, PolicyKind};
use crate::sim::{Fact, Observer, run};

use super::{Drawn, Found};

/// Violations that are told of one run; the rest would say the same.
const MAX_TOLD: usize = 5;

pub(super) fn check(drawn: &Drawn, kind: PolicyKind, seed: u64) -> Found {
    let mut witness = Witness::default();
    let result = kind
        .build(&drawn.world, &drawn.workload, seed)
        .and_then(|mut policy| run(&drawn.world, &drawn.workload, &mut *policy, seed, &mut witness));
    let result = match result {
        Ok(result) => result,
        Err(impossible) => {
            let broken = vec![format!("the world that was drawn is impossible: {impossible}")];
            return Found { broken, ..Found::default() };
        }
    };
    let mut broken = std::mem::take(&mut witness.broken);
    broken.extend(after(drawn, &result, &witness));
    broken.truncate(MAX_TOLD);
    Found { events: result.events, text: format!("{result:?}"), broken }
}

/// What has to hold of the whole run.
fn after(drawn: &Drawn, result: &RunResult, witness: &Witness) -> Vec<String> {
    let mut broken = Vec::new();
    if result.panics > 0 {
        broken.push(format!("{} panics", result.panics));
    }
    if let Some((peer, left)) = witness.in_flight.iter().find(|(_, left)| **left != 0) {
        broken.push(format!("{left} ranges of peer {} never ended", peer.0));
    }
    let delivered: u64 = result.peers.iter().map(|peer| peer.bytes).sum();
    let received: u64 = result.requests.iter().map(|request| request.bytes).sum();
    if delivered != received {
        broken.push(format!("peers delivered {delivered} bytes, requests received {received}"));
    }
    for (index, peer) in result.peers.iter().enumerate() {
        if peer.credited_rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            broken.push(format!("peer {index} is credited with {:?} bytes/s", peer.credited_rate));
        }
        if drawn.clean && peer.kind == Some(Kind::Honest) && peer.demoted_at_s.is_some() {
            broken.push(format!("honest peer {index} was convicted in a clean world"));
        }
    }
    broken
}

/// Checks each answer and counts what is in flight.
#[derive(Default)]
struct Witness {
    in_flight: BTreeMap<PeerIndex, i64>,
    broken: Vec<String>,
}

impl Witness {
    fn tell(&mut self, what: String) {
        if self.broken.len() < MAX_TOLD {
            self.broken.push(what);
        }
    }
}

impl Observer for Witness {
    fn fact(&mut self, now: Time, fact: &Fact) {
        let (peer, step) = match *fact {
            Fact::Sent { peer, .. } => (peer, 1),
            Fact::Ended { peer, .. } => (peer, -1),
            Fact::Connected { .. } => return,
        };
        let count = self.in_flight.entry(peer).or_default();
        *count += step;
        if *count < 0 {
            let us = now.as_micros();
            self.tell(format!("at {us} µs peer {} ended more ranges than it was sent", peer.0));
        }
    }

    fn decision(&mut self, now: Time, ask: &Ask<'_>, grants: Option<&[Grant]>) {
        let Some(grants) = grants else { return };
        let us = now.as_micros();
        let total: u64 = grants.iter().map(|grant| u64::from(grant.ranges)).sum();
        if total > u64::from(ask.free.min(ask.ranges_left)) {
            self.tell(format!("at {us} µs {total} ranges were granted of {} free", ask.free));
        }
        for grant in grants {
            if grant.ranges == 0 {
                self.tell(format!("at {us} µs peer {} was granted nothing", grant.peer.0));
            }
            if !ask.candidates.iter().any(|candidate| candidate.peer == grant.peer) {
                self.tell(format!("at {us} µs peer {} was granted work without being a candidate", grant.peer.0));
            }
        }
    }

    fn wants_opinions(&self) -> bool {
        true
    }

    fn opinion(&mut self, now: Time, peer: PeerIndex, opinion: &Opinion) {
        if opinion.credited_rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            let us = now.as_micros();
            self.tell(format!("at {us} µs peer {} was credited with {:?} bytes/s", peer.0, opinion.credited_rate));
        }
    }
}
