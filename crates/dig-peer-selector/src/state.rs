//! The selector's state: the engine, what is kept beside it, and how a decision becomes a selection.
//!
//! What the specification calls the registry is the engine's table plus [`Record`]s in a parallel array; what it calls the model is the engine's. Everything here runs
//! under the selector's one lock.

use dig_dht::{CandidateAddr, ContentId};
use dig_nat::{PeerId, TraversalKind};
use peer_quality::rank::{Advice, Work};
use peer_quality::table::{Table, Tier, push_within};
use peer_quality::units::Time;
use peer_quality::{Admission, Engine, Fact, Seed, Slot};

use crate::config::ClockSource;
use crate::content::{Content, MAX_CONTENTS, MAX_MEMBERS, Member};
use crate::inbox::Told;
use crate::leases::Lessee;
use crate::outcome::{FailureReason, OutcomeResult, TransferOutcome};
use crate::registry::{PeerEntry, Record, path_of};
use crate::request::{Candidate, ContentRequest, Provenance, SelectedPeer, Selection};
use crate::slots::Slots;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine<[u8; 32]>,
    /// Parallel to the engine's slots; a slot without a tenant has none.
    pub(crate) records: Vec<Option<Record>>,
    pub(crate) contents: Table<ContentId, Content>,
    /// The content asked for last.
    latest: Option<Slot>,
    tenancies: u64,
    /// Those of the content decided about last.
    usual_slots: Slots,
    pub(crate) slots: Vec<Slot>,
    named: Vec<Member>,
    /// Where outcomes are taken in from, emptied.
    pub(crate) told: Vec<Told>,
    advice: Advice,
}

impl State {
    pub(crate) fn new(capacity: usize, seed: Seed) -> Self {
        State {
            engine: Engine::new(capacity, seed),
            records: Vec::new(),
            contents: Table::new(MAX_CONTENTS, seed),
            latest: None,
            tenancies: 0,
            usual_slots: Slots::default(),
            slots: Vec::new(),
            named: Vec::new(),
            told: Vec::new(),
            advice: Advice::new(),
        }
    }

    /// The slot of a content, registered if need be. Nothing pins a content, so there is always room; were there none, nobody would be chosen for it.
    pub(crate) fn content(&mut self, id: &ContentId) -> Option<Slot> {
        // Contents come and go here alone, so the latest is there and the most recently used.
        if let Some(slot) = self.latest.filter(|&slot| self.contents.holds(slot, id)) {
            return Some(slot);
        }
        let admission = self.contents.admit(*id);
        let slot = admission.slot()?;
        if let Admission::Fresh(_) = admission {
            self.tenancies += 1;
            let fresh = self.contents.value_mut(slot);
            fresh.tenancy = self.tenancies;
            fresh.slots = Slots::like(self.usual_slots);
        }
        self.contents.touch(slot, Tier::Cold);
        self.latest = Some(slot);
        Some(slot)
    }

    pub(crate) fn lessee(&self, content: Slot) -> Lessee {
        Lessee { content, tenancy: self.contents.value(content).tenancy }
    }

    /// The slot of a peer, registered if need be; none while the registry is full of live links.
    #[inline]
    pub(crate) fn admit(&mut self, peer: &PeerId, provenance: Provenance, clock: &ClockSource) -> Option<Slot> {
        match self.engine.admit(*peer.as_bytes()) {
            Admission::Known(slot) => {
                if let Some(record) = &mut self.records[slot.index()] {
                    record.raise(provenance);
                }
                Some(slot)
            }
            Admission::Fresh(slot) => {
                self.register(slot, provenance, clock);
                Some(slot)
            }
            Admission::Refused => None,
        }
    }

    fn register(&mut self, slot: Slot, provenance: Provenance, clock: &ClockSource) {
        self.tenancies += 1;
        let record = Record::new(self.tenancies as u32, provenance, clock.now());
        if slot.index() == self.records.len() {
            push_within(&mut self.records, Some(record), self.engine.capacity());
        } else {
            self.records[slot.index()] = Some(record);
        }
    }

