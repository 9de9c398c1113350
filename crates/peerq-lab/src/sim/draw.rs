//! What the seed draws of a world: the truth that a clairvoyant knows (LAB-3).
//!
//! # How to predict from it
//! A peer's state at a virtual second is [`PeerDraw::at`]; the virtual second 0 is the run's start, after any history. One reply of `bytes` over an idle connection
//! takes [`completion_s`] without loss, jitter and other traffic; [`PeerState::true_rate`] says what the behaviour leaves of the link's rate over many requests, and
//! [`Draw::shared`] and [`Draw::downlink`] bound what several peers deliver together.
//!
//! The fate of a single request (shares, cold serves) is [`PeerLuck`](super::PeerLuck)'s. Not drawn ahead, because they depend on what is asked: where packets are lost,
//! jitter, and our own random pauses; the draw says how likely they are.

use std::collections::BTreeMap;

use super::check::{Impossible, check_world};
use super::network::INITIAL;
use super::random::Stream;
use crate::behaviour::conduct;
use crate::model::{Behaviour, History, Loss, Outage, Range, Serve, World};

/// A world with everything drawn that does not depend on what is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// The peers, by their index; identities that whitewashers take later follow in order of their appearance.
    pub peers: Vec<PeerDraw>,
    /// The client's downlink, bytes per second; unlimited where absent.
    pub downlink: Option<f64>,
    /// Rates of the shared links, bytes per second.
    pub shared: Vec<f64>,
    /// Times in which nothing arrives.
    pub outages: Vec<Outage>,
}

/// One peer's truth.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerDraw {
    /// Its group, an index into [`World::peers`].
    pub group: usize,
    /// Its place in the group.
    pub place: u32,
    /// Its address group; equal numbers are one group.
    pub address_group: u32,
    /// Whether a relay carries its bytes.
    pub relayed: bool,
    /// Its state when it joins.
    pub start: PeerState,
    /// Round trip that the handshake shows, seconds.
    pub handshake_rtt_s: f64,
    /// Sigma of the round trip's log-normal factor.
    pub jitter: f64,
    /// Packet loss.
    pub loss: Loss,
    /// Serve time.
    pub serve: Serve,
    /// Shared link that its bytes pass, an index into [`Draw::shared`].
    pub shares: Option<usize>,
    /// Requests it serves at once.
    pub refuses_above: Option<u32>,
    /// What policies were told of it before the run.
    pub history: Option<History>,
    /// When it appears, seconds.
    pub joins_at_s: f64,
    /// Its states after its start, with the second from which each holds, in order of time.
    pub changes: Vec<(f64, PeerState)>,
}

/// What may change of a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeerState {
    /// Uplink, bytes per second.
    pub rate: f64,
    /// Round trip without jitter, seconds.
    pub rtt_s: f64,
    /// What it does.
    pub behaviour: Behaviour,
}

impl PeerState {
    /// Bytes per second at which it really delivers over its own link, over many requests.
    pub fn true_rate(&self, second: f64) -> f64 {
        conduct(&self.behaviour).true_rate(self.rate, second)
    }
}

impl PeerDraw {
    /// Its state at a virtual second.
    pub fn at(&self, second: f64) -> PeerState {
        self.changes.iter().take_while(|(at_s, _)| *at_s <= second).last().map_or(self.start, |(_, state)| *state)
    }
}

