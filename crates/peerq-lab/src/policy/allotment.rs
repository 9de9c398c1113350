//! The grants of one answer: never more than was asked for, each peer once.

use super::{Ask, Grant, PeerIndex};

/// Collects the answer to one [`Ask`].
#[derive(Clone, Debug)]
pub(crate) struct Allotment {
    left: u32,
    grants: Vec<Grant>,
}

impl Allotment {
    /// Nobody gets anything yet.
    pub(crate) fn new(ask: &Ask<'_>) -> Self {
        Allotment { left: ask.free.min(ask.ranges_left), grants: Vec::new() }
    }

    /// Gives away no more than `most` in all.
    pub(crate) fn at_most(mut self, most: u32) -> Self {
        self.left = self.left.min(most);
        self
    }

    /// Ranges that can still be given.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// Gives `peer` up to `ranges`, as far as any are left; returns how many it got.
    pub(crate) fn give(&mut self, peer: PeerIndex, ranges: u32) -> u32 {
        let given = ranges.min(self.left);
        if given > 0 {
            self.left -= given;
            match self.grants.iter_mut().find(|grant| grant.peer == peer) {
                Some(grant) => grant.ranges += given,
                None => self.grants.push(Grant { peer, ranges: given }),
            }
        }
        given
    }

    /// What `peer` got so far.
    pub(crate) fn of(&self, peer: PeerIndex) -> u32 {
        self.grants.iter().find(|grant| grant.peer == peer).map_or(0, |grant| grant.ranges)
    }

    /// The answer, in the order in which peers first got something.
    pub(crate) fn grants(self) -> Vec<Grant> {
        self.grants
    }
}
