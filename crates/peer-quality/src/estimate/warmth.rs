//! Whether a peer's connection is warm, from what a host without a view of the wire knows: when requests were sent and ended (EST-2).
//!
//! The one idea: a connection is cold until something larger than the first window has come over it, and again after it was idle for longer than its
//! retransmission timer. The time to first byte stands in for the round trip; it is an upper bound of it.

use crate::estimate::ramp::{INITIAL_WINDOW, Ramp, Warmth, retransmission_timeout_s};
use crate::measure::Sample;
use crate::units::Time;

/// The timer of a connection whose round trip is unknown, seconds (RFC 6298).
const RTO_UNKNOWN_S: f64 = 1.0;
/// Slow start explains at most this share of the wait beyond the first byte. Higher lets a late first byte excuse a slow body, lower takes a cold fetch for a slow
/// peer. Unmeasured heuristic: a body of 1 MiB over 20 MB/s and 50 ms is four fifths slow start.
const RAMP_SHARE_MAX: f64 = 0.8;
/// Rounds in which slow start and rate are told apart: each needs the other.
const ROUNDS: u32 = 4;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Idleness {
    active_at: Time,
    /// When the first body larger than a window had come since it was last cold.
    opened_at: Option<Time>,
}

/// Whether a window is open, and when it was last used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Connection {
    /// Nothing larger than the first window came over it.
    Cold,
    /// It was open at this moment and idle since.
    OpenAt(Time),
}

impl Connection {
    /// The state of the connection for a request sent now.
    #[inline]
    pub fn warmth(&self, first_byte_s: Option<f64>, now: Time) -> Warmth {
        let Connection::OpenAt(active_at) = *self else { return Warmth::Cold };
        let timer_s = first_byte_s.map_or(RTO_UNKNOWN_S, |trip_s| retransmission_timeout_s(trip_s, trip_s));
        let idle_s = now.since(active_at).as_secs_f64();
        if idle_s <= timer_s { Warmth::Warm } else { Warmth::Cold }
    }
}

impl Idleness {
    /// Requests were sent.
    pub fn sent(&mut self, first_byte_s: Option<f64>, now: Time) {
        if self.warmth(first_byte_s, now) == Warmth::Cold {
            self.opened_at = None;
        }
        self.active_at = now;
    }

    /// The connection is another one.
    pub fn reconnected(&mut self) {
        self.opened_at = None;
    }

    /// The state of the connection for a request sent now.
    pub fn warmth(&self, first_byte_s: Option<f64>, now: Time) -> Warmth {
        self.standing().warmth(first_byte_s, now)
    }

    /// What is left of this for a question at any later moment.
    pub fn standing(&self) -> Connection {
        if self.opened_at.is_some() { Connection::OpenAt(self.active_at) } else { Connection::Cold }
    }

    /// A body arrived that was asked for at `sent`: the sample less what slow start cost it, and the share of the wait for the body that this leaves.
    pub fn ended(&mut self, sample: &Sample, sent: Time, first_byte_s: Option<f64>, now: Time) -> (Sample, f64) {
        let was_cold = self.opened_at.is_none_or(|opened_at| sent < opened_at);
        self.active_at = now;
        if self.opened_at.is_none() && sample.bytes > INITIAL_WINDOW {
            self.opened_at = Some(now);
        }
        let trip_s = sample.first_byte_s.or(first_byte_s).map(|own| own.min(first_byte_s.unwrap_or(own)));
        match trip_s.filter(|_| was_cold && sample.bytes > INITIAL_WINDOW) {
            Some(trip_s) => without_ramp(sample, trip_s),
            None => (*sample, 1.0),
        }
    }
}

