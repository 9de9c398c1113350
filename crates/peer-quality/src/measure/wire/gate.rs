//! The gate G: how long a burst may be silent, on either channel, before it is over (MEAS-6).
//!
//! The one idea: relative to the round trip. A fast retransmit costs about one round trip and stays inside, as a slower but trusted rate; a retransmission timeout
//! costs several and ends the burst. G measures; it is not what catches a pacer. It is fed by matched echoes only, while what it is compared with
//! is measured apart from them, so that holding all echoes back alike cannot lift both.

use super::rtt::RttQuantiles;
use crate::units::Span;

/// The least G.
/// Too low splits bursts at every pause of a scheduler or collector; too high hides stalls of near peers in their rate. Unmeasured
/// heuristic from the text's "a few tens of ms".
pub const GATE_FLOOR: Span = Span::from_millis(30);

/// G in round trips, in halves: 1.5.
/// At 1 a retransmit ends the burst and strands far peers; at 2 jitter is counted twice, since [`RttQuantiles::high`] holds it already, and timeouts
/// get folded into the rate. The text's value, unmeasured.
const GATE_RTT_HALVES: u64 = 3;

/// How long a connection may be idle and keep its congestion window: the least retransmission timeout of the common stacks.
/// Too low takes warm connections for cold and learns nothing from them; too high takes slow start for a slow peer.
pub const IDLE_FLOOR: Span = Span::from_secs(1);

/// G for these quantiles; the floor where there are none.
pub fn gate(rtt: Option<RttQuantiles>) -> Span {
    rtt.map_or(GATE_FLOOR, |rtt| gate_of(rtt.high))
}

/// G for one high round trip.
pub(super) fn gate_of(high: Span) -> Span {
    Span::from_micros(high.as_micros().saturating_mul(GATE_RTT_HALVES) / 2).max(GATE_FLOOR)
}

/// So many times this gate.
pub(super) fn scaled(gate: Span, scale: f64) -> Span {
    if scale == 1.0 { gate } else { Span::from_micros((gate.as_micros() as f64 * scale) as u64) }
}

/// The silence after which the congestion window counts as lost.
pub(super) fn idle_limit(gate: Span) -> Span {
    gate.max(IDLE_FLOOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_scales_with_the_round_trip_above_its_floor() {
        let high = |millis| {
            let span = Span::from_millis(millis);
            Some(RttQuantiles { median: span, high: span, tail: span, samples: 1 })
        };
        assert_eq!(gate(None), GATE_FLOOR);
        assert_eq!(gate(high(4)), GATE_FLOOR);
        assert_eq!(gate(high(268)), Span::from_millis(402));
        assert_eq!(scaled(gate(high(268)), 0.5), Span::from_millis(201));
        assert_eq!(gate_of(Span::from_micros(u64::MAX)), Span::from_micros(u64::MAX / 2));
    }
}
