//! Condenses the runs of a plan: figures per policy, and whether the plan's checks are met.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::yardstick::geometric_mean;
use crate::plan::{Check, Take, What};

use super::quantile::{quantile, rounded, sorted};
use super::{Lines, OURS, PlanLine, RunLine, YARDSTICK};

/// One policy in one plan, over all seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyFigures {
    /// Completion times of all requests of all seeds, seconds, ascending.
    #[serde(skip)]
    pub times_s: Vec<f64>,
    /// Median completion, seconds.
    pub p50_s: Option<f64>,
    /// 95th percentile.
    pub p95_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// Share of deadlines missed; none where there were none.
    pub deadline_miss: Option<f64>,
    /// Share of bytes that peers delivered while they were hostile.
    pub hostile_share: Option<f64>,
    /// Largest rate credited to a hostile peer over the one it delivered at, just after its latest bytes, over all peers and seeds; none where hostile peers
    /// delivered nothing or nobody is credited with a rate.
    #[serde(default)]
    pub credited_over_delivered: Option<f64>,
    /// Share of bytes that were of no use.
    pub duplicate_share: Option<f64>,
    /// Median over the yardstick's.
    pub yardstick_p50: Option<f64>,
    /// 99th percentile over the yardstick's.
    pub yardstick_p99: Option<f64>,
    /// Panics over all seeds.
    pub panics: u32,
    /// Runs.
    #[serde(skip)]
    pub runs: u32,
    /// The first reason why a run gave nothing.
    #[serde(skip)]
    pub error: Option<String>,
}

/// A check, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The check.
    pub check: Check,
    /// What came out; none where nothing can be said.
    pub got: Option<f64>,
    /// Whether it passes.
    pub ok: bool,
}

/// A plan's results.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The plan.
    pub plan: PlanLine,
    /// By policy, in the order of the runs.
    pub policies: Vec<(String, PolicyFigures)>,
    /// The checks, in the plan's order.
    pub checks: Vec<Judged>,
    /// Runs that are missing, such as those of other shards.
    pub missing: u32,
    /// Whether every check passes and every run is there.
    pub met: bool,
}

/// Condenses all plans.
pub fn summarise(lines: &Lines) -> Vec<Summary> {
    lines.plans.iter().map(|plan| summary(plan, &lines.of_plan(&plan.plan).collect::<Vec<_>>())).collect()
}

fn summary(plan: &PlanLine, runs: &[&RunLine]) -> Summary {
    let mut policies: Vec<(String, PolicyFigures)> = Vec::new();
    for run in runs {
        if !policies.iter().any(|(name, _)| *name == run.policy) {
            policies.push((run.policy.clone(), figures(runs, &run.policy)));
        }
    }
    let yardstick = policies.iter().find(|(name, _)| name == YARDSTICK).map(|(_, one)| (one.p50_s, one.p99_s));
    let yardstick = yardstick.unwrap_or_default();
    for (_, one) in &mut policies {
        one.yardstick_p50 = ratio(one.p50_s, yardstick.0);
        one.yardstick_p99 = ratio(one.p99_s, yardstick.1);
    }
    let checks: Vec<Judged> = (plan.checks.iter().enumerate())
        .map(|(index, check)| {
            let got = judge(index, check, runs).map(rounded);
            Judged { check: check.clone(), got, ok: check.passes(got) }
        })
        .collect();
    let missing = plan.runs.saturating_sub(runs.len() as u32);
    let failed = runs.iter().any(|run| run.error.is_some() && run.policy == OURS);
    let met = missing == 0 && !failed && !checks.is_empty() && checks.iter().all(|judged| judged.ok);
    Summary { plan: plan.clone(), policies, checks, missing, met }
}

fn figures(runs: &[&RunLine], policy: &str) -> PolicyFigures {
    let ours: Vec<&&RunLine> = runs.iter().filter(|run| run.policy == policy && !run.control).collect();
    let times_s = times(runs, policy, false, 0);
    let total = |of: fn(&RunLine) -> u64| ours.iter().map(|run| of(run) as f64).sum::<f64>();
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| rounded(part / whole));
    PolicyFigures {
        p50_s: quantile(&times_s, 0.5).map(rounded),
        p95_s: quantile(&times_s, 0.95).map(rounded),
        p99_s: quantile(&times_s, 0.99).map(rounded),
        deadline_miss: share(total(|run| run.missed.into()), total(|run| run.with_deadline.into())),
        hostile_share: share(total(|run| run.hostile_bytes), total(|run| run.bytes)),
        credited_over_delivered: ours.iter().filter_map(|run| run.credited_over_delivered).reduce(f64::max),
        duplicate_share: share(total(|run| run.wasted_bytes), total(|run| run.bytes)),
        yardstick_p50: None,
        yardstick_p99: None,
        panics: ours.iter().map(|run| run.panics).fold(0, u32::saturating_add),
        runs: ours.len() as u32,
        error: ours.iter().find_map(|run| run.error.clone()),
        times_s,
    }
}

