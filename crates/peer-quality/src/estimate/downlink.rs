//! Our own link as the bottleneck (RANK-4, AUD-7, scenario A6): noticed when requests to several peers run out of time although all of them make progress.
//!
//! The one idea: a peer that is slow is slow alone. Where most peers run out of time together (AUD-7), each with some of its bytes,
//! there are more requests than our link finishes in time. What they brought says how many it would finish; from then on no more than that are in flight over all peers.
//! The number grows while requests end well within the time after which they would be given up.

use crate::units::{Bytes, Span, Time};

/// Share of the requests that would just finish in time which are sent. More of them fill the link no better and each takes longer; fewer leave it idle between an end
/// and the next first byte.
const IN_TIME: f64 = 0.45;
/// Requests that end within this share of the time allow one more each: the link is not what bounds them any more. Higher overshoots, lower is slow to notice that a
/// dead link is back.
const AT_EASE: f64 = 0.25;
/// Requests that end in time, but not at ease, for each that may be in flight before one more is tried.
const ENDS_TO_GROW: u32 = 4;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Downlink {
    /// Most requests in flight over all peers; 0 is no limit.
    limit: u32,
    /// When it was lowered last, and after how long a request was given up then.
    cut_at: Time,
    patience: Span,
    /// Ends since the limit changed.
    ends: u32,
}

/// A request that ran out of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedOut {
    /// What it had brought.
    pub bytes: Bytes,
    /// What it was to bring.
    pub size: Bytes,
    /// How long it ran.
    pub elapsed: Span,
    /// Requests in flight over all peers, itself among them.
    pub in_flight: u32,
}

impl Downlink {
    /// Most requests in flight over all peers, if our link is what bounds them.
    pub fn limit(&self) -> Option<u32> {
        (self.limit > 0).then_some(self.limit)
    }

    /// A request ran out of time, as most did.
    pub fn timed_out(&mut self, timed_out: &TimedOut, now: Time) {
        // Silence is no rate; and what was sent before the limit was lowered met the old one.
        let met_this_limit = self.limit == 0 || now.since(self.cut_at) > timed_out.elapsed;
        if timed_out.bytes == Bytes::ZERO || timed_out.in_flight < 2 || !met_this_limit {
            return;
        }
        let done = timed_out.bytes.as_f64() / timed_out.size.as_f64().max(1.0);
        let would_finish = f64::from(timed_out.in_flight) * done * IN_TIME;
        let below = if self.limit > 0 { self.limit - 1 } else { timed_out.in_flight / 2 };
        self.limit = (would_finish as u32).min(below).max(1);
        self.cut_at = now;
        self.patience = timed_out.elapsed;
        self.ends = 0;
    }

    /// A request ended well after `elapsed`.
    pub fn completed(&mut self, elapsed: Span) {
        if self.limit == 0 {
            return;
        }
        self.ends = self.ends.saturating_add(1);
        // One more takes its share of the link from all.
        let (limit, patience_s) = (f64::from(self.limit), self.patience.as_secs_f64());
        let then_s = elapsed.as_secs_f64() * (limit + 1.0) / limit;
        // Whatever else shared the link, so many like this one would have ended in time one after the other.
        let in_turn = (IN_TIME * patience_s / elapsed.as_secs_f64().max(1e-6)) as u32;
        if in_turn > self.limit {
            self.limit = in_turn;
            self.ends = 0;
            return;
        }
        let ends = if then_s <= AT_EASE * patience_s { 1 } else { ENDS_TO_GROW.saturating_mul(self.limit) };
        if self.ends >= ends && then_s <= IN_TIME * patience_s {
            self.limit = self.limit.saturating_add(1);
            self.ends = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(in_flight: u32, kilobytes: u64) -> TimedOut {
        let (bytes, size) = (Bytes::new(kilobytes * 1000), Bytes::new(2_000_000));
        TimedOut { bytes, size, elapsed: Span::from_secs(30), in_flight }
    }

    #[test]
    fn a_link_that_finishes_none_of_sixteen_is_given_what_it_finishes() {
        // 400 KB/s over sixteen requests of 2 MB that are given up after 30 s (as A6).
        let mut link = Downlink::default();
        link.timed_out(&slow(16, 750), Time::from_secs(30));
        assert_eq!(link.limit(), Some(2));
        link.timed_out(&slow(2, 375), Time::from_secs(31));
        assert_eq!(link.limit(), Some(2), "sent before");
        link.timed_out(&slow(2, 375), Time::from_secs(61));
        assert_eq!(link.limit(), Some(1));
    }

    #[test]
    fn silence_and_a_single_request_say_nothing_of_the_link() {
        let mut link = Downlink::default();
        link.timed_out(&slow(16, 0), Time::from_secs(30));
        link.timed_out(&slow(1, 375), Time::from_secs(30));
        assert_eq!(link.limit(), None);
    }

    #[test]
    fn the_limit_grows_as_far_as_requests_end_in_time_and_at_once_when_the_link_is_back() {
        let cut = || {
            let mut link = Downlink::default();
            link.timed_out(&slow(16, 175), Time::from_secs(30));
            link
        };
        // Ten seconds of the link for each request in flight: two end in time, three do not.
        let mut still = cut();
        for _ in 0..1000 {
            still.completed(Span::from_secs(10 * u64::from(still.limit().unwrap())));
        }
        assert_eq!(still.limit(), Some(1), "the one that fills the link");
        let mut back = cut();
        back.completed(Span::from_millis(100));
        assert_eq!(back.limit(), Some(135), "a tenth of a second each, and 30 s of patience");
        (0..200).for_each(|_| back.completed(Span::from_millis(100)));
        assert_eq!(back.limit(), Some(335));
    }
}
