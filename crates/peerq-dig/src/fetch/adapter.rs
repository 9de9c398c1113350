//! dig-download's `SourceSelector` over a shared `PeerSelector` (HOST-D1).
//!
//! One adapter serves one download. dig-download asks it on every turn of its loop, also when there is nothing to decide,
//! and can enforce a peer's concurrency only through explicit assignments. So the adapter asks the selector only when a
//! range can be sent, tells it exactly what is left, and pins ranges to the selected peers as the answer stands ([`plan`](super::plan)): with `select` as a rule, with `rebalance` when a peer failed since or the last ranges are out,
//! because then whoever is busy or just failed must not get more.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use dig_dht::ContentId;
use dig_download::{RangeOutcome, RangeResult, SelectPlan, SelectRequest, SourceSelector};
use dig_nat::PeerId;
use dig_peer_selector::{Candidate, ContentRequest, PeerSelector, RangePlanDelta, SelectedPeer, Selection};

use super::holders::Holders;
use super::ledger::Ledger;
use super::plan::assign;

/// Sources asked for at once. Higher: more connections than a home uplink's peers can feed. Lower: one slow source weighs
/// more. Unmeasured heuristic.
const SOURCES: usize = 16;

/// Bytes in flight over all peers, and the bounds on the ranges that this makes. The selector's caps are what usually
/// binds; this bounds memory. Higher: more of it. Lower: long fast paths idle between a range's end and the next request.
const BYTES_IN_FLIGHT: u64 = 32 << 20;
const RANGES_MIN: u64 = 4;
const RANGES_MAX: u64 = 64;

/// What the engine is told as its caps: never binding, because the assignments carry the real ones.
pub(super) const ENGINE_CAP: usize = RANGES_MAX as usize;

pub(super) struct Adapter {
    ledger: Arc<Ledger>,
    holders: Arc<Holders>,
    selector: Arc<PeerSelector>,
    content: ContentId,
    history: Mutex<History>,
}

/// What changes from decision to decision.
#[derive(Default)]
struct History {
    /// The candidates of the latest `select`.
    known: HashSet<PeerId>,
    /// Peers that failed since the latest decision.
    failed: HashSet<PeerId>,
}

/// Which question to ask the selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Select,
    Rebalance,
}

impl History {
    /// A `rebalance` names holders that the selector knows of, so the first question and every question with a new candidate is a `select`.
    fn ask(&self, candidates: &[PeerId], all_sent_soon: bool) -> Ask {
        let known = !self.known.is_empty() && candidates.iter().all(|peer| self.known.contains(peer));
        if known && (all_sent_soon || !self.failed.is_empty()) { Ask::Rebalance } else { Ask::Select }
    }
}

impl Adapter {
    pub(super) fn new(
        ledger: Arc<Ledger>,
        holders: Arc<Holders>,
        selector: Arc<PeerSelector>,
        content: ContentId,
    ) -> Self {
        Adapter { ledger, holders, selector, content, history: Mutex::default() }
    }

    /// Ranges that may be in flight over all peers.
    fn ranges_at_once(&self) -> usize {
        let range = u64::from(self.ledger.layout().manifest().chunk_size()).max(1);
        (BYTES_IN_FLIGHT / range).clamp(RANGES_MIN, RANGES_MAX) as usize
    }

