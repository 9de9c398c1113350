//! Ours without the selector: the engine driven directly, as a host with its own bookkeeping would that also measures on the wire (HOST-L1).
//!
//! The logic around it is the same, so a difference from [`peerq`](super::peerq) is the selector's own doing (leases, and what it remembers per content) or
//! that of the wire: bursts, round trips and their loss, from which it predicts before a fetch has completed and after its record has faded.

use std::collections::BTreeSet;

use peer_quality::audit::Standing;
use peer_quality::estimate::{Basis, Path, Rating};
use peer_quality::facts::AddressGroup;
use peer_quality::hedge::{self, Piece, Progress, Recourse};
use peer_quality::measure::wire::{Connection, Reply, Stamp};
use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::rank::{Advice, Work};
use peer_quality::units::{Bytes, Time};
use peer_quality::{Admission, Engine, Fact, Seed, Slot};

use super::driver::{Choice, Driver, Learned, Question, Selector};
use super::wires::Wires;
use super::{Candidate, Held, Move, PeerIndex, Policy, Review, Reviewed, Sight, Signal};

/// Peers remembered: as many as the selector does by default.
const CAPACITY: usize = 4096;

/// The policy, with the draws of `seed`.
pub fn engine(seed: u64) -> impl Policy {
    engine_gated(seed, 1.0)
}

/// The same with a gate that is so many times the usual one: what hangs on the gate, and what must not (scenario B1).
pub fn engine_gated(seed: u64, gate_scale: f64) -> impl Policy {
    let engine = Engine::new(CAPACITY, Seed::new(seed));
    let bare = Bare {
        engine,
        described: BTreeSet::new(),
        advice: Advice::new(),
        wires: Wires::new(seed, gate_scale),
        paused_until: Time::ZERO,
    };
    Driver::new("engine", bare)
}

#[derive(Debug)]
struct Bare {
    engine: Engine<PeerIndex>,
    /// Candidates whose path and address the engine was told.
    described: BTreeSet<PeerIndex>,
    advice: Advice,
    wires: Wires,
    /// When we last began to read again; for ever while we do not.
    paused_until: Time,
}

impl Bare {
    fn replies(&mut self, peer: PeerIndex, begins: bool, now: Time) {
        let engine = &mut self.engine;
        self.wires.replies(peer, begins, now, &mut |peer, fact, now| {
            engine.handle(peer, fact, now);
        });
    }

    /// Tells every connection something.
    fn wire_all(&mut self, now: Time, what: impl FnMut(&mut Connection)) {
        let engine = &mut self.engine;
        self.wires.tell_all(now, what, &mut |peer, fact, now| {
            engine.handle(peer, fact, now);
        });
    }

    /// The handles of candidates.
    fn name_candidates(&mut self, candidates: &[Candidate], leave_out: &[PeerIndex], now: Time) -> Vec<Slot> {
        // What silence ended is known by now.
        self.wire_all(now, |connection| connection.on_timeout(now));
        self.engine.begin_request();
        let mut slots: Vec<Slot> = Vec::with_capacity(candidates.len());
        for candidate in candidates.iter().filter(|one| !leave_out.contains(&one.peer)) {
            let admission = self.engine.admit(candidate.peer);
            let Some(slot) = admission.slot() else { continue };
            if self.described.insert(candidate.peer) || matches!(admission, Admission::Fresh(_)) {
                let path = if candidate.relayed { Path::Relayed } else { Path::Direct };
                self.engine.handle_at(slot, Fact::Reached(path), now);
                // Groups are counted from 0, and 0 would be none.
                let group = AddressGroup::numbered(candidate.group.saturating_add(1));
                self.engine.handle_at(slot, Fact::Located(group), now);
            }
            if self.engine.name(slot) {
                slots.push(slot);
            }
        }
        slots
    }

