//! Measurement on the wire: cookies out, echoes back, and from their timing round trips, burst rates and stalls (MEAS-1 to MEAS-9, MEAS-11).
//!
//! Each SDU carries a cookie of ours and echoes the peer's freshest one. An echo times a round trip that the peer can lengthen, which costs it rank, but hardly
//! shorten. Between echoes, the spacing of the SDUs of one response shows the rate. The one idea is that both are measured together: data counts only
//! while it is prompt *and* echoes stay fresh, so whichever way a peer hides that it is slow, one of the two shows it.
//!
//! ```text
//!               ┌─ outstanding ─► rtt ─► gate ──┐
//!  SDU ─► echo ─┤                               ▼
//!    │          └─ guessing          window (state machine) ─┬─► burst ─► Event::Burst
//!    └─ payload ────────────────────────▲                    ├─► stall ─► Event::Stall
//!                                  ramp ┘                    └─► live_burst, running_stall
//! ```
//!
//! A host owns one [`Connection`] per connection and calls [`on_egress`](Connection::on_egress) and [`on_ingress`](Connection::on_ingress);
//! [`poll_event`](Connection::poll_event) and [`rtt`](Connection::rtt) are what it forwards.
//!
//! # Example
//!
//! ```
//! use peer_quality::measure::wire::{Connection, CookieSeed, Echo, Options, Reply, Stamp};
//! use peer_quality::units::Time;
//!
//! let ms = |ms: u64| Time::from_micros(1000 * ms);
//! let options = Options { cookies: true, ..Options::default() };
//! let mut connection = Connection::new(CookieSeed::new([7; 32]), options, ms(0));
//! let sent = connection.on_egress(Reply::Prompt, ms(0));
//! let seen = connection.on_ingress(Stamp { send: 500, echo: sent.send }, 12_288, ms(80));
//! assert!(matches!(seen.echo, Echo::Matched(_)));
//! assert_eq!(connection.rtt(ms(80)).unwrap().median.as_millis(), 80);
//! assert_eq!(connection.on_egress(Reply::Prompt, ms(81)).echo, 500);
//!
//! // An echo of something that was never sent is counted and is no sample.
//! let forged = Stamp { send: 501, echo: sent.send ^ 1 };
//! assert_eq!(connection.on_ingress(forged, 12_288, ms(82)).echo, Echo::Unknown);
//! ```

pub mod burst;
pub mod connection;
pub mod cookie;
mod echoes;
pub mod gate;
pub mod guessing;
pub mod header;
pub mod kernel;
pub mod observation;
pub mod outstanding;
mod ramp;
mod report;
pub mod rtt;
pub mod split;
pub mod stall;
mod timeline;
pub mod window;

pub use burst::Burst;
pub use connection::{Connection, INJECT_AFTER, MINT_INTERVAL, Options};
pub use cookie::CookieSeed;
pub use gate::{GATE_FLOOR, gate};
pub use header::{Header, Protocol, Stamp};
pub use kernel::{Attribution, KernelFacts};
pub use observation::{Counters, Echo, Event, Observation, Reply};
pub use outstanding::{HOLD, MAX_OUTSTANDING};
pub use rtt::RttQuantiles;
pub use split::PerProtocol;
pub use stall::{Channel, Stall, StallSummary};
pub use window::State;
