//! A laboratory small enough to reason about: each policy takes a fixed share of its ranges from the first group.

use crate::model::{Kind, PeerResult, RequestResult, RunResult, Workload, World};

use super::{Bench, Ended, How, RunLog, Sent, Viewed};

/// Serves every range in `1 / factor` of a second, where the factor depends on the policy and the seed.
pub(crate) struct Toy;

impl Bench for Toy {
    fn policies(&self) -> &[&'static str] {
        &["peerq", "round-robin", "clairvoyant"]
    }

    fn run(
        &self,
        world: &World,
        _workload: &Workload,
        policy: &str,
        seed: u64,
        log: &mut RunLog,
    ) -> Result<RunResult, String> {
        let (range_s, every) = match policy {
            "peerq" => (1.1, 10),
            "round-robin" => (3.0, 2),
            _ => (1.0, 1000),
        };
        let range_s = range_s + seed as f64 * 0.001;
        let peer = |index: usize| PeerResult {
            group: world.peers[index].name.clone(),
            kind: Some(if index == 0 { Kind::Hostile } else { Kind::Honest }),
            bytes: 0,
            wasted_bytes: 0,
            hostile_bytes: 0,
            requests: 0,
            failures: 0,
            demoted_at_s: None,
            credited_rate: Some(1e6),
            trust: None,
            true_rate: 1e6,
            credited_over_delivered: (index == 0).then_some(1.2),
        };
        let mut run = RunResult { peers: (0..world.peers.len()).map(peer).collect(), ..RunResult::default() };
        for number in 1..=100u32 {
            let to = if number % every == 0 { 0 } else { world.peers.len() as u32 - 1 };
            let start_s = f64::from(number - 1) * range_s;
            let end_s = f64::from(number) * range_s;
            log.sent.push(Sent { at_s: start_s, peer: to });
            log.ended.push(Ended { at_s: end_s, peer: to, held_s: range_s, bytes: 1000, how: How::Useful });
            log.viewed.push(Viewed { at_s: end_s, peer: to, demoted: to == 0, credited_rate: Some(1e6) });
            run.peers[to as usize].bytes += 1000;
            run.peers[to as usize].hostile_bytes += if to == 0 { 1000 } else { 0 };
            run.requests.push(RequestResult { start_s, end_s: Some(end_s), deadline_s: None, bytes: 1000 });
            run.seconds = end_s;
        }
        run.events = 200;
        Ok(run)
    }
}

/// The plan the toy is asked to run.
pub(crate) const PLAN: &str = r#"name = "toy"
scenario = "A0"
part = "B"
about = "One bad peer and one good one: the bad one is <left> alone."

[[world.peers]]
name = "bad"
rate = 1e6
rtt_ms = 50

[[world.peers]]
name = "good"
rate = 1e6
rtt_ms = 50

[workload.requests]
requests = 100
per_s = 1
range_bytes = 1000

[control]
without = ["bad"]

[[checks]]
what = "p50_over_yardstick"
at_most = 1.2

[[checks]]
what = "bytes_share"
group = "bad"
at_most = 0.11

[[checks]]
what = "bytes_share"
group = "bad"
policy = "round-robin"
at_most = 0.11

[[checks]]
what = "in_flight_max"
at_most = 1

[[checks]]
what = "throughput_share"
of = 1000
at_least = 0.9

[[checks]]
what = "signal_share"
signal = "smoke"
at_least = 1
"#;
