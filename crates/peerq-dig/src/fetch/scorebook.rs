//! The one place where the end of a request becomes an outcome for the selector and a line of the report (MEAS-10).
//!
//! Everything that talks to a peer on behalf of a fetch (asking for availability, the manifest, the chunks) ends here,
//! once per request. In a round-robin fetch there is no selector, and the tallies are all that is kept.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use dig_dht::ContentId;
use dig_nat::PeerId;
use dig_peer_selector::{OutcomeKind, PeerSelector, TransferOutcome};

use super::ending::{Ending, Seen, millis};
use super::error::HolderFailure;
use super::layout::Chunk;
use super::report::PeerReport;

/// Most peers tallied in one fetch; more than any provider set holds, and a bound on what strangers can make us keep.
/// Outcomes of further peers still reach the selector, which has its own bound.
const MAX_PEERS: usize = 4096;

/// Tallies of one fetch, and the way to its selector.
pub(super) struct Scorebook {
    selector: Option<Arc<PeerSelector>>,
    peers: Mutex<HashMap<PeerId, PeerReport>>,
}

impl Scorebook {
    pub(super) fn new(selector: Option<Arc<PeerSelector>>) -> Self {
        Scorebook { selector, peers: Mutex::default() }
    }

    pub(super) fn selector(&self) -> Option<&Arc<PeerSelector>> {
        self.selector.as_ref()
    }

    /// Notes where a peer is reached.
    pub(super) fn met(&self, peer: PeerId, addr: Option<SocketAddr>) {
        self.with(peer, |report| report.addr = addr.or(report.addr));
    }

    /// Takes the end of a request that no plan dispatched: for availability or a manifest. It is told to the selector as a
    /// dispatch and its end, so that nobody's count of what is in flight suffers, and as the one range of its resource,
    /// because it says something about this very peer.
    pub(super) fn record_unplanned(&self, peer: PeerId, content: ContentId, ending: &Ending, seen: Seen) {
        if let Some(selector) = &self.selector {
            selector.on_dispatch(&peer, 1);
        }
        let kind = OutcomeKind::Range { index: 0, offset: 0, length: seen.bytes };
        self.take(peer, content, kind, ending, seen);
    }

    /// Takes the end of a request for a chunk, exactly once per request.
    pub(super) fn record_chunk(&self, peer: PeerId, content: ContentId, chunk: Chunk, ending: &Ending, seen: Seen) {
        if *ending == Ending::Verified {
            self.with(peer, |report| report.bytes = report.bytes.saturating_add(seen.bytes));
        }
        let Chunk { index, offset, length } = chunk;
        self.take(peer, content, OutcomeKind::Range { index, offset, length }, ending, seen);
    }

    fn take(&self, peer: PeerId, content: ContentId, kind: OutcomeKind, ending: &Ending, seen: Seen) {
        let result = ending.result(seen.bytes);
        self.with(peer, |report| {
            report.outcomes.count(&result);
            if let Some(why) = ending.reason() {
                report.last_failure = Some(HolderFailure::new(peer, why).reason);
            }
        });
        if let Some(selector) = &self.selector {
            selector.record_outcome(&TransferOutcome {
                peer_id: peer,
                content,
                kind,
                result,
                bytes: seen.bytes,
                duration_ms: millis(seen.duration),
                rtt_ms: seen.first_byte.map(millis),
                at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            });
        }
    }

    /// The tallies, ordered by peer id.
    pub(super) fn peers(&self) -> Vec<PeerReport> {
        let mut peers: Vec<_> = self.lock().values().cloned().collect();
        peers.sort_by(|a, b| a.peer_id.as_bytes().cmp(b.peer_id.as_bytes()));
        peers
    }

    /// The last failure of every peer that had one.
    pub(super) fn failures(&self) -> Vec<HolderFailure> {
        self.peers()
            .into_iter()
            .filter_map(|p| Some(HolderFailure { peer_id: p.peer_id, reason: p.last_failure? }))
            .collect()
    }

    fn with(&self, peer: PeerId, change: impl FnOnce(&mut PeerReport)) {
        let mut peers = self.lock();
        if peers.len() < MAX_PEERS || peers.contains_key(&peer) {
            change(peers.entry(peer).or_insert_with(|| PeerReport::new(peer)));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PeerId, PeerReport>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
