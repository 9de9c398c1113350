//! The wire side of a host: one measurement per connection, and what it forwards to the engine.
//!
//! The one idea: it is the code that a host needs around [`Connection`], and nothing else: cookies are written as they are drawn, bursts go to the engine when they are
//! over, round trips once a second while echoes are fresh.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use peer_quality::measure::wire::{Connection, CookieSeed, Event, Options, Reply, Stamp};
use peer_quality::units::{Span, Time};
use peer_quality::{Fact, facts};

use super::{PeerIndex, Signal};

/// How often the round trips of a connection are forwarded: ranking reads them no more often (MEAS-4).
const FORWARD_EVERY: Span = Span::from_secs(1);

/// One connection.
#[derive(Debug)]
struct Line {
    connection: Connection,
    /// Replies that began and have not ended.
    replies: u32,
    /// Echoes that had matched when the round trips were last forwarded, and when that was.
    forwarded: (u64, Time),
    /// Whether its silence was forwarded since the last round trip was.
    is_silent: bool,
}

impl Line {
    /// Whether a reply runs, a cookie is outstanding, and none matched for longer than the gate (settled difference 2).
    fn is_echo_late(&self, now: Time) -> bool {
        let is_late = |silence: Span| silence > self.connection.gate();
        self.replies > 0 && self.connection.echo_silence(now).is_some_and(is_late)
    }
}

/// The measurements of all live connections: as many as there are peers with a link.
#[derive(Debug)]
pub(crate) struct Wires {
    seed: u64,
    gate_scale: f64,
    /// Connections made so far: each draws cookies of its own.
    made: u64,
    lines: BTreeMap<PeerIndex, Line>,
    signals: VecDeque<Signal>,
    /// Signals are raised once for each peer.
    raised: BTreeSet<Signal>,
}

impl Wires {
    pub(crate) fn new(seed: u64, gate_scale: f64) -> Self {
        Wires { seed, gate_scale, made: 0, lines: BTreeMap::new(), signals: VecDeque::new(), raised: BTreeSet::new() }
    }

    /// A connection to a peer is there: its measurement begins.
    pub(crate) fn connected(&mut self, peer: PeerIndex, now: Time) {
        self.made += 1;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&self.made.to_le_bytes());
        let options = Options { cookies: true, gate_scale: self.gate_scale, ..Options::default() };
        let connection = Connection::new(CookieSeed::new(seed), options, now);
        self.lines.insert(peer, Line { connection, replies: 0, forwarded: (0, Time::ZERO), is_silent: false });
    }

    /// It is gone.
    pub(crate) fn disconnected(&mut self, peer: PeerIndex) {
        self.lines.remove(&peer);
    }

    pub(crate) fn writes(&mut self, peer: PeerIndex, reply: Reply, now: Time) -> Stamp {
        self.lines.get_mut(&peer).map_or_else(Stamp::default, |line| line.connection.on_egress(reply, now))
    }

    pub(crate) fn wants_cookie(&self, peer: PeerIndex, now: Time) -> bool {
        self.lines.get(&peer).is_some_and(|line| line.connection.wants_cookie(now))
    }

    pub(crate) fn poll_signal(&mut self) -> Option<Signal> {
        self.signals.pop_front()
    }

    /// An SDU of a peer was read. That bytes come while its echoes do not is noticed here.
    pub(crate) fn reads(
        &mut self,
        peer: PeerIndex,
        stamp: Stamp,
        payload: u32,
        now: Time,
        forward: &mut impl FnMut(PeerIndex, Fact, Time),
    ) {
        let read = |connection: &mut Connection| {
            connection.on_ingress(stamp, payload, now);
        };
        self.tell(peer, now, read, forward);
        if let Some(line) = self.lines.get_mut(&peer).filter(|line| line.is_echo_late(now)) {
            if !core::mem::replace(&mut line.is_silent, true) {
                forward(peer, Fact::EchoSilence, now);
            }
            self.raise(Signal::ECHO_SILENCE, peer);
        }
    }

    /// A reply of a peer begins, or ends.
    pub(crate) fn replies(
        &mut self,
        peer: PeerIndex,
        begins: bool,
        now: Time,
        forward: &mut impl FnMut(PeerIndex, Fact, Time),
    ) {
        let Some(line) = self.lines.get_mut(&peer) else { return };
        line.replies = if begins { line.replies + 1 } else { line.replies.saturating_sub(1) };
        let tell = if begins { Connection::on_transfer_open } else { Connection::on_transfer_end };
        self.tell(peer, now, |connection| tell(connection, now), forward);
    }

    fn raise(&mut self, name: &'static str, peer: PeerIndex) {
        let signal = Signal { name, peer: Some(peer) };
        if self.raised.insert(signal) {
            self.signals.push_back(signal);
        }
    }

    /// Tells one connection something, and forwards what came of it.
    pub(crate) fn tell(
        &mut self,
        peer: PeerIndex,
        now: Time,
        what: impl FnOnce(&mut Connection),
        forward: &mut impl FnMut(PeerIndex, Fact, Time),
    ) {
        let Some(line) = self.lines.get_mut(&peer) else { return };
        what(&mut line.connection);
        let mut is_guessing = false;
        while let Some(event) = line.connection.poll_event() {
            match event {
                Event::Burst(burst) => forward(peer, Fact::Burst(burst.into()), now),
                // Silence with bytes is noticed when they are read; silence without is the data's.
                Event::Stall(_) => {}
                Event::EchoGuessing => is_guessing = true,
            }
        }
        let matched = line.connection.counters().matched;
        let (before, at) = line.forwarded;
        if matched > before && (before == 0 || now.since(at) >= FORWARD_EVERY) {
            line.forwarded = (matched, now);
            if let Some(trip) = line.connection.rtt(now) {
                line.is_silent = false;
                forward(peer, Fact::RoundTrip(facts::RoundTrip::from(trip)), now);
            }
        }
        if is_guessing {
            self.raise(Signal::ECHO_GUESSING, peer);
        }
    }

    /// Tells every connection something.
    pub(crate) fn tell_all(
        &mut self,
        now: Time,
        mut what: impl FnMut(&mut Connection),
        forward: &mut impl FnMut(PeerIndex, Fact, Time),
    ) {
        let peers: Vec<PeerIndex> = self.lines.keys().copied().collect();
        for peer in peers {
            self.tell(peer, now, &mut what, forward);
        }
    }
}
