//! The distribution of round trips over the last 60 seconds, in steps of one second (MEAS-4).
//!
//! The one idea: one histogram of the whole window is kept up to date, and each second remembers, as (bucket, count) pairs, what to take out of it again. Reading
//! a quantile is one pass over the histogram, with nothing to merge; it happens at most once a second.
//!
//! Buckets are log-linear: every power of two of microseconds is cut into 64. The value reported is a bucket's middle, so it is within
//! 1/128 (0.8 %) of the exact quantile, or exact below 128 µs. This is written here because published sketches fall short of one need or another:
//! `no_std`, the same result on every platform (no floating logarithm), and 60 of them in less than 24 KiB.
//!
//! Bounds: 1,280 buckets; [`PAIRS_MAX`] pairs. Where a peer's jitter needs more, the oldest seconds leave early: the window gets shorter, never less exact.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;

use crate::units::{Span, Time};

/// Seconds in the window.
/// Longer makes the gate follow a path that changed too late; shorter leaves quiet peers without samples. The Haskell multiplexer's value.
pub const WINDOW_SECONDS: u64 = 60;

/// The quantile for the gate: high enough to hold ordinary jitter, low enough that pauses, hiccups and forgotten blocking waits stay above it.
/// The text gives 0.80 to 0.85; the upper end is affordable because blocking requests are tagged here. Unmeasured heuristic in that range.
pub const HIGH: f64 = 0.85;

/// The quantile for the expected tail.
/// Lower hides occasional long holds of echoes; higher is noise with few samples. Unmeasured heuristic.
pub const TAIL: f64 = 0.95;

const SUB_BITS: u32 = 6;
/// Longer than any cookie waits.
const LONGEST_US: u64 = (1 << 25) - 1;
const BUCKETS: usize = bucket(LONGEST_US) + 1;
/// (bucket, count) pairs kept for all seconds together: 51 buckets for each of 60, which is a spread of more than a factor of two within every second.
const PAIRS_MAX: usize = 3072;
const PAIRS_INITIAL: usize = 64;

const _: () = assert!(super::outstanding::HOLD.as_micros() < LONGEST_US && BUCKETS < PAIRS_MAX);

/// Bucket of a round trip in microseconds.
const fn bucket(us: u64) -> usize {
    let us = if us > LONGEST_US { LONGEST_US } else { us };
    if us < 1 << SUB_BITS {
        return us as usize;
    }
    let shift = us.ilog2() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (us >> shift) as usize
}

/// Middle of a bucket.
const fn middle(bucket: usize) -> Span {
    let per_octave = 1 << SUB_BITS;
    if bucket < 2 * per_octave {
        return Span::from_micros(bucket as u64);
    }
    let shift = bucket / per_octave - 1;
    let low = ((bucket % per_octave + per_octave) << shift) as u64;
    Span::from_micros(low + (1 << shift) / 2)
}

/// What the rest of the engine reads: three quantiles of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttQuantiles {
    /// The median, for the expected ramp.
    pub median: Span,
    /// RTT_hi, for the gate: the quantile [`HIGH`].
    pub high: Span,
    /// The quantile [`TAIL`], for the tail of a prediction.
    pub tail: Span,
    /// Round trips in the window, at least 1.
    pub samples: u32,
}

/// The window.
#[derive(Clone, Debug)]
pub(super) struct RttWindow {
    counts: Box<[u32]>,
    samples: u32,
    /// The running second, not yet in pairs.
    open: Box<[u16]>,
    open_low: usize,
    open_high: usize,
    second: u64,
    pairs: VecDeque<(u16, u16)>,
    /// Pairs of the second s at s mod 60.
    pairs_in: [u16; WINDOW_SECONDS as usize],
    cached: Option<RttQuantiles>,
    cached_in: u64,
}

impl RttWindow {
    pub(super) fn new(now: Time) -> Self {
        RttWindow {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            samples: 0,
            open: vec![0; BUCKETS].into_boxed_slice(),
            open_low: BUCKETS,
            open_high: 0,
            second: second(now),
            pairs: VecDeque::with_capacity(PAIRS_INITIAL),
            pairs_in: [0; WINDOW_SECONDS as usize],
            cached: None,
            cached_in: second(now),
        }
    }

    /// Adds one round trip. Time must not go back.
    pub(super) fn record(&mut self, rtt: Span, now: Time) {
        self.turn(second(now));
        let at = bucket(rtt.as_micros());
        // A second that is full in one bucket is full: more of the same says nothing new.
        if self.open[at] == u16::MAX {
            return;
        }
        self.open[at] += 1;
        self.counts[at] += 1;
        self.samples += 1;
        self.open_low = self.open_low.min(at);
        self.open_high = self.open_high.max(at);
    }

