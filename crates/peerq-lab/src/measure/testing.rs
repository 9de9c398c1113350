//! Runs for tests of measures.

use crate::model::{Kind, PeerResult, RequestResult, RunResult};

/// A run of requests given as start, end and deadline.
pub(crate) fn run_of(requests: &[(f64, Option<f64>, Option<f64>)]) -> RunResult {
    let request =
        |&(start_s, end_s, deadline_s): &(f64, _, _)| RequestResult { start_s, end_s, deadline_s, bytes: 1_000 };
    RunResult { requests: requests.iter().map(request).collect(), ..RunResult::default() }
}

/// A run with these peers.
pub(crate) fn run_with<const N: usize>(peers: [Made; N]) -> RunResult {
    RunResult { peers: peers.into_iter().map(|made| made.0).collect(), ..RunResult::default() }
}

/// A peer in the making.
pub(crate) struct Made(pub(crate) PeerResult);

/// A peer that did nothing.
pub(crate) fn peer(group: &str, kind: Kind) -> Made {
    Made(PeerResult {
        group: group.into(),
        kind: Some(kind),
        bytes: 0,
        wasted_bytes: 0,
        hostile_bytes: 0,
        requests: 0,
        failures: 0,
        demoted_at_s: None,
        credited_rate: None,
        trust: None,
        true_rate: 0.0,
        credited_over_delivered: None,
    })
}

impl Made {
    pub(crate) fn bytes(mut self, useful: u64, wasted: u64) -> Self {
        (self.0.bytes, self.0.wasted_bytes) = (useful, wasted);
        if self.0.kind == Some(Kind::Hostile) {
            self.0.hostile_bytes = useful.saturating_add(wasted);
        }
        self
    }

    pub(crate) fn rates(mut self, credited: Option<f64>, truth: f64) -> Self {
        (self.0.credited_rate, self.0.true_rate) = (credited, truth);
        self
    }

    pub(crate) fn asked(mut self, requests: u32) -> Self {
        self.0.requests = requests;
        self
    }

    pub(crate) fn demoted(mut self, at_s: Option<f64>) -> Self {
        self.0.demoted_at_s = at_s;
        self
    }
}
