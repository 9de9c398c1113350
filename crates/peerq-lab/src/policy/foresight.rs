//! The truth of a simulated run, from the same draws that the simulator runs on.
//!
//! What the seed draws of a world is known as it is; what a peer's luck and serve time will be is known by drawing the same named streams a little ahead. What remains
//! unknown is where packets are lost and what jitter does: a lossy connection is planned at its average rate.

use std::collections::VecDeque;

use peer_quality::measure::Delivery;
use peer_quality::units::{Span, Time};

use super::PeerIndex;
use super::truth::{Fate, Ramp, Request, Truth};
use crate::behaviour::conduct;
use crate::model::{Behaviour, Loss, Workload, World};
use crate::sim::{Draw, HISTORY, Impossible, PeerState, Stream, draw};

/// Bytes of a segment, and of the first window: as the simulator has them.
const SEGMENT: f64 = 1460.0;
const INITIAL_WINDOW: f64 = 10.0 * SEGMENT;
/// A connection that was idle for this many round trips starts slowly again; the simulator's timer is a little over one.
const IDLE_ROUND_TRIPS: f64 = 1.2;

/// A peer's luck, drawn ahead.
#[derive(Clone, Debug)]
struct Luck {
    behaviour: Stream,
    units: VecDeque<f64>,
    serve: Stream,
    serve_s: VecDeque<f64>,
    /// Requests served since it began to farm, and the content that it withholds.
    farmed: (u32, Option<u64>),
    sent_bytes: f64,
    last_active: Option<Time>,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Foresight {
    draw: Draw,
    luck: Vec<Luck>,
    timeout_s: f64,
    rto_floor_s: f64,
    /// The run's start.
    origin: Time,
}

impl Foresight {
    /// The truth of the run of `workload` in `world` under `seed`.
    ///
    /// # Errors
    /// [`Impossible`] names the field that no world can have.
    pub fn new(world: &World, workload: &Workload, seed: u64) -> Result<Self, Impossible> {
        let draw = draw(world, seed)?;
        let luck = draw.peers.iter().map(|peer| {
            let stream = |purpose| Stream::new(seed, purpose, &world.peers[peer.group].name, peer.place.into());
            Luck {
                behaviour: stream("behaviour"),
                units: VecDeque::new(),
                serve: stream("serve"),
                serve_s: VecDeque::new(),
                farmed: (0, None),
                sent_bytes: 0.0,
                last_active: None,
            }
        });
        let luck = luck.collect();
        let timeout_s = match *workload {
            Workload::Downloads { range_timeout_s, .. } | Workload::Requests { range_timeout_s, .. } => range_timeout_s,
            Workload::Closures { deadline_s, .. } => deadline_s,
        };
        let rto_floor_s = world.tcp.rto_floor_ms * 1e-3;
        Ok(Foresight { draw, luck, timeout_s, rto_floor_s, origin: Time::ZERO })
    }

    fn second(&self, at: Time) -> f64 {
        at.since(self.origin).as_secs_f64()
    }

    fn state(&self, peer: PeerIndex, at: Time) -> Option<PeerState> {
        self.draw.peers.get(peer.0 as usize).map(|drawn| drawn.at(self.second(at)))
    }

    /// Whether the request after `ahead` others meets what happens to `share` of them.
    fn happens(&mut self, peer: PeerIndex, ahead: u32, share: f64) -> bool {
        if share >= 1.0 || share <= 0.0 {
            return share >= 1.0;
        }
        let luck = &mut self.luck[peer.0 as usize];
        while luck.units.len() <= ahead as usize {
            let unit = luck.behaviour.unit();
            luck.units.push_back(unit);
        }
        luck.units[ahead as usize] < share
    }

    fn serve_s(&mut self, peer: PeerIndex, ahead: u32) -> f64 {
        let serve = self.draw.peers[peer.0 as usize].serve;
        let luck = &mut self.luck[peer.0 as usize];
        while luck.serve_s.len() <= ahead as usize {
            let cold = luck.serve.happens(serve.cold_share);
            let ms = if cold { luck.serve.exponential(serve.cold_ms) } else { serve.hot_ms };
            luck.serve_s.push_back(ms * 1e-3);
        }
        luck.serve_s[ahead as usize]
    }

