//! What is under way on the links of the yardstick's plan, and which of two offers of one more range is the better one.

use std::collections::BTreeMap;

use super::source::{Source, sane};

/// Ends this near, and gains this near, are equal.
const EQUAL: f64 = 0.03;
/// What is kept under way on the downlink, as a multiple of its rate: replies that start together leave it idle between them.
const AMPLE: f64 = 2.0;
/// A single range may end this much later than the soonest, where that spreads the load: replies of one peer hold each other up.
pub(super) const SPREAD: f64 = 0.15;

/// One more range for one source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Ranges per second that it adds.
    pub(super) gain: f64,
    pub(super) end_s: f64,
    pub(super) in_flight: u32,
    /// Whether it is the last one.
    pub(super) single: bool,
    /// Whether fewer in flight come first.
    pub(super) evenly: bool,
}

impl Offer {
    pub(super) fn beats(&self, other: &Offer) -> bool {
        let near = |a: f64, b: f64, equal: f64| (a - b).abs() <= equal * a.max(b);
        if self.single {
            // Equals take turns, which keeps their connections warm.
            let equal = near(self.end_s, other.end_s, SPREAD) && self.in_flight != other.in_flight;
            return if equal { self.in_flight < other.in_flight } else { self.end_s < other.end_s };
        }
        if self.evenly && self.in_flight != other.in_flight {
            return self.in_flight < other.in_flight;
        }
        if !near(self.gain, other.gain, EQUAL) {
            return self.gain > other.gain;
        }
        if !near(self.end_s, other.end_s, EQUAL) {
            return self.end_s < other.end_s;
        }
        self.in_flight < other.in_flight
    }
}

/// Ranges per second under way, on shared links and on the downlink.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) links: BTreeMap<u32, (f64, f64)>,
    /// Under way, and at most.
    pub(super) down: (f64, f64),
}

impl Load {
    pub(super) fn of(sources: &[Source], range: f64, downlink: Option<f64>) -> Load {
        let down = (0.0, downlink.map_or(f64::INFINITY, |rate| AMPLE * sane(rate) / range));
        let mut load = Load { links: BTreeMap::new(), down };
        for source in sources {
            if let Some((link, rate)) = source.shared {
                load.links.entry(link).or_insert((0.0, rate / range));
            }
            if source.in_flight > 0 {
                let pace = load.gain(source, source.pace(source.in_flight, range));
                load.add(source, pace);
            }
        }
        load
    }

    /// What is left of `more` ranges per second within the links.
    pub(super) fn gain(&self, source: &Source, more: f64) -> f64 {
        let link = source.shared.and_then(|(link, _)| self.links.get(&link));
        let left = |(now, most): &(f64, f64)| (most - now).max(0.0);
        more.max(0.0).min(link.map_or(f64::INFINITY, left)).min(left(&self.down))
    }

    /// Whether the downlink has all it can carry.
    pub(super) fn is_full(&self) -> bool {
        self.down.0 >= self.down.1
    }

    pub(super) fn add(&mut self, source: &Source, pace: f64) {
        self.down.0 += pace;
        if let Some(link) = source.shared.and_then(|(link, _)| self.links.get_mut(&link)) {
            link.0 += pace;
        }
    }
}
