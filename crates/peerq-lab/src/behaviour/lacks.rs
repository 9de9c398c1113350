//! Lacks some ranges and says so (scenario A25, peer A): neither slow nor unreliable.

use super::{Answer, Asked, Conduct};
use crate::sim::Stream;

pub(super) struct Lacks {
    pub(super) share: f64,
}

impl Conduct for Lacks {
    fn answer(&mut self, _asked: &Asked, luck: &mut Stream) -> Answer {
        if luck.happens(self.share) { Answer::Lacks } else { Answer::Serves }
    }
}
