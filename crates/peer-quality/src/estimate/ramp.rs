//! Slow start (EST-2): what a fetch over a cold connection needs beyond its round trip and its bytes.
//!
//! The one idea: a window doubles each round trip, and a round whose window is sent before its acknowledgement returns leaves the path idle for the rest
//! of the round. The ramp is the sum of those idle times, so bytes are counted once, by the slowness. It belongs to one fetch, given the size and how warm the
//! connection is, and never to a peer's long-run rate (text, "Small downloads and TCP slow start").
//!
//! Where the path is never the limit (slowness 0) this is the text's formula: one round trip when warm, and ⌈log₂(size/window + 1)⌉ of them when cold.

use crate::units::Bytes;

/// Bytes of one full segment: the default of Ethernet paths, and of the loss studies that the network profiles come from.
pub const SEGMENT: u64 = 1_460;
/// The window that a cold connection starts with (RFC 6928: ten segments). Higher forgets a round of nearly every cold fetch, lower invents one.
pub const INITIAL_WINDOW: Bytes = Bytes::new(10 * SEGMENT);
/// Rounds after which any window has outgrown any body: 14,600 bytes doubled so often are terabytes.
const ROUNDS_MAX: f32 = 32.0;
/// What a retransmission timer adds to the smoothed round trip at least, seconds (Linux; RFC 6298 has 1 s). A shorter pause leaves the window alone.
/// Higher takes cold connections for warm and promises them too early, lower the other way round.
const RTO_MARGIN_S: f64 = 0.2;
/// Deviations of the round trip in the timer (RFC 6298).
const RTO_DEVIATIONS: f64 = 4.0;
/// No timer is longer, seconds (RFC 6298 allows a bound of a minute or more).
const RTO_S_MAX: f64 = 60.0;

const _: () = assert!(INITIAL_WINDOW.get() == 14_600);

/// The congestion state of a connection at the moment of a fetch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warmth {
    /// Its window is open: nothing comes on top of one round trip.
    Warm,
    /// It is new, or was idle for longer than its retransmission timer: it starts from [`INITIAL_WINDOW`].
    Cold,
    /// The kernel knows the window.
    Window(Bytes),
}

/// The ramp of one peer's next fetch. The default is that of a peer about whose connection nothing is known: none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ramp {
    round_trip_s: f32,
    round_trip_tail_s: f32,
    window: f32,
}

impl Ramp {
    /// The ramp over a connection with this round trip, in the middle and at p95, seconds.
    #[inline]
    pub fn new(round_trip_s: f64, round_trip_tail_s: f64, warmth: Warmth) -> Ramp {
        let window = match warmth {
            Warmth::Warm => return Ramp::default(),
            Warmth::Cold => INITIAL_WINDOW,
            Warmth::Window(window) => window.max(Bytes::new(SEGMENT)),
        };
        Ramp {
            round_trip_s: round_trip_s as f32,
            round_trip_tail_s: round_trip_tail_s.max(round_trip_s) as f32,
            window: window.as_f64() as f32,
        }
    }

    /// Expected seconds beyond one round trip for a body of `size` at `secs_per_byte`; 0 when the first window holds it.
    #[inline]
    pub fn extra_s(&self, size: Bytes, secs_per_byte: f32) -> f32 {
        if self.round_trip_s <= 0.0 {
            return 0.0;
        }
        idle_s(self.round_trip_s, self.window, size, secs_per_byte)
    }

    /// The same where each round takes as long as at p95.
    #[inline]
    pub fn extra_tail_s(&self, size: Bytes, secs_per_byte: f32) -> f32 {
        if self.round_trip_s <= 0.0 {
            return 0.0;
        }
        idle_s(self.round_trip_tail_s, self.window, size, secs_per_byte)
    }
}

impl Ramp {
    /// What a body of any size may count on over a path of `pace` bytes per second.
    #[inline]
    pub fn opening(&self, pace: f32) -> Opening {
        if self.round_trip_s <= 0.0 {
            return Opening::default();
        }
        let filling = self.round_trip_s * pace / self.window.max(1.0);
        // The number of doublings is the position of the highest bit, rounded up.
        let rounds = if filling > 1.0 { u32::BITS - (libm::ceilf(filling) as u32 - 1).leading_zeros() } else { 0 };
        Opening { round_s: self.round_trip_s, window: self.window, rounds: rounds.min(31) as u8 }
    }
}

/// A connection that opens its window: what comes over it in which time. The default is open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Opening {
    round_s: f32,
    window: f32,
    /// Rounds until the window fills the path.
    rounds: u8,
}

