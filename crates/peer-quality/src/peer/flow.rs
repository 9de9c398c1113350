//! What is kept of a peer from the first request that the host reports as sent, or the first refusal: most of the peers that a table remembers have neither.

use crate::estimate::{Connection, Idleness, Refusals};
use crate::measure::throughput::Load;
use crate::measure::{Delivery, End, Pending, Settled, Stretch, Throughput};
use crate::units::Time;

/// Requests in flight to a peer, and what follows from when they were sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) pending: Pending,
    throughput: Throughput,
    pub(crate) idleness: Idleness,
    pub(crate) refusals: Refusals,
    /// Whether our clock agreed with how long its latest request took.
    is_timed: bool,
}

/// What the end of a request says beside those in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    /// The load right before it.
    pub(crate) before: Load,
    /// The request that it was, if one was in flight.
    pub(crate) settled: Option<Settled>,
    /// The stretch of busy time that it completes.
    pub(crate) stretch: Option<Stretch>,
}

impl Flow {
    /// Requests were sent; `first_byte_s` is the mean time to first byte, seconds.
    pub(crate) fn sent(&mut self, requests: u32, first_byte_s: Option<f64>, now: Time) {
        self.pending.sent(requests, now);
        self.idleness.sent(first_byte_s, now);
    }

    /// How its connection stands, where the clock tells.
    pub(crate) fn connection(&self) -> Option<Connection> {
        self.is_timed.then(|| self.idleness.standing())
    }

    /// A request ended.
    pub(crate) fn ended(&mut self, delivery: &Delivery, now: Time) -> Ending {
        let before = self.pending.load(now);
        let settled = self.pending.settle(delivery.elapsed, now);
        let after = self.pending.load(now);
        // What we gave up teaches nothing, its duration least of all.
        if let Some(settled) = settled.filter(|_| delivery.end != End::Cancelled) {
            self.is_timed = settled.is_timed;
        }
        let stretch = match settled {
            Some(Settled { is_timed: true, .. }) => self.throughput.ended(delivery.bytes, before, after),
            // Its time is not the clock's.
            Some(_) => {
                self.throughput.begin(after);
                None
            }
            None => None,
        };
        Ending { before, settled, stretch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Span};

    #[test]
    fn a_cancelled_request_says_nothing_of_the_clock() {
        let mut flow = Flow::default();
        let mut ends = |end, took_s| {
            flow.sent(1, None, Time::from_secs(10));
            let elapsed = Span::from_secs(took_s);
            flow.ended(&Delivery { bytes: Bytes::new(1), elapsed, first_byte: None, end }, Time::from_secs(12));
            flow.connection().is_some()
        };
        assert_eq!([ends(End::Completed, 2), ends(End::Cancelled, 0), ends(End::Completed, 9)], [true, true, false]);
    }
}
