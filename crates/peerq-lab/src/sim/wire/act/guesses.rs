//! Guesses echoes: single-byte SDUs, each with a random echo, because a cookie of 16 bits that is guessed right reads as a round trip shorter than the path
//! (MEAS-3). Scenario B8.
//!
//! Only the beginning of each reply is cut into single bytes: a byte to an SDU costs the peer eight of headers, and more guesses would tell nothing else.

use super::SDU_BYTES;
use crate::sim::random::Stream;

/// SDUs of a single byte at the beginning of each reply: four of the blocks in which guesses are counted.
const SINGLE_BYTES: u64 = 4_000;

#[derive(Clone, Debug)]
pub(crate) struct Guesses {
    stream: Stream,
}

impl Guesses {
    pub(super) fn new(stream: Stream) -> Self {
        Guesses { stream }
    }

    pub(super) fn echo(&mut self) -> u16 {
        // Never 0, which is none.
        1 + (self.stream.unit() * 65_535.0) as u16
    }
}

/// Payload of a reply's nth SDU.
pub(super) fn payload(nth: u64) -> u32 {
    if nth < SINGLE_BYTES { 1 } else { SDU_BYTES }
}
