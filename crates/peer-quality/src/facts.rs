//! Facts: what a host tells the engine, one at a time. They are never trusted to be sane.

use crate::units::{Bytes, Span};

/// One fact about one peer. A peer that was never heard of before is admitted by its first fact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// Requests were sent to it just now.
    Sent {
        /// How many.
        requests: u32,
    },
    /// A request to it ended.
    Ended(Delivery),
    /// There is a live link to it.
    Connected,
    /// The link is gone; what was learned stays.
    Disconnected,
    /// How it is reached became known.
    Reached(Path),
    /// The host bans it.
    Banned,
    /// The host admits it again.
    Readmitted,
}

/// How one request to a peer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes of the body that arrived.
    pub bytes: Bytes,
    /// From sending the request to its end.
    pub elapsed: Span,
    /// From sending the request to the first byte, where the host knows it.
    pub first_byte: Option<Span>,
    /// How it ended.
    pub end: End,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything arrived and was accepted.
    Completed,
    /// The connection broke after some of it.
    Interrupted,
    /// It failed, and whose doing it was.
    Failed(Fault),
    /// We gave it up: nobody's fault.
    Cancelled,
}

/// Why a request failed, split by what may be concluded about the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing, or not enough, came in time.
    Timeout,
    /// The connection could not be made or broke.
    Transport,
    /// The peer answered that it does not have it, or will not serve it now.
    Unavailable,
    /// The bytes contradict what they are named by: proof.
    Verification,
    /// The host cannot say.
    Unknown,
}

/// How a peer is reached, as far as capacity goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Path {
    /// Peer to peer, with or without help through a NAT.
    Direct,
    /// A relay carries every byte.
    Relayed,
    /// Not known.
    #[default]
    Unknown,
}
