//! How bytes flow: stretches of replies, a connection's rounds, and the rates that hold until the next boundary.
//!
//! A connection is counted before anything about it changes, then passes every boundary it has reached, then gets its share and its next tick.

use super::Network;
use super::connection::Mode;
use super::transfer::{Phase, Transfer, Transfers};
use crate::behaviour::{Answer, Progress, Segment};
use crate::sim::queue::{Event, Micros, NEVER, TransferId, micros, seconds};
use crate::sim::wire::{Flow, Interval};

/// Rounding slack of byte counts.
const SLACK: f64 = 1e-3;
/// Round trips to be up again after a cut: TCP's and TLS's handshakes.
const RECONNECT_ROUND_TRIPS: f64 = 2.0;

impl Network {
    pub(super) fn ready(&mut self, id: TransferId) {
        let slot = self.transfers.at(id.place).peer;
        self.count(slot);
        self.stretch(id.place);
        self.settle(slot);
    }

    /// The next stretch of a reply begins, or a pause before it.
    fn stretch(&mut self, place: u32) {
        let now = self.queue.now();
        let transfer = self.transfers.at(place);
        let peer = &mut self.peers[transfer.peer as usize];
        let segment = match transfer.phase {
            Phase::Pausing(segment) => segment,
            _ => peer.conduct.segment(&progress(transfer, peer.served, peer.rate, now - self.origin)),
        };
        if segment.pause_s > 0.0 {
            transfer.phase = Phase::Pausing(Segment { pause_s: 0.0, ..segment });
            let at = now.saturating_add(micros(segment.pause_s));
            let id = self.transfers.id(place);
            self.queue.plan(at, Event::Ready(id));
            return;
        }
        transfer.phase = Phase::Sending;
        transfer.cap = segment.rate;
        transfer.rate = 0.0;
        let end = (transfer.got + segment.bytes.max(1.0)).min(transfer.bytes as f64);
        transfer.stretch_end = transfer.hitch().map_or(end, |hitch| end.min(hitch));
        peer.connection.sending.push(place);
        if peer.connection.mode == Mode::Idle {
            if now < self.out_until {
                peer.connection.outage(now, self.out_until, &peer.path);
            } else {
                peer.connection.wake(now, &peer.path);
            }
        }
    }

    /// Counts what a connection's transfers got since it was last counted.
    pub(super) fn count(&mut self, slot: u32) {
        if self.wires.is_some() {
            self.see(slot);
        }
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        let connection = &mut peer.connection;
        let elapsed_s = seconds(now - connection.counted_at);
        connection.counted_at = now;
        if connection.mode != Mode::Sending || elapsed_s == 0.0 {
            return;
        }
        let mut moved = 0.0;
        for place in &connection.sending {
            let transfer = self.transfers.at(*place);
            let bytes = flowed(transfer, elapsed_s);
            transfer.got += bytes;
            moved += bytes;
        }
        peer.served += moved;
        connection.round_left -= moved;
        connection.loss_left -= moved;
    }

    /// Shows a client's wire what is about to be counted.
    #[cold]
    fn see(&mut self, slot: u32) {
        let Some(wires) = &mut self.wires else { return };
        let to = self.queue.now();
        let peer = &self.peers[slot as usize];
        let connection = &peer.connection;
        let interval = Interval { peer: slot, from: connection.counted_at, to, back: connection.way_back() };
        let elapsed_s = seconds(to - interval.from);
        let mut used = 0.0;
        if connection.mode == Mode::Sending {
            for place in &connection.sending {
                let transfer = self.transfers.at(*place);
                let (before, rate) = (transfer.got, transfer.rate);
                used += rate;
                let after = before + flowed(transfer, elapsed_s);
                wires.flows(interval, Flow { place: *place, before, after, rate });
            }
        }
        let lulls = peer.open.iter().any(|place| matches!(self.transfers.at(*place).phase, Phase::Pausing(_)));
        wires.flows_besides(interval, peer.rate, used, lulls);
        wires.settle(interval, connection.hold_until.max(self.paused_until));
    }

    pub(super) fn tick(&mut self, slot: u32) {
        self.count(slot);
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        match peer.connection.mode {
            Mode::Waiting(until) if now >= until => peer.connection.start_round(now, &peer.path),
            Mode::Stalled(until) if now >= until => peer.connection.resume(now, &peer.path),
            _ => {}
        }
        self.settle(slot);
    }

    /// Passes every boundary that a counted connection has reached, then shares its rate and plans its next boundary.
    pub(super) fn settle(&mut self, slot: u32) {
        let now = self.queue.now();
        let mut ended = 0;
        loop {
            let peer = &mut self.peers[slot as usize];
            let connection = &mut peer.connection;
            if connection.mode == Mode::Sending && connection.loss_left <= SLACK {
                let left = connection.sending.iter().map(|place| {
                    let transfer = self.transfers.at(*place);
                    transfer.bytes as f64 - transfer.got
                });
                let left = left.sum();
                connection.lose(now, left, &peer.path);
                continue;
            }
            let sending = &peer.connection.sending;
            let at_end = sending[ended..].iter().position(|place| {
                let transfer = self.transfers.at(*place);
                transfer.stretch_end - transfer.got <= SLACK
            });
            if let Some(at) = at_end {
                ended += at;
                let place = peer.connection.sending.remove(ended);
                self.stretch_ends(place);
                // A cut leaves nothing to go on with.
                ended = ended.min(self.peers[slot as usize].connection.sending.len());
                continue;
            }
            let peer = &mut self.peers[slot as usize];
            if peer.connection.sending.is_empty() {
                peer.connection.rest(now);
            } else if peer.connection.mode == Mode::Sending && peer.connection.round_left <= SLACK {
                peer.connection.end_round(now, &peer.path);
            }
            break;
        }
        self.share(slot);
    }