    /// Recomputes the quantiles, at most once a second and whenever the samples doubled since (which makes the first ones count at once).
    /// True when it did.
    pub(super) fn refresh(&mut self, now: Time) -> bool {
        let second = second(now);
        let known = self.cached.map_or(0, |quantiles| quantiles.samples);
        if second == self.cached_in && self.samples < known.saturating_mul(2).max(1) {
            return false;
        }
        self.turn(second);
        self.cached_in = second;
        self.cached = self.read();
        true
    }

    /// The quantiles as last computed.
    pub(super) fn latest(&self) -> Option<RttQuantiles> {
        self.cached
    }

    /// The quantile `q` of the window as of `now`, by nearest rank; none without samples. Values of `q` outside 0 to 1 are clamped.
    pub(super) fn quantile(&mut self, q: f64, now: Time) -> Option<Span> {
        self.turn(second(now));
        let rank = self.rank(q);
        let mut seen = 0;
        self.counts
            .iter()
            .position(|count| {
                seen += count;
                seen >= rank
            })
            .filter(|_| self.samples > 0)
            .map(middle)
    }

    /// Heap bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        4 * self.counts.len() + 2 * self.open.len() + 4 * self.pairs.capacity()
    }

    fn rank(&self, q: f64) -> u32 {
        let q = if q.is_nan() { 0.5 } else { q.clamp(0.0, 1.0) };
        (libm::ceil(q * f64::from(self.samples)) as u32).max(1)
    }

    fn read(&self) -> Option<RttQuantiles> {
        if self.samples == 0 {
            return None;
        }
        let ranks = [self.rank(0.5), self.rank(HIGH), self.rank(TAIL)];
        let mut found = [Span::ZERO; 3];
        let (mut next, mut seen) = (0, 0);
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            while next < ranks.len() && seen >= ranks[next] {
                found[next] = middle(at);
                next += 1;
            }
            if next == ranks.len() {
                break;
            }
        }
        let [median, high, tail] = found;
        Some(RttQuantiles { median, high, tail, samples: self.samples })
    }

    /// Moves the window to `to`.
    fn turn(&mut self, to: u64) {
        if to == self.second {
            return;
        }
        self.seal();
        let steps = to.saturating_sub(self.second).min(WINDOW_SECONDS);
        for step in 0..steps {
            // After a jump of more than a window any 60 consecutive slots are all of them.
            self.drop_second(self.second + 1 + step);
        }
        self.second = to;
    }

    /// Turns the running second into pairs.
    fn seal(&mut self) {
        if self.open_low > self.open_high {
            return;
        }
        let touched = self.open_low..=self.open_high;
        let distinct = self.open[touched.clone()].iter().filter(|count| **count > 0).count();
        let mut oldest = self.second + 1;
        while self.pairs.len() + distinct > PAIRS_MAX {
            self.drop_second(oldest);
            oldest += 1;
        }
        self.make_room(distinct);
        for at in touched {
            let count = core::mem::take(&mut self.open[at]);
            if count > 0 {
                self.pairs.push_back((at as u16, count));
            }
        }
        self.pairs_in[slot(self.second)] = distinct as u16;
        (self.open_low, self.open_high) = (BUCKETS, 0);
    }

    fn make_room(&mut self, more: usize) {
        let needed = self.pairs.len() + more;
        if needed > self.pairs.capacity() {
            let capacity = (2 * self.pairs.capacity()).clamp(needed, PAIRS_MAX.max(needed));
            self.pairs.reserve_exact(capacity - self.pairs.len());
        }
    }

    /// Takes out the second that shares its slot with `second`.
    fn drop_second(&mut self, second: u64) {
        for _ in 0..core::mem::take(&mut self.pairs_in[slot(second)]) {
            if let Some((at, count)) = self.pairs.pop_front() {
                self.counts[usize::from(at)] -= u32::from(count);
                self.samples -= u32::from(count);
            }
        }
    }
}

const fn second(now: Time) -> u64 {
    now.as_micros() / 1_000_000
}

