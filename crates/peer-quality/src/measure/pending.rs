//! Requests in flight to one peer (MEAS-10, EST-11): each carries its own time, so each ages on its own.
//!
//! A busy peer is never forgotten while requests run (scenario C13), and a request whose end never arrives is released after a bounded
//! time instead of pinning the peer for ever (spec §5.3).
//!
//! How many requests ran beside one is a mean over its own life, from a running integral of the number in flight: the number at its start or end would be
//! too high whenever more was just added, and a rate multiplied by it would reward adding more.

use alloc::collections::VecDeque;

use crate::measure::throughput::Load;
use crate::units::{Span, Time};

/// How long a request may stay without an end before it is taken as lost.
/// Too long lets silent peers look busy; too short frees a slot that a slow, honest transfer still uses. The value is part of the
/// selector's public contract.
pub const DISPATCH_TTL: Span = Span::from_secs(300);

/// The most requests to one peer that are tracked singly; more are refused a place and not counted.
/// Far above any useful concurrency, and a bound on memory.
pub const MAX_PENDING: usize = 1024;

/// One request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// When it was sent.
    pub at: Time,
    /// How many were in flight to the peer right after it was sent, itself among them.
    concurrency: u32,
    /// The integral when it was sent, request-microseconds.
    integral: u64,
}

/// The requests in flight to one peer, oldest first. At most [`MAX_PENDING`]; those older than [`DISPATCH_TTL`] are released.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    dispatches: VecDeque<Dispatch>,
    /// Number in flight, integrated over time, request-microseconds; wraps.
    integral: u64,
    /// Time in which anything was in flight, microseconds; wraps.
    busy: u64,
    integrated_to: Time,
}

/// What is known of a request that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// When it was sent.
    pub at: Time,
    /// How many requests to the peer were in flight on average while it ran, itself among them, at least 1.
    pub concurrency: f32,
    /// Whether our clock has it running for about as long as it is said to have taken: a clock of whole seconds, or one that a test moves by hand, says nothing of shorter
    /// times.
    pub is_timed: bool,
}

/// A clock and a duration that differ by this share of the longer, or by [`CLOCK_SLACK`], are about the same thing. Lower distrusts hosts that time a little more or less than the
/// request itself, higher believes clocks that stand beside what happens. Unmeasured heuristic.
const CLOCK_SHARE: f64 = 0.1;
/// See [`CLOCK_SHARE`].
const CLOCK_SLACK: Span = Span::from_millis(20);

/// Whether a clock that ran for `ran` says the same as a duration of `took`.
fn agree(ran: Span, took: Span) -> bool {
    let (less, more) = (ran.min(took), ran.max(took));
    more - less <= CLOCK_SLACK || less.as_secs_f64() >= (1.0 - CLOCK_SHARE) * more.as_secs_f64()
}

impl Dispatch {
    /// Requests in flight on average from then until `now`, the running sum being `integral`.
    fn beside(&self, integral: u64, now: Time) -> f32 {
        // A clock that stands still integrates nothing; then the number at the start has to do.
        let concurrency = match now.since(self.at).as_micros() {
            0 => self.concurrency as f32,
            life => integral.wrapping_sub(self.integral) as f32 / life as f32,
        };
        concurrency.clamp(1.0, MAX_PENDING as f32)
    }
}

impl Pending {
    /// How many are in flight.
    pub fn len(&self) -> u32 {
        self.dispatches.len() as u32
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.dispatches.is_empty()
    }

    /// When the oldest was sent.
    pub fn oldest(&self) -> Option<Time> {
        self.dispatches.front().map(|dispatch| dispatch.at)
    }

    /// How many were sent less than `age_s` seconds ago.
    pub fn younger_than(&self, age_s: f64, now: Time) -> u32 {
        self.dispatches.iter().rev().take_while(|dispatch| now.since(dispatch.at).as_secs_f64() < age_s).count() as u32
    }

    /// Notes `requests` sent at once.
    pub fn sent(&mut self, requests: u32, now: Time) {
        self.integrate(now);
        let room = MAX_PENDING - self.dispatches.len();
        let requests = (requests as usize).min(room);
        let (concurrency, integral) = ((self.dispatches.len() + requests) as u32, self.integral);
        self.dispatches.extend(core::iter::repeat_n(Dispatch { at: now, concurrency, integral }, requests));
    }

    /// The sums up to `now`.
    pub fn load(&mut self, now: Time) -> Load {
        self.integrate(now);
        Load { busy_us: self.busy, request_us: self.integral, in_flight: self.len() }
    }

    fn integrate(&mut self, now: Time) {
        let passed = now.since(self.integrated_to).as_micros();
        self.integral = self.integral.wrapping_add(passed.wrapping_mul(self.dispatches.len() as u64));
        if !self.dispatches.is_empty() {
            self.busy = self.busy.wrapping_add(passed);
        }
        self.integrated_to = now;
    }

