//! The selector: the specification's API (§5) over the engine.
//!
//! All state sits behind one lock that is held for the time of a call and never across I/O. What the specification calls the registry is the engine's table
//! plus [`Record`]s in a parallel array; what it calls the model is the engine's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dig_dht::{CandidateAddr, ContentId};
use dig_nat::{PeerId, TraversalKind};
use dig_peer::PeerTarget;
use peer_quality::rank::{Advice, Explanation, Work};
use peer_quality::table::Table;
use peer_quality::units::Time;
use peer_quality::{Admission, Engine, Fact, Seed, Slot};

use crate::config::{ClockSource, SelectorConfig};
use crate::content::{Content, MAX_CONTENTS, Member};
use crate::leases::Lessee;
use crate::observe::{PeerSnapshot, SelectorSnapshot};
use crate::outcome::{FailureReason, OutcomeKind, OutcomeResult, TransferOutcome};
use crate::pool_event::{PoolEvent, PoolRemovalReason};
use crate::registry::{PeerEntry, Record, path_of};
use crate::request::{Candidate, ContentRequest, Provenance, RangePlanDelta, SelectedPeer, Selection};
use crate::tap::{Call, Tap};

/// Ranks the sources of a content and learns from every outcome. Cheap to share: all methods take `&self`.
///
/// Nothing here blocks on I/O, panics on any input, or trusts what a peer says of itself. An unknown peer in any call is registered first; an empty
/// candidate set gives an empty selection.
#[derive(Debug)]
pub struct PeerSelector {
    clock: ClockSource,
    tap: Option<Arc<dyn Tap>>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine<[u8; 32]>,
    /// Parallel to the engine's slots; a slot without a tenant has none.
    records: Vec<Option<Record>>,
    contents: Table<ContentId, Content>,
    tenancies: u64,
    slots: Vec<Slot>,
    advice: Advice,
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
        let seed = Seed::new(drawn);
        let inner = Inner {
            engine: Engine::new(config.registry_capacity, seed),
            records: Vec::new(),
            contents: Table::new(MAX_CONTENTS, seed),
            tenancies: 0,
            slots: Vec::new(),
            advice: Advice::new(),
        };
        PeerSelector { clock: config.clock, tap, inner: Mutex::new(inner) }
    }

    /// Shows a call to the tap, if there is one. The lock is held, so that calls are shown in the order in which they took effect.
    fn show(&self, _locked: &MutexGuard<'_, Inner>, at: Time, call: &Call<'_>) {
        if let Some(tap) = &self.tap {
            tap.called(at, call);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it holds the lock; should it happen all the same, the tables are still sound.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses sources for `req` among `candidates`, best first, at most [`ContentRequest::parallelism`] of them (spec §5.1).
    ///
    /// Registers unknown candidates. Reserves what it recommends in place of what the previous selection for this content reserved. Each candidate counts once
    /// however often it is given; banned and saturated peers are left out; with `range_count` of zero nobody is needed.
    pub fn select(&self, req: &ContentRequest, candidates: &[Candidate]) -> Selection {
        let (now, unix) = (self.clock.moment(), self.clock.now());
        let mut inner = self.lock();
        let content = inner.content(req.content);
        inner.release_leases(content, now, |_| true);
        inner.name_candidates(candidates, unix, now);
        let members = inner.slots.iter().map(|&slot| member(&inner.records, slot)).collect::<Vec<_>>();
        inner.contents.value_mut(content).give(members.into_iter());
        let gave = match req.range_count {
            Some(0) => Selection::empty(),
            ranges => inner.choose(req, content, ranges, &[], now),
        };
        self.show(&inner, now, &Call::Select { request: req, candidates, gave: &gave });
        gave
    }

    /// Chooses sources for the ranges in `need` among the holders of the content, with everything learned so far (spec §5.5).
    ///
    /// Holders are the candidates of the latest [`select`](Self::select) for this content and peers that delivered a range of it. Peers in `active` keep what they
    /// were promised, so saturated ones are left out, and those whose latest range failed come only if nobody else is left.
    pub fn rebalance(&self, req: &ContentRequest, active: &[PeerId], need: &RangePlanDelta) -> Selection {
        let now = self.clock.moment();
        let mut inner = self.lock();
        let content = inner.content(req.content);
        let busy: Vec<Slot> = active.iter().filter_map(|peer| inner.engine.find(peer.as_bytes())).collect();
        // Whoever is failing delivers nothing of what it was promised.
        let engine = &inner.engine;
        let keeps: Vec<Slot> = busy.iter().copied().filter(|&slot| !engine.is_failing(slot)).collect();
        inner.release_leases(content, now, |slot| !keeps.contains(&slot));
        let gave = if need.is_empty() {
            Selection::empty()
        } else {
            inner.name_holders(content, now);
            inner.choose(req, content, Some(need.len()), &busy, now)
        };
        self.show(&inner, now, &Call::Rebalance { request: req, active, need, gave: &gave });
        gave
    }

    /// Learns from a measured outcome (spec §5.2). An unknown peer is registered first. A [`OutcomeKind::Request`] outcome says nothing about one range
    /// of one peer: it settles none and moves no estimate.
    pub fn record_outcome(&self, outcome: &TransferOutcome) {
        let (now, unix) = (self.clock.moment(), self.clock.now());
        let mut inner = self.lock();
        self.show(&inner, now, &Call::Outcome(outcome));
        let Some(slot) = inner.admit(outcome.peer_id, Provenance::Manual, unix) else { return };
        let content = inner.content(outcome.content);
        if let OutcomeKind::Range { .. } = outcome.kind {
            inner.learn(slot, content, outcome, now);
        }
    }

    /// Tells that `count` ranges were dispatched to `peer` just now. Hosts that never call this are taken to dispatch what was recommended.
    pub fn on_dispatch(&self, peer: &PeerId, count: u32) {
        let (now, unix) = (self.clock.moment(), self.clock.now());
        let mut inner = self.lock();
        self.show(&inner, now, &Call::Dispatched { peer, count });
        let Some(slot) = inner.admit(*peer, Provenance::Manual, unix) else { return };
        if let Some(record) = &mut inner.records[slot.index()] {
            record.leases.confirm(count);
        }
        inner.sync_leases(slot, now);
        inner.engine.handle_at(slot, Fact::Sent { requests: count }, now);
    }

    /// Takes in churn of the connected pool (spec §5.4). Adding a banned peer lifts its ban; a removed peer keeps its record.
    pub fn on_pool_event(&self, event: &PoolEvent) {
        let (now, unix) = (self.clock.moment(), self.clock.now());
        let mut inner = self.lock();
        self.show(&inner, now, &Call::Pool(event));
        match event {
            PoolEvent::PeerAdded { peer_id, addr } => {
                let Some(slot) = inner.admit(*peer_id, Provenance::Gossip, unix) else { return };
                if let Some(record) = &mut inner.records[slot.index()] {
                    record.connect(*addr);
                }
                inner.engine.handle_at(slot, Fact::Readmitted, now);
                inner.engine.handle_at(slot, Fact::Connected, now);
            }
            PoolEvent::PeerRemoved { peer_id, reason } => {
                let banned = *reason == PoolRemovalReason::Banned;
                let known = inner.engine.find(peer_id.as_bytes());
                // Only a ban is worth an entry of its own.
                let slot = if banned { inner.admit(*peer_id, Provenance::Gossip, unix) } else { known };
                let Some(slot) = slot else { return };
                if let Some(record) = &mut inner.records[slot.index()] {
                    record.disconnect();
                }
                inner.engine.handle_at(slot, Fact::Disconnected, now);
                inner.engine.handle_at(slot, Fact::Reached(path_of(None)), now);
                if banned {
                    inner.engine.handle_at(slot, Fact::Banned, now);
                }
            }
        }
    }

    /// Notes how a peer is reached (spec §5.4).
    pub fn on_connection_class(&self, peer: &PeerId, class: TraversalKind) {
        let (now, unix) = (self.clock.moment(), self.clock.now());
        let mut inner = self.lock();
        self.show(&inner, now, &Call::Class { peer, class });
        let Some(slot) = inner.admit(*peer, Provenance::Nat, unix) else { return };
        inner.set_class(slot, class, now);
    }

    /// Registers a peer given by the host.
    pub fn upsert_candidate(&self, candidate: &Candidate) {
        self.upsert_candidate_from(candidate, Provenance::Manual);
    }

    /// Registers a peer with the evidence it comes with, for feeds other than the DHT and the pool (such as peer exchange).
    pub fn upsert_candidate_from(&self, candidate: &Candidate, provenance: Provenance) {
        let (now, unix) = (self.clock.moment(), self.clock.now());
        let mut inner = self.lock();
        self.show(&inner, now, &Call::Upsert { candidate, provenance });
        inner.engine.begin_request();
        inner.name_candidate(candidate, provenance, unix, now);
    }

    /// Forgets a peer altogether, what it was promised and what was proven against it included.
    pub fn remove_peer(&self, peer: &PeerId) {
        let mut inner = self.lock();
        self.show(&inner, self.clock.moment(), &Call::Removed(peer));
        if let Some(slot) = inner.engine.remove(peer.as_bytes()) {
            inner.records[slot.index()] = None;
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
        let inner = self.lock();
        let slot = inner.engine.find(peer.as_bytes())?;
        inner.entry(slot, now)
    }

    /// What is known of a peer, ready to print or serialise (spec §5.7).
    pub fn peer_snapshot(&self, peer: &PeerId) -> Option<PeerSnapshot> {
        self.peer_entry(peer).as_ref().map(PeerSnapshot::of)
    }

    /// What is known altogether (spec §5.7).
    pub fn snapshot(&self) -> SelectorSnapshot {
        let now = self.clock.moment();
        let inner = self.lock();
        let entries = inner.engine.slots().filter_map(|slot| inner.entry(slot, now));
        let tried = inner.engine.slots().filter(|&slot| inner.engine.was_tried(slot)).count();
        let leases = inner.records.iter().flatten().map(|record| record.leases.len()).sum();
        SelectorSnapshot::of(entries, &inner.engine, tried, leases)
    }

    /// How many peers are registered: never more than the configured capacity.
    pub fn registry_size(&self) -> usize {
        self.lock().engine.len()
    }

    /// Why a [`select`](Self::select) for `req` would choose as it would, without choosing: every known candidate with its terms (RANK-6).
    pub fn explain(&self, req: &ContentRequest, candidates: &[Candidate]) -> Explanation<PeerId> {
        let now = self.clock.moment();
        let inner = self.lock();
        let mut slots: Vec<Slot> =
            candidates.iter().filter_map(|one| inner.engine.find(one.peer_id.as_bytes())).collect();
        slots.sort_unstable();
        slots.dedup();
        let content = inner.contents.find(&req.content).map(|slot| inner.contents.value(slot));
        let work = work(req, content.unwrap_or(&Content::default()), req.range_count);
        let explanation = inner.engine.explain(&work, &slots, now);
        explanation.map(PeerId::from_bytes)
    }
}

impl Inner {
    /// The slot of a content, registered if need be.
    fn content(&mut self, id: ContentId) -> Slot {
        let slot = match self.contents.admit(id) {
            Admission::Known(slot) => slot,
            Admission::Fresh(slot) => {
                self.tenancies += 1;
                self.contents.value_mut(slot).tenancy = self.tenancies;
                slot
            }
            Admission::Refused => unreachable!("no content is ever pinned or marked"),
        };
        self.contents.touch(slot, peer_quality::table::Tier::Cold);
        slot
    }

    fn lessee(&self, content: Slot) -> Lessee {
        Lessee { content, tenancy: self.contents.value(content).tenancy }
    }

    /// The slot of a peer, registered if need be; none while the registry is full of live links.
    fn admit(&mut self, peer: PeerId, provenance: Provenance, unix: u64) -> Option<Slot> {
        match self.engine.admit(*peer.as_bytes()) {
            Admission::Known(slot) => {
                if let Some(record) = &mut self.records[slot.index()] {
                    record.raise(provenance);
                }
                Some(slot)
            }
            Admission::Fresh(slot) => {
                if self.records.len() <= slot.index() {
                    self.records.resize_with(slot.index() + 1, || None);
                }
                self.tenancies += 1;
                self.records[slot.index()] = Some(Record::new(self.tenancies as u32, provenance, unix));
                Some(slot)
            }
            Admission::Refused => None,
        }
    }

    fn name_candidate(
        &mut self,
        candidate: &Candidate,
        provenance: Provenance,
        unix: u64,
        now: Time,
    ) -> Option<(Slot, bool)> {
        let slot = self.admit(candidate.peer_id, provenance, unix)?;
        let first = self.engine.name(slot);
        let record = self.records[slot.index()].as_mut()?;
        record.merge(candidate, provenance);
        let leased = !record.leases.is_empty();
        if let Some(class) = candidate.class
            && record.class != Some(class)
        {
            self.set_class(slot, class, now);
        }
        if leased {
            self.sync_leases(slot, now);
        }
        Some((slot, first))
    }

    /// Fills `slots` with the candidates of a request, each once.
    fn name_candidates(&mut self, candidates: &[Candidate], unix: u64, now: Time) {
        self.engine.begin_request();
        self.slots.clear();
        for candidate in candidates {
            if let Some((slot, true)) = self.name_candidate(candidate, Provenance::Dht, unix, now) {
                self.slots.push(slot);
            }
        }
    }

    /// Fills `slots` with the holders of a content that are still registered.
    fn name_holders(&mut self, content: Slot, now: Time) {
        self.engine.begin_request();
        self.slots.clear();
        for holder in self.contents.value(content).holders() {
            if member_of(&self.records, holder.slot) == Some(holder) && self.engine.name(holder.slot) {
                self.slots.push(holder.slot);
            }
        }
        for at in 0..self.slots.len() {
            self.sync_leases(self.slots[at], now);
        }
    }

    /// Decides among `slots`, grants leases and forms the answer.
    fn choose(
        &mut self,
        req: &ContentRequest,
        content: Slot,
        ranges: Option<usize>,
        active: &[Slot],
        now: Time,
    ) -> Selection {
        let entry = self.contents.value_mut(content);
        let work = work(req, entry, ranges);
        entry.decisions += 1;
        let mut advice = std::mem::take(&mut self.advice);
        let mut slots = std::mem::take(&mut self.slots);
        let engine = &self.engine;
        let failed = |slot: Slot| active.contains(&slot) && engine.is_failing(slot);
        let lacking = |slot: Slot| entry.has_absent() && entry.lacks(slot, now);
        if active.is_empty() && !entry.has_absent() {
            self.engine.decide(&work, &slots, now, &mut advice);
        } else {
            let better: Vec<Slot> = slots.iter().copied().filter(|&slot| !failed(slot) && !lacking(slot)).collect();
            self.engine.decide(&work, &better, now, &mut advice);
            if advice.is_empty() && better.len() < slots.len() {
                self.engine.decide(&work, &slots, now, &mut advice);
            }
        }
        let lessee = self.lessee(content);
        let mut selection = Selection { peers: Vec::with_capacity(advice.len()) };
        for pick in &advice {
            let Some(record) = self.records[pick.slot.index()].as_mut() else { continue };
            let kept = if active.contains(&pick.slot) { record.leases.of(lessee) } else { 0 };
            record.leases.grant(lessee, kept.saturating_add(pick.requests), now);
            self.engine.reserve(pick.slot, record.leases.promised(now));
            let member = member(&self.records, pick.slot);
            let leased = &mut self.contents.value_mut(content).leased;
            if active.is_empty() || !leased.contains(&member) {
                leased.push(member);
            }
            selection.peers.push(SelectedPeer {
                peer_id: PeerId::from_bytes(self.engine.key(pick.slot)),
                rank: selection.peers.len() as u32,
                max_concurrency: pick.requests,
                exploratory: pick.exploratory,
            });
        }
        slots.clear();
        self.slots = slots;
        self.advice = advice;
        selection
    }

    /// Takes back what a content's latest selection reserved, from the peers that `whose` names.
    fn release_leases(&mut self, content: Slot, now: Time, whose: impl Fn(Slot) -> bool) {
        let lessee = self.lessee(content);
        let leased = std::mem::take(&mut self.contents.value_mut(content).leased);
        let (released, kept): (Vec<Member>, Vec<Member>) = leased.into_iter().partition(|member| whose(member.slot));
        for member in released {
            if member_of(&self.records, member.slot) == Some(member)
                && let Some(record) = &mut self.records[member.slot.index()]
            {
                record.leases.release(lessee);
                self.sync_leases(member.slot, now);
            }
        }
        self.contents.value_mut(content).leased = kept;
    }

    /// Tells the engine what is promised to a peer.
    fn sync_leases(&mut self, slot: Slot, now: Time) {
        if let Some(record) = &mut self.records[slot.index()] {
            record.leases.expire(now);
            self.engine.reserve(slot, record.leases.promised(now));
        }
    }

    fn set_class(&mut self, slot: Slot, class: TraversalKind, now: Time) {
        if let Some(record) = &mut self.records[slot.index()] {
            record.class = Some(class);
        }
        self.engine.handle_at(slot, Fact::Reached(path_of(Some(class))), now);
    }

    fn learn(&mut self, slot: Slot, content: Slot, outcome: &TransferOutcome, now: Time) {
        let confirmed = self.engine.has_pending(slot);
        self.engine.handle_at(slot, Fact::Ended(outcome.delivery()), now);
        let lessee = self.lessee(content);
        let Some(record) = self.records[slot.index()].as_mut() else { return };
        record.last_outcome_at = Some(outcome.at);
        if !confirmed && !record.leases.is_empty() {
            record.leases.settle_one(lessee);
            self.sync_leases(slot, now);
        }
        let Some(record) = self.records[slot.index()].as_mut() else { return };
        let member = Member { slot, tenancy: record.tenancy };
        match outcome.result {
            OutcomeResult::Success => {
                let first_time = record.note_proven(lessee);
                self.contents.value_mut(content).delivered(member, first_time, outcome.bytes);
            }
            OutcomeResult::Failure { reason: FailureReason::Unavailable } => {
                self.contents.value_mut(content).missing(member, now);
            }
            _ => {}
        }
    }

    fn addresses(&self, peer: &PeerId) -> Option<Vec<CandidateAddr>> {
        let slot = self.engine.find(peer.as_bytes())?;
        self.records[slot.index()].as_ref().map(Record::addresses)
    }

    fn entry(&self, slot: Slot, now: Time) -> Option<PeerEntry> {
        let record = self.records[slot.index()].as_ref()?;
        let view = self.engine.view(slot, now);
        Some(record.entry(PeerId::from_bytes(self.engine.key(slot)), &view, now))
    }
}

fn work(req: &ContentRequest, content: &Content, ranges: Option<usize>) -> Work {
    Work {
        range: content.range(req.total_length, ranges.or(req.range_count)),
        ranges: ranges.map(|ranges| u32::try_from(ranges).unwrap_or(u32::MAX)),
        sources: req.effective_parallelism(),
        scope: content.tenancy,
        decision: content.decisions,
    }
}

fn member_of(records: &[Option<Record>], slot: Slot) -> Option<Member> {
    records.get(slot.index())?.as_ref().map(|record| Member { slot, tenancy: record.tenancy })
}

fn member(records: &[Option<Record>], slot: Slot) -> Member {
    member_of(records, slot).unwrap_or(Member { slot, tenancy: 0 })
}
