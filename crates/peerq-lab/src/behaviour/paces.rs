//! Paces (idle-gap): "delivers the closure in tight 50 kB micro-bursts, then goes silent on B for ~500 ms, repeat" (The adversary bind). Scenarios B1, B2.

use super::{Conduct, Progress, Segment};

#[derive(Clone)]
pub(super) struct Paces {
    pub(super) burst_bytes: u64,
    pub(super) gap_s: f64,
}

impl Conduct for Paces {
    fn segment(&mut self, progress: &Progress) -> Segment {
        let pause_s = if progress.sent > 0.0 { self.gap_s } else { 0.0 };
        Segment { pause_s, bytes: self.burst_bytes as f64, rate: f64::INFINITY }
    }

    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        let burst = self.burst_bytes as f64;
        burst / (burst / link + self.gap_s)
    }
}
