//! How a node misbehaves, for swarms and tests with hostile peers (HOST-D4, issue A's hostile kinds).
//!
//! The one idea: every fault starts after a good first impression. Handshake, availability, discovery and the smallest
//! requests work as with an honest node, except for [`Fault::NeverAnswers`]; a peer that fails those is never chosen and
//! tests nothing.

use std::time::Duration;

use crate::link::Lane;

/// Requests of at most this many bytes are answered even by a node that is silent or cuts: enough to read a layout.
pub(super) const PROBE_BYTES: u64 = 4096;

/// What is wrong with a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the node is honest.
    #[default]
    None,
    /// Every byte of files and manifests is wrong; lengths and layouts are right.
    CorruptBytes,
    /// The node is fast until it has served this many bytes in all, and from then on as slow as the rate, in all.
    DribbleAfter {
        /// Payload bytes served before it slows down.
        bytes: u64,
        /// Payload bytes per second afterwards, over all its connections. 0 counts as 1.
        rate_bytes_per_s: u64,
    },
    /// The node takes requests for file data and never answers them.
    SilentAfterAccept,
    /// The node cuts the connection, with everything on it, half-way through each range.
    CutMidRange,
    /// The node completes the handshake and then answers nothing at all, not even what it has.
    NeverAnswers,
}

/// A fault at work in one node.
pub(super) struct Misbehaviour {
    pub(super) fault: Fault,
    dribble: Option<Lane>,
}

impl Misbehaviour {
    pub(super) fn new(fault: Fault) -> Self {
        let dribble = match fault {
            Fault::DribbleAfter { rate_bytes_per_s, .. } => Some(Lane::new(Some(rate_bytes_per_s), Duration::ZERO)),
            _ => None,
        };
        Misbehaviour { fault, dribble }
    }

    /// Makes `bytes` wrong if the fault says so; twice the same bytes, twice the same result.
    pub(super) fn distort(&self, bytes: &mut [u8]) {
        if self.fault == Fault::CorruptBytes {
            bytes.iter_mut().for_each(|byte| *byte ^= 0xa5);
        }
    }

    /// The most bytes to send at once when `served` have been.
    pub(super) fn piece_bytes(&self, served: u64) -> usize {
        match self.fault {
            Fault::DribbleAfter { bytes, rate_bytes_per_s } if served >= bytes => {
                (rate_bytes_per_s / 10).clamp(1, 32 * 1024) as usize
            }
            Fault::DribbleAfter { bytes, .. } => (bytes - served).min(usize::MAX as u64) as usize,
            _ => usize::MAX,
        }
    }

    /// Waits before `length` bytes are sent, if the fault makes the node slow now.
    pub(super) async fn dawdle(&self, served: u64, length: usize) {
        match (self.fault, &self.dribble) {
            (Fault::DribbleAfter { bytes, .. }, Some(lane)) if served >= bytes => {
                let due = lane.send(length).await;
                tokio::time::sleep_until(due).await;
            }
            _ => {}
        }
    }

    /// Whether a request for `length` bytes of file data is taken and never answered.
    pub(super) fn ignores(&self, length: u64) -> bool {
        self.fault == Fault::SilentAfterAccept && length > PROBE_BYTES
    }

    /// After how many bytes of an answer of `length` the connection is cut, if it is.
    pub(super) fn cut_after(&self, length: u64) -> Option<u64> {
        (self.fault == Fault::CutMidRange && length > PROBE_BYTES).then_some(length / 2)
    }
}