    #[inline]
    pub(crate) fn name_candidate(
        &mut self,
        candidate: &Candidate,
        guess: Option<Slot>,
        provenance: Provenance,
        clock: &ClockSource,
        now: Time,
    ) -> Option<(Member, bool)> {
        let slot = match guess {
            Some(slot) => slot,
            None => self.admit(&candidate.peer_id, provenance, clock)?,
        };
        let first = self.engine.name(slot);
        let record = self.records[slot.index()].as_mut()?;
        if record.merge(candidate, provenance) {
            self.engine.handle_at(slot, Fact::Located(record.group()), now);
        }
        let member = Member { slot, tenancy: record.tenancy };
        let leased = !record.leases().is_empty();
        if let Some(class) = candidate.class
            && record.class != Some(class)
        {
            self.set_class(slot, class, now);
        }
        if leased {
            self.sync_leases(slot, now);
        }
        Some((member, first))
    }

    /// Fills `slots` with the candidates of a request, each once, and gives them to its content.
    pub(crate) fn name_candidates(&mut self, content: Slot, candidates: &[Candidate], clock: &ClockSource, now: Time) {
        self.engine.begin_request();
        self.slots.clear();
        self.named.clear();
        // Those of the previous selection come again as a rule, and in the same order: then nobody has to be looked up.
        let given = std::mem::take(&mut self.contents.value_mut(content).given);
        let mut next = 0;
        for candidate in candidates {
            let expected = |at: usize| {
                let member = given.get(at)?;
                self.engine.holds(member.slot, candidate.peer_id.as_bytes()).then_some((member.slot, at + 1))
            };
            // One that is missing is passed over.
            let found = expected(next).or_else(|| expected(next + 1));
            let guess = found.map(|(slot, after)| {
                next = after;
                slot
            });
            if let Some((member, true)) = self.name_candidate(candidate, guess, Provenance::Dht, clock, now) {
                self.slots.push(member.slot);
                self.named.push(member);
            }
        }
        self.named.truncate(MAX_MEMBERS);
        self.contents.value_mut(content).given = std::mem::replace(&mut self.named, given);
    }

