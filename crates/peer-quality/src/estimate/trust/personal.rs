//! A peer's own long-run rate, and what of it is its own (EST-5, EST-6): the prior that its samples are shrunk towards.
//!
//! μ ← μ + min(1, η·cov)·(raw − μ), from the population's rate on. The sum is kept in two parts, the peer's own mean and its share in μ: μ = share·own +
//! (1 − share)·population is the same number, and the population in it is today's instead of that of the first burst. Fading towards the population
//! then is nothing but a smaller share. Only raw rates enter, never the shrunk output.

use crate::estimate::trust::coverage_half::TYPICAL_TRANSFER;
use crate::estimate::trust::spread::RateVote;
use crate::estimate::trust::staleness::left_of_person;
use crate::units::{Slowness, Time};

/// The step per typical transfer of coverage. Higher follows a moment's rate, lower takes dozens of transfers to know a peer. Unmeasured heuristic.
const STEP: f64 = 0.1;

const _: () = assert!(STEP > 0.0 && STEP < 1.0);

/// See the module documentation. A peer without history is all population.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Personal {
    own: f64,
    share: f64,
    at: Time,
}

impl Personal {
    /// Folds in a burst of `coverage` bytes; `kept` is the share of the past that time does not touch (EST-7).
    pub fn observe(&mut self, raw: Slowness, coverage: f64, kept: f64, now: Time) {
        // The past fades before the new is added, or one crumb after a long silence would bring it all back.
        let share = self.share(kept, now);
        let step = (STEP * coverage.max(0.0) / TYPICAL_TRANSFER).min(1.0);
        self.share = share + step * (1.0 - share);
        if self.share > 0.0 {
            self.own += step / self.share * (raw.secs_per_byte() - self.own);
        }
        self.at = now;
    }

    /// How much of the rate is the peer's own at `now`, in 0..=1.
    pub fn share(&self, kept: f64, now: Time) -> f64 {
        self.share * left_of_person(now.since(self.at), kept)
    }

    /// The rate to expect of it at `now`, given that of the population.
    pub fn rate(&self, population: Slowness, kept: f64, now: Time) -> Slowness {
        let share = self.share(kept, now);
        Slowness::from_secs_per_byte(share * self.own + (1.0 - share) * population.secs_per_byte())
    }

    /// The peer's own mean, where it has any.
    pub fn own(&self) -> Option<Slowness> {
        (self.share > 0.0).then(|| Slowness::from_secs_per_byte(self.own))
    }

    /// Its vote on what peers are like: its own mean, by its share as of the last burst.
    pub fn vote(&self) -> Option<RateVote> {
        self.own().map(|own| (libm::log(own.secs_per_byte()), self.share))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Span;

    const POPULATION: f64 = 1e-6;

    fn slowness(secs_per_byte: f64) -> Slowness {
        Slowness::from_secs_per_byte(secs_per_byte)
    }

    fn rate(personal: &Personal, kept: f64, now: Time) -> f64 {
        personal.rate(slowness(POPULATION), kept, now).secs_per_byte()
    }

    #[test]
    fn it_is_the_ewma_of_the_text_from_the_population_on() {
        let (mut personal, mut mu) = (Personal::default(), POPULATION);
        for (raw, coverage) in [(2e-7, 50e3), (9e-7, 512e3), (1e-8, 10e6), (4e-6, 1.0), (5e-7, 1e6)] {
            personal.observe(slowness(raw), coverage, 0.0, Time::ZERO);
            mu += (STEP * coverage / TYPICAL_TRANSFER).min(1.0) * (raw - mu);
            assert!((rate(&personal, 0.0, Time::ZERO) / mu - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn nobody_s_rate_is_everybody_s() {
        assert_eq!(rate(&Personal::default(), 1.0, Time::MAX), POPULATION);
        assert_eq!(Personal::default().vote(), None);
    }

    #[test]
    fn a_huge_burst_goes_to_its_rate_and_not_past_it() {
        let mut personal = Personal::default();
        personal.observe(slowness(1e-8), f64::MAX, 0.0, Time::ZERO);
        assert!((rate(&personal, 0.0, Time::ZERO) - 1e-8).abs() < 1e-15);
    }

    #[test]
    fn silence_leads_back_to_the_population_as_far_as_nothing_is_kept() {
        let mut personal = Personal::default();
        personal.observe(slowness(1e-8), 1e9, 0.0, Time::ZERO);
        for (kept, rests_at) in [(0.0, 1e-6), (0.5, 0.5 * 1e-8 + 0.5 * 1e-6), (1.0, 1e-8)] {
            assert!((rate(&personal, kept, Time::MAX) / rests_at - 1.0).abs() < 1e-9, "kept {kept}");
        }
        let one_life = Time::ZERO + Span::from_secs(1_000);
        let d = (-1.0_f64).exp();
        assert!((rate(&personal, 0.0, one_life) / (d * 1e-8 + (1.0 - d) * 1e-6) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_crumb_after_a_silence_brings_nothing_back() {
        let mut personal = Personal::default();
        personal.observe(slowness(1e-8), 1e9, 0.0, Time::ZERO);
        let later = Time::from_secs(10_000);
        personal.observe(slowness(1e-8), 1_000.0, 0.0, later);
        assert!(rate(&personal, 0.0, later) > 0.99 * POPULATION);
    }

    proptest! {
        #[test]
        fn it_stays_within_what_it_saw(seen in prop::collection::vec((1e-12..1.0_f64, any::<f64>(), any::<u64>()), 1..40), kept in 0.0..=1.0_f64, at in any::<u64>()) {
            let mut personal = Personal::default();
            for &(raw, coverage, at) in &seen {
                personal.observe(slowness(raw), coverage, kept, Time::from_micros(at));
            }
            let all = seen.iter().map(|one| one.0).chain([POPULATION]);
            let (least, most) = (all.clone().fold(f64::MAX, f64::min), all.fold(0.0, f64::max));
            let rate = rate(&personal, kept, Time::from_micros(at));
            prop_assert!(rate >= least * (1.0 - 1e-9) && rate <= most * (1.0 + 1e-9), "{rate}");
        }
    }
}
