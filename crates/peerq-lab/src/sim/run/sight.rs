//! What a client sees and writes on the wire, for policies that measure there.
//!
//! The one idea: SDUs are told late but stamped with the moment of their reading, each peer's in order; whatever needs to know the present (a question, a request, an
//! end, a pause) first has everything told that was read before it.

use peer_quality::measure::wire::{Reply, Stamp};
use peer_quality::units::Time;

use super::Run;
use super::guard::caught;
use crate::policy::{PeerIndex, Policy, Sight};
use crate::sim::queue::{Event, Micros};
use crate::sim::wire::{Seen, What, Wires};

/// How often it is looked whether a peer should get a cookie: as often as one can become due (MEAS-9).
const LOOK_AGAIN: Micros = peer_quality::measure::wire::INJECT_AFTER.as_micros();

impl<P: Policy + ?Sized> Run<'_, P> {
    /// Sees single SDUs if the policy does.
    pub(super) fn open_eyes(&mut self, seed: u64) {
        if self.policy.sight().is_some() {
            let acts = self.draw.peers.iter().map(|peer| self.world.peers[peer.group].wire);
            self.network.wires = Some(Wires::new(acts, seed));
        }
    }

    /// Does something with the policy's sight; a panic counts as one of the policy's.
    fn with_sight<T>(&mut self, what: impl FnOnce(&mut dyn Sight) -> T) -> Option<T> {
        let policy = &mut *self.policy;
        let done = caught(|| policy.sight().map(what));
        self.panics += u32::from(done.is_none());
        done.flatten()
    }

    /// Tells everything that was read up to now: of one peer, or of all.
    #[inline]
    pub(super) fn look(&mut self, slot: Option<u32>) {
        if self.network.wires.is_some() {
            self.network.look(slot);
            self.tell_seen();
        }
    }

    /// Tells what was found on the wire.
    pub(super) fn tell_seen(&mut self) {
        let Some(wires) = &mut self.network.wires else { return };
        if wires.seen.is_empty() {
            return;
        }
        let mut seen = std::mem::take(&mut wires.seen);
        let current = std::mem::take(&mut self.current);
        self.with_sight(|sight| {
            for Seen { peer, at, what } in seen.iter().copied() {
                let (peer, at) = (current[peer as usize], Time::from_micros(at));
                match what {
                    What::Opens => sight.opens(peer, at),
                    // Peers measure nothing here, so they send no cookies of their own.
                    What::Sdu { echo, payload } => sight.reads(peer, Stamp { send: 0, echo }, payload, at),
                }
            }
        });
        self.current = current;
        seen.clear();
        if let Some(wires) = &mut self.network.wires {
            // The place is used again.
            wires.seen = seen;
        }
        self.tell_signals();
    }

    fn tell_signals(&mut self) {
        let now = self.time();
        while let Some(signal) = self.with_sight(|sight| sight.poll_signal()).flatten() {
            self.observer.signal(now, &signal);
        }
    }

    /// The client writes to a peer, which reads it at `reaches_at`.
    pub(super) fn write(&mut self, peer: PeerIndex, slot: u32, reaches_at: Micros) {
        if self.network.wires.is_none() {
            return;
        }
        self.look(Some(slot));
        let now = self.network.queue.now();
        let stamp = self.with_sight(|sight| sight.writes(peer, Reply::Prompt, Time::from_micros(now)));
        let Some(wires) = &mut self.network.wires else { return };
        wires.write(slot, stamp.unwrap_or_default().send, now, reaches_at);
        if !wires.watch(slot, true) {
            self.network.queue.plan(now.saturating_add(LOOK_AGAIN), Event::CookieDue { peer: slot });
        }
    }

    /// Sends a cookie with something small if one is due, and looks again while requests are under way.
    pub(super) fn cookie_due(&mut self, slot: u32) {
        let Some(wires) = &mut self.network.wires else { return };
        let (now, written_at) = (self.network.queue.now(), wires.written_at(slot));
        wires.watch(slot, false);
        if !self.network.is_asked(slot) {
            return;
        }
        if now.saturating_sub(written_at) < LOOK_AGAIN {
            self.watch(slot, written_at.saturating_add(LOOK_AGAIN));
            return;
        }
        self.look(Some(slot));
        let (peer, at) = (self.current[slot as usize], self.time());
        if self.with_sight(|sight| sight.wants_cookie(peer, at)) == Some(true) {
            let reaches_at = self.network.reaches_at(slot);
            self.write(peer, slot, reaches_at);
        } else {
            self.watch(slot, now.saturating_add(LOOK_AGAIN));
        }
    }

    fn watch(&mut self, slot: u32, at: Micros) {
        if let Some(wires) = &mut self.network.wires {
            wires.watch(slot, true);
            self.network.queue.plan(at, Event::CookieDue { peer: slot });
        }
    }

    /// A transfer whose last SDU was read, or that is given up, is over.
    pub(super) fn closes(&mut self, place: u32, slot: u32, peer: PeerIndex) {
        if self.network.wires.is_none() {
            return;
        }
        self.look(Some(slot));
        let was_seen = self.network.wires.as_mut().is_some_and(|wires| wires.close(place));
        if was_seen {
            let now = self.time();
            self.with_sight(|sight| sight.ends(peer, now));
        }
        self.tell_signals();
    }

    /// The client stops reading.
    pub(super) fn pauses(&mut self, until: Micros) {
        if self.network.wires.is_some() {
            self.look(None);
            let now = self.time();
            self.with_sight(|sight| sight.pauses(now));
            self.network.queue.plan(until, Event::Resumes);
        }
    }

    /// The client reads again, first what waited.
    pub(super) fn resumes(&mut self) {
        let now = self.time();
        self.with_sight(|sight| sight.resumes(now));
        self.look(None);
    }
}
