//! dig-download's `SourceSelector` over a shared `PeerSelector` (HOST-D1).
//!
//! One adapter serves one download. dig-download asks it on every turn of its loop, also when there is nothing to decide,
//! and can enforce a peer's concurrency only through explicit assignments. So the adapter keeps the selector's plan,
//! fills it range by range ([`plan`](super::plan)), and asks the selector again only when something has changed: first
//! with `select`, then with `rebalance` when a peer failed, appeared or vanished or the plan is used up near the end, and
//! with `select` again once a good part of the plan has completed, so that what was learned meanwhile is used.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use dig_dht::ContentId;
use dig_download::{RangeOutcome, RangeResult, SelectPlan, SelectRequest, SourceSelector};
use dig_nat::PeerId;
use dig_peer_selector::{Candidate, ContentRequest, PeerSelector, RangePlanDelta, Selection};

use super::holders::Holders;
use super::ledger::Ledger;
use super::plan::{Source, Work, assign};

/// Ranges in flight over all peers: dig-download's own default, so that policies compare. Higher: more memory, deeper
/// queues at slow peers. Lower: long paths idle between a range's end and the next request.
pub(super) const PARALLEL_RANGES: usize = 8;

/// What the engine is told as its caps: never binding, because the assignments carry the real ones.
pub(super) const ENGINE_CAP: usize = 64;

/// The plan is renewed once this part of its slots has completed. Higher: stale plans. Lower: the selector is asked for
/// every range, and a plan is superseded before it was used.
const RENEW_PART: usize = 4;

/// How much longer than the average an unproven peer is assumed to take for a range when the end is near.
const UNPROVEN_FACTOR: f64 = 4.0;

pub(super) struct Adapter {
    ledger: Arc<Ledger>,
    holders: Arc<Holders>,
    selector: Arc<PeerSelector>,
    content: ContentId,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    selection: Selection,
    made: bool,
    /// The candidates it was made from.
    known: HashSet<PeerId>,
    /// Peers that failed since it was made.
    failed: HashSet<PeerId>,
    /// Ranges completed when it was made.
    completed: usize,
}

/// Why the selector is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Nothing,
    Select,
    Rebalance,
}

impl Adapter {
    pub(super) fn new(
        ledger: Arc<Ledger>,
        holders: Arc<Holders>,
        selector: Arc<PeerSelector>,
        content: ContentId,
    ) -> Self {
        Adapter { ledger, holders, selector, content, plan: Mutex::default() }
    }

    fn request(&self) -> ContentRequest {
        let mut request = ContentRequest::new(self.content, PARALLEL_RANGES);
        request.total_length = Some(self.ledger.layout().manifest().total_length());
        request.range_count = Some(self.ledger.layout().range_count());
        request
    }

    /// Asks the selector for a plan over `candidates`.
    fn renew(&self, plan: &mut Plan, ask: Ask, candidates: &[PeerId], active: &[(PeerId, usize)]) {
        let request = self.request();
        let mut selection = match ask {
            Ask::Nothing => return,
            Ask::Select => self.selector.select(&request, &self.candidates(candidates)),
            Ask::Rebalance => {
                for candidate in self.candidates(candidates).iter().filter(|c| !plan.known.contains(&c.peer_id)) {
                    self.selector.upsert_candidate(candidate);
                }
                let mut busy: HashSet<PeerId> = active.iter().map(|(p, _)| *p).collect();
                busy.extend(&plan.failed);
                let mut busy: Vec<PeerId> = busy.into_iter().collect();
                busy.sort_by_key(|p| *p.as_bytes());
                let layout = self.ledger.layout();
                let pending = self.ledger.pending().into_iter().filter_map(|r| layout.chunk(r)).map(|c| c.index);
                self.selector.rebalance(&request, &busy, &RangePlanDelta::of_indices(pending))
            }
        };
        // A rebalance may know peers that hold the content but were not offered by the engine just now.
        selection.peers.retain(|p| candidates.contains(&p.peer_id));
        if selection.is_empty() && ask == Ask::Rebalance {
            selection = self.selector.select(&request, &self.candidates(candidates));
            selection.peers.retain(|p| candidates.contains(&p.peer_id));
        }
        *plan = Plan {
            selection,
            made: true,
            known: candidates.iter().copied().collect(),
            failed: HashSet::new(),
            completed: self.ledger.completed(),
        };
    }

    fn candidates(&self, peers: &[PeerId]) -> Vec<Candidate> {
        peers.iter().map(|p| self.holders.candidate(p)).collect()
    }

