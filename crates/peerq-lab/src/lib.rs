//! The laboratory: deterministic worlds in which policies of peer selection are compared.
//!
//! A world ([`model`]) says what peers there are and how they behave, a workload what is to be fetched, a [`policy`] whom to ask. Everything happens in virtual
//! time, and everything random is drawn from the run's seed.
#![forbid(unsafe_code)]

pub mod behaviour;
pub mod cli;
pub mod fuzz;
pub mod laboratory;
pub mod measure;
pub mod model;
pub mod plan;
pub mod policy;
pub mod record;
pub mod report;
pub mod sim;
pub mod study;
