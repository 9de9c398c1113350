//! A self-optimising peer selector for the DIG network: which of these peers should serve this content, in what order, and how many ranges each?
//!
//! It implements version 1 of the selector specification (see `SPEC.md` beside this crate) over the [`peer_quality`] engine, and is a drop-in for the published
//! crate of the same name: same library name, same public API. It opens no connection and has no knobs: it learns from measured outcomes alone.
//!
//! ```
//! use dig_peer_selector::{
//!     Candidate, CandidateAddr, ContentId, ContentRequest, OutcomeKind, OutcomeResult, PeerId, PeerSelector, SelectorConfig,
//!     TransferOutcome,
//! };
//!
//! let selector = PeerSelector::new(SelectorConfig::default());
//! let content = ContentId::store([1; 32]);
//! let peer = |id| Candidate::new(PeerId::from_bytes([id; 32]), vec![CandidateAddr::direct("203.0.113.7", 9444)]);
//!
//! // Ask whom to fetch from, fetch, and report what was measured.
//! let chosen = selector.select(&ContentRequest::new(content, 2), &[peer(1), peer(2)]);
//! for source in &chosen.peers {
//!     selector.on_dispatch(&source.peer_id, 1);
//!     selector.record_outcome(&TransferOutcome {
//!         peer_id: source.peer_id,
//!         content,
//!         kind: OutcomeKind::Range { index: 0, offset: 0, length: 1 << 20 },
//!         result: OutcomeResult::Success,
//!         bytes: 1 << 20,
//!         duration_ms: if source.peer_id.as_bytes()[0] == 1 { 80 } else { 2_000 },
//!         rtt_ms: Some(20),
//!         at: 1_700_000_000,
//!     });
//! }
//! let best = selector.select(&ContentRequest::new(content, 2), &[peer(1), peer(2)]).peers[0];
//! assert_eq!(best.peer_id, PeerId::from_bytes([1; 32]));
//!
//! // Nobody to choose from is an empty answer, not an error.
//! assert!(selector.select(&ContentRequest::new(content, 2), &[]).is_empty());
//! ```
#![forbid(unsafe_code)]

pub mod config;
mod content;
pub mod dial;
pub mod engine;
mod hints;
mod inbox;
mod leases;
pub mod observe;
mod outcome;
pub mod pool_event;
pub mod quality;
pub mod registry;
mod request;
mod review;
mod slots;
mod state;
#[doc(hidden)]
pub mod tap;
pub mod types;

pub use config::{ClockSource, DEFAULT_REGISTRY_CAPACITY, DISPATCH_TTL_SECS, SelectorConfig};
pub use dial::peer_target;
pub use engine::PeerSelector;
pub use observe::{PeerSnapshot, SelectorSnapshot, peer_id_hex};
pub use pool_event::{PoolEvent, PoolRemovalReason};
pub use quality::{Estimate, PeerQuality};
pub use registry::PeerEntry;
pub use review::{RangeMove, RangeProgress, RangeReview, RangeUnderWay, UnderWay};
pub use types::{
    Candidate, ContentRequest, FailureReason, OutcomeKind, OutcomeResult, Provenance, RangePlanDelta, SelectedPeer,
    Selection, TransferOutcome,
};

pub use dig_dht::{AddressKind, CandidateAddr, ContentId, MAX_DIAL_CANDIDATES, ProviderRecord};
pub use dig_nat::{PeerId, TraversalKind};
pub use dig_peer::PeerTarget;
/// What a host can do about a range that comes too late, for [`PeerSelector::review`].
pub use peer_quality::hedge::Recourse;
/// The terms of a decision, as [`PeerSelector::explain`] gives them.
pub use peer_quality::rank::{Explained, Explanation, Reason};
