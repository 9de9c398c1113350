//! The network: peers, their connections, and the transfers over them (LAB-1).
//!
//! The one idea: bytes are a fluid. Between two events every transfer has a constant rate, so an event is planned only where something changes: a window is spent or
//! acknowledged, a stretch of a reply ends, a packet is lost. A connection is counted up to now before anything about it changes.

mod connection;
mod flow;
mod links;
mod loss;
mod transfer;
mod window;

use std::sync::Arc;

use self::connection::{Connection, Mode, Path, retried_at};
use self::links::Links;
use self::loss::Losses;
pub(crate) use self::transfer::{Order, is_stale};
use self::transfer::{Phase, Transfer, Transfers};
pub(crate) use self::window::INITIAL;
use super::draw::{Draw, PeerDraw};
use super::luck::PeerLuck;
use super::queue::{Event, Micros, Queue, TransferId, micros, seconds};
use super::random::Stream;
use super::wire::Wires;
use crate::behaviour::{Answer, Asked, Conduct, conduct};
use crate::model::World;

/// What reached the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Done {
    pub(crate) place: u32,
    pub(crate) how: How,
}

/// How a transfer ended, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// All bytes are there.
    Whole,
    /// All bytes are there, and wrong.
    Corrupt,
    /// The peer does not have it, or serves too many already.
    Unavailable,
    /// The peer failed.
    Failed,
    /// The connection was cut.
    Cut,
}

/// One peer as it is now.
#[derive(Clone)]
struct Peer {
    rate: f64,
    path: Path,
    draw: Arc<PeerDraw>,
    conduct: Box<dyn Conduct>,
    luck: PeerLuck,
    connection: Connection,
    /// Requests it serves.
    in_service: u32,
    /// Bytes it sent.
    served: f64,
    /// Places of its transfers.
    open: Vec<u32>,
}

/// Everything between the client and the peers, and the peers.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) queue: Queue,
    pub(crate) transfers: Transfers,
    /// Requests that ended with their connection during the present event.
    pub(crate) lost: Vec<TransferId>,
    /// Peers whose connection was cut during the present event.
    pub(crate) cut: Vec<u32>,
    /// Until when the client does not read.
    pub(crate) paused_until: Micros,
    peers: Vec<Peer>,
    links: Links,
    /// Until when nothing arrives.
    out_until: Micros,
    /// Ends of all outages.
    out_ends: Vec<Micros>,
    /// Start of the run.
    origin: Micros,
    changed: Vec<u32>,
    /// Single SDUs, for a client that sees them.
    pub(crate) wires: Option<Wires>,
}

impl Network {
    pub(crate) fn new(world: &World, draw: &Draw, seed: u64, origin: Micros) -> Self {
        let mut queue = Queue::new(draw.peers.len());
        let peers = draw.peers.iter().enumerate().map(|(index, peer)| {
            let name = &world.peers[peer.group].name;
            let stream = |purpose: &str| Stream::new(seed, purpose, name, peer.place.into());
            let at = |second: f64| origin.saturating_add(micros(second));
            queue.plan(at(peer.joins_at_s), Event::Joins { peer: index as u32 });
            for (change, (at_s, _)) in peer.changes.iter().enumerate() {
                queue.plan(at(*at_s), Event::Changes { peer: index as u32, change: change as u32 });
            }
            let conduct = conduct(&peer.start.behaviour);
            if let Some(at_s) = conduct.turns_at_s() {
                queue.plan(at(at_s), Event::Turns { peer: index as u32 });
            }
            Peer {
                rate: peer.start.rate,
                path: Path { rtt_s: peer.start.rtt_s, jitter: peer.jitter, rto_floor_s: world.tcp.rto_floor_ms * 1e-3 },
                draw: Arc::new(peer.clone()),
                conduct,
                luck: PeerLuck::new(seed, name, peer.place),
                connection: Connection::new(Losses::new(peer.loss, stream("loss")), stream("jitter")),
                in_service: 0,
                served: 0.0,
                open: Vec::new(),
            }
        });
        let peers = peers.collect();
        let mut out_ends = Vec::new();
        for (index, outage) in draw.outages.iter().enumerate() {
            let at = |second: f64| origin.saturating_add(micros(second));
            queue.plan(at(outage.at_s), Event::OutageStarts { outage: index as u32 });
            out_ends.push(at(outage.at_s + outage.for_s));
        }
        Network {
            queue,
            transfers: Transfers::default(),
            lost: Vec::new(),
            cut: Vec::new(),
            paused_until: 0,
            peers,
            links: Links::new(&draw.shared, draw.downlink, draw.peers.iter().map(|peer| peer.shares)),
            out_until: 0,
            out_ends,
            origin,
            changed: Vec::new(),
            wires: None,
        }
    }

