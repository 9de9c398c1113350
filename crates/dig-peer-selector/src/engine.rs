//! The selector: the specification's API (§5) over the engine.
//!
//! All state sits behind one lock that is held for the time of a call and never across I/O; outcomes do not wait for it (`inbox`). What the specification calls the
//! registry is the engine's table plus `Record`s in a parallel array; what it calls the model is the engine's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use dig_nat::{PeerId, TraversalKind};
use dig_peer::PeerTarget;
use peer_quality::hedge::Piece;
use peer_quality::rank::{Explanation, Work};
use peer_quality::units::Time;
use peer_quality::{Fact, Seed, Slot};

use crate::config::{ClockSource, SelectorConfig};
use crate::content::Content;
use crate::inbox::{Inbox, Told};
use crate::observe::{PeerSnapshot, SelectorSnapshot};
use crate::outcome::{OutcomeKind, TransferOutcome};
use crate::pool_event::{PoolEvent, PoolRemovalReason};
use crate::registry::{PeerEntry, path_of};
use crate::request::{Candidate, ContentRequest, Provenance, RangePlanDelta, SelectedPeer, Selection};
use crate::review::{RangeReview, RangeUnderWay, UnderWay};
use crate::state::{State, work};
use crate::tap::{Call, Tap};

/// Ranks the sources of a content and learns from every outcome. Cheap to share: all methods take `&self`.
///
/// Nothing here blocks on I/O, panics on any input, or trusts what a peer says of itself. An unknown peer in any call is registered first; an empty
/// candidate set gives an empty selection. A call takes account of everything that was told by calls that had returned when it began, on whatever thread.
#[derive(Debug)]
pub struct PeerSelector {
    clock: ClockSource,
    tap: Option<Arc<dyn Tap>>,
    state: Mutex<State>,
    inbox: Inbox,
}

impl PeerSelector {
    /// A selector that knows nobody.
    pub fn new(config: SelectorConfig) -> Self {
        PeerSelector::begin(config, None)
    }

    /// A selector that shows everything it is told and answers to a [tap](crate::tap). Not part of the specified interface.
    #[doc(hidden)]
    pub fn with_tap(config: SelectorConfig, tap: Arc<dyn Tap>) -> Self {
        PeerSelector::begin(config, Some(tap))
    }

    fn begin(config: SelectorConfig, tap: Option<Arc<dyn Tap>>) -> Self {
        let drawn = config.seed();
        if let Some(tap) = &tap {
            tap.begins(drawn, config.registry_capacity);
        }
        let state = State::new(config.registry_capacity, Seed::new(drawn));
        PeerSelector { clock: config.clock, tap, state: Mutex::new(state), inbox: Inbox::default() }
    }

    /// Shows a call to the tap, if there is one. The lock is held, so that calls are shown in the order in which they took effect.
    fn show(&self, _locked: &MutexGuard<'_, State>, at: Time, call: &Call<'_>) {
        if let Some(tap) = &self.tap {
            tap.called(at, call);
        }
    }

