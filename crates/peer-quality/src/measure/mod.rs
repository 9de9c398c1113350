//! Measurement: facts from outside become samples that can be believed, or are refused (MEAS).
//!
//! What arrives here is hostile until checked; what leaves is finite, positive and bounded.

pub mod delivery;
pub mod pending;

pub use delivery::{Delivery, End, Fault, Sample};
pub use pending::{DISPATCH_TTL, Pending};
