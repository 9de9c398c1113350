//! Fails (scenarios A3, A8 the black hole, A17): answers a share of requests with an error, often faster than anyone serves. What is judged by speed alone prefers it.

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Fails {
    pub(super) after_s: f64,
    pub(super) share: f64,
}

impl Conduct for Fails {
    fn answer(&mut self, _asked: &Asked, luck: Luck) -> Answer {
        if luck.befalls(self.share) { Answer::Fails { after_s: self.after_s } } else { Answer::Serves }
    }

    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        link * (1.0 - self.share)
    }
}
