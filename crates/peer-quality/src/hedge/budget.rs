//! What may be wasted on duplicates and on what is given up half-way (HEDGE-6): a share of the bytes that arrived, saved up to a bound.

use crate::units::Bytes;

/// Share of delivered bytes that may be wasted. Higher feeds a storm when everybody slows down (A11), lower leaves deadlines to luck.
const SHARE: f64 = 0.05;
/// Pieces that a long good time saves up. More is a burst when a good time ends, fewer is less than what hostile peers can hold up at once. Unmeasured heuristic.
const SAVED_PIECES: f64 = 32.0;

/// See the module documentation. A new one has saved up all it can: the first work meets strangers only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    saved: f64,
    has_begun: bool,
}

impl Budget {
    /// Bytes arrived.
    pub fn earn(&mut self, bytes: Bytes) {
        self.saved += SHARE * bytes.as_f64();
    }

    /// Whether `cost` bytes of a piece of `size` may be wasted; they are paid for then. Where there is no need, half is kept for a time of need.
    pub fn spend(&mut self, cost: Bytes, size: Bytes, in_need: bool) -> bool {
        let cost = cost.as_f64();
        let most = SAVED_PIECES * size.as_f64().max(cost).max(1.0);
        if !self.has_begun {
            self.has_begun = true;
            self.saved = most;
        }
        self.saved = self.saved.min(most);
        let kept = if in_need { 0.0 } else { most / 2.0 };
        let affords = self.saved >= cost + kept;
        if affords {
            self.saved -= cost;
        }
        affords
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_of_what_arrives_may_be_asked_for_twice() {
        let piece = Bytes::new(1000);
        let mut budget = Budget::default();
        assert_eq!((0..100).filter(|_| budget.spend(piece, piece, true)).count(), 32, "strangers come first");
        let twice = (0..10_000).filter(|_| {
            budget.earn(piece);
            budget.spend(piece, piece, true)
        });
        assert_eq!(twice.count(), 500);
    }

    #[test]
    fn half_is_kept_for_need() {
        let mut budget = Budget::default();
        let mut spent =
            |in_need| (0..100).filter(|_| budget.spend(Bytes::new(1000), Bytes::new(1000), in_need)).count();
        assert_eq!((spent(false), spent(true)), (16, 16));
    }

    #[test]
    fn a_long_good_time_saves_up_a_few_pieces_only() {
        let mut budget = Budget { has_begun: true, ..Budget::default() };
        assert!(!budget.spend(Bytes::new(1), Bytes::ZERO, true));
        (0..100).for_each(|_| budget.earn(Bytes::new(u64::MAX)));
        assert_eq!((0..100).filter(|_| budget.spend(Bytes::new(1000), Bytes::new(1000), true)).count(), 32);
        assert!(!budget.spend(Bytes::new(u64::MAX), Bytes::new(1), true), "and no huge one");
    }
}
