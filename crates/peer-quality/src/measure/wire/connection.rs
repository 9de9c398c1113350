//! One connection's measurement: SDUs in and out, round trips, bursts and stalls out (MEAS-1 to MEAS-9, MEAS-11).
//!
//! The host owns one per connection, tells it what happened and when, and writes the cookies that it answers. It performs no I/O, reads no clock, and allocates
//! only to grow its bounded tables. Every call first works off the deadlines that have passed, so polling is a matter of promptness: the
//! figures are the same without it.

use super::burst::{Accumulator, Burst, Sums};
use super::cookie::CookieSeed;
use super::echoes::Echoes;
use super::gate::{GATE_FLOOR, gate, gate_of, idle_limit, scaled};
use super::header::Stamp;
use super::kernel::{Attribution, KernelFacts};
use super::observation::{Counters, Echo, Event, Observation, Reply};
use super::outstanding::HOLD;
use super::ramp::Ramp;
use super::rtt::{RttQuantiles, RttWindow};
use super::stall::{Channel, Stall, StallSummary, Stalls};
use super::timeline::{Tick, Timeline};
use super::window::{Action, Input, State};
use crate::units::{Span, Time};

/// A cookie is used again for SDUs this soon after it was minted; a round trip is timed from the minting, so it reads long by less than this.
/// Too long blurs the round trips of near peers; too short spends cookies and memory on one write. The Haskell multiplexer's value.
pub const MINT_INTERVAL: Span = Span::from_millis(1);

/// A download during which we sent nothing for this long should carry a cookie (MEAS-9).
/// Too long lets the round trip go stale and the echo channel sleep; too short is traffic for nothing. Unmeasured heuristic.
pub const INJECT_AFTER: Span = Span::from_secs(1);

/// What a host knows of a connection before it measures.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The peer writes and echoes cookies. Without, everything that rests on echoes is absent, and stamps are zero.
    pub cookies: bool,
    /// The shortest round trip that is possible, from the handshake or the kernel; echoes faster than it are discarded.
    pub rtt_floor: Option<Span>,
    /// The gate is this many times the usual one; clamped to 1/8..=8. For studies of what hangs on it: hosts leave it at 1.
    pub gate_scale: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options { cookies: false, rtt_floor: None, gate_scale: 1.0 }
    }
}

/// The wire measurement of one connection. State is bounded: see [`state_bytes`](Self::state_bytes).
#[derive(Debug)]
pub struct Connection {
    cookies: bool,
    gate_scale: f64,
    timeline: Timeline,
    /// No deadline passes up to here.
    quiet_until: Time,
    echoes: Echoes,
    rtt: RttWindow,
    gate: Span,
    state: State,
    last_data: Time,
    last_egress: Time,
    ramp: Ramp,
    burst: Accumulator,
    transfers: u32,
    stalls: Stalls,
    kernel: Option<KernelFacts>,
    /// Events that were not read yet.
    closed: Sums,
    stalled: Option<Stall>,
}

impl Connection {
    /// A connection established at `now`.
    pub fn new(seed: CookieSeed, options: Options, now: Time) -> Self {
        let gate_scale = if options.gate_scale.is_finite() { options.gate_scale.clamp(0.125, 8.0) } else { 1.0 };
        Connection {
            cookies: options.cookies,
            gate_scale,
            timeline: Timeline::new(now),
            quiet_until: Time::ZERO,
            echoes: Echoes::new(seed, options, now),
            rtt: RttWindow::new(now),
            gate: scaled(GATE_FLOOR, gate_scale),
            state: State::default(),
            last_data: now,
            last_egress: now,
            ramp: Ramp::default(),
            burst: Accumulator::default(),
            transfers: 0,
            stalls: Stalls::default(),
            kernel: None,
            closed: Sums::default(),
            stalled: None,
        }
    }

    /// An SDU is about to be written: the cookies to write into it. Take `now` when writing, not when queueing.
    pub fn on_egress(&mut self, reply: Reply, now: Time) -> Stamp {
        let now = self.advance(now);
        self.last_egress = now;
        if self.cookies { self.echoes.stamp(reply, now) } else { Stamp::default() }
    }