    /// The holders of a content that are still registered, each once, without naming them.
    pub(crate) fn holders(&self, content: Slot) -> Vec<Slot> {
        let is_current = |holder: &Member| member_of(&self.records, holder.slot) == Some(*holder);
        let holders = self.contents.value(content).holders();
        let mut slots: Vec<Slot> = holders.filter(is_current).map(|holder| holder.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Fills `slots` with the holders of a content that are still registered.
    pub(crate) fn name_holders(&mut self, content: Slot, now: Time) {
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
    pub(crate) fn choose(
        &mut self,
        req: &ContentRequest,
        content: Slot,
        ranges: Option<usize>,
        active: &[Slot],
        now: Time,
    ) -> Selection {
        let entry = self.contents.value_mut(content);
        let work = Work { wanted: entry.slots.free(entry.in_flight), ..work(req, entry, ranges) };
        self.usual_slots = entry.slots;
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
        let offered = advice.iter().fold(0_u32, |sum, pick| sum.saturating_add(pick.requests));
        let entry = self.contents.value_mut(content);
        entry.slots.offer(offered, entry.in_flight);
        let lessee = self.lessee(content);
        let mut selection = Selection { peers: Vec::with_capacity(advice.len()) };
        for pick in &advice {
            let Some(record) = self.records[pick.slot.index()].as_mut() else { continue };
            let kept = if active.contains(&pick.slot) { record.leases().of(lessee) } else { 0 };
            record.leases_mut().grant(lessee, kept.saturating_add(pick.requests), now);
            self.engine.reserve(pick.slot, record.leases().promised(now));
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
    pub(crate) fn release_leases(&mut self, content: Slot, now: Time, whose: impl Fn(Slot) -> bool) {
        let lessee = self.lessee(content);
        let mut leased = std::mem::take(&mut self.contents.value_mut(content).leased);
        leased.retain(|&member| {
            let is_released = whose(member.slot);
            if is_released
                && member_of(&self.records, member.slot) == Some(member)
                && let Some(record) = &mut self.records[member.slot.index()]
            {
                if !record.leases().is_empty() {
                    record.leases_mut().release(lessee);
                }
                self.sync_leases(member.slot, now);
            }
            !is_released
        });
        self.contents.value_mut(content).leased = leased;
    }

    /// `count` ranges were dispatched to a peer: promises become dispatches.
    pub(crate) fn dispatched(&mut self, slot: Slot, count: u32, now: Time) {
        let Some(record) = &mut self.records[slot.index()] else { return };
        let confirmed = if record.leases().is_empty() { Vec::new() } else { record.leases_mut().confirm(count) };
        for (lessee, ranges) in confirmed {
            let content = self.contents.value_mut(lessee.content);
            if content.tenancy == lessee.tenancy {
                content.in_flight = content.in_flight.saturating_add(ranges);
                content.slots.take(ranges);
            }
        }
        self.sync_leases(slot, now);
        self.engine.handle_at(slot, Fact::Sent { requests: count }, now);
    }

    /// Tells the engine what is promised to a peer.
    pub(crate) fn sync_leases(&mut self, slot: Slot, now: Time) {
        if let Some(record) = &mut self.records[slot.index()] {
            if !record.leases().is_empty() {
                record.leases_mut().expire(now);
            }
            self.engine.reserve(slot, record.leases().promised(now));
        }
    }

    pub(crate) fn set_class(&mut self, slot: Slot, class: TraversalKind, now: Time) {
        if let Some(record) = &mut self.records[slot.index()] {
            record.class = Some(class);
        }
        self.engine.handle_at(slot, Fact::Reached(path_of(Some(class))), now);
    }

    pub(crate) fn learn(&mut self, slot: Slot, content: Slot, outcome: &TransferOutcome, now: Time) {
        let confirmed = self.engine.has_pending(slot);
        self.engine.handle_at(slot, Fact::Ended(outcome.delivery()), now);
        let lessee = self.lessee(content);
        let entry = self.contents.value_mut(content);
        let was_last = entry.in_flight == 1;
        entry.in_flight = entry.in_flight.saturating_sub(1);
        // Nothing of it runs any more: what its host was promised and did not take, it does not want.
        if confirmed && was_last && !entry.leased.is_empty() {
            self.release_leases(content, now, |_| true);
        }
        let Some(record) = self.records[slot.index()].as_mut() else { return };
        record.ended(outcome.at);
        if !confirmed && !record.leases().is_empty() {
            record.leases_mut().settle_one(lessee);
            self.sync_leases(slot, now);
        }
        let Some(record) = self.records[slot.index()].as_mut() else { return };
        let member = Member { slot, tenancy: record.tenancy };
        match outcome.result {
            OutcomeResult::Success => {
                let first_time = record.note_proven(lessee.tenancy);
                self.contents.value_mut(content).delivered(member, first_time, outcome.bytes);
            }
            // While others are in flight to it, it is full and not without.
            OutcomeResult::Failure { reason: FailureReason::Unavailable } if !self.engine.has_pending(slot) => {
                self.contents.value_mut(content).missing(member, now);
            }
            _ => {}
        }
    }

    pub(crate) fn addresses(&self, peer: &PeerId) -> Option<Vec<CandidateAddr>> {
        let slot = self.engine.find(peer.as_bytes())?;
        self.records[slot.index()].as_ref().map(Record::addresses)
    }

    pub(crate) fn entry(&self, slot: Slot, now: Time) -> Option<PeerEntry> {
        let record = self.records[slot.index()].as_ref()?;
        let view = self.engine.view(slot, now);
        Some(record.entry(PeerId::from_bytes(self.engine.key(slot)), &view, now))
    }
}

pub(crate) fn work(req: &ContentRequest, content: &Content, ranges: Option<usize>) -> Work {
    Work {
        range: content.range(req.total_length, ranges.or(req.range_count)),
        ranges: ranges.map(|ranges| u32::try_from(ranges).unwrap_or(u32::MAX)),
        sources: req.effective_parallelism(),
        scope: content.tenancy,
        decision: content.decisions,
        in_flight: content.in_flight,
        wanted: None,
    }
}

fn member_of(records: &[Option<Record>], slot: Slot) -> Option<Member> {
    records.get(slot.index())?.as_ref().map(|record| Member { slot, tenancy: record.tenancy })
}

pub(crate) fn member(records: &[Option<Record>], slot: Slot) -> Member {
    member_of(records, slot).unwrap_or(Member { slot, tenancy: 0 })
}
