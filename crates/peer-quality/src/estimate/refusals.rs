//! What a peer refuses beyond is its capacity (EST-10, scenario A21): information, not a failure.
//!
//! The one idea: "not available" while other requests are in flight to the same peer is the answer of a peer that serves no more at once; the same answer to a
//! request that was alone is the answer of one that does not have it. A ceiling is believed for a while and then tested by one request more.

use crate::units::{Span, Time};

/// How long a ceiling is believed first. Shorter asks to be refused again and again, longer leaves a peer that has room again short of requests.
const FIRST: Span = Span::from_secs(60);
/// How long at most; a ceiling that is met again is believed twice as long each time.
const LONGEST: Span = Span::from_secs(960);

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refusals {
    /// The most that was served at once when more was refused; 0 is none.
    ceiling: u16,
    doublings: u8,
    since: Time,
    /// When a request that was alone was answered so.
    absent_at: Option<Time>,
}

impl Refusals {
    /// A request was answered "not available" while `in_flight`, itself among them, were in flight.
    pub fn refused(&mut self, in_flight: u32, now: Time) {
        if in_flight <= 1 {
            *self = Refusals { absent_at: Some(now), ..Refusals::default() };
        } else if self.absent_at.is_none_or(|at| now.since(at) > FIRST) {
            let below = u16::try_from(in_flight - 1).unwrap_or(u16::MAX);
            let stands = self.stands(now);
            if !stands && self.ceiling > 0 {
                self.doublings = self.doublings.saturating_add(1).min(4);
            }
            self.ceiling = if stands { self.ceiling.min(below) } else { below };
            self.since = now;
        }
    }

    /// The most that may be in flight, if any ceiling stands; after its time one more is tried.
    pub fn ceiling(&self, now: Time) -> Option<u32> {
        let ceiling = u32::from(self.ceiling);
        (ceiling > 0).then(|| if self.stands(now) { ceiling } else { ceiling + 1 })
    }

    /// Whether nothing was refused that has not been served since.
    pub fn is_empty(&self) -> bool {
        self.ceiling == 0
    }

    /// So many were in flight when one of them was served: a ceiling below that is none.
    pub fn served(&mut self, in_flight: f32, now: Time) {
        if self.ceiling > 0 && !self.stands(now) && in_flight > f32::from(self.ceiling) + 0.5 {
            self.ceiling = 0;
            self.doublings = 0;
        }
    }

    fn stands(&self, now: Time) -> bool {
        let span = Span::from_micros(FIRST.as_micros() << self.doublings).min(LONGEST);
        self.ceiling > 0 && now.since(self.since) < span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn a_ceiling_is_found_at_once_and_tested_ever_more_rarely() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.ceiling(at(0)), None);
        refusals.refused(4, at(0));
        refusals.refused(3, at(0));
        assert_eq!(refusals.ceiling(at(59)), Some(2));
        let mut tested = 0;
        for second in 60..3600 {
            if refusals.ceiling(at(second)) == Some(3) {
                refusals.refused(3, at(second));
                tested += 1;
            }
        }
        assert_eq!(tested, 6, "60, 180, 420, 900, 1860, 2820 s");
    }

    #[test]
    fn a_peer_that_has_room_again_is_let() {
        let mut refusals = Refusals::default();
        refusals.refused(3, at(0));
        refusals.served(3.0, at(10));
        assert_eq!(refusals.ceiling(at(10)), Some(2), "what was sent before still ends");
        refusals.served(3.0, at(61));
        assert_eq!(refusals.ceiling(at(61)), None);
    }

    #[test]
    fn a_peer_that_lacks_things_has_no_ceiling() {
        let mut refusals = Refusals::default();
        refusals.refused(5, at(0));
        refusals.refused(1, at(1));
        refusals.refused(5, at(2));
        assert_eq!(refusals.ceiling(at(2)), None);
    }
}
