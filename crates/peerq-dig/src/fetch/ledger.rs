//! Who is fetching what right now (HOST-D1, HOST-D2).
//!
//! dig-download does not tell its selector which range an outcome belongs to. The adapter that assigns ranges and the
//! transport that carries them therefore share this ledger: the adapter enters an assignment, the transport closes it in
//! the very poll in which the engine learns of the result, so that both always agree with the engine on what is pending
//! and who is busy. It also holds what the patience rule looks at: every running request with its arrival stamps.

mod judge;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dig_dht::ContentId;
use dig_nat::PeerId;
use tokio::time::Instant;

use super::ending::{Ending, Seen};
use super::layout::{Chunk, MissingLayout};
use super::patience::Expectation;
use super::reader::Stamps;
use super::scorebook::Scorebook;
pub(super) use judge::Verdict;
use state::{Phase, RangeState, Running, State};

/// Hard failures after which a peer is not asked again in this download. Higher: more wasted transfers, and a longer end
/// when nobody else is left. Lower: one rotten block on an honest disk loses a source.
const LIES_MAX: u32 = 3;

/// Weight of the newest range in a peer's usual concurrency.
const CONCURRENCY_WEIGHT: f64 = 0.25;

/// The shared book of one download. Bounded by the number of chunks and of candidates.
pub(super) struct Ledger {
    layout: Arc<MissingLayout>,
    book: Arc<Scorebook>,
    content: ContentId,
    state: Mutex<State>,
}

/// One request for one chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    id: u64,
    pub(super) range: usize,
    pub(super) chunk: Chunk,
    pub(super) peer: PeerId,
    in_flight: usize,
    doublings: u32,
}

impl Ledger {
    pub(super) fn new(layout: Arc<MissingLayout>, book: Arc<Scorebook>, content: ContentId) -> Self {
        let fresh = RangeState { phase: Phase::Pending, proven: false, abandonments: 0 };
        let ranges = vec![fresh; layout.range_count()];
        let state = State { pending: ranges.len(), ranges, ..State::default() };
        Ledger { layout, book, content, state: Mutex::new(state) }
    }

    pub(super) fn layout(&self) -> &Arc<MissingLayout> {
        &self.layout
    }

    /// Ranges that nobody has been asked for, ascending.
    pub(super) fn pending(&self) -> Vec<usize> {
        let state = self.lock();
        (0..state.ranges.len()).filter(|r| state.ranges[*r].phase == Phase::Pending).collect()
    }

    /// Peers with ranges in flight, and how many, ordered by peer id.
    pub(super) fn active(&self) -> Vec<(PeerId, usize)> {
        let state = self.lock();
        let mut active: Vec<_> =
            state.peers.iter().filter(|(_, p)| p.in_flight > 0).map(|(id, p)| (*id, p.in_flight)).collect();
        active.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        active
    }

    /// Whether `peer` has lied too often in this download to be asked again in it, whatever the selector thinks.
    pub(super) fn is_expelled(&self, peer: &PeerId) -> bool {
        self.lock().peers.get(peer).is_some_and(|p| p.lies >= LIES_MAX)
    }

    /// Whether bytes of a running request have come within the last `window`.
    pub(super) fn is_receiving(&self, window: Duration) -> bool {
        let now = Instant::now();
        let last = |r: &Running| Some(r.stamps.sent() + r.stamps.last_byte()?);
        let fresh = |at| now.saturating_duration_since(at) < window;
        self.lock().running.values().filter_map(last).any(fresh)
    }

    /// Notes who could be asked at present.
    pub(super) fn set_candidates(&self, candidates: Vec<PeerId>) {
        self.lock().candidates = candidates;
    }

    /// Enters that `range` goes to `peer`.
    pub(super) fn assign(&self, range: usize, peer: PeerId) {
        self.lock().assign(range, peer);
    }