    /// Virtual seconds since the run's start.
    pub(crate) fn second(&self) -> f64 {
        seconds(self.queue.now().saturating_sub(self.origin))
    }

    /// Rate at which a peer really delivers when nobody else uses its links, bytes per second.
    pub(crate) fn true_rate(&self, slot: u32) -> f64 {
        let peer = &self.peers[slot as usize];
        peer.conduct.true_rate(peer.rate.min(self.links.most(slot)), self.second())
    }

    /// Whether a peer, having just failed, takes a new identity.
    pub(crate) fn sheds_identity(&mut self, peer: u32) -> bool {
        self.peers[peer as usize].conduct.sheds_identity()
    }

    /// When what is sent now reaches a peer.
    pub(crate) fn reaches_at(&mut self, slot: u32) -> Micros {
        let peer = &mut self.peers[slot as usize];
        let way = micros(peer.connection.round_trip_s(&peer.path) / 2.0);
        self.queue.now().max(peer.connection.up_at).saturating_add(way)
    }

    /// Sends a request; also when it reaches its peer.
    pub(crate) fn send(&mut self, order: Order) -> (TransferId, Micros) {
        let id = self.transfers.open(order, self.queue.now());
        self.peers[order.peer as usize].open.push(id.place);
        let reaches_at = self.reaches_at(order.peer);
        self.queue.plan(reaches_at, Event::Arrives(id));
        if let Some(wires) = &mut self.wires {
            wires.open(id.place, order.bytes, reaches_at);
        }
        (id, reaches_at)
    }

    /// Whole bytes that came of a transfer.
    pub(crate) fn arrived(&mut self, place: u32) -> u64 {
        let transfer = self.transfers.at(place);
        let (peer, phase) = (transfer.peer, transfer.phase);
        if phase == Phase::Sending {
            self.count(peer);
        }
        self.transfers.at(place).got as u64
    }

    /// Whether a peer has requests of ours.
    pub(crate) fn is_asked(&self, slot: u32) -> bool {
        !self.peers[slot as usize].open.is_empty()
    }

    /// Brings what is seen on the wires up to now: of one peer, or of all.
    pub(crate) fn look(&mut self, slot: Option<u32>) {
        let Some(wires) = &self.wires else { return };
        if let Some(slot) = slot {
            self.count(slot);
            return;
        }
        let is_busy = |slot: &u32| !self.peers[*slot as usize].open.is_empty() || wires.has_unread(*slot);
        let busy: Vec<u32> = (0..self.peers.len() as u32).filter(is_busy).collect();
        busy.into_iter().for_each(|slot| self.count(slot));
    }

    /// Ends a transfer on the client's side and says what it was.
    pub(crate) fn close(&mut self, place: u32) -> Transfer {
        let transfer = self.transfers.at(place).clone();
        if transfer.phase == Phase::Sending {
            self.count(transfer.peer);
            self.peers[transfer.peer as usize].connection.sending.retain(|other| *other != place);
            self.settle(transfer.peer);
        }
        let transfer = self.transfers.at(place).clone();
        let peer = &mut self.peers[transfer.peer as usize];
        peer.in_service -= u32::from(transfer.served);
        peer.open.retain(|other| *other != place);
        self.transfers.close(place);
        transfer
    }

