//! One direction of a link: when does a piece that is sent now come out at the far end? (HOST-D4)
//!
//! The one idea: `free` is the time at which the line has sent everything given to it so far. A piece starts then, or now
//! if the line is idle, takes size ÷ rate, and arrives a delay later. Senders queue for the line in order, one piece each,
//! so connections share it evenly, and run ahead of it by [`AHEAD`] at most, so the queue stays short.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// How far senders run ahead of the line. Shorter than a late timer, and the line idles below its rate; longer, and more
/// bytes wait in memory. Timers are due to the millisecond and late by a few on a busy machine.
const AHEAD: Duration = Duration::from_millis(20);
/// Time on the line of one piece: what a connection may hold up the others for, and the grain of the delay.
const PIECE: Duration = Duration::from_millis(2);
/// Bounds of a piece, bytes: a packet's worth, and enough that a fast line is not all overhead.
const PIECE_BYTES_MIN: u64 = 1400;
const PIECE_BYTES_MAX: u64 = 32 * 1024;
/// The longest delay, which keeps sums of times finite.
const DELAY_MAX: Duration = Duration::from_secs(3600);
/// The most that may be under way on any line, bytes.
const CAPACITY_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// What may be under way on a line without a rate, bytes.
const UNLIMITED_CAPACITY_BYTES: u64 = 4 * 1024 * 1024;

/// One direction of a link.
pub(crate) struct Lane {
    rate_bytes_per_s: Option<u64>,
    delay: Duration,
    /// When the line is free. Held while a sender waits, which makes the others queue behind it, in order.
    free: Mutex<Instant>,
}

impl Lane {
    pub(crate) fn new(rate_bytes_per_s: Option<u64>, delay: Duration) -> Lane {
        Lane {
            rate_bytes_per_s: rate_bytes_per_s.map(|rate| rate.max(1)),
            delay: delay.min(DELAY_MAX),
            free: Mutex::new(Instant::now()),
        }
    }

    /// The largest piece to send at once, bytes.
    pub(crate) fn piece_bytes(&self) -> usize {
        let piece = self.rate_bytes_per_s.map_or(PIECE_BYTES_MAX, |rate| bytes_in(rate, PIECE));
        piece.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX) as usize
    }

    /// What one connection may have under way on the line, bytes: what fits into the delay and the time senders run
    /// ahead, and never less than two pieces.
    pub(crate) fn capacity(&self) -> usize {
        let capacity =
            self.rate_bytes_per_s.map_or(UNLIMITED_CAPACITY_BYTES, |rate| bytes_in(rate, self.delay + AHEAD));
        capacity.clamp(2 * self.piece_bytes() as u64, CAPACITY_BYTES_MAX) as usize
    }

    /// What may wait in front of the line, bytes: some pieces, so that the line finds work and the queue stays short.
    pub(crate) fn backlog(&self) -> usize {
        4 * self.piece_bytes()
    }

    /// Waits for a turn on the line, sends `bytes` and returns when they arrive at the far end.
    pub(crate) async fn send(&self, bytes: usize) -> Instant {
        let Some(rate) = self.rate_bytes_per_s else {
            return Instant::now() + self.delay;
        };
        let mut free = self.free.lock().await;
        *free = (*free).max(Instant::now()) + Duration::from_secs_f64(bytes as f64 / rate as f64);
        let arrival = *free + self.delay;
        if let Some(ahead) = free.checked_sub(AHEAD) {
            sleep_until(ahead).await;
        }
        arrival
    }
}

fn bytes_in(rate_bytes_per_s: u64, time: Duration) -> u64 {
    (rate_bytes_per_s as f64 * time.as_secs_f64()) as u64 // saturates
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn a_busy_line_sends_at_its_rate_however_late_its_timers_are() {
        let lane = Lane::new(Some(MIB as u64), Duration::from_millis(30));
        let start = Instant::now();
        let mut arrival = start;
        for turn in 0..1000 {
            arrival = lane.send(lane.piece_bytes()).await;
            tokio::time::advance(Duration::from_millis(turn % 3)).await; // Less than a piece takes, on average.
        }
        let expected = 1000.0 * lane.piece_bytes() as f64 / MIB as f64 + 0.030;
        let took = (arrival - start).as_secs_f64();
        assert!((took - expected).abs() < 0.002, "took {took} s, not {expected} s");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_line_saves_up_nothing() {
        let lane = Lane::new(Some(1000), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(60)).await;
        let start = Instant::now();
        assert_eq!(lane.send(500).await - start, Duration::from_millis(500));
    }

    #[tokio::test(start_paused = true)]
    async fn two_senders_get_half_each() {
        let lane = Lane::new(Some(100_000), Duration::ZERO);
        let start = Instant::now();
        let sender = || async {
            for _ in 0..50 {
                lane.send(1000).await;
            }
            start.elapsed()
        };
        let (one, other) = tokio::join!(sender(), sender());
        // The first to come may be ahead by what the line lets anyone run ahead, and by a piece or two.
        assert!(one.abs_diff(other) <= AHEAD + Duration::from_millis(20), "{one:?} and {other:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_without_a_rate_delays_and_nothing_more() {
        let lane = Lane::new(None, Duration::from_millis(7));
        assert_eq!(lane.send(usize::MAX).await - Instant::now(), Duration::from_millis(7));
    }

    #[test]
    fn absurd_shapes_have_finite_queues() {
        for (rate, delay) in [(u64::MAX, Duration::MAX / 2), (0, Duration::ZERO), (1, Duration::from_secs(1 << 40))] {
            let lane = Lane::new(Some(rate), delay);
            assert!(lane.capacity() <= CAPACITY_BYTES_MAX as usize && lane.capacity() >= lane.piece_bytes());
        }
    }
}