    fn decide(&mut self, question: &Question<'_>, leave_out: &[PeerIndex]) -> Vec<Choice> {
        let slots = self.name_candidates(question.candidates, leave_out, question.now);
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

    const REVIEWS: bool = true;

    fn review(&mut self, review: &Review<'_>) -> Reviewed {
        let slots = self.name_candidates(review.candidates, &[], review.now);
        let piece = |held: &Held| {
            let progress = Some(Progress { bytes: held.arrived, first_byte: held.first_byte });
            let slot = self.engine.find(&held.peer)?;
            Some(Piece {
                slot,
                size: held.bytes,
                sent: held.sent,
                progress,
                holders: held.holders,
                given_up: held.given_up,
            })
        };
        // Everybody asked is known; if not, none of it can be judged.
        let Some(pieces) = review.held.iter().map(piece).collect::<Option<Vec<Piece>>>() else {
            return Reviewed::default();
        };
        let work = Work {
            range: review.range,
            ranges: Some(review.ranges_left),
            sources: review.sources as usize,
            scope: review.content,
            decision: 0,
            in_flight: review.held.len() as u32,
            wanted: Some(review.free),
        };
        let recourse = if review.can_drop { Recourse::GiveUp } else { Recourse::Duplicate };
        let mut moves = Vec::new();
        let again = self.engine.review(&work, recourse, &pieces, &slots, review.now, &mut moves);
        let moved = |one: &hedge::Move| Move { range: one.piece, to: self.engine.key(one.to), is_late: one.is_late };
        Reviewed { moves: moves.iter().map(moved).collect(), again }
    }

    fn dispatched(&mut self, peer: PeerIndex, now: Time) {
        self.engine.handle(peer, Fact::Sent { requests: 1 }, now);
    }

    fn record(&mut self, peer: PeerIndex, _content: u64, _range: Bytes, delivery: &Delivery, now: Time) {
        // How long it took while we did not read says nothing of the peer; that it was proven wrong, or said something, does.
        let was_paused = self.paused_until > Time::ZERO && self.paused_until + delivery.elapsed >= now;
        let is_timing = matches!(delivery.end, End::Completed | End::Failed(Fault::Timeout));
        let end = if was_paused && is_timing { End::Cancelled } else { delivery.end };
        self.engine.handle(peer, Fact::Ended(Delivery { end, ..*delivery }), now);
    }

    fn connected(&mut self, peer: PeerIndex, up: bool, now: Time) {
        self.engine.handle(peer, if up { Fact::Connected } else { Fact::Disconnected }, now);
        if up {
            self.wires.connected(peer, now);
        } else {
            self.wires.disconnected(peer);
        }
    }

    fn sight(&mut self) -> Option<&mut dyn Sight> {
        Some(self)
    }

    /// What it would be ranked by. Nobody is credited with the average of all: half of the rate, at least, is the peer's own.
    fn credited_rate(&self, peer: PeerIndex, _learned: Option<f64>, now: Time) -> Option<f64> {
        let slot = self.engine.find(&peer)?;
        let forecast = self.engine.forecast(slot, now);
        let is_own = |rating: Rating| rating.own >= 0.5;
        let counts = forecast.basis == Basis::Measured || self.engine.rating(slot, now).is_some_and(is_own);
        counts.then(|| 1.0 / f64::from(forecast.secs_per_byte))
    }

    fn trust(&self, peer: PeerIndex, now: Time) -> Option<f64> {
        let rating = self.engine.rating(self.engine.find(&peer)?, now)?;
        Some(rating.weight)
    }

    fn predicted_s(&self, peer: PeerIndex, range: Bytes, now: Time) -> Option<f64> {
        let forecast = self.engine.forecast(self.engine.find(&peer)?, now);
        Some(forecast.mean_s(range).into())
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

impl Sight for Bare {
    fn writes(&mut self, peer: PeerIndex, reply: Reply, now: Time) -> Stamp {
        self.wires.writes(peer, reply, now)
    }

    fn reads(&mut self, peer: PeerIndex, stamp: Stamp, payload: u32, now: Time) {
        let engine = &mut self.engine;
        self.wires.reads(peer, stamp, payload, now, &mut |peer, fact, now| {
            engine.handle(peer, fact, now);
        });
    }

    fn opens(&mut self, peer: PeerIndex, now: Time) {
        self.replies(peer, true, now);
    }

    fn ends(&mut self, peer: PeerIndex, now: Time) {
        self.replies(peer, false, now);
    }

    fn pauses(&mut self, now: Time) {
        self.paused_until = Time::MAX;
        self.wire_all(now, |connection| connection.on_pause(now, now));
    }

    fn resumes(&mut self, now: Time) {
        self.paused_until = now;
        self.wire_all(now, |connection| connection.on_resume(now));
    }

    fn wants_cookie(&self, peer: PeerIndex, now: Time) -> bool {
        self.wires.wants_cookie(peer, now)
    }

    fn poll_signal(&mut self) -> Option<Signal> {
        self.wires.poll_signal()
    }
}
