//! One call of a selector as a line: names instead of types of the network stack, so that a recording can be read without it.

use dig_dht::{CandidateAddr, ContentId};
use dig_nat::{PeerId, TraversalKind};
use dig_peer_selector::tap::Call;
use dig_peer_selector::{
    Candidate, ContentRequest, FailureReason, OutcomeKind, OutcomeResult, PoolEvent, PoolRemovalReason, Provenance,
    Selection, TransferOutcome,
};
use serde::{Deserialize, Serialize};

/// A call at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Moment of the selector's clock, microseconds.
    pub at_us: u64,
    /// What it was told or asked.
    #[serde(flatten)]
    pub told: Told,
}

/// What a selector is told or asked, and what it answered. Peers are 64 hexadecimal digits, contents their parts joined by `:`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Told {
    /// Whom to ask for a content.
    Select { request: Request, candidates: Vec<Given>, gave: Vec<Gave> },
    /// Whom to ask for what is left of it.
    Rebalance { request: Request, active: Vec<String>, need: Vec<usize>, gave: Vec<Gave> },
    /// How a range ended; `index` is absent for a whole request.
    Outcome {
        peer: String,
        content: String,
        index: Option<usize>,
        offset: u64,
        length: u64,
        result: Ended,
        bytes: u64,
        duration_ms: u64,
        rtt_ms: Option<u64>,
        at: u64,
    },
    /// Ranges went out.
    Dispatched { peer: String, count: u32 },
    /// A link came up.
    Added { peer: String, addr: std::net::SocketAddr },
    /// A link went down.
    Lost { peer: String, reason: Lost },
    /// How a peer is reached.
    Class { peer: String, class: Class },
    /// A peer was registered.
    Upsert { candidate: Given, provenance: From },
    /// A peer was forgotten.
    Removed { peer: String },
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Request {
    pub content: String,
    pub total_length: Option<u64>,
    pub range_count: Option<usize>,
    pub parallelism: usize,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Given {
    pub peer: String,
    pub addresses: Vec<CandidateAddr>,
    pub class: Option<Class>,
}

/// One peer of an answer, best first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gave {
    /// Who.
    pub peer: String,
    /// How many ranges it may have in flight.
    pub concurrency: u32,
    /// Whether it is taken to be measured.
    pub trial: bool,
}

/// A result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Ended {
    Success,
    Interrupted { bytes_before: u64 },
    Timeout,
    Transport,
    Unavailable,
    VerificationFailed,
    Cancelled,
    Other,
}

/// Why a link went down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Lost {
    Disconnected,
    Dead,
    Banned,
}

/// How a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Class {
    Direct,
    Upnp,
    NatPmp,
    Pcp,
    HolePunch,
    Relayed,
}

/// Where a peer is known from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum From {
    Dht,
    Gossip,
    Pex,
    Nat,
    Manual,
}

/// Pairs two enums' variants of the same name, both ways.
macro_rules! same_names {
    ($ours:ident, $theirs:ident: $($name:ident),*) => {
        impl $ours {
            fn of(theirs: $theirs) -> Self {
                match theirs { $($theirs::$name => $ours::$name),* }
            }
            pub(super) fn back(self) -> $theirs {
                match self { $($ours::$name => $theirs::$name),* }
            }
        }
    };
}

same_names!(Lost, PoolRemovalReason: Disconnected, Dead, Banned);
same_names!(Class, TraversalKind: Direct, Upnp, NatPmp, Pcp, HolePunch, Relayed);
same_names!(From, Provenance: Dht, Gossip, Pex, Nat, Manual);

impl Ended {
    fn of(result: OutcomeResult) -> Self {
        match result {
            OutcomeResult::Success => Ended::Success,
            OutcomeResult::Interrupted { bytes_before } => Ended::Interrupted { bytes_before },
            OutcomeResult::Failure { reason } => match reason {
                FailureReason::Timeout => Ended::Timeout,
                FailureReason::Transport => Ended::Transport,
                FailureReason::Unavailable => Ended::Unavailable,
                FailureReason::VerificationFailed => Ended::VerificationFailed,
                FailureReason::Cancelled => Ended::Cancelled,
                FailureReason::Other => Ended::Other,
            },
        }
    }

    pub(super) fn back(self) -> OutcomeResult {
        let reason = match self {
            Ended::Success => return OutcomeResult::Success,
            Ended::Interrupted { bytes_before } => return OutcomeResult::Interrupted { bytes_before },
            Ended::Timeout => FailureReason::Timeout,
            Ended::Transport => FailureReason::Transport,
            Ended::Unavailable => FailureReason::Unavailable,
            Ended::VerificationFailed => FailureReason::VerificationFailed,
            Ended::Cancelled => FailureReason::Cancelled,
            Ended::Other => FailureReason::Other,
        };
        OutcomeResult::Failure { reason }
    }
}

