//! The distribution of round trips over the last 60 seconds, in steps of one second (MEAS-4).
//!
//! The one idea: one histogram of the whole window is kept up to date, and each second remembers, as (bucket, count) pairs, what to take out of it again. Reading
//! a quantile walks the octaves and then one octave's buckets, with nothing to merge; it happens at most once a second.
//!
//! Buckets are log-linear: every octave of microseconds is cut into 64. The value reported is a bucket's middle, so it is within
//! 1/128 (0.8 %) of the exact quantile, or exact below 128 µs. This is written here because published sketches fall short of one need or another:
//! `no_std`, the same result on every platform (no floating logarithm), and 60 of them in less than 24 KiB.
//!
//! Bounds: 1,280 buckets, 3,072 pairs. Where a peer's jitter needs more, the oldest seconds leave early: the window gets shorter, never less exact.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

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
const PER_OCTAVE: usize = 1 << SUB_BITS;
const OCTAVES: usize = BUCKETS / PER_OCTAVE;
/// (bucket, count) pairs kept for all seconds together: 51 buckets for each of 60, which is a spread of more than a factor of two within every second.
const PAIRS_MAX: usize = 3072;
const PAIRS_INITIAL: usize = 64;

const _: () = assert!(super::outstanding::HOLD.as_micros() < LONGEST_US && BUCKETS < PAIRS_MAX && OCTAVES <= 32);

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
    if bucket < 2 * PER_OCTAVE {
        return Span::from_micros(bucket as u64);
    }
    let shift = bucket / PER_OCTAVE - 1;
    let low = ((bucket % PER_OCTAVE + PER_OCTAVE) << shift) as u64;
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
    counts: Box<[u32; BUCKETS]>,
    octaves: [u32; OCTAVES],
    samples: u32,
    /// The running second, not yet in pairs.
    open: Box<[u16; BUCKETS]>,
    /// One bit for each octave that the running second touched.
    open_octaves: u32,
    /// Buckets that it touched.
    open_distinct: u16,
    second: u64,
    pairs: VecDeque<(u16, u16)>,
    /// Pairs of the second s at s mod 60.
    pairs_in: [u16; WINDOW_SECONDS as usize],
    cached: Option<RttQuantiles>,
    cached_in: u64,
    due_samples: u32,
}

impl RttWindow {
    pub(super) fn new(now: Time) -> Self {
        RttWindow {
            counts: Box::new([0; BUCKETS]),
            octaves: [0; OCTAVES],
            samples: 0,
            open: Box::new([0; BUCKETS]),
            open_octaves: 0,
            open_distinct: 0,
            second: second(now),
            pairs: VecDeque::with_capacity(PAIRS_INITIAL),
            pairs_in: [0; WINDOW_SECONDS as usize],
            cached: None,
            cached_in: second(now),
            due_samples: 1,
        }
    }

    /// Adds one round trip; true when a [`refresh`](Self::refresh) is due. Time must not go back.
    #[inline]
    pub(super) fn record(&mut self, rtt: Span, now: Time) -> bool {
        let second = second(now);
        if second != self.second {
            self.turn(second);
        }
        let at = bucket(rtt.as_micros());
        // A second that is full in one bucket is full: more of the same says nothing new.
        if self.open[at] != u16::MAX {
            self.open_distinct += u16::from(self.open[at] == 0);
            self.open[at] += 1;
            self.counts[at] += 1;
            self.octaves[at / PER_OCTAVE] += 1;
            self.samples += 1;
            self.open_octaves |= 1 << (at / PER_OCTAVE);
        }
        self.is_due(second)
    }

    /// At most once a second, and whenever the samples doubled since, which makes the first ones count at once.
    fn is_due(&self, second: u64) -> bool {
        second != self.cached_in || self.samples >= self.due_samples
    }

    /// Recomputes the quantiles if that is due; true when it did.
    pub(super) fn refresh(&mut self, now: Time) -> bool {
        let second = second(now);
        if !self.is_due(second) {
            return false;
        }
        self.turn(second);
        self.cached_in = second;
        self.due_samples = self.samples.saturating_mul(2).max(1);
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
        (self.samples > 0).then(|| self.ranked(q))
    }

    /// Heap bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        4 * self.counts.len() + 2 * self.open.len() + 4 * self.pairs.capacity()
    }

    /// Middle of the bucket that holds the quantile `q`; there are samples.
    fn ranked(&self, q: f64) -> Span {
        let q = if q.is_nan() { 0.5 } else { q.clamp(0.0, 1.0) };
        let mut rank = (libm::ceil(q * f64::from(self.samples)) as u32).max(1);
        let number = passing(&self.octaves, &mut rank);
        let within = passing(&self.counts[octave(number)], &mut rank);
        middle(octave(number).start + within)
    }

    fn read(&self) -> Option<RttQuantiles> {
        (self.samples > 0).then(|| RttQuantiles {
            median: self.ranked(0.5),
            high: self.ranked(HIGH),
            tail: self.ranked(TAIL),
            samples: self.samples,
        })
    }

    /// Moves the window to `to`.
    #[cold]
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
        let touched = core::mem::take(&mut self.open_octaves);
        let distinct = usize::from(core::mem::take(&mut self.open_distinct));
        let mut oldest = self.second + 1;
        while self.pairs.len() + distinct > PAIRS_MAX {
            self.drop_second(oldest);
            oldest += 1;
        }
        self.make_room(distinct);
        let octaves = (0..OCTAVES).filter(|octave| touched >> octave & 1 == 1);
        for at in octaves.flat_map(octave) {
            let count = core::mem::take(&mut self.open[at]);
            if count > 0 {
                self.pairs.push_back((at as u16, count));
            }
        }
        self.pairs_in[slot(self.second)] = distinct as u16;
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
                self.octaves[usize::from(at) / PER_OCTAVE] -= u32::from(count);
                self.samples -= u32::from(count);
            }
        }
    }
}

/// Buckets of one octave.
fn octave(number: usize) -> core::ops::Range<usize> {
    number * PER_OCTAVE..(number + 1) * PER_OCTAVE
}

/// The place at which the running sum of `counts` reaches `rank`, which is reduced by what lies before it.
fn passing(counts: &[u32], rank: &mut u32) -> usize {
    for (at, count) in counts.iter().enumerate() {
        if *rank <= *count {
            return at;
        }
        *rank -= count;
    }
    counts.len() - 1
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
