//! Churn of the connected pool (spec §5.4): field for field the event of the gossip layer, which is not a dependency because it would bring a whole
//! blockchain stack into a decision layer.

use std::net::SocketAddr;

use dig_nat::PeerId;

/// A change of the connected pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolEvent {
    /// There is a live link to a peer; repeated when a link replaces another.
    PeerAdded {
        /// Who.
        peer_id: PeerId,
        /// The remote end of the link.
        addr: SocketAddr,
    },
    /// The link is gone.
    PeerRemoved {
        /// Who.
        peer_id: PeerId,
        /// Why.
        reason: PoolRemovalReason,
    },
}

/// Why a peer left the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRemovalReason {
    /// The link closed.
    Disconnected,
    /// The peer stopped answering.
    Dead,
    /// The pool bans it: it is not selected until the pool adds it again.
    Banned,
}
