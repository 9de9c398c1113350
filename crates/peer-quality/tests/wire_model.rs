//! The wire against a model: any sequence of operations, whatever the clock does (EST-12), and whether or not the host polls.
#![allow(missing_docs)]

mod wire_peer;

use std::collections::VecDeque;

use peer_quality::measure::wire::{Burst, Connection, Echo, Event, HOLD, KernelFacts, MINT_INTERVAL, Reply, Stamp};
use peer_quality::units::{Bytes, Span, Time};
use proptest::prelude::*;
use wire_peer::connection;

/// What a host may do.
#[derive(Clone, Copy, Debug)]
enum Op {
    Wait(u64),
    Egress(bool),
    /// Echo the outstanding cookie of this age, counted from the newest.
    Echo(usize, u32),
    /// Echo this number, whatever it is.
    Forge(u16, u32),
    Open,
    End,
    Pause,
    Resume,
    Kernel(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop_oneof![0..400u64, 0..60_000u64, 0..2_000_000u64, Just(31_000_000)].prop_map(Op::Wait),
        4 => any::<bool>().prop_map(Op::Egress),
        6 => (0..6usize, 0..70_000u32).prop_map(|(age, payload)| Op::Echo(age, payload)),
        2 => (any::<u16>(), 0..70_000u32).prop_map(|(echo, payload)| Op::Forge(echo, payload)),
        1 => Just(Op::Open),
        1 => Just(Op::End),
        1 => Just(Op::Pause),
        1 => Just(Op::Resume),
        1 => (0..500_000u64).prop_map(Op::Kernel),
    ]
}

/// The cookies outstanding, as a plain list.
#[derive(Default)]
struct Model {
    cookies: VecDeque<(u16, Time)>,
    minted: Option<(u16, Time)>,
}

impl Model {
    fn expire(&mut self, now: Time) {
        self.cookies.retain(|(_, sent)| now.since(*sent) <= HOLD);
    }

    fn egress(&mut self, cookie: u16, now: Time) {
        match self.minted {
            Some((last, at)) if now.since(at) < MINT_INTERVAL => assert_eq!(cookie, last),
            _ => {
                assert!(cookie != 0 && self.cookies.iter().all(|(held, _)| *held != cookie));
                self.minted = Some((cookie, now));
                self.cookies.push_back((cookie, now));
            }
        }
    }

    fn echo(&mut self, echo: u16, now: Time) -> Option<Span> {
        let at = self.cookies.iter().position(|(cookie, _)| *cookie == echo)?;
        let sent = self.cookies.drain(..=at).next_back()?.1;
        Some(now.since(sent))
    }

    fn aged(&self, age: usize) -> u16 {
        self.cookies.iter().rev().nth(age).map_or(0, |(cookie, _)| *cookie)
    }
}

fn rtt_of(echo: Echo) -> Option<Span> {
    match echo {
        Echo::Matched(rtt) | Echo::Unsampled(rtt) | Echo::TooEarly(rtt) | Echo::Disbelieved(rtt) => Some(rtt),
        Echo::Absent | Echo::Repeated | Echo::Forgotten | Echo::Unknown => None,
    }
}

/// Applies one operation; the echo that was judged and its SDU's payload.
fn apply(c: &mut Connection, model: &mut Model, op: Op, now: Time) -> Option<Echo> {
    model.expire(now);
    match op {
        Op::Wait(_) => {}
        Op::Egress(is_prompt) => {
            let reply = if is_prompt { Reply::Prompt } else { Reply::Whenever };
            model.egress(c.on_egress(reply, now).send, now);
        }
        Op::Echo(..) | Op::Forge(..) => {
            let (echo, payload) = match op {
                Op::Echo(age, payload) => (model.aged(age), payload),
                Op::Forge(echo, payload) => (echo, payload),
                _ => return None,
            };
            let expected = model.echo(echo, now);
            let seen = c.on_ingress(Stamp { send: 1, echo }, payload, now).echo;
            assert_eq!(rtt_of(seen), expected);
            return Some(seen);
        }
        Op::Open => c.on_transfer_open(now),
        Op::End => c.on_transfer_end(now),
        Op::Pause => c.on_pause(now, now),
        Op::Resume => c.on_resume(now),
        Op::Kernel(rtt) => c.on_kernel(KernelFacts { rtt: Span::from_micros(rtt), ..KernelFacts::default() }, now),
    }
    None
}

/// Everything a connection found, added up.
#[derive(Debug, Default, PartialEq)]
struct Found {
    bytes: u64,
    gaps: u64,
    gap_us: u64,
}

