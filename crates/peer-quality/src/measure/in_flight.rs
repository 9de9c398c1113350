//! How much is in flight over all peers.

/// Requests in flight, and the peers that they are with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Requests over all peers.
    pub requests: u32,
    /// Peers with at least one.
    pub peers: u32,
}

impl InFlight {
    /// The number in flight to one peer went from `before` to `after`.
    pub fn moved(&mut self, before: u32, after: u32) {
        self.requests = self.requests.saturating_sub(before).saturating_add(after);
        self.peers = self.peers.saturating_sub(u32::from(before > 0)).saturating_add(u32::from(after > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_count_while_they_have_any() {
        let mut all = InFlight::default();
        for (before, after, expected) in
            [(0, 3, (3, 1)), (0, 1, (4, 2)), (3, 2, (3, 2)), (2, 0, (1, 1)), (0, 0, (1, 1)), (1, 0, (0, 0))]
        {
            all.moved(before, after);
            assert_eq!((all.requests, all.peers), expected);
        }
    }
}
