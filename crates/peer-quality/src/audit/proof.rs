//! Proof against a peer: bytes that failed verification, and bans by the host (AUD-8, spec §6.3, §9.4).
//!
//! Each failed verification is a strike, and verified deliveries pay strikes back slowly, so corrupting one range in a hundred ends at the bottom as surely as
//! corrupting all of them, while a peer whose disk was bad for a minute comes back. What is proven is small and kept apart from the peer
//! table, so that a flood of fresh identities cannot wash it away (scenarios C16, C18).

use crate::units::Bytes;

/// Verified deliveries that pay back one strike. Corruption rarer than this is forgiven in the long run; at 1 in 64 a retry costs
/// less than 2 % of the traffic. Fewer forgives a careful corrupter, more keeps a repaired peer out for long.
const DELIVERIES_PER_STRIKE: f32 = 64.0;
/// A delivery of this many bytes counts half: one frame of the DIG wire.
const HALF_DELIVERY: Bytes = Bytes::from_kib(32);
/// Strikes from which a peer stands below everyone unmeasured: the second offence.
const CONDEMNED_AT: f32 = 1.5;
/// Strikes below which a peer is trusted like any other again.
const CLEARED_AT: f32 = 0.05;
/// The most strikes that are counted: bounds rehabilitation to about 512 verified deliveries.
const MAX_STRIKES: f32 = 8.0;

/// Where a peer stands, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Nothing is proven against it.
    #[default]
    Fine,
    /// One proven offence: it gets one request at a time and ranks behind its record.
    Probation,
    /// Proven offences, repeated: it ranks below everyone unmeasured and gets one request at a time when nobody else is left or a trial is due.
    Condemned,
    /// Banned by the host: it gets nothing until it is admitted again.
    Banned,
}

/// What is proven against one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Proof {
    strikes: f32,
    offences: u32,
    banned: bool,
}

impl Proof {
    /// Whether there is nothing to remember.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.offences == 0 && !self.banned
    }

    /// A delivery failed verification.
    pub fn offend(&mut self) {
        self.offences = self.offences.saturating_add(1);
        self.strikes = (self.strikes + 1.0).min(MAX_STRIKES);
    }

    /// A delivery of `bytes` was verified. Small ones count for little, so that nobody works off an offence with crumbs.
    #[inline]
    pub fn pay_back(&mut self, bytes: Bytes) {
        if self.strikes == 0.0 {
            return;
        }
        let worth = bytes.as_f64() / (bytes.as_f64() + HALF_DELIVERY.as_f64());
        self.strikes -= worth as f32 / DELIVERIES_PER_STRIKE;
        if self.strikes < CLEARED_AT {
            self.strikes = 0.0;
        }
    }

    /// The host bans the peer, or admits it again; earlier offences stay.
    pub fn set_banned(&mut self, banned: bool) {
        self.banned = banned;
    }

    /// Failed verifications ever.
    pub fn offences(&self) -> u64 {
        u64::from(self.offences)
    }

    /// The verdict.
    #[inline]
    pub fn standing(&self) -> Standing {
        if self.banned {
            Standing::Banned
        } else if self.strikes >= CONDEMNED_AT {
            Standing::Condemned
        } else if self.strikes > 0.0 {
            Standing::Probation
        } else {
            Standing::Fine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: Bytes = Bytes::from_kib(1024);

    #[test]
    fn repeated_offences_condemn_however_rare() {
        // C38: one in three corrupt; and one in forty.
        for period in [1, 3, 40] {
            let mut proof = Proof::default();
            for delivery in 0..400 {
                if delivery % period == 0 { proof.offend() } else { proof.pay_back(MIB) }
            }
            assert_eq!(proof.standing(), Standing::Condemned, "one in {period}");
        }
    }

    #[test]
    fn the_way_back_is_slow_and_bounded() {
        // C39: three failures once, then good.
        let mut proof = Proof::default();
        (0..3).for_each(|_| proof.offend());
        let mut deliveries = 0;
        while proof.standing() != Standing::Fine {
            proof.pay_back(MIB);
            deliveries += 1;
        }
        assert!((150..=200).contains(&deliveries), "{deliveries}");
        let mut worst = Proof::default();
        (0..10_000).for_each(|_| worst.offend());
        (0..530).for_each(|_| worst.pay_back(MIB));
        assert_eq!((worst.standing(), worst.offences()), (Standing::Fine, 10_000));
    }

    #[test]
    fn crumbs_work_off_nothing() {
        let mut proof = Proof::default();
        (0..2).for_each(|_| proof.offend());
        (0..10_000).for_each(|_| proof.pay_back(Bytes::new(0)));
        (0..1_000).for_each(|_| proof.pay_back(Bytes::new(100)));
        assert_eq!(proof.standing(), Standing::Condemned);
    }

    #[test]
    fn a_ban_is_lifted_by_the_host_alone_and_forgives_nothing() {
        let mut proof = Proof::default();
        (0..2).for_each(|_| proof.offend());
        proof.set_banned(true);
        (0..1000).for_each(|_| proof.pay_back(MIB));
        assert_eq!(proof.standing(), Standing::Banned);
        (0..2).for_each(|_| proof.offend());
        proof.set_banned(false);
        assert_eq!(proof.standing(), Standing::Condemned);
    }
}
