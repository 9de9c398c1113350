//! Whose doing the end of a request is (AUD-7), in front of everything that is learned from it.

use core::hash::Hash;

use super::Engine;
use crate::audit::common_mode::Failure;
use crate::estimate::downlink::TimedOut;
use crate::measure::{Delivery, End, Fault};
use crate::peer::Uncharged;
use crate::table::Slot;
use crate::units::Time;

impl<K: Copy + Eq + Hash + Ord> Engine<K> {
    /// Whose doing an end is, before it is learned from: true where it is known to be ours (AUD-7).
    #[inline]
    pub(super) fn blame(&mut self, slot: Slot, delivery: &Delivery, now: Time) -> bool {
        let peer = self.peers.value(slot);
        match delivery.end {
            End::Completed => {
                self.downlink.completed(delivery.bytes, delivery.elapsed, now);
                self.duplicates.earn(delivery.bytes);
                if !self.common.is_quiet() {
                    let prior = self.population.prior(peer.path);
                    let put_back = self.common.completed(delivery.elapsed, peer.is_on_time(delivery, &prior, now), now);
                    for (slot, before) in put_back {
                        self.discharge(slot, &before);
                    }
                }
                self.common.note(slot, now);
            }
            End::Failed(Fault::Timeout | Fault::Transport | Fault::Unknown) | End::Interrupted => {
                if self.common.excuses(delivery.elapsed, now) {
                    return true;
                }
                let is_alone = peer.pending() == 1;
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
                        is_alone,
                    };
                    self.downlink.timed_out(&late, now);
                }
            }
            End::Failed(Fault::Verification) => self.common.forget(slot),
            End::Failed(Fault::Unavailable) | End::Cancelled => {}
        }
        false
    }

    fn discharge(&mut self, slot: Slot, before: &Uncharged) {
        let peer = self.peers.value_mut(slot);
        let voted = peer.vote();
        peer.discharge(before);
        self.population.revote((peer.path, &voted), (peer.path, &peer.vote()));
    }
}
