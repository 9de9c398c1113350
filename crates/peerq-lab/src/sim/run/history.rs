//! What policies are told before a run: deliveries of some peers, one after the other for each peer, side by side for different ones.

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Span};

use crate::sim::draw::Draw;
use crate::sim::queue::{Micros, micros};

/// One fact of the past: a request that was sent, or, with a delivery, its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) at: Micros,
    pub(crate) peer: u32,
    pub(crate) range: Bytes,
    pub(crate) delivery: Option<Delivery>,
}

/// The past of a world, by time.
pub(crate) fn past(draw: &Draw) -> Vec<Told> {
    let mut told = Vec::new();
    for (index, peer) in draw.peers.iter().enumerate() {
        let Some(history) = peer.history else { continue };
        let rate = history.rate.unwrap_or(peer.start.rate);
        let first_byte = micros(peer.start.rtt_s);
        let elapsed = first_byte.saturating_add(micros(history.bytes as f64 / rate));
        let range = Bytes::new(history.bytes);
        let delivery = Delivery {
            bytes: range,
            elapsed: Span::from_micros(elapsed),
            first_byte: Some(Span::from_micros(first_byte)),
            end: End::Completed,
        };
        for sample in 0..u64::from(history.samples) {
            let begins = elapsed.saturating_mul(sample);
            told.push(Told { at: begins, peer: index as u32, range, delivery: None });
            told.push(Told { at: begins.saturating_add(elapsed), peer: index as u32, range, delivery: Some(delivery) });
        }
    }
    // Stable: of one peer's facts at one moment, the end comes before the next request.
    told.sort_by_key(|told| (told.at, told.peer));
    told
}
