//! What policies are told before a run: deliveries of some peers, one after the other for each peer, side by side for different ones. They all end well; a peer that
//! stalls in some of its requests did so before.

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Span};

use super::HISTORY;
use crate::behaviour::{Answer, Asked, conduct};
use crate::sim::draw::{Draw, PeerDraw};
use crate::sim::luck::PeerLuck;
use crate::sim::queue::{Micros, micros};

/// One fact of the past: a request that was sent, or, with a delivery, its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) at: Micros,
    pub(crate) peer: u32,
    pub(crate) range: Bytes,
    pub(crate) delivery: Option<Delivery>,
}

/// The past of a world, by time, with the luck that each peer has.
pub(crate) fn past(draw: &Draw, luck: impl Fn(&PeerDraw) -> PeerLuck) -> Vec<Told> {
    let mut told = Vec::new();
    for (index, peer) in draw.peers.iter().enumerate() {
        let Some(history) = peer.history else { continue };
        let rate = history.rate.unwrap_or(peer.start.rate);
        let first_byte = micros(peer.start.rtt_s);
        let usual = first_byte.saturating_add(micros(history.bytes as f64 / rate));
        let range = Bytes::new(history.bytes);
        let luck = luck(peer);
        let mut conduct = conduct(&peer.start.behaviour);
        let mut begins: Micros = 0;
        for nth in 0..history.samples {
            let asked = Asked { content: HISTORY, bytes: history.bytes, at_s: begins as f64 * 1e-6 };
            let stall_s = match conduct.answer(&asked, luck.of(HISTORY, nth)) {
                Answer::Stalls { for_s } => for_s,
                _ => 0.0,
            };
            let elapsed = usual.saturating_add(micros(stall_s));
            let delivery = Delivery {
                bytes: range,
                elapsed: Span::from_micros(elapsed),
                first_byte: Some(Span::from_micros(first_byte)),
                end: End::Completed,
            };
            told.push(Told { at: begins, peer: index as u32, range, delivery: None });
            begins = begins.saturating_add(elapsed);
            told.push(Told { at: begins, peer: index as u32, range, delivery: Some(delivery) });
        }
    }
    // Stable: of one peer's facts at one moment, the end comes before the next request.
    told.sort_by_key(|told| (told.at, told.peer));
    told
}
