//! Measurement split by protocol: rate and echoes together, or not at all (MEAS-7).
//!
//! A rate per protocol beside echoes per connection is a hole: a peer delivers one protocol in fast, short bursts, goes silent there, and keeps its echoes fresh on
//! another. Here a split is one whole [`Connection`] per protocol, each with cookies of its own, so no type exists in which the two
//! differ in grain. Both ends have to echo per protocol.

use alloc::vec::Vec;

use super::connection::{Connection, Options};
use super::cookie::CookieSeed;
use super::header::Protocol;
use crate::units::Time;

/// The most protocols measured apart, in the order in which they were first used.
/// More cost memory at a peer's will, who chooses the protocol numbers it writes; fewer leave a protocol unmeasured.
pub const PROTOCOLS_MAX: usize = 8;

/// One measurement for each protocol of a connection.
#[derive(Debug)]
pub struct PerProtocol {
    seed: CookieSeed,
    options: Options,
    lanes: Vec<(u16, Connection)>,
}

impl PerProtocol {
    /// Nothing is measured yet.
    pub fn new(seed: CookieSeed, options: Options) -> Self {
        PerProtocol { seed, options, lanes: Vec::new() }
    }

    /// The measurement of one protocol, both directions together; begun at `now` where it is new. None beyond [`PROTOCOLS_MAX`]: write zero cookies there.
    pub fn lane(&mut self, protocol: Protocol, now: Time) -> Option<&mut Connection> {
        let id = protocol.id();
        let at = match self.lanes.iter().position(|(known, _)| *known == id) {
            Some(at) => at,
            None if self.lanes.len() == PROTOCOLS_MAX => return None,
            None => {
                self.lanes.push((id, Connection::new(self.seed.series(id), self.options, now)));
                self.lanes.len() - 1
            }
        };
        Some(&mut self.lanes[at].1)
    }

    /// Every lane with its protocol id, in order of first use.
    pub fn lanes(&mut self) -> impl Iterator<Item = (u16, &mut Connection)> {
        self.lanes.iter_mut().map(|(id, connection)| (*id, connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::wire::{Echo, Reply, Stamp};

    #[test]
    fn an_echo_on_one_protocol_pays_for_no_other() {
        let options = Options { cookies: true, ..Options::default() };
        let mut split = PerProtocol::new(CookieSeed::new([1; 32]), options);
        let (fetch, alive) = (Protocol::new(19, false), Protocol::new(8, false));
        let sent = split.lane(fetch, Time::ZERO).unwrap().on_egress(Reply::Prompt, Time::ZERO);
        let stamp = Stamp { send: 1, echo: sent.send };
        let at = Time::from_micros(50_000);
        let elsewhere = split.lane(alive, at).unwrap().on_ingress(stamp, 100, at);
        assert_eq!(elsewhere.echo, Echo::Unknown);
        let answer = split.lane(Protocol::new(19, true), at).unwrap().on_ingress(stamp, 100, at);
        assert!(matches!(answer.echo, Echo::Matched(_)), "both directions are one lane");
    }

    #[test]
    fn a_peer_cannot_open_lanes_without_bound() {
        let mut split = PerProtocol::new(CookieSeed::new([1; 32]), Options::default());
        let opened = (0..100).filter(|id| split.lane(Protocol::new(*id, true), Time::ZERO).is_some()).count();
        assert_eq!((opened, split.lanes().count()), (PROTOCOLS_MAX, PROTOCOLS_MAX));
    }
}
