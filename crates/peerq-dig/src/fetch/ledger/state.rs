//! What the ledger knows: ranges, busy peers and running requests, with the questions that need nothing else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dig_nat::PeerId;
use tokio::time::Instant;

use crate::fetch::patience::{Lateness, Limits};
use crate::fetch::reader::Stamps;

/// How long a peer must be silent to count as silent together with others.
const SILENT_TOGETHER: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    InFlight,
    Done,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RangeState {
    pub(super) phase: Phase,
    /// The transport has proven the bytes it is about to hand over.
    pub(super) proven: bool,
    pub(super) abandonments: u32,
}

#[derive(Debug, Default)]
pub(super) struct PeerState {
    pub(super) in_flight: usize,
    /// Hard failures in this download.
    pub(super) lies: u32,
    /// Usual number of ranges in flight when one of its ranges completed.
    pub(super) concurrency: Option<f64>,
    pub(super) last_byte: Option<Instant>,
}

pub(super) struct Running {
    pub(super) peer: PeerId,
    pub(super) stamps: Arc<Stamps>,
    pub(super) limits: Limits,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) ranges: Vec<RangeState>,
    pub(super) pending: usize,
    pub(super) peers: HashMap<PeerId, PeerState>,
    pub(super) running: HashMap<u64, Running>,
    pub(super) next_attempt: u64,
    pub(super) candidates: Vec<PeerId>,
    pub(super) bytes: u64,
    pub(super) busy: Duration,
}

impl State {
    pub(super) fn assign(&mut self, range: usize, peer: PeerId) {
        let Some(state) = self.ranges.get_mut(range) else {
            return;
        };
        if state.phase == Phase::Pending {
            state.phase = Phase::InFlight;
            self.pending -= 1;
            self.peers.entry(peer).or_default().in_flight += 1;
        }
    }

    pub(super) fn average_rate(&self) -> Option<f64> {
        let seconds = self.busy.as_secs_f64();
        (self.bytes > 0 && seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }

    /// Time since the last byte of `peer` on any range, as far as requests to it have been running.
    pub(super) fn silence(&self, peer: &PeerId, now: Instant) -> Duration {
        let running = self.running.values().filter(|r| r.peer == *peer);
        let last = running.filter_map(|r| Some(r.stamps.sent() + r.stamps.last_byte()?)).max();
        let last = last.max(self.peers.get(peer).and_then(|p| p.last_byte));
        last.map_or(Duration::MAX, |at| now.saturating_duration_since(at))
    }

    /// Whether most of the others are late in the same way: then the fault is more likely ours. Others are those that are
    /// busy, and those that delivered while `peer` was late with a request sent `elapsed` ago: at the end of a download
    /// the good ones are done, and the bad ones left over are no witnesses for each other.
    pub(super) fn late_together(&self, peer: &PeerId, lateness: Lateness, elapsed: Duration, now: Instant) -> bool {
        let late_for = match lateness {
            Lateness::Total => elapsed,
            _ => elapsed.min(self.silence(peer, now)),
        };
        // Not those last heard when it fell silent: an outage does not stop everybody at the very same moment.
        let delivered = |state: &PeerState| {
            state.last_byte.is_some_and(|at| now.saturating_duration_since(at) + SILENT_TOGETHER <= late_for)
        };
        let delivering = self.peers.iter().filter(|(id, state)| *id != peer && delivered(state));
        let mut others: HashMap<PeerId, bool> = delivering.map(|(id, _)| (*id, false)).collect();
        for running in self.running.values().filter(|r| r.peer != *peer) {
            let elapsed = now.saturating_duration_since(running.stamps.sent());
            let late = match lateness {
                Lateness::Total => elapsed * 2 >= running.limits.total,
                _ => elapsed.min(self.silence(&running.peer, now)) >= SILENT_TOGETHER,
            };
            *others.entry(running.peer).or_default() |= late;
        }
        let late = others.values().filter(|l| **l).count();
        late * 2 > others.len()
    }
}
