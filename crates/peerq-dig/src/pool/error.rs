//! Why a peer cannot be talked to, sorted by who is at fault.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dig_nat::PeerId;

/// Why there is no stream to a peer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PoolError {
    /// Nobody knows where the peer is.
    #[error("no address is known for peer {}", short(.peer))]
    NoAddress {
        /// The peer asked for.
        peer: PeerId,
    },
    /// The peer asked for is this node.
    #[error("this node is the peer asked for")]
    SelfDial,
    /// Nothing listens at the address, or the network does not lead there.
    #[error("peer {} cannot be reached at {addr}: {source}", short(.peer))]
    Unreachable {
        /// The peer asked for.
        peer: PeerId,
        /// The address tried.
        addr: SocketAddr,
        /// What the operating system says.
        source: Arc<io::Error>,
    },
    /// Someone else listens at the address: the peer's fault, or that of whoever gave the address.
    #[error("{addr} answers as peer {found}, not as {expected}; check the peer id")]
    WrongPeer {
        /// The address tried.
        addr: SocketAddr,
        /// The peer asked for.
        expected: PeerId,
        /// Who answered, by its certificate.
        found: PeerId,
    },
    /// Whoever listens at the address does not complete a TLS handshake.
    #[error("{addr} does not speak as a DIG peer: {source}")]
    Handshake {
        /// The peer asked for.
        peer: PeerId,
        /// The address tried.
        addr: SocketAddr,
        /// What TLS says.
        source: Arc<io::Error>,
    },
    /// The peer or the path is too slow.
    #[error("peer {} took longer than {after:?} for {doing}", short(.peer))]
    Timeout {
        /// The peer asked for.
        peer: PeerId,
        /// What took too long.
        doing: &'static str,
        /// The limit.
        after: Duration,
    },
    /// The connection was there and broke, or carried something that makes no sense.
    #[error("the connection to peer {} failed: {source}", short(.peer))]
    Session {
        /// The peer asked for.
        peer: PeerId,
        /// What broke.
        source: Arc<io::Error>,
    },
}

impl PoolError {
    pub(crate) fn session(peer: &PeerId, source: io::Error) -> Self {
        PoolError::Session { peer: *peer, source: Arc::new(source) }
    }

    /// The more telling of two errors of one dial: someone else answering says more than nobody answering.
    pub(super) fn or_worse(self, other: PoolError) -> PoolError {
        let weight = |error: &PoolError| match error {
            PoolError::NoAddress { .. } | PoolError::SelfDial => 0,
            PoolError::Unreachable { .. } => 1,
            PoolError::Timeout { .. } => 2,
            PoolError::Session { .. } => 3,
            PoolError::Handshake { .. } => 4,
            PoolError::WrongPeer { .. } => 5,
        };
        if weight(&other) > weight(&self) { other } else { self }
    }
}

/// Enough of a peer id to know it by.
fn short(peer: &PeerId) -> String {
    hex::encode(&peer.as_bytes()[..6])
}
