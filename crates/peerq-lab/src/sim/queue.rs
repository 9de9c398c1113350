//! The event queue: what happens next in virtual time (LAB-1).
//!
//! Events of one moment happen in the order in which they were planned, so a run depends on nothing but its seed. Ticks, which move, and timeouts, which all take
//! equally long, have queues of their own beside the general one.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use super::ticks::Ticks;

/// Microseconds of virtual time.
pub(crate) type Micros = u64;

/// Beyond every horizon: half of what fits, so that sums do not overflow.
pub(crate) const NEVER: Micros = u64::MAX / 2;

/// Seconds as microseconds, rounded up and saturating.
pub(crate) fn micros(seconds: f64) -> Micros {
    let exact = seconds * 1e6 - 1e-6;
    if exact >= NEVER as f64 {
        return NEVER;
    }
    let whole = exact as Micros;
    whole + Micros::from(exact > whole as f64)
}

/// Microseconds as seconds.
pub(crate) fn seconds(micros: Micros) -> f64 {
    micros as f64 * 1e-6
}

/// A transfer by its place, and the generation that tells it from earlier tenants of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransferId {
    pub(crate) place: u32,
    pub(crate) generation: u32,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A connection's bytes reach a boundary.
    Tick { peer: u32 },
    /// A request reaches its peer.
    Arrives(TransferId),
    /// A reply's bytes start, or go on, to flow.
    Ready(TransferId),
    /// A reply other than data reaches the client.
    Refused(TransferId),
    /// The client sees that a reply is complete.
    Seen(TransferId),
    /// The client gives a request up.
    GivenUp(TransferId),
    /// The client begins a job.
    Begins { job: u32 },
    /// The client asks again for a job that nobody was found for.
    AskAgain { job: u32 },
    /// The client looks at what is under way for a job.
    Reviews { job: u32 },
    /// A peer appears.
    Joins { peer: u32 },
    /// A connection that was cut is up again.
    Reconnects { peer: u32 },
    /// A peer's parameters change.
    Changes { peer: u32, change: u32 },
    /// A peer's behaviour turns by itself.
    Turns { peer: u32 },
    /// Nothing arrives from now on.
    OutageStarts { outage: u32 },
    /// The client stops reading.
    Pauses,
    /// It goes on, for a client that measures on the wire.
    Resumes,
    /// It may be time to send a peer a cookie, for such a client.
    CookieDue { peer: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Planned {
    at: Micros,
    order: u64,
    event: Event,
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Events by time, then by order of planning.
#[derive(Clone, Default)]
pub(crate) struct Queue {
    general: BinaryHeap<Reverse<Planned>>,
    ticks: Ticks,
    /// In order of time, because each comes equally long after its planning.
    timeouts: VecDeque<Planned>,
    planned: u64,
    now: Micros,
}

impl Queue {
    /// An empty queue for so many connections.
    pub(crate) fn new(connections: usize) -> Self {
        Queue { ticks: Ticks::new(connections), ..Queue::default() }
    }

    /// The moment of the last event taken.
    pub(crate) fn now(&self) -> Micros {
        self.now
    }

    /// Plans an event; one that lies in the past happens now.
    pub(crate) fn plan(&mut self, at: Micros, event: Event) {
        if at < NEVER {
            self.planned += 1;
            self.general.push(Reverse(Planned { at: at.max(self.now), order: self.planned, event }));
        }
    }

    /// Plans an event at the end of a timeout that is the same for all that are planned so.
    pub(crate) fn plan_timeout(&mut self, timeout: Micros, event: Event) {
        let at = self.now.saturating_add(timeout);
        if at < NEVER {
            self.planned += 1;
            self.timeouts.push_back(Planned { at, order: self.planned, event });
        }
    }

    /// Plans a connection's tick, instead of the one it had.
    pub(crate) fn plan_tick(&mut self, peer: u32, at: Micros) {
        let at = at.max(self.now);
        if self.ticks.at(peer) != at {
            self.planned += 1;
            self.ticks.plan(peer, at, self.planned);
        }
    }

    /// The next event; time moves to it.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let general = self.general.peek().map(|Reverse(planned)| (planned.at, planned.order));
        let timeout = self.timeouts.front().map(|planned| (planned.at, planned.order));
        let tick = self.ticks.next();
        let first = [general, timeout, tick].into_iter().flatten().min()?;
        self.now = first.0;
        if tick == Some(first) {
            self.ticks.pop().map(|peer| Event::Tick { peer })
        } else if timeout == Some(first) {
            self.timeouts.pop_front().map(|planned| planned.event)
        } else {
            self.general.pop().map(|Reverse(planned)| planned.event)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_keep_their_order_and_time_never_goes_back() {
        let mut queue = Queue::new(1);
        for (at, job) in [(5, 0), (3, 1), (5, 2)] {
            queue.plan(at, Event::Begins { job });
        }
        queue.plan(NEVER, Event::Pauses);
        queue.plan_timeout(5, Event::Begins { job: 3 });
        queue.plan_tick(0, 4);
        queue.plan_tick(0, NEVER);
        let mut order = Vec::new();
        while let Some(Event::Begins { job }) = queue.next() {
            order.push((queue.now(), job));
            if job == 1 {
                queue.plan(1, Event::Begins { job: 9 });
            }
        }
        assert_eq!(order, [(3, 1), (3, 9), (5, 0), (5, 2), (5, 3)]);
    }

    #[test]
    fn seconds_become_microseconds_without_overflow() {
        assert_eq!(micros(1.5), 1_500_000);
        assert_eq!(micros(f64::INFINITY), NEVER);
        assert_eq!(micros(1e300), NEVER);
        assert_eq!((micros(-1.0), micros(f64::NAN), micros(1e-9), micros(1.2e-6)), (0, 0, 1, 2));
    }
}
