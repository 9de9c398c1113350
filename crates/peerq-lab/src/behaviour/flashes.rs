//! Covert flash: behave well, build a score, then defect together (GossipSub v1.1 evaluation, facts on the literature). Scenario B14.

use super::{Conduct, Progress, Segment};

#[derive(Clone)]
pub(super) struct Flashes {
    pub(super) at_s: f64,
    pub(super) rate: f64,
}

impl Conduct for Flashes {
    fn segment(&mut self, progress: &Progress) -> Segment {
        if progress.at_s < self.at_s { Segment::FULL } else { Segment::at(self.rate) }
    }

    fn true_rate(&self, link: f64, at_s: f64) -> f64 {
        if at_s < self.at_s { link } else { link.min(self.rate) }
    }

    fn turns_at_s(&self) -> Option<f64> {
        Some(self.at_s)
    }
}
