//! What a selector keeps of each peer besides its quality: addresses, class, provenance, promised ranges (spec §2.1).
//!
//! Records live in an array parallel to the engine's table and are replaced when a slot gets a new tenant, so nothing here outlives a peer's membership
//! (spec §5.7). Addresses of a live link stay ahead of hints and are never overwritten by them.

use std::net::{IpAddr, SocketAddr};

use dig_dht::CandidateAddr;
use dig_nat::{PeerId, TraversalKind};
use peer_quality::View;
use peer_quality::audit::Standing;
use peer_quality::estimate::Path;
use peer_quality::facts::AddressGroup;
use peer_quality::units::Time;

use crate::hints::Hints;
use crate::leases::Leases;
use crate::quality::{Estimate, PeerQuality};
use crate::request::{Candidate, Provenance};

/// Addresses kept per peer, the live one apart. Records come from strangers, so their number is bounded; a dial uses
/// [`MAX_DIAL_CANDIDATES`](crate::MAX_DIAL_CANDIDATES) of them.
const MAX_HINTS: usize = 16;
/// Contents per peer that are known to be delivered by it; beyond that a delivery is noted twice, which is harmless.
const MAX_PROVEN: usize = 16;

/// One registered peer, as a read-only snapshot.
#[derive(Clone, Debug)]
pub struct PeerEntry {
    /// Who.
    pub peer_id: PeerId,
    /// Known addresses, those of a live link first.
    pub addresses: Vec<CandidateAddr>,
    /// How the live link is reached.
    pub connection_class: Option<TraversalKind>,
    /// The strongest evidence for the peer.
    pub provenance: Provenance,
    /// What was learned.
    pub quality: PeerQuality,
    /// When it was first registered, unix seconds.
    pub first_seen: u64,
    /// When its latest outcome ended, unix seconds.
    pub last_outcome_at: Option<u64>,
    /// Whether there is a live link.
    pub connected: bool,
    /// Whether the pool banned it.
    pub banned: bool,
}

impl PeerEntry {
    /// The address to dial first: the most direct.
    pub fn preferred_address(&self) -> Option<&CandidateAddr> {
        self.addresses.iter().filter(|address| address.kind.is_dialable()).min_by_key(|address| address.kind.rank())
    }
}

/// The selector's own part of an entry.
#[derive(Debug)]
pub(crate) struct Record {
    hints: Hints,
    pub(crate) first_seen: u64,
    last_outcome_at: u64,
    /// The tenancy of the content that it delivered lately; 0 is none.
    delivered: u64,
    /// What few of many have.
    dealings: Option<Box<Dealings>>,
    /// Tells tenants of one slot apart.
    pub(crate) tenancy: u32,
    pub(crate) class: Option<TraversalKind>,
    pub(crate) provenance: Provenance,
    had_outcome: bool,
}

/// What is kept of a peer that was selected, is connected, or delivered several contents.
#[derive(Debug, Default)]
struct Dealings {
    live: Option<CandidateAddr>,
    leases: Leases,
    /// Tenancies of the contents that it delivered before the latest, oldest first: spares a search in theirs.
    delivered: Vec<u64>,
}

impl Record {
    pub(crate) fn new(tenancy: u32, provenance: Provenance, first_seen: u64) -> Self {
        Record {
            tenancy,
            hints: Hints::default(),
            class: None,
            provenance,
            first_seen,
            last_outcome_at: 0,
            had_outcome: false,
            delivered: 0,
            dealings: None,
        }
    }

    /// Learns from a candidate, keeping what is known already; true if its addresses were not known.
    #[inline]
    pub(crate) fn merge(&mut self, candidate: &Candidate, provenance: Provenance) -> bool {
        self.raise(provenance);
        let newest = &candidate.addresses[..candidate.addresses.len().min(MAX_HINTS)];
        let is_news = !self.hints.starts_with(newest);
        if is_news {
            self.put_first(newest);
        }
        is_news
    }

    /// Where it is: by its live link, else by the first address that it is said to have. Local addresses, and those of relays, say nothing.
    pub(crate) fn group(&self) -> AddressGroup {
        let of = |address: &CandidateAddr| {
            let ip = address.kind.is_dialable().then(|| address.host.parse::<IpAddr>().ok())?;
            ip.map(AddressGroup::of).filter(|group| !group.is_none())
        };
        let live = self.dealings.as_ref().and_then(|dealings| dealings.live.as_ref()).and_then(of);
        live.or_else(|| self.hints.unpacked().iter().find_map(of)).unwrap_or_default()
    }

    /// An outcome of it ended at `at`, unix seconds.
    pub(crate) fn ended(&mut self, at: u64) {
        (self.last_outcome_at, self.had_outcome) = (at, true);
    }

    fn put_first(&mut self, newest: &[CandidateAddr]) {
        if let ([_], true) = (newest, self.hints.is_empty()) {
            self.hints = Hints::of(newest);
            return;
        }
        let mut hints: Vec<CandidateAddr> = Vec::new();
        for address in newest.iter().cloned().chain(self.hints.unpacked()) {
            if hints.len() < MAX_HINTS && !hints.contains(&address) {
                hints.push(address);
            }
        }
        self.hints = Hints::of(&hints);
    }

    /// What is promised to it.
    #[inline]
    pub(crate) fn leases(&self) -> &Leases {
        static NONE: Leases = Leases::NONE;
        self.dealings.as_ref().map_or(&NONE, |dealings| &dealings.leases)
    }

