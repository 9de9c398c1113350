//! Farms a reputation, then defects: "behave well to earn a top rank cheaply over low-stakes rounds, then withhold the one fetch that matters … and revert"
//! (The attacks we consider). It withholds every request for one content, then farms again. Scenario B10.

use super::{Answer, Asked, Conduct};
use crate::sim::Luck;

#[derive(Clone)]
pub(super) struct Farms {
    good: u32,
    served: u32,
    withheld: Option<u64>,
}

impl Farms {
    pub(super) fn new(good: u32) -> Self {
        Farms { good, served: 0, withheld: None }
    }
}

impl Conduct for Farms {
    fn answer(&mut self, asked: &Asked, _luck: Luck) -> Answer {
        if self.withheld.is_some_and(|content| content != asked.content) {
            (self.served, self.withheld) = (0, None);
        }
        if self.withheld.is_none() && self.served >= self.good {
            self.withheld = Some(asked.content);
        }
        if self.withheld.is_some() {
            return Answer::Silent;
        }
        self.served += 1;
        Answer::Serves
    }
}
