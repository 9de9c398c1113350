//! Worlds and policies for tests of the simulator.
#![allow(dead_code, unreachable_pub)]

use peer_quality::measure::wire::{Connection, CookieSeed, Event, Options, Reply, Stamp};
use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Time};
use peerq_lab::model::{Behaviour, Client, PeerGroup, RunResult, Workload, World};
use peerq_lab::policy::{Ask, Grant, PeerIndex, Policy, Sight, Signal};
use peerq_lab::sim::{self, Fact, Observer};

/// An honest group on a clean link.
pub fn group(name: &str, count: u32, rate: f64, rtt_ms: f64) -> PeerGroup {
    PeerGroup::honest(name, count, rate, rtt_ms)
}

/// A group that behaves.
pub fn behaving(name: &str, rate: f64, behaviour: Behaviour) -> PeerGroup {
    PeerGroup { behaviour, ..group(name, 1, rate, 50.0) }
}

pub fn world(peers: Vec<PeerGroup>) -> World {
    World { peers, client: Client::default(), ..World::default() }
}

/// One download after the other.
pub fn downloads(requests: u32, ranges: u32, range_bytes: u64, in_flight: u32) -> Workload {
    Workload::Downloads {
        requests,
        ranges,
        range_bytes,
        sources: in_flight,
        in_flight,
        pause_s: 0.0,
        range_timeout_s: 30.0,
    }
}

/// Gives every free range to the candidates in turn.
#[derive(Default)]
pub struct InTurn {
    next: usize,
}

impl Policy for InTurn {
    fn name(&self) -> &'static str {
        "in-turn"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        let grant = |_| {
            self.next += 1;
            let peer = ask.candidates.get(self.next % ask.candidates.len().max(1))?.peer;
            Some(Grant { peer, ranges: 1 })
        };
        (0..ask.free).filter_map(grant).collect()
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, _peer: PeerIndex, _content: u64, _range: Bytes, _delivery: &Delivery, _now: Time) {}
}

/// Counts what is told, and keeps it.
#[derive(Default)]
pub struct Ledger {
    pub start: Time,
    pub facts: Vec<(Time, Fact)>,
    pub decisions: usize,
}

impl Observer for Ledger {
    fn starts(&mut self, at: Time) {
        self.start = at;
    }

    fn fact(&mut self, now: Time, fact: &Fact) {
        self.facts.push((now, *fact));
    }

    fn decision(&mut self, _now: Time, _ask: &Ask<'_>, _grants: Option<&[Grant]>) {
        self.decisions += 1;
    }
}

impl Ledger {
    /// Ends, with the second of each since the run's start.
    pub fn ends(&self) -> impl Iterator<Item = (f64, PeerIndex, Delivery)> + '_ {
        self.facts.iter().filter_map(|(now, fact)| match fact {
            Fact::Ended { peer, delivery, .. } => Some((now.since(self.start).as_secs_f64(), *peer, *delivery)),
            _ => None,
        })
    }

    pub fn count(&self, end: End) -> usize {
        self.ends().filter(|(_, _, delivery)| delivery.end == end).count()
    }

    /// Requests sent and not ended.
    pub fn in_flight(&self) -> i64 {
        self.facts
            .iter()
            .map(|(_, fact)| {
                i64::from(matches!(fact, Fact::Sent { .. })) - i64::from(matches!(fact, Fact::Ended { .. }))
            })
            .sum()
    }
}

/// Runs in turn and watches.
pub fn watched(world: &World, workload: &Workload, seed: u64) -> (RunResult, Ledger) {
    let mut ledger = Ledger::default();
    let result = sim::run(world, workload, &mut InTurn::default(), seed, &mut ledger).expect("a possible world");
    (result, ledger)
}

