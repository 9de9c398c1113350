//! Lacks some ranges and says so (scenario A25, peer A): neither slow nor unreliable.

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Lacks {
    pub(super) share: f64,
}

impl Conduct for Lacks {
    fn answer(&mut self, _asked: &Asked, luck: Luck) -> Answer {
        if luck.befalls(self.share) { Answer::Lacks } else { Answer::Serves }
    }
}
