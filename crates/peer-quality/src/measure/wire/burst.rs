//! What one burst shows: seconds per byte, on how many bytes, and how evenly (MEAS-7).
//!
//! estBurstS = Σgap / Σsize. The unit is one read of the socket: however many SDUs it drained, their bytes came during the gap before it, so a full
//! receive buffer cannot look like a fast link. The read that opens a burst counts for nothing: its bytes came before there was a gap.
//!
//! Σsize is the coverage, the only measure of trust; the variance is an error bar and never trust, because a metronomic pacer makes it as small as
//! it likes.

use crate::units::{Bytes, Slowness, Span, Time};

/// Closed bursts added up: the evidence that estimation takes in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Burst {
    /// Σgap, seconds, positive.
    pub gap: f64,
    /// Σsize: bytes that came during those gaps, the coverage. At least 1.
    pub bytes: Bytes,
    /// Number of gaps, that is of reads but the opening ones. At least 1.
    pub gaps: u32,
    /// Variance of a read's own seconds per byte about the burst's, weighted by bytes, (s/B)², never negative. Zero for one gap,
    /// where nothing is known of it: see [`standard_error`](Self::standard_error).
    pub residual_variance: f64,
}

impl Burst {
    /// estBurstS, seconds per byte.
    pub fn slowness(&self) -> Slowness {
        Slowness::from_secs_per_byte(self.gap / self.bytes.as_f64())
    }

    /// Standard error of [`slowness`](Self::slowness), seconds per byte: residual_sd / √N. None below two gaps, which is "unknown", not "exact".
    pub fn standard_error(&self) -> Option<f64> {
        (self.gaps >= 2).then(|| libm::sqrt(self.residual_variance / f64::from(self.gaps)))
    }
}

/// Sums of one or more bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    gap: Span,
    bytes: u64,
    gaps: u32,
    /// Σ gap²/size, s²/B.
    squares: f64,
}

impl Sums {
    fn add(&mut self, gap: Span, bytes: u64) {
        // A gap is at most a gate and bytes are those of one read, so the shorter conversion from a signed number is exact.
        let gap_s = gap.as_micros() as i64 as f64 * 1e-6;
        self.squares += gap_s * gap_s / bytes as i64 as f64;
        self.count(gap, bytes, 1);
    }

    pub(super) fn merge(&mut self, other: &Sums) {
        self.squares += other.squares;
        self.count(other.gap, other.bytes, other.gaps);
    }

    fn count(&mut self, gap: Span, bytes: u64, gaps: u32) {
        self.gap = Span::from_micros(self.gap.as_micros().saturating_add(gap.as_micros()));
        self.bytes = self.bytes.saturating_add(bytes);
        self.gaps = self.gaps.saturating_add(gaps);
    }

    /// The burst, if any gap was counted.
    pub(super) fn burst(&self) -> Option<Burst> {
        if self.gaps == 0 || self.bytes == 0 {
            return None;
        }
        let (bytes, n) = (self.bytes as f64, f64::from(self.gaps));
        let gap = self.gap.as_secs_f64();
        let slowness = gap / bytes;
        let spread = (self.squares / bytes - slowness * slowness).max(0.0);
        let residual_variance = if self.gaps > 1 { spread * n / (n - 1.0) } else { 0.0 };
        Some(Burst { gap, bytes: Bytes::new(self.bytes), gaps: self.gaps, residual_variance })
    }
}

/// The burst of an open window. The latest read stays apart until time moves on, since more of its SDUs may follow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accumulator {
    sums: Sums,
    read_at: Time,
    /// Gap before the latest read; none for the one that opened the window.
    read_gap: Option<Span>,
    read_bytes: u64,
}

impl Accumulator {
    /// Opens a window with a read at `now`.
    pub(super) fn begin(&mut self, now: Time, bytes: u64) {
        *self = Accumulator { sums: Sums::default(), read_at: now, read_gap: None, read_bytes: bytes };
    }

    /// One more SDU.
    #[inline]
    pub(super) fn extend(&mut self, now: Time, bytes: u64) {
        if now == self.read_at {
            self.read_bytes = self.read_bytes.saturating_add(bytes);
            return;
        }
        self.flush();
        self.read_gap = Some(now.since(self.read_at));
        self.read_at = now;
        self.read_bytes = bytes;
    }

    /// The sums so far, the latest read among them.
    pub(super) fn sums(&self) -> Sums {
        let mut copy = *self;
        copy.flush();
        copy.sums
    }

    fn flush(&mut self) {
        if let Some(gap) = self.read_gap.take() {
            self.sums.add(gap, self.read_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(reads: &[(u64, u64)]) -> Option<Burst> {
        let mut accumulator = Accumulator::default();
        accumulator.begin(Time::from_micros(reads[0].0), reads[0].1);
        for (us, bytes) in &reads[1..] {
            accumulator.extend(Time::from_micros(*us), *bytes);
        }
        accumulator.sums().burst()
    }

    #[test]
    fn the_opening_read_counts_for_nothing() {
        assert_eq!(burst(&[(0, 1000)]), None);
        assert_eq!(burst(&[(0, 1000), (0, 5000)]), None, "all of it");
        let two = burst(&[(0, 1_000_000), (1000, 500)]).unwrap();
        assert_eq!((two.gap, two.bytes, two.gaps, two.standard_error()), (1e-3, Bytes::new(500), 1, None));
    }

    #[test]
    fn one_read_is_one_arrival_however_many_sdus_it_drained() {
        let whole = burst(&[(0, 1), (1000, 30_000), (2000, 30_000)]).unwrap();
        let split = burst(&[(0, 1), (1000, 10_000), (1000, 20_000), (2000, 5_000), (2000, 25_000)]).unwrap();
        assert_eq!(whole, split);
        assert_eq!((whole.gaps, whole.residual_variance), (2, 0.0));
        assert!((whole.slowness().bytes_per_sec() / 30e6 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_standard_error_is_that_of_a_weighted_mean() {
        // Per-byte times of 1 and 3 µs with equal weight: mean 2, unbiased variance 2.
        let uneven = burst(&[(0, 1), (1000, 1000), (4000, 1000)]).unwrap();
        assert!((uneven.residual_variance / 2e-12 - 1.0).abs() < 1e-9);
        assert!((uneven.standard_error().unwrap() / 1e-6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn bursts_add_up() {
        let mut sums = Sums::default();
        for _ in 0..3 {
            let mut accumulator = Accumulator::default();
            accumulator.begin(Time::ZERO, 1);
            accumulator.extend(Time::from_micros(500), 1000);
            sums.merge(&accumulator.sums());
        }
        let merged = sums.burst().unwrap();
        assert_eq!((merged.bytes, merged.gaps), (Bytes::new(3000), 3));
        assert!((merged.gap - 1.5e-3).abs() < 1e-15);
    }
}
