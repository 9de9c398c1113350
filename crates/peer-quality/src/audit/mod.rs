//! Audit: what may be held against a peer, and how it is worked off (AUD).
//!
//! Inference only deprioritises; proof — bytes that contradict their name — is what puts a peer at the bottom (settled difference 4).
//! This folder returns verdicts; only the engine's top type applies them.

pub mod common_mode;
pub mod cooling;
pub mod proof;

pub use common_mode::CommonMode;
pub use cooling::Cooling;
pub use proof::{Proof, Standing};
