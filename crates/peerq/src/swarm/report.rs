//! What a swarm tells: one JSON document, and the same as tables.
//!
//! The document is the whole truth of a run; the tables only add what the selector learned. Times and
//! shares are taken over the rounds after the first two, in which the selector still learns.

use std::collections::BTreeMap;

use dig_peer_selector::PeerSnapshot;
use serde::Serialize;

use super::world::PeerPlan;
use crate::sizes::{ByteSize, rate};
use crate::table::{Align, Table};

/// Rounds of each policy that count as learning and stay out of the summary.
pub(crate) const LEARNING_ROUNDS: usize = 2;

/// Which way of choosing peers a round used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyName {
    Peerq,
    RoundRobin,
}

impl PolicyName {
    /// Both, in the order in which rounds alternate.
    pub(crate) const BOTH: [Self; 2] = [Self::Peerq, Self::RoundRobin];

    /// As it stands in reports and file names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Peerq => "peerq",
            Self::RoundRobin => "round-robin",
        }
    }
}

/// One run of the swarm.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    pub(crate) file_bytes: u64,
    pub(crate) peers: Vec<Peer>,
    pub(crate) rounds: Vec<Round>,
    pub(crate) summary: BTreeMap<PolicyName, Summary>,
}

/// One serving node and its true link.
#[derive(Debug, Serialize)]
pub(crate) struct Peer {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) rate_bytes_per_s: u64,
    pub(crate) delay_ms: f64,
    #[serde(skip)]
    pub(crate) hostile: bool,
}

impl Peer {
    pub(crate) fn new(id: String, plan: &PeerPlan) -> Self {
        Self {
            id,
            kind: plan.kind.name(),
            rate_bytes_per_s: plan.rate_bytes_per_s,
            delay_ms: (plan.delay.as_secs_f64() * 1e6).round() / 1e3,
            hostile: plan.kind.is_hostile(),
        }
    }
}

/// One download.
#[derive(Debug, Serialize)]
pub(crate) struct Round {
    pub(crate) policy: PolicyName,
    /// From 1.
    pub(crate) round: usize,
    pub(crate) seconds: f64,
    /// Whether the file arrived and has the source's hash.
    pub(crate) verified: bool,
    /// What each peer sent, wrong bytes and abandoned chunks included; peers that sent nothing are absent.
    pub(crate) bytes_by_peer: BTreeMap<String, u64>,
}

/// One policy over the counted rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) p50_s: f64,
    pub(crate) p99_s: f64,
    /// Share of all received bytes that came from hostile peers, 0 to 1.
    pub(crate) hostile_byte_share: f64,
}

impl Document {
    /// The document of these rounds.
    pub(crate) fn new(file_bytes: u64, peers: Vec<Peer>, rounds: Vec<Round>) -> Self {
        let mut document = Self { file_bytes, peers, rounds, summary: BTreeMap::new() };
        for policy in PolicyName::BOTH {
            let summary = document.summarise(policy);
            document.summary.insert(policy, summary);
        }
        document
    }

    /// Whether every round's file has the right hash.
    pub(crate) fn all_verified(&self) -> bool {
        self.rounds.iter().all(|round| round.verified)
    }

    /// The rounds of `policy` that count: those after the learning ones, or all if there are no more.
    fn counted(&self, policy: PolicyName) -> Vec<&Round> {
        let of_policy: Vec<&Round> = self.rounds.iter().filter(|round| round.policy == policy).collect();
        let skip = if of_policy.len() > LEARNING_ROUNDS { LEARNING_ROUNDS } else { 0 };
        of_policy.into_iter().skip(skip).collect()
    }

    fn summarise(&self, policy: PolicyName) -> Summary {
        let counted = self.counted(policy);
        let seconds: Vec<f64> = counted.iter().map(|round| round.seconds).collect();
        let (mut all, mut hostile) = (0u64, 0u64);
        for peer in &self.peers {
            let bytes: u64 = counted.iter().filter_map(|round| round.bytes_by_peer.get(&peer.id)).sum();
            all += bytes;
            hostile += if peer.hostile { bytes } else { 0 };
        }
        Summary {
            p50_s: quantile(&seconds, 0.50),
            p99_s: quantile(&seconds, 0.99),
            hostile_byte_share: if all == 0 { 0.0 } else { hostile as f64 / all as f64 },
        }
    }

    /// The run as tables; `learned` is the selector's view of each peer, in the peers' order.
    pub(crate) fn tables(&self, learned: &[Option<PeerSnapshot>]) -> String {
        format!("{}\n\n{}", self.policy_table(), self.peer_table(learned))
    }

