//! What goes in and comes out of a selector (spec §5.1, §5.2, §5.5). Identities, contents and addresses are the sibling crates' own types.

pub use crate::outcome::{FailureReason, OutcomeKind, OutcomeResult, TransferOutcome};
pub use crate::request::{Candidate, ContentRequest, Provenance, RangePlanDelta, SelectedPeer, Selection};
