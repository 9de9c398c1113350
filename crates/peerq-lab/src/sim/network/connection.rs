//! One peer's connection: rounds of its window, losses and their repair, idleness (LAB-1).
//!
//! The one idea: time is cut into rounds. A round may send one window; it lasts a round trip, or longer if the link needs longer for the bytes. What is lost
//! delays what the client sees by the repair's time (bytes after a hole are not delivered), while the network goes on with a smaller window.

use super::loss::Losses;
use super::window::{SEGMENT, Window};
use crate::sim::queue::{Micros, micros};
use crate::sim::random::Stream;

/// Longest retransmission timeout, seconds (Linux).
const RTO_LONGEST_S: f64 = 120.0;
/// After an outage a host that sees no progress dials again: no connection sleeps longer than this past its end, seconds. Unmeasured; the plain backoff of TCP could
/// sleep as long as the outage was.
const REDIAL_S: f64 = 1.0;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing to send.
    Idle,
    /// Bytes flow.
    Sending,
    /// The window is spent; acknowledgements arrive at this moment.
    Waiting(Micros),
    /// Nothing flows until the retransmission timer runs out at this moment.
    Stalled(Micros),
}

/// A connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) mode: Mode,
    /// Places of the transfers whose bytes flow, in order of their start.
    pub(crate) sending: Vec<u32>,
    /// Bytes until the next loss.
    pub(crate) loss_left: f64,
    /// Bytes that the present round may still send.
    pub(crate) round_left: f64,
    /// Until when the client sees nothing new, because something before it is missing.
    pub(crate) hold_until: Micros,
    /// When bytes were last counted.
    pub(crate) counted_at: Micros,
    /// When it is up again after a cut.
    pub(crate) up_at: Micros,
    window: Window,
    losses: Losses,
    jitter: Stream,
    round_size: f64,
    round_at: Micros,
    round_trip: Micros,
    filled: bool,
    idle_at: Micros,
}

impl Connection {
    pub(crate) fn new(losses: Losses, jitter: Stream) -> Self {
        let mut losses = losses;
        Connection {
            mode: Mode::Idle,
            sending: Vec::new(),
            loss_left: losses.first(),
            round_left: 0.0,
            hold_until: 0,
            counted_at: 0,
            up_at: 0,
            window: Window::new(),
            losses,
            jitter,
            round_size: 0.0,
            round_at: 0,
            round_trip: 0,
            filled: false,
            idle_at: 0,
        }
    }

    /// One round trip as it is just now.
    pub(crate) fn round_trip_s(&mut self, link: &Path) -> f64 {
        link.rtt_s * self.jitter.log_normal(link.jitter)
    }

    /// From the peer to the client, in the present round.
    pub(crate) fn way_back(&self) -> Micros {
        self.round_trip / 2
    }

    /// Bytes are there to be sent, and nothing was under way.
    pub(crate) fn wake(&mut self, now: Micros, link: &Path) {
        let idle = now.saturating_sub(self.idle_at);
        if idle > micros(link.rto_s()) {
            self.window.restart();
            self.round_size = 0.0;
        }
        self.window.idled(idle);
        let acknowledged_at = self.round_at.saturating_add(self.round_trip);
        if self.round_size == 0.0 || now >= acknowledged_at {
            self.start_round(now, link);
        } else if self.round_left > 0.0 {
            self.mode = Mode::Sending;
        } else {
            self.mode = Mode::Waiting(acknowledged_at);
        }
    }

    /// Grows the window by what the last round used, and begins the next.
    pub(crate) fn start_round(&mut self, now: Micros, link: &Path) {
        if self.round_size > 0.0 {
            let used = self.round_size - self.round_left.max(0.0);
            self.window.round(used, self.filled, now, link.rtt_s);
        }
        self.begin(now, link);
    }

    fn begin(&mut self, now: Micros, link: &Path) {
        self.round_trip = micros(self.round_trip_s(link));
        self.round_at = now;
        self.round_size = self.window.size();
        self.round_left = self.round_size;
        self.filled = false;
        self.mode = Mode::Sending;
    }

    /// The round's window is sent.
    pub(crate) fn end_round(&mut self, now: Micros, link: &Path) {
        self.round_left = 0.0;
        let acknowledged_at = self.round_at.saturating_add(self.round_trip);
        self.filled = now >= acknowledged_at;
        if self.filled {
            self.start_round(now, link);
        } else {
            self.mode = Mode::Waiting(acknowledged_at);
        }
    }

