//! Ours without the selector: the engine driven directly, as a host with its own bookkeeping would.
//!
//! The logic around it is the same, so a difference from [`peerq`](super::peerq) is the selector's own doing: leases, and what it remembers per content.

use peer_quality::audit::Standing;
use peer_quality::estimate::Path;
use peer_quality::measure::Delivery;
use peer_quality::rank::{Advice, Work};
use peer_quality::units::{Bytes, Time};
use peer_quality::{Admission, Engine, Fact, Seed, Slot};

use super::driver::{Choice, Driver, Learned, Question, Selector};
use super::{PeerIndex, Policy};

/// Peers remembered: as many as the selector does by default.
const CAPACITY: usize = 4096;

/// The policy, with the draws of `seed`.
pub fn engine(seed: u64) -> impl Policy {
    Driver::new("engine", Bare { engine: Engine::new(CAPACITY, Seed::new(seed)), advice: Advice::new() })
}

#[derive(Clone, Debug)]
struct Bare {
    engine: Engine<PeerIndex>,
    advice: Advice,
}

impl Bare {
    fn decide(&mut self, question: &Question<'_>, leave_out: &[PeerIndex]) -> Vec<Choice> {
        self.engine.begin_request();
        let mut slots: Vec<Slot> = Vec::with_capacity(question.candidates.len());
        for candidate in question.candidates.iter().filter(|one| !leave_out.contains(&one.peer)) {
            let admission = self.engine.admit(candidate.peer);
            let Some(slot) = admission.slot() else { continue };
            if let Admission::Fresh(slot) = admission {
                let path = if candidate.relayed { Path::Relayed } else { Path::Direct };
                self.engine.handle_at(slot, Fact::Reached(path), question.now);
            }
            if self.engine.name(slot) {
                slots.push(slot);
            }
        }
        let work = Work {
            range: question.range,
            ranges: Some(question.ranges),
            sources: question.sources as usize,
            scope: question.content,
            decision: question.decision,
            in_flight: question.in_flight,
            wanted: Some(question.free),
        };
        let mut advice = std::mem::take(&mut self.advice);
        self.engine.decide(&work, &slots, question.now, &mut advice);
        let choices =
            advice.iter().map(|pick| Choice { peer: self.engine.key(pick.slot), room: pick.requests }).collect();
        self.advice = advice;
        choices
    }
}

impl Selector for Bare {
    const REBALANCES: bool = true;

    fn set_clock(&mut self, _now: Time) {}

    fn select(&mut self, question: &Question<'_>) -> Vec<Choice> {
        self.decide(question, &[])
    }

    fn rebalance(&mut self, question: &Question<'_>, active: &[PeerIndex]) -> Vec<Choice> {
        let failing = |peer: &PeerIndex| self.engine.find(peer).is_some_and(|slot| self.engine.is_failing(slot));
        let failing: Vec<PeerIndex> = active.iter().copied().filter(failing).collect();
        self.decide(question, &failing)
    }

    fn dispatched(&mut self, peer: PeerIndex, now: Time) {
        self.engine.handle(peer, Fact::Sent { requests: 1 }, now);
    }

    fn record(&mut self, peer: PeerIndex, _content: u64, _range: Bytes, delivery: &Delivery, now: Time) {
        self.engine.handle(peer, Fact::Ended(*delivery), now);
    }

    fn connected(&mut self, peer: PeerIndex, up: bool, now: Time) {
        self.engine.handle(peer, if up { Fact::Connected } else { Fact::Disconnected }, now);
    }

    fn learned(&self, peer: PeerIndex, now: Time) -> Learned {
        let Some(slot) = self.engine.find(&peer) else { return Learned::default() };
        let view = self.engine.view(slot, now);
        Learned { rate: view.slowness.map(|slowness| slowness.bytes_per_sec()), first_byte_s: view.first_byte_s }
    }

    fn is_demoted(&self, peer: PeerIndex, now: Time) -> bool {
        let Some(slot) = self.engine.find(&peer) else { return false };
        let view = self.engine.view(slot, now);
        view.cooling || matches!(view.standing, Standing::Banned | Standing::Condemned)
    }
}
