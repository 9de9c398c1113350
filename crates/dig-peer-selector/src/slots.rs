//! How many ranges the host can have in flight for a content, learned from what it makes of the answers it gets.
//!
//! The one idea: an answer names peers and how many ranges each may take, but not how many the host will send; a host sends them to the first peers named until it has
//! no more slots. An answer that fits the free slots spreads them well. A host that takes less than it was offered has no more slots than it then
//! uses; one that takes everything may have more.

/// See the module documentation. Hosts that do not report dispatches stay unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Slots as far as known; 0 is unknown.
    known: u32,
    /// What was added when the latest answer was taken whole: twice as much each time.
    growth: u32,
    /// Ranges in flight when the latest answer was given.
    before: u32,
    offered: u32,
    taken: u32,
}

impl Slots {
    /// Those of a host that showed `known` of them for another content.
    pub(crate) fn like(other: Slots) -> Slots {
        Slots { known: other.known, ..Slots::default() }
    }

    /// Ranges that the host can send now, if `in_flight` are out; none where that is unknown. At least 1: it asked.
    pub(crate) fn free(&mut self, in_flight: u32) -> Option<u32> {
        if self.taken > 0 && self.offered > 0 {
            let used = self.before.saturating_add(self.taken);
            if self.taken < self.offered {
                (self.known, self.growth) = (used, 0);
            } else if used >= self.known {
                // An answer that the peers' room kept below the free slots says nothing of more.
                self.growth = self.growth.saturating_mul(2).max(1);
                self.known = self.known.max(used.saturating_add(self.growth));
            }
        }
        self.offered = 0;
        (self.known > 0).then(|| self.known.saturating_sub(in_flight).max(1))
    }

    /// An answer was given.
    pub(crate) fn offer(&mut self, ranges: u32, in_flight: u32) {
        *self = Slots { before: in_flight, offered: ranges, taken: 0, ..*self };
    }

    /// The host sent ranges.
    pub(crate) fn take(&mut self, ranges: u32) {
        self.taken = self.taken.saturating_add(ranges);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with `slots` of them and a great deal to fetch: the ranges it is offered in each round, when one of those in flight ends at a time.
    fn offers(slots: u32, rounds: usize) -> Vec<u32> {
        let (mut learned, mut in_flight) = (Slots::default(), 0);
        let mut offer = || {
            let free = learned.free(in_flight).unwrap_or(4);
            learned.offer(free, in_flight);
            let taken = free.min(slots - in_flight);
            (0..taken).for_each(|_| learned.take(1));
            in_flight = in_flight + taken - 1;
            free
        };
        (0..rounds).map(|_| offer()).collect()
    }

    #[test]
    fn a_host_is_offered_what_it_has_slots_for() {
        for slots in [1, 2, 4, 5, 16, 64] {
            let offers = offers(slots, 12);
            assert!(offers[8..].contains(&1), "{slots}: {offers:?}");
            assert!(offers[8..].iter().all(|offer| *offer <= 2), "{slots}: {offers:?}");
        }
    }

    #[test]
    fn an_answer_kept_small_by_the_peers_says_nothing_of_more_slots() {
        let mut slots = Slots { known: 16, ..Slots::default() };
        for _ in 0..40 {
            // Five in flight already; the peers have room for three more, and all of that is taken.
            assert_eq!(slots.free(5), Some(11));
            slots.offer(3, 5);
            (0..3).for_each(|_| slots.take(1));
        }
    }

    #[test]
    fn a_host_that_reports_nothing_stays_unknown() {
        let mut slots = Slots::default();
        for _ in 0..3 {
            assert_eq!(slots.free(0), None);
            slots.offer(7, 0);
        }
        assert_eq!(Slots::like(slots).free(0), None);
    }
}
