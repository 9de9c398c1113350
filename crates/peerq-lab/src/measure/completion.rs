//! Completion times and deadlines.

use super::quantile::quantile;
use crate::model::{RequestResult, RunResult};

/// What a request that never ended counts as, seconds: twice the time without progress after which the client abandons one. A real completion may take longer, but never so
/// long that giving up would pay; and it is a number, so that quantiles, ratios and documents of results have one too.
pub const NEVER_S: f64 = 3600.0;

/// Seconds from a request's start to its end, [`NEVER_S`] if there was none.
pub fn time_s(request: &RequestResult) -> f64 {
    request.end_s.map_or(NEVER_S, |end_s| (end_s - request.start_s).max(0.0))
}

/// The [`time_s`] of each request, over all runs.
pub fn times_s<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Vec<f64> {
    runs.into_iter().flat_map(|run| run.requests.iter().map(time_s)).collect()
}

/// The `share` quantile of the completion times of all runs together; none where there are none.
pub fn completion_s<'a>(runs: impl IntoIterator<Item = &'a RunResult>, share: f64) -> Option<f64> {
    quantile(&times_s(runs), share)
}

/// Share of requests with a deadline that ended after it or never; an end on the deadline is in time.
pub fn deadline_miss<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    let (mut missed, mut all) = (0_u64, 0_u64);
    for request in runs.into_iter().flat_map(|run| &run.requests) {
        if let Some(deadline_s) = request.deadline_s {
            all += 1;
            missed += u64::from(request.end_s.is_none_or(|end_s| end_s > deadline_s));
        }
    }
    (all > 0).then(|| missed as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::run_of;

    #[test]
    fn completion_pools_all_requests_and_the_unfinished_are_the_longest() {
        let runs = [run_of(&[(0.0, Some(1.0), None), (5.0, Some(8.0), None)]), run_of(&[(0.0, Some(2.0), None)])];
        assert_eq!(completion_s(&runs, 0.5), Some(2.0));
        assert_eq!(completion_s(&runs, 0.75), Some(2.5));
        let given_up = [run_of(&[(0.0, Some(1.0), None), (0.0, None, None), (0.0, Some(2.0), None)])];
        assert_eq!(completion_s(&given_up, 0.5), Some(2.0));
        assert_eq!(completion_s(&given_up, 1.0), Some(NEVER_S));
        assert_eq!(completion_s(&[], 0.5), None);
    }

    #[test]
    fn late_and_never_are_missed_and_no_deadline_is_no_measure() {
        let runs = [run_of(&[
            (0.0, Some(7.0), Some(7.0)),
            (0.0, Some(7.1), Some(7.0)),
            (0.0, None, Some(7.0)),
            (0.0, Some(1.0), Some(7.0)),
            (0.0, Some(99.0), None),
        ])];
        assert_eq!(deadline_miss(&runs), Some(0.5));
        assert_eq!(deadline_miss(&[run_of(&[(0.0, None, None)])]), None);
    }
}
