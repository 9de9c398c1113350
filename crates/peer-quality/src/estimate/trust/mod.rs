//! How far a rate read from the wire is to be trusted, and what stands in for it (EST-3 … EST-7, EST-13; text, "Attributing confidence").
//!
//! ```text
//! burst ─► coverage ─► raw rate ──────────┐
//!             │                           ├─ shrinkage ─► rate
//!             └─► weight, against the half┤
//! burst ─► personal ─► own long-run rate ─┤
//!                        │  retention     │
//! population ────────────┴────────────────┘
//! ```
//!
//! Time works on all of it by [`staleness`], whenever it is read or updated. Nothing here looks at variance for trust: a steady
//! hand fakes a low one.

pub mod coverage;
pub mod coverage_half;
pub mod personal;
pub mod retention;
pub mod sanity;
pub mod shrinkage;
pub mod spread;
pub mod staleness;

pub use coverage::Coverage;
pub use coverage_half::Noise;
pub use personal::Personal;
pub use retention::Retention;
pub use sanity::Sanity;
pub use spread::Spread;
