//! How one request to a peer ended, and what that says about the peer (MEAS-10, HOST-D2, HOST-D3).
//!
//! The one idea: blame follows proof. Bytes that contradict the manifest prove a fault of their sender, since the
//! connection is authenticated and the manifest verified. Bytes that are merely missing prove nothing: an honest peer
//! whose connection is cut looks, to the stream reader, like a clean end of stream.

use std::time::Duration;

use dig_peer_selector::{FailureReason, OutcomeResult};

/// The end of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// Everything arrived and is proven.
    Verified,
    /// What arrived is provably not what was asked for, or breaks the protocol.
    Hostile(String),
    /// The stream ended or broke before everything was there.
    Interrupted(String),
    /// No stream could be opened.
    Unreachable(String),
    /// The peer answered that it does not have this.
    Unavailable(String),
    /// The peer was given up on, or never got as far as an answer in time.
    TimedOut(String),
    /// We lost interest; nothing to do with the peer.
    Cancelled,
}

/// What was seen of one request, whatever its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Payload bytes that arrived; an estimate from the wire bytes if the request did not end by itself.
    pub(super) bytes: u64,
    /// From the request until its last byte, or until it was given up.
    pub(super) duration: Duration,
    /// From the request until the first byte of the answer.
    pub(super) first_byte: Option<Duration>,
}

impl Ending {
    /// The same in the selector's terms.
    pub(super) fn result(&self, bytes: u64) -> OutcomeResult {
        let failure = |reason| OutcomeResult::Failure { reason };
        match self {
            Ending::Verified => OutcomeResult::Success,
            Ending::Hostile(_) => failure(FailureReason::VerificationFailed),
            Ending::Interrupted(_) => OutcomeResult::Interrupted { bytes_before: bytes },
            Ending::Unreachable(_) => failure(FailureReason::Transport),
            Ending::Unavailable(_) => failure(FailureReason::Unavailable),
            Ending::TimedOut(_) => failure(FailureReason::Timeout),
            Ending::Cancelled => failure(FailureReason::Cancelled),
        }
    }

    /// Why the peer could not be used, if it could not.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Ending::Hostile(why)
            | Ending::Interrupted(why)
            | Ending::Unreachable(why)
            | Ending::Unavailable(why)
            | Ending::TimedOut(why) => Some(why),
            Ending::Verified | Ending::Cancelled => None,
        }
    }
}

/// Whole milliseconds, rounded up: anything that took time took at least one, or a fast peer would have no rate.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX).max(1)
}

/// The end of a stream that broke while it was read. `ours` tells whether the reader saw the connection fail or end;
/// otherwise every byte came in order over an authenticated connection, so the broken frame is the sender's.
pub(super) fn broken_stream(connection_ended: bool, why: String) -> Ending {
    if connection_ended { Ending::Interrupted(why) } else { Ending::Hostile(why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_connection_is_never_a_hard_failure_but_a_malformed_frame_is() {
        let hard = |e: Ending| matches!(e.result(5), OutcomeResult::Failure { reason } if reason.is_hard());
        assert!(!hard(broken_stream(true, "eof".into())));
        assert!(hard(broken_stream(false, "bad frame".into())));
        assert!(!hard(Ending::TimedOut(String::new())));
        assert!(!hard(Ending::Unreachable(String::new())));
    }

    #[test]
    fn an_interruption_keeps_the_bytes_that_came_before_it() {
        let cut = Ending::Interrupted("cut".into()).result(9);
        assert_eq!(cut, OutcomeResult::Interrupted { bytes_before: 9 });
    }

    #[test]
    fn durations_round_up_so_that_a_fast_range_still_has_a_rate() {
        assert_eq!(millis(Duration::ZERO), 1);
        assert_eq!(millis(Duration::from_micros(300)), 1);
        assert_eq!(millis(Duration::from_micros(1001)), 2);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }
}
