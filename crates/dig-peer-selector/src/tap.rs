//! A tap on a selector: everything it is told and everything it answers, in the order in which it took effect (LAB-7).
//!
//! Not part of the specified interface, and no knob: a tap sees and changes nothing. It is called while the selector is locked, so it must be quick and must
//! not call the selector.

use dig_nat::{PeerId, TraversalKind};
use peer_quality::units::Time;

use crate::outcome::TransferOutcome;
use crate::pool_event::PoolEvent;
use crate::request::{Candidate, ContentRequest, Provenance, RangePlanDelta, Selection};

/// Sees the calls of a selector.
pub trait Tap: Send + Sync + std::fmt::Debug {
    /// The selector begins, with this seed and registry capacity: all that its answers depend on besides its calls.
    fn begins(&self, seed: u64, capacity: usize);

    /// A call took effect at this moment of the selector's clock.
    fn called(&self, at: Time, call: &Call<'_>);
}

/// A call, with its answer.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Call<'a> {
    Select { request: &'a ContentRequest, candidates: &'a [Candidate], gave: &'a Selection },
    Rebalance { request: &'a ContentRequest, active: &'a [PeerId], need: &'a RangePlanDelta, gave: &'a Selection },
    Outcome(&'a TransferOutcome),
    Dispatched { peer: &'a PeerId, count: u32 },
    Pool(&'a PoolEvent),
    Class { peer: &'a PeerId, class: TraversalKind },
    Upsert { candidate: &'a Candidate, provenance: Provenance },
    Removed(&'a PeerId),
}
