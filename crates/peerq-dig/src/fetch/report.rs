//! What a fetch tells when it is done: bytes, sources, and how each peer behaved.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dig_nat::PeerId;
use dig_peer_selector::{FailureReason, OutcomeResult};

use crate::content::FileId;

/// The result of a finished fetch.
#[derive(Debug, Clone)]
pub struct FetchReport {
    /// The file fetched; every byte of it was verified against this id.
    pub id: FileId,
    /// Where it is now.
    pub output: PathBuf,
    /// Length of the file, bytes.
    pub total_length: u64,
    /// Verified bytes that came over the network in this fetch.
    pub bytes_from_network: u64,
    /// Verified bytes that an earlier attempt had left in the staging file.
    pub bytes_resumed: u64,
    /// Time from the call until the file was in place.
    pub elapsed: Duration,
    /// Every peer that was asked for something, ordered by peer id.
    pub peers: Vec<PeerReport>,
}

impl FetchReport {
    /// Verified payload bytes by peer, for the peers that delivered any.
    pub fn bytes_by_peer(&self) -> impl Iterator<Item = (PeerId, u64)> + '_ {
        self.peers.iter().filter(|p| p.bytes > 0).map(|p| (p.peer_id, p.bytes))
    }
}

/// One peer's part in a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerReport {
    /// The peer.
    pub peer_id: PeerId,
    /// An address under which it was tried, if one is known.
    pub addr: Option<SocketAddr>,
    /// Verified payload bytes it delivered.
    pub bytes: u64,
    /// How its requests ended.
    pub outcomes: OutcomeCounts,
    /// Its last failure in words.
    pub last_failure: Option<String>,
}

impl PeerReport {
    pub(super) fn new(peer_id: PeerId) -> Self {
        PeerReport { peer_id, addr: None, bytes: 0, outcomes: OutcomeCounts::default(), last_failure: None }
    }
}

/// Requests by how they ended. Saturating counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Delivered and verified.
    pub ok: u64,
    /// Given up as too slow or silent.
    pub timeout: u64,
    /// No stream could be opened: unreachable, refused, or another identity than expected.
    pub transport: u64,
    /// The stream ended before everything was there.
    pub interrupted: u64,
    /// Answered "I do not have this".
    pub unavailable: u64,
    /// Sent bytes that are provably wrong, or broke the protocol: the hard failures.
    pub verification_failed: u64,
    /// Cancelled by us; says nothing about the peer.
    pub cancelled: u64,
    /// Anything else.
    pub other: u64,
}

impl OutcomeCounts {
    pub(super) fn count(&mut self, result: &OutcomeResult) {
        let counter = match result {
            OutcomeResult::Success => &mut self.ok,
            OutcomeResult::Interrupted { .. } => &mut self.interrupted,
            OutcomeResult::Failure { reason } => match reason {
                FailureReason::Timeout => &mut self.timeout,
                FailureReason::Transport => &mut self.transport,
                FailureReason::Unavailable => &mut self.unavailable,
                FailureReason::VerificationFailed => &mut self.verification_failed,
                FailureReason::Cancelled => &mut self.cancelled,
                FailureReason::Other => &mut self.other,
            },
        };
        *counter = counter.saturating_add(1);
    }
}