const fn slot(second: u64) -> usize {
    (second % WINDOW_SECONDS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    impl RttWindow {
        fn quantiles(&mut self, now: Time) -> Option<RttQuantiles> {
            self.refresh(now);
            self.latest()
        }
    }

    fn millis(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    /// Exact quantile by nearest rank.
    fn exact(samples: &[u64], q: f64) -> u64 {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        sorted[((q * sorted.len() as f64).ceil() as usize).max(1) - 1]
    }

    fn within(estimate: Span, exact: u64) -> bool {
        estimate.as_micros().abs_diff(exact) as f64 <= exact as f64 / 128.0
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_one_percent_of_the_exact_one(
            samples in prop::collection::vec((0u64..30_000_000, 0u32..20).prop_map(|(us, shift)| us >> shift), 1..600),
            q in 0.0f64..1.0,
        ) {
            let mut window = RttWindow::new(Time::ZERO);
            for (nth, us) in samples.iter().enumerate() {
                window.record(Span::from_micros(*us), Time::from_micros(nth as u64 * 90_000));
            }
            let now = Time::from_micros(samples.len() as u64 * 90_000);
            prop_assert_eq!(window.samples as usize, samples.len());
            let read = window.quantiles(now).unwrap();
            for (q, estimate) in [(q, window.quantile(q, now).unwrap()), (0.5, read.median), (HIGH, read.high), (TAIL, read.tail)] {
                prop_assert!(within(estimate, exact(&samples, q)), "q {q}: {estimate} against {}", exact(&samples, q));
            }
        }

        #[test]
        fn only_the_last_sixty_seconds_count(steps in prop::collection::vec((0u64..4_000_000, 1u64..1_000_000), 1..300)) {
            let (mut window, mut now, mut all) = (RttWindow::new(Time::ZERO), Time::ZERO, Vec::new());
            for (step, us) in steps {
                now = now + Span::from_micros(step);
                window.record(Span::from_micros(us), now);
                all.push((second(now), us));
            }
            let live: Vec<u64> = all.iter().filter(|(at, _)| at + WINDOW_SECONDS > second(now)).map(|(_, us)| *us).collect();
            prop_assert_eq!(window.samples as usize, live.len(), "sample count is conserved");
            prop_assert!(within(window.quantile(0.5, now).unwrap(), exact(&live, 0.5)));
            let (least, most) = (*live.iter().min().unwrap(), *live.iter().max().unwrap());
            let median = window.quantile(0.5, now).unwrap();
            prop_assert!(bucket(median.as_micros()) >= bucket(least) && bucket(median.as_micros()) <= bucket(most));
        }
    }

    #[test]
    fn an_empty_window_has_no_quantile_and_a_jump_empties_it() {
        let mut window = RttWindow::new(Time::ZERO);
        assert_eq!((window.quantile(0.5, Time::ZERO), window.quantiles(Time::ZERO)), (None, None));
        window.record(millis(80), Time::ZERO);
        assert!(within(window.quantiles(Time::ZERO).unwrap().high, 80_000), "the first sample counts at once");
        let later = Time::from_secs(8 * 3600);
        assert_eq!((window.quantile(0.5, later), window.quantiles(later)), (None, None));
        window.record(millis(20), Time::MAX);
        assert_eq!(window.samples, 1);
    }

    #[test]
    fn reading_is_lazy() {
        let mut window = RttWindow::new(Time::ZERO);
        for _ in 0..100 {
            window.record(millis(10), Time::ZERO);
        }
        let before = window.quantiles(Time::ZERO);
        window.record(millis(900), Time::from_micros(999_999));
        assert_eq!(window.quantiles(Time::from_micros(999_999)), before);
        assert_eq!(window.quantiles(Time::from_secs(1)).unwrap().samples, 101);
    }

    #[test]
    fn wild_jitter_shortens_the_window_and_keeps_it_exact() {
        let mut window = RttWindow::new(Time::ZERO);
        let mut recent = Vec::new();
        for nth in 0..60_000_u64 {
            let us = 1 + (nth * 7_919_317) % 3_000_000;
            window.record(Span::from_micros(us), Time::from_micros(nth * 1000));
            recent.push(us);
        }
        let now = Time::from_secs(60);
        let kept = {
            window.quantile(0.5, now);
            window.samples as usize
        };
        assert!((5_000..59_000).contains(&kept), "{kept}");
        let live = &recent[recent.len() - kept..];
        assert!(within(window.quantile(0.9, now).unwrap(), exact(live, 0.9)));
        assert!(window.heap_bytes() <= 20_000, "{}", window.heap_bytes());
    }

    #[test]
    fn buckets_are_dense_and_their_middles_lie_within_them() {
        assert_eq!(BUCKETS, 1280);
        for at in 0..BUCKETS {
            assert_eq!(bucket(middle(at).as_micros()), at);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
