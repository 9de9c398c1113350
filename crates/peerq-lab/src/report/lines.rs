//! Results as JSON lines: one line per plan, one per run; readable apart, mergeable, and complete.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::plan::{Check, Part, Plan};

use super::Series;

/// Version of the form of the lines; raised when a reader of the old form would misread the new one.
pub const SCHEMA: u32 = 1;

/// Longest line that is read, bytes: far above any that is written, far below what hurts.
const MAX_LINE_BYTES: usize = 16 << 20;

/// A plan, as results need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanLine {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The plan's name.
    pub plan: String,
    /// Its scenario.
    pub scenario: String,
    /// The part it waits for.
    pub part: Part,
    /// World and right outcome.
    pub about: String,
    /// Its pass marks.
    pub checks: Vec<Check>,
    /// Runs of all shards together.
    pub runs: u32,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    /// The plan's name.
    pub plan: String,
    /// Place among the plan's runs, whatever the shards.
    pub run: u32,
    /// Who was asked for advice.
    pub policy: String,
    /// Whether this is the control world.
    #[serde(default)]
    pub control: bool,
    /// The seed.
    pub seed: u64,
    /// Why there is no result, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Seconds that requests took, in order of their start, thinned where there are many; one that never ended counts as an hour.
    pub times_s: Vec<f64>,
    /// Requests, before thinning.
    pub requests: u32,
    /// Requests that had a deadline.
    pub with_deadline: u32,
    /// Those of them that missed it.
    pub missed: u32,
    /// Bytes that arrived, of use or not.
    pub bytes: u64,
    /// Bytes that peers delivered while they were hostile.
    pub hostile_bytes: u64,
    /// Bytes of no use.
    pub wasted_bytes: u64,
    /// The largest rate credited to a hostile peer over the one it delivered at, just after its latest bytes; none where nothing was or nobody is credited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credited_over_delivered: Option<f64>,
    /// Panics of the policy.
    pub panics: u32,
    /// Simulated events.
    pub events: u64,
    /// Virtual seconds.
    pub seconds: f64,
    /// The figures of the plan's checks that are about this run, by the check's place.
    pub figures: BTreeMap<usize, Option<f64>>,
    /// Rates credited to the peers of groups whose estimates are compared with the control world's, in their order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credits: BTreeMap<String, Vec<Option<f64>>>,
    /// The run over time, for the first seed alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// A whole set of results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The plans, in order.
    pub plans: Vec<PlanLine>,
    /// The runs, by plan and place.
    pub runs: Vec<RunLine>,
}

/// Why results cannot be read or merged.
#[derive(Debug, Error)]
pub enum LinesError {
    /// The system could not read or write.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is not of this form.
    #[error("{file}:{line}: not a result: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The results were written by another version.
    #[error("{file}:{line}: results of schema {found}, this version reads {SCHEMA}; run the plans again")]
    Schema {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Its schema.
        found: u32,
    },
    /// Two files say different things of one run or plan.
    #[error("{plan}: {what} differs between the merged files; they are not shards of one run")]
    Conflict {
        /// The plan.
        plan: String,
        /// What differs.
        what: String,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Plan(PlanLine),
    Run(Box<RunLine>),
}

impl PlanLine {
    /// What results keep of a plan that has this many runs.
    pub fn of(plan: &Plan, runs: u32) -> Self {
        PlanLine {
            schema: SCHEMA,
            plan: plan.name.clone(),
            scenario: plan.scenario.clone(),
            part: plan.part,
            about: plan.about.clone(),
            checks: plan.checks.clone(),
            runs,
        }
    }
}

impl Lines {
    /// Reads what [`Lines::write`] wrote; `file` names it in errors.
    ///
    /// # Errors
    /// [`LinesError::Malformed`] and [`LinesError::Schema`] name the line.
    pub fn read(file: &str, input: impl BufRead) -> Result<Lines, LinesError> {
        let mut lines = Lines::default();
        for (index, text) in input.lines().enumerate() {
            let text = text.map_err(|source| LinesError::Io { file: file.to_owned(), source })?;
            let malformed = |reason: String| LinesError::Malformed { file: file.to_owned(), line: index + 1, reason };
            if text.len() > MAX_LINE_BYTES {
                return Err(malformed(format!("longer than {MAX_LINE_BYTES} bytes")));
            }
            if text.trim().is_empty() {
                continue;
            }
            let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
            match value.get("schema").and_then(serde_json::Value::as_u64) {
                Some(found) if found != u64::from(SCHEMA) => {
                    let found = u32::try_from(found).unwrap_or(u32::MAX);
                    return Err(LinesError::Schema { file: file.to_owned(), line: index + 1, found });
                }
                Some(_) => {
                    lines.plans.push(serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?);
                }
                None => lines.runs.push(serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?),
            }
        }
        lines.sort();
        Ok(lines)
    }

    /// Writes a line per plan and per run.
    ///
    /// # Errors
    /// What the output said.
    pub fn write(&self, mut out: impl Write) -> std::io::Result<()> {
        let plans = self.plans.iter().cloned().map(Line::Plan);
        let runs = self.runs.iter().cloned().map(|run| Line::Run(Box::new(run)));
        for line in plans.chain(runs) {
            serde_json::to_writer(&mut out, &line)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// All of several sets together; a run that several have is kept once. The result is that of one undivided run, byte for byte.
    ///
    /// # Errors
    /// [`LinesError::Conflict`] where they contradict each other.
    pub fn merge(parts: impl IntoIterator<Item = Lines>) -> Result<Lines, LinesError> {
        let mut all = Lines::default();
        for part in parts {
            for plan in part.plans {
                match all.plans.iter().find(|known| known.plan == plan.plan) {
                    None => all.plans.push(plan),
                    Some(known) if *known == plan => {}
                    Some(_) => return Err(LinesError::Conflict { plan: plan.plan, what: "the plan".to_owned() }),
                }
            }
            all.runs.extend(part.runs);
        }
        all.sort();
        for pair in all.runs.windows(2) {
            if pair[0].plan == pair[1].plan && pair[0].run == pair[1].run && pair[0] != pair[1] {
                let what = format!("run {} ({}, seed {})", pair[0].run, pair[0].policy, pair[0].seed);
                return Err(LinesError::Conflict { plan: pair[0].plan.clone(), what });
            }
        }
        all.runs.dedup();
        Ok(all)
    }

    /// The runs of a plan.
    pub fn of_plan<'a>(&'a self, plan: &'a str) -> impl Iterator<Item = &'a RunLine> {
        self.runs.iter().filter(move |run| run.plan == plan)
    }

    fn sort(&mut self) {
        let place: BTreeMap<&str, usize> =
            self.plans.iter().enumerate().map(|(index, plan)| (plan.plan.as_str(), index)).collect();
        self.runs.sort_by_key(|run| (place.get(run.plan.as_str()).copied().unwrap_or(usize::MAX), run.run));
    }
}
