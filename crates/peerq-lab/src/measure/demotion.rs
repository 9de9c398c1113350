//! Demotion: how long it takes to stop trusting who deserves it, and how often someone who does not is hit.

use super::quantile::quantile;
use crate::model::{Kind, PeerResult, RunResult};

fn is_honest(peer: &PeerResult) -> bool {
    peer.kind == Some(Kind::Honest)
}

/// Broken and hostile peers that were asked at all: nobody can be judged unseen.
fn deserving<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> impl Iterator<Item = &'a PeerResult> {
    let deserves = |peer: &&PeerResult| peer.kind.is_some() && !is_honest(peer) && peer.requests > 0;
    runs.into_iter().flat_map(|run| &run.peers).filter(deserves)
}

/// The `share` quantile of the seconds from the run's start to the demotion of peers that deserve it; never is without bound, so a quantile that falls there is none.
pub fn time_to_demote_s<'a>(runs: impl IntoIterator<Item = &'a RunResult>, share: f64) -> Option<f64> {
    let times: Vec<f64> = deserving(runs).map(|peer| peer.demoted_at_s.unwrap_or(f64::INFINITY)).collect();
    quantile(&times, share)
}

/// Share of the deserving that were demoted.
pub fn demoted_share<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    let (mut demoted, mut all) = (0_u64, 0_u64);
    for peer in deserving(runs) {
        all += 1;
        demoted += u64::from(peer.demoted_at_s.is_some());
    }
    (all > 0).then(|| demoted as f64 / all as f64)
}

/// Honest peers that were demoted, per run.
pub fn false_demotions<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    let (mut demoted, mut count) = (0_u64, 0_u64);
    for run in runs {
        count += 1;
        demoted += run.peers.iter().filter(|peer| is_honest(peer) && peer.demoted_at_s.is_some()).count() as u64;
    }
    (count > 0).then(|| demoted as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{peer, run_with};

    #[test]
    fn never_is_the_longest_time_and_the_unasked_are_not_judged() {
        let bad = |demoted| peer("bad", Kind::Hostile).asked(9).demoted(demoted);
        let runs = [
            run_with([bad(Some(2.0)), bad(Some(4.0)), bad(None)]),
            run_with([peer("bad", Kind::Hostile), peer("good", Kind::Honest).asked(5).demoted(Some(1.0))]),
        ];
        assert_eq!(time_to_demote_s(&runs, 0.5), Some(4.0));
        assert_eq!(time_to_demote_s(&runs, 1.0), None);
        assert_eq!(demoted_share(&runs), Some(2.0 / 3.0));
        assert_eq!(false_demotions(&runs), Some(0.5));
    }

    #[test]
    fn without_anybody_to_demote_there_is_nothing_to_say() {
        let runs = [run_with([peer("good", Kind::Honest).asked(5)])];
        assert_eq!((time_to_demote_s(&runs, 0.5), demoted_share(&runs)), (None, None));
        assert_eq!((false_demotions(&runs), false_demotions(&[])), (Some(0.0), None));
    }
}
