//! Pads (byte-padder): "sends other bytes fast, serving another protocol request, so the aggregate byte-rate looks high while it dribbles the closure you actually asked for
//! … and the padding carries prompt echoes" (The adversary bind). Scenarios B4, B11.

use super::{Beat, Interval, SDU_BYTES, Sdu};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pads {
    beat: Beat,
}

impl Pads {
    /// While a reply flows, everything that it leaves of the link.
    pub(super) fn besides(&mut self, interval: Interval, link: f64, used: f64, whole: &mut Vec<Sdu>) {
        let left = link - used;
        if used > 0.0 && left > 0.0 {
            self.beat.pass(interval, f64::from(SDU_BYTES) / left * 1e6, SDU_BYTES, whole);
        }
    }
}
