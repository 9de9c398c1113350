//! Runs plans over policies and seeds on all cores.
//!
//! The one idea: a run's place is fixed before anything starts, and every run is pure; threads only decide who computes which place.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::measure::completion::time_s;
use crate::model::RunResult;
use crate::plan::{DEFAULT_SEEDS, Plan, What};

use super::figures::figure;
use super::quantile::{rounded, thin};
use super::{Bench, Lines, OURS, PlanLine, RunLine, RunLog, Series};

/// Most completion times kept of a run.
const MAX_TIMES: usize = 1024;

/// What to run, besides the plans.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Seeds of each plan; the plan's own number where absent.
    pub seeds: Option<u32>,
    /// Policies; the plan's own where absent.
    pub policies: Option<Vec<String>>,
    /// The part of the runs that is ours.
    pub shard: Shard,
    /// Threads; as many as there are cores where absent.
    pub threads: Option<usize>,
}

/// Part `index` of `of`, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

impl Default for Shard {
    fn default() -> Self {
        Shard { index: 1, of: 1 }
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `i/n`, such as `2/4`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Shard { index, of }),
            _ => Err(format!("`{text}` is not a shard: write i/n with i from 1 to n, such as 2/4")),
        }
    }
}

/// How far a set of runs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs that ended.
    pub done: usize,
    /// All runs.
    pub all: usize,
    /// Simulated events so far.
    pub events: u64,
}

struct Job<'a> {
    plan: &'a Plan,
    world: crate::model::World,
    policy: String,
    control: bool,
    seed: u64,
    run: u32,
}

/// Runs the plans and gives their lines. The result does not depend on the number of threads; `watch` is called after each run, from any of them.
///
/// # Errors
/// A policy that the bench does not have is named, together with those it has.
pub fn run(
    bench: &dyn Bench,
    plans: &[Plan],
    selection: &Selection,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<Lines, String> {
    let mut lines = Lines::default();
    let mut jobs = Vec::new();
    for plan in plans {
        let of_plan = jobs_of(bench, plan, selection)?;
        lines.plans.push(PlanLine::of(plan, of_plan.len() as u32));
        let ours = |job: &Job<'_>| job.run % selection.shard.of == selection.shard.index - 1;
        jobs.extend(of_plan.into_iter().filter(ours));
    }
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = selection.threads.unwrap_or_else(cores).clamp(1, jobs.len().max(1));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Progress { done: 0, all: jobs.len(), events: 0 }));
    let results: Mutex<BTreeMap<usize, RunLine>> = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(place) else { break };
            let line = run_one(bench, job);
            let progress = {
                let mut done = unpoisoned(&done);
                done.done += 1;
                done.events += line.events;
                *done
            };
            unpoisoned(&results).insert(place, line);
            watch(progress);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    lines.runs = std::mem::take(&mut *unpoisoned(&results)).into_values().collect();
    Ok(lines)
}

/// The lock, whoever panicked while holding it: what it guards is whole after every statement.
fn unpoisoned<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn jobs_of<'a>(bench: &dyn Bench, plan: &'a Plan, selection: &Selection) -> Result<Vec<Job<'a>>, String> {
    let known = bench.policies();
    let wanted = selection.policies.as_ref().or(plan.policies.as_ref());
    if let Some(unknown) = wanted.into_iter().flatten().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("{}: no policy is named `{unknown}`; there are {}", plan.name, known.join(", ")));
    }
    let policies = known.iter().filter(|name| wanted.is_none_or(|wanted| wanted.iter().any(|one| one == *name)));
    let seeds = u64::from(selection.seeds.or(plan.seeds).unwrap_or(DEFAULT_SEEDS));
    let control = plan.control_world();
    let mut jobs = Vec::new();
    for policy in policies {
        for (world, control) in [(Some(&plan.world), false), (control.as_ref(), true)] {
            let Some(world) = world else { continue };
            for seed in 1..=seeds {
                let run = jobs.len() as u32;
                jobs.push(Job { plan, world: world.clone(), policy: (*policy).to_owned(), control, seed, run });
            }
        }
    }
    Ok(jobs)
}

fn run_one(bench: &dyn Bench, job: &Job<'_>) -> RunLine {
    let asks_order = job.plan.checks.iter().any(|check| check.what == What::OrderKept);
    let predictions = job.plan.checks.iter().any(|check| check.what == What::PredictionError);
    let views = !job.control && (job.seed == 1 || asks_order);
    let mut log = RunLog { views, predictions, ..RunLog::default() };
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| {
        bench.run(&job.world, &job.plan.workload, &job.policy, job.seed, &mut log)
    }));
    let line = RunLine {
        plan: job.plan.name.clone(),
        run: job.run,
        policy: job.policy.clone(),
        control: job.control,
        seed: job.seed,
        ..RunLine::default()
    };
    match ran {
        Ok(Ok(result)) => measured(line, job, &result, &log),
        Ok(Err(reason)) => RunLine { error: Some(reason), ..line },
        // A policy's own panics are caught where it is called; this one is the laboratory's.
        Err(_) => RunLine { error: Some("the simulation panicked".to_owned()), panics: 1, ..line },
    }
}