impl Opening {
    /// Whether the window fills the path from the start.
    pub fn is_open(&self) -> bool {
        self.rounds == 0
    }

    /// Bytes that come within `span_s` of the first one, `pace` bytes per second once the window fills the path; evenly within a round.
    pub fn bytes_within(&self, span_s: f32, pace: f32) -> f32 {
        if span_s <= 0.0 {
            return 0.0;
        }
        let round = if self.is_open() { 0 } else { ((span_s / self.round_s) as u32).min(self.rounds.into()) };
        let window = self.window * (1_u32 << round) as f32;
        let left_s = span_s - round as f32 * self.round_s;
        let rate = if round < u32::from(self.rounds) { window / self.round_s } else { pace };
        window - self.window + left_s * rate
    }
}

/// Round trips in which a window that starts at `window` brings `size` bytes, at least 1.
pub fn rounds(size: Bytes, window: Bytes) -> u32 {
    let windows = size.as_f64() / window.as_f64().max(1.0);
    libm::ceil(libm::log2(windows + 1.0)).clamp(1.0, f64::from(ROUNDS_MAX)) as u32
}

/// The least idle time after which a window is taken as lost, seconds: the retransmission timer as RFC 6298 computes it. `high_s` is the p80–85 of the round
/// trip, which lies about one deviation above the median.
pub fn retransmission_timeout_s(median_s: f64, high_s: f64) -> f64 {
    (median_s + RTO_MARGIN_S.max(RTO_DEVIATIONS * (high_s - median_s))).min(RTO_S_MAX)
}

