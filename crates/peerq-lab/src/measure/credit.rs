//! Credited over delivered: by how much a policy overrates peers.
//!
//! For each peer that the policy credits with a rate and that delivers at all: credited rate over true rate, both at the end of the run. The largest is what an adversary
//! can gain by looking good. FlashFlow (facts: networks §8) bounds it by 1.33 with trusted measurers, which is the figure to compare with.

use crate::model::{PeerResult, RunResult};

/// A credited over a true rate; none without both.
pub fn over(credited: Option<f64>, delivers: f64) -> Option<f64> {
    let ratio = credited? / delivers;
    (delivers > 0.0 && ratio.is_finite() && ratio >= 0.0).then_some(ratio)
}

/// Credited over true rate at the end of the run; none without both.
pub fn ratio(peer: &PeerResult) -> Option<f64> {
    over(peer.credited_rate, peer.true_rate)
}

fn ratios<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> impl Iterator<Item = f64> {
    runs.into_iter().flat_map(|run| &run.peers).filter_map(ratio)
}

/// The largest ratio over all peers and runs.
pub fn largest<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    ratios(runs).reduce(f64::max)
}

/// The geometric mean over peers and runs: below 1 underrates, above 1 overrates. Peers credited with nothing are left out.
pub fn typical<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    super::yardstick::geometric_mean(ratios(runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{peer, run_with};
    use crate::model::Kind;

    #[test]
    fn the_most_overrated_peer_counts() {
        let rated = |credited, truth| peer("a", Kind::Honest).rates(Some(credited), truth);
        let runs = [run_with([rated(2e6, 1e6), rated(0.5e6, 1e6)]), run_with([rated(1e6, 1e6)])];
        assert_eq!(largest(&runs), Some(2.0));
        assert!((typical(&runs).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn who_delivers_nothing_or_is_credited_with_nothing_has_no_ratio() {
        let rated = |credited, truth| peer("a", Kind::Hostile).rates(credited, truth);
        for (credited, truth) in [(None, 1.0), (Some(1.0), 0.0), (Some(f64::NAN), 1.0), (Some(f64::INFINITY), 1.0)] {
            assert_eq!(largest(&[run_with([rated(credited, truth)])]), None);
        }
    }
}
