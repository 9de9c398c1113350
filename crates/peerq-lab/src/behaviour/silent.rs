//! Silent after dispatch (scenario A25, peer B; "accept the fetch" and never serve it): costs the client a whole timeout each time.

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Silent {
    pub(super) share: f64,
}

impl Conduct for Silent {
    fn answer(&mut self, _asked: &Asked, luck: Luck) -> Answer {
        if luck.befalls(self.share) { Answer::Silent } else { Answer::Serves }
    }

    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        link * (1.0 - self.share)
    }
}
