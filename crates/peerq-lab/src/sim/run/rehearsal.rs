//! Rehearses a run before it comes: at every turn each way to go on is tried out to its end, and the best one is taken (LAB-3).
//!
//! The one idea: a run is a pure function of its arguments, so a copy of it says exactly what a way would bring, losses and jitter included. This is the rollout algorithm
//! (Bertsekas, Tsitsiklis and Wu, "Rollout Algorithms for Combinatorial Optimization", Journal of Heuristics 3, 1997): the plan that comes of it is no worse than going
//! the best one way all along, as far as what it looks at goes.
//!
//! There is a turn where a job begins, and again where half of its ranges that were left at the last turn are asked for. A way costs the seconds that all jobs under way still
//! take, if no other came.

use std::collections::BTreeMap;

use super::Run;
use super::job::Job;
use crate::model::{Workload, World};
use crate::policy::Policy;
use crate::sim::check::Impossible;
use crate::sim::queue::{Event, seconds};

/// What a job costs that is abandoned, seconds: more than any that ends.
const ABANDONED_S: f64 = 1e6;

/// With more jobs than this under way no ways are tried: what is there is divided anyhow, and each try would run through all of them.
const CROWD: usize = 32;

/// A policy that can go several ways.
pub trait Rehearses: Policy + Clone {
    /// Ways to go on with a job of so many ranges, at least 1; the first is its own.
    fn ways(&self, ranges: u32) -> usize;

    /// Goes this way with `content` from now on.
    fn go(&mut self, content: u64, way: usize);

    /// Only these contents, ascending, are under way; others need not be remembered.
    fn forget_all_but(&mut self, contents: &[u64]);
}

/// A turn of a rehearsed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Questions that the policy had answered by then.
    pub answered: u64,
    /// The content that it goes on with.
    pub content: u64,
    /// The way.
    pub way: usize,
}

/// Rehearses the run of `policy`; the turns in their order.
///
/// # Errors
/// [`Impossible`] names the field that no world or workload can have.
pub fn rehearse<P: Rehearses>(
    world: &World,
    workload: &Workload,
    mut policy: P,
    seed: u64,
) -> Result<Vec<Turn>, Impossible> {
    super::with_run(world, workload, &mut policy, seed, &mut (), |run| {
        let mut turns = Vec::new();
        // Ranges left at which each job has its next turn.
        let mut next: BTreeMap<u32, u32> = BTreeMap::new();
        while let Some(event) = run.next() {
            if let Event::Begins { job } = event {
                turns.push(run.turn(job, Some(event)));
                next.insert(job, run.work.ranges / 2);
            }
            run.handle(event);
            next.retain(|job, left| *left > 0 && !run.jobs[*job].closed);
            for (job, left) in &mut next {
                let job_left = run.jobs[*job].pending.len() as u32;
                if run.jobs[*job].begun_at.is_some() && job_left <= *left {
                    turns.push(run.turn(*job, None));
                    *left = job_left / 2;
                }
            }
        }
        turns
    })
}

impl<P: Rehearses> Run<'_, P> {
    /// Tries every way to go on with a job, with the event that is about to happen, and goes the best.
    fn turn(&mut self, job: u32, event: Option<Event>) -> Turn {
        let open: Vec<u32> = self.under_way(job);
        let contents: Vec<u64> = open.iter().copied().map(u64::from).collect();
        self.policy.forget_all_but(&contents);
        let (first, last) = (open.first().copied().unwrap_or(job), open.last().copied().unwrap_or(job));
        let (mut best_s, mut way) = (f64::INFINITY, 0);
        let ways = if open.len() > CROWD { 0 } else { self.policy.ways(self.work.ranges) };
        for other in 0..ways {
            let mut policy = self.policy.clone();
            policy.go(job.into(), other);
            let mut nobody = ();
            let mut copy = self.copy(self.jobs.only(first, last), &mut policy, &mut nobody);
            if let Some(event) = event {
                copy.handle(event);
            }
            if let Some(cost_s) = copy.cost_s(open.clone(), best_s) {
                (best_s, way) = (cost_s, other);
            }
        }
        self.policy.go(job.into(), way);
        Turn { answered: self.answered, content: job.into(), way }
    }

    /// Jobs that are under way, with one that is about to begin, ascending.
    fn under_way(&self, begins: u32) -> Vec<u32> {
        let is_open = |(index, job): &(u32, &Job)| !job.closed && (job.begun_at.is_some() || *index == begins);
        self.jobs.iter().filter(is_open).map(|(index, _)| index).collect()
    }

    /// Seconds until each of the `open` jobs ends, in all; none if that is not less than `bound_s`.
    fn cost_s(mut self, mut open: Vec<u32>, bound_s: f64) -> Option<f64> {
        let begun = self.network.queue.now();
        let mut cost_s = 0.0;
        loop {
            let passed_s = seconds(self.network.queue.now() - begun);
            open.retain(|index| {
                let job = &self.jobs[*index];
                if job.closed {
                    cost_s += if job.ended_at.is_some() { passed_s } else { ABANDONED_S };
                }
                !job.closed
            });
            if cost_s + open.len() as f64 * passed_s >= bound_s {
                return None;
            }
            if open.is_empty() {
                return Some(cost_s);
            }
            match self.next()? {
                Event::Begins { job } | Event::AskAgain { job } if self.jobs.get(job).is_none() => {}
                event => self.handle(event),
            }
        }
    }
}