/// Tells slow start from rate: the slowness explains what slow start leaves of the wait, and slow start ends where the rate fills the path. With it the share of
/// the wait for the body that is left.
pub(super) fn without_ramp(sample: &Sample, trip_s: f64) -> (Sample, f64) {
    let body_s = (sample.wait_s - sample.first_byte_s.unwrap_or(trip_s)).max(0.0);
    let ramp = Ramp::new(trip_s, trip_s, Warmth::Cold);
    let mut ramp_s = 0.0;
    for _ in 0..ROUNDS {
        let slowness = (body_s - ramp_s) / sample.bytes.as_f64();
        ramp_s = f64::from(ramp.extra_s(sample.bytes, slowness as f32)).min(RAMP_SHARE_MAX * body_s);
    }
    let left = if body_s > 0.0 { 1.0 - ramp_s / body_s } else { 1.0 };
    (Sample { wait_s: sample.wait_s - ramp_s, ..*sample }, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Span};

    /// A fetch over a cold path of this round trip and rate, by slow-start arithmetic, round by round.
    fn cold(trip_s: f64, rate: f64, bytes: u64) -> Sample {
        let (mut window, mut left, mut wait_s) = (14_600.0_f64, bytes as f64, trip_s);
        while left > window {
            wait_s += (window / rate).max(trip_s);
            left -= window;
            window *= 2.0;
        }
        Sample { first_byte_s: Some(trip_s), wait_s: wait_s + left / rate, bytes: Bytes::new(bytes) }
    }

    #[test]
    fn a_cold_fetch_shows_the_rate_and_not_the_ramp() {
        // A body that ends before slow start does (the first) shows half the rate at least.
        for (trip_s, rate, bytes) in
            [(0.05, 20e6, 1 << 20), (0.1, 10e6, 4 << 20), (0.02, 5e6, 1 << 20), (0.05, 1e6, 1 << 20)]
        {
            let sample = cold(trip_s, rate, bytes);
            let (left, share) = Idleness::default().ended(&sample, Time::ZERO, None, Time::from_secs(9));
            let shown = bytes as f64 / (left.wait_s - trip_s);
            let least = if bytes as f64 <= rate * trip_s * 1.1 { 0.45 } else { 0.75 };
            assert!((least..1.34).contains(&(shown / rate)), "{trip_s} {rate} {bytes}: {shown}");
            assert!((0.0..=1.0).contains(&share));
        }
    }

    #[test]
    fn a_connection_cools_when_it_idles_and_when_it_is_another() {
        let mut idleness = Idleness::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let warmth = |idleness: &Idleness, millis| idleness.warmth(Some(0.05), at(millis));
        idleness.sent(None, at(0));
        assert_eq!(warmth(&idleness, 1), Warmth::Cold);
        idleness.ended(&cold(0.05, 1e6, 1 << 20), at(0), None, at(1_000));
        assert_eq!(
            [1_001, 1_250, 1_251].map(|millis| warmth(&idleness, millis)),
            [Warmth::Warm, Warmth::Warm, Warmth::Cold]
        );
        let mut other = idleness;
        other.reconnected();
        assert_eq!(warmth(&other, 1_001), Warmth::Cold);
        // What was asked for before it opened met it cold; what was asked for later did not.
        let body = cold(0.05, 20e6, 1 << 20);
        assert!(idleness.ended(&body, at(999), Some(0.05), at(1_100)).0.wait_s < body.wait_s);
        assert_eq!(idleness.ended(&body, at(1_001), Some(0.05), at(1_200)).0, body);
    }

    #[test]
    fn nothing_is_explained_away_whole() {
        for wait_s in [0.0, 1e-6, 0.2, 5.0, 1e9] {
            let sample = Sample { first_byte_s: Some(wait_s), wait_s: wait_s * 1.5, bytes: Bytes::new(1 << 20) };
            let (left, share) = without_ramp(&sample, wait_s);
            assert!(
                left.wait_s >= sample.first_byte_s.unwrap() && share >= 0.19 && left.wait_s.is_finite(),
                "{wait_s}"
            );
        }
    }
}
