//! Leases: ranges that a selection promised to a peer (spec §5.3).
//!
//! A selection cannot know what the host will dispatch, so it reserves: per content and peer up to the concurrency it recommended. The next
//! selection for that content replaces what was not confirmed; a dispatch or an outcome confirms; what nobody confirms is released after
//! [`DISPATCH_TTL_SECS`](crate::DISPATCH_TTL_SECS). So promises bound what *other* contents are promised, and never add up.

use peer_quality::Slot;
use peer_quality::measure::DISPATCH_TTL;
use peer_quality::units::Time;

/// The most contents one peer is leased to at a time; the oldest lease is released for a newer one.
const MAX_LEASES: usize = 64;

/// Names a content of the selector's table while it lives there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lessee {
    pub(crate) content: Slot,
    pub(crate) tenancy: u64,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    lessee: Lessee,
    ranges: u32,
    at: Time,
}

/// The leases on one peer, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases(Vec<Lease>);

impl Leases {
    /// Nothing is promised.
    pub(crate) const NONE: Leases = Leases(Vec::new());

    /// Whether nothing is promised.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many contents it is promised to.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Ranges promised and live at `now`.
    pub(crate) fn promised(&self, now: Time) -> u32 {
        let live = self.0.iter().filter(|lease| now.since(lease.at) <= DISPATCH_TTL);
        live.fold(0, |sum, lease| sum.saturating_add(lease.ranges))
    }

    /// Ranges promised to `lessee`.
    pub(crate) fn of(&self, lessee: Lessee) -> u32 {
        self.0.iter().find(|lease| lease.lessee == lessee).map_or(0, |lease| lease.ranges)
    }

    /// Releases what has expired; a lease from the future (the clock went back) ages from `now`.
    pub(crate) fn expire(&mut self, now: Time) {
        for lease in &mut self.0 {
            lease.at = lease.at.min(now);
        }
        self.0.retain(|lease| now.since(lease.at) <= DISPATCH_TTL);
    }

    /// Promises `ranges` to `lessee`, in place of what it was promised before.
    pub(crate) fn grant(&mut self, lessee: Lessee, ranges: u32, now: Time) {
        self.release(lessee);
        if self.0.len() == MAX_LEASES {
            self.0.remove(0);
        }
        self.0.push(Lease { lessee, ranges, at: now });
    }

    /// Takes back what `lessee` was promised.
    pub(crate) fn release(&mut self, lessee: Lessee) {
        self.0.retain(|lease| lease.lessee != lessee);
    }

    /// An outcome for `lessee` confirms and settles one range of its lease.
    pub(crate) fn settle_one(&mut self, lessee: Lessee) {
        if let Some(lease) = self.0.iter_mut().find(|lease| lease.lessee == lessee) {
            lease.ranges = lease.ranges.saturating_sub(1);
        }
        self.0.retain(|lease| lease.ranges > 0);
    }

    /// `ranges` were dispatched, the host does not say for which content: the newest leases turn into dispatches first. Says whose they were, and how many.
    pub(crate) fn confirm(&mut self, mut ranges: u32) -> Vec<(Lessee, u32)> {
        let mut confirmed = Vec::new();
        for lease in self.0.iter_mut().rev() {
            let taken = lease.ranges.min(ranges);
            lease.ranges -= taken;
            ranges -= taken;
            if taken > 0 {
                confirmed.push((lease.lessee, taken));
            }
        }
        self.0.retain(|lease| lease.ranges > 0);
        confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lessee(content: u8) -> Lessee {
        let mut table = peer_quality::table::Table::<u8, u8>::new(256, peer_quality::Seed::new(0));
        (0..content).for_each(|key| {
            table.admit(key);
        });
        Lessee { content: table.admit(content).slot().unwrap(), tenancy: 0 }
    }

    #[test]
    fn a_new_promise_replaces_the_old_one_of_the_same_content() {
        let mut leases = Leases::default();
        for _ in 0..50 {
            leases.grant(lessee(0), 4, Time::ZERO);
        }
        leases.grant(lessee(1), 2, Time::ZERO);
        assert_eq!(leases.promised(Time::ZERO), 6);
    }

    #[test]
    fn promises_expire_unread_and_after_a_clock_step() {
        let mut leases = Leases::default();
        leases.grant(lessee(0), 4, Time::from_secs(1_000));
        leases.expire(Time::from_secs(10));
        assert_eq!(leases.promised(Time::from_secs(310)), 4);
        assert_eq!(leases.promised(Time::from_secs(311)), 0);
    }

    #[test]
    fn a_dispatch_confirms_what_was_promised() {
        let mut leases = Leases::default();
        leases.grant(lessee(0), 3, Time::ZERO);
        assert_eq!(leases.confirm(3), [(lessee(0), 3)]);
        assert!(leases.is_empty());
        assert_eq!(leases.confirm(u32::MAX), []);
    }

    #[test]
    fn the_number_of_leases_is_bounded() {
        let mut leases = Leases::default();
        (0..200).for_each(|content| leases.grant(lessee(content), 1, Time::ZERO));
        assert_eq!(leases.len(), MAX_LEASES);
    }
}