    /// Nothing is left to send; a stall still runs its time.
    pub(crate) fn rest(&mut self, now: Micros) {
        if matches!(self.mode, Mode::Sending | Mode::Waiting(_)) {
            self.mode = Mode::Idle;
            self.idle_at = now;
        }
    }

    /// The last packet of a reply is shorter than others; losses are counted in whole ones.
    pub(crate) fn pad(&mut self, bytes: u64) {
        let over = bytes as f64 % SEGMENT;
        if over > 0.0 {
            // The next packet is then the first that can be lost, at its first byte.
            self.loss_left = (self.loss_left + over - SEGMENT).max(1.0);
        }
    }

    /// A packet is lost; `left` bytes of data come with and after it. It is repaired in a round trip by the acknowledgements of what follows, in two by a probe
    /// if too little does (RFC 8985), by the timer if the repair is lost too.
    pub(crate) fn lose(&mut self, now: Micros, left: f64, link: &Path) {
        self.loss_left += self.losses.next_after();
        if now < self.hold_until {
            return;
        }
        let again = self.losses.again();
        if again > 0 {
            let doubled = (0..again).map(|k| (link.rto_s() * f64::from(1u32 << k)).min(RTO_LONGEST_S)).sum::<f64>();
            self.stall(now.saturating_add(micros(link.rtt_s + doubled)));
            return;
        }
        self.window.lost();
        let repair_s = if left < 4.0 * SEGMENT { (2.0 * link.rtt_s).min(link.rto_s()) } else { link.rtt_s };
        self.hold_until = now.saturating_add(micros(repair_s));
    }

    fn stall(&mut self, until: Micros) {
        self.window.timed_out();
        self.hold_until = self.hold_until.max(until);
        self.round_size = 0.0;
        self.round_left = 0.0;
        self.mode = Mode::Stalled(until);
    }

    /// Nothing arrives between `now` and `end`.
    pub(crate) fn outage(&mut self, now: Micros, end: Micros, link: &Path) {
        self.stall(retried_at(now, end, link));
    }

    /// The timer ran out and the network is there.
    pub(crate) fn resume(&mut self, now: Micros, link: &Path) {
        self.begin(now, link);
    }

    /// The connection broke; a new one is up after `up_at`.
    pub(crate) fn reset(&mut self, now: Micros, up_at: Micros) {
        self.window = Window::new();
        (self.round_size, self.round_left, self.hold_until) = (0.0, 0.0, 0);
        (self.mode, self.idle_at, self.up_at) = (Mode::Idle, now, up_at);
        self.sending.clear();
    }
}

/// What a connection's behaviour in time depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    /// Round trip without jitter, seconds.
    pub(crate) rtt_s: f64,
    /// Sigma of its log-normal factor.
    pub(crate) jitter: f64,
    /// Least retransmission timeout, seconds.
    pub(crate) rto_floor_s: f64,
}

impl Path {
    /// Retransmission timeout, seconds (RFC 6298, with the jitter's sigma as the variance).
    pub(crate) fn rto_s(&self) -> f64 {
        (self.rtt_s * (1.0 + 4.0 * self.jitter)).clamp(self.rto_floor_s.min(RTO_LONGEST_S), RTO_LONGEST_S)
    }
}

/// When what was sent at `start` gets through, if nothing does before the later `end`: at a retransmission, each twice as late as the last.
pub(crate) fn retried_at(start: Micros, end: Micros, link: &Path) -> Micros {
    let (mut at, mut wait_s) = (start, link.rto_s());
    while at < end {
        at = at.saturating_add(micros(wait_s));
        wait_s = (wait_s * 2.0).min(RTO_LONGEST_S);
    }
    at.min(end.saturating_add(micros(REDIAL_S)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { rtt_s: 0.1, jitter: 0.0, rto_floor_s: 0.2 };

    #[test]
    fn retransmissions_double_and_a_host_dials_again_after_an_outage() {
        // 0.2, 0.6, 1.4, 3.0 s.
        assert_eq!(retried_at(0, micros(1.0), &PATH), micros(1.4));
        assert_eq!(retried_at(0, micros(1.5), &PATH), micros(2.5));
    }

    #[test]
    fn the_retransmission_timeout_has_a_floor_and_follows_the_round_trip() {
        assert_eq!(PATH.rto_s(), 0.2);
        assert_eq!(Path { rtt_s: 0.5, ..PATH }.rto_s(), 0.5);
        assert_eq!(Path { rto_floor_s: 1.0, ..PATH }.rto_s(), 1.0);
    }
}
