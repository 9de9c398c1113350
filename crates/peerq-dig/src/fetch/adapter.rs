//! dig-download's `SourceSelector` over a shared `PeerSelector` (HOST-D1).
//!
//! One adapter serves one download. dig-download asks it on every turn of its loop, also when there is nothing to decide,
//! and can enforce a peer's concurrency only through explicit assignments. So the adapter asks the selector only when a
//! range can be sent, tells it exactly what is left, and pins ranges to the selected peers up to the room that each has
//! ([`plan`](super::plan)): with `select` as a rule, with `rebalance` when a peer failed since or the last ranges are out,
//! because then whoever is busy or just failed must not get more.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use dig_dht::ContentId;
use dig_download::{RangeOutcome, RangeResult, SelectPlan, SelectRequest, SourceSelector};
use dig_nat::PeerId;
use dig_peer_selector::{Candidate, ContentRequest, PeerSelector, RangePlanDelta, SelectedPeer, Selection};

use super::holders::Holders;
use super::ledger::Ledger;
use super::plan::{Source, Work, assign};

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

/// While proven peers do the work, one range in this many is spent on a trial that the selector asks for: about 5 % (RANK-3).
const RANGES_PER_TRIAL: usize = 20;

/// What is assumed of an unproven peer near the end, as a multiple of the average time of a range.
const UNPROVEN_FACTOR: f64 = 4.0;

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
    /// Ranges sent since the latest trial.
    since_trial: usize,
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

    /// The selected peers with the room that each has, trials first when one is due and left out otherwise.
    fn sources(&self, selection: &Selection, active: &[(PeerId, usize)], trial_due: bool) -> Vec<Source> {
        let source = |peer: &SelectedPeer| {
            let in_flight = active.iter().find(|(other, _)| *other == peer.peer_id).map_or(0, |(_, n)| *n);
            Source {
                peer: peer.peer_id,
                cap: in_flight.saturating_add(peer.max_concurrency as usize),
                in_flight,
                range_s: self.ledger.range_time(&peer.peer_id).map(|t| t.as_secs_f64()),
            }
        };
        let (trials, proven): (Vec<&SelectedPeer>, Vec<&SelectedPeer>) =
            selection.peers.iter().partition(|peer| peer.exploratory);
        if proven.is_empty() {
            return trials.into_iter().map(source).collect();
        }
        let trials = trials.into_iter().filter(|_| trial_due).take(1);
        trials.chain(proven).map(source).collect()
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
        let selection = self.selection(&mut history, &pending, &candidates, &active, free);
        // A trial carries one range from the front, and never one of the last.
        let trial_due = history.since_trial >= RANGES_PER_TRIAL && pending.len() > free;
        let mut sources = self.sources(&selection, &active, trial_due);
        if sources.is_empty() && in_flight == 0 {
            // The selector has no room for more, but an empty plan now would end the download: somebody has to try, unless
            // the host banned them all.
            let banned = |peer: &PeerId| self.selector.peer_snapshot(peer).is_some_and(|known| known.banned);
            let last_resort = candidates.iter().filter(|peer| !banned(peer));
            sources = last_resort.map(|p| Source { peer: *p, cap: 1, in_flight: 0, range_s: None }).collect();
        }
        let elsewhere = in_flight - sources.iter().map(|s| s.in_flight).sum::<usize>();
        let work = Work {
            pending: pending.len(),
            free,
            unproven_s: self.ledger.average_range_time().map(|t| t.as_secs_f64() * UNPROVEN_FACTOR),
        };
        let peers = assign(&mut sources, work, elsewhere);
        history.since_trial = if trial_due { 0 } else { history.since_trial.saturating_add(peers.len()) };

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
