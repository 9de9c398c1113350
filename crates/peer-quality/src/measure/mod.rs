//! Measurement: facts from outside become samples that can be believed, or are refused (MEAS).
//!
//! What arrives here is hostile until checked; what leaves is finite, positive and bounded.

pub mod delivery;
pub mod evidence;
pub mod in_flight;
pub mod pending;
pub mod throughput;
pub mod wire;

pub use crate::facts::{Delivery, End, Fault};
pub use delivery::Sample;
pub use evidence::{Burst, Kernel, RoundTrip};
pub use in_flight::InFlight;
pub use pending::{DISPATCH_TTL, Pending, Settled};
pub use throughput::{Load, Stretch, Throughput};
