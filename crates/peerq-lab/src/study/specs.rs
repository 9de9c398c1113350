//! The study of the selector specification: a figure or more for each of its invariants A to G (SEL-05, §4.4), for ours, the selector published under the same
//! specification, and the yardstick.
//!
//! Which plan and figure shows an invariant is data (`specs.toml`). Two of them no plan can show. F: runs and replacements are asked for twice and compared to the
//! byte. G: decisions and outcomes are timed with 256 and with 4096 peers; the figure is the power of their number that time grows with, 1 being proportional.
//! Each row has a goal, and ours meets or misses it; a figure that does not exist meets none. Everything is a function of the seeds but two: G, and how often the
//! published selector replaces alike, which is what F is about.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::{self, Check, Plan, PlanError};
use crate::report::{OURS, Summary, YARDSTICK, aligned};

/// Policies of the table, where nobody asks for others.
pub(super) const POLICIES: [&str; 3] = [OURS, "published", YARDSTICK];

/// Rows, as they are written down.
#[derive(Deserialize)]
struct Written {
    invariants: Vec<WrittenInvariant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenInvariant {
    id: String,
    name: String,
    says: String,
    #[serde(default)]
    rows: Vec<WrittenRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    shows: String,
    plan: String,
    check: Check,
}

/// What is written down.
///
/// # Errors
/// None in a released laboratory.
fn written() -> Result<Written, PlanError> {
    toml::from_str(include_str!("specs.toml")).map_err(|error| PlanError::Malformed {
        file: "specs.toml".to_owned(),
        line: 1,
        field: "(study)".to_owned(),
        reason: error.message().to_owned(),
    })
}

/// The plans of the study, each with the checks of its rows in place of its own, for every policy.
pub(super) fn plans() -> Result<Vec<Plan>, PlanError> {
    let mut plans: Vec<Plan> = Vec::new();
    for row in written()?.invariants.into_iter().flat_map(|invariant| invariant.rows) {
        let place = match plans.iter().position(|plan| plan.name == row.plan) {
            Some(place) => place,
            None => {
                let mut plan = plan::find(&row.plan)?.remove(0);
                plan.checks.clear();
                plan.policies = Some(POLICIES.map(str::to_owned).to_vec());
                plans.push(plan);
                plans.len() - 1
            }
        };
        plans[place].checks.extend(POLICIES.map(|policy| of_policy(&row.check, policy)));
    }
    plans.iter().try_for_each(Plan::check)?;
    Ok(plans)
}

fn of_policy(check: &Check, policy: &str) -> Check {
    Check { policy: Some(policy.to_owned()), ..check.clone() }
}

/// The whole study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Specs {
    /// Columns, in order.
    pub policies: Vec<String>,
    /// The invariants, A to G.
    pub invariants: Vec<Invariant>,
}

/// One invariant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invariant {
    /// Its letter.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it asks for.
    pub says: String,
    /// What shows it.
    pub rows: Vec<Row>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is, in words.
    pub shows: String,
    /// The plan it comes from; none where it is not from a plan's runs.
    pub plan: Option<String>,
    /// The goal, in words.
    pub want: String,
    /// By policy; null where there is nothing to say.
    pub values: BTreeMap<String, Option<f64>>,
    /// Whether ours meets the goal.
    pub met: bool,
}

impl Row {
    /// A row that is not from a plan's runs: at most or at least a bound.
    pub(super) fn measured(shows: &str, want: Bound, values: BTreeMap<String, Option<f64>>) -> Row {
        let met = values.get(OURS).copied().flatten().is_some_and(|got| want.is_kept(got));
        Row { shows: shows.to_owned(), plan: None, want: want.to_string(), values, met }
    }
}

/// A goal for a figure that no check computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn is_kept(self, got: f64) -> bool {
        match self {
            Bound::AtLeast(bound) => got >= bound,
            Bound::AtMost(bound) => got <= bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtLeast(bound) => write!(f, ">= {bound}"),
            Bound::AtMost(bound) => write!(f, "<= {bound}"),
        }
    }
}

/// The study of these results, with the rows of F and G, which others measure.
///
/// # Errors
/// None in a released laboratory.
pub(super) fn specs(summaries: &[Summary], repeats: Vec<Row>, work: Row) -> Result<Specs, PlanError> {
    let ran = |name: &&str| summaries.iter().any(|summary| summary.policies.iter().any(|(policy, _)| policy == name));
    let policies: Vec<String> = POLICIES.into_iter().filter(ran).map(str::to_owned).collect();
    let mut invariants = Vec::new();
    for invariant in written()?.invariants {
        let mut rows: Vec<Row> = invariant.rows.iter().map(|row| of_runs(row, summaries, &policies)).collect();
        match invariant.id.as_str() {
            "F" => rows.extend(repeats.iter().cloned()),
            "G" => rows.push(work.clone()),
            _ => {}
        }
        let WrittenInvariant { id, name, says, .. } = invariant;
        invariants.push(Invariant { id, name, says, rows });
    }
    Ok(Specs { policies, invariants })
}

