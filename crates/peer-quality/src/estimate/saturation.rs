//! The concurrency beyond which a peer's total rate stops rising (EST-10, spec §4.1), learned per peer.
//!
//! Congestion control over requests: for each level of concurrency a decayed mean of the total rate that it achieved; the recommendation is the least level
//! whose next one is not worth its requests. A level that was never tried above the best is tried next (like slow start), and the neighbours of a
//! settled level are tried again now and then, so the recommendation follows a capacity that changes, both ways.

use crate::units::Slowness;

/// The levels tried, roughly in steps of a half: finer tells noise from gain badly, coarser overshoots.
const LEVELS: [f32; 10] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];
/// A level must bring this much more than a lower one to be worth its requests. Requests beyond the peer's rate only queue, and each
/// then takes longer: at 1.05 a link of 3 MB/s ends up with eight ranges that take half a second each. Higher leaves distant
/// peers short of requests. Unmeasured heuristic.
const WORTHWHILE: f32 = 1.1;
/// Ends observed at a level before it is judged. More is slower to climb, fewer judges noise.
const ENDS_TO_JUDGE: u8 = 4;
/// Weight of the level being tried that a judgement waits for.
const SEEN_ENOUGH: f32 = 3.0;
/// After this many ends it is judged all the same: the host may have no use for so many requests.
const ENDS_TO_GIVE_UP: u8 = 32;
/// Judgements between two retrials of a neighbour. At four ends each, one in eight keeps retrials near a tenth of all work.
const JUDGEMENTS_TO_RETRY: u8 = 8;
/// The longest memory of a level, in ends.
const MEMORY: f32 = 12.0;
/// What is left of an older level's weight per end at another: after about 60 ends it has to be seen again.
const FADE: f32 = 0.98;
/// One end says nothing of total rates further than this factor from what is known: an absurd sample must not pass for a capacity.
/// A real change gets there in a few ends.
const BELIEVABLE: f32 = 3.0;
/// The rate of another level further than this factor beyond what one shows is out of date. Lower takes noise for it, higher follows a peer that turned slow later. Unmeasured
/// heuristic.
const OUT_OF_DATE: f32 = 1.5;
/// Least weight of a level that takes part in a judgement.
const KNOWN: f32 = 0.5;

/// See the module documentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Total bytes per second at each level.
    rates: [f32; LEVELS.len()],
    weights: [f32; LEVELS.len()],
    current: u8,
    start: u8,
    ends: u8,
    judgements: u8,
    settled: bool,
    confirmed: bool,
}

impl Saturation {
    /// Starts at the class's concurrency.
    pub fn starting_at(concurrency: u32) -> Self {
        let current = nearest_level(concurrency as f32);
        Saturation {
            rates: [0.0; LEVELS.len()],
            weights: [0.0; LEVELS.len()],
            current,
            start: current,
            ends: 0,
            judgements: 0,
            settled: false,
            confirmed: false,
        }
    }

    /// The recommended number of requests in flight, at least 1.
    #[inline]
    pub fn limit(&self) -> u32 {
        LEVELS[self.current as usize] as u32
    }

    /// The rate of one request alone, bytes per second, where one was seen alone lately.
    pub fn single_rate(&self) -> Option<f32> {
        self.known(0)
    }

    /// Whether the latest concurrency was reported by the host and not only recommended to it.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// The best total rate seen, bytes per second.
    pub fn best_rate(&self) -> Option<f32> {
        (0..LEVELS.len()).filter_map(|at| self.known(at)).reduce(f32::max)
    }

    /// The rate of a level that takes part in judgements.
    #[inline]
    fn known(&self, at: usize) -> Option<f32> {
        (self.weights[at] >= KNOWN).then_some(self.rates[at])
    }

    /// The highest concurrency that was seen lately.
    pub fn highest_level(&self) -> Option<f32> {
        (0..LEVELS.len()).rev().find(|&at| self.known(at).is_some()).map(|at| LEVELS[at])
    }

    /// Whether anything was learned for this peer itself.
    pub fn is_learned(&self) -> bool {
        self.settled
    }

