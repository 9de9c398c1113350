//! Keeps what happens in a run, and asks the policy now and then what it thinks.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Time};

use crate::policy::{Ask, Grant, Opinion, PeerIndex, Policy};
use crate::report::{Ended, How, RunLog, Sent, Viewed};
use crate::sim::{Fact, HISTORY, Observer};

/// Seconds between two rounds of opinions at first; doubled each time [`ROUNDS`] are full, so that a long run is not drowned in them.
const EVERY_S: f64 = 0.25;
const ROUNDS: u32 = 400;

fn seconds(at: Time) -> f64 {
    at.as_micros() as f64 * 1e-6
}

/// Writes facts of the run, not of the history before it, to a log.
pub(super) struct Watcher<'a> {
    origin_s: Rc<Cell<f64>>,
    log: &'a mut RunLog,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(origin_s: Rc<Cell<f64>>, log: &'a mut RunLog) -> Self {
        Watcher { origin_s, log }
    }
}

impl Observer for Watcher<'_> {
    fn starts(&mut self, at: Time) {
        self.origin_s.set(seconds(at));
    }

    fn fact(&mut self, now: Time, fact: &Fact) {
        let at_s = seconds(now) - self.origin_s.get();
        match *fact {
            Fact::Sent { peer, content, .. } if content != HISTORY => self.log.sent.push(Sent { at_s, peer: peer.0 }),
            Fact::Ended { peer, content, delivery, .. } if content != HISTORY => self.log.ended.push(Ended {
                at_s,
                peer: peer.0,
                held_s: delivery.elapsed.as_secs_f64(),
                bytes: delivery.bytes.get(),
                how: match delivery.end {
                    End::Completed => How::Useful,
                    End::Cancelled => How::Dropped,
                    End::Interrupted | End::Failed(_) => How::Failed,
                },
            }),
            _ => {}
        }
    }
}

/// A policy, asked now and then what it thinks of those it dealt with.
pub(super) struct Opinions {
    policy: Box<dyn Policy>,
    asks: bool,
    met: BTreeSet<PeerIndex>,
    viewed: Vec<Viewed>,
    next_s: f64,
    every_s: f64,
    rounds: u32,
}

impl Opinions {
    pub(super) fn new(policy: Box<dyn Policy>, asks: bool) -> Self {
        let (met, viewed) = (BTreeSet::new(), Vec::new());
        Opinions { policy, asks, met, viewed, next_s: 0.0, every_s: EVERY_S, rounds: 0 }
    }

    /// The opinions, by seconds since the run's start; of those before it, the last round.
    pub(super) fn since(self, origin_s: f64) -> Vec<Viewed> {
        let shifted = self.viewed.into_iter().map(|view| Viewed { at_s: view.at_s - origin_s, ..view });
        let (before, mut after): (Vec<Viewed>, Vec<Viewed>) = shifted.partition(|view| view.at_s < 0.0);
        let last = before.last().map_or(0.0, |view| view.at_s);
        let first = before.into_iter().filter(|view| view.at_s == last).map(|view| Viewed { at_s: 0.0, ..view });
        after.splice(0..0, first);
        after
    }

    fn look(&mut self, now: Time) {
        let at_s = seconds(now);
        if !self.asks || at_s < self.next_s {
            return;
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS) {
            self.every_s *= 2.0;
        }
        self.next_s = at_s + self.every_s;
        for peer in &self.met {
            let Opinion { demoted, credited_rate } = self.policy.opinion(*peer, now);
            self.viewed.push(Viewed { at_s, peer: peer.0, demoted, credited_rate });
        }
    }
}

impl Policy for Opinions {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.policy.choose(ask)
    }

    fn sent(&mut self, peer: PeerIndex, range: Bytes, now: Time) {
        if self.asks {
            self.met.insert(peer);
        }
        self.policy.sent(peer, range, now);
    }

    fn ended(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time) {
        self.policy.ended(peer, content, range, delivery, now);
        self.look(now);
    }

    fn connected(&mut self, peer: PeerIndex, up: bool, now: Time) {
        self.policy.connected(peer, up, now);
    }

    fn restart(&mut self) {
        self.policy.restart();
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        self.policy.opinion(peer, now)
    }
}
