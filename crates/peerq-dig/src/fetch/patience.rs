//! When a range is given up on so that another peer can deliver it (HOST-D2; AUD-7 in simple form).
//!
//! dig-download keeps a range where it is until a fixed timeout, which lets one silent peer cost half a minute. The idea
//! here: a peer is late when it is far beyond what *it* usually does, never merely slower than others. Pure functions of
//! durations, so that every rule can be tested without waiting.

use std::time::Duration;

/// The least time a peer gets to show its first byte, and to show its next one. Higher: a silent peer costs more before
/// its range moves on. Lower: a scheduling hiccup or a lost packet and its retransmissions read as silence.
/// Unmeasured heuristic; above the 1 s minimum retransmission timeout of TCP's standard.
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// The least time a range gets in all. Higher: a dribbling peer costs more. Lower: estimates from few samples decide.
/// Unmeasured heuristic.
const TOTAL_MIN: Duration = Duration::from_secs(2);

/// Multiple of a peer's usual time to first byte at which it is late.
const FIRST_BYTE_FACTOR: u32 = 4;

/// Multiple of a range's predicted time at which it is late. Rates of real links vary by a factor of two within seconds.
const TOTAL_FACTOR: f64 = 3.0;

/// An unproven peer is expected to reach at least this part of the average rate of the others.
const UNPROVEN_PART: f64 = 0.25;

/// What is expected of a peer of which nothing at all is known, bytes per second.
const RATE_FLOOR: f64 = 64.0 * 1024.0;

/// The longest any limit grows; keeps arithmetic finite for absurd rates.
const LIMIT_MAX: Duration = Duration::from_secs(3600);

/// How often patience may double for one range; beyond it, other bounds of the download have long ended it.
const DOUBLINGS_MAX: u32 = 10;

/// What is known about a peer when a range is sent to it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Expectation {
    /// Learned rate of one range, bytes per second.
    pub(super) rate: Option<f64>,
    /// Learned time to first byte.
    pub(super) first_byte: Option<Duration>,
    /// Average rate of one range over all peers of this download, bytes per second.
    pub(super) average_rate: Option<f64>,
    /// Ranges at this peer, this one included, over the number usually there when its rate was learned; at least 1.
    pub(super) crowding: f64,
    /// Length of the range, bytes.
    pub(super) length: u64,
}

/// Until when a range is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// From the request to the first byte.
    pub(super) first_byte: Duration,
    /// Between two bytes of the peer, on whichever of its ranges.
    pub(super) stall: Duration,
    /// From the request to the last byte.
    pub(super) total: Duration,
}

/// What is seen of a running range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// Since the request.
    pub(super) elapsed: Duration,
    /// Whether its first byte is there.
    pub(super) started: bool,
    /// Since the peer's last byte on any range, or since the request if that is later.
    pub(super) silent: Duration,
}

/// In which way a range is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lateness {
    /// The first byte has not come.
    FirstByte,
    /// The bytes stopped coming.
    Stall,
    /// They come, but far too slowly.
    Total,
}

impl Expectation {
    /// Predicted time of the body, from the best knowledge there is.
    fn body(&self) -> Duration {
        let rate = self
            .rate
            .or(self.average_rate.map(|r| r * UNPROVEN_PART))
            .filter(|r| r.is_finite() && *r > 0.0)
            .unwrap_or(RATE_FLOOR);
        seconds(self.length as f64 * self.crowding.max(1.0) / rate)
    }

    /// The limits for this range, doubled `doublings` times: once for each time the same range was given up before, so
    /// that a range no peer can deliver quickly is in the end waited for.
    pub(super) fn limits(&self, doublings: u32) -> Limits {
        let usual = self.first_byte.unwrap_or(Duration::ZERO).min(LIMIT_MAX);
        // Silence is that of the peer on all its ranges, so a queue ahead of this one does not count as silence.
        let silence = SILENCE_MIN.max(usual * FIRST_BYTE_FACTOR);
        let unusual = seconds((usual + self.body()).as_secs_f64() * TOTAL_FACTOR);
        let total = TOTAL_MIN.max(unusual).max(silence);
        let double = |d: Duration| d.saturating_mul(1 << doublings.min(DOUBLINGS_MAX)).min(LIMIT_MAX);
        Limits { first_byte: double(silence), stall: double(silence), total: double(total) }
    }
}

