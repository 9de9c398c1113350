//! Power of two choices over PeakEWMA, as in tower and linkerd (facts: prior-art §1.9).
//!
//! For each range two candidates are drawn at random, and the one with the lower `estimate × (pending + 1)` gets it. The estimate of a peer's round trip jumps
//! up to any higher sample and otherwise follows with `exp(−Δt/τ)`; it fades towards zero while nothing ends. Every end is a sample of its duration, be it a
//! success, an error or a cancel: that is the model's known weakness, kept here on purpose (§1.9 (i)–(iii)).

use std::collections::BTreeMap;

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};

use super::allotment::Allotment;
use super::stream::Stream;
use super::{Ask, Candidate, Grant, Opinion, PeerIndex, Policy};

/// Assumed of a peer without samples, seconds (complaint 45: tower#134).
const DEFAULT_RTT_S: f64 = 1.0;
/// τ, seconds: linkerd's default, from memory.
const DECAY_S: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
struct Peak {
    rtt_s: f64,
    at: Time,
    pending: u32,
}

impl Peak {
    fn new(now: Time) -> Self {
        Peak { rtt_s: DEFAULT_RTT_S, at: now, pending: 0 }
    }

    fn kept(&self, now: Time) -> f64 {
        libm::exp(-now.since(self.at).as_secs_f64() / DECAY_S)
    }

    fn faded_s(&self, now: Time) -> f64 {
        self.rtt_s * self.kept(now)
    }

    fn observe(&mut self, rtt_s: f64, now: Time) {
        if rtt_s > self.rtt_s {
            self.rtt_s = rtt_s;
        } else {
            let kept = self.kept(now);
            self.rtt_s = self.rtt_s * kept + rtt_s * (1.0 - kept);
        }
        self.at = now;
    }

    fn cost(&self, now: Time) -> f64 {
        self.faded_s(now) * (f64::from(self.pending) + 1.0)
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct P2c {
    peers: BTreeMap<PeerIndex, Peak>,
    draws: Stream,
}

impl P2c {
    /// With the draws of `seed`.
    pub fn new(seed: u64) -> Self {
        P2c { peers: BTreeMap::new(), draws: Stream::new(seed, "p2c") }
    }

    fn cost(&self, candidate: &Candidate, now: Time) -> f64 {
        self.peers.get(&candidate.peer).map_or(DEFAULT_RTT_S, |peak| peak.cost(now))
    }

    fn pick(&mut self, candidates: &[Candidate], now: Time) -> Option<PeerIndex> {
        let count = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
        if count < 2 {
            return candidates.first().map(|only| only.peer);
        }
        let first = self.draws.below(count);
        let second = (first + 1 + self.draws.below(count - 1)) % count;
        let [first, second] = [first, second].map(|at| &candidates[at as usize]);
        Some(if self.cost(second, now) < self.cost(first, now) { second.peer } else { first.peer })
    }
}

impl Policy for P2c {
    fn name(&self) -> &'static str {
        "p2c"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        for candidate in ask.candidates {
            self.peers.entry(candidate.peer).or_insert_with(|| Peak::new(ask.now));
        }
        let mut allotment = Allotment::new(ask);
        while allotment.left() > 0 {
            let Some(peer) = self.pick(ask.candidates, ask.now) else { break };
            allotment.give(peer, 1);
            self.peers.entry(peer).or_insert_with(|| Peak::new(ask.now)).pending += 1;
        }
        allotment.grants()
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, peer: PeerIndex, _content: u64, _range: Bytes, delivery: &Delivery, now: Time) {
        let peak = self.peers.entry(peer).or_insert_with(|| Peak::new(now));
        peak.pending = peak.pending.saturating_sub(1);
        peak.observe(delivery.elapsed.as_secs_f64(), now);
    }

    /// It distrusts nobody, and credits nobody with a rate.
    fn opinion(&self, _peer: PeerIndex, _now: Time) -> Opinion {
        Opinion::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::{Bench, completed, failed};
    use peer_quality::measure::Fault;

    #[test]
    fn failing_fast_looks_fast_and_gets_half_the_traffic() {
        // Prior art §1.9 (i): of four endpoints one fails in 2 ms; two draws of four contain it half the time.
        let mut bench = Bench::new(4);
        let asked = bench.alternate(&mut P2c::new(1), 2_000, |peer, _| match peer {
            0 => failed(Fault::Transport, 2),
            _ => completed(1_000_000, 100),
        });
        assert!((900..=1_100).contains(&asked[0]), "{asked:?}");
    }

    #[test]
    fn a_peer_that_hangs_gets_cheaper() {
        // Prior art §1.9 (ii).
        let mut policy = P2c::new(1);
        let mut bench = Bench::new(1);
        bench.ask(&mut policy, 1, 1);
        let cost = |policy: &P2c, at| policy.peers[&PeerIndex(0)].cost(at);
        let soon = cost(&policy, bench.now);
        bench.advance_ms(30_000);
        assert!(cost(&policy, bench.now) < soon / 10.0);
    }

    #[test]
    fn the_estimate_jumps_up_and_follows_down() {
        let mut peak = Peak::new(Time::ZERO);
        peak.observe(5.0, Time::from_secs(1));
        assert_eq!(peak.rtt_s, 5.0);
        peak.observe(1.0, Time::from_secs(11));
        let expected = 5.0 * (-1.0_f64).exp() + (1.0 - (-1.0_f64).exp());
        assert!((peak.rtt_s - expected).abs() < 1e-12);
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let run =
            |seed| Bench::new(5).alternate(&mut P2c::new(seed), 200, |peer, _| completed(1_000, 10 + u64::from(peer)));
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }
}