    /// Notes that `concurrency` requests at a time achieved `total` bytes per second together, as `ends` of them showed.
    pub fn observe_total(&mut self, concurrency: f32, total: f32, ends: u8) {
        self.observe(concurrency, total, ends, true);
    }

    /// Notes that one request alone achieved `slowness` while `concurrency` requests were in flight: together they moved about that many times as much.
    /// Where the concurrency is not `confirmed` by dispatches but only what was recommended, it cannot show that more is better, so the
    /// recommendation never rises above its start (scenario C3).
    #[inline]
    pub fn observe_one(&mut self, concurrency: f32, slowness: Slowness, confirmed: bool) {
        self.observe(concurrency, concurrency.max(1.0) * slowness.bytes_per_sec() as f32, 1, confirmed);
    }

    #[inline]
    fn observe(&mut self, concurrency: f32, total: f32, ends: u8, confirmed: bool) {
        self.confirmed = confirmed;
        let at = usize::from(nearest_level(concurrency));
        let rate = self.believable(at, total);
        let fade = (0..ends).fold(1.0, |fade, _| fade * FADE);
        let before = self.weights[at];
        for weight in &mut self.weights {
            *weight *= fade;
        }
        let weight = f32::from(ends).min(SEEN_ENOUGH);
        self.weights[at] = (before + weight).min(MEMORY);
        let step = weight / self.weights[at];
        self.rates[at] += (rate - self.rates[at]) * step;
        // What one end shows may be a pause of our own.
        if before >= KNOWN {
            self.reconcile(at, step);
        }
        self.ends = self.ends.saturating_add(ends);
        let seen = self.weights[self.current as usize] >= SEEN_ENOUGH && self.ends >= ENDS_TO_JUDGE;
        if seen || self.ends >= ENDS_TO_GIVE_UP {
            self.ends = 0;
            self.judge();
            if !confirmed {
                self.current = self.current.min(self.start);
            }
        }
    }

    /// A total rises with the concurrency, and no faster than it: what a level shows bounds what the others, seen before it, can still be. They are brought there in
    /// steps, as a pause of our own shows as low a total once.
    #[inline]
    fn reconcile(&mut self, at: usize, step: f32) {
        let shown = OUT_OF_DATE * self.rates[at];
        let each = shown / LEVELS[at];
        for (rate, level) in self.rates.iter_mut().zip(LEVELS) {
            // Written as the processor's own minimum and maximum, for all levels at a time.
            let by_level = each * level;
            let most = if by_level > shown { by_level } else { shown };
            let bounded = if most < *rate { most } else { *rate };
            *rate += (bounded - *rate) * step;
        }
    }

    #[inline]
    fn believable(&self, at: usize, rate: f32) -> f32 {
        let known = self.known(at).or_else(|| self.best_rate());
        known.map_or(rate, |known| rate.clamp(known / BELIEVABLE, known * BELIEVABLE))
    }

    /// The peer's rate changed: what the levels achieved before says little now.
    pub fn world_changed(&mut self) {
        for weight in &mut self.weights {
            *weight *= 0.25;
        }
    }

    fn judge(&mut self) {
        let Some(best) = self.best_rate() else { return };
        let enough = |at: &usize| self.known(*at).is_some_and(|rate| rate * WORTHWHILE >= best);
        let base = (0..LEVELS.len()).find(enough).unwrap_or(self.current as usize);
        let untried = |at: usize| self.weights.get(at).is_some_and(|weight| *weight < KNOWN);
        self.judgements = self.judgements.wrapping_add(1);
        let next = if untried(base + 1) && !self.settled {
            base + 1
        } else if self.judgements.is_multiple_of(JUDGEMENTS_TO_RETRY) {
            self.settled = true;
            if self.judgements.is_multiple_of(2 * JUDGEMENTS_TO_RETRY) { base + 1 } else { base.saturating_sub(1) }
        } else {
            self.settled = true;
            base
        };
        self.current = next.min(LEVELS.len() - 1) as u8;
    }
}

impl Default for Saturation {
    fn default() -> Self {
        Saturation::starting_at(4)
    }
}