impl Limits {
    /// Whether the range is late, or how long from now it cannot be.
    pub(super) fn judge(&self, sight: &Sight) -> Result<Lateness, Duration> {
        if sight.elapsed >= self.total {
            return Ok(Lateness::Total);
        }
        if !sight.started && sight.elapsed >= self.first_byte && sight.silent >= SILENCE_MIN {
            return Ok(Lateness::FirstByte);
        }
        if sight.started && sight.silent >= self.stall {
            return Ok(Lateness::Stall);
        }
        let quiet = if sight.started {
            self.stall.saturating_sub(sight.silent)
        } else {
            self.first_byte.saturating_sub(sight.elapsed).max(SILENCE_MIN.saturating_sub(sight.silent))
        };
        Err(quiet.min(self.total - sight.elapsed))
    }

    /// The same limits, doubled.
    pub(super) fn doubled(&self) -> Limits {
        let double = |d: Duration| d.saturating_mul(2).min(LIMIT_MAX);
        Limits { first_byte: double(self.first_byte), stall: double(self.stall), total: double(self.total) }
    }
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(LIMIT_MAX).min(LIMIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn known(rate: f64, first_byte_ms: u64) -> Expectation {
        Expectation {
            rate: Some(rate),
            first_byte: Some(Duration::from_millis(first_byte_ms)),
            average_rate: None,
            crowding: 1.0,
            length: MIB,
        }
    }

    fn sight(elapsed_ms: u64, started: bool, silent_ms: u64) -> Sight {
        Sight { elapsed: Duration::from_millis(elapsed_ms), started, silent: Duration::from_millis(silent_ms) }
    }

    #[test]
    fn a_fast_peer_is_late_after_the_minimum_only() {
        let limits = known(50e6, 5).limits(0);
        assert_eq!(limits.first_byte, Duration::from_secs(1));
        assert_eq!(limits.total, Duration::from_secs(2));
    }

    #[test]
    fn a_distant_slow_peer_is_judged_by_its_own_usual() {
        let limits = known(MIB as f64 / 10.0, 600).limits(0);
        assert_eq!(limits.first_byte, Duration::from_millis(2400));
        assert!(limits.total > Duration::from_secs(30), "{limits:?}");
    }

    #[test]
    fn an_unproven_peer_gets_four_times_the_average() {
        let e = Expectation { average_rate: Some(MIB as f64), crowding: 1.0, length: MIB, ..Expectation::default() };
        assert_eq!(e.limits(0).total, Duration::from_secs(12));
    }

    #[test]
    fn patience_doubles_with_every_abandonment_and_stays_finite() {
        let e = known(50e6, 5);
        assert_eq!(e.limits(1).first_byte, 2 * e.limits(0).first_byte);
        assert_eq!(e.limits(u32::MAX), e.limits(DOUBLINGS_MAX));
        let absurd = Expectation { rate: Some(f64::MIN_POSITIVE), length: u64::MAX, ..e };
        assert_eq!(absurd.limits(9).total, LIMIT_MAX);
        let not_a_rate = Expectation { rate: Some(f64::NAN), ..e };
        assert!(not_a_rate.limits(0).total >= TOTAL_MIN);
    }

    #[test]
    fn silence_before_and_after_the_first_byte_is_lateness() {
        let limits = known(50e6, 5).limits(0);
        assert_eq!(limits.judge(&sight(1000, false, 1000)), Ok(Lateness::FirstByte));
        assert_eq!(limits.judge(&sight(1500, true, 1000)), Ok(Lateness::Stall));
        assert_eq!(limits.judge(&sight(2000, true, 0)), Ok(Lateness::Total));
    }

    #[test]
    fn a_range_whose_peer_delivers_its_other_ranges_is_not_yet_silent() {
        let limits = known(50e6, 5).limits(0);
        assert!(limits.judge(&sight(1500, false, 10)).is_err());
    }

    #[test]
    fn the_next_look_is_no_later_than_the_first_moment_of_lateness() {
        let limits = known(50e6, 5).limits(0);
        let wait = limits.judge(&sight(400, false, 400)).unwrap_err();
        assert_eq!(wait, Duration::from_millis(600));
        let wait = limits.judge(&sight(1900, true, 100)).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
    }
}
