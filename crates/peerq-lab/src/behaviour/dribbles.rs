//! Dribbles (slow-loris): "accept the fetch and drip-feed it … it ties up our fetch slot" (The attacks we consider). With bytes served well first it is the
//! co-located dribbler, which "looks genuinely fast while dribbling the payload". Scenarios A9, B6.

use super::{Conduct, Progress, Segment};

#[derive(Clone)]
pub(super) struct Dribbles {
    pub(super) after_bytes: u64,
    pub(super) rate: f64,
}

impl Conduct for Dribbles {
    fn segment(&mut self, progress: &Progress) -> Segment {
        let left = self.after_bytes as f64 - progress.served;
        if left >= 1.0 { Segment { bytes: left, ..Segment::FULL } } else { Segment::at(self.rate) }
    }

    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        link.min(self.rate)
    }
}
