//! Fills gaps (busy-filler): "fill the stalls with SDUs so the echoes stay prompt and nothing looks held back. But those filler SDUs keep the burst alive, so they fold into
//! estBurstS, which then reads the honest, slow rate" (The adversary bind). Scenario B3.
//!
//! The filler is other replies, which the peer can only send to other requests of ours, so they are small; large ones would be padding.

use super::{Beat, Interval, Sdu};

/// Between two fillers, microseconds: below every gate.
const EVERY_US: f64 = 20_000.0;
/// Payload of one: a reply of a small protocol.
const PAYLOAD: u32 = 64;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fills {
    beat: Beat,
}

impl Fills {
    pub(super) fn besides(&mut self, interval: Interval, lulls: bool, whole: &mut Vec<Sdu>) {
        if lulls {
            self.beat.pass(interval, EVERY_US, PAYLOAD, whole);
        }
    }
}
