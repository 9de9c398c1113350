//! A selector with a manual clock, and short ways to tell it things.
#![allow(dead_code, missing_docs, unreachable_pub)] // Each test file uses its own part.

use dig_peer_selector::{
    Candidate, CandidateAddr, ClockSource, ContentId, ContentRequest, FailureReason, OutcomeKind, OutcomeResult,
    PeerId, PeerSelector, PeerSnapshot, Selection, SelectorConfig, TransferOutcome,
};

pub const KIB: u64 = 1024;
pub const MIB: u64 = 1024 * KIB;

pub fn peer(id: u8) -> PeerId {
    PeerId::from_bytes([id; 32])
}

/// One of many identities.
pub fn stranger(id: u32) -> PeerId {
    let mut bytes = [0xEE; 32];
    bytes[..4].copy_from_slice(&id.to_le_bytes());
    PeerId::from_bytes(bytes)
}

pub fn candidate_of(peer_id: PeerId) -> Candidate {
    Candidate::new(peer_id, vec![CandidateAddr::direct("203.0.113.7", 9444)])
}

pub fn candidates(ids: impl IntoIterator<Item = u8>) -> Vec<Candidate> {
    ids.into_iter().map(|id| candidate_of(peer(id))).collect()
}

pub fn content(id: u8) -> ContentId {
    ContentId::resource([id; 32], [id; 32], [id; 32])
}

/// How an outcome differs from a plain success of one MiB in one second.
#[derive(Clone, Copy)]
pub struct Told {
    pub content: ContentId,
    pub index: usize,
    pub bytes: u64,
    pub ms: u64,
    pub rtt_ms: Option<u64>,
    pub result: OutcomeResult,
}

impl Default for Told {
    fn default() -> Self {
        Told { content: content(1), index: 0, bytes: MIB, ms: 1000, rtt_ms: Some(20), result: OutcomeResult::Success }
    }
}

impl Told {
    pub fn rate(bytes_per_s: u64) -> Self {
        Told { bytes: bytes_per_s, ..Told::default() }
    }

    pub fn failed(reason: FailureReason) -> Self {
        Told { bytes: 0, ms: 2000, rtt_ms: None, result: OutcomeResult::Failure { reason }, ..Told::default() }
    }
}

pub struct World {
    pub selector: PeerSelector,
    pub clock: ClockSource,
}

impl World {
    pub fn new(seed: u64) -> Self {
        World::with_capacity(seed, 4096)
    }

    pub fn with_capacity(seed: u64, registry_capacity: usize) -> Self {
        let config = SelectorConfig { registry_capacity, ..SelectorConfig::deterministic(1_000_000, seed) };
        let clock = config.clock.clone();
        World { selector: PeerSelector::new(config), clock }
    }

    pub fn select(&self, ids: impl IntoIterator<Item = u8>, parallelism: usize) -> Selection {
        self.selector.select(&ContentRequest::new(content(1), parallelism), &candidates(ids))
    }

    pub fn tell(&self, peer_id: PeerId, told: Told) {
        self.selector.record_outcome(&TransferOutcome {
            peer_id,
            content: told.content,
            kind: OutcomeKind::Range { index: told.index, offset: 0, length: told.bytes },
            result: told.result,
            bytes: told.bytes,
            duration_ms: told.ms,
            rtt_ms: told.rtt_ms,
            at: self.clock.now(),
        });
    }

    /// `times` outcomes in a row, a second apart.
    pub fn tell_often(&self, id: u8, told: Told, times: usize) {
        for index in 0..times {
            self.tell(peer(id), Told { index, ..told });
            self.clock.advance(1);
        }
    }

    pub fn known(&self, id: u8) -> PeerSnapshot {
        self.selector.peer_snapshot(&peer(id)).expect("a registered peer")
    }
}

pub fn ids(selection: &Selection) -> Vec<u8> {
    selection.peers.iter().map(|chosen| chosen.peer_id.as_bytes()[0]).collect()
}
