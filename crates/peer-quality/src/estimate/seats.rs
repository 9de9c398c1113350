//! Seats: how many peers of one address group have a vote in the population's averages (AUD-2, EST-5).
//!
//! Weights by group would have to be worked out anew for all its members whenever one comes or goes. A few seats for each group bound what a crowd can do to an average
//! as well, and cost a comparison: who comes when all are taken has no vote until one is free.

use alloc::collections::BTreeMap;

use crate::facts::AddressGroup;

/// Votes of one group at most. Fewer lets chance decide what a big network is like, more lets a crowd outvote independent peers. Unmeasured heuristic.
pub const SEATS: u32 = 2;

/// Seats that are taken, by group. As many groups at most as there are peers with a vote.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    taken: BTreeMap<AddressGroup, u32>,
}

impl Seats {
    /// Takes a seat of a group, if one is free. A peer of no group always has one.
    pub fn take(&mut self, group: AddressGroup) -> bool {
        if group.is_none() {
            return true;
        }
        let taken = self.taken.entry(group).or_default();
        let is_free = *taken < SEATS;
        *taken += u32::from(is_free);
        is_free
    }

    /// Gives back a seat that was taken.
    pub fn leave(&mut self, group: AddressGroup) {
        if let Some(taken) = self.taken.get_mut(&group) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_has_few_votes_and_one_that_leaves_makes_room() {
        let (mut seats, group) = (Seats::default(), AddressGroup::numbered(7));
        let seated = (0..100).filter(|_| seats.take(group)).count();
        assert_eq!(seated, 2);
        assert!((0..100).all(|_| seats.take(AddressGroup::NONE)) && seats.take(AddressGroup::numbered(8)));
        seats.leave(group);
        assert!(seats.take(group) && !seats.take(group));
        (0..2).for_each(|_| seats.leave(group));
        seats.leave(AddressGroup::numbered(8));
        assert!(seats.taken.is_empty(), "nothing is kept of groups that left");
    }
}
