//! Seeded randomness: the host gives one seed, and everything random is a mix of it with what is decided.
//!
//! The mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014). Being a pure function of its input it needs no
//! state, gives the same answer on every platform, and makes a peer's place among equals unpredictable to the peer.

/// The host's seed for every random choice of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// A seed; the host takes it from its random source, a test from a constant.
    pub const fn new(value: u64) -> Self {
        Seed(value)
    }

    /// A number that depends on the seed and `input` alone.
    pub(crate) const fn mix(self, input: u64) -> u64 {
        let mut z = self.0.wrapping_add(input.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_outputs_are_those_of_splitmix64() {
        // Reference sequence of SplitMix64 for seed 0.
        assert_eq!(Seed::new(0).mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(Seed::new(0).mix(1), 0x6E78_9E6A_A1B9_65F4);
    }
}
