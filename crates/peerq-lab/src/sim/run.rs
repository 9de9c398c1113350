//! The client and the run: asks the policy, sends what it grants, and tells it how that ends (LAB-1, LAB-3).
//!
//! The one idea: the client is the same for all policies. A job is a set of ranges; a slot that becomes free is offered to the policy; a range that fails goes back
//! to the others; a job ends when all its ranges are delivered.

use std::collections::{BTreeSet, VecDeque};

use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};

use super::check::{Impossible, check_workload};
use super::draw::{Draw, PeerDraw, draw};
use super::guard::caught;
use super::job::{Job, Work};
use super::network::{Done, How, Network};
use super::observe::{Fact, Observer};
use super::queue::{Event, Micros, micros, seconds};
use super::random::Stream;
use super::transfer::is_stale;
use crate::model::{Kind, PeerResult, RequestResult, RunResult, Workload, World};
use crate::policy::{Ask, Candidate, Grant, Opinion, PeerIndex, Policy};

/// The content of a history's deliveries.
pub const HISTORY: u64 = u64::MAX;
/// A client that nobody was found for asks again after this, seconds ([`Policy::choose`]).
const ASK_AGAIN_S: f64 = 1.0;
/// A job without a delivered range for this long is abandoned, seconds: no scenario's recovery takes longer, and a run has to end.
const ABANDONED_AFTER_S: f64 = 1800.0;
/// Likewise after so many failures in a row: instant failures would fill that time with work.
const ABANDONED_FAILURES: u32 = 200_000;

/// Runs one policy in one world under one seed.
///
/// The same arguments give the same result, bit for bit. Panics of the policy are caught, counted in [`RunResult::panics`], and count as an empty answer.
///
/// # Errors
/// [`Impossible`] names the field that no world or workload can have; nothing was run then.
pub fn run(
    world: &World,
    workload: &Workload,
    policy: &mut dyn Policy,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<RunResult, Impossible> {
    check_workload(workload)?;
    let draw = draw(world, seed)?;
    let past = super::history::past(&draw);
    let origin = past.last().map_or(0, |told| micros(libm::ceil(seconds(told.at)) + 1.0));
    let work = Work::of(workload);
    let jobs = work.jobs(workload, seed, origin);
    let mut run = Run {
        network: Network::new(world, &draw, seed, origin),
        world,
        draw: &draw,
        policy,
        observer,
        work,
        jobs,
        open_jobs: work.jobs,
        waiting: BTreeSet::new(),
        identities: Vec::new(),
        current: Vec::new(),
        candidates: Vec::new(),
        pauses: Stream::new(seed, "pauses", "client", 0),
        origin,
        events: 0,
        panics: 0,
    };
    run.meet(&past);
    run.plan();
    run.go();
    Ok(run.result())
}

/// One identity of a peer, and what became of it.
struct Identity {
    slot: u32,
    connected: bool,
    result: PeerResult,
}

struct Run<'a> {
    network: Network,
    world: &'a World,
    draw: &'a Draw,
    policy: &'a mut dyn Policy,
    observer: &'a mut dyn Observer,
    work: Work,
    jobs: Vec<Job>,
    open_jobs: u32,
    /// Jobs with ranges to ask for and slots to ask with.
    waiting: BTreeSet<u32>,
    identities: Vec<Identity>,
    /// The present identity of each peer.
    current: Vec<PeerIndex>,
    /// Who may be asked, by ascending index.
    candidates: Vec<Candidate>,
    pauses: Stream,
    origin: Micros,
    events: u64,
    panics: u32,
}