    fn policy_table(&self) -> String {
        let mut table = Table::new([
            ("policy", Align::Left),
            ("rounds", Align::Right),
            ("verified", Align::Right),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("worst", Align::Right),
            ("hostile share of bytes", Align::Right),
        ]);
        for (policy, summary) in &self.summary {
            let of_policy = || self.rounds.iter().filter(|round| round.policy == *policy);
            let worst = self.counted(*policy).iter().map(|round| round.seconds).fold(0.0, f64::max);
            table.row([
                policy.name().to_owned(),
                of_policy().count().to_string(),
                of_policy().filter(|round| round.verified).count().to_string(),
                format!("{:.2} s", summary.p50_s),
                format!("{:.2} s", summary.p99_s),
                format!("{worst:.2} s"),
                format!("{:.1} %", summary.hostile_byte_share * 100.0),
            ]);
        }
        let counted = self.counted(PolicyName::Peerq).len();
        format!("{}\ntimes and shares over the last {counted} rounds of each", table.render())
    }

    fn peer_table(&self, learned: &[Option<PeerSnapshot>]) -> String {
        let mut table = Table::new([
            ("peer", Align::Left),
            ("kind", Align::Left),
            ("link", Align::Right),
            ("delay", Align::Right),
            ("range rate", Align::Right),
            ("first byte", Align::Right),
            ("at once", Align::Right),
            ("reliability", Align::Right),
            ("peerq", Align::Right),
            ("round-robin", Align::Right),
            ("standing", Align::Left),
        ]);
        for (index, peer) in self.peers.iter().enumerate() {
            let view = learned.get(index).and_then(Option::as_ref);
            let sent = |policy| {
                let of_policy = self.rounds.iter().filter(|round| round.policy == policy);
                ByteSize(of_policy.filter_map(|round| round.bytes_by_peer.get(&peer.id)).sum()).to_string()
            };
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            table.row([
                peer.id.chars().take(8).collect(),
                peer.kind.to_owned(),
                rate(peer.rate_bytes_per_s as f64),
                format!("{:.1} ms", peer.delay_ms),
                or_dash(view.and_then(|view| view.throughput_bps).map(rate)),
                or_dash(view.and_then(|view| view.rtt_ms).map(|ms| format!("{ms:.1} ms"))),
                or_dash(view.map(|view| view.useful_concurrency.to_string())),
                or_dash(view.and_then(|view| view.reliability).map(|share| format!("{share:.2}"))),
                sent(PolicyName::Peerq),
                sent(PolicyName::RoundRobin),
                standing(view),
            ]);
        }
        table.render()
    }
}

/// What the selector holds of a peer, in words.
fn standing(view: Option<&PeerSnapshot>) -> String {
    match view {
        None => "unknown".to_owned(),
        Some(view) if view.banned => "banned".to_owned(),
        Some(view) if view.hard_failures > 0 => {
            format!("caught lying {} times", view.hard_failures)
        }
        Some(view) if view.samples == 0 => "unproven".to_owned(),
        Some(view) if view.reliability.is_some_and(|share| share < 0.5) => "unreliable".to_owned(),
        Some(_) => "proven".to_owned(),
    }
}

/// The `share` quantile by linear interpolation between the two nearest values; 0 for no values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: &str, hostile: bool) -> Peer {
        Peer { id: id.to_owned(), kind: "honest", rate_bytes_per_s: 1, delay_ms: 1.0, hostile }
    }

    fn round(policy: PolicyName, number: usize, seconds: f64, bad: u64) -> Round {
        let bytes_by_peer = [("good".to_owned(), 90), ("bad".to_owned(), bad)].into();
        Round { policy, round: number, seconds, verified: true, bytes_by_peer }
    }

    #[test]
    fn learning_rounds_stay_out_of_the_summary() {
        let rounds = [(100.0, 900), (100.0, 900), (1.0, 10), (3.0, 10)];
        let rounds = rounds.iter().enumerate().map(|(i, (s, b))| round(PolicyName::Peerq, i + 1, *s, *b));
        let document = Document::new(100, vec![peer("good", false), peer("bad", true)], rounds.collect());
        let summary = document.summary[&PolicyName::Peerq];
        assert_eq!(summary.p50_s, 2.0);
        assert!((summary.hostile_byte_share - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_run_too_short_to_leave_rounds_out_counts_all() {
        let document = Document::new(1, Vec::new(), vec![round(PolicyName::RoundRobin, 1, 5.0, 0)]);
        assert_eq!(document.summary[&PolicyName::RoundRobin].p99_s, 5.0);
    }

    #[test]
    fn the_json_names_are_those_that_readers_rely_on() {
        let document = Document::new(1, vec![peer("a", false)], vec![round(PolicyName::RoundRobin, 1, 5.0, 0)]);
        let json = serde_json::to_value(&document).expect("serialises");
        assert_eq!(json["rounds"][0]["policy"], "round-robin");
        assert_eq!(json["summary"]["round-robin"]["p50_s"], 5.0);
        assert!(json["peers"][0].get("hostile").is_none());
    }

    #[test]
    fn quantiles_interpolate_and_survive_no_values() {
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0], 0.5), 2.5);
        assert_eq!(quantile(&[1.0, 2.0], 1.0), 2.0);
    }
}