/// The seconds that one fetch of these bytes takes.
pub fn one_fetch(world: &World, bytes: u64, seed: u64) -> f64 {
    let workload = Workload::Downloads {
        requests: 1,
        ranges: 1,
        range_bytes: bytes,
        sources: 1,
        in_flight: 1,
        pause_s: 0.0,
        range_timeout_s: 10_000.0,
    };
    let result = sim::run(world, &workload, &mut InTurn::default(), seed, &mut ()).expect("a possible world");
    result.requests[0].end_s.expect("it ends") - result.requests[0].start_s
}

/// Asks the only peer, and measures its wire as a host does.
pub struct Looker {
    connection: Option<Connection>,
    now: Time,
    /// Second and payload of each SDU.
    pub reads: Vec<(f64, u32)>,
    pub events: Vec<Event>,
    /// SDUs read when guessing was reported.
    pub guessing_after: Option<usize>,
    /// Whether an SDU of a running reply came while an echo was late.
    pub echo_late: bool,
    replies: u32,
}

impl Looker {
    /// The connection, and the moment of the last thing told of it.
    pub fn connection(&mut self) -> (&mut Connection, Time) {
        (self.connection.as_mut().expect("connected"), self.now)
    }

    fn tell(&mut self, now: Time, what: impl FnOnce(&mut Connection)) {
        self.now = now;
        let Some(connection) = &mut self.connection else { return };
        what(connection);
        while let Some(event) = connection.poll_event() {
            if event == Event::EchoGuessing {
                self.guessing_after.get_or_insert(self.reads.len());
            }
            self.events.push(event);
        }
    }
}

impl Policy for Looker {
    fn name(&self) -> &'static str {
        "looker"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        ask.candidates.iter().map(|one| Grant { peer: one.peer, ranges: ask.free }).collect()
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, _peer: PeerIndex, _content: u64, _range: Bytes, _delivery: &Delivery, _now: Time) {}

    fn connected(&mut self, _peer: PeerIndex, up: bool, now: Time) {
        let options = Options { cookies: true, ..Options::default() };
        self.connection = up.then(|| Connection::new(CookieSeed::new([5; 32]), options, now));
    }

    fn sight(&mut self) -> Option<&mut dyn Sight> {
        Some(self)
    }
}

impl Sight for Looker {
    fn writes(&mut self, _peer: PeerIndex, reply: Reply, now: Time) -> Stamp {
        self.connection.as_mut().map_or_else(Stamp::default, |connection| connection.on_egress(reply, now))
    }

    fn reads(&mut self, _peer: PeerIndex, stamp: Stamp, payload: u32, now: Time) {
        assert!(now >= self.now, "in order of time");
        self.reads.push((now.as_micros() as f64 * 1e-6, payload));
        self.tell(now, |connection| {
            connection.on_ingress(stamp, payload, now);
        });
        let replies = self.replies;
        let (connection, now) = self.connection();
        let is_late = connection.echo_silence(now).is_some_and(|silence| silence > connection.gate());
        self.echo_late |= is_late && replies > 0;
    }

    fn opens(&mut self, _peer: PeerIndex, now: Time) {
        self.replies += 1;
        self.tell(now, |connection| connection.on_transfer_open(now));
    }

    fn ends(&mut self, _peer: PeerIndex, now: Time) {
        self.replies -= 1;
        self.tell(now, |connection| connection.on_transfer_end(now));
    }

    fn pauses(&mut self, now: Time) {
        self.tell(now, |connection| connection.on_pause(now, now));
    }

    fn resumes(&mut self, now: Time) {
        self.tell(now, |connection| connection.on_resume(now));
    }

    fn wants_cookie(&self, _peer: PeerIndex, now: Time) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.wants_cookie(now))
    }

    fn poll_signal(&mut self) -> Option<Signal> {
        None
    }
}

/// Runs a world of one peer, looking at its wire.
pub fn looked(world: &World, workload: &Workload, seed: u64) -> Looker {
    let mut looker = Looker {
        connection: None,
        now: Time::ZERO,
        reads: Vec::new(),
        events: Vec::new(),
        guessing_after: None,
        echo_late: false,
        replies: 0,
    };
    sim::run(world, workload, &mut looker, seed, &mut ()).expect("a possible world");
    looker
}
