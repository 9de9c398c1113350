//! The coverage at which a sample and its prior are equally sure (EST-4): σ²/τ², the noise within a peer, per byte of coverage, against the spread between peers.
//!
//! Where peers differ widely a little coverage tells them apart, where they are alike the average serves nearly as well as a sample. Both are
//! variances of logarithms, because rates differ by factors. What an adversary can do to either is bounded by the clamp.

use crate::estimate::trust::spread::Spread;

/// Bytes of a typical transfer: the half until there is data, so that one honest transfer earns half the trust. Higher is slow to trust, lower trusts crumbs.
/// Unmeasured heuristic.
pub const TYPICAL_TRANSFER: f64 = 512_000.0;
/// What an idle-gap pacer delivers in one cheap burst, bytes (scenario B1).
pub const CHEAP_BURST: f64 = 50_000.0;
/// The most that one cheap burst may weigh: the estimate then stays within 10 % of the average.
const CHEAP_WEIGHT: f64 = 0.1;
/// The least half. Lower and a cheap burst buys trust; higher and honest data cannot lower it where peers differ widely.
pub const HALF_MIN: f64 = CHEAP_BURST * (1.0 - CHEAP_WEIGHT) / CHEAP_WEIGHT;
/// The greatest half. Higher and honest peers never earn trust; lower and it cannot follow where peers are alike.
pub const HALF_MAX: f64 = 4.0 * TYPICAL_TRANSFER;
/// Most coverage kept, in halves: the weight then is 8/9, and a change shows within a few transfers. More only delays it.
pub const HALVES_MAX: f64 = 8.0;
/// The noise of this many bursts weighs as much as the anchor. Fewer follow chance, more never leave the anchor. Unmeasured heuristic.
const BURSTS_TO_JUDGE: f64 = 32.0;
/// The longest memory of the noise, in bursts. Unmeasured heuristic.
const BURSTS_MEMORY: f64 = 256.0;
/// A burst further than this from its peer's own rate, as a logarithm (a factor of 7), counts as that far: a freak is no noise.
const DEVIATION_MAX: f64 = 2.0;
/// The least variance between peers: factors of 5 %. Below it they are alike.
const BETWEEN_MIN: f64 = 0.0025;

const _: () = assert!(HALF_MIN <= TYPICAL_TRANSFER && TYPICAL_TRANSFER <= HALF_MAX);
const _: () = assert!(CHEAP_BURST / (CHEAP_BURST + HALF_MIN) <= CHEAP_WEIGHT + 1e-9);
const _: () = assert!(HALVES_MAX / (HALVES_MAX + 1.0) >= 0.8, "lasting service earns trust (B13)");

/// The noise within peers: mean of squared deviations of bursts from their own peer's rate, times their coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    variance_bytes: f64,
    bursts: f64,
}

impl Noise {
    /// Counts a burst of `coverage` bytes that deviated by the logarithm `deviation_ln` from its peer's long-run rate. The weight of one burst falls to 1/256.
    pub fn observe(&mut self, deviation_ln: f64, coverage: f64) {
        if !(deviation_ln.is_finite() && coverage > 0.0) {
            return;
        }
        let deviation = deviation_ln.clamp(-DEVIATION_MAX, DEVIATION_MAX);
        self.bursts = (self.bursts + 1.0).min(BURSTS_MEMORY);
        let noise = deviation * deviation * coverage.min(HALF_MAX);
        self.variance_bytes += (noise - self.variance_bytes) / self.bursts;
    }

    /// The half in bytes, given the spread between peers: σ²/τ², anchored while there is little data, within [`HALF_MIN`] and [`HALF_MAX`].
    pub fn half(&self, between: &Spread) -> f64 {
        let Some(variance) = between.variance() else { return TYPICAL_TRANSFER };
        let share = self.bursts / (self.bursts + BURSTS_TO_JUDGE);
        let ratio = (self.variance_bytes / variance.max(BETWEEN_MIN)).clamp(HALF_MIN, HALF_MAX);
        TYPICAL_TRANSFER + share * (ratio - TYPICAL_TRANSFER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(logs: &[f64]) -> Spread {
        let mut spread = Spread::default();
        logs.iter().for_each(|&ln| spread.replace(None, Some((ln, 1.0))));
        spread
    }

    fn noise(deviation_ln: f64, coverage: f64) -> Noise {
        let mut noise = Noise::default();
        (0..1_000).for_each(|nth| noise.observe(if nth % 2 == 0 { deviation_ln } else { -deviation_ln }, coverage));
        noise
    }

    const SHARE: f64 = BURSTS_MEMORY / (BURSTS_MEMORY + BURSTS_TO_JUDGE);

    #[test]
    fn the_half_is_noise_over_spread() {
        // σ² = 0.5² · 1 MB per byte of coverage; τ² = 0.25: the ratio is 1 MB, seen through eight ninths of data.
        let between = spread(&[-14.5, -13.5, -14.5, -13.5, -14.5, -13.5]);
        let half = noise(0.5, 1e6).half(&between);
        assert!((half - (TYPICAL_TRANSFER + SHARE * (1e6 - TYPICAL_TRANSFER))).abs() < 1.0, "{half}");
    }

    #[test]
    fn without_data_it_is_a_typical_transfer() {
        assert_eq!(Noise::default().half(&Spread::default()), TYPICAL_TRANSFER);
        assert_eq!(noise(0.5, 1e6).half(&spread(&[-14.0, -13.0])), TYPICAL_TRANSFER, "two peers are no population");
        assert_eq!(Noise::default().half(&spread(&[-14.0; 9])), TYPICAL_TRANSFER);
    }

    #[test]
    fn no_data_moves_it_out_of_its_bounds() {
        let (alike, unlike) = (spread(&[-14.0; 9]), spread(&[-20.0, -10.0, -20.0, -10.0, -20.0]));
        assert!(noise(f64::MAX, 1e18).half(&alike) <= HALF_MAX);
        assert!(noise(1e-9, 1.0).half(&unlike) >= HALF_MIN);
        assert_eq!(noise(f64::NAN, 1.0), Noise::default());
    }

    #[test]
    fn a_cheap_burst_never_buys_more_than_a_tenth() {
        let weight = crate::estimate::trust::shrinkage::weight(CHEAP_BURST, HALF_MIN);
        assert!((weight - 0.1).abs() < 1e-9);
    }
}
