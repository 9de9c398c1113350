//! Pads: "serving other traffic fast, while dribbling the closure we actually asked for" (The attacks we consider). To a client that sees outcomes only, small
//! requests are fast and large ones get a fraction of the link. Scenario B4.

use super::{Conduct, Progress, Segment};

#[derive(Clone)]
pub(super) struct Pads {
    pub(super) above_bytes: u64,
    pub(super) factor: f64,
}

impl Conduct for Pads {
    fn segment(&mut self, progress: &Progress) -> Segment {
        if progress.bytes <= self.above_bytes {
            return Segment::FULL;
        }
        Segment::at(progress.link * self.factor)
    }

    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        link * self.factor
    }
}
