//! The simulator: a world and a workload in virtual time (LAB-1).
//!
//! # What is simulated
//! - [`draw`]: what the seed decides about a world before anything happens
//! - connections like TCP's: rounds of a window that slow start doubles and CUBIC grows, restart after idleness, repair of losses, timeouts
//! - links: each peer's own, those that a group shares (a relay is such a link too), the client's downlink; max-min fair
//! - peers: serve time, refusals, and what their [`behaviour`](crate::behaviour) makes of it
//! - the client: jobs of ranges that a policy gives to peers; pauses in which it does not read, outages in which nothing arrives
//! - the wire: single SDUs, cookies and echoes, for policies that measure there
//!
//! # What is not
//! Queues have no length (a full link delays nothing but its own bytes, and drops nothing); the client's requests cost no bytes; retransmitted bytes cost
//! no rate; handshakes take no time before a peer joins. Acts on the wire ([`Wire`](crate::model::Wire)) change nothing for policies that know outcomes only.
//! Verification in groups ([`Client::verify_group`](crate::model::Client::verify_group)) changes nothing: every range is verified alone.
//!
//! # Determinism
//! One event queue, ordered by time and by order of planning; every draw from a named [`Stream`], or, for what befalls a single request, by its key
//! ([`Luck`]). The same arguments give the same result, bit for bit.

mod check;
mod draw;
mod luck;
mod network;
mod observe;
mod queue;
mod random;
mod run;
mod ticks;
mod wire;

pub use check::{Flaw, Impossible, check_workload, check_world};
pub use draw::{Draw, PeerDraw, PeerState, completion_s, draw};
pub use luck::{Luck, PeerLuck};
pub use observe::{Fact, Observer};
pub use random::Stream;
pub use run::{HISTORY, Rehearses, Turn, rehearse, run};