    /// Settles the request that ran for `elapsed` until `now`: of those in flight, the one whose start fits best, the oldest among equals.
    /// None where nothing was in flight (a host that does not report what it sends).
    pub fn settle(&mut self, elapsed: Span, now: Time) -> Option<Settled> {
        self.integrate(now);
        let at = self.fitting(elapsed, now)?;
        let dispatch = self.dispatches.remove(at)?;
        let ran = now.since(dispatch.at);
        let is_timed = ran > Span::ZERO && agree(ran, elapsed);
        Some(Settled { at: dispatch.at, concurrency: dispatch.beside(self.integral, now), is_timed })
    }

    /// Requests in flight on average while the one that [`settle`](Self::settle) would find was, itself among them.
    pub fn beside(&mut self, elapsed: Span, now: Time) -> Option<f32> {
        self.integrate(now);
        self.fitting(elapsed, now).map(|at| self.dispatches[at].beside(self.integral, now))
    }

    fn fitting(&self, elapsed: Span, now: Time) -> Option<usize> {
        let began = now.as_micros().saturating_sub(elapsed.as_micros());
        let misfit = |dispatch: &Dispatch| dispatch.at.as_micros().abs_diff(began);
        (0..self.dispatches.len()).min_by_key(|&at| misfit(&self.dispatches[at]))
    }

    /// Releases what has outlived [`DISPATCH_TTL`]; a moment in the future (the clock went back) is moved to `now`, so that it ages again.
    pub fn expire(&mut self, now: Time) {
        self.integrate(now);
        for dispatch in &mut self.dispatches {
            dispatch.at = dispatch.at.min(now);
        }
        while self.oldest().is_some_and(|at| now.since(at) > DISPATCH_TTL) {
            self.dispatches.pop_front();
        }
    }

    /// Forgets everything in flight.
    pub fn clear(&mut self) {
        self.dispatches.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn each_dispatch_ages_on_its_own() {
        // C13: busy for an hour with requests of ten seconds, never zeroed, and empty when the last one ends.
        let mut pending = Pending::default();
        pending.sent(1, secs(0));
        for round in 1..360 {
            pending.sent(1, secs(round * 10));
            assert_eq!(pending.settle(Span::from_secs(10), secs(round * 10)).unwrap().at, secs(round * 10 - 10));
            pending.expire(secs(round * 10));
            assert_eq!(pending.len(), 1);
        }
        pending.expire(secs(3590) + DISPATCH_TTL);
        assert_eq!(pending.len(), 1);
        pending.expire(secs(3591) + DISPATCH_TTL);
        assert!(pending.is_empty());
    }

    #[test]
    fn an_end_settles_the_dispatch_whose_start_fits() {
        // C7: ends arrive in another order than starts.
        let mut pending = Pending::default();
        pending.sent(1, secs(0));
        pending.sent(2, secs(5));
        assert_eq!(pending.settle(Span::from_secs(3), secs(8)).unwrap().at, secs(5));
        assert_eq!(pending.settle(Span::from_secs(9), secs(9)).unwrap().at, secs(0));
        assert_eq!(pending.len(), 1);
    }

    #[test]
    fn concurrency_is_the_mean_over_a_requests_own_life() {
        let mut pending = Pending::default();
        pending.sent(1, secs(0));
        pending.sent(7, secs(9));
        // Alone for nine seconds, one of eight for one second.
        assert_eq!(pending.settle(Span::from_secs(10), secs(10)).unwrap().concurrency, 1.7);
        let mut standing = Pending::default();
        standing.sent(4, secs(5));
        assert_eq!(standing.settle(Span::from_secs(1), secs(5)).unwrap().concurrency, 4.0);
    }

    #[test]
    fn the_young_are_counted_from_the_latest() {
        let mut pending = Pending::default();
        pending.sent(2, secs(0));
        pending.sent(1, secs(5));
        let young = [secs(5), secs(6), secs(9), secs(4)].map(|now| pending.younger_than(1.0, now));
        assert_eq!(young, [1, 0, 0, 1], "none is younger than nothing where the clock went back");
        assert_eq!(pending.younger_than(1.0, secs(0)), 3);
    }

    #[test]
    fn a_clock_that_goes_back_pins_nothing() {
        let mut pending = Pending::default();
        pending.sent(1, secs(100_000));
        pending.expire(secs(0));
        pending.expire(secs(301));
        assert!(pending.is_empty());
    }

    #[test]
    fn the_number_tracked_is_bounded() {
        let mut pending = Pending::default();
        pending.sent(u32::MAX, secs(0));
        pending.sent(u32::MAX, secs(0));
        assert_eq!(pending.len() as usize, MAX_PENDING);
    }
}
