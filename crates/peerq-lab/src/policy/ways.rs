//! The ways in which the yardstick may go on with a content: variations of its own plan, for what its model of a world leaves out.
//!
//! No way is best everywhere: whether replies of one peer should overlap, whom a loss will hit, and how much a refusal costs is decided by a rehearsal.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sim::Turn;

/// One way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    /// In flight at a peer beyond what fills its link, so that it never idles between an end and the next request.
    pub(super) spare: f64,
    /// Whether replies of one peer are kept from starting, and so ending, together.
    pub(super) staggers: bool,
    /// Whether all who take part have equally many in flight, however much more one of them would gain by another: a slow one that works without a break delivers more than
    /// the plan expects of it.
    pub(super) evenly: bool,
    /// In flight at a peer beyond what it serves at once: who is refused may find room the next time, and who arrives as another ends finds it at once.
    pub(super) overbooks: u32,
    /// The last slot is kept from a peer until this share of the time of the replies it is sending has passed: replies that end together leave its link idle for a round trip. Meanwhile the slot
    /// knocks at somebody who fails soon, whose failure is an occasion to send.
    pub(super) spaces: f64,
    /// Sources left out, those who would deliver one range soonest.
    pub(super) skips: usize,
    /// Sources used, of those who would deliver one range soonest.
    pub(super) widest: usize,
}

const OWN: Way =
    Way { spare: 2.0, staggers: true, evenly: false, overbooks: 0, spaces: 0.0, skips: 0, widest: usize::MAX };

impl Way {
    /// Leaves the sources that this way uses, by the seconds each takes for one range.
    pub(super) fn narrow<T>(&self, sources: &mut Vec<T>, takes_s: impl Fn(&T) -> f64) {
        if self.skips > 0 || self.widest < sources.len() {
            sources.sort_by(|a, b| takes_s(a).total_cmp(&takes_s(b)));
            // Whoever is left out, somebody is left.
            let skipped = self.skips.min(sources.len().saturating_sub(1));
            sources.drain(..skipped);
            sources.truncate(self.widest);
        }
    }
}

/// For contents of several ranges.
const OF_MANY: [Way; 11] = [
    OWN,
    Way { staggers: false, ..OWN },
    Way { staggers: false, evenly: true, ..OWN },
    Way { staggers: false, evenly: true, spaces: 0.5, ..OWN },
    Way { staggers: false, spare: 4.0, overbooks: 2, ..OWN },
    Way { staggers: false, spaces: 0.5, ..OWN },
    Way { staggers: false, spaces: 0.8, ..OWN },
    Way { staggers: false, widest: 1, ..OWN },
    Way { staggers: false, widest: 2, ..OWN },
    Way { staggers: false, widest: 4, ..OWN },
    Way { staggers: false, skips: 1, ..OWN },
];

/// For contents of one range: its own, or one certain source.
const OF_ONE: [Way; 6] = [OWN, nth(0), nth(1), nth(2), nth(3), nth(4)];

const fn nth(skips: usize) -> Way {
    Way { staggers: false, spare: 64.0, skips, widest: 1, ..OWN }
}

fn of(ranges: u32) -> &'static [Way] {
    if ranges == 1 { &OF_ONE } else { &OF_MANY }
}

/// Which way is gone with which content.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    /// Other than its own, by content.
    gone: BTreeMap<u64, usize>,
    /// What a rehearsal found, and how much of it is done.
    turns: Arc<[Turn]>,
    turned: usize,
    answered: u64,
}

impl Ways {
    /// How many there are for a content of so many ranges.
    pub(super) fn count(ranges: u32) -> usize {
        of(ranges).len()
    }

    /// Those that a rehearsal found.
    pub(super) fn found(turns: Vec<Turn>) -> Self {
        Ways { turns: turns.into(), ..Ways::default() }
    }

    /// The way to answer the next question, about a content of so many ranges.
    pub(super) fn next(&mut self, content: u64, ranges: u32) -> Way {
        while let Some(turn) = self.turns.get(self.turned).filter(|turn| turn.answered <= self.answered) {
            self.gone.insert(turn.content, turn.way);
            self.turned += 1;
        }
        self.answered += 1;
        self.gone.get(&content).and_then(|way| of(ranges).get(*way)).copied().unwrap_or(OWN)
    }

    /// Goes this way from now on.
    pub(super) fn go(&mut self, content: u64, way: usize) {
        self.gone.insert(content, way);
    }

    /// Forgets other contents than these, which ascend.
    pub(super) fn forget_all_but(&mut self, contents: &[u64]) {
        self.gone.retain(|content, _| contents.binary_search(content).is_ok());
    }
}
