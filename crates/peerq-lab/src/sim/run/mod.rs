//! The client and the run: asks the policy, sends what it grants, and tells it how that ends (LAB-1, LAB-3).
//!
//! The one idea: the client is the same for all policies. A job is a set of ranges; a slot that becomes free is offered to the policy; a range that fails goes back
//! to the others; a job ends when all its ranges are delivered.

mod guard;
mod history;
mod job;
mod peers;
mod ranges;
mod rehearsal;
mod reviews;
mod sight;
mod telling;

use std::collections::BTreeSet;

use peer_quality::measure::End;
use peer_quality::units::Time;

use self::job::{Job, Jobs, Work};
use super::check::{Impossible, check_workload};
use super::draw::{Draw, draw};
use super::luck::PeerLuck;
use super::network::{Done, How, Network, is_stale};
use super::observe::Observer;
use super::queue::{Event, Micros, micros, seconds};
use super::random::Stream;
use crate::behaviour::Answer;
use crate::model::{PeerResult, RequestResult, RunResult, Workload, World};
use crate::policy::{Candidate, PeerIndex, Policy};

pub use self::rehearsal::{Rehearses, Turn, rehearse};

/// The content of a history's deliveries.
pub const HISTORY: u64 = u64::MAX;

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
    with_run(world, workload, policy, seed, observer, |run| {
        while let Some(event) = run.next() {
            run.handle(event);
        }
        run.result()
    })
}

/// Sets up a run and does something with it.
fn with_run<P: Policy + ?Sized, T>(
    world: &World,
    workload: &Workload,
    policy: &mut P,
    seed: u64,
    observer: &mut dyn Observer,
    then: impl FnOnce(&mut Run<'_, P>) -> T,
) -> Result<T, Impossible> {
    check_workload(workload)?;
    let draw = draw(world, seed)?;
    let past = history::past(&draw, |peer| PeerLuck::new(seed, &world.peers[peer.group].name, peer.place));
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
        reviewing: false,
        origin,
        answered: 0,
        events: 0,
        panics: 0,
    };
    run.open_eyes(seed);
    run.meet(&past);
    run.plan_arrival(0);
    run.plan_pause(origin);
    Ok(then(&mut run))
}

/// One identity of a peer, and what became of it.
#[derive(Clone)]
struct Identity {
    slot: u32,
    connected: bool,
    result: PeerResult,
}

struct Run<'a, P: ?Sized> {
    network: Network,
    world: &'a World,
    draw: &'a Draw,
    policy: &'a mut P,
    observer: &'a mut dyn Observer,
    work: Work,
    jobs: Jobs,
    open_jobs: u32,
    /// Jobs with ranges to ask for and slots to ask with.
    waiting: BTreeSet<u32>,
    identities: Vec<Identity>,
    /// The present identity of each peer.
    current: Vec<PeerIndex>,
    /// Who may be asked, by ascending index.
    candidates: Vec<Candidate>,
    pauses: Stream,
    /// Whether moves are being carried out: what ends by them is not looked at in between.
    reviewing: bool,
    origin: Micros,
    /// Questions that the policy answered.
    answered: u64,
    events: u64,
    panics: u32,
}

impl<P: Policy + ?Sized> Run<'_, P> {
    /// Plans the start of a job that does not wait for another's end.
    fn plan_arrival(&mut self, index: u32) {
        if let Some(at) = self.jobs.get(index).and_then(|job| job.begins_at) {
            self.network.queue.plan(at, Event::Begins { job: index });
        }
    }

    /// The same run with only some of its jobs, to go on by itself with another policy.
    fn copy<'b>(&'b self, jobs: Jobs, policy: &'b mut P, observer: &'b mut dyn Observer) -> Run<'b, P> {
        Run {
            network: self.network.clone(),
            world: self.world,
            draw: self.draw,
            policy,
            observer,
            work: self.work,
            jobs,
            open_jobs: self.open_jobs,
            waiting: self.waiting.clone(),
            identities: self.identities.clone(),
            current: self.current.clone(),
            candidates: self.candidates.clone(),
            pauses: self.pauses.clone(),
            reviewing: self.reviewing,
            origin: self.origin,
            answered: self.answered,
            events: self.events,
            panics: self.panics,
        }
    }

    fn plan_pause(&mut self, after: Micros) {
        let mean_s = self.world.client.pause_every_s;
        if mean_s > 0.0 {
            let at = after.saturating_add(micros(self.pauses.exponential(mean_s)));
            self.network.queue.plan(at, Event::Pauses);
        }
    }

    /// What happens next, as long as anything is to be done.
    fn next(&mut self) -> Option<Event> {
        while self.open_jobs > 0 {
            let event = self.network.queue.next()?;
            if !is_stale(&self.network.transfers, event) {
                self.events += 1;
                return Some(event);
            }
        }
        None
    }

    fn handle(&mut self, event: Event) {
        let now = self.network.queue.now();
        // A client that does not read notices nothing before it does again.
        let paused_until = self.network.paused_until;
        match event {
            Event::Begins { .. }
            | Event::AskAgain { .. }
            | Event::Reviews { .. }
            | Event::Seen(_)
            | Event::Refused(_)
            | Event::GivenUp(_)
                if now < paused_until =>
            {
                self.network.queue.plan(paused_until, event);
            }
            Event::Begins { job } => self.begins(job),
            Event::AskAgain { job } => {
                self.jobs[job].asking = false;
                if !self.abandons(job) {
                    self.fill(job);
                }
            }
            Event::Seen(id) => {
                let corrupt = self.network.transfers.at(id.place).answer == Answer::Corrupts;
                self.done(Done { place: id.place, how: if corrupt { How::Corrupt } else { How::Whole } });
            }
            Event::Refused(id) => {
                if let Some(how) = self.network.refused(id) {
                    self.done(Done { place: id.place, how });
                }
            }
            Event::GivenUp(id) => self.gives_up(id.place),
            Event::Reviews { job } => self.reviews(job),
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
                    self.pauses(until);
                    self.network.paused_until = until;
                    self.plan_pause(until);
                }
            }
            Event::Resumes => self.resumes(),
            Event::CookieDue { peer } => self.cookie_due(peer),
            event => {
                self.network.handle(event);
                if self.network.wires.is_some() {
                    self.tell_seen();
                }
                self.cut_off();
            }
        }
    }

    fn time(&self) -> Time {
        Time::from_micros(self.network.queue.now())
    }

    fn result(&mut self) -> RunResult {
        for index in 0..self.work.jobs {
            self.jobs[index].closed = true;
            while let Some(place) = self.jobs[index].in_flight.pop() {
                self.end(place, End::Cancelled);
            }
        }
        debug_assert_eq!(self.network.open(), 0);
        for index in 0..self.identities.len() {
            let credited = self.opinion(PeerIndex(index as u32)).credited_rate;
            let trust = self.trust(PeerIndex(index as u32));
            let identity = &mut self.identities[index];
            (identity.result.credited_rate, identity.result.trust) = (credited, trust);
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
        let requests: Vec<RequestResult> = self.jobs.iter().map(|(_, job)| request(job)).collect();
        let first = requests.iter().map(|request| request.start_s).fold(f64::INFINITY, f64::min);
        let last = requests.iter().filter_map(|request| request.end_s).fold(first, f64::max);
        RunResult {
            requests,
            peers: self.identities.drain(..).map(|identity| identity.result).collect(),
            events: self.events,
            seconds: last - first,
            panics: self.panics,
        }
    }
}