    /// An SDU was read whole, with `payload` bytes. SDUs with equal `now` are one read: take the time once per read of the socket, before decoding.
    pub fn on_ingress(&mut self, stamp: Stamp, payload: u32, now: Time) -> Observation {
        let now = self.advance(now);
        // A peer without cookies writes a timestamp in their place.
        let echo = if self.cookies { self.receive(stamp, now) } else { self.echoes.ignore() };
        let gap = if payload > 0 { self.data(u64::from(payload), now) } else { None };
        Observation { echo, gap }
    }

    /// The first SDU of a transfer's reply arrived: from here to its end, silence is a stall. The wait before it never is, so tell it then and not with
    /// the request. Transfers may overlap.
    pub fn on_transfer_open(&mut self, now: Time) {
        self.advance(now);
        self.transfers = self.transfers.saturating_add(1);
    }

    /// A transfer completed, failed or was given up; tell it with the same `now` as its last SDU. Ends beyond the beginnings are ignored.
    pub fn on_transfer_end(&mut self, now: Time) {
        let now = self.advance(now);
        self.transfers = self.transfers.saturating_sub(1);
        if self.transfers == 0 {
            self.apply(Input::Completed, 0, now);
            self.settle(None, now);
        }
    }

    /// Nothing that happens from `since` on is the peer's doing: we stopped reading (back-pressure), or all peers fell silent at once (common mode, for
    /// which `since` may lie back). The window is closed without a stall, stalls that began since are taken back, and round trips that
    /// were under way are kept out. Lasts until [`on_resume`](Self::on_resume).
    pub fn on_pause(&mut self, since: Time, now: Time) {
        let now = self.advance(now);
        let since = self.timeline.past(since);
        self.stalls.forgive(since);
        self.stalled = self.stalled.filter(|stall| stall.onset < since);
        self.settle(None, since);
        self.apply(Input::Pause, 0, now);
        self.echoes.taint(now);
    }

    /// The pause is over; harmless without one.
    pub fn on_resume(&mut self, now: Time) {
        let now = self.advance(now);
        if self.state == State::Paused {
            self.apply(Input::Resume, 0, now);
            self.echoes.taint(now);
        }
    }

    /// A reading of the kernel's figures.
    pub fn on_kernel(&mut self, facts: KernelFacts, now: Time) {
        self.advance(now);
        if let Some(least) = facts.rtt_min {
            self.echoes.set_floor(least);
        }
        self.kernel = Some(facts);
        self.set_gate();
    }

    /// Works off the deadlines up to `now`; spurious calls are harmless.
    pub fn on_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    /// When something will change by itself: a gate closes, or a cookie becomes due. None where nothing will. May change with every call above; what has
    /// passed is never named again.
    pub fn poll_timeout(&self) -> Option<Time> {
        let just_after = |at: Time, span: Span| Some(at + span + Span::from_micros(1));
        let is_open = self.state == State::Open;
        let in_transfer = self.transfers > 0 && self.state != State::Paused;
        let deadlines = [
            just_after(self.last_data, self.gate).filter(|_| is_open),
            self.echoes.waiting_since().filter(|_| is_open).and_then(|since| just_after(since, self.gate)),
            just_after(self.last_data, idle_limit(self.gate)).filter(|_| in_transfer && self.state == State::Ramping),
            Some(self.last_egress + INJECT_AFTER).filter(|_| in_transfer && self.cookies),
        ];
        let due = deadlines.into_iter().flatten().filter(|at| *at > self.timeline.last()).min()?;
        Some(self.timeline.to_host(due))
    }

    /// Whether a cookie should be sent with something small, such as a keep-alive (MEAS-9): a transfer runs and we sent nothing for [`INJECT_AFTER`].
    pub fn wants_cookie(&self, now: Time) -> bool {
        let silent = self.timeline.peek(now).since(self.last_egress);
        self.cookies && self.transfers > 0 && self.state != State::Paused && silent >= INJECT_AFTER
    }

