//! What hostile peers do on the wire, below their replies (LAB-2): one small file for each act, with the passage it comes from.
//!
//! The one idea: an act decides three things, each of which has an honest default: how large SDUs are, what they echo, and what flows besides the replies.
//! [`Wire::MisstatesSize`] and [`Wire::Saturates`] are about offers and shared links, not about SDUs: a client that measures SDUs sees nothing of them, and a
//! client that is told sizes or denies parties does not exist here yet.

mod fills;
mod guesses;
mod holds;
mod pads;
mod stale;

use super::cookies::Cookies;
use super::cut::Sdu;
use super::{Interval, SDU_BYTES};
use crate::model::Wire;
use crate::sim::queue::Micros;
use crate::sim::random::Stream;

/// One peer's act, with whatever it remembers.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Fills(fills::Fills),
    Pads(pads::Pads),
    Holds(holds::Holds),
    Stale(stale::Stale),
    Guesses(Box<guesses::Guesses>),
}

impl Act {
    /// The act that a world asks for, if it is one on SDUs.
    pub(super) fn of(wire: &Wire, stream: Stream) -> Option<Act> {
        match *wire {
            Wire::FillsGaps => Some(Act::Fills(fills::Fills::default())),
            Wire::Pads => Some(Act::Pads(pads::Pads::default())),
            Wire::HoldsEchoes { by_ms } => Some(Act::Holds(holds::Holds::new(by_ms))),
            Wire::EchoesStale => Some(Act::Stale(stale::Stale::default())),
            Wire::GuessesEchoes => Some(Act::Guesses(Box::new(guesses::Guesses::new(stream)))),
            Wire::MisstatesSize { .. } | Wire::Saturates { .. } => None,
        }
    }

    /// Payload of a reply's nth SDU, from 0, unless the reply ends before.
    pub(super) fn payload(act: &Option<Act>, nth: u64) -> u32 {
        match act {
            Some(Act::Guesses(_)) => guesses::payload(nth),
            _ => SDU_BYTES,
        }
    }

    /// What an SDU echoes that leaves the peer at `left`.
    pub(super) fn echo(act: &mut Option<Act>, cookies: &mut Cookies, left: Micros) -> u16 {
        match act {
            Some(Act::Holds(holds)) => holds.echo(cookies, left),
            Some(Act::Stale(stale)) => stale.echo(cookies, left),
            Some(Act::Guesses(guesses)) => guesses.echo(),
            Some(Act::Fills(_) | Act::Pads(_)) | None => cookies.freshest(left),
        }
    }

    /// SDUs of other protocols in an interval; see [`flows_besides`](super::Wires::flows_besides).
    pub(super) fn besides(&mut self, interval: Interval, link: f64, used: f64, lulls: bool, whole: &mut Vec<Sdu>) {
        match self {
            Act::Fills(fills) => fills.besides(interval, lulls, whole),
            Act::Pads(pads) => pads.besides(interval, link, used, whole),
            Act::Holds(_) | Act::Stale(_) | Act::Guesses(_) => {}
        }
    }
}

/// Sends SDUs of one size at a steady pace while there is reason to.
#[derive(Clone, Copy, Debug, Default)]
struct Beat {
    /// How much of the present SDU is sent, 0..1.
    done: f64,
}

impl Beat {
    /// An interval with an SDU every `every_us`.
    fn pass(&mut self, interval: Interval, every_us: f64, payload: u32, whole: &mut Vec<Sdu>) {
        let length_us = (interval.to - interval.from) as f64;
        let mut next_us = (1.0 - self.done) * every_us;
        let mut began = interval.from;
        while next_us <= length_us {
            let at = interval.from + next_us as Micros;
            whole.push(Sdu { began, at, payload, asked_at: 0, begins: None });
            began = at;
            next_us += every_us;
        }
        self.done = (1.0 - (next_us - length_us) / every_us).clamp(0.0, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_even_however_often_it_is_counted() {
        let moments = |cuts: &[Micros]| {
            let (mut beat, mut whole, mut from) = (Beat::default(), Vec::new(), 0);
            for to in cuts.iter().copied() {
                beat.pass(Interval { peer: 0, from, to, back: 0 }, 20_000.0, 64, &mut whole);
                from = to;
            }
            whole.iter().map(|sdu| sdu.at).collect::<Vec<_>>()
        };
        assert_eq!(moments(&[65_000]), [20_000, 40_000, 60_000]);
        assert_eq!(moments(&[8_000, 40_000, 41_000, 65_000]), [20_000, 40_000, 60_000]);
    }
}
