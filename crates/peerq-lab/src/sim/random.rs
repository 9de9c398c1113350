//! Named streams of random numbers (LAB-1).
//!
//! The one idea: every purpose of every peer has a stream of its own, derived from the run's seed and its names. So what one peer draws never depends on how
//! much another one drew, nor one policy's luck on what it asked before.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    source: ChaCha8Rng,
    /// The second of a pair of normal numbers.
    spare: Option<f64>,
}

impl Stream {
    /// The stream of `purpose` for the `index`-th bearer of `name` under `seed`.
    pub fn new(seed: u64, purpose: &str, name: &str, index: u64) -> Self {
        let mut key = [0u8; 32];
        let words = [seed, hash(purpose), hash(name), index];
        for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Stream { source: ChaCha8Rng::from_seed(key), spare: None }
    }

    /// From 0 up to, but without, 1.
    pub fn unit(&mut self) -> f64 {
        unit(self.source.next_u64())
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        // Certainties draw nothing, so that an act which a peer never does costs no luck.
        probability >= 1.0 || (probability > 0.0 && self.unit() < probability)
    }

    /// Uniformly between two bounds.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Logarithmically between two bounds above zero.
    pub fn between_log(&mut self, low: f64, high: f64) -> f64 {
        let unit = self.unit();
        if low == high { low } else { libm::exp(libm::log(low) + (libm::log(high) - libm::log(low)) * unit) }
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Log-normal with median 1.
    pub fn log_normal(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 { 1.0 } else { libm::exp(sigma * self.normal()) }
    }

    /// How often something of this probability does not happen before it does; saturates for what never happens.
    pub fn misses(&mut self, probability: f64) -> u64 {
        if probability >= 1.0 {
            return 0;
        }
        if probability <= 0.0 {
            return u64::MAX;
        }
        (libm::log(1.0 - self.unit()) / libm::log1p(-probability)) as u64
    }

    /// Standard normal, in pairs (Marsaglia's polar form of Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let factor = libm::sqrt(-2.0 * libm::log(square) / square);
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }
}

/// The upper 53 bits as a number from 0 up to, but without, 1.
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// FNV-1a, 64 bits: names become words of a key, nothing else.
pub(crate) fn hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_purpose_name_and_index_and_repeat_otherwise() {
        let first = |seed, purpose, name, index| Stream::new(seed, purpose, name, index).unit();
        let base = first(1, "loss", "fast", 0);
        assert_eq!(base, first(1, "loss", "fast", 0));
        for other in [first(2, "loss", "fast", 0), first(1, "jitter", "fast", 0), first(1, "loss", "slow", 0)] {
            assert_ne!(base, other);
        }
        assert_ne!(base, first(1, "loss", "fast", 1));
    }

    #[test]
    fn means_are_those_of_the_distributions() {
        let mut stream = Stream::new(7, "test", "means", 0);
        let mean = |draw: &mut dyn FnMut() -> f64| (0..40_000).map(|_| draw()).sum::<f64>() / 40_000.0;
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 0.1);
        assert!((mean(&mut || libm::log(stream.log_normal(0.5)))).abs() < 0.02);
        assert!((mean(&mut || stream.misses(0.01) as f64) - 99.0).abs() < 3.0);
    }
}
