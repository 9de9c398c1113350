//! Minting cookies: 16 bits that a peer cannot foretell (MEAS-1).
//!
//! An echo proves that the peer received what carried the cookie, so a cookie that can be computed from earlier ones proves nothing.
//! Sixteen bits are few: a guess hits one of N outstanding with probability N/65,535. Guesses are therefore counted as well
//! ([`guessing`](super::guessing), MEAS-3).

use core::fmt;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The secret that a connection's cookies are drawn from: 32 bytes from the host's cryptographic source, fresh for each connection.
///
/// Two connections with one seed send the same cookies, which lets one peer foretell the other's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CookieSeed([u8; 32]);

impl CookieSeed {
    /// A seed from random bytes; a test takes them from a constant.
    pub const fn new(bytes: [u8; 32]) -> Self {
        CookieSeed(bytes)
    }

    /// The seed of one of several series that must not resemble each other.
    pub(super) fn series(self, number: u16) -> Self {
        let mut rng = ChaCha8Rng::from_seed(self.0);
        rng.set_stream(u64::from(number) + 1);
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        CookieSeed(bytes)
    }
}

impl fmt::Debug for CookieSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieSeed(secret)")
    }
}

/// The generator of one connection. Not to be cloned: two would send the same cookies.
#[derive(Debug)]
pub(super) struct Mint {
    rng: ChaCha8Rng,
    /// The other half of the word last drawn; 0 where it is used up.
    spare: u16,
}

impl Mint {
    pub(super) fn new(seed: CookieSeed) -> Self {
        Mint { rng: ChaCha8Rng::from_seed(seed.0), spare: 0 }
    }

    /// A cookie, never 0, for which `is_taken` is false. Ends because fewer than one value in fifteen can be taken.
    #[inline]
    pub(super) fn draw(&mut self, is_taken: impl Fn(u16) -> bool) -> u16 {
        loop {
            let cookie = self.half_word();
            if cookie != 0 && !is_taken(cookie) {
                return cookie;
            }
        }
    }

    fn half_word(&mut self) -> u16 {
        match core::mem::take(&mut self.spare) {
            0 => {
                let word = self.rng.next_u32();
                self.spare = (word >> 16) as u16;
                word as u16
            }
            spare => spare,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_never_zero_nor_taken_and_cover_the_space() {
        let mut mint = Mint::new(CookieSeed::new([7; 32]));
        let mut seen = std::vec![false; 65_536];
        for _ in 0..1_000_000 {
            let cookie = mint.draw(|cookie| cookie < 4096);
            assert!(cookie >= 4096);
            seen[usize::from(cookie)] = true;
        }
        assert!(seen.iter().filter(|seen| **seen).count() > 61_000);
    }

    #[test]
    fn series_of_one_seed_differ_and_the_seed_is_not_printed() {
        let seed = CookieSeed::new([0xAB; 32]);
        assert_ne!(seed.series(1), seed.series(2));
        assert_eq!(std::format!("{seed:?}"), "CookieSeed(secret)");
    }
}