    /// Requests under way.
    pub(crate) fn open(&self) -> usize {
        self.peers.iter().map(|peer| peer.open.len()).sum()
    }

    /// Takes one event that is the network's.
    pub(crate) fn handle(&mut self, event: Event) {
        match event {
            Event::Tick { peer } => self.tick(peer),
            Event::Arrives(id) => self.arrives(id),
            Event::Ready(id) => self.ready(id),
            Event::Changes { peer, change } => self.changes(peer, change),
            Event::Turns { peer } => self.turns(peer),
            Event::OutageStarts { outage } => self.outage(outage),
            _ => {}
        }
    }

    fn arrives(&mut self, id: TransferId) {
        let now = self.queue.now();
        let transfer = self.transfers.at(id.place);
        let peer = &mut self.peers[transfer.peer as usize];
        if now < self.out_until {
            self.queue.plan(retried_at(now, self.out_until, &peer.path), Event::Arrives(id));
            return;
        }
        let back = micros(peer.connection.round_trip_s(&peer.path) / 2.0);
        if peer.draw.refuses_above.is_some_and(|most| peer.in_service >= most) {
            transfer.answer = Answer::Lacks;
            self.queue.plan(now.saturating_add(back), Event::Refused(id));
            return;
        }
        transfer.served = true;
        peer.in_service += 1;
        let asked = Asked {
            content: transfer.job.into(),
            bytes: transfer.bytes,
            at_s: seconds(now.saturating_sub(self.origin)),
        };
        let luck = peer.luck.of(asked.content, transfer.nth);
        transfer.answer = peer.conduct.answer(&asked, luck);
        match transfer.answer {
            Answer::Silent => {}
            Answer::Lacks => self.queue.plan(now.saturating_add(back), Event::Refused(id)),
            Answer::Fails { after_s } => {
                self.queue.plan(now.saturating_add(micros(after_s)).saturating_add(back), Event::Refused(id));
            }
            Answer::Serves | Answer::Corrupts | Answer::Stalls { .. } | Answer::Cuts => {
                let serve = micros(luck.serve_s(&peer.draw.serve));
                self.queue.plan(now.saturating_add(serve).saturating_add(back), Event::Ready(id));
            }
        }
    }

    /// A reply without data reaches the client; none while nothing arrives.
    pub(crate) fn refused(&mut self, id: TransferId) -> Option<How> {
        let now = self.queue.now();
        let transfer = self.transfers.at(id.place);
        if now < self.out_until {
            let path = &self.peers[transfer.peer as usize].path;
            self.queue.plan(retried_at(now, self.out_until, path), Event::Refused(id));
            return None;
        }
        Some(if matches!(transfer.answer, Answer::Fails { .. }) { How::Failed } else { How::Unavailable })
    }

    fn changes(&mut self, slot: u32, change: u32) {
        self.count(slot);
        let peer = &mut self.peers[slot as usize];
        let (_, state) = peer.draw.changes[change as usize];
        peer.rate = state.rate;
        peer.path.rtt_s = state.rtt_s;
        let before = change.checked_sub(1).map_or(peer.draw.start, |before| peer.draw.changes[before as usize].1);
        if state.behaviour != before.behaviour {
            peer.conduct = conduct(&state.behaviour);
            if let Some(at_s) = peer.conduct.turns_at_s() {
                let at = self.origin.saturating_add(micros(at_s));
                self.queue.plan(at, Event::Turns { peer: slot });
            }
        }
        self.reconsider(slot);
    }

    fn turns(&mut self, slot: u32) {
        self.count(slot);
        self.reconsider(slot);
    }

    fn outage(&mut self, outage: u32) {
        let now = self.queue.now();
        self.out_until = self.out_ends[outage as usize];
        for slot in 0..self.peers.len() as u32 {
            self.count(slot);
            let peer = &mut self.peers[slot as usize];
            if peer.connection.mode != Mode::Idle {
                peer.connection.outage(now, self.out_until, &peer.path);
                self.settle(slot);
            }
        }
    }
}