impl Told {
    /// A call as it is written.
    pub(super) fn of(call: &Call<'_>) -> Told {
        match *call {
            Call::Select { request, candidates, gave } => Told::Select {
                request: Request::of(request),
                candidates: candidates.iter().map(Given::of).collect(),
                gave: gave_of(gave),
            },
            Call::Rebalance { request, active, need, gave } => Told::Rebalance {
                request: Request::of(request),
                active: active.iter().map(PeerId::to_hex).collect(),
                need: need.needed_ranges.clone(),
                gave: gave_of(gave),
            },
            Call::Outcome(outcome) => Told::outcome(outcome),
            Call::Dispatched { peer, count } => Told::Dispatched { peer: peer.to_hex(), count },
            Call::Pool(PoolEvent::PeerAdded { peer_id, addr }) => Told::Added { peer: peer_id.to_hex(), addr: *addr },
            Call::Pool(PoolEvent::PeerRemoved { peer_id, reason }) => {
                Told::Lost { peer: peer_id.to_hex(), reason: Lost::of(*reason) }
            }
            Call::Class { peer, class } => Told::Class { peer: peer.to_hex(), class: Class::of(class) },
            Call::Upsert { candidate, provenance } => {
                Told::Upsert { candidate: Given::of(candidate), provenance: From::of(provenance) }
            }
            Call::Removed(peer) => Told::Removed { peer: peer.to_hex() },
        }
    }

    fn outcome(outcome: &TransferOutcome) -> Told {
        let (index, offset, length) = match outcome.kind {
            OutcomeKind::Range { index, offset, length } => (Some(index), offset, length),
            OutcomeKind::Request { total_length } => (None, 0, total_length),
        };
        Told::Outcome {
            peer: outcome.peer_id.to_hex(),
            content: content_text(&outcome.content),
            index,
            offset,
            length,
            result: Ended::of(outcome.result),
            bytes: outcome.bytes,
            duration_ms: outcome.duration_ms,
            rtt_ms: outcome.rtt_ms,
            at: outcome.at,
        }
    }

    /// The answer, if it was a question.
    pub fn gave(&self) -> Option<&[Gave]> {
        match self {
            Told::Select { gave, .. } | Told::Rebalance { gave, .. } => Some(gave),
            _ => None,
        }
    }
}

pub(super) fn gave_of(selection: &Selection) -> Vec<Gave> {
    let one = |peer: &dig_peer_selector::SelectedPeer| Gave {
        peer: peer.peer_id.to_hex(),
        concurrency: peer.max_concurrency,
        trial: peer.exploratory,
    };
    selection.peers.iter().map(one).collect()
}

impl Request {
    fn of(request: &ContentRequest) -> Self {
        Request {
            content: content_text(&request.content),
            total_length: request.total_length,
            range_count: request.range_count,
            parallelism: request.parallelism,
        }
    }

    pub(super) fn back(&self) -> Option<ContentRequest> {
        let mut request = ContentRequest::new(content_of(&self.content)?, self.parallelism);
        (request.total_length, request.range_count) = (self.total_length, self.range_count);
        Some(request)
    }
}

impl Given {
    fn of(candidate: &Candidate) -> Self {
        Given {
            peer: candidate.peer_id.to_hex(),
            addresses: candidate.addresses.clone(),
            class: candidate.class.map(Class::of),
        }
    }

    pub(super) fn back(&self) -> Option<Candidate> {
        let mut candidate = Candidate::new(PeerId::from_hex(&self.peer)?, self.addresses.clone());
        candidate.class = self.class.map(Class::back);
        Some(candidate)
    }
}

fn content_text(content: &ContentId) -> String {
    let hex = |bytes: &[u8; 32]| PeerId::from_bytes(*bytes).to_hex();
    match content {
        ContentId::Store { store_id } => hex(store_id),
        ContentId::Root { store_id, root } => format!("{}:{}", hex(store_id), hex(root)),
        ContentId::Resource { store_id, root, retrieval_key } => {
            format!("{}:{}:{}", hex(store_id), hex(root), hex(retrieval_key))
        }
    }
}

pub(super) fn content_of(text: &str) -> Option<ContentId> {
    let part = |hex: &str| PeerId::from_hex(hex).map(|id| *id.as_bytes());
    let parts = text.split(':').map(part).collect::<Option<Vec<[u8; 32]>>>()?;
    match parts[..] {
        [store_id] => Some(ContentId::Store { store_id }),
        [store_id, root] => Some(ContentId::Root { store_id, root }),
        [store_id, root, retrieval_key] => Some(ContentId::Resource { store_id, root, retrieval_key }),
        _ => None,
    }
}
