//! The order of the Haskell node's block fetch (facts: prior-art §1.14, leios-stack §4.1).
//!
//! Peers are ordered by the round trip alone: G, with S fixed at 2·10⁻⁶ s/B and V at 0, so what a peer delivers never enters. Peers that are being fetched from
//! count 0.8 of it, and peers within 5 % are equal and follow a salted hash. A peer takes requests until the high watermark of bytes in flight and again
//! below the low one. A peer that starves the client for more than 10 s while others wait goes to the end of the order (§1.14, 5).
//!
//! Where it differs: the node fetches from one peer at a time (concurrency 1 in both modes); here it may use as many sources as the workload wants, like
//! every other policy, so that what is compared is the order. A failed request ends the connection there, and the peer is dialled again after a while.

use std::collections::BTreeMap;

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Span, Time};

use super::allotment::Allotment;
use super::in_flight::InFlight;
use super::stream::Stream;
use super::{Ask, Grant, Opinion, PeerIndex, Policy};

/// S, seconds per byte.
const S: f64 = 2e-6;
/// Least low watermark, bytes: three segments of 64 KiB.
const LOW_LEAST: u64 = 3 * 64 * 1024;
/// Allowance of the low watermark for the decision's own delay, seconds.
const DECISION_S: f64 = 0.02;
/// Factor of a peer that is being fetched from.
const ACTIVE: f64 = 0.8;
/// Round trips this near count as equal.
const TIE: f64 = 0.05;
/// Starvation that moves a peer to the end.
const GRACE: Span = Span::from_secs(10);
/// From a failed connection to the next: the node's own delay is of this order, from memory.
const REDIAL: Span = Span::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Busy since the high watermark, until below the low one.
    busy: bool,
    /// Latest moment at which something was sent while idle, or came in.
    heard: Time,
    /// Its turn at the end of the order; the lower, the earlier it went there.
    demoted: u32,
    away_until: Time,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Haskell {
    peers: BTreeMap<PeerIndex, Seen>,
    in_flight: InFlight,
    salt: u64,
    demotions: u32,
}

impl Haskell {
    /// With the salt of `seed`.
    pub fn new(seed: u64) -> Self {
        let salt = Stream::new(seed, "haskell").bits();
        Haskell { peers: BTreeMap::new(), in_flight: InFlight::default(), salt, demotions: 0 }
    }

