//! What a quote reads of a peer, apart from its record: decisions look at thousands of peers, and facts change few of them in between.
//!
//! The one idea: what a quote is made of changes with the peer's own facts, hardly with time. A card holds it, computed once after a fact, and a decision walks
//! along cards of a cache line or so instead of records of several. Where time does count (requests in flight, a pause, a ceiling, the wire), the card says so
//! and the record is asked.

use crate::audit::Standing;
use crate::estimate::population::Prior;
use crate::estimate::{Basis, Connection, Delivered, Forecast, Path, Ramp};
use crate::facts::AddressGroup;
use crate::rank::quote::{Capacity, Terms};
use crate::units::Time;

/// How much of a quote is on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// Nothing: the record has changed.
    Stale,
    /// What the peer delivered; the rest is a matter of time.
    Partial,
    /// All of it.
    Whole,
}

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    /// The last decision that took it; 0 is never.
    pub(crate) last_tried: u64,
    /// The work that it was taken for last.
    pub(crate) scope: u64,
    /// Draws its place among equals.
    pub(crate) salt: u32,
    /// Requests that a decision promised and nobody confirmed yet.
    pub(crate) reserved: u32,
    /// Whether its record is the default one: there is nothing to read and nothing to clear.
    pub(crate) is_blank: bool,
    pub(crate) path: Path,
    pub(crate) group: AddressGroup,
    pub(crate) coverage: Coverage,
    /// What its times are, if not those of its kind.
    pub(crate) times: Option<Times>,
    pub(crate) reliability: f32,
    /// Seconds that a request takes which does not end well.
    pub(crate) lost_s: f32,
    /// Useful concurrency, requests; 0 is that of its kind.
    pub(crate) limit: u8,
    pub(crate) trials_since_change: u8,
    pub(crate) standing: Standing,
    pub(crate) is_failing: bool,
    pub(crate) is_promising: bool,
    pub(crate) is_fitful: bool,
    pub(crate) capacity: Option<Capacity>,
    /// How its connection stands, where the host reports what it dispatches.
    pub(crate) connection: Option<Connection>,
}

/// A forecast that rests on completed bodies, seconds and seconds per byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    first_byte_s: f32,
    secs_per_byte: f32,
    first_byte_tail_s: f32,
    secs_per_byte_tail: f32,
}

impl Times {
    pub(crate) fn of(forecast: &Forecast) -> Times {
        Times {
            first_byte_s: forecast.first_byte_s,
            secs_per_byte: forecast.secs_per_byte,
            first_byte_tail_s: forecast.first_byte_tail_s,
            secs_per_byte_tail: forecast.secs_per_byte_tail,
        }
    }

    /// The forecast less its error bars, which no quote reads.
    #[inline]
    fn forecast(&self) -> Forecast {
        Forecast {
            first_byte_s: self.first_byte_s,
            secs_per_byte: self.secs_per_byte,
            first_byte_tail_s: self.first_byte_tail_s,
            secs_per_byte_tail: self.secs_per_byte_tail,
            first_byte_error_s: 0.0,
            secs_per_byte_error: 0.0,
            ramp: Ramp::default(),
            basis: Basis::Measured,
        }
    }
}

/// What is assumed of the peers of one kind, for one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) prior: Prior,
    /// The forecast of one that was never measured.
    forecast: Forecast,
}

impl Kind {
    pub(crate) fn new(prior: Prior) -> Kind {
        Kind { prior, forecast: Delivered::default().forecast(&prior) }
    }
}

impl Default for Card {
    /// The card of a peer that nothing is known of.
    fn default() -> Self {
        Card {
            last_tried: 0,
            scope: 0,
            salt: 0,
            reserved: 0,
            is_blank: true,
            path: Path::Unknown,
            group: AddressGroup::NONE,
            coverage: Coverage::Whole,
            times: None,
            reliability: 1.0,
            lost_s: 0.0,
            limit: 0,
            trials_since_change: u8::MAX,
            standing: Standing::Fine,
            is_failing: false,
            is_promising: false,
            is_fitful: false,
            capacity: None,
            connection: None,
        }
    }
}

