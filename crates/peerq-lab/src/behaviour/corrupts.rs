//! Corrupts, always or rarely (scenarios A20, C18, C38): bytes at full speed that do not verify.

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Corrupts {
    pub(super) share: f64,
}

impl Conduct for Corrupts {
    fn answer(&mut self, _asked: &Asked, luck: Luck) -> Answer {
        if luck.befalls(self.share) { Answer::Corrupts } else { Answer::Serves }
    }

    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        link * (1.0 - self.share)
    }
}