    /// The state, with all that was told.
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock; should it happen all the same, the tables are still sound.
        self.caught_up(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, if nobody else has it.
    fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(self.caught_up(state)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.caught_up(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn caught_up<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if !self.inbox.is_empty() {
            self.take_in(&mut state);
        }
        state
    }

    #[cold]
    fn take_in(&self, state: &mut MutexGuard<'_, State>) {
        let mut told = self.inbox.take(std::mem::take(&mut state.told));
        for Told { outcome, at } in told.drain(..) {
            self.learn(state, &outcome, at);
        }
        state.told = told;
    }

    /// Chooses sources for `req` among `candidates`, best first, at most [`ContentRequest::parallelism`] of them (spec §5.1).
    ///
    /// Registers unknown candidates. Reserves what it recommends in place of what the previous selection for this content reserved. Each candidate counts once
    /// however often it is given; banned and saturated peers are left out; with `range_count` of zero nobody is needed.
    pub fn select(&self, req: &ContentRequest, candidates: &[Candidate]) -> Selection {
        let now = self.clock.moment();
        let mut state = self.lock();
        let Some(content) = state.content(&req.content) else { return Selection::empty() };
        state.release_leases(content, now, |_| true);
        // That nobody is needed any more says nothing of who holds it.
        if req.range_count != Some(0) || !candidates.is_empty() {
            state.name_candidates(content, candidates, &self.clock, now);
        }
        let gave = match req.range_count {
            Some(0) => Selection::empty(),
            ranges => state.choose(req, content, ranges, &[], now),
        };
        self.show(&state, now, &Call::Select { request: req, candidates, gave: &gave });
        gave
    }

    /// Chooses sources for the ranges in `need` among the holders of the content, with everything learned so far (spec §5.5).
    ///
    /// Holders are the candidates of the latest [`select`](Self::select) for this content (one that wants nothing and names nobody is none) and peers that delivered a range of it. Peers in `active` keep what they
    /// were promised, so saturated ones are left out, and those whose latest range failed come only if nobody else is left.
    pub fn rebalance(&self, req: &ContentRequest, active: &[PeerId], need: &RangePlanDelta) -> Selection {
        let now = self.clock.moment();
        let mut state = self.lock();
        let Some(content) = state.content(&req.content) else { return Selection::empty() };
        let busy: Vec<Slot> = active.iter().filter_map(|peer| state.engine.find(peer.as_bytes())).collect();
        // Whoever is failing delivers nothing of what it was promised.
        let engine = &state.engine;
        let keeps: Vec<Slot> = busy.iter().copied().filter(|&slot| !engine.is_failing(slot)).collect();
        state.release_leases(content, now, |slot| !keeps.contains(&slot));
        let gave = if need.is_empty() {
            Selection::empty()
        } else {
            state.name_holders(content, now);
            state.choose(req, content, Some(need.len()), &busy, now)
        };
        self.show(&state, now, &Call::Rebalance { request: req, active, need, gave: &gave });
        gave
    }

    /// Which of the ranges under way for a content another of its holders would bring sooner, and when to ask again (HEDGE). `range_count` and `total_length` of
    /// the request are those of the ranges that nobody was asked for yet, zero at the end of a transfer.
    ///
    /// Where requests can be dropped ([`Recourse::GiveUp`](crate::Recourse::GiveUp)) a range to be moved is given up, reported with the bytes that came of it as one that ran out of time (or as
    /// cancelled, if it [was on time](crate::RangeMove::is_late)), and asked for anew through [`rebalance`](Self::rebalance). Where not ([`Recourse::Duplicate`](crate::Recourse::Duplicate)), the peer
    /// named is asked for it as well, and both ends are reported.
    ///
    /// Beyond the published interface: who never asks loses nothing else. Ranges of unknown peers are passed over. What would be chosen next does not change. What a
    /// move wastes is paid for, out of a twentieth of what arrives, when it is named: ask only about ranges that can be moved.
    pub fn review(&self, req: &ContentRequest, under_way: &UnderWay<'_>) -> RangeReview {
        let now = self.clock.moment();
        let mut state = self.lock();
        let Some(content) = state.contents.find(&req.content) else { return RangeReview::default() };
        let known = |(at, range): (usize, &RangeUnderWay)| {
            Some((at, range.piece(state.engine.find(range.peer_id.as_bytes())?, now)))
        };
        let (places, pieces): (Vec<usize>, Vec<Piece>) = under_way.ranges.iter().enumerate().filter_map(known).unzip();
        let mut holders = state.holders(content);
        holders.retain(|&slot| !state.contents.value(content).lacks(slot, now));
        let largest = pieces.iter().map(|piece| piece.size).max().unwrap_or_default();
        let work = work(req, state.contents.value(content), req.range_count);
        let work = Work { range: largest, wanted: under_way.free_slots, ..work };
        let mut moves = Vec::new();
        let again = state.engine.review(&work, under_way.recourse, &pieces, &holders, now, &mut moves);
        RangeReview::of(&moves, again, &places, |slot| state.engine.key(slot))
    }

    /// Learns from a measured outcome (spec §5.2). An unknown peer is registered first. A [`OutcomeKind::Request`] outcome says nothing about one range
    /// of one peer: it settles none and moves no estimate.
    ///
    /// Does not wait for a selection on another thread, unless a thousand outcomes wait for it already.
    pub fn record_outcome(&self, outcome: &TransferOutcome) {
        let at = self.clock.moment();
        match self.try_lock() {
            Some(mut state) => self.learn(&mut state, outcome, at),
            None if self.inbox.leave(Told { outcome: *outcome, at }) => {}
            None => self.learn(&mut self.lock(), outcome, at),
        }
    }

    fn learn(&self, state: &mut MutexGuard<'_, State>, outcome: &TransferOutcome, now: Time) {
        self.show(state, now, &Call::Outcome(outcome));
        let Some(slot) = state.admit(&outcome.peer_id, Provenance::Manual, &self.clock) else { return };
        if let (OutcomeKind::Range { .. }, Some(content)) = (outcome.kind, state.content(&outcome.content)) {
            state.learn(slot, content, outcome, now);
        }
    }

    /// Tells that `count` ranges were dispatched to `peer` just now. Hosts that never call this are taken to dispatch what was recommended.
    pub fn on_dispatch(&self, peer: &PeerId, count: u32) {
        let now = self.clock.moment();
        let mut state = self.lock();
        self.show(&state, now, &Call::Dispatched { peer, count });
        let Some(slot) = state.admit(peer, Provenance::Manual, &self.clock) else { return };
        state.dispatched(slot, count, now);
    }

    /// Takes in churn of the connected pool (spec §5.4). Adding a banned peer lifts its ban; a removed peer keeps its record.
    pub fn on_pool_event(&self, event: &PoolEvent) {
        let now = self.clock.moment();
        let mut state = self.lock();
        self.show(&state, now, &Call::Pool(event));
        match event {
            PoolEvent::PeerAdded { peer_id, addr } => {
                let Some(slot) = state.admit(peer_id, Provenance::Gossip, &self.clock) else { return };
                let state = &mut *state;
                if let Some(record) = &mut state.records[slot.index()] {
                    record.connect(*addr);
                    state.engine.handle_at(slot, Fact::Located(record.group()), now);
                }
                state.engine.handle_at(slot, Fact::Readmitted, now);
                state.engine.handle_at(slot, Fact::Connected, now);
            }
            PoolEvent::PeerRemoved { peer_id, reason } => {
                let banned = *reason == PoolRemovalReason::Banned;
                let known = state.engine.find(peer_id.as_bytes());
                // Only a ban is worth an entry of its own.
                let slot = if banned { state.admit(peer_id, Provenance::Gossip, &self.clock) } else { known };
                let Some(slot) = slot else { return };
                if let Some(record) = &mut state.records[slot.index()] {
                    record.disconnect();
                }
                state.engine.handle_at(slot, Fact::Disconnected, now);
                state.engine.handle_at(slot, Fact::Reached(path_of(None)), now);
                if banned {
                    state.engine.handle_at(slot, Fact::Banned, now);
                }
            }
        }
    }

    /// Notes how a peer is reached (spec §5.4).
    pub fn on_connection_class(&self, peer: &PeerId, class: TraversalKind) {
        let now = self.clock.moment();
        let mut state = self.lock();
        self.show(&state, now, &Call::Class { peer, class });
        let Some(slot) = state.admit(peer, Provenance::Nat, &self.clock) else { return };
        state.set_class(slot, class, now);
    }

    /// Registers a peer given by the host.
    pub fn upsert_candidate(&self, candidate: &Candidate) {
        self.upsert_candidate_from(candidate, Provenance::Manual);
    }

    /// Registers a peer with the evidence it comes with, for feeds other than the DHT and the pool (such as peer exchange).
    pub fn upsert_candidate_from(&self, candidate: &Candidate, provenance: Provenance) {
        let now = self.clock.moment();
        let mut state = self.lock();
        self.show(&state, now, &Call::Upsert { candidate, provenance });
        state.engine.begin_request();
        state.name_candidate(candidate, None, provenance, &self.clock, now);
    }

    /// Forgets a peer altogether, what it was promised and what was proven against it included.
    pub fn remove_peer(&self, peer: &PeerId) {
        let mut state = self.lock();
        self.show(&state, self.clock.moment(), &Call::Removed(peer));
        if let Some(slot) = state.engine.remove(peer.as_bytes()) {
            state.records[slot.index()] = None;
        }
    }

    /// What to dial to reach a registered peer; none for an unknown one (spec §7.4).
    pub fn peer_target(&self, peer: &PeerId, network_id: &str) -> Option<PeerTarget> {
        let addresses = self.lock().addresses(peer)?;
        Some(crate::dial::peer_target(*peer, &addresses, network_id))
    }

    /// The selected peers with what to dial for each, in rank order.
    pub fn dial_plan(&self, selection: &Selection, network_id: &str) -> Vec<(SelectedPeer, PeerTarget)> {
        let target = |chosen: &SelectedPeer| Some((*chosen, self.peer_target(&chosen.peer_id, network_id)?));
        selection.peers.iter().filter_map(target).collect()
    }

    /// What is known of a peer.
    pub fn peer_entry(&self, peer: &PeerId) -> Option<PeerEntry> {
        let now = self.clock.moment();
        let state = self.lock();
        let slot = state.engine.find(peer.as_bytes())?;
        state.entry(slot, now)
    }

    /// What is known of a peer, ready to print or serialise (spec §5.7).
    pub fn peer_snapshot(&self, peer: &PeerId) -> Option<PeerSnapshot> {
        self.peer_entry(peer).as_ref().map(PeerSnapshot::of)
    }

    /// What is known altogether (spec §5.7).
    pub fn snapshot(&self) -> SelectorSnapshot {
        let now = self.clock.moment();
        let state = self.lock();
        let entries = state.engine.slots().filter_map(|slot| state.entry(slot, now));
        let tried = state.engine.slots().filter(|&slot| state.engine.was_tried(slot)).count();
        let leases = state.records.iter().flatten().map(|record| record.leases().len()).sum();
        SelectorSnapshot::of(entries, &state.engine, tried, leases)
    }

    /// How many peers are registered: never more than the configured capacity.
    pub fn registry_size(&self) -> usize {
        self.lock().engine.len()
    }

    /// Why a [`select`](Self::select) for `req` would choose as it would, without choosing: every known candidate with its terms (RANK-6).
    pub fn explain(&self, req: &ContentRequest, candidates: &[Candidate]) -> Explanation<PeerId> {
        let now = self.clock.moment();
        let state = self.lock();
        let mut slots: Vec<Slot> =
            candidates.iter().filter_map(|one| state.engine.find(one.peer_id.as_bytes())).collect();
        slots.sort_unstable();
        slots.dedup();
        let content = state.contents.find(&req.content).map(|slot| state.contents.value(slot));
        let work = work(req, content.unwrap_or(&Content::default()), req.range_count);
        let explanation = state.engine.explain(&work, &slots, now);
        explanation.map(PeerId::from_bytes)
    }
}
