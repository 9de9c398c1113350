use super::*;
use dig_download::CandidateRef;
use std::time::Duration;

use dig_peer_selector::{OutcomeKind, OutcomeResult, PoolEvent, SelectorConfig, TransferOutcome};

use crate::content::Manifest;
use crate::fetch::ending::{Ending, Seen};
use crate::fetch::layout::MissingLayout;
use crate::fetch::scorebook::Scorebook;
use crate::fetch::task::AbortOnDrop;
use crate::identity::Identity;
use crate::pool::{Pool, PoolConfig};

const CHUNK: usize = 256 * 1024;

struct Bench {
    adapter: Adapter,
    ledger: Arc<Ledger>,
    selector: Arc<PeerSelector>,
    content: ContentId,
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
    let content = id.content();
    let adapter = Adapter::new(ledger.clone(), holders, selector.clone(), content);
    Bench { adapter, ledger, selector, content, _finder: finder }
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

    /// Teaches the selector that each of `peers` delivers `rate` bytes per second over up to `at_once` ranges.
    fn teach(&self, peers: &[u8], at_once: u32, rate: u64) {
        for byte in peers {
            for index in 0..24 {
                self.selector.on_dispatch(&peer(*byte), at_once);
                for _ in 0..at_once {
                    self.selector.record_outcome(&TransferOutcome {
                        peer_id: peer(*byte),
                        content: self.content,
                        kind: OutcomeKind::Range { index, offset: 0, length: CHUNK as u64 },
                        result: OutcomeResult::Success,
                        bytes: CHUNK as u64,
                        duration_ms: CHUNK as u64 * 1000 / rate,
                        rtt_ms: Some(1),
                        at: 0,
                    });
                }
            }
        }
    }
}

#[tokio::test]
async fn the_lowest_pending_ranges_are_pinned_within_the_room_of_each_peer() {
    let bench = bench(20);
    let pins = bench.select(&[1, 2]);
    let ranges: Vec<_> = pins.iter().map(|(r, _)| *r).collect();
    assert_eq!(ranges, (0..ranges.len()).collect::<Vec<_>>());
    let at = |byte| bench.selector.peer_snapshot(&peer(byte)).unwrap().in_flight as usize;
    assert_eq!(bench.ledger.active(), [(peer(1), at(1)), (peer(2), at(2))], "the selector is told what was sent");
    assert!(bench.select(&[1, 2]).is_empty(), "both have what they can use");
}

#[tokio::test]
async fn no_more_ranges_are_in_flight_than_memory_allows() {
    let bench = bench(400);
    let everyone: Vec<u8> = (1..=60).collect();
    let sent: usize = std::iter::from_fn(|| Some(bench.select(&everyone).len())).take_while(|n| *n > 0).sum();
    assert_eq!(sent, bench.adapter.ranges_at_once());
    assert!(sent as u64 * CHUNK as u64 <= BYTES_IN_FLIGHT);
}

#[tokio::test]
async fn something_is_always_assigned_when_nothing_is_in_flight() {
    let bench = bench(4);
    for byte in [1, 2] {
        bench.selector.on_dispatch(&peer(byte), 100);
    }
    assert_eq!(bench.select(&[1, 2]).len(), 1, "they are busy elsewhere, and yet somebody tries");
}

#[tokio::test]
async fn nothing_is_assigned_to_those_whom_the_host_banned() {
    let bench = bench(4);
    let reason = dig_peer_selector::PoolRemovalReason::Banned;
    bench.selector.on_pool_event(&PoolEvent::PeerRemoved { peer_id: peer(1), reason });
    assert!(bench.select(&[1]).is_empty());
}

#[tokio::test]
async fn a_peer_that_is_no_candidate_is_never_pinned() {
    let bench = bench(20);
    bench.select(&[1, 2]);
    let other = peer(2).to_hex();
    bench.adapter.history.lock().unwrap().failed.insert(peer(1));
    assert!(bench.select(&[2]).iter().all(|(_, p)| *p == other));
}

#[tokio::test]
async fn trials_take_a_twentieth_of_the_ranges_of_a_download_with_proven_peers() {
    let bench = bench(2_000);
    bench.teach(&[1, 2], 2, 10_000_000);
    let stranger = peer(3).to_hex();
    let (mut all, mut tried) = (0, 0);
    for _ in 0..400 {
        for (range, name) in bench.select(&[1, 2, 3]) {
            all += 1;
            tried += usize::from(name == stranger);
            let attempt = bench.ledger.begin(range, PeerId::from_hex(&name).unwrap()).unwrap();
            let ending = if name == stranger { Ending::TimedOut("late".into()) } else { Ending::Verified };
            let seen = Seen { bytes: CHUNK as u64, duration: Duration::from_millis(26), first_byte: None };
            bench.ledger.report(&attempt, &ending, seen);
            bench.ledger.close(&attempt, name != stranger);
        }
    }
    assert!(tried > 0 && tried * 15 <= all, "{tried} of {all}");
}

#[tokio::test]
async fn a_download_that_has_sent_everything_or_is_over_holds_no_promises() {
    let sent_all = bench(3);
    assert_eq!(sent_all.select(&[1]).len(), 3);
    sent_all.select(&[1]);
    assert_eq!(sent_all.selector.peer_snapshot(&peer(1)).unwrap().in_flight, 3, "what was sent, and nothing besides");

    let Bench { adapter, ledger, selector, content, _finder } = bench(400);
    selector.select(&ContentRequest::new(content, 1), &[adapter.holders.candidate(&peer(1))]);
    assert!(ledger.active().is_empty() && selector.peer_snapshot(&peer(1)).unwrap().in_flight > 0, "promised");
    drop(adapter);
    assert_eq!(selector.peer_snapshot(&peer(1)).unwrap().in_flight, 0);
}

#[tokio::test]
async fn malformed_candidates_are_ignored() {
    let bench = bench(4);
    let candidates = [CandidateRef::new("no hex", vec![])];
    let request = SelectRequest { content_key: "", candidates: &candidates, ranges_needed: 4, inflight: 0 };
    assert!(bench.adapter.select(&request).assignments.is_empty());
}

#[test]
fn the_selector_is_asked_to_select_until_it_knows_every_candidate() {
    let mut history = History::default();
    assert_eq!(history.ask(&[peer(1)], true), Ask::Select);
    history.known.insert(peer(1));
    assert_eq!(history.ask(&[peer(1)], false), Ask::Select);
    history.failed.insert(peer(1));
    assert_eq!(history.ask(&[peer(1), peer(2)], false), Ask::Select, "a new candidate");
}

#[test]
fn failures_and_the_end_rebalance() {
    let mut history = History { known: [peer(1), peer(2)].into(), ..History::default() };
    assert_eq!(history.ask(&[peer(1)], true), Ask::Rebalance);
    history.failed.insert(peer(2));
    assert_eq!(history.ask(&[peer(1)], false), Ask::Rebalance);
}
