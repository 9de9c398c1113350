//! The peers that an engine knows: a bounded table of [cards](Card), and a record behind each.
//!
//! Whoever takes a record to change it makes its card stale; the next question writes the card anew. A record that was never changed is not touched when its
//! peer has to make room: strangers come and go by the table alone.

use alloc::vec::Vec;
use core::hash::Hash;

use crate::peer::Peer;
use crate::peer::card::{Card, Coverage};
use crate::seed::Seed;
use crate::table::{Admission, Slot, Table, Tier, push_within};

/// See the module documentation. At most as many as the table's capacity.
#[derive(Clone, Debug)]
pub(crate) struct Roster<K> {
    table: Table<K, Card>,
    /// Parallel to the table's slots; the default where the card is blank.
    records: Vec<Peer>,
}

impl<K: Copy + Eq + Hash> Roster<K> {
    pub(crate) fn new(capacity: usize, seed: Seed) -> Self {
        Roster { table: Table::new(capacity, seed), records: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.table.capacity()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn find(&self, key: &K) -> Option<Slot> {
        self.table.find(key)
    }

    pub(crate) fn holds(&self, slot: Slot, key: &K) -> bool {
        self.table.holds(slot, key)
    }

    pub(crate) fn key(&self, slot: Slot) -> K {
        self.table.key(slot)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.table.slots()
    }

    pub(crate) fn begin_request(&mut self) {
        self.table.begin_request();
    }

    pub(crate) fn mark(&mut self, slot: Slot) -> bool {
        self.table.mark(slot)
    }

    /// Finds or admits a peer; `evicted` sees the record of one that has to go, unless it is blank.
    #[inline]
    pub(crate) fn admit_with(&mut self, key: K, evicted: impl FnOnce(&Peer)) -> Admission {
        let records = &mut self.records;
        let admission = self.table.admit_with(key, |slot, card| {
            if !card.is_blank {
                evicted(&records[slot.index()]);
                records[slot.index()] = Peer::default();
            }
        });
        if let Admission::Fresh(slot) = admission
            && slot.index() == records.len()
        {
            push_within(records, Peer::default(), self.table.capacity());
        }
        admission
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<Slot> {
        let slot = self.table.remove(key)?;
        self.records[slot.index()] = Peer::default();
        Some(slot)
    }

    pub(crate) fn touch(&mut self, slot: Slot, tier: Tier) {
        self.table.touch(slot, tier);
    }

    /// The record of a peer.
    #[inline]
    pub(crate) fn value(&self, slot: Slot) -> &Peer {
        &self.records[slot.index()]
    }

    /// The record of a peer, to change.
    #[inline]
    pub(crate) fn value_mut(&mut self, slot: Slot) -> &mut Peer {
        let card = self.table.value_mut(slot);
        card.coverage = Coverage::Stale;
        card.is_blank = false;
        &mut self.records[slot.index()]
    }

    /// The record of a peer, for changes that leave its card true.
    #[inline]
    pub(crate) fn unquoted_mut(&mut self, slot: Slot) -> &mut Peer {
        self.table.value_mut(slot).is_blank = false;
        &mut self.records[slot.index()]
    }

    /// The card of a peer; stale after a change of its record.
    #[inline]
    pub(crate) fn card(&self, slot: Slot) -> &Card {
        self.table.value(slot)
    }

    /// The card of a peer, for what is kept on it alone.
    #[inline]
    pub(crate) fn card_mut(&mut self, slot: Slot) -> &mut Card {
        self.table.value_mut(slot)
    }

    /// The card of a peer, not stale.
    #[inline]
    pub(crate) fn fresh_card(&mut self, slot: Slot) -> &Card {
        let card = self.table.value_mut(slot);
        if card.coverage == Coverage::Stale {
            self.records[slot.index()].fill(card);
        }
        card
    }
}
