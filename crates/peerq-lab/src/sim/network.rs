//! The network: peers, their connections, and the transfers over them (LAB-1).
//!
//! The one idea: bytes are a fluid. Between two events every transfer has a constant rate, so an event is planned only where something changes: a window is spent or
//! acknowledged, a stretch of a reply ends, a packet is lost. A connection is counted up to now before anything about it changes.

use super::connection::{Connection, Mode, Path, retried_at};
use super::draw::{Draw, PeerDraw};
use super::links::Links;
use super::loss::Losses;
use super::queue::{Event, Micros, Queue, TransferId, micros, seconds};
use super::random::Stream;
use super::transfer::{Order, Phase, Transfer, Transfers};
use crate::behaviour::{Answer, Asked, Conduct, Progress, Segment, conduct};
use crate::model::World;

/// Rounding slack of byte counts.
const SLACK: f64 = 1e-3;
/// Round trips to be up again after a cut: TCP's and TLS's handshakes.
const RECONNECT_ROUND_TRIPS: f64 = 2.0;

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
struct Peer {
    rate: f64,
    path: Path,
    draw: PeerDraw,
    conduct: Box<dyn Conduct>,
    luck: Stream,
    serving: Stream,
    connection: Connection,
    /// Requests it serves.
    in_service: u32,
    /// Bytes it sent.
    served: f64,
    /// Places of its transfers.
    open: Vec<u32>,
}

/// Everything between the client and the peers, and the peers.
pub(crate) struct Network {
    pub(crate) queue: Queue,
    pub(crate) transfers: Transfers,
    /// What reached the client during the present event.
    pub(crate) done: Vec<Done>,
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
                draw: peer.clone(),
                conduct,
                luck: stream("behaviour"),
                serving: stream("serve"),
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
            done: Vec::new(),
            cut: Vec::new(),
            paused_until: 0,
            peers,
            links: Links::new(&draw.shared, draw.downlink, draw.peers.iter().map(|peer| peer.shares)),
            out_until: 0,
            out_ends,
            origin,
            changed: Vec::new(),
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

