//! Where on a connection packets are lost (LAB-1): independently, or in bursts (Gilbert 1960, Elliott 1963).
//!
//! The one idea: the distance to the next loss is drawn at once, so packets that arrive cost nothing.

use super::window::SEGMENT;
use crate::model::Loss;
use crate::sim::random::Stream;

/// The losses of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    loss: Loss,
    bad: bool,
    luck: Stream,
}

impl Losses {
    pub(crate) fn new(loss: Loss, luck: Stream) -> Self {
        Losses { loss, bad: false, luck }
    }

    /// Bytes from a connection's start to the first byte of the first lost packet, counted from 1; infinite if there is none.
    pub(crate) fn first(&mut self) -> f64 {
        self.next_after() - SEGMENT + 1.0
    }

    /// Bytes from the first byte of a lost packet to that of the next one.
    pub(crate) fn next_after(&mut self) -> f64 {
        let packets = match self.loss {
            Loss::None => return f64::INFINITY,
            Loss::Random(probability) => self.luck.misses(probability),
            Loss::GilbertElliott { good, bad, to_bad, to_good } => {
                let mut passed = 0u64;
                // Bounded: a process that never loses anything in either state would go on for ever.
                for _ in 0..10_000 {
                    let (probability, leave) = if self.bad { (bad, to_good) } else { (good, to_bad) };
                    let (lost, left) = (self.luck.misses(probability), self.luck.misses(leave));
                    if lost <= left {
                        // The lost packet may be the last one of its state.
                        self.bad ^= lost == left;
                        passed = passed.saturating_add(lost);
                        return distance(passed);
                    }
                    if left == u64::MAX {
                        break;
                    }
                    passed = passed.saturating_add(left).saturating_add(1);
                    self.bad = !self.bad;
                }
                return f64::INFINITY;
            }
        };
        distance(packets)
    }

    /// How often in a row the retransmission of a lost packet is lost too, at most 15 (Linux gives up there).
    pub(crate) fn again(&mut self) -> u32 {
        let probability = match self.loss {
            Loss::None => 0.0,
            Loss::Random(probability) => probability,
            Loss::GilbertElliott { good, bad, .. } => {
                if self.bad {
                    bad
                } else {
                    good
                }
            }
        };
        let mut times = 0;
        while times < 15 && self.luck.happens(probability) {
            times += 1;
        }
        times
    }
}

fn distance(packets: u64) -> f64 {
    if packets == u64::MAX { f64::INFINITY } else { (packets as f64 + 1.0) * SEGMENT }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_packets(loss: Loss) -> f64 {
        let mut losses = Losses::new(loss, Stream::new(3, "loss", "test", 0));
        (0..50_000).map(|_| losses.next_after() / SEGMENT).sum::<f64>() / 50_000.0
    }

    #[test]
    fn losses_are_as_frequent_as_they_should_be() {
        assert!((mean_packets(Loss::Random(1e-3)) / 1000.0 - 1.0).abs() < 0.03);
        // Share of the bad state: 5e-4 / (5e-4 + 0.1); loss there 5 %: 2.5e-4 in all, plus 1e-5.
        let bursty = Loss::GilbertElliott { good: 1e-5, bad: 0.05, to_bad: 5e-4, to_good: 0.1 };
        assert!((mean_packets(bursty) * 2.587e-4 - 1.0).abs() < 0.05);
    }

    #[test]
    fn certain_loss_and_none_are_both_finite_work() {
        assert_eq!(mean_packets(Loss::Random(1.0)), 1.0);
        let mut none = Losses::new(
            Loss::GilbertElliott { good: 0.0, bad: 0.0, to_bad: 1.0, to_good: 1.0 },
            Stream::new(3, "loss", "test", 0),
        );
        assert_eq!(none.next_after(), f64::INFINITY);
    }
}
