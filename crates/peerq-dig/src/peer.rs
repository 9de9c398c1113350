//! How a peer is named on the command line and in messages: `ADDR#PEER_ID`.
//!
//! The one idea: an address alone is no peer. Whoever answers there has to prove the identity after the `#`.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use dig_nat::PeerId;

/// A peer and where to reach it. Text form: `127.0.0.1:4100#<64 hex digits>`, IPv6 addresses in brackets.
///
/// ```
/// use peerq_dig::PeerAddr;
///
/// let text = format!("[::1]:4100#{}", "ab".repeat(32));
/// assert_eq!(text.parse::<PeerAddr>().unwrap().to_string(), text);
/// assert!("127.0.0.1:4100".parse::<PeerAddr>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddr {
    /// Where the peer listens.
    pub addr: SocketAddr,
    /// Who has to answer there.
    pub peer_id: PeerId,
}

/// Why a text is no [`PeerAddr`]. The fault is the caller's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerAddrError {
    /// There is no `#`.
    #[error("`{0}` lacks a peer id; write ADDRESS:PORT#PEER_ID as `peerq serve` prints it")]
    NoPeerId(String),
    /// What is before the `#` is no socket address.
    #[error("`{0}` is no address; write an IP address and a port, such as 127.0.0.1:4100 or [::1]:4100")]
    Address(String),
    /// What is after the `#` is no peer id.
    #[error("`{0}` is no peer id; a peer id has 64 hex digits")]
    PeerId(String),
}

impl fmt::Display for PeerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.addr, self.peer_id.to_hex())
    }
}

impl FromStr for PeerAddr {
    type Err = PeerAddrError;

    fn from_str(text: &str) -> Result<Self, PeerAddrError> {
        let (addr, peer_id) = text.trim().split_once('#').ok_or_else(|| PeerAddrError::NoPeerId(text.to_owned()))?;
        Ok(PeerAddr {
            addr: addr.parse().map_err(|_| PeerAddrError::Address(addr.to_owned()))?,
            peer_id: PeerId::from_hex(peer_id).ok_or_else(|| PeerAddrError::PeerId(peer_id.to_owned()))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_peer_says_which_half_is_bad() {
        let id = "ab".repeat(32);
        for (text, expected) in [
            ("127.0.0.1:1".to_owned(), PeerAddrError::NoPeerId("127.0.0.1:1".to_owned())),
            (format!("localhost#{id}"), PeerAddrError::Address("localhost".to_owned())),
            (format!("127.0.0.1#{id}"), PeerAddrError::Address("127.0.0.1".to_owned())),
            (format!("127.0.0.1:70000#{id}"), PeerAddrError::Address("127.0.0.1:70000".to_owned())),
            ("127.0.0.1:1#ab".to_owned(), PeerAddrError::PeerId("ab".to_owned())),
            (format!("127.0.0.1:1#{}", "zz".repeat(32)), PeerAddrError::PeerId("zz".repeat(32))),
        ] {
            assert_eq!(text.parse::<PeerAddr>(), Err(expected));
        }
    }
}
