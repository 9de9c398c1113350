use super::*;
use dig_download::CandidateRef;
use dig_peer_selector::{SelectedPeer, SelectorConfig};

use crate::content::Manifest;
use crate::fetch::layout::MissingLayout;
use crate::fetch::scorebook::Scorebook;
use crate::fetch::task::AbortOnDrop;
use crate::identity::Identity;
use crate::pool::{Pool, PoolConfig};

const CHUNK: usize = 256 * 1024;

struct Bench {
    adapter: Adapter,
    ledger: Arc<Ledger>,
    _finder: AbortOnDrop<()>,
}

fn peer(byte: u8) -> PeerId {
    PeerId::from_bytes([byte; 32])
}

fn bench(chunks: usize) -> Bench {
    let manifest = Arc::new(Manifest::of_bytes(&vec![1; chunks * CHUNK]));
    let id = manifest.id();
    let selector = Arc::new(PeerSelector::new(SelectorConfig::deterministic(1000, 7)));
    let book = Arc::new(Scorebook::new(Some(selector.clone())));
    let layout = Arc::new(MissingLayout::new(manifest, &[]));
    let ledger = Arc::new(Ledger::new(layout, book.clone(), id.content()));
    let pool = Pool::new(Arc::new(Identity::from_seed(b"adapter").unwrap()), PoolConfig::default());
    let (holders, finder) = Holders::search(id, pool, &[], None, book);
    Bench { adapter: Adapter::new(ledger.clone(), holders, selector, id.content()), ledger, _finder: finder }
}

impl Bench {
    fn select(&self, candidates: &[u8]) -> Vec<(usize, String)> {
        let candidates: Vec<_> = candidates.iter().map(|b| CandidateRef::new(peer(*b).to_hex(), vec![])).collect();
        let inflight = self.ledger.active().iter().map(|(_, n)| n).sum();
        let request = SelectRequest { content_key: "", candidates: &candidates, ranges_needed: 1, inflight };
        let plan = self.adapter.select(&request);
        assert!(plan.ordered.is_empty(), "caps can be enforced only through assignments");
        plan.assignments
    }

    fn fix_plan(&self, peers: &[(u8, u32)]) {
        let peers = peers.iter().enumerate().map(|(rank, (byte, cap))| SelectedPeer {
            peer_id: peer(*byte),
            rank: rank as u32,
            max_concurrency: *cap,
            exploratory: false,
        });
        let mut plan = self.adapter.plan.lock().unwrap();
        plan.selection = Selection { peers: peers.collect() };
        plan.made = true;
        plan.known = plan.selection.peers.iter().map(|p| p.peer_id).collect();
    }
}

#[tokio::test]
async fn the_lowest_pending_ranges_are_pinned_to_the_plans_peers_up_to_their_caps() {
    let bench = bench(20);
    bench.fix_plan(&[(1, 3), (2, 1)]);
    let pins = bench.select(&[1, 2]);
    let ranges: Vec<_> = pins.iter().map(|(r, _)| *r).collect();
    assert_eq!(ranges, [0, 1, 2, 3]);
    assert_eq!(bench.ledger.active(), [(peer(1), 3), (peer(2), 1)]);
    assert!(bench.select(&[1, 2]).is_empty(), "both are at their caps");
}

#[tokio::test]
async fn no_more_than_the_parallel_ranges_are_in_flight() {
    let bench = bench(40);
    bench.fix_plan(&[(1, 50)]);
    assert_eq!(bench.select(&[1]).len(), PARALLEL_RANGES);
    assert!(bench.select(&[1]).is_empty());
}

#[tokio::test]
async fn something_is_always_assigned_when_nothing_is_in_flight() {
    let bench = bench(4);
    bench.fix_plan(&[]);
    assert!(!bench.select(&[1, 2]).is_empty());
}

#[tokio::test]
async fn a_peer_that_is_no_candidate_is_never_pinned() {
    let bench = bench(20);
    bench.fix_plan(&[(1, 2), (2, 2)]);
    let other = peer(2).to_hex();
    assert!(bench.select(&[2]).iter().all(|(_, p)| *p == other));
}

#[tokio::test]
async fn malformed_candidates_are_ignored() {
    let bench = bench(4);
    let candidates = [CandidateRef::new("no hex", vec![])];
    let request = SelectRequest { content_key: "", candidates: &candidates, ranges_needed: 4, inflight: 0 };
    assert!(bench.adapter.select(&request).assignments.is_empty());
}

fn planned(peers: &[(u8, u32)]) -> Plan {
    let bench_peer = |(byte, cap): &(u8, u32)| SelectedPeer {
        peer_id: peer(*byte),
        rank: 0,
        max_concurrency: *cap,
        exploratory: false,
    };
    let selection = Selection { peers: peers.iter().map(bench_peer).collect() };
    let known = selection.peers.iter().map(|p| p.peer_id).collect();
    Plan { selection, made: true, known, failed: HashSet::new(), completed: 10 }
}

#[test]
fn the_selector_is_asked_first_with_select() {
    assert_eq!(ask(&Plan::default(), &[peer(1)], 0, 9, false), Ask::Select);
}

#[test]
fn a_plan_is_reused_while_nothing_changes() {
    assert_eq!(ask(&planned(&[(1, 4), (2, 4)]), &[peer(1), peer(2)], 11, 99, true), Ask::Nothing);
}

#[test]
fn a_plan_is_renewed_when_a_quarter_of_its_slots_completed() {
    assert_eq!(ask(&planned(&[(1, 4), (2, 4)]), &[peer(1), peer(2)], 12, 99, true), Ask::Select);
}

#[test]
fn failures_arrivals_and_drops_rebalance() {
    let (one, two) = (peer(1), peer(2));
    let mut failed = planned(&[(1, 4), (2, 4)]);
    failed.failed.insert(one);
    assert_eq!(ask(&failed, &[one, two], 10, 99, true), Ask::Rebalance);
    assert_eq!(ask(&planned(&[(1, 4)]), &[one, two], 10, 99, true), Ask::Rebalance, "a new candidate");
    assert_eq!(ask(&planned(&[(1, 4), (2, 4)]), &[one], 10, 99, true), Ask::Rebalance, "a drop");
}

#[test]
fn a_used_up_plan_rebalances_near_the_end_only() {
    assert_eq!(ask(&planned(&[(1, 4)]), &[peer(1)], 10, 99, false), Ask::Nothing);
    assert_eq!(ask(&planned(&[(1, 4)]), &[peer(1)], 10, 3, false), Ask::Rebalance);
}
