//! Reliability: the share of requests that a peer answers, with recency (EST-9, spec §3.4).
//!
//! Each end moves the share by a bounded step, so a single loss never costs a record; the step grows while ends disagree with the share and shrinks
//! while they agree, so the memory is short when results swing and long when they are steady.

use crate::units::Span;

/// The step of a long, steady record: a memory of 24 ends. Unmeasured heuristic.
const MIN_STEP: f32 = 1.0 / 24.0;
/// The largest step after the first few ends: three in a row of one kind move the share past the middle. Unmeasured heuristic.
const MAX_STEP: f32 = 0.25;
/// The step grows by this factor while ends contradict the share, and shrinks by the other while they agree: four contradictions in a row reach the
/// largest step, some twenty agreements the smallest. Unmeasured heuristic.
const STEP_GROWTH: f32 = 1.5;
const STEP_DECAY: f32 = 0.92;
/// A failed verification takes away this share of what is left, on top of the ordinary step (spec §3.4: sharper than a timeout).
const VERIFICATION_FACTOR: f32 = 0.5;

/// Share of the latest failure in the mean time that failures take. Unmeasured heuristic.
const LOST_STEP: f32 = 0.5;
/// No host waits longer for a request: what a clock that jumped says is not believed.
const LOST_MAX: Span = Span::from_secs(300);
/// What broke off moves the share by this much of the step of a failure: its bytes were of use to a host that can go on from there (C40). At 1 it is a failure, at 0 a peer
/// that cuts every request off passes for a good one.
const BROKEN_WEIGHT: f32 = 0.5;

/// The share of requests that end well; see the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reliability {
    share: f32,
    step: f32,
    ends: u16,
    /// Since the last good end: two for a failure, one for what broke off.
    misses: u16,
    /// Mean seconds that a request took which did not end well.
    lost_s: f32,
}

/// How an end counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was answered.
    Kept,
    /// It broke off after some of it: half a failure.
    Broken,
    /// It failed.
    Failed,
    /// It brought bytes that contradict their name.
    Refuted,
}

impl Reliability {
    /// Counts one end, of a request that took `elapsed`.
    #[inline]
    pub fn observe(&mut self, verdict: Verdict, elapsed: Span) {
        if verdict != Verdict::Kept {
            let lost_s = elapsed.min(LOST_MAX).as_secs_f64() as f32;
            self.lost_s = if self.lost_s == 0.0 { lost_s } else { self.lost_s + LOST_STEP * (lost_s - self.lost_s) };
        }
        let (outcome, weight) = match verdict {
            Verdict::Kept => (1.0, 1.0),
            Verdict::Broken => (0.0, BROKEN_WEIGHT),
            Verdict::Failed | Verdict::Refuted => (0.0, 1.0),
        };
        if self.ends == 0 {
            self.step = MAX_STEP;
            self.share = 1.0 - weight * (1.0 - outcome);
        } else {
            let surprise = (outcome - self.share).abs();
            let change = if surprise > 0.5 { STEP_GROWTH } else { STEP_DECAY };
            self.step = (self.step * change).clamp(MIN_STEP, MAX_STEP);
            let step = self.step.max(1.0 / (f32::from(self.ends.min(64)) + 1.0));
            self.share += weight * step.min(0.5) * (outcome - self.share);
        }
        if verdict == Verdict::Refuted {
            self.share *= VERIFICATION_FACTOR;
        }
        self.ends = self.ends.saturating_add(1);
        self.misses = match verdict {
            Verdict::Kept => 0,
            Verdict::Broken => self.misses.saturating_add(1),
            Verdict::Failed | Verdict::Refuted => self.misses.saturating_add(2),
        };
    }

    /// The share in 0..=1; none before the first end (scenario C46: nothing is invented).
    pub fn share(&self) -> Option<f64> {
        (self.ends > 0).then_some(f64::from(self.share))
    }

    /// The share that a decision may rest on: shrunk towards 1 by one imagined good end, so that one loss is not a verdict.
    pub fn cautious(&self) -> f64 {
        let ends = f64::from(self.ends.min(24));
        (f64::from(self.share) * ends + 1.0) / (ends + 1.0)
    }

    /// Seconds that a request takes which does not end well; 0 where none was seen.
    pub fn lost_s(&self) -> f32 {
        self.lost_s
    }

    /// Failures since the last good end; what broke off is half of one.
    pub fn consecutive_failures(&self) -> u16 {
        self.misses / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(verdicts: &[(Verdict, usize)]) -> Reliability {
        let mut reliability = Reliability::default();
        for &(verdict, times) in verdicts {
            for _ in 0..times {
                reliability.observe(verdict, Span::from_secs(1));
            }
        }
        reliability
    }

    #[test]
    fn nothing_is_known_before_the_first_end() {
        assert_eq!(Reliability::default().share(), None);
        assert_eq!(Reliability::default().cautious(), 1.0);
    }

    #[test]
    fn one_loss_costs_a_bounded_step() {
        let share = after(&[(Verdict::Kept, 100), (Verdict::Failed, 1)]).share().unwrap();
        assert!((0.7..0.96).contains(&share), "{share}");
    }

    #[test]
    fn a_peer_that_starts_failing_falls_and_one_that_recovers_rises() {
        let failing = after(&[(Verdict::Kept, 100), (Verdict::Failed, 8)]);
        assert!(failing.share().unwrap() < 0.25, "{failing:?}");
        let recovered = after(&[(Verdict::Kept, 100), (Verdict::Failed, 8), (Verdict::Kept, 12)]);
        assert!(recovered.share().unwrap() > 0.8, "{recovered:?}");
    }

    #[test]
    fn severity_is_ordered() {
        let share = |verdict| after(&[(Verdict::Kept, 20), (verdict, 1)]).share().unwrap();
        let shares = [Verdict::Kept, Verdict::Broken, Verdict::Failed, Verdict::Refuted].map(share);
        assert!(shares.windows(2).all(|pair| pair[0] > pair[1]), "{shares:?}");
    }

    #[test]
    fn counters_saturate() {
        let reliability = after(&[(Verdict::Failed, 70_000)]);
        assert_eq!(reliability.consecutive_failures(), u16::MAX / 2);
        assert!(reliability.share().unwrap() >= 0.0);
    }
}
