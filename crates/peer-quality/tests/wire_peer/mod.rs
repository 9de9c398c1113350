//! Connections in a known condition, for the tests of the wire.
#![allow(dead_code)]

use peer_quality::measure::wire::{Burst, Connection, CookieSeed, Event, Options, Reply, Stall, Stamp, State};
use peer_quality::units::Time;

/// Payload of a full SDU on a socket.
pub(crate) const SDU: u32 = 12_288;

pub(crate) fn ms(millis: u64) -> Time {
    Time::from_micros(1_000 * millis)
}

pub(crate) fn us(micros: u64) -> Time {
    Time::from_micros(micros)
}

pub(crate) fn seeded(seed: u8) -> Connection {
    Connection::new(CookieSeed::new([seed; 32]), Options { cookies: true, ..Options::default() }, ms(0))
}

pub(crate) fn connection() -> Connection {
    seeded(7)
}

pub(crate) fn without_cookies() -> Connection {
    Connection::new(CookieSeed::new([7; 32]), Options::default(), ms(0))
}

/// A connection with round trips of `rtt_ms`, past its ramp, with no window open, nothing outstanding and its clock at 10 s.
pub(crate) fn warm(rtt_ms: u64) -> Connection {
    let mut c = connection();
    for nth in 0..5 {
        let sent = c.on_egress(Reply::Prompt, ms(5_000 + nth * 300)).send;
        c.on_ingress(Stamp { send: 1, echo: sent }, 0, ms(5_000 + nth * 300 + rtt_ms));
    }
    for at in (8_000..=9_990).step_by(5) {
        c.on_ingress(Stamp::default(), SDU, ms(at));
    }
    assert_eq!(c.state(), State::Open);
    c.on_transfer_open(ms(9_990));
    c.on_transfer_end(ms(9_990));
    assert_eq!((c.state(), c.outstanding()), (State::Idle, 0));
    while c.poll_event().is_some() {}
    assert_eq!(c.rtt(ms(9_990)).map(|rtt| rtt.samples), Some(5));
    c
}

/// The bursts that are due, added up.
pub(crate) fn burst(c: &mut Connection) -> Option<Burst> {
    match c.poll_event() {
        Some(Event::Burst(burst)) => Some(burst),
        _ => None,
    }
}

/// The stalls that are due.
pub(crate) fn stalls(c: &mut Connection) -> Vec<Stall> {
    let mut stalls = Vec::new();
    while let Some(event) = c.poll_event() {
        if let Event::Stall(stall) = event {
            stalls.push(stall);
        }
    }
    stalls
}