    fn stretch_ends(&mut self, place: u32) {
        let now = self.queue.now();
        let id = self.transfers.id(place);
        let transfer = self.transfers.at(place);
        let peer = &mut self.peers[transfer.peer as usize];
        transfer.got = transfer.stretch_end;
        let half = (transfer.bytes as f64 / 2.0).max(1.0);
        if transfer.got >= transfer.bytes as f64 {
            transfer.phase = Phase::Whole;
            peer.connection.pad(transfer.bytes);
            self.queue.plan(now.max(peer.connection.hold_until), Event::Seen(id));
        } else if transfer.got == half && transfer.answer == Answer::Cuts {
            let slot = transfer.peer;
            self.cuts(slot);
        } else if let (true, Answer::Stalls { for_s }) = (transfer.got == half, transfer.answer) {
            transfer.phase = Phase::Pausing(Segment { pause_s: for_s, ..Segment::FULL });
            self.stretch(place);
        } else {
            transfer.phase = Phase::Away;
            self.stretch(place);
        }
    }

    fn cuts(&mut self, slot: u32) {
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        let up_at = now.saturating_add(micros(RECONNECT_ROUND_TRIPS * peer.path.rtt_s));
        peer.connection.reset(now, up_at);
        if let Some(wires) = &mut self.wires {
            wires.reset(slot);
        }
        self.queue.plan(up_at, Event::Reconnects { peer: slot });
        self.cut.push(slot);
        for place in &peer.open {
            self.transfers.at(*place).phase = Phase::Away;
            self.lost.push(self.transfers.id(*place));
        }
    }

    /// Shares a connection's rate among its transfers, after the links have shared theirs among connections.
    fn share(&mut self, slot: u32) {
        let peer = &self.peers[slot as usize];
        let mut demand = 0.0;
        if peer.connection.mode == Mode::Sending {
            demand = peer.connection.sending.iter().map(|place| self.transfers.at(*place).cap).sum::<f64>();
            demand = demand.min(peer.rate);
        }
        let mut changed = std::mem::take(&mut self.changed);
        self.links.demand(slot, demand, &mut changed);
        self.apply(slot);
        for other in changed.drain(..) {
            // Until now it had the old rate.
            self.count(other);
            self.apply(other);
        }
        self.changed = changed;
    }

    /// Gives transfers their rates and plans the connection's next boundary.
    fn apply(&mut self, slot: u32) {
        let now = self.queue.now();
        let rate = self.links.rate(slot);
        let peer = &mut self.peers[slot as usize];
        let connection = &mut peer.connection;
        let next = match connection.mode {
            Mode::Idle => NEVER,
            Mode::Waiting(until) | Mode::Stalled(until) => until,
            // Whoever sends nothing at all reaches no boundary.
            Mode::Sending if rate <= 0.0 => NEVER,
            Mode::Sending => {
                split(rate, &connection.sending, &mut self.transfers);
                let seen = now.max(connection.hold_until).max(self.paused_until);
                let mut soonest_s = connection.round_left.min(connection.loss_left) / rate;
                for place in &connection.sending {
                    let transfer = self.transfers.at(*place);
                    if transfer.rate > 0.0 {
                        transfer.first_byte.get_or_insert(seen);
                        soonest_s = soonest_s.min((transfer.stretch_end - transfer.got) / transfer.rate);
                    }
                }
                now.saturating_add(micros(soonest_s).max(1))
            }
        };
        self.queue.plan_tick(slot, next);
    }

    /// Asks a peer anew how the replies under way go on.
    pub(super) fn reconsider(&mut self, slot: u32) {
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        for place in &peer.connection.sending {
            let transfer = self.transfers.at(*place);
            let segment = peer.conduct.segment(&progress(transfer, peer.served, peer.rate, now - self.origin));
            let end = (transfer.got + segment.bytes.max(1.0)).min(transfer.bytes as f64);
            transfer.cap = segment.rate;
            transfer.stretch_end = transfer.hitch().map_or(end, |hitch| end.min(hitch));
        }
        self.settle(slot);
    }
}

/// What came of a transfer in so many seconds. Time is rounded up to microseconds; nothing flows past the end of a stretch.
#[inline]
fn flowed(transfer: &Transfer, elapsed_s: f64) -> f64 {
    (transfer.rate * elapsed_s).min(transfer.stretch_end - transfer.got)
}

fn progress(transfer: &Transfer, served: f64, link: f64, at: Micros) -> Progress {
    Progress { sent: transfer.got, bytes: transfer.bytes, served, link, at_s: seconds(at) }
}

/// Splits a connection's rate evenly among its transfers, none above its cap.
fn split(rate: f64, sending: &[u32], transfers: &mut Transfers) {
    if let [only] = sending {
        transfers.at(*only).rate = rate;
        return;
    }
    let (mut left, mut count) = (rate, sending.len() as f64);
    for place in sending {
        transfers.at(*place).rate = -1.0;
    }
    // Whoever wants less than an even share gets what it wants, until all who are left want more.
    loop {
        let even = (left / count).max(0.0);
        let mut met = false;
        for place in sending {
            let transfer = transfers.at(*place);
            if transfer.rate < 0.0 && transfer.cap <= even {
                transfer.rate = transfer.cap;
                left -= transfer.cap;
                count -= 1.0;
                met = true;
            }
        }
        if !met || count == 0.0 {
            for place in sending {
                let transfer = transfers.at(*place);
                if transfer.rate < 0.0 {
                    transfer.rate = even;
                }
            }
            return;
        }
    }
}
