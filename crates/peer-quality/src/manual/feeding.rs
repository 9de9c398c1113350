//! How a host feeds the engine.
//!
//! An engine knows nothing but the [facts](crate::Fact) it is handed, each with the moment at which the host saw it. A host hands over what it has; there are
//! three layers, and each makes answers surer without being required.
//!
//! # Outcomes
//!
//! [`Fact::Ended`](crate::Fact::Ended) alone is enough to rank by what peers delivered. Hand one over for *every* request, with the right
//! [`End`](crate::facts::End):
//!
//! - `Completed` only when everything arrived and was accepted; it is the one end that makes a peer look faster.
//! - `Cancelled` when the host gave up for reasons of its own. Reporting that as a failure punishes peers for the host's decisions.
//! - `Failed(Unavailable)` when the peer said that it does not have it: neither slowness nor unreliability follows.
//! - `Failed(Verification)` is proof, and ranks a peer at the bottom when repeated. Use it only for bytes that contradict their name.
//!
//! `elapsed` runs from sending the request to its end on a clock that does not jump. Zero is taken as "less than a millisecond".
//!
//! [`Fact::Located`](crate::Fact::Located) and [`Fact::Reached`](crate::Fact::Reached) as soon as a peer's address and path are known: one party's many identities then share what one gets.
//!
//! # Fetches
//!
//! [`Fact::Sent`](crate::Fact::Sent) at dispatch, and the time to first byte in each delivery. With the former the engine learns how many requests at once a peer can
//! use, and sees requests become overdue before they end. With the latter it tells far peers from slow ones, without which bodies of
//! different sizes cannot be compared.
//!
//! # Pieces under way
//!
//! Between dispatch and end a host may ask [`Engine::review`](crate::Engine::review) what to do about the requests it has out, again after the span that it names. With
//! what came of each it tells a dribble from a long queue; without, a piece that is overdue is taken to need as long again. A piece given up is reported as any other:
//! `Failed(Timeout)` with its bytes where it was [late](crate::hedge::Move::is_late), `Cancelled` where it was not. Of a piece asked for twice both ends are reported, each of its peer.
//!
//! # The wire
//!
//! - [`Fact::Burst`](crate::Fact::Burst) at the end of each run of SDUs in which none came later than the gate allows. The gap before the first is not part of it, and SDUs that one
//!   read brought together are one arrival.
//! - [`Fact::RoundTrip`](crate::Fact::RoundTrip) about once a second while there are fresh echoes. Leave out samples of requests that the peer answers when it has
//!   something: they time its idleness.
//! - [`Fact::EchoSilence`](crate::Fact::EchoSilence) when bytes of an open reply came for longer than the gate without an echo of an outstanding cookie. Once is enough; it holds until the
//!   next round trip.
//! - [`Fact::Kernel`](crate::Fact::Kernel) where the platform shows it; a congestion window counts for about a second.
//! - [`Fact::Connected`](crate::Fact::Connected) and `Disconnected`: another connection starts cold.
//!
//! The first usable one of the former four gives a peer the state for predictions, about 200 bytes; peers without them do not pay for it. From then on the record
//! of completed fetches ages: while it is younger than about twelve minutes it decides, afterwards the prediction and the average do. A
//! host that never sends them keeps records that do not age.
//!
//! ```
//! use peer_quality::estimate::Basis;
//! use peer_quality::measure::{Burst, RoundTrip};
//! use peer_quality::rank::Work;
//! use peer_quality::units::{Bytes, Time};
//! use peer_quality::{Engine, Fact, Seed};
//!
//! let mut engine = Engine::new(16, Seed::new(1));
//! let now = Time::from_secs(1);
//! let trip = RoundTrip { median_s: 0.05, high_s: 0.06, tail_s: 0.08 };
//! engine.handle("a", Fact::RoundTrip(trip), now);
//! let burst = Burst { gap_s: 0.1, bytes: Bytes::new(2_000_000), gaps: 160, residual_variance: 1e-9 };
//! engine.handle("a", Fact::Burst(burst), now);
//! // A burst without a gap shows no rate: it is ignored, and so is whatever is not a number.
//! engine.handle("b", Fact::Burst(Burst { gaps: 0, ..burst }), now);
//!
//! let (range, ranges) = (Bytes::new(1_000_000), None);
//! let work = Work { range, ranges, sources: 2, scope: 0, decision: 0, in_flight: 0, wanted: None };
//! let slots: Vec<_> = engine.slots().collect();
//! let explanation = engine.explain(&work, &slots, now);
//! let of = |peer| explanation.candidates.iter().find(|one| one.peer == peer).unwrap();
//! assert_eq!((of("a").basis, of("b").basis), (Basis::Predicted, Basis::Prior));
//! assert!(of("a").weight.unwrap() > 0.7 && of("b").weight.is_none());
//! ```
//!
//! # Time
//!
//! Moments may come from any clock as long as all come from the same one. Facts that arrive late or a clock that goes back lose precision and break nothing.
