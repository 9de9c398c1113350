//! Random draws of policies: named streams of the run's seed, so that one policy's draws never shift another's.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// One named stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream `name` of `seed`.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // FNV-1a; any fixed map from names to numbers does.
        let number = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        rng.set_stream(number);
        Stream(rng)
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Below `bound`, evenly up to a bias of 2⁻³²; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_and_name_and_by_nothing_else() {
        let first = |seed, name| Stream::new(seed, name).bits();
        assert_eq!(first(1, "p2c"), first(1, "p2c"));
        assert_ne!(first(1, "p2c"), first(2, "p2c"));
        assert_ne!(first(1, "p2c"), first(1, "haskell"));
        assert_eq!(Stream::new(0, "").below(0), 0);
        let mut stream = Stream::new(3, "x");
        assert!((0..1_000).all(|_| stream.below(3) < 3));
    }
}
