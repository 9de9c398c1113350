//! Stalls a share of requests half-way and serves the rest well (scenario C31: "1 in 10 ranges takes 50 s, else 0.5 s").

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Stalls {
    pub(super) share: f64,
    pub(super) for_s: f64,
}

impl Conduct for Stalls {
    fn answer(&mut self, _asked: &Asked, luck: Luck) -> Answer {
        if luck.befalls(self.share) { Answer::Stalls { for_s: self.for_s } } else { Answer::Serves }
    }

    // Between its stalls it delivers at the rate of its link: that is what its requests show.
}