/// Draws a world.
///
/// # Errors
/// [`Impossible`] names the field that no world can have.
pub fn draw(world: &World, seed: u64) -> Result<Draw, Impossible> {
    check_world(world)?;
    let mut address_groups: BTreeMap<&str, u32> = BTreeMap::new();
    let mut peers = Vec::new();
    let mut next_group = 0u32;
    for (index, group) in world.peers.iter().enumerate() {
        for place in 0..group.count {
            let stream = |purpose: &str| Stream::new(seed, purpose, &group.name, place.into());
            let mut link = stream("link");
            let start = PeerState {
                rate: log_between(&mut link, group.rate),
                rtt_s: log_between(&mut link, group.rtt_ms) * 1e-3,
                behaviour: group.behaviour,
            };
            let mut changing = stream("changes");
            let mut state = start;
            let changes = group.changes.iter().map(|change| {
                if let Some(rate) = change.rate {
                    state.rate = log_between(&mut changing, rate);
                }
                if let Some(rtt_ms) = change.rtt_ms {
                    state.rtt_s = log_between(&mut changing, rtt_ms) * 1e-3;
                }
                if let Some(behaviour) = change.behaviour {
                    state.behaviour = behaviour;
                }
                (change.at_s, state)
            });
            let changes = changes.collect();
            let mut fresh = || {
                next_group += 1;
                next_group - 1
            };
            let address_group = match &group.address_group {
                Some(name) => *address_groups.entry(name).or_insert_with(fresh),
                None => fresh(),
            };
            peers.push(PeerDraw {
                group: index,
                place,
                address_group,
                relayed: group.relayed,
                start,
                handshake_rtt_s: start.rtt_s * stream("handshake").log_normal(group.jitter),
                jitter: group.jitter,
                loss: group.loss,
                serve: group.serve,
                shares: group.shares.as_ref().and_then(|name| world.shared.iter().position(|link| link.name == *name)),
                refuses_above: group.refuses_above,
                history: group.history,
                joins_at_s: group.joins_at_s,
                changes,
            });
        }
    }
    Ok(Draw {
        peers,
        downlink: world.client.downlink,
        shared: world.shared.iter().map(|link| link.rate).collect(),
        outages: world.client.outages.clone(),
    })
}

fn log_between(stream: &mut Stream, range: Range) -> f64 {
    let (low, high) = range.bounds();
    stream.between_log(low, high)
}

/// Seconds from sending a request to the last byte of its reply: slow start from the initial window (or from `window` bytes, if the connection is warm), one
/// window per round trip, until the link of `rate` bytes per second is full.
pub fn completion_s(rate: f64, rtt_s: f64, bytes: f64, window: Option<f64>) -> f64 {
    let (mut left, mut size, mut at_s) = (bytes, window.unwrap_or(INITIAL), rtt_s);
    while left > size && size < rate * rtt_s {
        left -= size;
        at_s += rtt_s;
        size *= 2.0;
    }
    at_s + left / rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PeerGroup;

    fn world(text: &[(&str, u32)]) -> World {
        let group = |name: &str, count| PeerGroup {
            rate: Range::Between([1e6, 1e8]),
            rtt_ms: Range::Between([10.0, 300.0]),
            jitter: 0.2,
            ..PeerGroup::honest(name, count, 0.0, 0.0)
        };
        World { peers: text.iter().map(|(name, count)| group(name, *count)).collect(), ..World::default() }
    }

    #[test]
    fn a_peers_draw_does_not_depend_on_the_others() {
        let alone = draw(&world(&[("b", 2)]), 5).unwrap();
        let among = draw(&world(&[("a", 7), ("b", 4)]), 5).unwrap();
        for (one, other) in alone.peers.iter().zip(&among.peers[7..]) {
            assert_eq!((one.start, one.handshake_rtt_s), (other.start, other.handshake_rtt_s));
        }
        assert_ne!(draw(&world(&[("b", 2)]), 6).unwrap().peers[0].start, alone.peers[0].start);
        assert!(alone.peers.iter().all(|peer| (1e6..=1e8).contains(&peer.start.rate)));
    }

    #[test]
    fn completion_is_the_sum_of_the_rounds() {
        // networks.md 6.2: 64 KB 3 rounds, 512 kB 6, 2 MB 8, 12 MB 10.
        for (bytes, rounds) in [(64e3, 3.0), (512e3, 6.0), (2e6, 8.0), (12e6, 10.0)] {
            assert!((completion_s(1e12, 0.268, bytes, None) - 0.268 * rounds).abs() < 1e-3, "{bytes}");
        }
    }
}
