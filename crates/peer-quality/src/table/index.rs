//! Where the keys of a table are: open addressing with linear probing, half of each hash beside the slot.
//!
//! The one idea: a look-up among millions costs the memory that it misses. A place tells slot and half a hash in eight bytes, so that one line of memory answers
//! nearly every question; removal closes its gap (Knuth, TAOCP 6.4, algorithm R), so nothing is left behind that later look-ups would have to pass.
//!
//! At most five eighths of the places are taken. Which place a key takes depends on the host's seed; no answer depends on it.

use alloc::vec::Vec;

/// Places at first.
const LEAST: usize = 8;
const EMPTY: u64 = 0;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// The slot plus one in the upper half, the hash in the lower; a power of two of them, or none.
    places: Vec<u64>,
    len: usize,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot with this hash of which `is_it` is true.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = self.home(hash);
        // Ends at an empty place: there always is one.
        loop {
            let place = self.places[at];
            if place == EMPTY {
                return None;
            }
            if place as u32 == hash && is_it(slot_in(place)) {
                return Some(slot_in(place));
            }
            at = self.next(at);
        }
    }

    /// Adds a slot that is not there; slots are below 2³² − 1.
    pub(crate) fn insert(&mut self, hash: u32, slot: u32) {
        if (self.len + 1) * 8 > self.places.len() * 5 {
            self.grow();
        }
        self.len += 1;
        self.put((u64::from(slot) + 1) << 32 | u64::from(hash));
    }

    /// Removes a slot.
    pub(crate) fn remove(&mut self, hash: u32, slot: u32) {
        if self.places.is_empty() {
            return;
        }
        let gone = (u64::from(slot) + 1) << 32 | u64::from(hash);
        let mut gap = self.home(hash);
        while self.places[gap] != gone {
            if self.places[gap] == EMPTY {
                return;
            }
            gap = self.next(gap);
        }
        self.len -= 1;
        let mut at = gap;
        loop {
            at = self.next(at);
            let place = self.places[at];
            if place == EMPTY {
                break;
            }
            // Whoever is at home behind the gap stays; everybody else would not be found across it.
            let from_home = at.wrapping_sub(self.home(place as u32)) & self.mask();
            let from_gap = at.wrapping_sub(gap) & self.mask();
            if from_home >= from_gap {
                self.places[gap] = place;
                gap = at;
            }
        }
        self.places[gap] = EMPTY;
    }

    fn put(&mut self, place: u64) {
        let mut at = self.home(place as u32);
        while self.places[at] != EMPTY {
            at = self.next(at);
        }
        self.places[at] = place;
    }

    #[cold]
    fn grow(&mut self) {
        let twice = (self.places.len() * 2).max(LEAST);
        let before = core::mem::replace(&mut self.places, alloc::vec![EMPTY; twice]);
        before.into_iter().filter(|&place| place != EMPTY).for_each(|place| self.put(place));
    }

    #[inline]
    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        hash as usize & self.mask()
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & self.mask()
    }
}

fn slot_in(place: u64) -> u32 {
    ((place >> 32) as u32).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Hashes are drawn from few, so that places collide, and wrap around the end.
        #[test]
        fn the_index_agrees_with_a_map(ops in proptest::collection::vec((any::<bool>(), 0..40_u32, any::<bool>()), 1..400)) {
            let (mut index, mut model) = (Index::default(), BTreeMap::new());
            for (adds, slot, is_high) in ops {
                let hash = if is_high { u32::MAX - slot % 3 } else { slot % 5 };
                match (adds, model.get(&slot).copied()) {
                    (true, None) => {
                        index.insert(hash, slot);
                        model.insert(slot, hash);
                    }
                    (false, Some(hash)) => {
                        index.remove(hash, slot);
                        model.remove(&slot);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), model.len());
                for slot in 0..40 {
                    let found = model.get(&slot).and_then(|&hash| index.find(hash, |other| other == slot));
                    prop_assert_eq!(found.is_some(), model.contains_key(&slot));
                }
            }
        }
    }

    #[test]
    fn nothing_is_found_or_removed_where_nothing_is() {
        let mut index = Index::default();
        index.remove(1, 1);
        assert!(index.find(1, |_| true).is_none() && index.len() == 0);
        index.insert(1, 1);
        index.remove(1, 2);
        assert_eq!((index.len(), index.find(1, |_| true)), (1, Some(1)));
    }
}
