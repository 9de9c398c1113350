//! Our own link as the bottleneck (RANK-4, AUD-7, scenario A6): noticed when requests to several peers run out of time although all of them make progress.
//!
//! The one idea: a peer that is slow is slow alone. Where most peers run out of time together (AUD-7), each with some of its bytes,
//! there are more requests than our link finishes in time. What they brought says how many it would finish; from then on no more than that are in flight over all peers.
//! The first of a peer's requests that brings nothing at all, sent after all that brought something, shows that the link was dead and not full: then there is no limit. The number grows while requests end well within the time after which they would be given up, and where fewer at once move less than many did: then it was not
//! the link.

use crate::units::{Bytes, Span, Time};

/// Share of the requests that would just finish in time which are sent. More of them fill the link no better and each takes longer; fewer leave it idle between an end
/// and the next first byte.
const IN_TIME: f64 = 0.45;
/// Requests that end within this share of the time allow one more each: the link is not what bounds them any more. Higher overshoots, lower is slow to notice that a
/// dead link is back.
const AT_EASE: f64 = 0.25;
/// Requests that end in time, but not at ease, for each that may be in flight before one more is tried.
const ENDS_TO_GROW: u32 = 4;

/// Ends without one that ran out of time, for each that may be in flight, after which one more is tried whatever they took. Higher lives with an old verdict for long, lower
/// crowds a full link. Unmeasured heuristic.
const ENDS_TO_TRY: u32 = 64;
/// Where so many as are allowed move less than this share of what more of them did, one more is tried. Higher takes noise for proof that the link is not full, lower
/// believes in a full link for long. Unmeasured heuristic.
const MOVES_LESS: f64 = 0.8;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Downlink {
    /// Most requests in flight over all peers; 0 is no limit.
    limit: u32,
    /// When it was lowered or lifted last by what ran out of time.
    changed_at: Option<Time>,
    /// When the latest was sent of those that ran out of time and had brought something.
    brought_sent: Option<Time>,
    /// After how long a request was given up when it was lowered.
    patience: Span,
    /// Bytes per second that all requests together moved then.
    moved: f64,
    /// Ends since the limit changed.
    ends: u32,
    /// What those brought that met this limit all the while, and since when.
    brought: Bytes,
    brought_from: Time,
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
    /// Whether its peer had none that was sent earlier.
    pub is_first: bool,
}

impl Downlink {
    /// Most requests in flight over all peers, if our link is what bounds them.
    pub fn limit(&self) -> Option<u32> {
        (self.limit > 0).then_some(self.limit)
    }

    /// A request ran out of time, as most did.
    pub fn timed_out(&mut self, timed_out: &TimedOut, now: Time) {
        let sent = Time::from_micros(now.as_micros().saturating_sub(timed_out.elapsed.as_micros()));
        if timed_out.bytes > Bytes::ZERO {
            self.brought_sent = self.brought_sent.max(Some(sent));
        } else if timed_out.is_first && self.brought_sent.is_none_or(|at| sent > at) {
            // A full link brings everybody something, a dead one nothing: that needs no limit.
            (self.limit, self.changed_at) = (0, Some(now));
        }
        // Silence is no rate; and what was sent before the limit was changed met the old one, or the dead link.
        let met_this_limit = self.changed_at.is_none_or(|at| now.since(at) > timed_out.elapsed);
        if timed_out.bytes == Bytes::ZERO || timed_out.in_flight < 2 || !met_this_limit {
            return;
        }
        let done = timed_out.bytes.as_f64() / timed_out.size.as_f64().max(1.0);
        let would_finish = f64::from(timed_out.in_flight) * done * IN_TIME;
        let below = if self.limit > 0 { self.limit - 1 } else { timed_out.in_flight / 2 };
        self.limit = (would_finish as u32).min(below).max(1);
        self.changed_at = Some(now);
        self.patience = timed_out.elapsed;
        self.moved = f64::from(timed_out.in_flight) * rate(timed_out.bytes, timed_out.elapsed);
        self.ends = 0;
    }

