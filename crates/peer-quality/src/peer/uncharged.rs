//! Charges that can be taken back (AUD-7): what a failure changes in a record, as it was before.

use super::Peer;
use crate::audit::Cooling;
use crate::estimate::population::Prior;
use crate::estimate::{Delivered, Reliability, Retention, Saturation};
use crate::measure::Delivery;
use crate::units::Time;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncharged {
    delivered: Delivered,
    reliability: Reliability,
    cooling: Cooling,
    last_failure: Option<Time>,
    saturation: Option<Saturation>,
    retention: Option<Retention>,
}

impl Peer {
    /// What the next failure is charged to.
    pub(crate) fn uncharged(&self) -> Uncharged {
        Uncharged {
            delivered: self.delivered,
            reliability: self.reliability,
            cooling: self.cooling,
            last_failure: self.last_failure,
            saturation: self.saturation,
            retention: self.wire.as_ref().map(|wire| wire.retention),
        }
    }

    /// Takes back what was charged since `before`.
    pub(crate) fn discharge(&mut self, before: &Uncharged) {
        self.delivered = before.delivered;
        self.reliability = before.reliability;
        self.cooling = before.cooling;
        self.last_failure = before.last_failure;
        self.saturation = before.saturation;
        if let (Some(wire), Some(retention)) = (&mut self.wire, before.retention) {
            wire.retention = retention;
        }
        self.delivered_anew = true;
    }

    /// Whether a completed delivery took no longer than its own record has it.
    pub(crate) fn is_on_time(&self, delivery: &Delivery) -> bool {
        let usual = self.delivered.forecast(&Prior::default());
        self.delivered.is_measured() && delivery.elapsed.as_secs_f64() <= f64::from(usual.tail_s(delivery.bytes))
    }
}
