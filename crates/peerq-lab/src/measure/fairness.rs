//! Fairness among honest peers: Jain's index of what each delivered per capacity.
//!
//! x = useful bytes over true rate, which is the time that a peer's link was in use; J = (Σx)² / (n·Σx²) over the honest peers of a run (Jain, Chiu and Hawe, DEC-TR-301,
//! 1984). 1 is an equal share of each one's capacity, 1/n is one peer alone. High is no aim in itself: a short request on the best peers alone is right.

use crate::model::{Kind, RunResult};

/// The index of one run; none without an honest peer that delivered something.
pub fn jain(run: &RunResult) -> Option<f64> {
    let honest = run.peers.iter().filter(|peer| peer.kind == Some(Kind::Honest) && peer.true_rate > 0.0);
    index(honest.map(|peer| peer.bytes as f64 / peer.true_rate))
}

/// The mean over runs that have one.
pub fn fairness<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u64);
    for value in runs.into_iter().filter_map(jain) {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

fn index(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    // The index does not depend on the unit; the largest as unit keeps squares of huge and tiny values finite.
    let unit = values.iter().copied().fold(0.0, f64::max);
    if unit <= 0.0 {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in &values {
        let x = value / unit;
        sum += x;
        squares += x * x;
    }
    Some(sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{peer, run_with};

    fn honest(bytes: u64, rate: f64) -> crate::measure::testing::Made {
        peer("a", Kind::Honest).bytes(bytes, 0).rates(None, rate)
    }

    #[test]
    fn equal_use_of_capacity_is_one_and_one_of_four_is_a_quarter() {
        let equal = run_with([honest(400, 4.0), honest(100, 1.0), honest(200, 2.0)]);
        assert!((jain(&equal).unwrap() - 1.0).abs() < 1e-12);
        let alone = run_with([honest(400, 1.0), honest(0, 1.0), honest(0, 1.0), honest(0, 9.0)]);
        assert_eq!(jain(&alone), Some(0.25));
        // x = 1, 2, 3: 36 / (3 · 14).
        let mixed = run_with([honest(1, 1.0), honest(2, 1.0), honest(3, 1.0)]);
        assert!((jain(&mixed).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert!((fairness(&[equal, alone]).unwrap() - 0.625).abs() < 1e-12);
    }

    #[test]
    fn the_hostile_do_not_count_and_nothing_is_no_index() {
        let hostile = peer("b", Kind::Hostile).bytes(1_000, 0).rates(None, 1.0);
        assert_eq!(jain(&run_with([hostile, honest(5, 1.0)])), Some(1.0));
        assert_eq!(jain(&run_with([honest(0, 1.0), honest(7, 0.0)])), None);
        assert_eq!(fairness(&[]), None);
        let huge = run_with([honest(u64::MAX, f64::MIN_POSITIVE), honest(u64::MAX, 1e-200), honest(1, 1e300)]);
        assert!(jain(&huge).is_none_or(|index| (0.0..=1.0).contains(&index)));
    }
}
