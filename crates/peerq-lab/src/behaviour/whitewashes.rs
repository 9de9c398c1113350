//! Whitewashes: never delivers, and takes a fresh identity every few failures ("identities are cheap, distinct network locations are not"). Its address group stays.
//! Scenario A17.

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Whitewashes {
    failures: u32,
    left: u32,
}

impl Whitewashes {
    pub(super) fn new(failures: u32) -> Self {
        Whitewashes { failures, left: failures }
    }
}

impl Conduct for Whitewashes {
    fn answer(&mut self, _asked: &Asked, _luck: Luck) -> Answer {
        Answer::Fails { after_s: 0.0 }
    }

    fn true_rate(&self, _link: f64, _at_s: f64) -> f64 {
        0.0
    }

    fn sheds_identity(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        let shed = self.left == 0;
        if shed {
            self.left = self.failures;
        }
        shed
    }
}