    /// What was found since the last call; call until none. Unread bursts add up, of unread stalls the longest stays.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(burst) = core::mem::take(&mut self.closed).burst() {
            return Some(Event::Burst(burst));
        }
        if let Some(stall) = self.stalled.take() {
            return Some(Event::Stall(Stall { onset: self.timeline.to_host(stall.onset), ..stall }));
        }
        self.echoes.take_guesser_news().then_some(Event::EchoGuessing)
    }

    /// The burst of the open window so far: the live rate of a running transfer. It comes again as an event when the window closes.
    pub fn live_burst(&self) -> Option<Burst> {
        if self.state == State::Open { self.burst.sums().burst() } else { None }
    }

    /// The round trips of the last minute, as of `now`; recomputed at most once a second. None without samples.
    pub fn rtt(&mut self, now: Time) -> Option<RttQuantiles> {
        let now = self.advance(now);
        self.refresh(now);
        self.rtt.latest()
    }

    /// Any quantile of the round trips of the last minute, within 0.8 %; `q` is clamped to 0 to 1. For people and tests; ranking reads [`rtt`](Self::rtt).
    pub fn rtt_quantile(&mut self, q: f64, now: Time) -> Option<Span> {
        let now = self.advance(now);
        self.rtt.quantile(q, now)
    }

    /// The gate in force.
    pub fn gate(&self) -> Span {
        self.gate
    }

    /// Where the window stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// How long nothing matched while a cookie is outstanding (settled difference 2); none while none is.
    pub fn echo_silence(&self, now: Time) -> Option<Span> {
        self.echoes.waiting_since().map(|since| self.timeline.peek(now).since(since))
    }

    /// The stall that is running, and for how long so far.
    pub fn running_stall(&self, now: Time) -> Option<(Channel, Span)> {
        self.stalls.running().map(|(channel, onset)| (channel, self.timeline.peek(now).since(onset)))
    }

    /// Stalls of the last minute that are over.
    pub fn stalls(&self, now: Time) -> StallSummary {
        self.stalls.summary(self.timeline.peek(now))
    }

    /// Whether the peer guesses cookies. Its round trips are not believed meanwhile.
    pub fn is_guessing(&self) -> bool {
        self.echoes.is_guessing()
    }

    /// Where the round trip is spent, as far as the kernel told.
    pub fn attribution(&self) -> Attribution {
        self.kernel.map_or(Attribution::Unknown, |facts| facts.attribute(self.rtt.latest()))
    }

    /// The kernel's latest figures.
    pub fn kernel(&self) -> Option<KernelFacts> {
        self.kernel
    }

    /// Bytes that the running or last ramp brought.
    pub fn ramp_bytes(&self) -> u64 {
        self.ramp.bytes()
    }

    /// What was counted since the connection began.
    pub fn counters(&self) -> Counters {
        self.echoes.counters()
    }

    /// Cookies that wait for their echo.
    pub fn outstanding(&self) -> usize {
        self.echoes.outstanding()
    }

    /// Bytes this connection holds, heap included: at most 24 KiB in normal use and 96 KiB with every cookie outstanding.
    pub fn state_bytes(&self) -> usize {
        size_of::<Self>() + self.echoes.heap_bytes() + self.rtt.heap_bytes()
    }

    fn receive(&mut self, stamp: Stamp, now: Time) -> Echo {
        let echo = self.echoes.receive(stamp, self.state == State::Paused, now);
        if let Echo::Matched(rtt) = echo
            && self.rtt.record(rtt, now)
        {
            self.refresh(now);
        }
        if let Echo::Matched(_) | Echo::Unsampled(_) = echo {
            self.apply(Input::Matched, 0, now);
            self.settle(Some(Channel::Echo), now);
        }
        echo
    }

    fn data(&mut self, bytes: u64, now: Time) -> Option<Span> {
        self.settle(Some(Channel::Data), now);
        let is_within = matches!(self.state, State::Open | State::Ramping);
        let gap = is_within.then(|| now.since(self.last_data));
        self.apply(Input::Data, bytes, now);
        self.last_data = now;
        gap
    }

    /// Brings everything to `host`: the clock, then the deadlines in the order in which they passed.
    #[inline]
    fn advance(&mut self, host: Time) -> Time {
        match self.timeline.tick_until(host, self.quiet_until) {
            Some(now) => now,
            None => self.pass_deadlines(host),
        }
    }

    #[cold]
    fn pass_deadlines(&mut self, host: Time) -> Time {
        let Tick { now, was_suspended } = self.timeline.tick(host);
        if was_suspended && self.state != State::Paused {
            self.stalls.abandon();
            self.apply(Input::Pause, 0, now);
            self.apply(Input::Resume, 0, now);
            self.echoes.taint(now);
        }
        if self.state == State::Open {
            self.pass_gates(now);
        }
        if self.echoes.expire(now) {
            self.apply(Input::Drained, 0, now);
            self.settle(Some(Channel::Echo), now);
        }
        if self.state != State::Paused && now.since(self.last_data) > idle_limit(self.gate) {
            self.apply(Input::IdleOver, 0, now);
        }
        self.quiet_until = self.next_deadline(now);
        now
    }

    /// A moment up to which no deadline passes. Data and matches only move deadlines away; what may bring one nearer, a new state or a new gate,
    /// resets it.
    fn next_deadline(&self, now: Time) -> Time {
        let mut until = now + HOLD;
        if let Some(expiry) = self.echoes.expires_after() {
            until = until.min(expiry);
        }
        let idle = self.last_data + idle_limit(self.gate);
        if idle >= now {
            until = until.min(idle);
        }
        if self.state == State::Open {
            until = until.min(self.last_data + self.gate);
            if let Some(since) = self.echoes.waiting_since() {
                until = until.min(since + self.gate);
            }
        }
        until
    }

    fn pass_gates(&mut self, now: Time) {
        let is_late = |since: Time| now.since(since) > self.gate;
        let echo_late = self.echoes.waiting_since().filter(|since| is_late(*since));
        match (is_late(self.last_data), echo_late) {
            (true, Some(since)) if since < self.last_data => self.apply(Input::EchoLate, 0, now),
            (true, _) => self.apply(Input::DataLate, 0, now),
            (false, Some(_)) => self.apply(Input::EchoLate, 0, now),
            (false, None) => {}
        }
    }

    // Inlined so that the two inputs of nearly every SDU, data and a match in an open window, cost a look-up and no call.
    #[inline(always)]
    fn apply(&mut self, input: Input, bytes: u64, now: Time) {
        let (next, action) = self.state.look_up(input);
        if next == self.state && action == Action::Extend {
            self.burst.extend(now, bytes);
        } else if next != self.state || action != Action::None {
            self.change(next, action, bytes, now);
        }
    }

    #[cold]
    fn change(&mut self, next: State, action: Action, bytes: u64, now: Time) {
        if next != self.state {
            self.state = next;
            self.quiet_until = Time::ZERO;
        }
        match action {
            Action::None => {}
            Action::BeginRound => self.ramp.begin(now, bytes),
            Action::Ramp => {
                let round = self.round();
                if self.ramp.arrived(now, bytes, round) {
                    self.apply(Input::RampOver, bytes, now);
                }
            }
            Action::ResetRamp => self.ramp = Ramp::default(),
            Action::Begin => self.burst.begin(now, bytes),
            Action::Extend => self.burst.extend(now, bytes),
            Action::End => self.close(),
            Action::EndStalled => {
                self.close();
                self.stall(Channel::Data);
            }
            Action::EndStarved => {
                self.close();
                self.stall(Channel::Echo);
            }
            Action::StallRamp => {
                self.ramp = Ramp::default();
                self.stall(Channel::Data);
            }
        }
    }

    fn close(&mut self) {
        self.closed.merge(&self.burst.sums());
    }

    fn stall(&mut self, channel: Channel) {
        if self.transfers > 0 {
            let silent_since = match channel {
                Channel::Data => self.last_data,
                Channel::Echo => self.echoes.waiting_since().unwrap_or(self.last_data),
            };
            self.stalls.begin(channel, silent_since);
        }
    }

    #[inline]
    fn settle(&mut self, channel: Option<Channel>, now: Time) {
        if self.stalls.running().is_some()
            && let Some(stall) = self.stalls.settle(channel, now)
        {
            self.tell(stall);
        }
    }

    #[cold]
    fn tell(&mut self, stall: Stall) {
        if self.stalled.is_none_or(|kept| kept.length < stall.length) {
            self.stalled = Some(stall);
        }
    }

    /// A round trip, as well as it is known.
    fn round(&self) -> Span {
        match (self.rtt.latest(), self.kernel) {
            (Some(rtt), _) => rtt.median,
            (None, Some(kernel)) if kernel.rtt > Span::ZERO => kernel.rtt,
            _ => GATE_FLOOR,
        }
    }

    #[cold]
    fn refresh(&mut self, now: Time) {
        if self.rtt.refresh(now) {
            self.set_gate();
        }
    }

    fn set_gate(&mut self) {
        // Only echoes feed the gate; a peer without cookies has none, and the kernel's round trip stands in.
        let gate = match self.kernel {
            Some(kernel) if !self.cookies => gate_of(kernel.rtt),
            _ => gate(self.rtt.latest()),
        };
        self.gate = scaled(gate, self.gate_scale);
        self.quiet_until = Time::ZERO;
    }
}
