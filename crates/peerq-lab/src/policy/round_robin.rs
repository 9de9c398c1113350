//! Round robin: what dig-download does without a selector (facts: dig-stack §1.1, §1.2; its `NullSelector`).
//!
//! Every question starts one candidate further on; ranges go to the first candidate until it has four in flight for the content, then to the next, eight in
//! all. Nothing is learned; the downloader's own pause after failures applies.

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};

use super::allotment::Allotment;
use super::backoff::Backoff;
use super::in_flight::InFlight;
use super::{Ask, Grant, Opinion, PeerIndex, Policy};

/// dig-download's `max_inflight_per_source`.
pub(crate) const PER_SOURCE: u32 = 4;
/// dig-download's `max_concurrency`.
pub(crate) const IN_ALL: u32 = 8;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    cursor: usize,
    in_flight: InFlight,
    backoff: Backoff,
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        let open: Vec<PeerIndex> =
            ask.candidates.iter().map(|one| one.peer).filter(|peer| !self.backoff.is_on(*peer, ask.now)).collect();
        if open.is_empty() {
            return Vec::new();
        }
        let start = self.cursor % open.len();
        self.cursor = self.cursor.wrapping_add(1);
        fill(open[start..].iter().chain(&open[..start]).copied(), ask, &mut self.in_flight)
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, peer: PeerIndex, content: u64, _range: Bytes, delivery: &Delivery, now: Time) {
        self.in_flight.ended(content, peer);
        self.backoff.ended(peer, delivery, now);
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        Opinion { demoted: self.backoff.is_on(peer, now), credited_rate: None }
    }
}

/// dig-download's way with an order of sources: each in turn up to its limit, until the limit in all.
pub(crate) fn fill(order: impl Iterator<Item = PeerIndex>, ask: &Ask<'_>, in_flight: &mut InFlight) -> Vec<Grant> {
    let mut allotment = Allotment::new(ask).at_most(IN_ALL.saturating_sub(in_flight.for_content(ask.content)));
    for peer in order {
        let room = PER_SOURCE.saturating_sub(in_flight.of(ask.content, peer));
        in_flight.granted(ask.content, peer, allotment.give(peer, room));
    }
    allotment.grants()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::{Bench, failed};
    use peer_quality::measure::Fault;

    #[test]
    fn the_start_rotates_and_limits_hold() {
        let mut bench = Bench::new(3);
        let mut policy = RoundRobin::default();
        assert_eq!(bench.ask(&mut policy, 100, 100), [(0, 4), (1, 4)]);
        assert_eq!(bench.ask(&mut policy, 100, 100), [], "eight in all");
        bench.end_all(&mut policy, 1_000, 10);
        assert_eq!(bench.ask(&mut policy, 100, 2), [(2, 2)], "two questions later the third is first");
        assert_eq!(bench.ask(&mut policy, 1, 100), [(0, 1)]);
    }

    #[test]
    fn a_failed_source_pauses() {
        let mut bench = Bench::new(2);
        let mut policy = RoundRobin::default();
        bench.ask(&mut policy, 1, 1);
        bench.end(&mut policy, 0, &failed(Fault::Transport, 5));
        for _ in 0..4 {
            assert!(bench.ask(&mut policy, 1, 1).iter().all(|(peer, _)| *peer == 1));
        }
        bench.advance_ms(200);
        bench.end_all(&mut policy, 1_000, 10);
        assert!((0..2).any(|_| bench.ask(&mut policy, 1, 1) == [(0, 1)]));
    }
}