    /// Bytes per second of one reply alone.
    fn alone(&self, request: &Request, state: &PeerState) -> f64 {
        let link = self.capacity(request.peer, request.at);
        match state.behaviour {
            Behaviour::Dribbles { after_bytes, rate } => {
                let sent = self.luck[request.peer.0 as usize].sent_bytes;
                let then = sent + request.range.as_f64() * f64::from(request.ahead + 1);
                if then > after_bytes as f64 { rate.min(link) } else { link }
            }
            Behaviour::Paces { burst_bytes, gap_ms } => {
                let bursts = (request.range.as_f64() / (burst_bytes as f64).max(1.0)).ceil().max(1.0);
                let body_s = request.range.as_f64() / link + (bursts - 1.0) * gap_ms * 1e-3;
                request.range.as_f64() / body_s
            }
            Behaviour::Pads { above_bytes, factor } if request.range.get() > above_bytes => link * factor,
            Behaviour::Flashes { at_s, rate } if self.second(request.at) >= at_s => rate.min(link),
            _ => link,
        }
    }

    /// Seconds after which the request ends without use, beyond the way there and back; none if it is served.
    fn mishap_s(&mut self, request: &Request, behaviour: Behaviour, body_s: f64) -> Option<f64> {
        let ahead = request.ahead;
        let mut meets = |share| self.happens(request.peer, ahead, share);
        match behaviour {
            Behaviour::Fails { after_ms, share } => meets(share).then_some(after_ms * 1e-3),
            Behaviour::Lacks { share } => meets(share).then_some(0.0),
            Behaviour::Silent { share } => meets(share).then_some(f64::INFINITY),
            Behaviour::Corrupts { share } => meets(share).then_some(body_s),
            Behaviour::Cuts { share } => meets(share).then_some(body_s / 2.0),
            Behaviour::Whitewashes { .. } => Some(0.0),
            Behaviour::Withholds { share } => {
                let suppressed = Stream::new(0, "suppressed", "content", request.content).happens(share);
                suppressed.then_some(f64::INFINITY)
            }
            Behaviour::Farms { good } => {
                let (served, withheld) = self.luck[request.peer.0 as usize].farmed;
                let withholds = match withheld {
                    Some(content) => content == request.content || good <= ahead,
                    None => served.saturating_add(ahead) >= good,
                };
                withholds.then_some(f64::INFINITY)
            }
            _ => None,
        }
    }
}

/// Bytes per second that losses leave of a link: the average window of CUBIC or, where larger, of Reno (RFC 9438, sections 5.1 and 4.3), per round trip.
fn lossy(rate: f64, rtt_s: f64, loss: Loss) -> f64 {
    let events = match loss {
        Loss::None => 0.0,
        Loss::Random(share) => share,
        // A burst of losses is one event for the window.
        Loss::GilbertElliott { good, to_bad, .. } => good + to_bad,
    };
    if events <= 0.0 || rtt_s <= 0.0 {
        return rate;
    }
    let cubic = 1.054 * libm::pow(rtt_s / events, 0.75);
    let reno = 1.225 / events.sqrt();
    rate.min(cubic.max(reno) * SEGMENT / rtt_s)
}

impl Truth for Foresight {
    fn fate(&mut self, request: &Request) -> Fate {
        let Some(state) = self.state(request.peer, request.at) else {
            // An identity that a whitewasher took later.
            return Fate::Fails { after_s: 0.0 };
        };
        let rate = self.alone(request, &state);
        let mut first_byte_s = state.rtt_s + self.serve_s(request.peer, request.ahead);
        let body_s = request.range.as_f64() / rate;
        if let Some(mishap_s) = self.mishap_s(request, state.behaviour, body_s) {
            return Fate::Fails { after_s: (state.rtt_s + mishap_s).min(self.timeout_s) };
        }
        if let Behaviour::Stalls { share, for_s } = state.behaviour
            && self.happens(request.peer, request.ahead, share)
        {
            first_byte_s += for_s;
        }
        if first_byte_s + body_s > self.timeout_s {
            return Fate::Fails { after_s: self.timeout_s };
        }
        Fate::Delivers { first_byte_s, rate }
    }