/// Σ (round trip − window·2ⁱ·slowness) over the rounds i that end before the body does and before the window fills the path.
fn idle_s(round_trip_s: f32, window: f32, size: Bytes, secs_per_byte: f32) -> f32 {
    if round_trip_s <= 0.0 || size.get() as f32 <= window {
        return 0.0;
    }
    let by_size = libm::ceilf(libm::log2f(size.get() as f32 / window + 1.0)) - 1.0;
    let fill_s = window * secs_per_byte;
    let by_path = if fill_s > 0.0 { libm::ceilf(libm::log2f(round_trip_s / fill_s)) } else { ROUNDS_MAX };
    let idle_rounds = by_size.min(by_path).clamp(0.0, ROUNDS_MAX);
    (idle_rounds * round_trip_s - fill_s * (libm::exp2f(idle_rounds) - 1.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Round by round: a window leaves at the path's rate, and doubles when its acknowledgements are back. From the request to the last byte, seconds.
    fn slow_start_s(round_trip_s: f64, size: f64, secs_per_byte: f64) -> f64 {
        let (mut window, mut left, mut elapsed) = (14_600.0_f64, size, round_trip_s);
        loop {
            let serialise_s = window.min(left) * secs_per_byte;
            if left <= window {
                return elapsed + serialise_s;
            }
            elapsed += serialise_s.max(round_trip_s);
            left -= window;
            window *= 2.0;
        }
    }

    fn cold(round_trip_s: f64) -> Ramp {
        Ramp::new(round_trip_s, round_trip_s, Warmth::Cold)
    }

    #[test]
    fn the_rounds_are_those_of_the_table() {
        // Network facts §6.2: initial window 14,600; 64 KiB 3, 512 kB 6, 2 MB 8, 12 MB 10.
        let sizes = [65_536, 512_000, 2_000_000, 12_000_000].map(|size| rounds(Bytes::new(size), INITIAL_WINDOW));
        assert_eq!(sizes, [3, 6, 8, 10]);
        assert_eq!([0, 1, 14_600, 14_601].map(|size| rounds(Bytes::new(size), INITIAL_WINDOW)), [1, 1, 1, 2]);
    }

    #[test]
    fn twelve_megabytes_at_268_ms_cost_2_7_s_before_bandwidth_matters() {
        let ramp_s = 0.268 + cold(0.268).extra_s(Bytes::new(12_000_000), 0.0);
        assert!((2.6..2.8).contains(&ramp_s), "{ramp_s}");
    }

    #[test]
    fn an_opening_window_brings_what_slow_start_does() {
        for (trip_s, pace) in [(0.05, 20e6_f32), (0.012, 125e6), (0.268, 1e6), (0.1, 1e5)] {
            let opening = cold(trip_s).opening(pace);
            let mut last = 0.0;
            for size in [14_600.0, 1e5, 1e6, 1e7] {
                let whole_s = slow_start_s(trip_s, size, 1.0 / f64::from(pace)) - trip_s;
                let (before, after) = (whole_s - 1.01 * trip_s, whole_s + 1.01 * trip_s);
                let within = |span_s: f64| f64::from(opening.bytes_within(span_s as f32, pace));
                assert!(within(before) <= size && within(after) >= size * 0.99, "{trip_s} {pace} {size}");
                assert!(within(whole_s) >= last);
                last = within(whole_s);
            }
        }
        let open = Ramp::default().opening(1e6);
        assert!(open.is_open() && open.bytes_within(2.0, 1e6) == 2e6 && open.bytes_within(-1.0, 1e6) == 0.0);
    }

    #[test]
    fn a_warm_connection_and_a_body_within_the_first_window_pay_nothing() {
        let warm = Ramp::new(0.268, 0.3, Warmth::Warm);
        assert_eq!(warm.extra_s(Bytes::new(u64::MAX), 1e-6), 0.0);
        assert_eq!(cold(0.268).extra_s(INITIAL_WINDOW, 1e-6), 0.0);
        assert!(cold(0.268).extra_s(Bytes::new(INITIAL_WINDOW.get() + 1), 1e-6) > 0.2);
    }

    #[test]
    fn a_window_that_the_kernel_knows_is_used_instead() {
        let known =
            |window| Ramp::new(0.1, 0.1, Warmth::Window(Bytes::new(window))).extra_s(Bytes::new(1_000_000), 0.0);
        assert_eq!(known(14_600), cold(0.1).extra_s(Bytes::new(1_000_000), 0.0));
        assert!((known(250_000) - 0.2).abs() < 1e-6, "windows of 250, 500 and 250 kB");
        assert_eq!(known(1_000_000), 0.0);
        assert!(known(0).is_finite() && known(0) > known(14_600), "an absurd window is one segment");
    }

    #[test]
    fn a_path_that_is_full_has_no_idle_rounds() {
        // 10 Mb/s at 11 ms: the first window takes longer to send than its acknowledgement to come.
        assert_eq!(cold(0.011).extra_s(Bytes::new(12_000_000), 8e-7), 0.0);
    }

    #[test]
    fn a_cold_fetch_is_foretold_within_a_quarter() {
        // B16: 40 kB after a minute of silence, and larger bodies, over the paths of the four profiles.
        for (round_trip_s, secs_per_byte) in
            [(0.012, 8e-9), (0.09, 2.7e-8), (0.268, 5.3e-8), (0.2, 8e-7), (0.11, 1.6e-7)]
        {
            for size in [1_000, 14_600, 40_000, 65_536, 512_000, 2_000_000, 12_000_000] {
                let truth_s = slow_start_s(round_trip_s, size as f64, secs_per_byte);
                let foretold_s = round_trip_s
                    + f64::from(cold(round_trip_s).extra_s(Bytes::new(size), secs_per_byte as f32))
                    + size as f64 * secs_per_byte;
                assert!(
                    (foretold_s / truth_s - 1.0).abs() < 0.25,
                    "{round_trip_s} s, {size} bytes: {foretold_s} for {truth_s}"
                );
            }
        }
    }

    #[test]
    fn the_timer_follows_the_spread_of_the_round_trip() {
        assert!((retransmission_timeout_s(0.05, 0.051) - 0.25).abs() < 1e-9);
        assert!((retransmission_timeout_s(0.2, 0.4) - 1.0).abs() < 1e-9);
        assert_eq!(retransmission_timeout_s(600.0, 600.0), RTO_S_MAX);
    }

    proptest! {
        #[test]
        fn a_ramp_is_finite_and_grows_with_size_and_distance(
            round_trip_s in 1e-6..600.0_f64, size in any::<u64>(), more in 1.0..4.0_f64, secs_per_byte in 0.0..1.0_f32, window in any::<u64>(),
        ) {
            let warmth = Warmth::Window(Bytes::new(window));
            let ramp = Ramp::new(round_trip_s, round_trip_s * more, warmth);
            let extra_s = ramp.extra_s(Bytes::new(size), secs_per_byte);
            prop_assert!(extra_s >= 0.0 && extra_s.is_finite());
            let slack = 1.0 + 1e-4;
            prop_assert!(extra_s <= ramp.extra_tail_s(Bytes::new(size), secs_per_byte) * slack + 1e-6);
            prop_assert!(extra_s <= ramp.extra_s(Bytes::new(size.saturating_mul(2)), secs_per_byte) * slack + 1e-6);
            prop_assert!(ramp.extra_s(Bytes::new(size), 0.0) * slack + 1e-6 >= extra_s);
        }
    }
}
