//! What a selector keeps of each content: who holds it, who was promised ranges, how large its ranges are (spec §5.5, §9.1).
//!
//! A rebalance may name only holders of *this* content: the candidates that were given for it, and peers that delivered a verified range of it. Contents are
//! bounded and the least recently asked for goes first; members are checked against the registry's tenancy, so an evicted peer is never meant.

use peer_quality::Slot;
use peer_quality::units::{Bytes, Span, Time};

use crate::slots::Slots;

/// Contents remembered at a time.
pub(crate) const MAX_CONTENTS: usize = 1024;
/// Peers remembered per content and list.
pub(crate) const MAX_MEMBERS: usize = 4096;
/// Peers remembered as not having the content; the oldest goes first.
const MAX_ABSENT: usize = 64;
/// How long the first "not found" is believed: the peer may have other ranges of the content (scenario A25).
const ABSENCE: Span = Span::from_secs(1);
/// Doubled with each one after that, up to this: it has none of it, but may fetch it meanwhile.
const ABSENCE_LONGEST: Span = Span::from_secs(60);
/// The size assumed of a range while none was seen: the smallest chunk of the DIG host.
const FIRST_RANGE: Bytes = Bytes::from_kib(256);
/// Share of a new range size in the running mean.
const RANGE_STEP: f32 = 0.125;

/// A peer of the registry, as long as its slot has the same tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) slot: Slot,
    pub(crate) tenancy: u32,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Tells tenants of one slot apart; 0 is nobody.
    pub(crate) tenancy: u64,
    /// Decisions made about it.
    pub(crate) decisions: u64,
    /// Ranges that were promised for it, dispatched, and have not ended; a host that does not report dispatches has none.
    pub(crate) in_flight: u32,
    /// Ranges that the host can have in flight for it.
    pub(crate) slots: Slots,
    /// The candidates of the latest selection.
    pub(crate) given: Vec<Member>,
    /// Those that delivered a range of it.
    pub(crate) proven: Vec<Member>,
    /// Those that hold a lease for it.
    pub(crate) leased: Vec<Member>,
    absent: Vec<Absence>,
    mean_range: f32,
}

/// What a peer said of a content that it does not have.
#[derive(Clone, Copy, Debug)]
struct Absence {
    member: Member,
    said_at: Time,
    /// For how long it is believed.
    span: Span,
}

impl Content {
    /// Notes that a peer delivered a range of it, `bytes` long.
    pub(crate) fn delivered(&mut self, member: Member, first_time: bool, bytes: u64) {
        if first_time && self.proven.len() < MAX_MEMBERS {
            self.proven.push(member);
        }
        self.absent.retain(|absence| absence.member != member);
        let bytes = bytes as f32;
        self.mean_range =
            if self.mean_range == 0.0 { bytes } else { self.mean_range + RANGE_STEP * (bytes - self.mean_range) };
    }

    /// Notes that a peer does not have it.
    pub(crate) fn missing(&mut self, member: Member, now: Time) {
        let before = self.absent.iter().position(|absence| absence.member == member).map(|at| self.absent.remove(at));
        let twice = |absence: Absence| Span::from_micros(absence.span.as_micros() * 2).min(ABSENCE_LONGEST);
        if self.absent.len() == MAX_ABSENT {
            self.absent.remove(0);
        }
        self.absent.push(Absence { member, said_at: now, span: before.map_or(ABSENCE, twice) });
    }

    /// Whether a peer said lately that it does not have it.
    pub(crate) fn lacks(&self, slot: Slot, now: Time) -> bool {
        self.absent.iter().any(|absence| absence.member.slot == slot && now.since(absence.said_at) < absence.span)
    }

    /// Whether anybody said so.
    pub(crate) fn has_absent(&self) -> bool {
        !self.absent.is_empty()
    }

    /// The size to expect of one range, given what the caller knows.
    pub(crate) fn range(&self, total: Option<u64>, ranges: Option<usize>) -> Bytes {
        match (total, ranges) {
            (Some(total), Some(ranges)) if ranges > 0 => Bytes::new((total / ranges as u64).max(1)),
            (total, _) => {
                let usual = if self.mean_range > 0.0 { Bytes::new(self.mean_range as u64) } else { FIRST_RANGE };
                usual.min(total.map_or(usual, Bytes::new)).max(Bytes::new(1))
            }
        }
    }

    /// Every holder, each once, those given first.
    pub(crate) fn holders(&self) -> impl Iterator<Item = Member> + '_ {
        self.given.iter().chain(&self.proven).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(key: u8) -> Member {
        let mut table = peer_quality::table::Table::<u8, u8>::new(256, peer_quality::Seed::new(0));
        (0..key).for_each(|key| {
            table.admit(key);
        });
        Member { slot: table.admit(key).slot().unwrap(), tenancy: 0 }
    }

    #[test]
    fn absence_is_believed_for_a_while_and_refuted_by_a_delivery() {
        let mut content = Content::default();
        let peer = member(3);
        for (times, believed_s) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (99, 60)] {
            let mut content = Content::default();
            (0..times).for_each(|_| content.missing(peer, Time::from_secs(10)));
            let lacks = |micros: u64| content.lacks(peer.slot, Time::from_micros(10_000_000 + micros));
            assert!(lacks(believed_s * 1_000_000 - 1) && !lacks(believed_s * 1_000_000), "{times}");
        }
        content.missing(peer, Time::from_secs(10));
        content.delivered(peer, true, 1);
        assert!(!content.lacks(peer.slot, Time::from_secs(10)));
        content.missing(peer, Time::from_secs(11));
        assert!(!content.lacks(peer.slot, Time::from_secs(12)), "it begins anew");
    }

    #[test]
    fn the_range_size_comes_from_the_caller_then_from_experience() {
        let mut content = Content::default();
        assert_eq!(content.range(None, None), FIRST_RANGE);
        assert_eq!(content.range(Some(1000), Some(4)), Bytes::new(250));
        assert_eq!(content.range(Some(0), Some(0)), Bytes::new(1));
        content.delivered(member(0), true, 1 << 20);
        assert_eq!(content.range(None, Some(9)), Bytes::from_kib(1024));
        assert_eq!(content.range(Some(10), None), Bytes::new(10));
    }
}
