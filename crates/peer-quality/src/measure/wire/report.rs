//! What a host forwards from a connection to the engine: readings of the wire in the engine's terms.

use super::{Burst, KernelFacts, RttQuantiles};
use crate::facts;
use crate::units::Bytes;

impl From<Burst> for facts::Burst {
    /// The spread of a read's seconds per byte becomes the spread of a gap: times the bytes of a mean read.
    fn from(burst: Burst) -> Self {
        let mean_bytes = burst.bytes.as_f64() / f64::from(burst.gaps.max(1));
        facts::Burst {
            gap_s: burst.gap,
            bytes: burst.bytes,
            gaps: burst.gaps,
            residual_variance: burst.residual_variance * mean_bytes * mean_bytes,
        }
    }
}

impl From<RttQuantiles> for facts::RoundTrip {
    fn from(rtt: RttQuantiles) -> Self {
        let [median_s, high_s, tail_s] = [rtt.median, rtt.high, rtt.tail].map(|span| span.as_secs_f64());
        facts::RoundTrip { median_s, high_s, tail_s }
    }
}

impl From<KernelFacts> for facts::Kernel {
    /// The window of our kernel is that of our uploads: nothing is said of the peer's.
    fn from(kernel: KernelFacts) -> Self {
        let retransmits = kernel.retransmits.map_or(0, u64::from);
        facts::Kernel { rtt_s: kernel.rtt.as_secs_f64(), congestion_window: Bytes::ZERO, retransmits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_bar_is_the_same_on_both_sides() {
        let burst = Burst { gap: 0.4, bytes: Bytes::new(400_000), gaps: 16, residual_variance: 4e-14 };
        let told = facts::Burst::from(burst);
        let error = libm::sqrt(f64::from(told.gaps) * told.residual_variance) / told.bytes.as_f64();
        assert!((error / burst.standard_error().unwrap() - 1.0).abs() < 1e-9, "{error}");
    }
}
