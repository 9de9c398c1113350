//! The limits of a pool, and what it tells about its connections.

use std::net::SocketAddr;
use std::time::Duration;

use dig_nat::{PeerId, TraversalKind};

/// Limits of a [`Pool`](super::Pool).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolConfig {
    /// How long one address may take from the first packet to the end of the TLS handshake. Too short: far peers are
    /// never reached. Too long: a dead address blocks a caller. Unmeasured heuristic.
    pub connect_timeout: Duration,
    /// How long opening a stream on a live connection may take; it needs no round trip, so anything long is a stuck peer.
    pub open_timeout: Duration,
    /// Most open connections; beyond it the one that was used longest ago is closed. At least 1.
    pub max_connections: usize,
    /// Most connections being dialled at once; further callers wait. At least 1.
    pub max_dials: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig {
            connect_timeout: Duration::from_secs(5),
            open_timeout: Duration::from_secs(5),
            max_connections: 256,
            max_dials: 32,
        }
    }
}

/// What happens to the connections of a [`Pool`](super::Pool).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolNotice {
    /// A connection to `peer` is up. A second one without a `Removed` between is an update, not another peer.
    Added {
        /// The peer, by the certificate it proved.
        peer: PeerId,
        /// The address it answered on.
        addr: SocketAddr,
    },
    /// How the connection to `peer` reaches it; follows `Added`.
    Class {
        /// The peer.
        peer: PeerId,
        /// The way there. The pool dials directly, so this is [`TraversalKind::Direct`].
        kind: TraversalKind,
    },
    /// The connection to `peer` is gone: closed by either side, broken, or the least recently used of too many.
    Removed {
        /// The peer.
        peer: PeerId,
    },
}