fn measured(line: RunLine, job: &Job<'_>, result: &RunResult, log: &RunLog) -> RunLine {
    let times: Vec<f64> = result.requests.iter().map(|request| rounded(time_s(request))).collect();
    let missed = |request: &&crate::model::RequestResult| {
        request.deadline_s.is_some_and(|deadline| request.end_s.is_none_or(|end| end > deadline))
    };
    let is_about_this = |check: &&crate::plan::Check| {
        !job.control && !check.what.over_all_runs() && check.policy.as_deref().unwrap_or(OURS) == job.policy
    };
    let figures = (job.plan.checks.iter().enumerate())
        .filter(|(_, check)| is_about_this(check))
        .map(|(index, check)| (index, figure(check, result, log).filter(|value| value.is_finite()).map(rounded)))
        .collect();
    let credits_of = |group: &String| {
        let of_group = result.peers.iter().filter(|peer| peer.group == *group);
        of_group.map(|peer| peer.credited_rate.filter(|rate| rate.is_finite()).map(rounded)).collect()
    };
    let compared = |check: &&crate::plan::Check| {
        check.what == What::EstimateOverControl && check.policy.as_deref().unwrap_or(OURS) == job.policy
    };
    let groups = job.plan.checks.iter().filter(compared).filter_map(|check| check.group.clone());
    let sum = |peers: &mut dyn Iterator<Item = u64>| peers.fold(0u64, u64::saturating_add);
    RunLine {
        times_s: thin(&times, MAX_TIMES),
        requests: result.requests.len() as u32,
        with_deadline: result.requests.iter().filter(|request| request.deadline_s.is_some()).count() as u32,
        missed: result.requests.iter().filter(missed).count() as u32,
        bytes: sum(&mut result.peers.iter().map(|peer| peer.bytes.saturating_add(peer.wasted_bytes))),
        hostile_bytes: sum(&mut result.peers.iter().map(|peer| peer.hostile_bytes)),
        wasted_bytes: sum(&mut result.peers.iter().map(|peer| peer.wasted_bytes)),
        credited_over_delivered: largest_credit(result),
        panics: result.panics,
        events: result.events,
        seconds: rounded(result.seconds),
        figures,
        credits: groups.map(|group| (group.clone(), credits_of(&group))).collect(),
        series: (job.seed == 1 && !job.control).then(|| Series::of(result, log)),
        ..line
    }
}

fn largest_credit(result: &RunResult) -> Option<f64> {
    result.peers.iter().filter_map(|peer| peer.credited_over_delivered).reduce(f64::max).map(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;
    use crate::report::testing::{PLAN, Toy};
    use crate::report::{compare, summarise};

    fn toy(selection: &Selection) -> Lines {
        run(&Toy, &[parse("toy.toml", PLAN).unwrap()], selection, &|_| ()).unwrap()
    }

    fn text(lines: &Lines) -> String {
        let mut out = Vec::new();
        lines.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn results_are_the_same_bytes_on_one_thread_and_on_three() {
        let on = |threads| text(&toy(&Selection { threads: Some(threads), ..Selection::default() }));
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn shards_written_read_and_merged_are_the_undivided_run_byte_for_byte() {
        let shard = |index| {
            let shard = Shard { index, of: 3 };
            let written = text(&toy(&Selection { shard, ..Selection::default() }));
            Lines::read("shard", written.as_bytes()).unwrap()
        };
        let merged = Lines::merge([shard(3), shard(1), shard(2)]).unwrap();
        assert_eq!(text(&merged), text(&toy(&Selection::default())));
        let part = summarise(&shard(1));
        assert!(part[0].missing > 0 && !part[0].met, "a shard alone is no verdict");
    }

    #[test]
    fn results_that_contradict_each_other_do_not_merge() {
        let one = toy(&Selection::default());
        let mut other = one.clone();
        other.runs[4].panics = 7;
        let error = Lines::merge([one, other]).unwrap_err().to_string();
        assert!(error.starts_with("toy: run 4"), "{error}");
    }

    #[test]
    fn figures_and_verdicts_are_those_of_the_arithmetic() {
        let document = serde_json::to_value(compare(&summarise(&toy(&Selection::default())))).unwrap();
        let plan = &document["plans"][0];
        assert_eq!((&plan["name"], &plan["scenario"], &plan["met"]), (&"toy".into(), &"A0".into(), &false.into()));
        let ok: Vec<bool> = plan["checks"].as_array().unwrap().iter().map(|one| one["ok"] == true).collect();
        assert_eq!(ok, [true, true, false, true, true, false], "{document:#}");
        assert_eq!(plan["checks"][1]["got"], 0.1);
        assert_eq!(plan["checks"][2]["got"], 0.5);
        assert_eq!(plan["checks"][5]["got"], serde_json::Value::Null, "a signal nobody can raise is not there");
        assert_eq!(plan["policies"]["clairvoyant"]["yardstick_p50"], 1.0);
        assert_eq!(plan["policies"]["round-robin"]["hostile_share"], 0.5);
        assert!((document["geomean"]["peerq"]["p50"].as_f64().unwrap() - 1.1).abs() < 0.01);
    }

    #[test]
    fn an_unknown_policy_is_named_with_those_there_are() {
        let selection = Selection { policies: Some(vec!["oracle".to_owned()]), ..Selection::default() };
        let error = run(&Toy, &[parse("toy.toml", PLAN).unwrap()], &selection, &|_| ()).unwrap_err();
        assert!(error.contains("`oracle`") && error.contains("clairvoyant"), "{error}");
    }

    #[test]
    fn a_shard_is_written_as_index_of_count() {
        assert_eq!("2/4".parse(), Ok(Shard { index: 2, of: 4 }));
        for wrong in ["0/4", "5/4", "2", "a/b", "1/0"] {
            assert!(wrong.parse::<Shard>().unwrap_err().contains("2/4"), "{wrong}");
        }
    }
}
