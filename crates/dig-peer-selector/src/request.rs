//! Questions to a selector and its answers (spec §5.1, §5.5).

use std::time::{SystemTime, UNIX_EPOCH};

use dig_dht::{CandidateAddr, ContentId, ProviderRecord};
use dig_nat::{PeerId, TraversalKind};

/// How a peer became known: how much its address may be trusted, never how good it is (spec §2.2).
/// The strongest evidence is kept: `Nat`, then `Gossip`, `Dht`, `Pex`, `Manual`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Provenance {
    /// A provider record of the DHT.
    Dht,
    /// The connected pool of the gossip layer.
    Gossip,
    /// Peer exchange: a hint.
    Pex,
    /// A link whose class the NAT layer reported.
    Nat,
    /// Given by the host.
    Manual,
}

impl Provenance {
    /// Strength as evidence, higher is stronger.
    pub(crate) fn strength(self) -> u8 {
        match self {
            Provenance::Manual => 0,
            Provenance::Pex => 1,
            Provenance::Dht => 2,
            Provenance::Gossip => 3,
            Provenance::Nat => 4,
        }
    }
}

/// What is to be fetched.
#[derive(Clone, Debug)]
pub struct ContentRequest {
    /// Which content.
    pub content: ContentId,
    /// Bytes still to fetch, where known.
    pub total_length: Option<u64>,
    /// Ranges still to fetch, where known.
    pub range_count: Option<usize>,
    /// How many sources the caller wants at once.
    pub parallelism: usize,
}

impl ContentRequest {
    /// A request of unknown size for `parallelism` sources, at least 1.
    pub fn new(content: ContentId, parallelism: usize) -> Self {
        ContentRequest { content, total_length: None, range_count: None, parallelism: parallelism.max(1) }
    }

    /// The parallelism, at least 1.
    pub fn effective_parallelism(&self) -> usize {
        self.parallelism.max(1)
    }
}

/// A peer that may hold the content: a hint until it has delivered (spec §9.1).
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Who.
    pub peer_id: PeerId,
    /// Where it may be dialled, in any order.
    pub addresses: Vec<CandidateAddr>,
    /// How it is reached, where known.
    pub class: Option<TraversalKind>,
}

impl Candidate {
    /// A candidate of unknown class.
    pub fn new(peer_id: PeerId, addresses: Vec<CandidateAddr>) -> Self {
        Candidate { peer_id, addresses, class: None }
    }

    /// The provider of a DHT record; none if its id is malformed or the record has expired by the system's clock (spec §7.1).
    pub fn from_provider_record(record: &ProviderRecord) -> Option<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
        Candidate::from_provider_record_at(record, now)
    }

    /// The provider of a DHT record that is live at `now` unix seconds, for hosts with a clock of their own.
    pub fn from_provider_record_at(record: &ProviderRecord, now: u64) -> Option<Self> {
        if now >= record.expires_at {
            return None;
        }
        PeerId::from_hex(&record.provider_peer_id).map(|peer_id| Candidate::new(peer_id, record.addresses.clone()))
    }
}

/// One chosen source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedPeer {
    /// Who.
    pub peer_id: PeerId,
    /// Place in the selection, 0 is best.
    pub rank: u32,
    /// How many more ranges it may have in flight, at least 1.
    pub max_concurrency: u32,
    /// Whether it is taken to be measured rather than for what it delivered.
    pub exploratory: bool,
}

/// The chosen sources, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// In rank order.
    pub peers: Vec<SelectedPeer>,
}

impl Selection {
    /// Nobody.
    pub fn empty() -> Self {
        Selection::default()
    }

    /// Whether nobody was chosen.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// How many were chosen.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// The best.
    pub fn best(&self) -> Option<&SelectedPeer> {
        self.peers.first()
    }
}

/// The ranges of a transfer that still need a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangePlanDelta {
    /// Their indices.
    pub needed_ranges: Vec<usize>,
}

impl RangePlanDelta {
    /// The ranges `0..count`.
    pub fn of_count(count: usize) -> Self {
        RangePlanDelta { needed_ranges: (0..count).collect() }
    }

    /// These ranges.
    pub fn of_indices(indices: impl IntoIterator<Item = usize>) -> Self {
        RangePlanDelta { needed_ranges: indices.into_iter().collect() }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.needed_ranges.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.needed_ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_provider_record_is_no_candidate() {
        // C41.
        let key = ContentId::store([1; 32]).to_key();
        let peer = PeerId::from_bytes([7; 32]);
        let record =
            |expires_at| ProviderRecord::new(&key, &peer, vec![CandidateAddr::direct("203.0.113.7", 9444)], expires_at);
        assert!(Candidate::from_provider_record(&record(1_000)).is_none());
        assert_eq!(Candidate::from_provider_record(&record(u64::MAX)).unwrap().peer_id, peer);
        assert!(Candidate::from_provider_record_at(&record(1_000), 999).is_some());
        assert!(Candidate::from_provider_record_at(&record(1_000), 1_000).is_none());
    }

    #[test]
    fn a_malformed_provider_id_is_no_candidate() {
        let key = ContentId::store([1; 32]).to_key();
        let mut record = ProviderRecord::new(&key, &PeerId::from_bytes([7; 32]), vec![], u64::MAX);
        record.provider_peer_id = "not hex".into();
        assert!(Candidate::from_provider_record(&record).is_none());
    }

    #[test]
    fn parallelism_is_at_least_one() {
        assert_eq!(ContentRequest::new(ContentId::store([1; 32]), 0).parallelism, 1);
    }
}
