//! What the client does with ranges: offers them to the policy, sends what it grants, takes back what fails.

use std::collections::VecDeque;

use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};

use super::Run;
use super::guard::caught;
use super::reviews::{Part, one_ended};
use crate::policy::{Ask, Grant, PeerIndex, Policy};
use crate::sim::network::{Done, How, Order};
use crate::sim::queue::{Event, micros, seconds};

/// A client that nobody was found for asks again after this, seconds ([`Policy::choose`]).
const ASK_AGAIN_S: f64 = 1.0;
/// A job without a delivered range for this long is abandoned, seconds: no scenario's recovery takes longer, and a run has to end.
const ABANDONED_AFTER_S: f64 = 1800.0;
/// Likewise after so many failures in a row: instant failures would fill that time with work.
const ABANDONED_FAILURES: u32 = 200_000;

impl<P: Policy + ?Sized> Run<'_, P> {
    /// What ended because a connection was cut.
    pub(super) fn cut_off(&mut self) {
        while let Some(peer) = self.network.cut.pop() {
            self.connect(self.current[peer as usize].0, false, self.time());
        }
        let mut lost = std::mem::take(&mut self.network.lost);
        for id in lost.drain(..) {
            // What one of them led the client to do may have ended another.
            if self.network.transfers.get(id).is_some() {
                self.done(Done { place: id.place, how: How::Cut });
            }
        }
        self.network.lost = lost;
    }

    pub(super) fn begins(&mut self, index: u32) {
        let now = self.network.queue.now();
        let job = &mut self.jobs[index];
        job.begun_at = Some(job.begins_at.unwrap_or(now));
        job.progress = (now, 0);
        job.pending = VecDeque::from_iter(0..self.work.ranges);
        self.plan_arrival(index + 1);
        self.fill(index);
    }

    /// Offers a job's free slots to the policy, and has what is under way looked at.
    pub(super) fn fill(&mut self, index: u32) {
        self.offer(index);
        self.review(index);
    }

    fn offer(&mut self, index: u32) {
        let job = &self.jobs[index];
        if job.closed || job.begun_at.is_none() {
            self.waiting.remove(&index);
            return;
        }
        let (left, in_flight) = (job.pending.len() as u32, job.ranges_in_flight());
        let free = self.work.in_flight.saturating_sub(in_flight).min(left);
        if free == 0 {
            self.waiting.remove(&index);
            return;
        }
        self.look(None);
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
        self.answered += 1;
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
                if let Some(range) = self.jobs[index].pending.pop_front() {
                    self.send(index, range, peer);
                }
            }
        }
        let job = &mut self.jobs[index];
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

    pub(super) fn send(&mut self, index: u32, range: u32, peer: PeerIndex) {
        let job = &mut self.jobs[index];
        let bytes = self.work.bytes(range);
        let identity = &mut self.identities[peer.0 as usize];
        identity.result.requests += 1;
        let asked = job.asked.entry(identity.slot).or_default();
        let order = Order { peer: identity.slot, identity: peer.0, job: index, nth: *asked, range, bytes };
        *asked += 1;
        let (slot, predicts) = (identity.slot, self.observer.wants_predictions());
        let (id, reaches_at) = self.network.send(order);
        job.in_flight.push(id.place);
        let now = self.network.queue.now();
        self.network.queue.plan_timeout(self.work.timeout, Event::GivenUp(id));
        if predicts {
            self.network.transfers.at(id.place).predicted_s = self.predicted_s(peer, Bytes::new(bytes));
        }
        self.write(peer, slot, reaches_at);
        self.tell_sent(peer, index.into(), Bytes::new(bytes), Time::from_micros(now));
    }

    /// The client waited long enough.
    pub(super) fn gives_up(&mut self, place: u32) {
        self.end(place, End::Failed(Fault::Timeout));
    }

    pub(super) fn done(&mut self, done: Done) {
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
    pub(super) fn end(&mut self, place: u32, end: End) {
        let now = self.network.queue.now();
        let (slot, identity) = {
            let transfer = self.network.transfers.at(place);
            (transfer.peer, PeerIndex(transfer.identity))
        };
        self.closes(place, slot, identity);
        let harms = self.harms(identity);
        let transfer = self.network.close(place);
        let index = transfer.job;
        let bytes = if end == End::Completed { transfer.bytes } else { transfer.got as u64 };
        let job = &mut self.jobs[index];
        job.in_flight.retain(|other| *other != place);
        let peer = PeerIndex(transfer.identity);
        let result = &mut self.identities[peer.0 as usize].result;
        result.hostile_bytes += if harms { bytes } else { 0 };
        let part = one_ended(&mut job.doubled, transfer.range, end == End::Completed);
        if end == End::Completed && part == Part::Alone {
            result.bytes += bytes;
            job.delivered.0 += 1;
            job.delivered.1 += bytes;
            job.progress = (now, 0);
        } else {
            result.wasted_bytes += bytes;
            result.failures += u32::from(end != End::Completed);
            job.progress.1 += 1;
            if part == Part::Alone {
                job.pending.push_front(transfer.range);
            }
        }
        let delivery = Delivery {
            bytes: Bytes::new(bytes),
            elapsed: Span::from_micros(now - transfer.sent_at),
            first_byte: transfer.first_byte.filter(|at| *at <= now).map(|at| Span::from_micros(at - transfer.sent_at)),
            end,
        };
        if let (Some(predicted_s), End::Completed) = (transfer.predicted_s, end) {
            self.observer.prediction(Time::from_micros(now), peer, predicted_s, delivery.elapsed.as_secs_f64());
        }
        self.tell_ended(peer, index.into(), Bytes::new(transfer.bytes), &delivery, Time::from_micros(now));
        // What the end of the run cuts off, nobody is told of.
        self.judge(peer, bytes > 0 && self.open_jobs > 0);
        if matches!(end, End::Failed(_)) && self.current[transfer.peer as usize] == peer {
            self.sheds(transfer.peer);
        }
        self.goes_on(index);
    }

    /// After an end: the job is over, or its free slots are offered again; then those of jobs that nobody was found for.
    pub(super) fn goes_on(&mut self, index: u32) {
        let job = &mut self.jobs[index];
        if job.closed {
            // What somebody else brought sooner: its peer has room again.
            self.offer_waiting(index);
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
    pub(super) fn offer_waiting(&mut self, except: u32) {
        let waiting: Vec<u32> = self.waiting.iter().copied().filter(|job| *job != except).collect();
        for job in waiting {
            self.fill(job);
            if self.waiting.contains(&job) {
                break;
            }
        }
    }

    /// A job is over; where jobs follow each other, the next begins.
    pub(super) fn shut(&mut self, index: u32) {
        let job = &mut self.jobs[index];
        job.closed = true;
        job.asked.clear();
        self.waiting.remove(&index);
        self.open_jobs -= 1;
        if let (Some(pause), true) = (self.work.pause, index + 1 < self.work.jobs) {
            let at = self.network.queue.now().saturating_add(pause);
            self.network.queue.plan(at, Event::Begins { job: index + 1 });
        }
    }

    /// Gives a job up that nothing moves any more.
    pub(super) fn abandons(&mut self, index: u32) -> bool {
        let job = &self.jobs[index];
        let (since, failures) = job.progress;
        let stuck_s = seconds(self.network.queue.now() - since);
        if job.closed || (stuck_s < ABANDONED_AFTER_S && failures < ABANDONED_FAILURES) {
            return job.closed;
        }
        self.shut(index);
        while let Some(place) = self.jobs[index].in_flight.pop() {
            self.end(place, End::Cancelled);
        }
        true
    }
}
