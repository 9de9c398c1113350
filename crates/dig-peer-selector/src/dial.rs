//! From a ranked identity to something that can be dialled (spec §7.4).
//!
//! The order of addresses, the bound on their number and the place kept for IPv4 are the DHT crate's own rule; this module only
//! removes what no socket can be made of before that rule counts.

use std::net::{IpAddr, SocketAddr};

use dig_dht::CandidateAddr;
use dig_peer::PeerTarget;

use crate::PeerId;

/// The target of a dial to `peer_id`, pinned to that identity; reachable by relay only if no address is an IP literal.
pub fn peer_target(peer_id: PeerId, addresses: &[CandidateAddr], network_id: &str) -> PeerTarget {
    let literal: Vec<CandidateAddr> = addresses.iter().filter(|address| socket(address).is_some()).cloned().collect();
    let sockets: Vec<SocketAddr> = dig_dht::dial_candidates(&literal).into_iter().filter_map(socket).collect();
    if sockets.is_empty() {
        PeerTarget::relay_only(peer_id, network_id)
    } else {
        PeerTarget::with_addrs(peer_id, sockets, network_id)
    }
}

fn socket(address: &CandidateAddr) -> Option<SocketAddr> {
    address.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, address.port))
}
