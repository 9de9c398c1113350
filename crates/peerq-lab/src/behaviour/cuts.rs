//! Cuts the connection in the middle of a share of requests (scenario C40): part of the body is in hand, and every other request on the connection ends with it.

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Cuts {
    pub(super) share: f64,
}

impl Conduct for Cuts {
    fn answer(&mut self, _asked: &Asked, luck: Luck) -> Answer {
        if luck.befalls(self.share) { Answer::Cuts } else { Answer::Serves }
    }

    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        link * (1.0 - self.share)
    }
}