#[inline]
fn nearest_level(concurrency: f32) -> u8 {
    let square = concurrency * concurrency;
    LEVELS.windows(2).position(|pair| square <= pair[0] * pair[1]).unwrap_or(LEVELS.len() - 1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer whose total rate rises by 1 MB/s per request up to `ceiling` requests; the host keeps as many in flight as recommended.
    fn drive(saturation: &mut Saturation, ceiling: u32, ends: usize) -> Vec<u32> {
        (0..ends)
            .map(|_| {
                let n = saturation.limit();
                let each = 1e6 * f64::from(n.min(ceiling)) / f64::from(n);
                saturation.observe_one(n as f32, Slowness::from_bytes_per_sec(each), true);
                saturation.limit()
            })
            .collect()
    }

    fn usual(limits: &[u32]) -> u32 {
        let mut sorted = limits.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    }

    use std::vec::Vec;

    #[test]
    fn each_peer_learns_its_own_ceiling() {
        // C4: ceilings 2 and 16.
        for ceiling in [1, 2, 6, 16, 32] {
            let mut saturation = Saturation::default();
            let limits = drive(&mut saturation, ceiling, 400);
            assert_eq!(usual(&limits[200..]), ceiling);
        }
    }

    #[test]
    fn what_is_only_recommended_proves_no_gain() {
        // C3: the host has one request in flight whatever is recommended, and the peer gets faster.
        let mut saturation = Saturation::default();
        for end in 0..400 {
            let n = saturation.limit() as f32;
            saturation.observe_one(n, Slowness::from_bytes_per_sec(1e6 * f64::from(end + 1)), false);
            assert!((1..=4).contains(&saturation.limit()));
        }
    }

    #[test]
    fn a_ceiling_that_moves_is_followed_both_ways() {
        let mut saturation = Saturation::default();
        drive(&mut saturation, 3, 300);
        let up = drive(&mut saturation, 12, 600);
        assert!(usual(&up[400..]) >= 8, "{}", usual(&up[400..]));
        let down = drive(&mut saturation, 2, 600);
        assert!(usual(&down[400..]) <= 3, "{}", usual(&down[400..]));
    }

    #[test]
    fn what_other_levels_achieved_before_is_no_more_than_what_one_shows_now() {
        let mut saturation = Saturation::default();
        for n in [1, 2, 4, 8] {
            (0..6).for_each(|_| saturation.observe_total(n as f32, 1e6 * n as f32, 1));
        }
        // A tenth of it from now on, seen at one level only: without it the others fade after twice as many.
        (0..40).for_each(|_| saturation.observe_total(4.0, 0.4e6, 1));
        assert!(saturation.best_rate().unwrap() < 3e6, "{:?}", saturation.best_rate());
        assert!(saturation.single_rate().is_none_or(|rate| rate < 1e6), "{:?}", saturation.single_rate());
    }

    #[test]
    fn one_pause_of_our_own_leaves_the_other_levels_alone() {
        let mut saturation = Saturation::default();
        (0..12).for_each(|_| saturation.observe_total(2.0, 4e6, 1));
        let before = saturation.best_rate();
        // Four ends at a concurrency that was not seen before, across an outage.
        saturation.observe_total(4.0, 0.1e6, 4);
        assert_eq!(saturation.best_rate(), before);
    }

    #[test]
    fn one_absurd_end_is_no_capacity() {
        let mut saturation = Saturation::default();
        drive(&mut saturation, 4, 100);
        let before = saturation.best_rate().unwrap();
        saturation.observe_one(4.0, Slowness::from_secs_per_byte(0.0), true);
        assert!(saturation.best_rate().unwrap() < 1.5 * before);
    }

    #[test]
    fn the_level_of_a_concurrency_is_the_nearest() {
        let found = [0.0, 1.0, 2.0, 5.0, 7.0, 100.0, f32::MAX].map(|n| LEVELS[nearest_level(n) as usize]);
        assert_eq!(found, [1.0, 1.0, 2.0, 6.0, 8.0, 32.0, 32.0]);
    }
}