impl Found {
    fn drain(&mut self, c: &mut Connection) {
        while let Some(event) = c.poll_event() {
            match event {
                Event::Burst(Burst { gap, bytes, gaps, residual_variance }) => {
                    assert!(gap > 0.0 && bytes > Bytes::ZERO && gaps > 0);
                    assert!(residual_variance.is_finite() && residual_variance >= 0.0);
                    self.bytes += bytes.get();
                    self.gaps += u64::from(gaps);
                    self.gap_us += (gap * 1e6).round() as u64;
                }
                Event::Stall(stall) => assert!(stall.length > Span::ZERO),
                Event::EchoGuessing => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trips_are_those_of_a_list_of_cookies(ops in prop::collection::vec(op(), 1..400)) {
        let (mut c, mut model, mut now) = (connection(), Model::default(), Time::from_secs(1));
        let mut sdus = 0;
        for op in ops {
            if let Op::Wait(us) = op {
                now = now + Span::from_micros(us);
            }
            sdus += u64::from(apply(&mut c, &mut model, op, now).is_some());
            prop_assert!(c.outstanding() >= model.cookies.len());
            prop_assert!(c.gate() >= peer_quality::measure::wire::GATE_FLOOR);
            if let Some(rtt) = c.rtt(now) {
                prop_assert!(rtt.median <= rtt.high && rtt.high <= rtt.tail && rtt.samples > 0);
            }
        }
        prop_assert_eq!(c.counters().sdus(), sdus);
    }

    #[test]
    fn polling_changes_when_things_are_known_and_nothing_else(ops in prop::collection::vec(op(), 1..300)) {
        // No wait is long enough to be a suspension of the host: that one does differ, by intent.
        let (mut lazy, mut eager) = (connection(), connection());
        let (mut of_lazy, mut of_eager) = (Model::default(), Model::default());
        let (mut found_lazy, mut found_eager) = (Found::default(), Found::default());
        let mut now = Time::from_secs(1);
        for op in ops {
            if let Op::Wait(us) = op {
                let until = now + Span::from_micros(us.min(3_000_000));
                while let Some(due) = eager.poll_timeout().filter(|due| *due <= until) {
                    prop_assert!(due > now, "a deadline is never named twice");
                    now = due;
                    eager.on_timeout(now);
                    found_eager.drain(&mut eager);
                }
                now = until;
            }
            apply(&mut lazy, &mut of_lazy, op, now);
            apply(&mut eager, &mut of_eager, op, now);
            found_lazy.drain(&mut lazy);
            found_eager.drain(&mut eager);
            if !matches!(op, Op::Wait(_)) {
                prop_assert_eq!(lazy.live_burst(), eager.live_burst());
                prop_assert_eq!(lazy.stalls(now), eager.stalls(now));
            }
        }
        lazy.on_timeout(now);
        eager.on_timeout(now);
        found_lazy.drain(&mut lazy);
        found_eager.drain(&mut eager);
        prop_assert_eq!(lazy.state(), eager.state());
        prop_assert_eq!(found_lazy, found_eager);
    }

    #[test]
    fn an_honest_peer_never_looks_like_a_guesser(
        delays_us in (0..300_000u64, 0..300_000u64),
        turns in prop::collection::vec((0..3u8, 0..3_000u64, 0..40_000u64), 1..1500),
    ) {
        // Both ends are ours, over a path that keeps the order: traffic in bursts, either side silent for a while, jitter.
        let mut ends = [wire_peer::seeded(1), wire_peer::seeded(2)];
        let mut queues: [VecDeque<(Time, Stamp)>; 2] = [VecDeque::new(), VecDeque::new()];
        let delays = [delays_us.0, delays_us.1].map(Span::from_micros);
        let mut now = Time::from_secs(1);
        for (who, wait_us, jitter_us) in turns {
            now = now + Span::from_micros(wait_us);
            for to in 0..2 {
                while queues[to].front().is_some_and(|(due, _)| *due <= now) {
                    let Some((_, stamp)) = queues[to].pop_front() else { break };
                    let echo = ends[to].on_ingress(stamp, 1_000, now).echo;
                    prop_assert!(echo != Echo::Unknown, "{echo:?}");
                    let floor = Span::from_micros(delays_us.0 + delays_us.1);
                    prop_assert!(rtt_of(echo).is_none_or(|rtt| rtt >= floor), "{echo:?} over {floor}");
                }
            }
            let senders = if who == 2 { 0..2 } else { usize::from(who)..usize::from(who) + 1 };
            for from in senders {
                let stamp = ends[from].on_egress(Reply::Prompt, now);
                let due = now + delays[from] + Span::from_micros(jitter_us);
                let after_the_last = queues[1 - from].back().map_or(due, |(last, _)| due.max(*last));
                queues[1 - from].push_back((after_the_last, stamp));
            }
        }
        prop_assert!(!ends[0].is_guessing() && !ends[1].is_guessing());
    }

    #[test]
    fn any_clock_is_survived(ops in prop::collection::vec((op(), any::<u64>(), 0..4u8), 1..200)) {
        let (mut c, mut found, mut now) = (connection(), Found::default(), Time::ZERO);
        for (op, jump, kind) in ops {
            now = match kind {
                0 => Time::from_micros(jump),
                1 => Time::from_micros(jump % 100_000_000),
                _ => now + Span::from_micros(jump % 50_000),
            };
            match op {
                Op::Egress(_) => { c.on_egress(Reply::Prompt, now); }
                Op::Echo(_, payload) | Op::Forge(_, payload) => {
                    let send = c.on_egress(Reply::Prompt, now).send;
                    c.on_ingress(Stamp { send: 1, echo: send }, payload, now);
                }
                Op::Open => c.on_transfer_open(now),
                Op::End => c.on_transfer_end(now),
                Op::Pause => c.on_pause(Time::from_micros(jump), now),
                Op::Resume => c.on_resume(now),
                _ => c.on_timeout(now),
            }
            c.poll_timeout();
            c.rtt_quantile(0.5, now);
            found.drain(&mut c);
        }
    }
}
