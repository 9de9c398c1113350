//! The compare document: what a comparison gave, as one JSON object.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Summary;
use super::summary::geometric_means;

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compare {
    /// The plans, in the order they were run.
    pub plans: Vec<ComparePlan>,
    /// Geometric means over the plans of each policy's ratios to the yardstick.
    pub geomean: BTreeMap<String, Means>,
}

/// One plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparePlan {
    /// Its name.
    pub name: String,
    /// Its scenario.
    pub scenario: String,
    /// Whether all checks pass.
    pub met: bool,
    /// The checks.
    pub checks: Vec<CompareCheck>,
    /// The policies.
    pub policies: BTreeMap<String, CompareSums>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareCheck {
    /// The figure, in words.
    pub what: String,
    /// The bound, in words.
    pub want: String,
    /// What came out; null where nothing can be said.
    pub got: Option<f64>,
    /// Whether it passes.
    pub ok: bool,
}

/// One policy. Times in seconds, shares as fractions, `yardstick_*` as ratios; null where there is nothing to say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareSums {
    /// Median completion.
    pub p50_s: Option<f64>,
    /// 95th percentile.
    pub p95_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// Share of deadlines missed.
    pub deadline_miss: Option<f64>,
    /// Share of bytes from hostile peers.
    pub hostile_share: Option<f64>,
    /// Share of bytes of no use.
    pub duplicate_share: Option<f64>,
    /// Median over the yardstick's.
    pub yardstick_p50: Option<f64>,
    /// 99th percentile over the yardstick's.
    pub yardstick_p99: Option<f64>,
    /// Panics.
    pub panics: u32,
}

/// Means of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Means {
    /// Of the medians' ratios.
    pub p50: Option<f64>,
    /// Of the 99th percentiles' ratios.
    pub p99: Option<f64>,
}

/// The document of these results.
pub fn compare(summaries: &[Summary]) -> Compare {
    let means = geometric_means(summaries).into_iter().map(|(name, (p50, p99))| (name, Means { p50, p99 }));
    Compare { plans: summaries.iter().map(plan).collect(), geomean: means.collect() }
}

fn plan(summary: &Summary) -> ComparePlan {
    let checks = summary.checks.iter().map(|judged| CompareCheck {
        what: judged.check.what_in_words(),
        want: judged.check.want_in_words(),
        got: judged.got,
        ok: judged.ok,
    });
    let policies = summary.policies.iter().map(|(name, one)| {
        let sums = CompareSums {
            p50_s: one.p50_s,
            p95_s: one.p95_s,
            p99_s: one.p99_s,
            deadline_miss: one.deadline_miss,
            hostile_share: one.hostile_share,
            duplicate_share: one.duplicate_share,
            yardstick_p50: one.yardstick_p50,
            yardstick_p99: one.yardstick_p99,
            panics: one.panics,
        };
        (name.clone(), sums)
    });
    ComparePlan {
        name: summary.plan.plan.clone(),
        scenario: summary.plan.scenario.clone(),
        met: summary.met,
        checks: checks.collect(),
        policies: policies.collect(),
    }
}
