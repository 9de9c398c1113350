//! Read-only views for operators and programs (spec §5.7). Reading them changes no decision.

use dig_nat::{PeerId, TraversalKind};
use peer_quality::Engine;
use peer_quality::estimate::Path;

use crate::registry::PeerEntry;
use crate::request::Provenance;

/// What is known of one peer.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PeerSnapshot {
    /// 64 lower-case hexadecimal digits.
    pub peer_id: String,
    /// The strongest evidence for it.
    pub provenance: Provenance,
    /// `direct`, `upnp`, `natpmp`, `pcp`, `holepunch` or `relayed`.
    pub connection_class: Option<String>,
    /// Whether there is a live link.
    pub connected: bool,
    /// Whether the pool banned it.
    pub banned: bool,
    /// Bytes per second of one range's body.
    pub throughput_bps: Option<f64>,
    /// Time to first byte, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Share of ranges that ended well, 0..=1.
    pub reliability: Option<f64>,
    /// Relative spread of the throughput: 0 without samples.
    pub throughput_volatility: f64,
    /// Outcomes folded in.
    pub samples: u64,
    /// Failed verifications.
    pub hard_failures: u64,
    /// Ranges in flight, promised ones included.
    pub in_flight: u32,
    /// Ranges that it can use at once, as learned or assumed, at least 1.
    pub useful_concurrency: u32,
}

impl PeerSnapshot {
    /// The snapshot of an entry.
    pub fn of(entry: &PeerEntry) -> Self {
        let quality = &entry.quality;
        PeerSnapshot {
            peer_id: entry.peer_id.to_hex(),
            provenance: entry.provenance,
            connection_class: entry.connection_class.map(|class| class_name(class).to_owned()),
            connected: entry.connected,
            banned: entry.banned,
            throughput_bps: quality.throughput.value(),
            rtt_ms: quality.rtt.value(),
            reliability: quality.reliability.value(),
            throughput_volatility: quality.throughput.relative_volatility(),
            samples: quality.samples,
            hard_failures: quality.hard_failures,
            in_flight: quality.in_flight,
            useful_concurrency: quality.useful_concurrency,
        }
    }
}

/// What is known altogether.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SelectorSnapshot {
    /// Registered peers.
    pub registry_size: usize,
    /// Peers with at least one outcome.
    pub measured_peers: usize,
    /// Peers with a live link.
    pub connected_peers: usize,
    /// Concurrency assumed of a new direct peer.
    pub saturation_direct: u32,
    /// Concurrency assumed of a new relayed peer.
    pub saturation_relayed: u32,
    /// Concurrency assumed of a new peer of unknown class.
    pub saturation_unknown: u32,
    /// Relayed delivery rate over direct delivery rate as learned, in (0, 1].
    pub relayed_penalty: f64,
    /// Registered peers that were ever selected.
    pub last_selected_len: usize,
    /// Live leases, over all peers and contents.
    pub dispatched_len: usize,
}

impl SelectorSnapshot {
    pub(crate) fn of(
        entries: impl Iterator<Item = PeerEntry>,
        engine: &Engine<[u8; 32]>,
        last_selected_len: usize,
        dispatched_len: usize,
    ) -> Self {
        let (mut measured_peers, mut connected_peers) = (0, 0);
        for entry in entries {
            measured_peers += usize::from(entry.quality.samples > 0);
            connected_peers += usize::from(entry.connected);
        }
        SelectorSnapshot {
            registry_size: engine.len(),
            measured_peers,
            connected_peers,
            saturation_direct: engine.prior(Path::Direct).concurrency,
            saturation_relayed: engine.prior(Path::Relayed).concurrency,
            saturation_unknown: engine.prior(Path::Unknown).concurrency,
            relayed_penalty: engine.relayed_penalty(),
            last_selected_len,
            dispatched_len,
        }
    }
}

/// The text form of an identity: 64 lower-case hexadecimal digits.
pub fn peer_id_hex(peer: &PeerId) -> String {
    peer.to_hex()
}

fn class_name(class: TraversalKind) -> &'static str {
    match class {
        TraversalKind::Direct => "direct",
        TraversalKind::Upnp => "upnp",
        TraversalKind::NatPmp => "natpmp",
        TraversalKind::Pcp => "pcp",
        TraversalKind::HolePunch => "holepunch",
        TraversalKind::Relayed => "relayed",
    }
}
