//! The truth of a simulated run, from the same draws that the simulator runs on.
//!
//! What the seed draws of a world is known as it is; the luck of every request is looked up by its key ([`PeerLuck`]). What remains unknown is where packets are lost and what
//! jitter does: a lossy connection is planned at its average rate.

use std::collections::BTreeMap;
use std::sync::Arc;

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Span, Time};

use super::PeerIndex;
use super::truth::{Fate, Ramp, Request, Truth};
use crate::behaviour::conduct;
use crate::model::{Behaviour, Loss, Workload, World};
use crate::sim::{Draw, HISTORY, Impossible, Luck, PeerDraw, PeerLuck, PeerState, Stream, draw};

/// Bytes of a segment, and of the first window: as the simulator has them.
const SEGMENT: f64 = 1460.0;
const INITIAL_WINDOW: f64 = 10.0 * SEGMENT;
/// A connection that was idle for this many round trips starts slowly again; the simulator's timer is a little over one.
const IDLE_ROUND_TRIPS: f64 = 1.2;

/// What a peer's future depends on.
#[derive(Clone, Debug)]
struct Past {
    luck: PeerLuck,
    /// Requests served since it began to farm, and the content that it withholds.
    farmed: (u32, Option<u64>),
    sent_bytes: f64,
    last_active: Option<Time>,
}

/// What was asked for a content that is not complete yet.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// Requests to each peer.
    of: BTreeMap<PeerIndex, u32>,
    delivered: u64,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Foresight {
    draw: Arc<Draw>,
    pasts: Vec<Past>,
    /// By content; a complete one is forgotten, so there are as many as the client fetches at once, and those it gave up.
    asked: BTreeMap<u64, Asked>,
    /// Ranges of a content.
    ranges: u64,
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
        let draw = Arc::new(draw(world, seed)?);
        let past = |peer: &PeerDraw| Past {
            luck: PeerLuck::new(seed, &world.peers[peer.group].name, peer.place),
            farmed: (0, None),
            sent_bytes: 0.0,
            last_active: None,
        };
        let pasts = draw.peers.iter().map(past).collect();
        let (ranges, timeout_s) = match *workload {
            Workload::Downloads { ranges, range_timeout_s, .. } => (ranges.into(), range_timeout_s),
            Workload::Requests { range_timeout_s, .. } => (1, range_timeout_s),
            Workload::Closures { closure_bytes, chunk_bytes, deadline_s, .. } => {
                (closure_bytes.div_ceil(chunk_bytes.max(1)), deadline_s)
            }
        };
        let rto_floor_s = world.tcp.rto_floor_ms * 1e-3;
        Ok(Foresight { draw, pasts, asked: BTreeMap::new(), ranges, timeout_s, rto_floor_s, origin: Time::ZERO })
    }

    /// Ranges of a content.
    pub(crate) fn ranges(&self) -> u32 {
        self.ranges.try_into().unwrap_or(u32::MAX)
    }

    fn second(&self, at: Time) -> f64 {
        at.since(self.origin).as_secs_f64()
    }

    fn state(&self, peer: PeerIndex, at: Time) -> Option<PeerState> {
        self.draw.peers.get(peer.0 as usize).map(|drawn| drawn.at(self.second(at)))
    }

    fn luck(&self, request: &Request) -> Luck {
        let asked = self.asked.get(&request.content).and_then(|asked| asked.of.get(&request.peer));
        let nth = asked.copied().unwrap_or(0).saturating_add(request.ahead);
        self.pasts[request.peer.0 as usize].luck.of(request.content, nth)
    }

    /// Bytes per second of one reply alone.
    fn alone(&self, request: &Request, state: &PeerState) -> f64 {
        let link = self.capacity(request.peer, request.at);
        match state.behaviour {
            Behaviour::Dribbles { after_bytes, rate } => {
                let sent = self.pasts[request.peer.0 as usize].sent_bytes;
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
    fn mishap_s(&self, request: &Request, behaviour: Behaviour, body_s: f64) -> Option<f64> {
        let ahead = request.ahead;
        let meets = |share| self.luck(request).befalls(share);
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
                let (served, withheld) = self.pasts[request.peer.0 as usize].farmed;
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
    fn fate(&self, request: &Request) -> Fate {
        let Some(state) = self.state(request.peer, request.at) else {
            // An identity that a whitewasher took later.
            return Fate::Fails { after_s: 0.0 };
        };
        let rate = self.alone(request, &state);
        let serve = &self.draw.peers[request.peer.0 as usize].serve;
        let mut first_byte_s = state.rtt_s + self.luck(request).serve_s(serve);
        let body_s = request.range.as_f64() / rate;
        if let Some(mishap_s) = self.mishap_s(request, state.behaviour, body_s) {
            return Fate::Fails { after_s: (state.rtt_s + mishap_s).min(self.timeout_s) };
        }
        if let Behaviour::Stalls { share, for_s } = state.behaviour
            && self.luck(request).befalls(share)
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
        let last = self.pasts[peer.0 as usize].last_active;
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
        *self.asked.entry(request.content).or_default().of.entry(request.peer).or_default() += 1;
        let past = &mut self.pasts[request.peer.0 as usize];
        past.sent_bytes += request.range.as_f64();
        match state.behaviour {
            Behaviour::Farms { .. } if served => {
                if past.farmed.1.is_some() {
                    past.farmed = (0, None);
                }
                past.farmed.0 += 1;
            }
            Behaviour::Farms { .. } => past.farmed.1 = Some(request.content),
            _ => {}
        }
    }

    fn ended(&mut self, peer: PeerIndex, content: u64, delivery: &Delivery, now: Time) {
        if content == HISTORY {
            // The run starts at the first whole second that is one later than all history, as the simulator has it.
            let origin = now.as_micros().div_ceil(1_000_000).saturating_add(1);
            self.origin = self.origin.max(Time::from_secs(origin));
            return;
        }
        if let Some(past) = self.pasts.get_mut(peer.0 as usize) {
            past.last_active = Some(now);
        }
        if let (End::Completed, Some(asked)) = (delivery.end, self.asked.get_mut(&content)) {
            asked.delivered += 1;
            if asked.delivered == self.ranges {
                self.asked.remove(&content);
            }
        }
    }
}

#[cfg(test)]
#[path = "foresight_tests.rs"]
mod tests;