fn of_runs(row: &WrittenRow, summaries: &[Summary], policies: &[String]) -> Row {
    let summary = summaries.iter().find(|summary| summary.plan.plan == row.plan);
    let judged = |policy: &String| {
        let check = of_policy(&row.check, policy);
        summary.and_then(|summary| summary.checks.iter().find(|judged| judged.check == check))
    };
    Row {
        shows: row.shows.clone(),
        plan: Some(row.plan.clone()),
        want: row.check.want_in_words(),
        values: policies.iter().map(|policy| (policy.clone(), judged(policy).and_then(|judged| judged.got))).collect(),
        met: judged(&OURS.to_owned()).is_some_and(|judged| judged.ok),
    }
}

impl Specs {
    /// The rows that ours misses: the letter and what it shows.
    pub fn missed(&self) -> Vec<String> {
        let rows = self.invariants.iter().flat_map(|one| one.rows.iter().map(move |row| (&one.id, row)));
        rows.filter(|(_, row)| !row.met).map(|(id, row)| format!("{id}, {}", row.shows)).collect()
    }
}

impl fmt::Display for Specs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |policy: &String| if policy == YARDSTICK { "yardstick".to_owned() } else { policy.clone() };
        let mut head = vec!["invariant".to_owned(), "goal".to_owned()];
        head.extend(self.policies.iter().map(shown));
        head.push(String::new());
        let mut lines = vec![head];
        for row in self.invariants.iter().flat_map(|invariant| &invariant.rows) {
            let mut line = vec![format!("   {}", row.shows), row.want.clone()];
            line.extend(self.policies.iter().map(|policy| number(row.values.get(policy).copied().flatten())));
            line.push(if row.met { "met   " } else { "missed" }.to_owned());
            lines.push(line);
        }
        let table = aligned(&lines);
        let mut lines = table.lines();
        writeln!(f, "{}", lines.next().unwrap_or_default())?;
        for invariant in &self.invariants {
            writeln!(f, "{}  {}: {}", invariant.id, invariant.name, invariant.says)?;
            for line in lines.by_ref().take(invariant.rows.len()) {
                writeln!(f, "{line}")?;
            }
        }
        let rows: usize = self.invariants.iter().map(|invariant| invariant.rows.len()).sum();
        writeln!(
            f,
            "\n{} of {rows} goals met; bytes, requests, peers and runs are shares of all",
            rows - self.missed().len()
        )
    }
}

/// A figure, as it is shown.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "—".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 0.1 || value == 0.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::Laboratory;
    use crate::report::{Lines, Selection, run, summarise};
    use crate::study::Study;

    fn nothing(shows: &str) -> Row {
        Row::measured(shows, Bound::AtMost(1.0), BTreeMap::new())
    }

    /// The cheapest plans of the study, over one seed.
    fn some() -> Lines {
        let mut plans = Study::Specs.plans().unwrap();
        plans.retain(|plan| ["s1-convergence", "c27-10-peers"].contains(&plan.name.as_str()));
        run(&Laboratory, &plans, &Selection { seeds: Some(1), ..Selection::default() }, &|_| ()).unwrap()
    }

    #[test]
    fn every_invariant_has_a_plan_or_a_measure_and_every_check_can_be_judged() {
        let written = written().unwrap();
        let ids: String = written.invariants.iter().map(|invariant| invariant.id.as_str()).collect();
        assert_eq!(ids, "ABCDEFG");
        for invariant in &written.invariants {
            assert_eq!(invariant.rows.is_empty(), ["F", "G"].contains(&invariant.id.as_str()), "{}", invariant.id);
            assert!(invariant.rows.iter().all(|row| row.shows.chars().count() <= 50), "{}", invariant.id);
        }
        plans().unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn each_figure_is_the_policys_own_and_ours_is_judged() {
        let study = specs(&summarise(&some()), vec![nothing("again")], nothing("growth")).unwrap();
        assert_eq!(study.policies, POLICIES);
        let fast = &study.invariants[0].rows[2];
        assert!(fast.met && fast.values[OURS].is_some_and(|share| share >= 0.85), "{fast:?}");
        assert!(fast.values["published"] < fast.values[YARDSTICK], "{fast:?}");
        let text = study.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let rows: usize = study.invariants.iter().map(|invariant| invariant.rows.len()).sum();
        assert_eq!(text.lines().filter(|line| line.ends_with("  met") || line.ends_with("missed")).count(), rows);
    }

    #[test]
    fn what_was_not_run_is_missed() {
        let study = specs(&[], vec![nothing("again")], nothing("growth")).unwrap();
        assert!(study.invariants.iter().all(|invariant| invariant.rows.iter().all(|row| !row.met)));
        assert_eq!(study.missed().len(), study.invariants.iter().map(|one| one.rows.len()).sum::<usize>());
    }
}