    fn is_fickle(&self, peer: PeerIndex, at: Time) -> bool {
        let (Some(state), Some(drawn)) = (self.state(peer, at), self.draw.peers.get(peer.0 as usize)) else {
            return false;
        };
        let cold = drawn.serve.cold_share > 0.0 && drawn.serve.cold_ms > 0.0;
        cold || !matches!(
            state.behaviour,
            Behaviour::Honest
                | Behaviour::Paces { .. }
                | Behaviour::Pads { .. }
                | Behaviour::Boasts
                | Behaviour::Whitewashes { .. }
                | Behaviour::Withholds { .. }
                | Behaviour::Flashes { .. }
        )
    }

    fn capacity(&self, peer: PeerIndex, at: Time) -> f64 {
        let Some(state) = self.state(peer, at) else { return 0.0 };
        let link = lossy(state.rate, state.rtt_s, self.draw.peers[peer.0 as usize].loss);
        match state.behaviour {
            Behaviour::Flashes { at_s, rate } if self.second(at) >= at_s => link.min(rate),
            _ => link,
        }
    }

    fn changes_at(&self, peer: PeerIndex, after: Time) -> Option<Time> {
        let drawn = self.draw.peers.get(peer.0 as usize)?;
        let now_s = self.second(after);
        let turns = conduct(&drawn.at(now_s).behaviour).turns_at_s();
        let changes = drawn.changes.iter().map(|(at_s, _)| *at_s).chain(turns);
        let next_s = changes.filter(|at_s| *at_s > now_s).fold(f64::INFINITY, f64::min);
        // A float cast saturates.
        next_s.is_finite().then(|| self.origin + Span::from_micros((next_s * 1e6).ceil() as u64))
    }

    fn ramp(&self, peer: PeerIndex, at: Time) -> Option<Ramp> {
        let state = self.state(peer, at)?;
        let idle_s = (IDLE_ROUND_TRIPS * state.rtt_s).max(self.rto_floor_s);
        let last = self.luck[peer.0 as usize].last_active;
        let warm = last.is_some_and(|last| at.since(last).as_secs_f64() < idle_s);
        (!warm && state.rtt_s > 0.0).then_some(Ramp { window: INITIAL_WINDOW, round_s: state.rtt_s })
    }

    fn shared(&self, peer: PeerIndex) -> Option<(u32, f64)> {
        let link = self.draw.peers.get(peer.0 as usize)?.shares?;
        Some((link as u32, self.draw.shared[link]))
    }

    fn at_once(&self, peer: PeerIndex) -> Option<u32> {
        self.draw.peers.get(peer.0 as usize)?.refuses_above
    }

    fn patience_s(&self) -> f64 {
        self.timeout_s
    }

    fn downlink(&self) -> Option<f64> {
        self.draw.downlink
    }

    fn sent(&mut self, request: &Request) {
        let Some(state) = self.state(request.peer, request.at) else { return };
        let served = matches!(self.fate(request), Fate::Delivers { .. });
        let luck = &mut self.luck[request.peer.0 as usize];
        luck.serve_s.pop_front();
        luck.sent_bytes += request.range.as_f64();
        match state.behaviour {
            Behaviour::Fails { share, .. }
            | Behaviour::Lacks { share }
            | Behaviour::Silent { share }
            | Behaviour::Corrupts { share }
            | Behaviour::Cuts { share }
            | Behaviour::Stalls { share, .. }
                if share > 0.0 && share < 1.0 =>
            {
                luck.units.pop_front();
            }
            Behaviour::Farms { .. } if served => {
                if luck.farmed.1.is_some() {
                    luck.farmed = (0, None);
                }
                luck.farmed.0 += 1;
            }
            Behaviour::Farms { .. } => luck.farmed.1 = Some(request.content),
            _ => {}
        }
    }

    fn ended(&mut self, peer: PeerIndex, content: u64, _delivery: &Delivery, now: Time) {
        if content == HISTORY {
            // The run starts at the first whole second that is one later than all history, as the simulator has it.
            let origin = now.as_micros().div_ceil(1_000_000).saturating_add(1);
            self.origin = self.origin.max(Time::from_secs(origin));
        } else if let Some(luck) = self.luck.get_mut(peer.0 as usize) {
            luck.last_active = Some(now);
        }
    }
}

#[cfg(test)]
#[path = "foresight_tests.rs"]
mod tests;
