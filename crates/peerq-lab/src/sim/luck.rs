//! The luck of single requests: a pure function of the seed, the peer, the content, and how often that peer was asked for it before (LAB-1).
//!
//! The one idea: luck is looked up, not used up. Two policies that ask the same peer for the same content meet the same luck, in whatever order they send, and a clairvoyant
//! knows it without counting along.
//!
//! The words of a key are absorbed one by one by the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, with Stafford's 13th constants): a bijection of 64 bits in
//! which every bit of a word changes every bit of the result with about even odds, and whose outputs over a counter pass BigCrush. So neighbouring keys give units that are
//! independent for every purpose of a world. It is no cipher and need not be one: nobody in a world sees the key. It costs a nanosecond a word.

use super::random::{hash, unit};
use crate::model::Serve;

/// What is drawn for one request.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Behaviour = 1,
    IsCold = 2,
    ColdTime = 3,
}

/// One peer's luck under one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLuck(u64);

/// The luck of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Luck(u64);

impl PeerLuck {
    /// The luck of the `place`-th peer of the group `name` under `seed`.
    pub fn new(seed: u64, name: &str, place: u32) -> Self {
        PeerLuck(absorb(absorb(seed, hash(name)), place.into()))
    }

    /// The luck of the `nth` request, from 0, that the client sends to this peer for `content`.
    pub fn of(self, content: u64, nth: u32) -> Luck {
        Luck(absorb(absorb(self.0, content), nth.into()))
    }
}

impl Luck {
    /// Whether what a peer does to this share of requests befalls this one.
    pub fn befalls(self, share: f64) -> bool {
        self.unit(Purpose::Behaviour) < share
    }

    /// From its arrival to the first byte leaving, seconds.
    pub fn serve_s(self, serve: &Serve) -> f64 {
        if self.unit(Purpose::IsCold) < serve.cold_share {
            -serve.cold_ms * 1e-3 * libm::log(1.0 - self.unit(Purpose::ColdTime))
        } else {
            serve.hot_ms * 1e-3
        }
    }

    /// From 0 up to, but without, 1.
    fn unit(self, purpose: Purpose) -> f64 {
        unit(absorb(self.0, purpose as u64))
    }
}

fn absorb(state: u64, word: u64) -> u64 {
    // The odd constant keeps zeros from staying zero.
    let mut mixed = (state ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luck_differs_by_every_word_of_its_key_and_repeats_otherwise() {
        let luck = |seed, name, place, content, nth| PeerLuck::new(seed, name, place).of(content, nth);
        let base = luck(1, "fast", 2, 3, 4);
        assert_eq!(base, luck(1, "fast", 2, 3, 4));
        let others = [
            luck(2, "fast", 2, 3, 4),
            luck(1, "slow", 2, 3, 4),
            luck(1, "fast", 3, 3, 4),
            luck(1, "fast", 2, 4, 4),
            luck(1, "fast", 2, 3, 5),
            luck(1, "fast", 2, 4, 3),
        ];
        assert!(others.iter().all(|other| *other != base));
    }

    /// Chi-square over ten bins of pairs of neighbours, along each word that counts up.
    #[test]
    fn neighbours_are_even_and_independent() {
        let of_peer = |place, content, nth| PeerLuck::new(7, "peer", place).of(content, nth).unit(Purpose::Behaviour);
        let along: [&dyn Fn(u32) -> f64; 3] =
            [&|k| of_peer(k, 0, 0), &|k| of_peer(0, k.into(), 0), &|k| of_peer(0, 0, k)];
        for (word, unit) in along.iter().enumerate() {
            let mut bins = [0.0_f64; 100];
            for k in 0..20_000 {
                bins[(unit(k) * 10.0) as usize * 10 + (unit(k + 1) * 10.0) as usize] += 1.0;
            }
            let chi2: f64 = bins.iter().map(|count| (count - 200.0).powi(2) / 200.0).sum();
            // 99 degrees of freedom: 149 is exceeded once in a thousand.
            assert!(chi2 < 149.0, "word {word}: {chi2}");
        }
    }

    #[test]
    fn shares_and_serve_times_are_those_asked_for() {
        let all = || (0..40_000).map(|nth| PeerLuck::new(1, "peer", 0).of(0, nth));
        let share = all().filter(|luck| luck.befalls(0.3)).count() as f64 / 40_000.0;
        assert!((share - 0.3).abs() < 0.01, "{share}");
        assert!(all().all(|luck| luck.befalls(1.0) && !luck.befalls(0.0)));
        let serve = Serve { hot_ms: 10.0, cold_ms: 100.0, cold_share: 0.5 };
        let mean_s = all().map(|luck| luck.serve_s(&serve)).sum::<f64>() / 40_000.0;
        assert!((mean_s - 0.055).abs() < 0.002, "{mean_s}");
    }
}
