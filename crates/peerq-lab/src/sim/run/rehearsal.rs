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
use crate::measure::completion::NEVER_S;
use crate::model::{Workload, World};
use crate::policy::Policy;
use crate::sim::check::Impossible;
use crate::sim::queue::{Event, seconds};

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
                    cost_s += if job.ended_at.is_some() { passed_s } else { passed_s + NEVER_S };
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
                Event::Begins { job } | Event::AskAgain { job } | Event::Reviews { job }
                    if self.jobs.get(job).is_none() => {}
                event => self.handle(event),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use peer_quality::measure::Delivery;
    use peer_quality::units::{Bytes, Time};

    use super::*;
    use crate::model::{Behaviour, Change, Loss, PeerGroup, Range};
    use crate::policy::{Ask, Grant, PeerIndex};
    use crate::sim::run;

    /// Asks the peer of the way it goes, and does what a rehearsal found.
    #[derive(Clone, Default)]
    struct Only {
        peer: u32,
        answered: u64,
        turns: Vec<Turn>,
    }

    impl Policy for Only {
        fn name(&self) -> &'static str {
            "only"
        }

        fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
            for turn in self.turns.iter().filter(|turn| turn.answered == self.answered) {
                self.peer = turn.way as u32;
            }
            self.answered += 1;
            vec![Grant { peer: PeerIndex(self.peer), ranges: ask.free }]
        }

        fn sent(&mut self, _: PeerIndex, _: Bytes, _: Time) {}

        fn ended(&mut self, _: PeerIndex, _: u64, _: Bytes, _: &Delivery, _: Time) {}
    }

    impl Rehearses for Only {
        fn ways(&self, _ranges: u32) -> usize {
            2
        }

        fn go(&mut self, _content: u64, way: usize) {
            self.peer = way as u32;
        }

        fn forget_all_but(&mut self, _contents: &[u64]) {}
    }

    fn downloads(requests: u32, ranges: u32) -> Workload {
        let (sources, in_flight) = (1, 2);
        Workload::Downloads {
            requests,
            ranges,
            range_bytes: 1_000_000,
            sources,
            in_flight,
            pause_s: 1.0,
            range_timeout_s: 30.0,
        }
    }

    #[test]
    fn the_better_way_is_gone_at_each_turn() {
        let change = Change { at_s: 10.0, rate: Some(Range::Fixed(1e5)), ..Change::default() };
        let peers = vec![
            PeerGroup { changes: vec![change], ..PeerGroup::honest("first", 1, 1e7, 50.0) },
            PeerGroup::honest("second", 1, 3e6, 50.0),
        ];
        let world = World { peers, ..World::default() };
        let turns = rehearse(&world, &downloads(20, 4), Only::default(), 1).expect("a possible world");
        let ways: Vec<usize> = turns.iter().map(|turn| turn.way).collect();
        assert_eq!((ways.first(), ways.last()), (Some(&0), Some(&1)), "{ways:?}");
    }

    #[test]
    fn what_was_rehearsed_is_what_comes_and_no_worse_than_either_way() {
        let lossy = |name: &str, behaviour| PeerGroup {
            jitter: 0.2,
            loss: Loss::Random(1e-3),
            behaviour,
            ..PeerGroup::honest(name, 1, 1e7, 50.0)
        };
        let peers = vec![lossy("one", Behaviour::Lacks { share: 0.3 }), lossy("other", Behaviour::Honest)];
        let (world, workload) = (World { peers, ..World::default() }, downloads(12, 1));
        let took = |mut policy: Only| {
            let result = run(&world, &workload, &mut policy, 3, &mut ()).expect("a possible world");
            (result.requests.iter().map(crate::measure::completion::time_s).sum::<f64>(), policy.answered)
        };
        let turns = rehearse(&world, &workload, Only::default(), 3).expect("a possible world");
        assert_eq!(turns, rehearse(&world, &workload, Only::default(), 3).expect("a possible world"));
        let last = turns.last().expect("a turn where each job begins").answered;
        let (rehearsed_s, answered) = took(Only { turns, ..Only::default() });
        assert!(last < answered, "every turn is reached");
        for peer in 0..2 {
            let (alone_s, _) = took(Only { peer, ..Only::default() });
            assert!(rehearsed_s <= alone_s, "{rehearsed_s} with turns, {alone_s} with peer {peer}");
        }
    }
}
