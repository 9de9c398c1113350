//! The engine's top type: facts in by [`Engine::handle`], advice out by [`Engine::decide`].
//!
//! It owns the peer table and applies what the other folders compute. It reads no clock and draws no randomness: time is an argument of every call,
//! the seed one of [`Engine::new`], and the same calls give the same answers on every platform.

mod blame;
mod observe;
mod review;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hash;

use self::blame::Blame;
use crate::audit::{CommonMode, Cooling, Proof, Standing};
use crate::estimate::population::{Prior, Vote};
use crate::estimate::{Downlink, Path, Population, Seats};
use crate::facts::{AddressGroup, Fact};
use crate::hedge::Budget;
use crate::measure::{Delivery, End, Fault, InFlight};
use crate::peer::card::{Coverage, Kind};
use crate::peer::roster::Roster;
use crate::peer::{Peer, Uncharged};
use crate::rank::crowds::Crowds;
use crate::rank::decide::decide;
use crate::rank::explore::Turns;
use crate::rank::plan::{self, Advice, Work};
use crate::rank::quote::{Quote, Terms};
use crate::seed::Seed;
use crate::table::{Admission, Slot, Table, Tier};
use crate::units::{Bytes, Time};

pub use observe::View;

/// Events kept for a host that does not poll; the oldest are dropped.
const MAX_EVENTS: usize = 64;

/// What changed by the engine's own judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<K> {
    /// A peer's standing by proof changed.
    StandingChanged {
        /// Whose.
        peer: K,
        /// Before.
        from: Standing,
        /// Now.
        to: Standing,
    },
}

/// See the module documentation.
///
/// At most `capacity` peers and as many proofs are kept; see [`Table`] for who goes first.
#[derive(Clone, Debug)]
pub struct Engine<K> {
    seed: Seed,
    peers: Roster<K>,
    proofs: Table<K, Proof>,
    population: Population,
    seats: Seats,
    crowds: Crowds,
    downlink: Downlink,
    common: CommonMode<Slot, Uncharged>,
    in_flight: InFlight,
    duplicates: Budget,
    /// Size of a request of the latest decision.
    request: Bytes,
    decisions: u64,
    turns: Turns,
    events: VecDeque<Event<K>>,
    quotes: Vec<Quote>,
}

/// What an evicted peer leaves behind: path, vote, seat, requests in flight.
type Left = (Path, Vote, Option<AddressGroup>, u32);

impl<K: Copy + Eq + Hash + Ord> Engine<K> {
    /// An engine for at most `capacity` peers.
    pub fn new(capacity: usize, seed: Seed) -> Self {
        Engine {
            seed,
            peers: Roster::new(capacity, seed),
            proofs: Table::new(capacity, seed),
            population: Population::default(),
            seats: Seats::default(),
            crowds: Crowds::new(seed),
            downlink: Downlink::default(),
            common: CommonMode::default(),
            in_flight: InFlight::default(),
            duplicates: Budget::default(),
            request: Bytes::ZERO,
            decisions: 0,
            turns: Turns::default(),
            events: VecDeque::new(),
            quotes: Vec::new(),
        }
    }

    /// How many peers are known.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// The most peers that are known at a time.
    pub fn capacity(&self) -> usize {
        self.peers.capacity()
    }

    /// Whether no peer is known.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// The handle of a known peer.
    pub fn find(&self, peer: &K) -> Option<Slot> {
        self.peers.find(peer)
    }

    /// Whether a handle is this peer's: spares the look-up to a host that guesses well. Any handle may be asked about.
    #[inline]
    pub fn holds(&self, slot: Slot, peer: &K) -> bool {
        self.peers.holds(slot, peer)
    }

    /// The identity behind a handle.
    pub fn key(&self, slot: Slot) -> K {
        self.peers.key(slot)
    }