    fn hash(&self, peer: PeerIndex) -> u64 {
        let mixed = (u64::from(peer.0) ^ self.salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    fn starve(&mut self, now: Time) {
        for (peer, seen) in &mut self.peers {
            if self.in_flight.at(*peer) > 0 && now.since(seen.heard) > GRACE {
                self.demotions = self.demotions.saturating_add(1);
                seen.demoted = self.demotions;
                seen.heard = now;
            }
        }
    }

    fn seen(&self, peer: PeerIndex) -> Seen {
        self.peers.get(&peer).copied().unwrap_or_default()
    }

    /// Candidates in order, with their round trip.
    fn order(&self, ask: &Ask<'_>) -> Vec<(PeerIndex, f64)> {
        let weighed = |peer: PeerIndex, rtt_s: f64| {
            let rtt_s = if rtt_s.is_finite() { rtt_s.max(0.0) } else { f64::MAX };
            if self.in_flight.at(peer) > 0 { rtt_s * ACTIVE } else { rtt_s }
        };
        let mut order: Vec<(u32, f64, PeerIndex, f64)> = ask
            .candidates
            .iter()
            .map(|one| (self.seen(one.peer), one))
            .filter(|(seen, _)| ask.now >= seen.away_until)
            .map(|(seen, one)| (seen.demoted, weighed(one.peer, one.handshake_rtt_s), one.peer, one.handshake_rtt_s))
            .collect();
        order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        // "Within 5 %" is no equivalence; here a run of equals is whoever is that near to its first.
        let mut start = 0;
        while start < order.len() {
            let (turn, least, ..) = order[start];
            let equal = |one: &(u32, f64, PeerIndex, f64)| one.0 == turn && one.1 - least <= TIE * one.1;
            let end = start + order[start..].iter().take_while(|one| equal(one)).count().max(1);
            order[start..end].sort_by_key(|one| self.hash(one.2));
            start = end;
        }
        order.into_iter().map(|(_, _, peer, rtt_s)| (peer, rtt_s)).collect()
    }
}

/// Low watermark of bytes in flight for a round trip; the high one is twice that.
fn low_watermark(rtt_s: f64) -> u64 {
    let window = ((rtt_s.max(0.0) + DECISION_S) / S).ceil();
    // A float cast saturates, and not-a-number becomes 0.
    (window as u64).max(LOW_LEAST)
}

impl Policy for Haskell {
    fn name(&self) -> &'static str {
        "haskell"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.starve(ask.now);
        let mut active = self.in_flight.peers_of(ask.content).count() as u32;
        let mut allotment = Allotment::new(ask);
        let range = ask.range.get().max(1);
        for (peer, rtt_s) in self.order(ask) {
            let idle = self.in_flight.of(ask.content, peer) == 0;
            if allotment.left() == 0 || (idle && active >= ask.sources) {
                continue;
            }
            let low = low_watermark(rtt_s);
            let mut seen = self.seen(peer);
            let mut bytes = u64::from(self.in_flight.at(peer)).saturating_mul(range);
            seen.busy &= bytes >= low;
            let mut ranges = 0;
            while !seen.busy && ranges < allotment.left() {
                ranges += 1;
                bytes = bytes.saturating_add(range);
                seen.busy = bytes >= low.saturating_mul(2);
            }
            if self.in_flight.at(peer) == 0 {
                seen.heard = ask.now;
            }
            self.in_flight.granted(ask.content, peer, allotment.give(peer, ranges));
            active += u32::from(idle && ranges > 0);
            self.peers.insert(peer, seen);
        }
        allotment.grants()
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, peer: PeerIndex, content: u64, _range: Bytes, delivery: &Delivery, now: Time) {
        self.in_flight.ended(content, peer);
        let seen = self.peers.entry(peer).or_default();
        seen.heard = now;
        if matches!(delivery.end, End::Failed(_) | End::Interrupted) {
            seen.away_until = now + REDIAL;
        }
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        let seen = self.seen(peer);
        Opinion { demoted: seen.demoted > 0 || now < seen.away_until, credited_rate: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::{Bench, completed, failed};
    use peer_quality::measure::Fault;

    #[test]
    fn bandwidth_never_enters_the_order() {
        let mut bench = Bench::with_rtts(&[0.1, 0.2, 0.3]);
        bench.sources = 1;
        let asked = bench.alternate(&mut Haskell::new(1), 100, |peer, _| match peer {
            0 => completed(1_000_000, 9_000),
            _ => completed(1_000_000, 20),
        });
        assert_eq!(asked, [100, 0, 0]);
    }

    #[test]
    fn ties_follow_the_salt_and_the_active_peer_keeps_its_place() {
        let first = |seed| {
            let mut bench = Bench::with_rtts(&[0.100, 0.102, 0.104, 0.2]);
            bench.ask(&mut Haskell::new(seed), 1, 1)[0].0
        };
        let firsts: Vec<u32> = (0..40).map(first).collect();
        assert!((0..3).all(|peer| firsts.contains(&peer)) && !firsts.contains(&3), "{firsts:?}");
        let mut bench = Bench::with_rtts(&[0.11, 0.1]);
        let mut policy = Haskell::new(1);
        policy.in_flight.granted(9, PeerIndex(0), 1);
        let ask = Ask {
            now: bench.now,
            content: 1,
            ranges_left: 1,
            range: Bytes::new(1),
            free: 1,
            sources: 1,
            in_flight: 1,
            candidates: &bench.candidates,
        };
        assert_eq!(policy.order(&ask)[0].0, PeerIndex(0), "0.11 × 0.8 < 0.1");
        bench.advance_ms(1);
    }

    #[test]
    fn watermarks_bound_what_is_in_flight() {
        assert_eq!(low_watermark(0.268), 196_608, "the floor governs below 373 ms");
        assert!((250_000..=250_001).contains(&low_watermark(0.48)));
        assert_eq!((low_watermark(f64::NAN), low_watermark(f64::INFINITY)), (196_608, u64::MAX));
        // Ranges of 1 MB: one at a time.
        let mut bench = Bench::new(2);
        assert_eq!(
            bench.ask(&mut Haskell::new(1), 10, 10).iter().map(|(_, ranges)| *ranges).collect::<Vec<_>>(),
            [1, 1]
        );
    }

    #[test]
    fn who_starves_the_client_goes_to_the_end() {
        let mut bench = Bench::with_rtts(&[0.01, 0.5]);
        bench.sources = 1;
        let mut policy = Haskell::new(1);
        assert_eq!(bench.ask(&mut policy, 5, 1), [(0, 1)]);
        bench.advance_ms(10_001);
        bench.sources = 2;
        assert_eq!(bench.ask(&mut policy, 5, 1), [(1, 1)]);
        assert!(policy.opinion(PeerIndex(0), bench.now).demoted);
    }

    #[test]
    fn a_failed_peer_is_away_until_it_is_dialled_again() {
        let mut bench = Bench::with_rtts(&[0.01, 0.5]);
        let mut policy = Haskell::new(1);
        let asked = bench.alternate(&mut policy, 50, |peer, _| match peer {
            0 => failed(Fault::Transport, 2),
            _ => completed(1_000_000, 100),
        });
        assert_eq!(asked, [1, 49]);
    }
}
