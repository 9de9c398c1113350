//! Retention ρ (EST-7): how much of its own rate a peer keeps across a silence. Slow to earn, fast to lose.
//!
//! A fixed share would let whoever warmed its rate keep that share of it over an idle gap. So it is earned: a small step per fetch that came on time, and gone with
//! any miss, whatever the cause; a wrong slash only costs the way back.

/// The step per fetch on time: two dozen reach the top. Larger is cheap to farm, smaller makes honest peers start over each quiet hour. Unmeasured heuristic.
const STEP: f32 = 1.0 / 32.0;
/// The most that is kept. At 1 nothing would ever fade. Unmeasured heuristic.
const MOST: f32 = 0.75;
/// A fetch is on time within this multiple of its forecast at p95: at 1, one honest fetch in twenty would be a miss; far above, nothing is. Unmeasured heuristic.
pub const ON_TIME_TAILS: f64 = 2.0;

const _: () = assert!(MOST < 1.0 && STEP > 0.0 && STEP < MOST);
const _: () = assert!(ON_TIME_TAILS >= 1.0);

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Retention(f32);

impl Retention {
    /// A fetch came on time.
    pub fn on_time(&mut self) {
        self.0 = (self.0 + STEP).min(MOST);
    }

    /// A fetch came late, broke off or failed.
    pub fn missed(&mut self) {
        self.0 = 0.0;
    }

    /// The share kept, in 0..1.
    pub fn kept(&self) -> f64 {
        f64::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_earned_by_steps_up_to_less_than_all() {
        let mut retention = Retention::default();
        assert_eq!(retention.kept(), 0.0);
        retention.on_time();
        assert_eq!(retention.kept(), f64::from(STEP));
        (0..10_000).for_each(|_| retention.on_time());
        assert_eq!(retention.kept(), f64::from(MOST));
    }

    #[test]
    fn one_miss_takes_it_all() {
        let mut retention = Retention(MOST);
        retention.missed();
        assert_eq!(retention.kept(), 0.0);
    }
}
