//! What is made of records from the network (HOST-D5).
//!
//! The one idea: a record is filtered to what can be dialled, merged with others of the same peer, bounded, and put in an
//! order that no answer's timing and no hash map can change.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use dig_dht::{CandidateAddr, Key, ProviderRecord};
use dig_nat::PeerId;

/// Most holders of one file that are returned. Of more, those closest to this node's own id stay: ids are free to make,
/// so a flood can sit at any place it knows, and this one differs from asker to asker.
pub(super) const HOLDERS_MAX: usize = 256;
/// Most addresses kept per holder.
const ADDRESSES_MAX: usize = 8;

/// The usable records among `records`: of this key, alive, of someone else, with an address that can be dialled; one per
/// peer, in the order of peer ids.
pub(super) fn holders(records: Vec<ProviderRecord>, key: &Key, local: &PeerId, now_s: u64) -> Vec<ProviderRecord> {
    let key = key.to_hex();
    let mut holders: BTreeMap<[u8; 32], ProviderRecord> = BTreeMap::new();
    for mut record in records {
        record.addresses.retain(|address| socket_addr(address).is_some());
        let Some(peer) = record.provider_peer_id() else {
            continue;
        };
        if record.content_key != key || record.is_expired(now_s) || peer == *local || record.addresses.is_empty() {
            continue;
        }
        match holders.get_mut(peer.as_bytes()) {
            Some(known) => {
                known.expires_at = known.expires_at.max(record.expires_at);
                let new: Vec<_> = record.addresses.into_iter().filter(|a| !known.addresses.contains(a)).collect();
                known.addresses.extend(new);
                known.addresses.sort_by(|a, b| (&a.host, a.port).cmp(&(&b.host, b.port)));
                known.addresses.truncate(ADDRESSES_MAX);
            }
            None => {
                record.addresses.truncate(ADDRESSES_MAX);
                holders.insert(*peer.as_bytes(), record);
            }
        }
    }
    let mut closest: Vec<_> = holders.into_iter().collect();
    if closest.len() > HOLDERS_MAX {
        let own = Key::from_peer_id(local);
        closest.sort_by_key(|(peer, _)| own.distance(&Key::from_bytes(*peer)));
        closest.truncate(HOLDERS_MAX);
        closest.sort_by_key(|(peer, _)| *peer);
    }
    closest.into_iter().map(|(_, record)| record).collect()
}

/// The addresses of a record that can be dialled, in the record's order. Names are left out: peers announce addresses.
pub fn socket_addrs(record: &ProviderRecord) -> Vec<SocketAddr> {
    record.addresses.iter().filter_map(socket_addr).collect()
}

pub(super) fn socket_addr(address: &CandidateAddr) -> Option<SocketAddr> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']');
    let ip: IpAddr = host.parse().ok()?;
    (address.kind.is_dialable() && address.port != 0 && !ip.is_unspecified() && !ip.is_multicast())
        .then(|| SocketAddr::new(ip, address.port))
}

/// `addr` as the DHT writes addresses.
pub(super) fn candidate(addr: SocketAddr) -> CandidateAddr {
    CandidateAddr::direct(addr.ip().to_string(), addr.port())
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
