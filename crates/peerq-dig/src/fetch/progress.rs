//! What can be seen of a running fetch (HOST-D6): snapshots, coalesced, the newest only.

use std::collections::VecDeque;
use std::time::Duration;

use dig_nat::PeerId;
use tokio::time::Instant;

use super::ledger::Ledger;
use super::scorebook::Scorebook;

/// What a fetch is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchState {
    /// Looking for holders, and for the manifest.
    #[default]
    FindingHolders,
    /// Hashing what an earlier attempt left.
    Verifying,
    /// Fetching chunks.
    Downloading,
    /// Paused by the caller; requests under way finish.
    Paused,
    /// Over; `join` tells how.
    Done,
}

/// A snapshot of a fetch.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it is doing.
    pub state: FetchState,
    /// Verified bytes in place, those of earlier attempts included; while verifying, bytes checked.
    pub bytes_done: u64,
    /// Length of the file; `None` until its manifest is known.
    pub bytes_total: Option<u64>,
    /// Bytes that an earlier attempt had left.
    pub bytes_resumed: u64,
    /// Verified bytes per second over the last seconds.
    pub bytes_per_second: f64,
    /// Holders that confirmed having the file.
    pub holders: usize,
    /// Peers that a request is under way to, and how many.
    pub active: Vec<(PeerId, usize)>,
    /// Verified bytes by peer, ordered by peer id.
    pub bytes_by_peer: Vec<(PeerId, u64)>,
}

impl Progress {
    /// Brings the live figures up to date.
    pub(super) fn observe(&mut self, ledger: Option<&Ledger>, book: &Scorebook) {
        self.active = ledger.map(Ledger::active).unwrap_or_default();
        let peers = book.peers().into_iter().filter(|p| p.bytes > 0);
        self.bytes_by_peer = peers.map(|p| (p.peer_id, p.bytes)).collect();
    }
}

/// The time over which a rate is averaged. Longer: reacts late. Shorter: jumps with each chunk.
const RATE_WINDOW: Duration = Duration::from_secs(3);

/// Rate over a sliding window; holds at most one sample per call within the window.
#[derive(Debug, Default)]
pub(super) struct RateMeter {
    samples: VecDeque<(Instant, u64)>,
}

impl RateMeter {
    /// Takes the bytes done at `now` and tells the bytes per second.
    pub(super) fn rate(&mut self, now: Instant, bytes: u64) -> f64 {
        self.samples.push_back((now, bytes));
        while self.samples.len() > 2 && now.saturating_duration_since(self.samples[1].0) >= RATE_WINDOW {
            self.samples.pop_front();
        }
        let Some((then, before)) = self.samples.front() else {
            return 0.0;
        };
        let seconds = now.saturating_duration_since(*then).as_secs_f64();
        if seconds > 0.0 { bytes.saturating_sub(*before) as f64 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_follows_the_last_seconds_only() {
        let mut meter = RateMeter::default();
        let mut bytes = 0;
        for _ in 0..100 {
            bytes += 1000;
            meter.rate(Instant::now(), bytes);
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!((meter.rate(Instant::now(), bytes) - 10_000.0).abs() < 500.0);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(meter.rate(Instant::now(), bytes), 0.0);
        assert!(meter.samples.len() <= 64);
    }
}
