//! A bounded table with eviction in O(1): a keyed hash index over a slab, and one recency list per [`Tier`].
//!
//! The one idea: value is coarse (the tier: what would be lost) and then recency, so the victim is always at the head
//! of the lowest list, and keeping order costs two pointer swaps instead of a search (spec §2.5, scenario C21). A lookup that
//! only reads sets a mark; the evictor gives a marked entry a second chance (the CLOCK rule), so reading thousands of
//! candidates moves none of them.
//!
//! Bounds: at most `capacity` entries, lowest tier first and least recently used within it; [`Tier::Pinned`] entries are never evicted, and when
//! nothing else is left an admission is refused. Hashing is keyed by the host's seed, so outsiders cannot aim at one bucket; no
//! answer depends on the order of the index.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::seed::Seed;

/// What the table would lose by forgetting an entry, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// It never delivered anything and nothing is under way.
    Cold,
    /// There is a record of deliveries.
    Measured,
    /// Work is under way.
    Busy,
    /// A live link: never evicted.
    Pinned,
}

const TIERS: usize = 4;
const NONE: u32 = u32::MAX;

/// A handle to an entry, valid until that entry is removed or evicted; afterwards it may name another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// The position in the slab, below the table's capacity: an index for a host's parallel array.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The result of [`Table::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The key was there.
    Known(Slot),
    /// The key is new; what the slot held before is gone.
    Fresh(Slot),
    /// The table is full of pinned or protected entries.
    Refused,
}

impl Admission {
    /// The entry, unless it was refused.
    pub const fn slot(self) -> Option<Slot> {
        match self {
            Admission::Known(slot) | Admission::Fresh(slot) => Some(slot),
            Admission::Refused => None,
        }
    }
}

/// An entry's place in its list, apart from its key and value: keeping order touches nothing else.
#[derive(Clone, Copy, Debug)]
struct Link {
    hash: u32,
    prev: u32,
    next: u32,
    /// The request that last named it: its own candidates are safe from that request.
    mark: u32,
    tier: Option<Tier>,
    /// Read since it was last moved: the evictor passes over it once.
    referenced: bool,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

/// Tells the secret of the hash from what else is drawn from the host's seed: the letters "hash".
const HASHING: u64 = 0x6861_7368;

/// Where an entry is, with half of its hash: as a rule one look tells whether it is the one.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: u32,
    hash: u32,
}

/// The half of a hash that is kept, as wide as the index wants it: it reads buckets from the low bits and tags from the highest.
#[inline]
fn wide(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// See the module documentation. Keys, links and values lie in arrays of their own, each indexed by slot.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    capacity: u32,
    hasher: FixedState,
    index: HashTable<Place>,
    keys: Vec<K>,
    links: Vec<Link>,
    values: Vec<V>,
    free: Vec<u32>,
    lists: [List; TIERS],
    request: u32,
    /// The current request has filled the table with its own candidates: nothing can go until it ends.
    exhausted: bool,
}

