//! What the yardstick knows: the simulator's own draws, read ahead of time (LAB-3).
//!
//! Where the fate of a single request is a matter of its own luck, the truth is the expectation: a planner that knows how often a peer fails, not when.

use std::cell::Cell;
use std::rc::Rc;

use peer_quality::units::{Bytes, Time};

use crate::behaviour::conduct;
use crate::model::{Behaviour, Loss};
use crate::policy::PeerIndex;
use crate::policy::truth::{Fate, Truth};
use crate::sim::{Draw, PeerDraw, PeerState, completion_s};

/// What a request that is never answered costs, seconds: the usual time until a range is given up.
const GIVEN_UP_S: f64 = 30.0;
/// A peer that fails more of its requests than this is one that fails.
const MOSTLY: f64 = 0.5;
/// Bytes of a segment.
const SEGMENT: f64 = 1460.0;

/// A drawn world.
pub(super) struct Drawn {
    draw: Draw,
    /// The policies' second at which the run starts, after any history.
    origin_s: Rc<Cell<f64>>,
}

impl Drawn {
    pub(super) fn new(draw: Draw, origin_s: Rc<Cell<f64>>) -> Self {
        Drawn { draw, origin_s }
    }

    fn second(&self, at: Time) -> f64 {
        at.as_micros() as f64 * 1e-6 - self.origin_s.get()
    }

    /// A peer's draw; none for identities that came later, which are whitewashers'.
    fn peer(&self, peer: PeerIndex) -> Option<&PeerDraw> {
        self.draw.peers.get(peer.0 as usize)
    }

    /// Seconds until our own link carries anything again.
    fn outage_s(&self, second: f64) -> f64 {
        let over = self.draw.outages.iter().find(|outage| second >= outage.at_s && second < outage.at_s + outage.for_s);
        over.map_or(0.0, |outage| outage.at_s + outage.for_s - second)
    }
}

/// Bytes per second that losses leave of a link: CUBIC's mean window (RFC 9438 §5.1) over the round trip.
fn after_losses(link: f64, rtt_s: f64, loss: Loss) -> f64 {
    let probability = match loss {
        Loss::None => return link,
        Loss::Random(probability) => probability,
        Loss::GilbertElliott { good, bad, to_bad, to_good } => {
            let in_bad = if to_bad + to_good > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 };
            // Losses of one burst are one event to the window.
            good.max(to_bad.min(good + in_bad * bad))
        }
    };
    if probability <= 0.0 {
        return link;
    }
    let cubic = 1.054 * libm::pow(rtt_s / probability, 0.75);
    let reno = 1.31 / libm::sqrt(probability);
    link.min(cubic.max(reno) * SEGMENT / rtt_s)
}

/// Bytes per second that a peer in this state really delivers.
fn delivers(peer: &PeerDraw, state: &PeerState, second: f64) -> f64 {
    conduct(&state.behaviour).true_rate(after_losses(state.rate, state.rtt_s, peer.loss), second)
}

impl Truth for Drawn {
    fn fate(&self, peer: PeerIndex, _ahead: u32, range: Bytes, at: Time) -> Fate {
        let second = self.second(at);
        let Some(peer) = self.peer(peer) else { return Fate::Fails { after_s: 0.0 } };
        let state = peer.at(second);
        let serve = &peer.serve;
        let serve_s = (serve.hot_ms * (1.0 - serve.cold_share) + serve.cold_ms * serve.cold_share) * 1e-3;
        let rate = delivers(peer, &state, second);
        let bytes = range.as_f64();
        let ramp_s = completion_s(state.rate, state.rtt_s, bytes, None) - bytes / state.rate;
        let first_byte_s = self.outage_s(second) + ramp_s + serve_s;
        // What failures of a share cost until one request succeeds.
        let retried = |share: f64, cost_s: f64| match share < MOSTLY {
            true => Fate::Delivers { first_byte_s: first_byte_s + cost_s * share / (1.0 - share), rate },
            false => Fate::Fails { after_s: cost_s },
        };
        let whole_s = first_byte_s + bytes / rate.max(1.0);
        match state.behaviour {
            Behaviour::Fails { after_ms, share } => retried(share, state.rtt_s + after_ms * 1e-3),
            Behaviour::Lacks { share } => retried(share, first_byte_s),
            Behaviour::Corrupts { share } => retried(share, whole_s),
            Behaviour::Cuts { share } => retried(share, whole_s / 2.0),
            Behaviour::Silent { share } | Behaviour::Withholds { share } if share >= MOSTLY => Fate::Hangs,
            Behaviour::Silent { share } | Behaviour::Withholds { share } => retried(share, GIVEN_UP_S),
            Behaviour::Stalls { share, for_s } => Fate::Delivers { first_byte_s: first_byte_s + share * for_s, rate },
            // It withholds when it matters most.
            Behaviour::Farms { .. } => Fate::Hangs,
            Behaviour::Whitewashes { .. } => Fate::Fails { after_s: state.rtt_s },
            _ if whole_s > GIVEN_UP_S && rate < 1.0 => Fate::Hangs,
            _ => Fate::Delivers { first_byte_s, rate },
        }
    }

    fn capacity(&self, peer: PeerIndex, at: Time) -> f64 {
        let second = self.second(at);
        self.peer(peer).map_or(0.0, |peer| delivers(peer, &peer.at(second), second))
    }

    fn changes_at(&self, peer: PeerIndex, after: Time) -> Option<Time> {
        let second = self.second(after);
        let peer = self.peer(peer)?;
        let change = peer.changes.iter().map(|(at_s, _)| *at_s).find(|at_s| *at_s > second);
        let turn = conduct(&peer.at(second).behaviour).turns_at_s().filter(|at_s| *at_s > second);
        let next = [change, turn].into_iter().flatten().reduce(f64::min)?;
        Some(Time::from_micros(((next + self.origin_s.get()) * 1e6) as u64))
    }

    fn shared(&self, peer: PeerIndex) -> Option<(u32, f64)> {
        let link = self.peer(peer)?.shares?;
        Some((link as u32, *self.draw.shared.get(link)?))
    }

    fn at_once(&self, peer: PeerIndex) -> Option<u32> {
        self.peer(peer)?.refuses_above
    }

    fn downlink(&self) -> Option<f64> {
        self.draw.downlink
    }
}
