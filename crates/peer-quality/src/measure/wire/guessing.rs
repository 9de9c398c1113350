//! Echo guessing: echoes of cookies that are not outstanding, and how many are too many (MEAS-3).
//!
//! An honest peer echoes what it received last, so its echoes are outstanding, or repeat the one just settled, or name the one that was just forgotten.
//! Anything else is a guess. A peer that cuts a reply into one-byte SDUs can guess 65,535 times for 590 kB, so guesses are counted from the first.

/// SDUs in one block of counting.
/// Longer blocks find a guesser later; shorter ones let chance decide.
pub const BLOCK_SDUS: u32 = 1000;

/// The most unknown echoes in one block that are not reported.
/// Too high buys a guesser tries: N outstanding cookies give N/65,535 for each. Too low accuses peers that lag behind [`MAX_OUTSTANDING`]
/// cookies. Unmeasured heuristic.
///
/// [`MAX_OUTSTANDING`]: super::MAX_OUTSTANDING
pub const UNKNOWN_MAX: u32 = 8;

/// Counters of the running block, and the verdict on the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guessing {
    sdus: u32,
    unknown: u32,
    was_reported: bool,
}

impl Guessing {
    /// Counts one SDU; true when this one makes the peer a guesser and the block before did not.
    pub(super) fn count(&mut self, is_unknown: bool) -> bool {
        if self.sdus == BLOCK_SDUS {
            *self = Guessing { was_reported: self.unknown > UNKNOWN_MAX, ..Guessing::default() };
        }
        self.sdus += 1;
        if !is_unknown {
            return false;
        }
        self.unknown += 1;
        self.unknown == UNKNOWN_MAX + 1 && !self.was_reported
    }

    /// Whether the running block or the one before it held too many unknown echoes.
    pub(super) fn is_active(&self) -> bool {
        self.was_reported || self.unknown > UNKNOWN_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDU at which a peer is reported that guesses once in `every`.
    fn reported_at(every: u32) -> Option<u32> {
        let mut guessing = Guessing::default();
        (1..=20_000).find(|sdu| guessing.count(sdu % every == 0))
    }

    #[test]
    fn more_than_eight_in_a_thousand_are_reported_within_two_thousand() {
        assert_eq!(reported_at(1), Some(9));
        assert!(reported_at(111).is_some_and(|sdu| sdu <= 2 * BLOCK_SDUS));
        assert_eq!(reported_at(125), None);
    }

    #[test]
    fn a_report_lapses_after_a_clean_block() {
        let mut guessing = Guessing::default();
        for _ in 0..9 {
            guessing.count(true);
        }
        for _ in 0..2 * BLOCK_SDUS {
            assert!(!guessing.count(false), "reported once");
        }
        assert!(!guessing.is_active());
    }
}
