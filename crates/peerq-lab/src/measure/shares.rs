//! Shares of bytes: what hostile peers got to deliver, and what was delivered in vain.

use crate::model::{PeerResult, RunResult};

fn peers<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> impl Iterator<Item = &'a PeerResult> {
    runs.into_iter().flat_map(|run| &run.peers)
}

/// Everything a peer sent.
fn all_bytes(peer: &PeerResult) -> f64 {
    peer.bytes as f64 + peer.wasted_bytes as f64
}

fn share<'a>(
    runs: impl IntoIterator<Item = &'a RunResult>,
    of: impl Fn(&PeerResult) -> bool,
    part: impl Fn(&PeerResult) -> f64,
) -> Option<f64> {
    let (mut some, mut all) = (0.0, 0.0);
    for peer in peers(runs) {
        all += all_bytes(peer);
        if of(peer) {
            some += part(peer);
        }
    }
    (all > 0.0).then(|| some / all)
}

/// Bytes that peers delivered while they were hostile, useful or not, over all bytes: how much of the client's link they had.
pub fn hostile_share<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    share(runs, |_| true, |peer| peer.hostile_bytes as f64)
}

/// Bytes of no use (duplicates, corrupt ones, and those of requests given up) over all bytes.
pub fn wasted_share<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    share(runs, |_| true, |peer| peer.wasted_bytes as f64)
}

/// Bytes from the peers of one group over all bytes.
pub fn group_share<'a>(runs: impl IntoIterator<Item = &'a RunResult>, group: &str) -> Option<f64> {
    share(runs, |peer| peer.group == group, all_bytes)
}

/// Requests that failed or were given up over all that were sent to peers.
pub fn failure_share<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<f64> {
    let (mut failures, mut requests) = (0_u64, 0_u64);
    for peer in peers(runs) {
        failures += u64::from(peer.failures);
        requests += u64::from(peer.requests);
    }
    (requests > 0).then(|| failures as f64 / requests as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{peer, run_with};
    use crate::model::Kind;

    #[test]
    fn shares_are_of_all_bytes_of_all_runs() {
        let runs = [
            run_with([peer("good", Kind::Honest).bytes(700, 0), peer("bad", Kind::Hostile).bytes(100, 100)]),
            run_with([peer("good", Kind::Honest).bytes(50, 50), peer("slow", Kind::Broken).bytes(0, 0)]),
        ];
        assert_eq!(hostile_share(&runs), Some(0.2));
        assert_eq!(wasted_share(&runs), Some(0.15));
        assert_eq!(group_share(&runs, "good"), Some(0.8));
        assert_eq!(group_share(&runs, "nobody"), Some(0.0));
    }

    #[test]
    fn nothing_delivered_is_no_share_and_huge_counts_stay_finite() {
        assert_eq!(hostile_share(&[run_with([peer("a", Kind::Hostile)])]), None);
        let huge = run_with([peer("a", Kind::Hostile).bytes(u64::MAX / 2, u64::MAX / 2)]);
        assert_eq!((hostile_share([&huge]), wasted_share([&huge])), (Some(1.0), Some(0.5)));
    }

    #[test]
    fn failures_are_of_the_requests_sent() {
        let mut one = peer("a", Kind::Honest);
        (one.0.requests, one.0.failures) = (40, 10);
        assert_eq!(failure_share(&[run_with([one])]), Some(0.25));
        assert_eq!(failure_share(&[]), None);
    }
}
