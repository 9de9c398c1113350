//! The hash of a table's index: short keys, a secret of the host's, and nothing else.
//!
//! The one idea: identities are hashes of keys that anybody can make, so what decides their bucket has to be unknown to whoever makes them. Each pair of words is
//! mixed with two secret words by a multiplication whose halves are folded together, as in wyhash (Wang Yi 2019): a word shows in every bit of the result.

use core::hash::{BuildHasher, Hasher};

use crate::seed::Seed;

/// Tells the seed of the hash from the host's: the letters "keyed".
const OWN: u64 = 0x006b_6579_6564;

/// Builds the hash of one table from its host's seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed {
    secrets: [u64; 3],
}

impl Keyed {
    pub(crate) fn new(seed: Seed) -> Keyed {
        // A seed of its own, so that what else is drawn from the host's, and may show in answers, is not among the secrets.
        let own = Seed::new(seed.mix(OWN) ^ OWN);
        Keyed { secrets: [0, 1, 2].map(|nth| own.mix(nth)) }
    }
}

impl BuildHasher for Keyed {
    type Hasher = Mix;

    #[inline]
    fn build_hasher(&self) -> Mix {
        let [first, second, state] = self.secrets;
        Mix { first, second, state }
    }
}

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    first: u64,
    second: u64,
    state: u64,
}

impl Mix {
    #[inline]
    fn pair(&mut self, a: u64, b: u64) {
        let product = u128::from(a ^ self.first ^ self.state) * u128::from(b ^ self.second);
        // The state before takes part in both factors' stead where one of them is zero.
        self.state = (product as u64) ^ ((product >> 64) as u64) ^ self.state.rotate_left(23);
    }
}

impl Hasher for Mix {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|byte| pair[at + byte]));
            self.pair(word(0), word(8));
        }
        if !rest.is_empty() {
            let mut padded = [0; 16];
            padded[..rest.len()].copy_from_slice(rest);
            let (low, high) = padded.split_at(8);
            let word = |half: &[u8]| half.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.pair(word(low), word(high) ^ rest.len() as u64);
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.pair(value, 0);
    }

    /// Lengths and variants: as good as a word of their own, without a multiplication.
    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.state = self.state.rotate_left(7).wrapping_add(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let product = u128::from(self.state ^ self.first) * u128::from(self.second | 1);
        (product as u64) ^ ((product >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_bit_of_a_key_and_the_seed_show_in_the_hash() {
        let key = [7_u8; 32];
        let hash = |seed, key: &[u8; 32]| Keyed::new(Seed::new(seed)).hash_one(key);
        let usual = hash(1, &key);
        assert_ne!(usual, hash(2, &key));
        for bit in 0..256 {
            let mut other = key;
            other[bit / 8] ^= 1 << (bit % 8);
            let changed = (usual ^ hash(1, &other)).count_ones();
            assert!((12..=52).contains(&changed), "bit {bit}: {changed}");
        }
    }

    #[test]
    fn keys_that_differ_a_little_fill_the_buckets_evenly() {
        // The lower half is used: its low bits for the place, the rest to tell keys apart.
        for shift in [0, 25] {
            let mut counts = [0_u32; 128];
            for nth in 0..12_800_u64 {
                let mut key = [0; 32];
                key[24..].copy_from_slice(&nth.to_be_bytes());
                counts[(Keyed::new(Seed::new(3)).hash_one(key) >> shift) as usize % 128] += 1;
            }
            assert!(counts.iter().all(|count| (50..=160).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn short_keys_of_every_length_are_told_apart() {
        let hash = |key: &[u8]| {
            let mut mix = Keyed::new(Seed::new(0)).build_hasher();
            mix.write(key);
            mix.finish()
        };
        let zeros = [0; 40];
        let hashes: BTreeSet<u64> = (0..=40).map(|length| hash(&zeros[..length])).collect();
        assert!(hashes.len() >= 39, "a whole pair is not marked with its length: {}", hashes.len());
    }
}
