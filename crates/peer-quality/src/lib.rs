//! The engine of peerq: decides whom to fetch from by what peers deliver.
//!
//! Facts flow in ([`Engine::handle`]), advice flows out ([`Engine::decide`], [`Engine::review`], [`Engine::explain`], [`Engine::poll_event`]); nothing in between performs
//! I/O, reads a clock or draws randomness. The folders are the data flow:
//!
//! ```text
//! facts ──► measure ──samples──► estimate ──forecasts──► rank ──► hedge ──► advice
//!              │                                          ▲
//!              └───────────────► audit ────standing───────┘
//! ```
//!
//! - [`measure`]: what a request's end says, what is in flight, and what the wire shows between SDUs
//! - [`estimate`]: time to first byte, slowness, ramp, trust in the wire, reliability, saturation, and the population's averages
//! - [`audit`]: what is proven against a peer, and pauses after failures
//! - [`rank`]: the price of one more request, the order, the plan, the trials, the explanation
//! - [`hedge`]: which pieces under way another peer would bring sooner
//! - [`table`]: the bounded memory they live in
//!
//! The [`manual`] says how to feed it, why its defaults are what they are, and what answers which attack.
//!
//! # Example
//!
//! ```
//! use peer_quality::measure::{Delivery, End};
//! use peer_quality::rank::Work;
//! use peer_quality::units::{Bytes, Span, Time};
//! use peer_quality::{Engine, Fact, Seed};
//!
//! let mut engine = Engine::new(1024, Seed::new(7));
//! for (peer, millis) in [("near", 20), ("far", 900)] {
//!     let delivery = Delivery {
//!         bytes: Bytes::from_kib(256),
//!         elapsed: Span::from_millis(millis),
//!         first_byte: None,
//!         end: End::Completed,
//!     };
//!     engine.handle(peer, Fact::Ended(delivery), Time::from_secs(1));
//! }
//! let candidates: Vec<_> = engine.slots().collect();
//! let work = Work { range: Bytes::from_kib(256), ranges: Some(1), sources: 1, scope: 0, decision: 0, in_flight: 0, wanted: None };
//! let mut advice = Vec::new();
//! engine.decide(&work, &candidates, Time::from_secs(2), &mut advice);
//! assert_eq!(engine.key(advice[0].slot), "near");
//!
//! // Nobody to choose from is an empty answer, not an error.
//! engine.decide(&work, &[], Time::from_secs(2), &mut advice);
//! assert!(advice.is_empty());
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod audit;
pub mod engine;
pub mod estimate;
pub mod facts;
pub mod hedge;
pub mod manual;
pub mod measure;
mod peer;
pub mod rank;
pub mod seed;
pub mod table;
pub mod units;

pub use engine::{Engine, Event, View};
pub use facts::Fact;
pub use seed::Seed;
pub use table::{Admission, Slot};