/// Completion times over all seeds, ascending, without the first `skip` requests of each.
fn times(runs: &[&RunLine], policy: &str, control: bool, skip: u32) -> Vec<f64> {
    let of_policy = runs.iter().filter(|run| run.policy == policy && run.control == control);
    let kept = of_policy.flat_map(|run| {
        // Where times were thinned, so is the number of those to skip.
        let skip = u64::from(skip) * run.times_s.len() as u64 / u64::from(run.requests.max(1));
        run.times_s.iter().skip(skip as usize).copied()
    });
    sorted(kept.collect())
}

fn ratio(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let other = other.filter(|other| *other > 0.0)?;
    one.map(|one| rounded(one / other))
}

fn judge(index: usize, check: &Check, runs: &[&RunLine]) -> Option<f64> {
    let policy = check.policy.as_deref().unwrap_or(OURS);
    if !check.what.over_all_runs() {
        return take(check, runs.iter().filter_map(|run| run.figures.get(&index)).copied());
    }
    let skip = check.after_requests.unwrap_or(0);
    let own = |q: f64| quantile(&times(runs, policy, false, skip), q);
    let control = |q: f64| quantile(&times(runs, policy, true, skip), q);
    let of = |policy: &str, q: f64| quantile(&times(runs, policy, false, skip), q);
    let rival = check.rival.as_deref().unwrap_or(YARDSTICK);
    match check.what {
        What::P50S => own(0.5),
        What::P95S => own(0.95),
        What::P99S => own(0.99),
        What::DeadlineMiss => figures(runs, policy).deadline_miss,
        What::P50OverYardstick => ratio(own(0.5), of(YARDSTICK, 0.5)),
        What::P99OverYardstick => ratio(own(0.99), of(YARDSTICK, 0.99)),
        What::P50OverControl => ratio(own(0.5), control(0.5)),
        What::P99OverControl => ratio(own(0.99), control(0.99)),
        What::EstimateOverControl => take(check, over_control(check.group.as_deref()?, policy, runs)),
        What::P50OverRival => ratio(own(0.5), of(rival, 0.5)),
        What::P99OverRival => ratio(own(0.99), of(rival, 0.99)),
        _ => None,
    }
}

/// Of each seed, how far credited rates of a group's peers are from those in the control world, at the median.
fn over_control<'a>(group: &'a str, policy: &'a str, runs: &'a [&RunLine]) -> impl Iterator<Item = Option<f64>> + 'a {
    let of_policy = move |control| runs.iter().filter(move |run| run.policy == policy && run.control == control);
    of_policy(false).map(move |run| {
        let calm = of_policy(true).find(|calm| calm.seed == run.seed)?;
        let pairs = run.credits.get(group)?.iter().zip(calm.credits.get(group)?);
        let distance = |(own, calm): (&Option<f64>, &Option<f64>)| Some(((*own)? / (*calm)? - 1.0).abs());
        quantile(&sorted(pairs.filter_map(distance).collect()), 0.5)
    })
}

/// One value of the seeds'; a seed without a value leaves the check without one.
fn take(check: &Check, values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values = sorted(values.collect::<Option<Vec<f64>>>()?);
    match check.take {
        Take::Mean if values.is_empty() => None,
        Take::Mean => Some(values.iter().sum::<f64>() / values.len() as f64),
        Take::Median => quantile(&values, 0.5),
        Take::Worst if check.at_most.is_some() => values.last().copied(),
        Take::Worst => values.first().copied(),
    }
}

/// Geometric means over plans of the ratios to the yardstick, by policy: (median, 99th percentile). Plans without a ratio for a policy are not in its mean.
pub(super) fn geometric_means(summaries: &[Summary]) -> BTreeMap<String, (Option<f64>, Option<f64>)> {
    let mut ratios: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (name, one) in summaries.iter().flat_map(|summary| &summary.policies) {
        let entry = ratios.entry(name.clone()).or_default();
        entry.0.extend(one.yardstick_p50);
        entry.1.extend(one.yardstick_p99);
    }
    let mean = |ratios: Vec<f64>| geometric_mean(ratios).map(rounded);
    ratios.into_iter().map(|(name, (p50, p99))| (name, (mean(p50), mean(p99)))).collect()
}