    /// Every known peer.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.peers.slots()
    }

    /// Begins a request: peers [named](Self::name) by it are not evicted in favour of each other.
    pub fn begin_request(&mut self) {
        self.peers.begin_request();
    }

    /// Names a candidate of the current request; true for the first time.
    #[inline]
    pub fn name(&mut self, slot: Slot) -> bool {
        self.peers.mark(slot)
    }

    /// Finds or admits a peer. What was proven against it earlier is remembered across evictions (AUD-8).
    #[inline]
    pub fn admit(&mut self, peer: K) -> Admission {
        let mut left = None;
        let leaves = |gone: &Peer| left = Some((gone.path, gone.vote(), gone.seat, gone.pending()));
        let admission = self.peers.admit_with(peer, leaves);
        match admission {
            Admission::Known(_) => admission,
            _ => self.welcome(peer, admission, left),
        }
    }

    fn welcome(&mut self, peer: K, admission: Admission, left: Option<Left>) -> Admission {
        if let Some((path, vote, seat, in_flight)) = left {
            seat.into_iter().for_each(|group| self.seats.leave(group));
            self.population.revote((path, &vote), (Path::Unknown, &Vote::default()));
            self.in_flight.moved(in_flight, 0);
        }
        if let Admission::Fresh(slot) = admission {
            self.common.forget(slot);
            // A draw from the seed alone would repeat for a returning identity; the order of arrivals is part of the host's facts.
            let salt = (self.seed.mix(slot.index() as u64) >> 32) as u32;
            self.peers.card_mut(slot).salt = salt;
            if let Some(at) = self.proofs.find(&peer) {
                self.peers.value_mut(slot).proof = *self.proofs.value(at);
            }
        }
        admission
    }

    /// Forgets a peer and everything about it, in-flight work and proofs included; returns the slot it held.
    pub fn remove(&mut self, peer: &K) -> Option<Slot> {
        self.proofs.remove(peer);
        let slot = self.peers.find(peer)?;
        let gone = self.peers.value(slot);
        self.in_flight.moved(gone.pending(), 0);
        self.common.forget(slot);
        self.population.revote((gone.path, &gone.vote()), (Path::Unknown, &Vote::default()));
        gone.seat.into_iter().for_each(|group| self.seats.leave(group));
        self.peers.remove(peer)
    }

    /// Takes in one fact about `peer` at `now`. Changes later answers of every query; a peer not heard of before is admitted first.
    /// The admission is refused, and the fact lost, only while every known peer has a live link.
    pub fn handle(&mut self, peer: K, fact: Fact, now: Time) -> Admission {
        let admission = self.admit(peer);
        if let Some(slot) = admission.slot() {
            self.handle_at(slot, fact, now);
        }
        admission
    }

    /// Takes in one fact about the peer behind a handle: spares the look-up.
    pub fn handle_at(&mut self, slot: Slot, fact: Fact, now: Time) {
        if let Fact::Located(group) = fact {
            return self.locate(slot, group);
        }
        let before = self.peers.value(slot).proof.standing();
        self.apply(slot, fact, now);
        self.settle(slot, before);
    }

    /// A peer's address is known, or another one. Strangers keep no record for it.
    fn locate(&mut self, slot: Slot, group: AddressGroup) {
        if self.peers.card(slot).group == group {
            return;
        }
        self.peers.card_mut(slot).group = group;
        let Some(seat) = self.peers.value(slot).seat else { return };
        self.seats.leave(seat);
        let peer = self.peers.value_mut(slot);
        let before = peer.vote();
        peer.seat = self.seats.take(group).then_some(group);
        self.population.revote((peer.path, &before), (peer.path, &peer.vote()));
    }

    fn apply(&mut self, slot: Slot, fact: Fact, now: Time) {
        let blame = match &fact {
            Fact::Ended(delivery) => self.blame(slot, delivery, now),
            _ => Blame::Theirs,
        };
        let decisions = self.decisions;
        let prior = self.prior_for(fact, slot);
        let reserved = self.peers.card(slot).reserved;
        let peer = self.peers.value_mut(slot);
        let (path_before, vote_before) = (peer.path, peer.vote());
        let before = (path_before, &vote_before);
        let in_flight = peer.pending();
        match fact {
            Fact::Sent { requests } => peer.sent(requests, now),
            Fact::Ended(delivery) if blame != Blame::Theirs => {
                peer.ended(&Delivery { end: End::Cancelled, ..delivery }, &prior, now, decisions, reserved);
                if let Blame::Crowded { fit } = blame {
                    peer.crowded(fit, now);
                }
            }
            Fact::Ended(delivery) => {
                peer.ended(&delivery, &prior, now, decisions, reserved);
                // A request that took its time to fail was pause enough, if most fail.
                if delivery.end == End::Failed(Fault::Timeout) && self.common.is_ours() {
                    peer.cooling = Cooling::default();
                }
            }
            Fact::Connected => peer.linked(true),
            Fact::Disconnected => peer.linked(false),
            Fact::RoundTrip(reading) => peer.round_trip(&reading, now),
            Fact::EchoSilence => peer.echoes_silent(),
            Fact::Kernel(reading) => peer.kernel(reading, now),
            Fact::Burst(burst) => {
                if let Some(deviation) = peer.burst(&burst, &prior, now) {
                    self.population.deviated(deviation);
                }
            }
            Fact::Banned => peer.proof.set_banned(true),
            Fact::Readmitted => peer.proof.set_banned(false),
            Fact::Located(_) => {}
            Fact::Reached(path) => {
                peer.path = path;
                self.population.revote(before, (path, &peer.vote()));
            }
        }
        let peer = self.peers.value_mut(slot);
        let after = peer.pending();
        self.in_flight.moved(in_flight, after);
        if peer.seat.is_none() || !peer.delivered.is_measured() {
            self.count_in_group(slot, fact, in_flight);
        }
        let peer = self.peers.value_mut(slot);
        match fact {
            Fact::Ended(_) => self.population.revote(before, (path_before, &peer.vote_anew(prior.concurrency, now))),
            Fact::Burst(_) => self.population.revote(before, (path_before, &peer.vote())),
            _ => {}
        }
    }

    /// Counts against a peer's address group what it had as a stranger, and gives it a vote if there is one left. It had `in_flight` requests before.
    #[cold]
    fn count_in_group(&mut self, slot: Slot, fact: Fact, in_flight: u32) {
        let group = self.peers.card(slot).group;
        let peer = self.peers.value_mut(slot);
        // Where a host does not say what it sends, the end has to do.
        let sent = match fact {
            Fact::Sent { requests } => requests,
            Fact::Ended(_) if in_flight == 0 => 1,
            _ => 0,
        };
        if sent > 0 && !peer.delivered.is_measured() {
            self.crowds.tried(group, sent, self.decisions);
        }
        // Who has nothing to say takes no seat from others.
        let has_a_say = matches!(fact, Fact::Ended(_) | Fact::Burst(_)) && peer.has_a_say();
        if peer.seat.is_none() && has_a_say && self.seats.take(group) {
            peer.seat = Some(group);
        }
    }

    /// What learning from a fact needs to know of the population: without the wire no more than the concurrency.
    fn prior_for(&self, fact: Fact, slot: Slot) -> Prior {
        let peer = self.peers.value(slot);
        match fact {
            Fact::Burst(_) => self.population.prior(peer.path),
            Fact::Ended(_) if peer.sees_wire() => self.population.prior(peer.path),
            Fact::Ended(_) if peer.knows_limit() => Prior::default(),
            Fact::Ended(_) => Prior { concurrency: self.population.concurrency(peer.path), ..Prior::default() },
            _ => Prior::default(),
        }
    }

    /// Keeps what follows from a changed record: its place in the table, its proof, the event.
    fn settle(&mut self, slot: Slot, before: Standing) {
        let peer = self.peers.value(slot);
        let (tier, proof) = (peer.tier(self.peers.card(slot).reserved), peer.proof);
        self.peers.touch(slot, tier);
        if proof.is_empty() && before == Standing::Fine {
            return;
        }
        let key = self.peers.key(slot);
        if !proof.is_empty()
            && let Some(at) = self.proofs.admit(key).slot()
        {
            *self.proofs.value_mut(at) = proof;
            let tier = if proof.standing() == Standing::Banned { Tier::Measured } else { Tier::Cold };
            self.proofs.touch(at, tier);
        }
        let after = proof.standing();
        if before != after {
            if self.events.len() == MAX_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(Event::StandingChanged { peer: key, from: before, to: after });
        }
    }

    /// Sets how many requests decisions have promised to a peer without confirmation so far.
    pub fn reserve(&mut self, slot: Slot, requests: u32) {
        self.peers.card_mut(slot).reserved = requests;
        let tier = self.peers.value(slot).tier(requests);
        self.peers.touch(slot, tier);
    }

    /// Decides who should do `work`, among `candidates` (each at most once), and notes whom it took. An empty answer means that nobody may
    /// take more work now. Changes with every fact, and by itself as pauses end.
    pub fn decide(&mut self, work: &Work, candidates: &[Slot], now: Time, into: &mut Advice) {
        self.decisions += 1;
        into.clear();
        let mut quotes = core::mem::take(&mut self.quotes);
        self.quote_all(work, candidates, now, &mut quotes);
        let mut turns = self.turns;
        self.advise(&quotes, work, &mut turns, into);
        self.turns = turns;
        self.quotes = quotes;
        self.request = work.range;
        for pick in &*into {
            let taken = self.peers.card_mut(pick.slot);
            taken.last_tried = self.decisions;
            taken.scope = work.scope;
            if !pick.exploratory && Some(pick) == into.first() {
                self.peers.unquoted_mut(pick.slot).led = self.decisions;
            }
        }
    }

    /// The answer, within what our own link takes.
    fn advise(&self, quotes: &[Quote], work: &Work, turns: &mut Turns, into: &mut Advice) {
        decide(quotes, work, self.decisions, turns, into);
        if let Some(limit) = self.downlink.limit() {
            // Where nothing is under way for this work, it may begin.
            let most = limit.saturating_sub(self.in_flight.requests).max(u32::from(work.in_flight == 0));
            plan::at_most(most, into);
        }
    }

    fn quote_all(&mut self, work: &Work, candidates: &[Slot], now: Time, into: &mut Vec<Quote>) {
        into.clear();
        into.reserve(candidates.len());
        // Worked out when the first peer of a kind asks.
        let (mut kinds, unneeded) = ([None; Path::COUNT], Kind::new(Prior::default()));
        // Equals are drawn anew for every content, the same way for every decision about it.
        // Contents and slots are both small numbers: each kind is mixed in a range of its own, or equal numbers would cancel out.
        let draw = (self.seed.mix(!work.scope) >> 32) as u32;
        // How long failures take says nothing of peers while they are ours; who failed more often then only had more in flight.
        // Whether they are is found out with those that did not fail yet.
        let suspects = self.common.suspects();
        let judged = |slot: Slot, terms: Terms| match &suspects {
            Some(suspects) => Terms { lost_s: 0.0, suspect: suspects.binary_search(&slot).is_ok(), ..terms },
            None => terms,
        };
        for &slot in candidates {
            let card = self.peers.fresh_card(slot);
            let kind = match &mut kinds[card.path as usize] {
                _ if !card.needs_kind() => &unneeded,
                kind => &*kind.get_or_insert_with(|| Kind::new(self.population.prior(card.path))),
            };
            let salt = (card.salt ^ draw).wrapping_mul(0x9E37_79B1);
            let last_tried = card.last_tried;
            let crowd = if card.times.is_none() { card.group } else { AddressGroup::NONE };
            let quote = if card.coverage == Coverage::Whole {
                judged(slot, card.terms(kind, work.scope, now)).quote(slot, work.range, last_tried, salt)
            } else {
                let card = *card;
                let peer = self.peers.unquoted_mut(slot);
                let in_flight = peer.pending();
                let terms = peer.terms(&card, kind, work.scope, now, self.decisions);
                self.in_flight.moved(in_flight, peer.pending());
                judged(slot, terms).quoted(slot, work.range, last_tried, salt)
            };
            if let Some(quote) = quote {
                into.push(quote);
                if !crowd.is_none()
                    && let Some(unproven) = into.last_mut()
                {
                    self.crowds.place(crowd, unproven, self.decisions);
                }
            }
        }
    }

    /// Whether requests were sent to a peer that have not ended.
    pub fn has_pending(&self, slot: Slot) -> bool {
        self.peers.value(slot).pending() > 0
    }

    /// Requests in flight over all peers, as far as the host reports them.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.requests
    }

    /// Whether a peer's latest request failed.
    pub fn is_failing(&self, slot: Slot) -> bool {
        self.peers.value(slot).reliability.consecutive_failures() > 0
    }

    /// Whether a decision ever took a peer.
    pub fn was_tried(&self, slot: Slot) -> bool {
        self.peers.card(slot).last_tried > 0
    }

    /// What is assumed of an unmeasured peer on `path`.
    pub fn prior(&self, path: Path) -> Prior {
        self.population.prior(path)
    }

    /// Relayed delivery rate over direct delivery rate, in (0, 1].
    pub fn relayed_penalty(&self) -> f64 {
        self.population.relayed_penalty()
    }

    /// The next event, oldest first. Changes when a fact changes a standing; calling it without need is harmless.
    pub fn poll_event(&mut self) -> Option<Event<K>> {
        self.events.pop_front()
    }
}
