//! The compare document: what a comparison gave, as one JSON object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Summary;
use super::summary::{PolicyFigures, geometric_means};
use crate::study::{Adversaries, Drawn, Specs};

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compare {
    /// The plans, in the order they were run.
    pub plans: Vec<ComparePlan>,
    /// Geometric means over the plans of each policy's ratios to the yardstick.
    pub geomean: BTreeMap<String, Means>,
    /// The study of adversaries, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adversaries: Option<Adversaries>,
    /// The study of the selector specification, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specs: Option<Specs>,
    /// The study of drawn worlds, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Drawn>,
}

/// One plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparePlan {
    /// Its name.
    pub name: String,
    /// Its scenario.
    pub scenario: String,
    /// Whether all checks pass.
    pub met: bool,
    /// The checks.
    pub checks: Vec<CompareCheck>,
    /// The policies. Times in seconds, shares as fractions, `yardstick_*` as ratios; null where there is nothing to say.
    pub policies: BTreeMap<String, PolicyFigures>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// Means of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// Of the medians' ratios.
    pub p50: Option<f64>,
    /// Of the 99th percentiles' ratios.
    pub p99: Option<f64>,
}

/// The document of these results.
pub fn compare(summaries: &[Summary]) -> Compare {
    let means = geometric_means(summaries).into_iter().map(|(name, (p50, p99))| (name, Means { p50, p99 }));
    let plans = summaries.iter().map(plan).collect();
    Compare { plans, geomean: means.collect(), adversaries: None, specs: None, drawn: None }
}

fn plan(summary: &Summary) -> ComparePlan {
    let checks = summary.checks.iter().map(|judged| CompareCheck {
        what: judged.check.what_in_words(),
        want: judged.check.want_in_words(),
        got: judged.got,
        ok: judged.ok,
    });
    ComparePlan {
        name: summary.plan.plan.clone(),
        scenario: summary.plan.scenario.clone(),
        met: summary.met,
        checks: checks.collect(),
        policies: summary.policies.iter().cloned().collect(),
    }
}
