//! Ranges in flight as a client counts them: from the grant to the end, per peer and per content.

use std::collections::BTreeMap;

use super::PeerIndex;

/// See the module documentation. Holds only what is in flight, so the client's bound on that is its bound on memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    at: BTreeMap<PeerIndex, u32>,
    of: BTreeMap<(u64, PeerIndex), u32>,
    content: BTreeMap<u64, u32>,
}

impl InFlight {
    /// `ranges` of `content` were granted to `peer`.
    pub(crate) fn granted(&mut self, content: u64, peer: PeerIndex, ranges: u32) {
        if ranges > 0 {
            add(&mut self.at, peer, ranges);
            add(&mut self.of, (content, peer), ranges);
            add(&mut self.content, content, ranges);
        }
    }

    /// One of them ended. An end without a grant changes nothing.
    pub(crate) fn ended(&mut self, content: u64, peer: PeerIndex) {
        if take_one(&mut self.of, (content, peer)) {
            take_one(&mut self.at, peer);
            take_one(&mut self.content, content);
        }
    }

    /// Whether nothing is in flight anywhere.
    pub(crate) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// In flight at `peer`, over all contents.
    pub(crate) fn at(&self, peer: PeerIndex) -> u32 {
        self.at.get(&peer).copied().unwrap_or(0)
    }

    /// In flight at `peer` for `content`.
    pub(crate) fn of(&self, content: u64, peer: PeerIndex) -> u32 {
        self.of.get(&(content, peer)).copied().unwrap_or(0)
    }

    /// In flight for `content`, over all peers.
    pub(crate) fn for_content(&self, content: u64) -> u32 {
        self.content.get(&content).copied().unwrap_or(0)
    }

    /// Peers with something in flight for `content`, by ascending index.
    pub(crate) fn peers_of(&self, content: u64) -> impl Iterator<Item = PeerIndex> + '_ {
        let all = (content, PeerIndex(0))..=(content, PeerIndex(u32::MAX));
        self.of.range(all).map(|((_, peer), _)| *peer)
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, ranges: u32) {
    let count = counts.entry(key).or_insert(0);
    *count = count.saturating_add(ranges);
}

fn take_one<K: Ord + Copy>(counts: &mut BTreeMap<K, u32>, key: K) -> bool {
    let Some(count) = counts.get_mut(&key) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(&key);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_granted_is_counted_until_it_ends() {
        let mut in_flight = InFlight::default();
        in_flight.granted(7, PeerIndex(1), 2);
        in_flight.granted(8, PeerIndex(1), 1);
        in_flight.granted(7, PeerIndex(2), 0);
        assert_eq!((in_flight.at(PeerIndex(1)), in_flight.of(7, PeerIndex(1)), in_flight.for_content(7)), (3, 2, 2));
        assert_eq!(in_flight.peers_of(7).collect::<Vec<_>>(), [PeerIndex(1)]);
        for _ in 0..5 {
            in_flight.ended(7, PeerIndex(1));
        }
        in_flight.ended(9, PeerIndex(4));
        assert_eq!((in_flight.at(PeerIndex(1)), in_flight.of(7, PeerIndex(1)), in_flight.for_content(8)), (1, 0, 1));
    }
}
