//! Where dig-download asks for holders (HOST-D5).
//!
//! The one idea: the peers a person named and the peers the DHT found are one list, in one fixed order, so that a choice
//! among them depends on what they deliver and on nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use dig_dht::{ContentId, ProviderRecord};
use dig_download::{DownloadError, ProviderLocator};
use dig_nat::PeerId;

use super::Discovery;
use super::records::candidate;
use crate::content::FileId;
use crate::peer::PeerAddr;

/// The peers named by the caller, the peers found in the DHT, or both.
///
/// Records come in the order of peer ids; where the caller named an address, it comes before those the DHT told of.
pub struct Locator {
    local: PeerId,
    peers: Vec<PeerAddr>,
    discovery: Option<Arc<Discovery>>,
}

impl Locator {
    /// A locator for the peer `local`, which it never returns.
    pub fn new(local: PeerId, peers: Vec<PeerAddr>, discovery: Option<Arc<Discovery>>) -> Locator {
        Locator { local, peers, discovery }
    }

    /// Adds what the caller named to what was found.
    fn merge(&self, content: &ContentId, mut found: Vec<ProviderRecord>) -> Vec<ProviderRecord> {
        // From the back, so that the address named first ends up in front.
        for peer in self.peers.iter().rev().filter(|peer| peer.peer_id != self.local) {
            let named = candidate(peer.addr);
            match found.iter_mut().find(|record| record.provider_peer_id() == Some(peer.peer_id)) {
                Some(record) => {
                    record.addresses.retain(|address| (&address.host, address.port) != (&named.host, named.port));
                    record.addresses.insert(0, named);
                }
                None => found.push(ProviderRecord::new(&content.to_key(), &peer.peer_id, vec![named], u64::MAX)),
            }
        }
        found.sort_by(|a, b| a.provider_peer_id.cmp(&b.provider_peer_id));
        found
    }
}

#[async_trait]
impl ProviderLocator for Locator {
    async fn find_providers(&self, content: &ContentId) -> Result<Vec<ProviderRecord>, DownloadError> {
        let found = match (&self.discovery, FileId::of_content(content)) {
            // Whoever has the file has its manifest: both are announced under the file.
            (Some(discovery), Some((file, _))) => discovery.find(&file).await,
            _ => Ok(Vec::new()),
        };
        match found {
            Ok(found) => Ok(self.merge(content, found)),
            Err(error) if self.peers.is_empty() => Err(DownloadError::transport("dht", error)),
            Err(error) => {
                tracing::debug!(%error, "the DHT failed; the named peers remain");
                Ok(self.merge(content, Vec::new()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket_addrs;
    use super::*;

    #[tokio::test]
    async fn named_peers_come_sorted_without_this_node_and_before_hints() {
        let peer =
            |id: u8, port: u16| PeerAddr { addr: ([127, 0, 0, 1], port).into(), peer_id: PeerId::from_bytes([id; 32]) };
        let locator =
            Locator::new(PeerId::from_bytes([2; 32]), vec![peer(3, 30), peer(3, 31), peer(1, 10), peer(2, 20)], None);
        let content = FileId::from_bytes([9; 32]).content();
        let hint = ProviderRecord::new(
            &content.to_key(),
            &PeerId::from_bytes([3; 32]),
            vec![candidate("[::1]:9".parse().unwrap()), candidate(peer(3, 31).addr)],
            u64::MAX,
        );
        let records = locator.merge(&content, vec![hint]);
        let ids: Vec<_> = records.iter().map(|record| record.provider_peer_id.as_str()).collect();
        assert_eq!(ids, ["01".repeat(32), "03".repeat(32)]);
        let ports: Vec<_> = socket_addrs(&records[1]).iter().map(|addr| addr.port()).collect();
        assert_eq!(ports, [30, 31, 9]);
        assert_eq!(locator.find_providers(&content).await.unwrap().len(), 2);
    }
}
