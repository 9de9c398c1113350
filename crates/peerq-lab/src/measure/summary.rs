//! All measures of one policy in one world at once.

use super::interval::{Interval, bootstrap};
use super::{completion, credit, demotion, fairness, shares};
use crate::model::RunResult;

/// What the runs of one policy in one world say, each with its interval over seeds. None is "nothing to say".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    /// Median completion, seconds.
    pub p50_s: Option<Interval>,
    /// 95th percentile of completion, seconds.
    pub p95_s: Option<Interval>,
    /// 99th percentile of completion, seconds.
    pub p99_s: Option<Interval>,
    /// Share of deadlines missed.
    pub deadline_miss: Option<Interval>,
    /// Share of bytes that came from hostile peers.
    pub hostile_share: Option<Interval>,
    /// Share of bytes of no use.
    pub wasted_share: Option<Interval>,
    /// Largest credited over true rate.
    pub credited_largest: Option<Interval>,
    /// Typical credited over true rate.
    pub credited_typical: Option<Interval>,
    /// Median seconds until who deserves it is demoted.
    pub time_to_demote_s: Option<Interval>,
    /// Honest peers demoted, per run.
    pub false_demotions: Option<Interval>,
    /// Jain's index of the honest peers' use.
    pub fairness: Option<Interval>,
    /// Panics caught, over all runs.
    pub panics: u32,
}

impl Measures {
    /// The measures of `runs`; `seed` draws the intervals.
    pub fn of(runs: &[RunResult], seed: u64) -> Measures {
        let with = |measure: &dyn Fn(&[&RunResult]) -> Option<f64>| bootstrap(runs, seed, measure);
        let completion = |share| with(&|runs: &[&RunResult]| completion::completion_s(runs.iter().copied(), share));
        Measures {
            p50_s: completion(0.5),
            p95_s: completion(0.95),
            p99_s: completion(0.99),
            deadline_miss: with(&|runs| completion::deadline_miss(runs.iter().copied())),
            hostile_share: with(&|runs| shares::hostile_share(runs.iter().copied())),
            wasted_share: with(&|runs| shares::wasted_share(runs.iter().copied())),
            credited_largest: with(&|runs| credit::largest(runs.iter().copied())),
            credited_typical: with(&|runs| credit::typical(runs.iter().copied())),
            time_to_demote_s: with(&|runs| demotion::time_to_demote_s(runs.iter().copied(), 0.5)),
            false_demotions: with(&|runs| demotion::false_demotions(runs.iter().copied())),
            fairness: with(&|runs| fairness::fairness(runs.iter().copied())),
            panics: runs.iter().map(|run| run.panics).fold(0, u32::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{peer, run_of, run_with};
    use crate::model::Kind;

    #[test]
    fn every_value_lies_in_its_interval_and_repeats() {
        let runs: Vec<RunResult> = (0..20)
            .map(|seed| {
                let length = 1.0 + f64::from(seed % 7);
                let mut run = run_of(&[(0.0, Some(length), Some(5.0)), (1.0, Some(2.0 + length), Some(9.0))]);
                run.peers = run_with([
                    peer("a", Kind::Honest).bytes(1_000, 10).rates(Some(2e6), 1e6).asked(3),
                    peer("b", Kind::Hostile).bytes(u64::from(seed as u32), 5).asked(2).demoted(Some(length)),
                ])
                .peers;
                run.panics = 1;
                run
            })
            .collect();
        let measures = Measures::of(&runs, 11);
        assert_eq!(measures, Measures::of(&runs, 11));
        assert_eq!(measures.panics, 20);
        let all =
            [measures.p50_s, measures.p99_s, measures.hostile_share, measures.time_to_demote_s, measures.fairness];
        for interval in all {
            let Interval { value, low, high } = interval.unwrap();
            assert!(low <= value && value <= high, "{low} {value} {high}");
        }
        assert_eq!(measures.credited_largest.map(|one| one.value), Some(2.0));
    }

    #[test]
    fn no_runs_and_empty_runs_say_nothing() {
        assert_eq!(Measures::of(&[], 1), Measures::default());
        let empty = Measures::of(&[RunResult::default()], 1);
        assert_eq!(empty.p50_s, None);
        assert_eq!(empty.false_demotions.map(|one| one.value), Some(0.0));
    }
}