    fn sources(&self, plan: &Plan, candidates: &[PeerId], active: &[(PeerId, usize)]) -> Vec<Source> {
        let in_flight = |peer: &PeerId| active.iter().find(|(p, _)| p == peer).map_or(0, |(_, n)| *n);
        let usable = plan.selection.peers.iter().filter(|p| candidates.contains(&p.peer_id));
        usable
            .map(|p| Source {
                peer: p.peer_id,
                cap: p.max_concurrency as usize,
                in_flight: in_flight(&p.peer_id),
                range_s: self.ledger.range_time(&p.peer_id).map(|t| t.as_secs_f64()),
            })
            .collect()
    }
}

/// Whether and how the selector is to be asked.
fn ask(plan: &Plan, candidates: &[PeerId], completed: usize, pending: usize, room: bool) -> Ask {
    if !plan.made {
        return Ask::Select;
    }
    let new = candidates.iter().any(|c| !plan.known.contains(c));
    let dropped = plan.selection.peers.iter().any(|p| !candidates.contains(&p.peer_id));
    let used_up = !room && pending <= PARALLEL_RANGES;
    if !plan.failed.is_empty() || new || dropped || used_up {
        return Ask::Rebalance;
    }
    let slots: usize = plan.selection.peers.iter().map(|p| p.max_concurrency as usize).sum();
    if completed.saturating_sub(plan.completed) >= slots.min(PARALLEL_RANGES).div_ceil(RENEW_PART).max(1) {
        return Ask::Select;
    }
    Ask::Nothing
}

impl SourceSelector for Adapter {
    fn select(&self, request: &SelectRequest) -> SelectPlan {
        let pending = self.ledger.pending();
        let active = self.ledger.active();
        let in_flight: usize = active.iter().map(|(_, n)| n).sum();
        let free = PARALLEL_RANGES.saturating_sub(in_flight);
        let mut candidates: Vec<PeerId> =
            request.candidates.iter().filter_map(|c| PeerId::from_hex(&c.peer_id)).collect();
        // With proven liars alone, an empty plan is right: it makes the engine look for others, and end if there are none.
        candidates.retain(|p| !self.ledger.is_expelled(p));
        candidates.sort_by_key(|p| *p.as_bytes());
        candidates.dedup();
        self.ledger.set_candidates(candidates.clone());
        if free == 0 || pending.is_empty() || candidates.is_empty() {
            return SelectPlan::default();
        }

        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.sources(&plan, &candidates, &active).iter().any(|s| s.in_flight < s.cap);
        let asked = ask(&plan, &candidates, self.ledger.completed(), pending.len(), room);
        self.renew(&mut plan, asked, &candidates, &active);

        let mut sources = self.sources(&plan, &candidates, &active);
        if sources.is_empty() && in_flight == 0 {
            // The selector wants none of them, but an empty plan now would end the download: somebody has to try.
            let last_resort = candidates.iter().map(|p| Source { peer: *p, cap: 1, in_flight: 0, range_s: None });
            sources = last_resort.collect();
        }
        let elsewhere = in_flight - sources.iter().map(|s| s.in_flight).sum::<usize>();
        let work = Work {
            pending: pending.len(),
            free,
            unproven_s: self.ledger.average_range_time().map(|t| t.as_secs_f64() * UNPROVEN_FACTOR),
        };
        let peers = assign(&mut sources, work, elsewhere);

        let mut assignments = Vec::with_capacity(peers.len());
        for (range, peer) in pending.into_iter().zip(peers) {
            self.ledger.assign(range, peer);
            assignments.push((range, peer.to_hex()));
        }
        for source in &sources {
            let before = active.iter().find(|(p, _)| *p == source.peer).map_or(0, |(_, n)| *n);
            match u32::try_from(source.in_flight - before) {
                Ok(0) | Err(_) => {}
                Ok(dispatched) => self.selector.on_dispatch(&source.peer, dispatched),
            }
        }
        SelectPlan { ordered: Vec::new(), assignments }
    }

    /// Only notes that the plan has a failure in it: outcomes reach the selector from the transport, which knows the
    /// range, the bytes and the times.
    fn record(&self, outcome: &RangeOutcome) {
        if outcome.result == RangeResult::Ok {
            return;
        }
        if let Some(peer) = PeerId::from_hex(&outcome.peer_id) {
            self.plan.lock().unwrap_or_else(PoisonError::into_inner).failed.insert(peer);
        }
    }
}

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;
