//! Facts: what a host tells the engine, one at a time. They are never trusted to be sane.

mod address_group;

pub use address_group::AddressGroup;

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
    /// Where its address lies became known (AUD-2).
    Located(AddressGroup),
    /// The host bans it.
    Banned,
    /// The host admits it again.
    Readmitted,
    /// A burst of its SDUs is over (MEAS-5).
    Burst(Burst),
    /// How long echoes took lately (MEAS-4).
    RoundTrip(RoundTrip),
    /// Its bytes come, and for longer than the gate none of them echoed an outstanding cookie (settled difference 2). Holds until the next [`RoundTrip`](Self::RoundTrip).
    EchoSilence,
    /// What the kernel says of the connection (MEAS-11).
    Kernel(Kernel),
}

/// A run of SDUs that arrived promptly one after the other (MEAS-7). Sums, so that bursts add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Burst {
    /// Sum of the gaps between its SDUs, seconds; the gap before the first is not among them.
    pub gap_s: f64,
    /// Sum of the sizes that those gaps brought: the coverage.
    pub bytes: Bytes,
    /// How many gaps.
    pub gaps: u32,
    /// Variance of one gap about what the burst's own rate predicts for its size, seconds squared.
    pub residual_variance: f64,
}

/// Quantiles of the round-trip time over a recent window, from echoes matched by the host (MEAS-4, settled difference 6).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrip {
    /// Median, seconds.
    pub median_s: f64,
    /// p80 to p85, seconds: high, yet blind to rare pauses.
    pub high_s: f64,
    /// p95, seconds.
    pub tail_s: f64,
}

/// What the kernel knows of a connection; nothing requires it (MEAS-11).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Smoothed round-trip time, seconds; 0 where unknown.
    pub rtt_s: f64,
    /// The congestion window that the peer's bytes are sent under; zero where unknown.
    pub congestion_window: Bytes,
    /// Segments sent again since the connection was made.
    pub retransmits: u64,
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

impl Path {
    /// How many there are.
    pub const COUNT: usize = 3;
}
