//! Address groups in exploration (RANK-3): however many identities a party shows, trials of them stay within one share.
//!
//! Each group draws on a bucket of its own. Requests to its unmeasured peers take from it, decisions fill it; an empty bucket puts the group off while anybody else is
//! proven. And where nothing is known of anybody, the second peer of a group comes after the first of every other, so that a crowd takes one place.

use crate::facts::AddressGroup;
use crate::rank::quote::Quote;
use crate::seed::Seed;
use crate::table::Table;

/// Decisions that earn a group one trial: a share of 5 %. Fewer let a crowd waste more, more finds good peers of a big network later. Unmeasured heuristic (A17).
const EARN: u64 = 20;
/// Trials that a group may have saved, and has at first: good peers that come together are not put off at once.
const SAVED_MOST: u64 = 2;
/// Groups that are remembered; the one heard of least lately is forgotten first, and has its first trials again.
const GROUPS: usize = 1024;
/// The last place among the peers of a group that is told apart.
const PLACE_LAST: u8 = 7;

/// The bucket of one group, which fills from a start of its own: what a new group has is saved already. And its members among the candidates of the decision under way.
#[derive(Clone, Copy, Debug, Default)]
struct Crowd {
    /// Decisions whose yield was spent; of the yield of more than [`SAVED_MOST`] trials nothing is kept.
    spent: u64,
    decision: u64,
    members: u8,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Crowds {
    groups: Table<AddressGroup, Crowd>,
}

impl Crowds {
    pub(crate) fn new(seed: Seed) -> Self {
        Crowds { groups: Table::new(GROUPS, seed) }
    }

    /// Gives an unproven peer of `group` its place among its kind in this decision, the `decisions`th, and puts it off if the group spent its trials.
    #[inline]
    pub(crate) fn place(&mut self, group: AddressGroup, quote: &mut Quote, decisions: u64) {
        if !group.is_none() && !quote.is_proven() {
            self.place_unproven(group, quote, decisions);
        }
    }

    fn place_unproven(&mut self, group: AddressGroup, quote: &mut Quote, decisions: u64) {
        let Some(crowd) = self.crowd(group, decisions) else { return };
        if crowd.decision != decisions {
            (crowd.decision, crowd.members) = (decisions, 0);
        }
        quote.crowd = crowd.members;
        crowd.members = (crowd.members + 1).min(PLACE_LAST);
        quote.may_be_tried &= earned(decisions).saturating_sub(crowd.spent) >= EARN;
    }

    /// So many requests were sent to an unproven peer of `group`.
    pub(crate) fn tried(&mut self, group: AddressGroup, requests: u32, decisions: u64) {
        if !group.is_none()
            && let Some(crowd) = self.crowd(group, decisions)
        {
            crowd.spent = crowd.spent.saturating_add(EARN.saturating_mul(requests.into()));
        }
    }

    fn crowd(&mut self, group: AddressGroup, decisions: u64) -> Option<&mut Crowd> {
        // Bounds what is saved; a group that is new has the most.
        let earliest = earned(decisions) - EARN * SAVED_MOST;
        let slot = self.groups.admit(group).slot()?;
        let crowd = self.groups.value_mut(slot);
        crowd.spent = crowd.spent.max(earliest);
        Some(crowd)
    }
}

/// What a group that never spent anything has earned by then, in decisions.
fn earned(decisions: u64) -> u64 {
    decisions.saturating_add(EARN * SAVED_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Basis;

    fn unproven() -> Quote {
        let mut table = Table::<u8, u8>::new(1, Seed::new(0));
        Quote::sample(table.admit(0).slot().unwrap())
    }

    fn placed(crowds: &mut Crowds, group: u32, decisions: u64) -> Quote {
        let mut quote = unproven();
        crowds.place(AddressGroup::numbered(group), &mut quote, decisions);
        quote
    }

    #[test]
    fn a_crowd_gets_one_trial_in_twenty_decisions_and_others_are_not_touched() {
        let mut crowds = Crowds::new(Seed::new(1));
        let mut trials = 0;
        for decisions in 1000..3000 {
            if placed(&mut crowds, 7, decisions).may_be_tried {
                trials += 1;
                crowds.tried(AddressGroup::numbered(7), 1, decisions);
            }
            assert!(placed(&mut crowds, 8, decisions).may_be_tried && placed(&mut crowds, 0, decisions).may_be_tried);
        }
        assert_eq!(trials, 2 + 2000 / EARN - 1);
    }

    #[test]
    fn the_second_of_a_group_comes_after_the_first_of_every_other() {
        let mut crowds = Crowds::new(Seed::new(1));
        let places = [7, 7, 8, 0, 0, 7].map(|group| placed(&mut crowds, group, 5).crowd);
        assert_eq!(places, [0, 1, 0, 0, 0, 2]);
        assert_eq!(placed(&mut crowds, 7, 6).crowd, 0, "another decision");
        (0..20).for_each(|_| assert!(placed(&mut crowds, 9, 6).crowd <= PLACE_LAST));
    }

    #[test]
    fn a_proven_peer_stands_for_itself() {
        let mut crowds = Crowds::new(Seed::new(1));
        let mut proven = Quote { basis: Basis::Measured, ..unproven() };
        (0..9).for_each(|_| crowds.tried(AddressGroup::numbered(7), 1, 100));
        crowds.place(AddressGroup::numbered(7), &mut proven, 100);
        assert!(proven.may_be_tried && proven.crowd == 0);
    }
}
