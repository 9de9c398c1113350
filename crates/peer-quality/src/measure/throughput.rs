//! What requests to one peer achieve together, measured over stretches of busy time (EST-10).
//!
//! The one idea: bytes that arrived over the time in which anything was in flight is a total rate whatever order the peer serves in. Multiplying one
//! request's own rate by the number beside it is not: where requests are served one after the other, the first of a burst looks as fast as the whole link for
//! each of them. A stretch ends with as many ends as were ever in flight in it, so that requests served side by side are counted whole.

use crate::units::{Bytes, Span};

/// The fewest ends of a stretch: fewer are noise, more delay what is learned of a peer that serves few requests.
const MIN_ENDS: u32 = 4;

/// Running sums of one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    bytes: u64,
    ends: u32,
    most: u32,
    busy_from: u64,
    requests_from: u64,
}

/// What the host's requests in flight sum up to, in all; see [`Pending::load`](super::Pending::load).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Time in which anything was in flight, microseconds; wraps.
    pub busy_us: u64,
    /// Requests in flight, integrated over time, request-microseconds; wraps.
    pub request_us: u64,
    /// Requests in flight now.
    pub in_flight: u32,
}

/// One stretch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Bytes per busy second.
    pub bytes_per_sec: f32,
    /// Mean number in flight while busy, at least 1.
    pub concurrency: f32,
}

impl Throughput {
    /// Counts the end of a request that brought `bytes`; `before` and `after` are the load right before and after it. A stretch comes out when it is complete; one
    /// without busy time (a clock that stands still) never is, and refusals alone say nothing of a rate.
    pub fn ended(&mut self, bytes: Bytes, before: Load, after: Load) -> Option<Stretch> {
        self.bytes = self.bytes.saturating_add(bytes.get());
        self.ends += 1;
        self.most = self.most.max(before.in_flight);
        if self.ends < self.most.max(MIN_ENDS) {
            return None;
        }
        let busy = Span::from_micros(after.busy_us.wrapping_sub(self.busy_from)).as_secs_f64();
        let requests = Span::from_micros(after.request_us.wrapping_sub(self.requests_from)).as_secs_f64();
        let stretch = Stretch {
            bytes_per_sec: (self.bytes as f64 / busy) as f32,
            concurrency: ((requests / busy) as f32).max(1.0),
        };
        let brought_any = self.bytes > 0;
        self.begin(after);
        (busy > 0.0 && brought_any).then_some(stretch)
    }

    /// A stretch begins at `load`; what there was of another one is forgotten.
    pub fn begin(&mut self, load: Load) {
        *self = Throughput { busy_from: load.busy_us, requests_from: load.request_us, ..Throughput::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Pending;
    use crate::units::Time;

    const RANGE: Bytes = Bytes::new(1_000_000);

    /// Sends `burst` requests at once and ends them at the given seconds.
    fn burst(ends_s: &[f64]) -> Option<Stretch> {
        let at = |secs: f64| Time::from_micros((secs * 1e6) as u64);
        let (mut pending, mut throughput) = (Pending::default(), Throughput::default());
        pending.sent(ends_s.len() as u32, at(0.0));
        let mut last = None;
        for &end in ends_s {
            let before = pending.load(at(end));
            pending.settle(at(end).since(at(0.0)), at(end));
            last = throughput.ended(RANGE, before, pending.load(at(end)));
        }
        last
    }

    #[test]
    fn a_total_rate_does_not_depend_on_the_order_of_service() {
        // Twelve ranges over a link of 10 MB/s: one after the other, and side by side.
        let fifo: [f64; 12] = core::array::from_fn(|nth| 0.1 * (nth + 1) as f64);
        let fair = [1.2; 12];
        for ends in [fifo, fair] {
            let stretch = burst(&ends).unwrap();
            assert!((stretch.bytes_per_sec / 10e6 - 1.0).abs() < 1e-3, "{stretch:?}");
        }
        assert_eq!(burst(&fair).unwrap().concurrency, 12.0);
        assert_eq!(burst(&fifo).unwrap().concurrency, 6.5);
    }

    #[test]
    fn refusals_are_no_rate() {
        let at = |millis: u64| Time::from_micros(millis * 1000);
        let (mut pending, mut throughput) = (Pending::default(), Throughput::default());
        pending.sent(4, at(0));
        for end in [150, 160, 170, 180] {
            let before = pending.load(at(end));
            pending.settle(Span::from_millis(end), at(end));
            assert_eq!(throughput.ended(Bytes::ZERO, before, pending.load(at(end))), None);
        }
    }

    #[test]
    fn a_stretch_waits_for_as_many_ends_as_were_in_flight() {
        assert_eq!(burst(&[0.1, 0.2, 0.3]), None);
        assert!(burst(&[0.1, 0.2, 0.3, 0.4]).is_some());
        assert_eq!(burst(&[0.0; 8]), None, "a clock that stands still");
    }
}
