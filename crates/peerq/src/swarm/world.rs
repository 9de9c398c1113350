//! The swarm's peers, drawn from the seed: who is honest, who is hostile and how, and each one's link.
//!
//! Same seed and counts, same world, on every platform. The draws:
//! - **Rates** are log-uniform. The slowest honest peer has weight 1, the fastest [`SPREAD`]; each of the
//!   others is drawn from its own equal part of the range between, so that no world is all slow or all
//!   fast. All are scaled so that the links add up to 110–130 MB/s for eight peers (in proportion for other
//!   counts, at most [`TOTAL_MAX`]).
//! - **Delays** are log-uniform from 1 to 80 ms, one way.
//! - **Hostile peers look attractive**: a rate from the top quarter of the range and at most 5 ms delay.
//!   Their kinds are dealt in turn from a drawn start, so that every kind appears once there are three.

use std::time::Duration;

use peerq_dig::node::{Fault, LinkShape};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Fastest over slowest honest link.
const SPREAD: f64 = 11.0;

/// What the links of eight peers add up to, bytes per second: enough for rounds of seconds, and under what
/// two cores can carry when both ends of every transfer run on them (about 200 MB/s).
const TOTAL_OF_EIGHT: (f64, f64) = (110e6, 130e6);

/// Bound on the sum of all links, bytes per second, so that the links and not the processor are the limit.
const TOTAL_MAX: f64 = 150e6;

/// One-way delays of honest peers, seconds.
const DELAY: (f64, f64) = (0.001, 0.080);

/// One-way delays of hostile peers, seconds.
const DELAY_ATTRACTIVE: (f64, f64) = (0.001, 0.005);

/// A dribbling peer's honest start, as a part of the file, and what it sends per second after it.
const DRIBBLE_AFTER_PART: u64 = 8;
const DRIBBLE_BYTES_PER_S: u64 = 16 * 1024;

/// What a peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Honest,
    Corrupts,
    Dribbles,
    Silent,
}

/// The hostile kinds in the order in which they are dealt.
const HOSTILE: [Kind; 3] = [Kind::Corrupts, Kind::Dribbles, Kind::Silent];

impl Kind {
    /// As it stands in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Corrupts => "corrupts",
            Self::Dribbles => "dribbles",
            Self::Silent => "silent",
        }
    }

    /// Whether this peer works against whoever fetches from it.
    pub(crate) fn is_hostile(self) -> bool {
        self != Self::Honest
    }

    /// What the serving node is told to do with a file of `file_bytes`.
    pub(crate) fn fault(self, file_bytes: u64) -> Fault {
        match self {
            Self::Honest => Fault::None,
            Self::Corrupts => Fault::CorruptBytes,
            Self::Dribbles => {
                Fault::DribbleAfter { bytes: file_bytes / DRIBBLE_AFTER_PART, rate_bytes_per_s: DRIBBLE_BYTES_PER_S }
            }
            Self::Silent => Fault::SilentAfterAccept,
        }
    }
}

/// One peer as drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PeerPlan {
    pub(crate) kind: Kind,
    /// Bytes per second of its link, each direction.
    pub(crate) rate_bytes_per_s: u64,
    /// One-way delay of its link.
    pub(crate) delay: Duration,
    /// From which its identity is made.
    pub(crate) identity_seed: [u8; 32],
}

impl PeerPlan {
    /// Its link.
    pub(crate) fn link(&self) -> LinkShape {
        LinkShape { rate_bytes_per_s: Some(self.rate_bytes_per_s), delay: self.delay }
    }
}

/// Draws `peers` peers of which `hostile` (at most `peers`) are hostile, in a drawn order.
pub(crate) fn draw(seed: u64, peers: usize, hostile: usize) -> Vec<PeerPlan> {
    let mut dice = Dice::new(seed, 0);
    let hostile = hostile.min(peers);
    let honest = peers - hostile;
    let mut drawn: Vec<(Kind, f64, f64)> = Vec::with_capacity(peers);
    for index in 0..honest {
        let weight = match index {
            0 => 1.0,
            1 => SPREAD,
            _ => SPREAD.powf(((index - 2) as f64 + dice.unit()) / (honest - 2) as f64),
        };
        drawn.push((Kind::Honest, weight, dice.log_uniform(DELAY.0, DELAY.1)));
    }
    let first = dice.below(HOSTILE.len());
    for index in 0..hostile {
        let kind = HOSTILE[(first + index) % HOSTILE.len()];
        let weight = dice.log_uniform(SPREAD.powf(0.75), SPREAD);
        drawn.push((kind, weight, dice.log_uniform(DELAY_ATTRACTIVE.0, DELAY_ATTRACTIVE.1)));
    }
    let total = dice.uniform(TOTAL_OF_EIGHT.0, TOTAL_OF_EIGHT.1) * peers as f64 / 8.0;
    let unit = total.min(TOTAL_MAX) / drawn.iter().map(|(_, weight, _)| weight).sum::<f64>();
    dice.shuffle(&mut drawn);
    drawn
        .into_iter()
        .map(|(kind, weight, delay)| PeerPlan {
            kind,
            rate_bytes_per_s: (weight * unit).round() as u64,
            delay: Duration::from_secs_f64(delay),
            identity_seed: dice.bytes(),
        })
        .collect()
}

/// The client's identity, apart from every peer's.
pub(crate) fn client_identity(seed: u64) -> [u8; 32] {
    Dice::new(seed, 1).bytes()
}

/// The generator of the file's bytes.
pub(crate) fn file_bytes(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut dice = Dice::new(seed, 2);
    move |buffer| dice.0.fill_bytes(buffer)
}

/// A seeded generator; streams of one seed are independent.
struct Dice(ChaCha8Rng);

impl Dice {
    fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + self.unit() * (high - low)
    }

    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// In [0, bound); `bound` is small, so the modulo's bias is nothing.
    fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound.max(1) as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_world_and_another_seed_another() {
        assert_eq!(draw(7, 8, 2), draw(7, 8, 2));
        assert_ne!(draw(7, 8, 2), draw(8, 8, 2));
    }

    #[test]
    fn every_world_has_the_promised_shape() {
        for seed in 0..200 {
            let world = draw(seed, 8, 3);
            let rates = |hostile: bool| {
                world.iter().filter(move |p| p.kind.is_hostile() == hostile).map(|p| p.rate_bytes_per_s as f64)
            };
            let total: f64 = world.iter().map(|p| p.rate_bytes_per_s as f64).sum();
            assert!((109e6..=131e6).contains(&total), "seed {seed}: {total}");
            let (low, high) = rates(false).fold((f64::MAX, 0.0f64), |(l, h), r| (l.min(r), h.max(r)));
            assert!(high / low > 10.0, "seed {seed}: {low} to {high}");
            assert!(rates(true).all(|rate| rate > high / 3.0), "seed {seed}: a hostile peer looks slow");
            for kind in HOSTILE {
                assert!(world.iter().any(|p| p.kind == kind), "seed {seed} lacks {kind:?}");
            }
        }
    }

    #[test]
    fn odd_counts_are_drawn_too() {
        assert_eq!(draw(1, 1, 0).len(), 1);
        assert!(draw(1, 3, 3).iter().all(|p| p.kind.is_hostile()));
        let total: u64 = draw(1, 64, 10).iter().map(|p| p.rate_bytes_per_s).sum();
        assert!(total <= TOTAL_MAX as u64 + 64);
    }
}
