//! Jobs: what a workload wants fetched, when, and in which ranges.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Index, IndexMut};

use super::reviews::{Doubled, Twice};
use crate::model::Workload;
use crate::sim::queue::{Micros, micros};
use crate::sim::random::Stream;

/// One request of the workload.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// When it begins; none if it follows its predecessor.
    pub(crate) begins_at: Option<Micros>,
    pub(crate) begun_at: Option<Micros>,
    pub(crate) ended_at: Option<Micros>,
    /// Whether it ended or was abandoned.
    pub(crate) closed: bool,
    /// Ranges that nobody was asked for yet.
    pub(crate) pending: VecDeque<u32>,
    /// How often each peer was asked for ranges of it.
    pub(crate) asked: BTreeMap<u32, u32>,
    /// Places of its transfers.
    pub(crate) in_flight: Vec<u32>,
    /// Ranges delivered, and their bytes.
    pub(crate) delivered: (u32, u64),
    /// When a range was last delivered, and failures since.
    pub(crate) progress: (Micros, u32),
    /// Whether it is planned to ask again.
    pub(crate) asking: bool,
    /// When what is under way is looked at next.
    pub(crate) review_at: Option<Micros>,
    pub(crate) doubled: Doubled,
    /// How often reviews gave each range up.
    pub(crate) given_up: BTreeMap<u32, u32>,
}

impl Job {
    /// Requests in flight for ranges that another is in flight for, or that came already.
    pub(crate) fn second_requests(&self) -> u32 {
        self.doubled.values().map(Twice::second_requests).sum()
    }

    /// Ranges in flight, each once.
    pub(crate) fn ranges_in_flight(&self) -> u32 {
        (self.in_flight.len() as u32).saturating_sub(self.second_requests())
    }
}

/// The jobs of a run, or those of them that a copy of it looks at.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    first: usize,
    jobs: Vec<Job>,
}

impl Jobs {
    /// From `first` to `last`, both included.
    pub(crate) fn only(&self, first: u32, last: u32) -> Jobs {
        let jobs = self.jobs[first as usize - self.first..=last as usize - self.first].to_vec();
        Jobs { first: first as usize, jobs }
    }

    /// The job of this index, if it is looked at.
    pub(crate) fn get(&self, index: u32) -> Option<&Job> {
        self.jobs.get((index as usize).checked_sub(self.first)?)
    }

    /// By index, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Job)> {
        (self.first as u32..).zip(&self.jobs)
    }
}

impl Index<u32> for Jobs {
    type Output = Job;

    fn index(&self, index: u32) -> &Job {
        &self.jobs[index as usize - self.first]
    }
}

impl IndexMut<u32> for Jobs {
    fn index_mut(&mut self, index: u32) -> &mut Job {
        &mut self.jobs[index as usize - self.first]
    }
}

/// The work of a run, in the client's terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) jobs: u32,
    pub(crate) ranges: u32,
    pub(crate) range_bytes: u64,
    pub(crate) last_bytes: u64,
    pub(crate) sources: u32,
    pub(crate) in_flight: u32,
    pub(crate) timeout: Micros,
    pub(crate) deadline_s: Option<f64>,
    /// Time between the end of a job and the start of the next, where they follow each other.
    pub(crate) pause: Option<Micros>,
}

impl Work {
    pub(crate) fn of(workload: &Workload) -> Work {
        match *workload {
            Workload::Downloads { requests, ranges, range_bytes, sources, in_flight, pause_s, range_timeout_s } => {
                Work {
                    jobs: requests,
                    ranges,
                    range_bytes,
                    last_bytes: range_bytes,
                    sources,
                    in_flight,
                    timeout: micros(range_timeout_s),
                    deadline_s: None,
                    pause: Some(micros(pause_s)),
                }
            }
            Workload::Requests { requests, range_bytes, range_timeout_s, .. } => Work {
                jobs: requests,
                ranges: 1,
                range_bytes,
                last_bytes: range_bytes,
                sources: 1,
                in_flight: 1,
                timeout: micros(range_timeout_s),
                deadline_s: None,
                pause: None,
            },
            Workload::Closures { requests, closure_bytes, chunk_bytes, deadline_s, in_flight, .. } => {
                let chunks = closure_bytes.div_ceil(chunk_bytes);
                Work {
                    jobs: requests,
                    ranges: chunks as u32,
                    range_bytes: chunk_bytes.min(closure_bytes),
                    last_bytes: closure_bytes - (chunks - 1) * chunk_bytes,
                    sources: in_flight,
                    in_flight,
                    // There is no cancel before the deadline; what has not come by then has failed the request already.
                    timeout: micros(deadline_s),
                    deadline_s: Some(deadline_s),
                    pause: None,
                }
            }
        }
    }

    /// Bytes of a range.
    pub(crate) fn bytes(&self, range: u32) -> u64 {
        if range + 1 == self.ranges { self.last_bytes } else { self.range_bytes }
    }

    /// The jobs, by their start.
    pub(crate) fn jobs(&self, workload: &Workload, seed: u64, origin: Micros) -> Jobs {
        let mut arrivals = Stream::new(seed, "arrivals", "client", 0);
        let mut at_s = 0.0;
        let job = |index: u32| {
            let begins_at = match *workload {
                Workload::Downloads { .. } => (index == 0).then_some(origin),
                Workload::Requests { per_s, .. } => {
                    at_s += arrivals.exponential(1.0 / per_s);
                    Some(origin.saturating_add(micros(at_s)))
                }
                Workload::Closures { every_s, .. } => Some(origin.saturating_add(micros(every_s * f64::from(index)))),
            };
            Job {
                begins_at,
                begun_at: None,
                ended_at: None,
                closed: false,
                pending: VecDeque::new(),
                asked: BTreeMap::new(),
                in_flight: Vec::new(),
                delivered: (0, 0),
                progress: (0, 0),
                asking: false,
                review_at: None,
                doubled: Doubled::new(),
                given_up: BTreeMap::new(),
            }
        };
        Jobs { first: 0, jobs: (0..self.jobs).map(job).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunks_of_a_closure_add_up_to_it() {
        let closures = |closure_bytes, chunk_bytes| Workload::Closures {
            requests: 1,
            closure_bytes,
            chunk_bytes,
            every_s: 1.0,
            deadline_s: 1.0,
            in_flight: 1,
        };
        for (closure, chunk) in [(10, 3), (9, 3), (2, 5), (1, 1)] {
            let work = Work::of(&closures(closure, chunk));
            assert_eq!((0..work.ranges).map(|range| work.bytes(range)).sum::<u64>(), closure);
        }
    }
}
