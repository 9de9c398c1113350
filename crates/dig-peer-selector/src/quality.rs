//! A peer's learned quality, as read-only snapshots (spec §3.1). Changing a snapshot changes nothing.

/// A learned quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Estimate {
    value: Option<f64>,
    volatility: f64,
}

impl Estimate {
    pub(crate) fn new(value: Option<f64>, volatility: f64) -> Self {
        Estimate { value, volatility }
    }

    /// The value; none while nothing was measured.
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// Relative spread: 0 without samples, about 0.1 when steady, 1 and more when it swings.
    pub fn relative_volatility(&self) -> f64 {
        self.volatility
    }
}

/// What was learned of a peer, from measured outcomes alone.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct PeerQuality {
    /// Bytes per second of one range's body.
    pub throughput: Estimate,
    /// Time to first byte, milliseconds.
    pub rtt: Estimate,
    /// Share of ranges that ended well, 0..=1.
    pub reliability: Estimate,
    /// Outcomes folded in.
    pub samples: u64,
    /// Failed verifications.
    pub hard_failures: u64,
    /// Ranges in flight, promised ones included.
    pub in_flight: u32,
    /// Ranges that the peer can use at once, as learned or assumed, at least 1.
    pub useful_concurrency: u32,
}