    /// Asks the selector who should take some of the `pending` ranges.
    fn selection(
        &self,
        history: &mut History,
        pending: &[usize],
        candidates: &[PeerId],
        active: &[(PeerId, usize)],
        free: usize,
    ) -> Selection {
        let layout = self.ledger.layout();
        let chunks = || pending.iter().filter_map(|range| layout.chunk(*range));
        let request = ContentRequest {
            content: self.content,
            total_length: Some(chunks().map(|chunk| chunk.length).sum()),
            range_count: Some(pending.len()),
            parallelism: SOURCES,
        };
        let asked = history.ask(candidates, pending.len() <= free);
        let mut selection = Selection::empty();
        if asked == Ask::Rebalance {
            let mut busy: Vec<PeerId> = active.iter().map(|(peer, _)| *peer).collect();
            busy.extend(history.failed.iter().filter(|peer| !active.iter().any(|(other, _)| other == *peer)));
            busy.sort_by_key(|peer| *peer.as_bytes());
            let need = RangePlanDelta::of_indices(chunks().map(|chunk| chunk.index));
            selection = self.selector.rebalance(&request, &busy, &need);
            // It may know holders that the engine does not offer just now.
            selection.peers.retain(|peer| candidates.contains(&peer.peer_id));
        }
        if selection.is_empty() {
            let given: Vec<Candidate> = candidates.iter().map(|peer| self.holders.candidate(peer)).collect();
            selection = self.selector.select(&request, &given);
            history.known = candidates.iter().copied().collect();
        }
        history.failed.clear();
        selection
    }

    /// Tells the selector that nothing more will be sent: what it promised would otherwise make peers look busy to other downloads until it expires.
    fn needs_nothing(&self, candidates: &[PeerId]) {
        let given: Vec<Candidate> = candidates.iter().map(|peer| self.holders.candidate(peer)).collect();
        let nothing = ContentRequest { range_count: Some(0), ..ContentRequest::new(self.content, SOURCES) };
        self.selector.select(&nothing, &given);
    }
}

impl SourceSelector for Adapter {
    fn select(&self, request: &SelectRequest) -> SelectPlan {
        let pending = self.ledger.pending();
        let active = self.ledger.active();
        let in_flight: usize = active.iter().map(|(_, n)| n).sum();
        let free = self.ranges_at_once().saturating_sub(in_flight);
        let mut candidates: Vec<PeerId> =
            request.candidates.iter().filter_map(|c| PeerId::from_hex(&c.peer_id)).collect();
        // With proven liars alone, an empty plan is right: it makes the engine look for others, and end if there are none.
        candidates.retain(|p| !self.ledger.is_expelled(p));
        candidates.sort_by_key(|p| *p.as_bytes());
        candidates.dedup();
        self.ledger.set_candidates(candidates.clone());
        if pending.is_empty() {
            self.needs_nothing(&candidates);
        }
        if free == 0 || pending.is_empty() || candidates.is_empty() {
            return SelectPlan::default();
        }

        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = self.selection(&mut history, &pending, &candidates, &active, free).peers;
        if answer.is_empty() && in_flight == 0 {
            // The selector has no room for more, but an empty plan now would end the download: somebody has to try, unless
            // the host banned them all.
            let banned = |peer: &PeerId| self.selector.peer_snapshot(peer).is_some_and(|known| known.banned);
            let one = |peer: PeerId| SelectedPeer { peer_id: peer, rank: 0, max_concurrency: 1, exploratory: true };
            answer = candidates.iter().copied().filter(|peer| !banned(peer)).map(one).collect();
        }
        let peers = assign(&answer, free.min(pending.len()));
        for chosen in &answer {
            let dispatched = peers.iter().filter(|peer| **peer == chosen.peer_id).count() as u32;
            if dispatched > 0 {
                self.selector.on_dispatch(&chosen.peer_id, dispatched);
            }
        }
        let assignments = pending.into_iter().zip(peers).map(|(range, peer)| {
            self.ledger.assign(range, peer);
            (range, peer.to_hex())
        });
        let assignments = assignments.collect();
        SelectPlan { ordered: Vec::new(), assignments }
    }

    /// Only notes who failed: outcomes reach the selector from the transport, which knows the range, the bytes and the
    /// times.
    fn record(&self, outcome: &RangeOutcome) {
        if outcome.result == RangeResult::Ok {
            return;
        }
        if let Some(peer) = PeerId::from_hex(&outcome.peer_id) {
            self.history.lock().unwrap_or_else(PoisonError::into_inner).failed.insert(peer);
        }
    }
}

/// However the download ends.
impl Drop for Adapter {
    fn drop(&mut self) {
        self.needs_nothing(&[]);
    }
}

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;