impl Card {
    /// Whether its terms depend on what is assumed of its kind.
    #[inline]
    pub(crate) fn needs_kind(&self) -> bool {
        self.coverage != Coverage::Whole || self.times.is_none() || self.limit == 0
    }

    /// The terms of a quote for work of this `scope`, as far as the card [covers](Coverage) them.
    #[inline]
    pub(crate) fn terms(&self, kind: &Kind, scope: u64, now: Time) -> Terms {
        Terms {
            forecast: with_ramp(self.times.map_or(kind.forecast, |times| times.forecast()), self.connection, now),
            reliability: self.reliability,
            lost_s: self.lost_s,
            in_flight: self.reserved,
            limit: if self.limit == 0 { kind.prior.concurrency } else { self.limit.into() },
            ceiling: None,
            oldest_pending_s: 0.0,
            fresh: 0,
            standing: self.standing,
            cooling: false,
            failing: self.is_failing,
            suspect: false,
            rested: false,
            is_promising: self.is_promising,
            is_fitful: self.is_fitful,
            trials_since_change: self.trials_since_change,
            incumbent: self.scope == scope && self.last_tried > 0,
            withholds_echoes: false,
            capacity: self.capacity,
        }
    }
}

/// The forecast over a connection as warm as it is at `now`.
#[inline]
pub(crate) fn with_ramp(forecast: Forecast, connection: Option<Connection>, now: Time) -> Forecast {
    let Some(connection) = connection else { return forecast };
    let first_byte_s = forecast.first_byte_s.into();
    let ramp = Ramp::new(first_byte_s, forecast.first_byte_tail_s.into(), connection.warmth(Some(first_byte_s), now));
    Forecast { ramp, ..forecast }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measure::{Delivery, End, Fault};
    use crate::peer::Peer;
    use crate::units::{Bytes, Span};

    #[test]
    fn a_card_is_small() {
        let bytes = core::mem::size_of::<Card>();
        assert!(bytes <= 96, "{bytes}");
    }

    fn delivery() -> impl Strategy<Value = Delivery> {
        let end = prop_oneof![
            8 => Just(End::Completed),
            1 => Just(End::Cancelled),
            1 => Just(End::Interrupted),
            1 => Just(End::Failed(Fault::Timeout)),
            1 => Just(End::Failed(Fault::Unavailable)),
            1 => Just(End::Failed(Fault::Verification)),
        ];
        (0..2_000_000_u64, 0..3_000_u64, proptest::option::of(0..200_u64), end).prop_map(
            |(bytes, elapsed, first_byte, end)| Delivery {
                bytes: Bytes::new(bytes),
                elapsed: Span::from_millis(elapsed),
                first_byte: first_byte.map(Span::from_millis),
                end,
            },
        )
    }

    proptest! {
        /// What is on a card is what the record says, and where the card covers everything the record has nothing to add.
        #[test]
        fn a_card_says_what_its_record_says(ends in proptest::collection::vec((delivery(), any::<bool>()), 0..40), later in 0..5_000_u64) {
            let (mut peer, mut card, prior) = (Peer::default(), Card::default(), Prior::default());
            let kind = Kind::new(prior);
            let mut now = Time::from_secs(1);
            for (delivery, is_dispatched) in ends {
                if is_dispatched {
                    peer.sent(1, now);
                }
                now = now + delivery.elapsed;
                peer.ended(&delivery, &prior, now, 0, 0);
                peer.fill(&mut card);
                let asked = now + Span::from_millis(later);
                let (forecast, size) = (peer.forecast(&prior, asked), Bytes::new(300_000));
                let terms = peer.terms(&card, &kind, 1, asked, 0);
                prop_assert_eq!(terms.forecast.mean_s(size), forecast.mean_s(size));
                prop_assert_eq!(terms.forecast.tail_s(size), forecast.tail_s(size));
                prop_assert_eq!(terms.forecast.basis, forecast.basis);
                if card.coverage == Coverage::Whole {
                    let by_card = card.terms(&kind, 1, asked);
                    prop_assert_eq!(alloc::format!("{by_card:?}"), alloc::format!("{terms:?}"));
                }
            }
        }
    }
}