    /// A request for so many bytes ended well after `elapsed`.
    pub fn completed(&mut self, bytes: Bytes, elapsed: Span, now: Time) {
        if self.limit == 0 {
            return;
        }
        self.ends = self.ends.saturating_add(1);
        if self.ends <= self.limit {
            // Sent under another limit.
            (self.brought, self.brought_from) = (Bytes::ZERO, now);
        } else {
            self.brought = Bytes::new(self.brought.get().saturating_add(bytes.get()));
        }
        // One more takes its share of the link from all.
        let (limit, patience_s) = (f64::from(self.limit), self.patience.as_secs_f64());
        let then_s = elapsed.as_secs_f64() * (limit + 1.0) / limit;
        // Whatever else shared the link, so many like this one would have ended in time one after the other.
        let in_turn = (IN_TIME * patience_s / elapsed.as_secs_f64().max(1e-6)) as u32;
        if in_turn > self.limit {
            self.allow(in_turn);
            return;
        }
        let ends = if then_s <= AT_EASE * patience_s { 1 } else { ENDS_TO_GROW.saturating_mul(self.limit) };
        let in_time = self.ends >= ends && then_s <= IN_TIME * patience_s;
        let is_old = self.ends >= ENDS_TO_TRY.saturating_mul(self.limit);
        if in_time || is_old || self.moves_less(now) {
            self.allow(self.limit.saturating_add(1));
        }
    }

    fn allow(&mut self, limit: u32) {
        self.limit = limit;
        self.ends = 0;
    }

    /// Whether so many as are allowed move less than more of them did.
    fn moves_less(&self, now: Time) -> bool {
        let measured = self.ends.saturating_sub(self.limit);
        measured >= ENDS_TO_GROW.max(self.limit.saturating_mul(2))
            && rate(self.brought, now.since(self.brought_from)) < MOVES_LESS * self.moved
    }
}

/// Bytes per second.
fn rate(bytes: Bytes, elapsed: Span) -> f64 {
    bytes.as_f64() / elapsed.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(2_000_000);

    fn slow(in_flight: u32, kilobytes: u64) -> TimedOut {
        TimedOut {
            bytes: Bytes::new(kilobytes * 1000),
            size: SIZE,
            elapsed: Span::from_secs(30),
            in_flight,
            is_first: false,
        }
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
    fn a_dead_link_is_not_a_full_one() {
        // Cut off at 20 s: what was under way brought something, what was sent later brings nothing.
        let mut link = Downlink::default();
        link.timed_out(&slow(16, 750), Time::from_secs(40));
        assert_eq!(link.limit(), Some(2));
        link.timed_out(&slow(16, 0), Time::from_secs(52));
        assert_eq!(link.limit(), Some(2), "it may have waited behind another one of its peer");
        let first = TimedOut { is_first: true, ..slow(16, 0) };
        link.timed_out(&first, Time::from_secs(40));
        assert_eq!(link.limit(), Some(2), "sent together with one that brought something");
        link.timed_out(&first, Time::from_secs(53));
        assert_eq!(link.limit(), None);
        link.timed_out(&slow(16, 10), Time::from_secs(54));
        assert_eq!(link.limit(), None, "the link was dead for most of its time");
        link.timed_out(&slow(16, 10), Time::from_secs(90));
        assert_eq!(link.limit(), Some(1));
    }

    #[test]
    fn where_fewer_move_less_it_was_not_the_link() {
        // Three of four peers fell to a sixteenth at once, and their requests were given up after three seconds.
        let mut link = Downlink::default();
        let late = TimedOut {
            bytes: Bytes::new(470_000),
            size: SIZE,
            elapsed: Span::from_secs(3),
            in_flight: 4,
            is_first: true,
        };
        link.timed_out(&late, Time::from_secs(3));
        assert_eq!(link.limit(), Some(1));
        let mut now = Time::from_secs(3);
        for _ in 0..100 {
            // As many as are allowed, 13 s each.
            now = Time::from_micros(now.as_micros() + 13_000_000 / u64::from(link.limit().unwrap()));
            link.completed(SIZE, Span::from_secs(13), now);
        }
        assert_eq!(link.limit(), Some(4), "as many as moved that much");
    }

    #[test]
    fn the_limit_grows_as_far_as_requests_end_in_time_and_at_once_when_the_link_is_back() {
        let cut = || {
            let mut link = Downlink::default();
            link.timed_out(&slow(16, 175), Time::from_secs(30));
            link
        };
        // Ten seconds of the link for each request in flight: two end in time, three do not.
        let (mut still, mut now) = (cut(), Time::from_secs(30));
        for _ in 0..63 {
            now = Time::from_micros(now.as_micros() + 10_000_000);
            still.completed(SIZE, Span::from_secs(10 * u64::from(still.limit().unwrap())), now);
        }
        assert_eq!(still.limit(), Some(1), "the one that fills the link");
        for _ in 0..64 {
            still.completed(SIZE, Span::from_secs(10), now);
        }
        assert_eq!(still.limit(), Some(2), "now and then one more is tried");
        let mut back = cut();
        back.completed(SIZE, Span::from_millis(100), now);
        assert_eq!(back.limit(), Some(135), "a tenth of a second each, and 30 s of patience");
        (0..200).for_each(|_| back.completed(SIZE, Span::from_millis(100), now));
        assert_eq!(back.limit(), Some(335));
    }
}