impl<K: Copy + Eq + Hash, V: Default> Table<K, V> {
    /// An empty table of at most `capacity` entries (at least 1, at most 2³² − 2).
    pub fn new(capacity: usize, seed: Seed) -> Self {
        Table {
            capacity: u32::try_from(capacity).unwrap_or(NONE - 1).clamp(1, NONE - 1),
            // Not the seed itself: what else is drawn from it may show in answers.
            hasher: FixedState::with_seed(seed.mix(HASHING)),
            index: HashTable::new(),
            keys: Vec::new(),
            links: Vec::new(),
            values: Vec::new(),
            free: Vec::new(),
            lists: [List { head: NONE, tail: NONE, len: 0 }; TIERS],
            request: 0,
            exhausted: false,
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bound on [`Table::len`].
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The entry of `key`.
    #[inline]
    pub fn find(&self, key: &K) -> Option<Slot> {
        if self.is_empty() {
            return None;
        }
        self.find_hashed(self.hasher.hash_one(key) as u32, key).map(Slot)
    }

    #[inline]
    fn find_hashed(&self, hash: u32, key: &K) -> Option<u32> {
        let is_it = |place: &Place| place.hash == hash && self.keys[place.slot as usize] == *key;
        self.index.find(wide(hash), is_it).map(|place| place.slot)
    }

    /// Whether `slot` holds a live entry with this key: spares the look-up to a caller who guesses well.
    #[inline]
    pub fn holds(&self, slot: Slot, key: &K) -> bool {
        self.keys.get(slot.index()) == Some(key) && self.links[slot.index()].tier.is_some()
    }

    /// The key of a live entry.
    pub fn key(&self, slot: Slot) -> K {
        self.keys[slot.index()]
    }

    /// The value of a live entry.
    #[inline]
    pub fn value(&self, slot: Slot) -> &V {
        &self.values[slot.index()]
    }

    /// The value of a live entry, to change.
    #[inline]
    pub fn value_mut(&mut self, slot: Slot) -> &mut V {
        &mut self.values[slot.index()]
    }

    /// Begins a request: entries that it [marks](Table::mark) cannot be evicted until the next one begins.
    pub fn begin_request(&mut self) {
        self.request = self.request.wrapping_add(1);
        self.exhausted = false;
    }

    /// Marks an entry as named by the current request; true for the first time.
    #[inline]
    pub fn mark(&mut self, slot: Slot) -> bool {
        let link = &mut self.links[slot.index()];
        let fresh = link.mark != self.request;
        link.mark = self.request;
        link.referenced = true;
        fresh
    }

    /// Finds `key` or makes an entry with a default value, evicting the entry of least value when full.
    pub fn admit(&mut self, key: K) -> Admission {
        self.admit_with(key, |_, _| {})
    }

    /// Like [`admit`](Self::admit); `evicted` sees an entry that has to go.
    #[inline]
    pub fn admit_with(&mut self, key: K, evicted: impl FnOnce(Slot, &V)) -> Admission {
        let hash = self.hasher.hash_one(key) as u32;
        match self.find_hashed(hash, &key) {
            Some(at) => Admission::Known(Slot(at)),
            None => self.make(key, hash, evicted),
        }
    }

    fn make(&mut self, key: K, hash: u32, evicted: impl FnOnce(Slot, &V)) -> Admission {
        if self.index.len() as u32 >= self.capacity {
            let victim = if self.exhausted { None } else { self.victim() };
            let Some(victim) = victim else {
                self.exhausted = true;
                return Admission::Refused;
            };
            evicted(Slot(victim), &self.values[victim as usize]);
            self.forget(victim);
        }
        let mark = self.request.wrapping_sub(1);
        let link = Link { hash, prev: NONE, next: NONE, mark, tier: None, referenced: false };
        let at = match self.free.pop() {
            Some(at) => {
                self.keys[at as usize] = key;
                self.links[at as usize] = link;
                at
            }
            None => {
                let most = self.capacity as usize;
                push_within(&mut self.keys, key, most);
                push_within(&mut self.links, link, most);
                push_within(&mut self.values, V::default(), most);
                (self.keys.len() - 1) as u32
            }
        };
        self.index.insert_unique(wide(hash), Place { slot: at, hash }, |place| wide(place.hash));
        self.link(at, Tier::Cold);
        Admission::Fresh(Slot(at))
    }

    /// Makes an entry the most recently used of `tier`.
    pub fn touch(&mut self, slot: Slot, tier: Tier) {
        let at = slot.0;
        if self.lists[tier as usize].tail == at && self.links[slot.index()].tier == Some(tier) {
            return;
        }
        self.unlink(at);
        self.link(at, tier);
        self.exhausted = false;
    }

    /// Removes `key`; returns the slot it held.
    pub fn remove(&mut self, key: &K) -> Option<Slot> {
        let slot = self.find(key)?;
        self.forget(slot.0);
        Some(slot)
    }

    /// Every live entry, in slab order (which depends on the order of admissions alone).
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.links.iter().enumerate().filter(|(_, link)| link.tier.is_some()).map(|(at, _)| Slot(at as u32))
    }

    /// The least valuable entry that may go. Each step either ends the search or uses up one mark.
    fn victim(&mut self) -> Option<u32> {
        for tier in [Tier::Cold, Tier::Measured, Tier::Busy] {
            // Twice round: once to use up the marks, once to find whom they no longer protect.
            for _ in 0..2 * self.lists[tier as usize].len {
                let at = self.lists[tier as usize].head;
                let link = &mut self.links[at as usize];
                if link.mark != self.request && !link.referenced {
                    return Some(at);
                }
                link.referenced = false;
                self.unlink(at);
                self.link(at, tier);
            }
        }
        None
    }

    fn forget(&mut self, at: u32) {
        // First, since it is what memory is slowest to answer.
        let hash = self.links[at as usize].hash;
        if let Ok(found) = self.index.find_entry(wide(hash), |place| place.slot == at) {
            found.remove();
        }
        self.unlink(at);
        self.links[at as usize].tier = None;
        self.values[at as usize] = V::default();
        self.free.push(at);
    }

    fn link(&mut self, at: u32, tier: Tier) {
        let list = &mut self.lists[tier as usize];
        let prev = list.tail;
        list.tail = at;
        list.len += 1;
        if prev == NONE {
            list.head = at;
        } else {
            self.links[prev as usize].next = at;
        }
        let link = &mut self.links[at as usize];
        (link.tier, link.prev, link.next) = (Some(tier), prev, NONE);
    }

    fn unlink(&mut self, at: u32) {
        let Link { prev, next, tier: Some(tier), .. } = self.links[at as usize] else { return };
        let list = &mut self.lists[tier as usize];
        list.len -= 1;
        if prev == NONE {
            list.head = next;
        } else {
            self.links[prev as usize].next = next;
        }
        if next == NONE {
            list.tail = prev;
        } else {
            self.links[next as usize].prev = prev;
        }
    }
}

/// Appends, with room for twice as many but never for more than `most`: an array of a bounded table is not half empty when it is full.
pub fn push_within<T>(into: &mut Vec<T>, value: T, most: usize) {
    if into.len() == into.capacity() {
        into.reserve_exact(into.len().max(4).min(most.saturating_sub(into.len())).max(1));
    }
    into.push(value);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn table(capacity: usize) -> Table<u32, u32> {
        Table::new(capacity, Seed::new(1))
    }

    #[test]
    fn the_lowest_tier_goes_first_and_the_oldest_within_it() {
        let mut table = table(3);
        for key in 0..3 {
            table.admit(key);
        }
        table.touch(table.find(&0).unwrap(), Tier::Measured);
        table.admit(3);
        assert_eq!([0, 1, 2, 3].map(|key| table.find(&key).is_some()), [true, false, true, true]);
    }

    #[test]
    fn a_pinned_entry_outlives_every_flood() {
        let mut table = table(2);
        let pinned = table.admit(7).slot().unwrap();
        table.touch(pinned, Tier::Pinned);
        for key in 100..200 {
            assert!(matches!(table.admit(key), Admission::Fresh(_)));
        }
        assert!(table.find(&7).is_some());
        table.touch(table.find(&199).unwrap(), Tier::Pinned);
        assert_eq!(table.admit(1), Admission::Refused);
    }

    #[test]
    fn a_request_never_evicts_its_own_candidates() {
        let mut table = table(4);
        table.begin_request();
        for key in 0..10 {
            if let Some(slot) = table.admit(key).slot() {
                table.mark(slot);
            }
        }
        assert_eq!((0..4).filter(|key| table.find(key).is_some()).count(), 4);
    }

    #[test]
    fn what_is_read_gets_a_second_chance() {
        let mut table = table(2);
        table.admit(1);
        table.admit(2);
        table.begin_request();
        table.mark(table.find(&1).unwrap());
        table.begin_request();
        table.admit(3);
        assert!(table.find(&1).is_some() && table.find(&2).is_none());
    }

    #[derive(Clone, Debug)]
    enum Op {
        Admit(u32),
        Touch(u32, u8),
        Mark(u32),
        Begin,
        Remove(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        let key = 0..24_u32;
        prop_oneof![
            4 => key.clone().prop_map(Op::Admit),
            2 => (key.clone(), 0..4_u8).prop_map(|(key, tier)| Op::Touch(key, tier)),
            1 => key.clone().prop_map(Op::Mark),
            1 => Just(Op::Begin),
            1 => key.prop_map(Op::Remove),
        ]
    }

    proptest! {
        /// SEL-02: bounded after every operation, and no entry is lost or doubled other than by eviction.
        #[test]
        fn the_table_agrees_with_a_map(ops in proptest::collection::vec(op(), 1..400)) {
            let mut table = table(8);
            let mut model: BTreeMap<u32, u32> = BTreeMap::new();
            for (step, op) in ops.into_iter().enumerate() {
                match op {
                    Op::Admit(key) => match table.admit(key) {
                        Admission::Known(slot) => prop_assert_eq!(Some(table.value(slot)), model.get(&key)),
                        Admission::Fresh(slot) => {
                            *table.value_mut(slot) = step as u32;
                            model.retain(|key, _| table.find(key).is_some());
                            prop_assert!(model.insert(key, step as u32).is_none());
                        }
                        Admission::Refused => prop_assert!(model.len() == 8 && !model.contains_key(&key)),
                    },
                    Op::Touch(key, tier) => if let Some(slot) = table.find(&key) {
                        table.touch(slot, [Tier::Cold, Tier::Measured, Tier::Busy, Tier::Pinned][tier as usize]);
                    },
                    Op::Mark(key) => if let Some(slot) = table.find(&key) { table.mark(slot); },
                    Op::Begin => table.begin_request(),
                    Op::Remove(key) => prop_assert_eq!(table.remove(&key).is_some(), model.remove(&key).is_some()),
                }
                prop_assert!(table.len() <= 8);
                prop_assert_eq!(table.len(), model.len());
                prop_assert_eq!(table.slots().count(), model.len());
                for (key, value) in &model {
                    prop_assert_eq!(table.find(key).map(|slot| *table.value(slot)), Some(*value));
                }
            }
        }
    }
}
