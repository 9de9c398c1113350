//! A bench for tests of policies: asks, sends what is granted, ends what the test says.

use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};

use super::{Ask, Candidate, PeerIndex, Policy};

/// Bytes of a range on the bench.
pub(crate) const RANGE: u64 = 1_000_000;

/// A completed delivery.
pub(crate) fn completed(bytes: u64, elapsed_ms: u64) -> Delivery {
    let elapsed = Span::from_millis(elapsed_ms);
    let first_byte = Some(Span::from_micros(elapsed.as_micros() / 10));
    Delivery { bytes: Bytes::new(bytes), elapsed, first_byte, end: End::Completed }
}

/// A failed one, without a byte.
pub(crate) fn failed(fault: Fault, elapsed_ms: u64) -> Delivery {
    Delivery { bytes: Bytes::ZERO, elapsed: Span::from_millis(elapsed_ms), first_byte: None, end: End::Failed(fault) }
}

/// See the module documentation.
pub(crate) struct Bench {
    pub(crate) now: Time,
    pub(crate) candidates: Vec<Candidate>,
    /// Asked for with every question.
    pub(crate) sources: u32,
    pub(crate) content: u64,
    /// Granted, sent and not ended: one entry per range, with its content.
    pub(crate) running: Vec<(PeerIndex, u64)>,
}

impl Bench {
    pub(crate) fn new(peers: u32) -> Self {
        Bench::with_rtts(&vec![0.05; peers as usize])
    }

    pub(crate) fn with_rtts(rtts: &[f64]) -> Self {
        let candidate = |(index, &handshake_rtt_s): (usize, &f64)| Candidate {
            peer: PeerIndex(index as u32),
            group: index as u32,
            relayed: false,
            handshake_rtt_s,
        };
        let candidates = rtts.iter().enumerate().map(candidate).collect();
        Bench { now: Time::from_secs(1), candidates, sources: 8, content: 1, running: Vec::new() }
    }

    pub(crate) fn advance_ms(&mut self, ms: u64) {
        self.now = self.now + Span::from_millis(ms);
    }

    /// Asks, checks the contract of an answer, and sends what was granted.
    pub(crate) fn ask(&mut self, policy: &mut dyn Policy, ranges_left: u32, free: u32) -> Vec<(u32, u32)> {
        let ask = Ask {
            now: self.now,
            content: self.content,
            ranges_left,
            range: Bytes::new(RANGE),
            free,
            sources: self.sources,
            in_flight: free.saturating_add(self.running.len() as u32),
            candidates: &self.candidates,
        };
        let grants = policy.choose(&ask);
        let total: u64 = grants.iter().map(|grant| u64::from(grant.ranges)).sum();
        assert!(total <= u64::from(free.min(ranges_left)), "{}: {total} ranges", policy.name());
        for (at, grant) in grants.iter().enumerate() {
            assert!(grant.ranges > 0 && self.candidates.iter().any(|one| one.peer == grant.peer));
            assert!(grants[..at].iter().all(|other| other.peer != grant.peer), "each peer once");
            for _ in 0..grant.ranges {
                policy.sent(grant.peer, Bytes::new(RANGE), self.now);
                self.running.push((grant.peer, self.content));
            }
        }
        grants.iter().map(|grant| (grant.peer.0, grant.ranges)).collect()
    }

    /// One range of `peer` ends like this, right now.
    pub(crate) fn end(&mut self, policy: &mut dyn Policy, peer: u32, delivery: &Delivery) {
        let at = self.running.iter().position(|(running, _)| running.0 == peer).expect("it has one in flight");
        let (peer, content) = self.running.remove(at);
        policy.ended(peer, content, Bytes::new(RANGE), delivery, self.now);
    }

    /// Everything in flight completes, `elapsed_ms` from now.
    pub(crate) fn end_all(&mut self, policy: &mut dyn Policy, bytes: u64, elapsed_ms: u64) {
        self.advance_ms(elapsed_ms);
        for (peer, content) in std::mem::take(&mut self.running) {
            policy.ended(peer, content, Bytes::new(RANGE), &completed(bytes, elapsed_ms), self.now);
        }
    }

    /// Asks for one range of many at a time, `rounds` times; each is ended by `how`, given peer and round, and the clock moves on by what it took. How often each peer was asked.
    pub(crate) fn alternate(
        &mut self,
        policy: &mut dyn Policy,
        rounds: u32,
        how: impl Fn(u32, u32) -> Delivery,
    ) -> Vec<u32> {
        let mut asked = vec![0; self.candidates.len()];
        for round in 0..rounds {
            let Some((peer, _)) = self.ask(policy, rounds - round + 8, 1).first().copied() else {
                self.advance_ms(1_000);
                continue;
            };
            asked[peer as usize] += 1;
            let delivery = how(peer, round);
            self.now = self.now + delivery.elapsed;
            self.end(policy, peer, &delivery);
        }
        asked
    }
}
