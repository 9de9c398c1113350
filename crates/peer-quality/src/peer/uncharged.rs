//! Charges that can be taken back (AUD-7): what a failure changes in a record, as it was before.

use super::Peer;
use crate::audit::Cooling;
use crate::estimate::population::Prior;
use crate::estimate::{Delivered, Reliability, Retention, Saturation};
use crate::measure::{Delivery, End, Fault};
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

    /// Whether a request ran out of time though its bytes kept coming, as far as the wire is seen.
    pub(crate) fn dribbled(&self, delivery: &Delivery, now: Time) -> bool {
        let was_delivering = || self.wire.as_ref().is_some_and(|wire| wire.was_delivering(delivery.elapsed, now));
        delivery.end == End::Failed(Fault::Timeout) && was_delivering()
    }

    /// Whether a completed delivery took no longer than its own record has it, a cold start allowed for where that is seen.
    pub(crate) fn is_on_time(&self, delivery: &Delivery, prior: &Prior, now: Time) -> bool {
        let deadline_s = match &self.wire {
            Some(wire) => {
                let sent = Time::from_micros(now.as_micros().saturating_sub(delivery.elapsed.as_micros()));
                wire.deadline_s(&self.delivered, delivery.bytes, Some(sent), prior, now)
            }
            None => self.delivered.forecast(prior).tail_s(delivery.bytes).into(),
        };
        self.delivered.is_measured() && delivery.elapsed.as_secs_f64() <= deadline_s
    }
}
