//! What a transfer measured (spec §5.2): the only thing that moves a peer's quality (spec §9.2).

use dig_dht::ContentId;
use dig_nat::PeerId;
use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span};

/// What was transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// One range.
    Range {
        /// Its index in the plan.
        index: usize,
        /// Its first byte.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// A whole request, over all its sources: says nothing about one range of one peer.
    Request {
        /// Bytes of the whole.
        total_length: u64,
    },
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeResult {
    /// Delivered and verified.
    Success,
    /// Not delivered.
    Failure {
        /// Why.
        reason: FailureReason,
    },
    /// Broken off by the network.
    Interrupted {
        /// Bytes that had arrived.
        bytes_before: u64,
    },
}

/// Why a transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Not enough came in time.
    Timeout,
    /// The connection could not be made, or broke.
    Transport,
    /// The peer does not have it.
    Unavailable,
    /// The bytes do not match the content: proof against the peer.
    VerificationFailed,
    /// The host gave it up: nobody's fault.
    Cancelled,
    /// Anything else.
    Other,
}

impl FailureReason {
    /// Whether it is proof against the peer.
    pub fn is_hard(self) -> bool {
        self == FailureReason::VerificationFailed
    }

    /// Whether it is the peer's doing.
    pub fn blames_peer(self) -> bool {
        self != FailureReason::Cancelled
    }
}

/// One measured end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferOutcome {
    /// From whom; verified by the transport.
    pub peer_id: PeerId,
    /// Of which content.
    pub content: ContentId,
    /// What was transferred.
    pub kind: OutcomeKind,
    /// How it ended.
    pub result: OutcomeResult,
    /// Bytes that arrived.
    pub bytes: u64,
    /// From the request to the end, milliseconds.
    pub duration_ms: u64,
    /// From the request to the first byte, milliseconds, where measured.
    pub rtt_ms: Option<u64>,
    /// When it ended, unix seconds.
    pub at: u64,
}

impl TransferOutcome {
    /// Bytes per second, where both bytes and duration are above zero.
    pub fn throughput_bps(&self) -> Option<f64> {
        (self.bytes > 0 && self.duration_ms > 0).then(|| self.bytes as f64 * 1000.0 / self.duration_ms as f64)
    }

    /// Whether it was delivered and verified.
    pub fn is_success(&self) -> bool {
        self.result == OutcomeResult::Success
    }

    /// Whether it is proof against the peer.
    pub fn is_hard_failure(&self) -> bool {
        matches!(self.result, OutcomeResult::Failure { reason } if reason.is_hard())
    }

    /// The engine's fact of this outcome.
    pub(crate) fn delivery(&self) -> Delivery {
        let (end, bytes) = match self.result {
            OutcomeResult::Success => (End::Completed, self.bytes),
            OutcomeResult::Interrupted { bytes_before } => (End::Interrupted, self.bytes.max(bytes_before)),
            OutcomeResult::Failure { reason } => (end_of(reason), self.bytes),
        };
        Delivery {
            bytes: Bytes::new(bytes),
            elapsed: Span::from_millis(self.duration_ms),
            first_byte: self.rtt_ms.map(Span::from_millis),
            end,
        }
    }
}

fn end_of(reason: FailureReason) -> End {
    match reason {
        FailureReason::Timeout => End::Failed(Fault::Timeout),
        FailureReason::Transport => End::Failed(Fault::Transport),
        FailureReason::Unavailable => End::Failed(Fault::Unavailable),
        FailureReason::VerificationFailed => End::Failed(Fault::Verification),
        FailureReason::Other => End::Failed(Fault::Unknown),
        FailureReason::Cancelled => End::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(bytes: u64, duration_ms: u64, result: OutcomeResult) -> TransferOutcome {
        TransferOutcome {
            peer_id: PeerId::from_bytes([1; 32]),
            content: ContentId::store([1; 32]),
            kind: OutcomeKind::Range { index: 0, offset: 0, length: 1000 },
            result,
            bytes,
            duration_ms,
            rtt_ms: None,
            at: 0,
        }
    }

    #[test]
    fn throughput_needs_bytes_and_time() {
        assert_eq!(outcome(1000, 500, OutcomeResult::Success).throughput_bps(), Some(2000.0));
        assert_eq!(outcome(0, 500, OutcomeResult::Success).throughput_bps(), None);
        assert_eq!(outcome(1000, 0, OutcomeResult::Success).throughput_bps(), None);
    }

    #[test]
    fn an_interruption_keeps_the_larger_count_of_bytes() {
        let delivery = outcome(10, 5, OutcomeResult::Interrupted { bytes_before: 700 }).delivery();
        assert_eq!((delivery.bytes, delivery.end), (Bytes::new(700), End::Interrupted));
    }

    #[test]
    fn only_a_failed_verification_is_proof() {
        let failed = |reason| outcome(0, 0, OutcomeResult::Failure { reason });
        assert!(failed(FailureReason::VerificationFailed).is_hard_failure());
        assert!(!failed(FailureReason::Timeout).is_hard_failure());
        assert!(!FailureReason::Cancelled.blames_peer() && FailureReason::Timeout.blames_peer());
    }
}
