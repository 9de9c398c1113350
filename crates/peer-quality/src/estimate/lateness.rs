//! Deliveries that take several times as long as usual, and how often (RANK-4, scenario C31).
//!
//! The one idea: an estimate that adapts quickly forgets a stall before the next one comes, and an average that remembers it is no longer what a delivery usually
//! takes. So the rare and long ones are counted apart, slowly: their share and their usual length make the mean and the tail dearer.

/// A delivery is late when it takes e^2.5 ≈ 12 times as long as usual. Lower counts the first one over a cold connection, or one beside three others, which takes four
/// times as long and more (A3); higher misses stalls that matter. Unmeasured heuristic.
pub(super) const LATE_LN: f32 = 2.5;
/// The memory, in deliveries: long enough that one in ten is never forgotten over a lucky run, short enough that a peer which mended is believed again within a
/// few hundred. Unmeasured heuristic.
const MEMORY: u8 = 100;
/// The first delivery counts like one of so many: a share of few deliveries is cautious, and one late one among them is forgiven. Higher is slower to see a habit, lower takes an
/// accident for one.
const CAUTION: u8 = 36;
/// A share below this is forgiven: three late deliveries among the last hundred are accidents.
const FORGIVEN: f32 = 0.03;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lateness {
    /// Share of late deliveries.
    share: f32,
    /// Mean of ln(actual / usual) over the late ones.
    ln: f32,
    /// Deliveries counted, up to the memory less the caution.
    seen: u8,
}

impl Lateness {
    /// Counts a delivery by the logarithm of what it took over what is usual.
    #[inline]
    pub fn observe(&mut self, ln: f32) {
        let late = ln.is_finite() && ln > LATE_LN;
        self.share += (f32::from(u8::from(late)) - self.share) / f32::from(CAUTION + self.seen);
        self.seen = (self.seen + 1).min(MEMORY - CAUTION);
        if late {
            self.ln = if self.ln == 0.0 { ln } else { self.ln + 0.25 * (ln - self.ln) };
        }
    }

    /// What the mean is multiplied by, at least 1.
    pub fn mean_factor(&self) -> f64 {
        if self.is_habit() { f64::from(1.0 + self.believed() * (libm::expf(self.ln) - 1.0)) } else { 1.0 }
    }

    /// What the tail at p95 is multiplied by, at least 1: late deliveries decide it once they are no longer rare.
    pub fn tail_factor(&self) -> f64 {
        if self.is_habit() { f64::from(libm::expf(self.ln)).max(1.0) } else { 1.0 }
    }

    /// Whether there are so many that they count.
    pub fn is_habit(&self) -> bool {
        self.believed() > 0.0
    }

    fn believed(&self) -> f32 {
        (self.share - FORGIVEN).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_accident_is_forgiven_and_a_habit_is_not() {
        let mut lateness = Lateness::default();
        lateness.observe(libm::logf(100.0));
        assert_eq!((lateness.mean_factor(), lateness.tail_factor()), (1.0, 1.0));
        for nth in 0..200 {
            lateness.observe(if nth % 10 == 0 { libm::logf(100.0) } else { 0.0 });
        }
        // A tenth of a hundredfold: the mean is eleven times the usual.
        assert!((4.0..14.0).contains(&lateness.mean_factor()), "{}", lateness.mean_factor());
        assert!((80.0..120.0).contains(&lateness.tail_factor()));
        (0..300).for_each(|_| lateness.observe(0.0));
        assert_eq!(lateness.mean_factor(), 1.0);
    }

    #[test]
    fn a_habit_shows_after_a_few_dozen_deliveries() {
        // C31: one in ten takes a hundred times as long, against a peer that always takes twice as long.
        let mut lateness = Lateness::default();
        (0..40).for_each(|nth| lateness.observe(if nth % 10 == 5 { libm::logf(100.0) } else { 0.0 }));
        assert!(lateness.mean_factor() > 2.0, "{}", lateness.mean_factor());
    }

    #[test]
    fn nothing_that_is_no_number_counts() {
        let mut lateness = Lateness::default();
        for ln in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            (0..50).for_each(|_| lateness.observe(ln));
        }
        assert_eq!(lateness.mean_factor(), 1.0);
    }
}