impl Run<'_> {
    /// The peers get their identities, and the policy is told the history.
    fn meet(&mut self, past: &[super::history::Told]) {
        for slot in 0..self.draw.peers.len() as u32 {
            self.identify(slot);
        }
        for told in past {
            if !self.identities[told.peer as usize].connected {
                self.connect(told.peer, true, Time::ZERO);
            }
            let (peer, now) = (PeerIndex(told.peer), Time::from_micros(told.at));
            match told.delivery {
                None => self.tell_sent(peer, HISTORY, told.range, now),
                Some(delivery) => self.tell_ended(peer, HISTORY, told.range, &delivery, now),
            }
        }
        self.observer.starts(Time::from_micros(self.origin));
    }

    fn identify(&mut self, slot: u32) -> PeerIndex {
        let index = PeerIndex(self.identities.len() as u32);
        let drawn = &self.draw.peers[slot as usize];
        let group = &self.world.peers[drawn.group];
        self.identities.push(Identity {
            slot,
            connected: false,
            result: PeerResult {
                group: group.name.clone(),
                kind: Some(worst_kind(drawn)),
                bytes: 0,
                wasted_bytes: 0,
                requests: 0,
                failures: 0,
                demoted_at_s: None,
                credited_rate: None,
                true_rate: 0.0,
            },
        });
        if (slot as usize) < self.current.len() {
            self.current[slot as usize] = index;
        } else {
            self.current.push(index);
        }
        index
    }

    fn plan(&mut self) {
        for (index, job) in self.jobs.iter().enumerate() {
            if let Some(at) = job.begins_at {
                self.network.queue.plan(at, Event::Begins { job: index as u32 });
            }
        }
        self.plan_pause(self.origin);
    }

    fn plan_pause(&mut self, after: Micros) {
        let mean_s = self.world.client.pause_every_s;
        if mean_s > 0.0 {
            let at = after.saturating_add(micros(self.pauses.exponential(mean_s)));
            self.network.queue.plan(at, Event::Pauses);
        }
    }

    fn go(&mut self) {
        while self.open_jobs > 0 {
            let Some(event) = self.network.queue.next() else { return };
            if is_stale(&self.network.transfers, event) {
                continue;
            }
            self.events += 1;
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.network.queue.now();
        // A client that does not read notices nothing before it does again.
        let paused_until = self.network.paused_until;
        match event {
            Event::Begins { .. } | Event::AskAgain { .. } | Event::Seen(_) | Event::Refused(_) | Event::GivenUp(_)
                if now < paused_until =>
            {
                self.network.queue.plan(paused_until, event);
            }
            Event::Begins { job } => self.begins(job),
            Event::AskAgain { job } => {
                self.jobs[job as usize].asking = false;
                if !self.abandons(job) {
                    self.fill(job);
                }
            }
            Event::Seen(id) => {
                let corrupt = self.network.transfers.at(id.place).answer == crate::behaviour::Answer::Corrupts;
                self.done(Done { place: id.place, how: if corrupt { How::Corrupt } else { How::Whole } });
            }
            Event::Refused(id) => {
                if let Some(how) = self.network.refused(id) {
                    self.done(Done { place: id.place, how });
                }
            }
            Event::GivenUp(id) => self.gives_up(id.place),
            Event::Joins { peer } => {
                let identity = self.current[peer as usize];
                self.admit(identity);
            }
            Event::Reconnects { peer } => {
                let identity = self.current[peer as usize];
                self.connect(identity.0, true, self.time());
            }
            Event::Pauses => {
                if let Some(length) = self.world.client.pause_s {
                    let (low, high) = length.bounds();
                    let until = now.saturating_add(micros(self.pauses.between(low, high)));
                    self.network.paused_until = until;
                    self.plan_pause(until);
                }
            }
            event => {
                self.network.handle(event);
                self.cut_off();
            }
        }
    }

    /// What ended because a connection was cut.
    fn cut_off(&mut self) {
        while let Some(peer) = self.network.cut.pop() {
            self.connect(self.current[peer as usize].0, false, self.time());
        }
        let mut done = std::mem::take(&mut self.network.done);
        for one in done.drain(..) {
            self.done(one);
        }
        self.network.done = done;
    }

    fn begins(&mut self, index: u32) {
        let now = self.network.queue.now();
        let job = &mut self.jobs[index as usize];
        job.begun_at = Some(job.begins_at.unwrap_or(now));
        job.progress = (now, 0);
        job.pending = VecDeque::from_iter(0..self.work.ranges);
        self.fill(index);
    }

    /// Offers a job's free slots to the policy.
    fn fill(&mut self, index: u32) {
        let job = &self.jobs[index as usize];
        if job.closed || job.begun_at.is_none() {
            self.waiting.remove(&index);
            return;
        }
        let (left, in_flight) = (job.pending.len() as u32, job.in_flight.len() as u32);
        let free = self.work.in_flight.saturating_sub(in_flight).min(left);
        if free == 0 {
            self.waiting.remove(&index);
            return;
        }
        let ask = Ask {
            now: self.time(),
            content: index.into(),
            ranges_left: left,
            range: Bytes::new(self.work.range_bytes),
            free,
            sources: self.work.sources,
            in_flight,
            candidates: &self.candidates,
        };
        let policy = &mut *self.policy;
        let grants = caught(|| policy.choose(&ask));
        self.panics += u32::from(grants.is_none());
        self.observer.decision(ask.now, &ask, grants.as_deref());
        let mut room = free;
        for Grant { peer, ranges } in grants.unwrap_or_default() {
            // An answer is not trusted: strangers get nothing, and nobody more than there is.
            if self.candidates.binary_search_by_key(&peer, |candidate| candidate.peer).is_err() {
                continue;
            }
            let granted = ranges.min(room);
            room -= granted;
            for _ in 0..granted {
                self.send(index, peer);
            }
        }
        let job = &mut self.jobs[index as usize];
        if room > 0 {
            self.waiting.insert(index);
            if job.in_flight.is_empty() && !job.asking {
                job.asking = true;
                let at = self.network.queue.now().saturating_add(micros(ASK_AGAIN_S));
                self.network.queue.plan(at, Event::AskAgain { job: index });
            }
        } else {
            self.waiting.remove(&index);
        }
    }

    fn send(&mut self, index: u32, peer: PeerIndex) {
        let job = &mut self.jobs[index as usize];
        let Some(range) = job.pending.pop_front() else { return };
        let bytes = self.work.bytes(range);
        let identity = &mut self.identities[peer.0 as usize];
        identity.result.requests += 1;
        let id = self.network.send(identity.slot, peer.0, index, range, bytes);
        job.in_flight.push(id.place);
        let now = self.network.queue.now();
        self.network.queue.plan_timeout(self.work.timeout, Event::GivenUp(id));
        self.tell_sent(peer, index.into(), Bytes::new(bytes), Time::from_micros(now));
    }

    /// The client waited long enough.
    fn gives_up(&mut self, place: u32) {
        self.end(place, End::Failed(Fault::Timeout));
    }

    fn done(&mut self, done: Done) {
        let end = match done.how {
            How::Whole => End::Completed,
            How::Corrupt => End::Failed(Fault::Verification),
            How::Unavailable => End::Failed(Fault::Unavailable),
            How::Failed => End::Failed(Fault::Transport),
            How::Cut if self.network.transfers.at(done.place).got >= 1.0 => End::Interrupted,
            How::Cut => End::Failed(Fault::Transport),
        };
        self.end(done.place, end);
    }

    /// Accounts for a transfer's end, tells the policy, and goes on with the job.
    fn end(&mut self, place: u32, end: End) {
        let now = self.network.queue.now();
        let transfer = self.network.close(place);
        let index = transfer.job;
        let bytes = if end == End::Completed { transfer.bytes } else { transfer.got as u64 };
        let job = &mut self.jobs[index as usize];
        job.in_flight.retain(|other| *other != place);
        let peer = PeerIndex(transfer.identity);
        let result = &mut self.identities[peer.0 as usize].result;
        if end == End::Completed {
            result.bytes += bytes;
            job.delivered.0 += 1;
            job.delivered.1 += bytes;
            job.progress = (now, 0);
        } else {
            result.wasted_bytes += bytes;
            result.failures += 1;
            job.pending.push_front(transfer.range);
            job.progress.1 += 1;
        }
        let delivery = Delivery {
            bytes: Bytes::new(bytes),
            elapsed: Span::from_micros(now - transfer.sent_at),
            first_byte: transfer.first_byte.filter(|at| *at <= now).map(|at| Span::from_micros(at - transfer.sent_at)),
            end,
        };
        self.tell_ended(peer, index.into(), Bytes::new(transfer.bytes), &delivery, Time::from_micros(now));
        self.judge(peer);
        if matches!(end, End::Failed(_)) && self.current[transfer.peer as usize] == peer {
            self.sheds(transfer.peer);
        }
        self.goes_on(index);
    }

    /// After an end: the job is over, or its free slots are offered again; then those of jobs that nobody was found for.
    fn goes_on(&mut self, index: u32) {
        let job = &mut self.jobs[index as usize];
        if job.closed {
            return;
        }
        if job.delivered.0 == self.work.ranges {
            job.ended_at = Some(self.network.queue.now());
            self.shut(index);
        } else if !self.abandons(index) {
            self.fill(index);
        }
        self.offer_waiting(index);
    }

    /// Offers what became free to jobs that wait for somebody, until nobody is found again.
    fn offer_waiting(&mut self, except: u32) {
        let waiting: Vec<u32> = self.waiting.iter().copied().filter(|job| *job != except).collect();
        for job in waiting {
            self.fill(job);
            if self.waiting.contains(&job) {
                break;
            }
        }
    }

    /// A job is over; where jobs follow each other, the next begins.
    fn shut(&mut self, index: u32) {
        self.jobs[index as usize].closed = true;
        self.waiting.remove(&index);
        self.open_jobs -= 1;
        if let (Some(pause), true) = (self.work.pause, index + 1 < self.work.jobs) {
            let at = self.network.queue.now().saturating_add(pause);
            self.network.queue.plan(at, Event::Begins { job: index + 1 });
        }
    }

    /// Gives a job up that nothing moves any more.
    fn abandons(&mut self, index: u32) -> bool {
        let job = &self.jobs[index as usize];
        let (since, failures) = job.progress;
        let stuck_s = seconds(self.network.queue.now() - since);
        if job.closed || (stuck_s < ABANDONED_AFTER_S && failures < ABANDONED_FAILURES) {
            return job.closed;
        }
        self.shut(index);
        while let Some(place) = self.jobs[index as usize].in_flight.pop() {
            self.end(place, End::Cancelled);
        }
        true
    }

    fn admit(&mut self, peer: PeerIndex) {
        let drawn = &self.draw.peers[self.identities[peer.0 as usize].slot as usize];
        let candidate = Candidate {
            peer,
            group: drawn.address_group,
            relayed: drawn.relayed,
            handshake_rtt_s: drawn.handshake_rtt_s,
        };
        if let Err(at) = self.candidates.binary_search_by_key(&peer, |candidate| candidate.peer) {
            self.candidates.insert(at, candidate);
        }
        if !self.identities[peer.0 as usize].connected {
            self.connect(peer.0, true, self.time());
        }
        self.offer_waiting(u32::MAX);
    }

    /// A peer that has failed may come back as somebody else.
    fn sheds(&mut self, slot: u32) {
        if !self.network.sheds_identity(slot) {
            return;
        }
        let old = self.current[slot as usize];
        self.candidates.retain(|candidate| candidate.peer != old);
        self.connect(old.0, false, self.time());
        let fresh = self.identify(slot);
        self.admit(fresh);
    }

    fn connect(&mut self, peer: u32, up: bool, now: Time) {
        let identity = &mut self.identities[peer as usize];
        identity.connected = up;
        let group = self.draw.peers[identity.slot as usize].group;
        let peer = PeerIndex(peer);
        self.observer.fact(now, &Fact::Connected { peer, group, up });
        let policy = &mut *self.policy;
        self.panics += u32::from(caught(|| policy.connected(peer, up, now)).is_none());
    }

    fn tell_sent(&mut self, peer: PeerIndex, content: u64, range: Bytes, now: Time) {
        self.observer.fact(now, &Fact::Sent { peer, content, range });
        let policy = &mut *self.policy;
        self.panics += u32::from(caught(|| policy.sent(peer, range, now)).is_none());
    }

    fn tell_ended(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time) {
        self.observer.fact(now, &Fact::Ended { peer, content, range, delivery: *delivery });
        let policy = &mut *self.policy;
        self.panics += u32::from(caught(|| policy.ended(peer, content, range, delivery, now)).is_none());
    }

    /// Notes when the policy stops trusting a peer.
    fn judge(&mut self, peer: PeerIndex) {
        let trusted = self.identities[peer.0 as usize].result.demoted_at_s.is_none();
        let watched = self.observer.wants_opinions();
        if !trusted && !watched {
            return;
        }
        let opinion = self.opinion(peer);
        if watched {
            let now = self.time();
            self.observer.opinion(now, peer, &opinion);
        }
        if trusted && opinion.demoted {
            self.identities[peer.0 as usize].result.demoted_at_s = Some(self.network.second());
        }
    }

    fn opinion(&mut self, peer: PeerIndex) -> Opinion {
        let (policy, now) = (&*self.policy, self.time());
        let opinion = caught(|| policy.opinion(peer, now));
        self.panics += u32::from(opinion.is_none());
        opinion.unwrap_or_default()
    }

    fn time(&self) -> Time {
        Time::from_micros(self.network.queue.now())
    }

    fn result(mut self) -> RunResult {
        for index in 0..self.jobs.len() {
            self.jobs[index].closed = true;
            while let Some(place) = self.jobs[index].in_flight.pop() {
                self.end(place, End::Cancelled);
            }
        }
        debug_assert_eq!(self.network.open(), 0);
        for index in 0..self.identities.len() {
            let credited = self.opinion(PeerIndex(index as u32)).credited_rate;
            let identity = &mut self.identities[index];
            identity.result.credited_rate = credited;
            identity.result.true_rate = self.network.true_rate(identity.slot);
        }
        let second = |at: Micros| seconds(at - self.origin);
        let request = |job: &Job| {
            let start_s = second(job.begun_at.or(job.begins_at).unwrap_or(self.origin));
            RequestResult {
                start_s,
                end_s: job.ended_at.map(second),
                deadline_s: self.work.deadline_s.map(|deadline_s| start_s + deadline_s),
                bytes: job.delivered.1,
            }
        };
        let requests: Vec<RequestResult> = self.jobs.iter().map(request).collect();
        let first = requests.iter().map(|request| request.start_s).fold(f64::INFINITY, f64::min);
        let last = requests.iter().filter_map(|request| request.end_s).fold(first, f64::max);
        RunResult {
            requests,
            peers: self.identities.into_iter().map(|identity| identity.result).collect(),
            events: self.events,
            seconds: last - first,
            panics: self.panics,
        }
    }
}

/// The worst side that a peer is ever on.
fn worst_kind(drawn: &PeerDraw) -> Kind {
    let behaviours = drawn.changes.iter().map(|(_, state)| state.behaviour).chain([drawn.start.behaviour]);
    let rank = |kind: &Kind| match kind {
        Kind::Honest => 0,
        Kind::Broken => 1,
        Kind::Hostile => 2,
    };
    behaviours.map(|behaviour| behaviour.kind()).max_by_key(rank).unwrap_or(Kind::Honest)
}