    /// What is promised to it, to change.
    pub(crate) fn leases_mut(&mut self) -> &mut Leases {
        &mut self.dealings.get_or_insert_default().leases
    }

    /// A link to `addr` is up.
    pub(crate) fn connect(&mut self, addr: SocketAddr) {
        self.dealings.get_or_insert_default().live = Some(CandidateAddr::direct(addr.ip().to_string(), addr.port()));
    }

    /// The link is down: its address becomes a hint, its class is no longer true.
    pub(crate) fn disconnect(&mut self) {
        if let Some(address) = self.dealings.as_mut().and_then(|dealings| dealings.live.take()) {
            let mut hints = self.hints.unpacked();
            if !hints.contains(&address) {
                hints.insert(0, address);
                hints.truncate(MAX_HINTS);
                self.hints = Hints::of(&hints);
            }
        }
        self.class = None;
    }

    /// Notes that it delivered a range of the content of this tenancy; true for the first time.
    pub(crate) fn note_proven(&mut self, content: u64) -> bool {
        if self.delivered == content {
            return false;
        }
        if self.delivered != 0 {
            let before = &mut self.dealings.get_or_insert_default().delivered;
            if before.contains(&content) {
                return false;
            }
            if before.len() + 1 == MAX_PROVEN {
                before.remove(0);
            }
            before.push(self.delivered);
        }
        self.delivered = content;
        true
    }

    /// The snapshot of the whole entry.
    pub(crate) fn entry(&self, peer_id: PeerId, view: &View, now: Time) -> PeerEntry {
        let quality = PeerQuality {
            throughput: Estimate::new(view.slowness.map(|slowness| slowness.bytes_per_sec()), view.volatility),
            rtt: Estimate::new(view.first_byte_s.map(|secs| secs * 1e3), 0.0),
            reliability: Estimate::new(view.reliability, 0.0),
            samples: view.samples,
            hard_failures: view.offences,
            in_flight: view.pending.saturating_add(self.leases().promised(now)),
            useful_concurrency: view.limit,
        };
        PeerEntry {
            peer_id,
            addresses: self.addresses(),
            connection_class: self.class,
            provenance: self.provenance,
            quality,
            first_seen: self.first_seen,
            last_outcome_at: self.had_outcome.then_some(self.last_outcome_at),
            connected: view.connected,
            banned: view.standing == Standing::Banned,
        }
    }

    /// Keeps the stronger evidence.
    #[inline]
    pub(crate) fn raise(&mut self, provenance: Provenance) {
        if provenance.strength() > self.provenance.strength() {
            self.provenance = provenance;
        }
    }

    /// Known addresses, the live one first.
    pub(crate) fn addresses(&self) -> Vec<CandidateAddr> {
        let live = self.dealings.as_ref().and_then(|dealings| dealings.live.clone());
        let hints = self.hints.unpacked().into_iter().filter(|hint| Some(hint) != live.as_ref());
        live.iter().cloned().chain(hints).collect()
    }
}

/// The capacity class of a connection class (spec §4.1): all that matters is whether a relay carries the bytes.
pub(crate) fn path_of(class: Option<TraversalKind>) -> Path {
    match class {
        Some(TraversalKind::Relayed) => Path::Relayed,
        Some(_) => Path::Direct,
        None => Path::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(hosts: impl IntoIterator<Item = String>) -> Candidate {
        let addresses = hosts.into_iter().map(|host| CandidateAddr::direct(host, 1)).collect();
        Candidate::new(PeerId::from_bytes([1; 32]), addresses)
    }

    #[test]
    fn a_live_address_stays_ahead_of_hints_and_becomes_one() {
        let mut record = Record::new(0, Provenance::Dht, 0);
        record.connect("10.0.0.1:9444".parse().unwrap());
        record.merge(&candidate(["203.0.113.9".into()]), Provenance::Dht);
        let hosts = |record: &Record| record.addresses().iter().map(|address| address.host.clone()).collect::<Vec<_>>();
        assert_eq!(hosts(&record), ["10.0.0.1", "203.0.113.9"]);
        record.disconnect();
        assert_eq!(hosts(&record), ["10.0.0.1", "203.0.113.9"]);
    }

    #[test]
    fn addresses_from_strangers_are_bounded() {
        let mut record = Record::new(0, Provenance::Dht, 0);
        for flood in 0..10 {
            record.merge(&candidate((0..1000).map(|host| format!("h{flood}-{host}"))), Provenance::Dht);
        }
        assert_eq!(record.addresses().len(), MAX_HINTS);
    }

    #[test]
    fn a_delivery_of_a_content_is_new_once_among_the_latest() {
        let mut record = Record::new(0, Provenance::Dht, 0);
        let most = MAX_PROVEN as u64;
        assert!((1..=most).all(|content| record.note_proven(content)));
        assert!((1..=most).all(|content| !record.note_proven(content)));
        assert!(record.note_proven(most + 1) && !record.note_proven(2));
        assert!(record.note_proven(1), "the oldest was forgotten");
    }

    #[test]
    fn a_record_fits_a_cache_line() {
        assert!(size_of::<Option<Record>>() <= 64, "{}", size_of::<Option<Record>>());
    }

    #[test]
    fn the_strongest_evidence_is_kept() {
        let mut record = Record::new(0, Provenance::Gossip, 0);
        record.raise(Provenance::Pex);
        assert_eq!(record.provenance, Provenance::Gossip);
        record.raise(Provenance::Nat);
        assert_eq!(record.provenance, Provenance::Nat);
    }
}
