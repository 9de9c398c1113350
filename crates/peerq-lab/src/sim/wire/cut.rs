//! How a reply's bytes become SDUs: the moments at which a flow of constant rate passes their ends.

use super::{Flow, Interval};
use crate::sim::queue::Micros;

/// Rounding slack of byte counts, as in the flows.
const SLACK: f64 = 1e-3;

/// An SDU that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sdu {
    /// When its first byte arrived.
    pub(super) began: Micros,
    /// When its last byte did.
    pub(super) at: Micros,
    pub(super) payload: u32,
    /// It left no sooner than this.
    pub(super) asked_at: Micros,
    /// The reply that it is the first of: its place and serial number there.
    pub(super) begins: Option<(u32, u32)>,
}

/// How far the reply at one place is cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Tells replies at one place apart.
    serial: u32,
    bytes: u64,
    asked_at: Micros,
    /// SDUs that are whole, and where the last of them ended.
    whole: u64,
    end: u64,
    /// When the first byte of the present SDU arrived, once it has.
    began: Option<Micros>,
    is_open: bool,
    was_seen: bool,
}

impl Cut {
    /// A reply of these bytes is to come, to a request that reaches the peer at this moment.
    pub(super) fn begin(&mut self, bytes: u64, asked_at: Micros) {
        *self = Cut { serial: self.serial.wrapping_add(1), bytes, asked_at, is_open: true, ..Cut::default() };
    }

    /// It is over; whether the client saw it begin.
    pub(super) fn end(&mut self) -> bool {
        self.is_open = false;
        self.was_seen
    }

    /// The client reads the first SDU of the reply of this serial number: whether that is still the one here.
    pub(super) fn is_seen_first(&mut self, serial: u32) -> bool {
        let is_it = self.is_open && self.serial == serial;
        self.was_seen |= is_it;
        is_it
    }

    /// Bytes flow; `payload` says how large the nth SDU is, unless the reply ends before.
    pub(super) fn pass(
        &mut self,
        flow: Flow,
        interval: Interval,
        mut payload: impl FnMut(u64) -> u32,
        whole: &mut Vec<Sdu>,
    ) {
        if flow.after <= flow.before {
            return;
        }
        let mut began = *self.began.get_or_insert(interval.from);
        while self.end < self.bytes {
            let end = self.bytes.min(self.end + u64::from(payload(self.whole).max(1)));
            if end as f64 > flow.after + SLACK {
                break;
            }
            let passed_us = ((end as f64 - flow.before) / flow.rate * 1e6).max(0.0);
            let at = interval.from.saturating_add(libm::ceil(passed_us - 1e-6) as Micros).min(interval.to);
            let begins = (self.end == 0).then_some((flow.place, self.serial));
            // Payloads are at most those of a full SDU.
            let payload = (end - self.end) as u32;
            whole.push(Sdu { began, at, payload, asked_at: self.asked_at, begins });
            (self.whole, self.end, began) = (self.whole + 1, end, at);
        }
        // Where an SDU ended with the interval, the next one has not begun.
        self.began = (self.end as f64 + SLACK < flow.after).then_some(began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::wire::SDU_BYTES;

    const RATE: f64 = 12_288e3;

    fn interval(from: Micros, to: Micros) -> Interval {
        Interval { peer: 0, from, to, back: 0 }
    }

    fn pass(cut: &mut Cut, from: Micros, to: Micros, before: f64, after: f64) -> Vec<(Micros, Micros, u32)> {
        let mut whole = Vec::new();
        cut.pass(Flow { place: 0, before, after, rate: RATE }, interval(from, to), |_| SDU_BYTES, &mut whole);
        whole.iter().map(|sdu| (sdu.began, sdu.at, sdu.payload)).collect()
    }

    fn fresh(bytes: u64) -> Cut {
        let mut cut = Cut::default();
        cut.begin(bytes, 0);
        cut
    }

    #[test]
    fn a_constant_rate_ends_sdus_at_even_moments_and_the_last_is_shorter() {
        let got = pass(&mut fresh(30_000), 5_000, 7_442, 0.0, 30_000.0);
        // 1 ms for a full one; 5,424 B take 0.4414 ms.
        assert_eq!(got, [(5_000, 6_000, 12_288), (6_000, 7_000, 12_288), (7_000, 7_442, 5_424)]);
    }

    #[test]
    fn it_makes_no_difference_how_often_a_flow_is_counted() {
        let mut cut = fresh(30_000);
        let steps: [(Micros, Micros); 5] = [(0, 300), (300, 1_000), (1_000, 1_001), (1_001, 2_000), (2_000, 2_442)];
        let bytes = |at: Micros| (at as f64 * 1e-6 * RATE).min(30_000.0);
        let got: Vec<_> =
            steps.iter().flat_map(|(from, to)| pass(&mut cut, *from, *to, bytes(*from), bytes(*to))).collect();
        assert_eq!(got, pass(&mut fresh(30_000), 0, 2_442, 0.0, 30_000.0));
    }

    #[test]
    fn an_sdu_begins_when_its_bytes_flow_again_after_silence() {
        let mut cut = fresh(24_576);
        pass(&mut cut, 0, 1_000, 0.0, 12_288.0);
        assert_eq!(pass(&mut cut, 501_000, 502_000, 12_288.0, 24_576.0), [(501_000, 502_000, 12_288)]);
        let mut torn = fresh(24_576);
        pass(&mut torn, 0, 500, 0.0, 6_144.0);
        assert_eq!(pass(&mut torn, 501_000, 501_500, 6_144.0, 12_288.0), [(0, 501_500, 12_288)], "over the silence");
    }

    #[test]
    fn the_beginning_is_told_once_and_only_of_the_reply_that_is_still_awaited() {
        let mut cut = fresh(1);
        let serial = cut.serial;
        assert!(cut.is_seen_first(serial) && cut.end());
        cut.begin(1, 0);
        assert!(!cut.is_seen_first(serial) && !cut.end());
    }
}
