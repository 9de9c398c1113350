//! Withholds the critical item: "serves everything fast except the single block/EB an adversary wants suppressed" (Surgical withholding). Which content is suppressed
//! follows from its number alone, so all peers of the kind withhold the same.

use super::{Answer, Asked, Conduct};
use crate::sim::{Luck, Stream};

#[derive(Clone)]
pub(super) struct Withholds {
    pub(super) share: f64,
}

impl Conduct for Withholds {
    fn answer(&mut self, asked: &Asked, _luck: Luck) -> Answer {
        let suppressed = Stream::new(0, "suppressed", "content", asked.content).happens(self.share);
        if suppressed { Answer::Silent } else { Answer::Serves }
    }
}
