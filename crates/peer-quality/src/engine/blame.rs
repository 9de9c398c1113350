//! Whose doing the end of a request is (AUD-7), in front of everything that is learned from it.

use core::hash::Hash;

use super::Engine;
use crate::audit::common_mode::Failure;
use crate::estimate::downlink::TimedOut;
use crate::measure::{Delivery, End, Fault};
use crate::peer::Uncharged;
use crate::rank::quote::Terms;
use crate::table::Slot;
use crate::units::{Bytes, Time};

/// Whose doing the end of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// Its peer's: its record learns from it.
    Theirs,
    /// Ours, all over.
    Ours,
    /// Ours at this peer: it had so many requests that they could not end in time.
    Crowded {
        /// How many could have.
        fit: u32,
    },
}

impl<K: Copy + Eq + Hash + Ord> Engine<K> {
    /// Whose doing an end is, before it is learned from (AUD-7).
    #[inline]
    pub(super) fn blame(&mut self, slot: Slot, delivery: &Delivery, now: Time) -> Blame {
        let crowded = self.crowded(slot, delivery, now);
        let peer = self.peers.value(slot);
        match delivery.end {
            End::Completed => {
                self.downlink.completed(delivery.bytes, delivery.elapsed, now);
                self.duplicates.earn(delivery.bytes);
                if !self.common.is_quiet() {
                    let prior = self.population.prior(peer.path);
                    let put_back =
                        self.common.completed(slot, delivery.elapsed, peer.is_on_time(delivery, &prior, now), now);
                    for (slot, before) in put_back {
                        self.discharge(slot, &before);
                    }
                }
                self.common.note(slot, now);
            }
            End::Failed(Fault::Timeout | Fault::Transport | Fault::Unknown) | End::Interrupted => {
                if self.common.excuses(delivery.elapsed, now) {
                    return Blame::Ours;
                }
                if let Some(fit) = crowded {
                    return Blame::Crowded { fit };
                }
                let is_first = !peer.has_older(delivery, now);
                let failure = Failure {
                    at: now,
                    elapsed: delivery.elapsed,
                    dribbled: peer.dribbled(delivery, now),
                    active: self.in_flight.peers,
                };
                self.common.failed(slot, &failure, || peer.uncharged());
                if delivery.end == End::Failed(Fault::Timeout) && self.common.is_ours() {
                    let late = TimedOut {
                        bytes: delivery.bytes,
                        size: self.request,
                        elapsed: delivery.elapsed,
                        in_flight: self.in_flight.requests,
                        is_first,
                    };
                    self.downlink.timed_out(&late, now);
                }
            }
            End::Failed(Fault::Verification) => self.common.forget(slot),
            End::Failed(Fault::Unavailable) | End::Cancelled => {}
        }
        Blame::Theirs
    }

    /// How many requests the peer would have ended in the time that this one had, if it had too many beside it to end in time, and would have alone.
    fn crowded(&mut self, slot: Slot, delivery: &Delivery, now: Time) -> Option<u32> {
        if delivery.end != End::Failed(Fault::Timeout) || delivery.bytes == Bytes::ZERO {
            return None;
        }
        let beside = self.peers.unquoted_mut(slot).beside(delivery, now)?;
        let terms = Terms { in_flight: libm::roundf(beside) as u32, ..self.terms(slot, 0, now) };
        let (size, elapsed_s) = (self.request, delivery.elapsed.as_secs_f64() as f32);
        let (alone_s, together_s) = (terms.forecast.mean_s(size), terms.served_s(size));
        let fit = || ((beside * elapsed_s / together_s) as u32).max(1);
        (terms.in_flight > 1 && alone_s <= elapsed_s && elapsed_s < together_s).then(fit)
    }

    fn discharge(&mut self, slot: Slot, before: &Uncharged) {
        let peer = self.peers.value_mut(slot);
        let voted = peer.vote();
        peer.discharge(before);
        self.population.revote((peer.path, &voted), (peer.path, &peer.vote()));
    }
}