    /// Sends a request.
    pub(crate) fn send(&mut self, slot: u32, identity: u32, job: u32, range: u32, bytes: u64) -> TransferId {
        let now = self.queue.now();
        let id = self.transfers.open(Order { peer: slot, identity, job, range, bytes }, now);
        let peer = &mut self.peers[slot as usize];
        peer.open.push(id.place);
        let way = micros(peer.connection.round_trip_s(&peer.path) / 2.0);
        let leaves_at = now.max(peer.connection.up_at);
        self.queue.plan(leaves_at.saturating_add(way), Event::Arrives(id));
        id
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
        transfer.answer = peer.conduct.answer(&asked, &mut peer.luck);
        let serve = &peer.draw.serve;
        // Every request draws the same luck, whatever becomes of it.
        let cold = peer.serving.happens(serve.cold_share);
        let serve_ms = if cold { peer.serving.exponential(serve.cold_ms) } else { serve.hot_ms };
        match transfer.answer {
            Answer::Silent => {}
            Answer::Lacks => self.queue.plan(now.saturating_add(back), Event::Refused(id)),
            Answer::Fails { after_s } => {
                self.queue.plan(now.saturating_add(micros(after_s)).saturating_add(back), Event::Refused(id));
            }
            Answer::Serves | Answer::Corrupts | Answer::Stalls { .. } | Answer::Cuts => {
                self.queue.plan(now.saturating_add(micros(serve_ms * 1e-3)).saturating_add(back), Event::Ready(id));
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

    fn ready(&mut self, id: TransferId) {
        let slot = self.transfers.at(id.place).peer;
        self.count(slot);
        self.stretch(id.place);
        self.settle(slot);
    }

    /// The next stretch of a reply begins, or a pause before it.
    fn stretch(&mut self, place: u32) {
        let now = self.queue.now();
        let transfer = self.transfers.at(place);
        let peer = &mut self.peers[transfer.peer as usize];
        let segment = match transfer.phase {
            Phase::Pausing(segment) => segment,
            _ => peer.conduct.segment(&progress(transfer, peer.served, peer.rate, now - self.origin)),
        };
        if segment.pause_s > 0.0 {
            transfer.phase = Phase::Pausing(Segment { pause_s: 0.0, ..segment });
            let at = now.saturating_add(micros(segment.pause_s));
            let id = self.transfers.id(place);
            self.queue.plan(at, Event::Ready(id));
            return;
        }
        transfer.phase = Phase::Sending;
        transfer.cap = segment.rate;
        transfer.rate = 0.0;
        let end = (transfer.got + segment.bytes.max(1.0)).min(transfer.bytes as f64);
        transfer.stretch_end = transfer.hitch().map_or(end, |hitch| end.min(hitch));
        peer.connection.sending.push(place);
        if peer.connection.mode == Mode::Idle {
            if now < self.out_until {
                peer.connection.outage(now, self.out_until, &peer.path);
            } else {
                peer.connection.wake(now, &peer.path);
            }
        }
    }

    /// Counts what a connection's transfers got since it was last counted.
    fn count(&mut self, slot: u32) {
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        let connection = &mut peer.connection;
        let elapsed_s = seconds(now - connection.counted_at);
        connection.counted_at = now;
        if connection.mode != Mode::Sending || elapsed_s == 0.0 {
            return;
        }
        let mut moved = 0.0;
        for place in &connection.sending {
            let transfer = self.transfers.at(*place);
            // Time is rounded up to microseconds; nothing flows past the end of a stretch.
            let bytes = (transfer.rate * elapsed_s).min(transfer.stretch_end - transfer.got);
            transfer.got += bytes;
            moved += bytes;
        }
        peer.served += moved;
        connection.round_left -= moved;
        connection.loss_left -= moved;
    }

    fn tick(&mut self, slot: u32) {
        self.count(slot);
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        match peer.connection.mode {
            Mode::Waiting(until) if now >= until => peer.connection.start_round(now, &peer.path),
            Mode::Stalled(until) if now >= until => peer.connection.resume(now, &peer.path),
            _ => {}
        }
        self.settle(slot);
    }

    /// Passes every boundary that a counted connection has reached, then shares its rate and plans its next boundary.
    fn settle(&mut self, slot: u32) {
        let now = self.queue.now();
        let mut ended = 0;
        loop {
            let peer = &mut self.peers[slot as usize];
            let connection = &mut peer.connection;
            if connection.mode == Mode::Sending && connection.loss_left <= SLACK {
                let left = connection.sending.iter().map(|place| {
                    let transfer = self.transfers.at(*place);
                    transfer.bytes as f64 - transfer.got
                });
                let left = left.sum();
                connection.lose(now, left, &peer.path);
                continue;
            }
            let sending = &peer.connection.sending;
            let at_end = sending[ended..].iter().position(|place| {
                let transfer = self.transfers.at(*place);
                transfer.stretch_end - transfer.got <= SLACK
            });
            if let Some(at) = at_end {
                ended += at;
                let place = peer.connection.sending.remove(ended);
                self.stretch_ends(place);
                // A cut leaves nothing to go on with.
                ended = ended.min(self.peers[slot as usize].connection.sending.len());
                continue;
            }
            let peer = &mut self.peers[slot as usize];
            if peer.connection.sending.is_empty() {
                peer.connection.rest(now);
            } else if peer.connection.mode == Mode::Sending && peer.connection.round_left <= SLACK {
                peer.connection.end_round(now, &peer.path);
            }
            break;
        }
        self.share(slot);
    }

    fn stretch_ends(&mut self, place: u32) {
        let now = self.queue.now();
        let id = self.transfers.id(place);
        let transfer = self.transfers.at(place);
        let peer = &mut self.peers[transfer.peer as usize];
        transfer.got = transfer.stretch_end;
        let half = (transfer.bytes as f64 / 2.0).max(1.0);
        if transfer.got >= transfer.bytes as f64 {
            transfer.phase = Phase::Whole;
            peer.connection.pad(transfer.bytes);
            self.queue.plan(now.max(peer.connection.hold_until), Event::Seen(id));
        } else if transfer.got == half && transfer.answer == Answer::Cuts {
            let slot = transfer.peer;
            self.cuts(slot);
        } else if let (true, Answer::Stalls { for_s }) = (transfer.got == half, transfer.answer) {
            transfer.phase = Phase::Pausing(Segment { pause_s: for_s, ..Segment::FULL });
            self.stretch(place);
        } else {
            transfer.phase = Phase::Away;
            self.stretch(place);
        }
    }

    fn cuts(&mut self, slot: u32) {
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        let up_at = now.saturating_add(micros(RECONNECT_ROUND_TRIPS * peer.path.rtt_s));
        peer.connection.reset(now, up_at);
        self.queue.plan(up_at, Event::Reconnects { peer: slot });
        self.cut.push(slot);
        for place in &peer.open {
            self.transfers.at(*place).phase = Phase::Away;
            self.done.push(Done { place: *place, how: How::Cut });
        }
    }

    /// Shares a connection's rate among its transfers, after the links have shared theirs among connections.
    fn share(&mut self, slot: u32) {
        let peer = &self.peers[slot as usize];
        let mut demand = 0.0;
        if peer.connection.mode == Mode::Sending {
            demand = peer.connection.sending.iter().map(|place| self.transfers.at(*place).cap).sum::<f64>();
            demand = demand.min(peer.rate);
        }
        let mut changed = std::mem::take(&mut self.changed);
        self.links.demand(slot, demand, &mut changed);
        self.apply(slot);
        for other in changed.drain(..) {
            // Until now it had the old rate.
            self.count(other);
            self.apply(other);
        }
        self.changed = changed;
    }

    /// Gives transfers their rates and plans the connection's next boundary.
    fn apply(&mut self, slot: u32) {
        let now = self.queue.now();
        let rate = self.links.rate(slot);
        let peer = &mut self.peers[slot as usize];
        let connection = &mut peer.connection;
        let next = match connection.mode {
            Mode::Idle => super::queue::NEVER,
            Mode::Waiting(until) | Mode::Stalled(until) => until,
            // Whoever sends nothing at all reaches no boundary.
            Mode::Sending if rate <= 0.0 => super::queue::NEVER,
            Mode::Sending => {
                split(rate, &connection.sending, &mut self.transfers);
                let seen = now.max(connection.hold_until).max(self.paused_until);
                let mut soonest_s = connection.round_left.min(connection.loss_left) / rate;
                for place in &connection.sending {
                    let transfer = self.transfers.at(*place);
                    if transfer.rate > 0.0 {
                        transfer.first_byte.get_or_insert(seen);
                        soonest_s = soonest_s.min((transfer.stretch_end - transfer.got) / transfer.rate);
                    }
                }
                now.saturating_add(micros(soonest_s).max(1))
            }
        };
        self.queue.plan_tick(slot, next);
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

    /// Asks a peer anew how the replies under way go on.
    fn reconsider(&mut self, slot: u32) {
        let now = self.queue.now();
        let peer = &mut self.peers[slot as usize];
        for place in &peer.connection.sending {
            let transfer = self.transfers.at(*place);
            let segment = peer.conduct.segment(&progress(transfer, peer.served, peer.rate, now - self.origin));
            let end = (transfer.got + segment.bytes.max(1.0)).min(transfer.bytes as f64);
            transfer.cap = segment.rate;
            transfer.stretch_end = transfer.hitch().map_or(end, |hitch| end.min(hitch));
        }
        self.settle(slot);
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

fn progress(transfer: &Transfer, served: f64, link: f64, at: Micros) -> Progress {
    Progress { sent: transfer.got, bytes: transfer.bytes, served, link, at_s: seconds(at) }
}

/// Splits a connection's rate evenly among its transfers, none above its cap.
fn split(rate: f64, sending: &[u32], transfers: &mut Transfers) {
    if let [only] = sending {
        transfers.at(*only).rate = rate;
        return;
    }
    let (mut left, mut count) = (rate, sending.len() as f64);
    for place in sending {
        transfers.at(*place).rate = -1.0;
    }
    // Whoever wants less than an even share gets what it wants, until all who are left want more.
    loop {
        let even = (left / count).max(0.0);
        let mut met = false;
        for place in sending {
            let transfer = transfers.at(*place);
            if transfer.rate < 0.0 && transfer.cap <= even {
                transfer.rate = transfer.cap;
                left -= transfer.cap;
                count -= 1.0;
                met = true;
            }
        }
        if !met || count == 0.0 {
            for place in sending {
                let transfer = transfers.at(*place);
                if transfer.rate < 0.0 {
                    transfer.rate = even;
                }
            }
            return;
        }
    }
}