    /// Starts a request for `range` at `peer`; enters the assignment if no adapter has.
    pub(super) fn begin(&self, range: usize, peer: PeerId) -> Option<Attempt> {
        let chunk = self.layout.chunk(range)?;
        let (rate, first_byte) = self.learned(&peer);
        let mut state = self.lock();
        if state.ranges.get(range)?.phase != Phase::InFlight {
            state.assign(range, peer);
        }
        let id = state.next_attempt;
        state.next_attempt += 1;
        let doublings = state.ranges[range].abandonments;
        let average_rate = state.average_rate();
        let peer_state = state.peers.entry(peer).or_default();
        let in_flight = peer_state.in_flight.max(1);
        let usual = peer_state.concurrency.unwrap_or(1.0).max(1.0);
        let crowding = (in_flight as f64 / usual).max(1.0);
        let expectation = Expectation { rate, first_byte, average_rate, crowding, length: chunk.length };
        let limits = expectation.limits(doublings);
        state.running.insert(id, Running { peer, stamps: Stamps::new(Instant::now()), limits });
        Some(Attempt { id, range, chunk, peer, in_flight, doublings })
    }

    /// The request has been sent; its answer is stamped from now on.
    pub(super) fn sent(&self, attempt: &Attempt, stamps: Arc<Stamps>) {
        if let Some(running) = self.lock().running.get_mut(&attempt.id) {
            running.stamps = stamps;
        }
    }

    /// What is seen of a running request.
    pub(super) fn seen(&self, attempt: &Attempt) -> Seen {
        match self.lock().running.get(&attempt.id) {
            None => Seen::default(),
            Some(r) => Seen {
                bytes: r.stamps.payload_bytes().min(attempt.chunk.length),
                duration: r.stamps.sent().elapsed(),
                first_byte: r.stamps.first_byte(),
            },
        }
    }

    /// Reports how a request ended, to the selector and the tallies. To be called once per attempt.
    pub(super) fn report(&self, attempt: &Attempt, ending: &Ending, seen: Seen) {
        {
            let mut state = self.lock();
            if *ending == Ending::Verified {
                state.bytes = state.bytes.saturating_add(seen.bytes);
                state.busy = state.busy.saturating_add(seen.duration);
                let peer = state.peers.entry(attempt.peer).or_default();
                let now = attempt.in_flight as f64;
                let usual = peer.concurrency.get_or_insert(now);
                *usual += CONCURRENCY_WEIGHT * (now - *usual);
            }
            if matches!(ending, Ending::Hostile(_)) {
                let peer = state.peers.entry(attempt.peer).or_default();
                peer.lies = peer.lies.saturating_add(1);
            }
            if matches!(ending, Ending::TimedOut(_) | Ending::Cancelled) {
                state.ranges[attempt.range].abandonments += 1;
            }
        }
        self.book.record_chunk(attempt.peer, self.content, attempt.chunk, ending, seen);
    }

    /// Closes the assignment, in step with the engine. `done` if the engine is given the bytes, which were proven.
    pub(super) fn close(&self, attempt: &Attempt, done: bool) {
        let mut state = self.lock();
        if let Some(running) = state.running.remove(&attempt.id) {
            let last = running.stamps.last_byte().map(|at| running.stamps.sent() + at);
            let peer = state.peers.entry(attempt.peer).or_default();
            peer.in_flight = peer.in_flight.saturating_sub(1);
            peer.last_byte = peer.last_byte.max(last);
            state.ranges[attempt.range].phase = if done { Phase::Done } else { Phase::Pending };
            state.ranges[attempt.range].proven = done;
            if !done {
                state.pending += 1;
            }
        }
    }

    /// Takes the mark that the bytes of `range` were proven on arrival.
    pub(super) fn take_proven(&self, range: usize) -> bool {
        self.lock().ranges.get_mut(range).is_some_and(|r| std::mem::take(&mut r.proven))
    }

    /// Rate of one range and time to first byte that the selector has learned of `peer`.
    pub(super) fn learned(&self, peer: &PeerId) -> (Option<f64>, Option<Duration>) {
        let snapshot = self.book.selector().and_then(|s| s.peer_snapshot(peer));
        let rate = snapshot.as_ref().and_then(|s| s.throughput_bps).filter(|r| r.is_finite() && *r > 0.0);
        let rtt = snapshot.and_then(|s| s.rtt_ms).and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        (rate, rtt)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
