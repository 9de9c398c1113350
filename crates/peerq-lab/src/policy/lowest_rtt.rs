//! Lowest round trip first: the usual way to pick a mirror (facts: prior-art, complaint 46: "connect latency is no proxy for bandwidth").
//!
//! Candidates in the order of the round trip that their handshake showed, four ranges each, in the same downloader as [round robin](super::round_robin).

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};

use super::backoff::Backoff;
use super::in_flight::InFlight;
use super::round_robin::fill;
use super::{Ask, Grant, Opinion, PeerIndex, Policy};

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct LowestRtt {
    in_flight: InFlight,
    backoff: Backoff,
}

impl Policy for LowestRtt {
    fn name(&self) -> &'static str {
        "lowest-rtt"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        let mut open: Vec<_> = ask.candidates.iter().filter(|one| !self.backoff.is_on(one.peer, ask.now)).collect();
        open.sort_by(|a, b| a.handshake_rtt_s.total_cmp(&b.handshake_rtt_s).then(a.peer.cmp(&b.peer)));
        fill(open.into_iter().map(|one| one.peer), ask, &mut self.in_flight)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::Bench;

    #[test]
    fn the_nearest_get_everything_whatever_they_deliver() {
        let mut bench = Bench::with_rtts(&[0.3, 0.02, 0.1, f64::NAN]);
        let mut policy = LowestRtt::default();
        for _ in 0..5 {
            assert_eq!(bench.ask(&mut policy, 100, 100), [(1, 4), (2, 4)]);
            bench.end_all(&mut policy, 1, 60_000);
        }
    }
}
