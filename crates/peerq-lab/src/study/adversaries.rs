//! The study of adversaries: every policy in the worlds of scenario B (LAB-2, LAB-3, LAB-4).
//!
//! Three figures, a table each with a row per plan and a column per policy:
//! - **hostile share**: bytes that peers delivered while they were hostile, useful or not, over all bytes. Who acts against us on the wire alone is hostile too; who
//!   turns against us later is not, before that: to use it while it was good is what all of them should do.
//! - **deadline misses**: closures late or never, over all with a deadline.
//! - **credited / delivered**: the rate that a policy's own estimate credits a hostile peer with, over the rate at which that peer really delivers: what its
//!   behaviour leaves of its link, of each reply where it slows replies one by one. Both are taken just after the latest bytes of that peer, when the policy has
//!   been told all that it will ever be told of it; what a peer turns into afterwards, unseen, is held against nobody, nor what the end
//!   of the run cuts off. The largest of all hostile peers and
//!   seeds counts, for one overrated peer is what an adversary needs.
//!
//! | policy | its estimate of a rate |
//! |---|---|
//! | peerq, published | `throughput_bps` of the peer's snapshot: of a range |
//! | engine | what the peer would be ranked by, where half of it at least is its own |
//! | msgrate | items per second of all its requests at once |
//! | round-robin, lowest-rtt, p2c, haskell | none: they credit nobody with a rate |
//!
//! FlashFlow (facts: networks §8) bounds the last by 1.33 for relays measured by trusted teams, the best bound published: the goal here.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Goal;
use crate::report::{ENGINE, OURS, PolicyFigures, Summary, YARDSTICK, aligned};

/// Largest credited over delivered rate that is good enough.
pub const CREDIT_MAX: f64 = 1.33;

/// Shares closer than this are the same: half a digit of what is shown.
const SAME_SHARE: f64 = 0.000_5;

/// The whole study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adversaries {
    /// Columns, in order.
    pub policies: Vec<String>,
    /// Bytes from hostile peers over all bytes.
    pub hostile_share: Vec<Row>,
    /// Deadlines missed over deadlines.
    pub deadline_miss: Vec<Row>,
    /// Rate credited over rate delivered.
    pub credited_over_delivered: Vec<Row>,
    /// The goals.
    pub goals: Vec<Goal>,
}

/// One plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub plan: String,
    /// By policy; null where there is nothing to say.
    pub values: BTreeMap<String, Option<f64>>,
}

/// One value of a column's.
type Condense = fn(&[f64]) -> Option<f64>;

impl Row {
    /// A policy's value.
    pub fn value(&self, policy: &str) -> Option<f64> {
        self.values.get(policy).copied().flatten()
    }
}

/// The study of these results.
pub fn adversaries(summaries: &[Summary]) -> Adversaries {
    let mut policies: Vec<String> = Vec::new();
    for (name, _) in summaries.iter().flat_map(|summary| &summary.policies) {
        if !policies.contains(name) {
            policies.push(name.clone());
        }
    }
    let rows = |of: fn(&PolicyFigures) -> Option<f64>| -> Vec<Row> {
        let row = |summary: &Summary| Row {
            plan: summary.plan.plan.clone(),
            values: summary.policies.iter().map(|(name, one)| (name.clone(), of(one))).collect(),
        };
        summaries.iter().map(row).collect()
    };
    let mut study = Adversaries {
        hostile_share: rows(|one| one.hostile_share),
        deadline_miss: rows(|one| one.deadline_miss),
        credited_over_delivered: rows(|one| one.credited_over_delivered),
        policies,
        goals: Vec::new(),
    };
    // A plan without hostile peers shows no share of theirs, rather than that there was none of it.
    let hostile = |row: &Row| row.values.values().any(|share| share.is_some_and(|share| share > 0.0));
    study.hostile_share.retain(hostile);
    let says_something = |row: &Row| row.values.values().any(Option::is_some);
    study.deadline_miss.retain(says_something);
    study.credited_over_delivered.retain(says_something);
    for ours in [OURS, ENGINE] {
        if study.policies.iter().any(|name| name == ours) {
            study.goals.extend([study.is_credited_little(ours), study.has_lowest_share(ours)]);
        }
    }
    study
}

impl Adversaries {
    fn is_credited_little(&self, ours: &str) -> Goal {
        let rated = || self.credited_over_delivered.iter().filter_map(|row| Some((row.value(ours)?, &row.plan)));
        let largest = rated().max_by(|one, other| one.0.total_cmp(&other.0));
        let above: Vec<String> = rated()
            .filter(|(ratio, _)| *ratio > CREDIT_MAX)
            .map(|(ratio, plan)| format!("{} in {plan}", times(ratio)))
            .collect();
        Goal {
            what: format!("{ours}: credited / delivered at most {CREDIT_MAX} in every plan"),
            got: match largest {
                None => "no hostile peer was credited with anything".to_owned(),
                Some((ratio, plan)) if above.is_empty() => format!("at most {}, in {plan}", times(ratio)),
                Some(_) => above.join(", "),
            },
            met: largest.is_some() && above.is_empty(),
        }
    }

    /// The mean share over the plans.
    fn mean_share(&self, name: &str) -> Option<f64> {
        mean(&self.hostile_share.iter().filter_map(|row| row.value(name)).collect::<Vec<_>>())
    }

    /// The average decides: to come last in one plan by luck is no merit of a policy that never looks at who delivers. Where a rival is lower is told all the same.
    fn has_lowest_share(&self, ours: &str) -> Goal {
        // Plans in which a rival is lower, by the lowest of them.
        let mut lower: BTreeMap<&String, Vec<&str>> = BTreeMap::new();
        let rated: Vec<&Row> = self.hostile_share.iter().filter(|row| row.value(ours).is_some()).collect();
        for row in &rated {
            let shares =
                self.policies.iter().filter(|name| is_rival(name)).filter_map(|name| Some((row.value(name)?, name)));
            if let Some((share, name)) = shares.min_by(|one, other| one.0.total_cmp(&other.0))
                && row.value(ours).is_some_and(|own| share + SAME_SHARE < own)
            {
                lower.entry(name).or_default().push(&row.plan);
            }
        }
        let lower: Vec<String> =
            lower.iter().map(|(name, plans)| format!("{name} is lower in {}", plans.join(", "))).collect();
        let rivals =
            self.policies.iter().filter(|name| is_rival(name)).filter_map(|name| Some((self.mean_share(name)?, name)));
        let best = rivals.min_by(|one, other| one.0.total_cmp(&other.0));
        let (met, got) = match (self.mean_share(ours), best) {
            (Some(own), Some((share, name))) => {
                (own <= share, format!("{} % against {} % of {name}", percent(own), percent(share)))
            }
            (Some(own), None) => (true, format!("{} %, without a rival", percent(own))),
            (None, _) => (false, "no hostile peer delivered anything".to_owned()),
        };
        Goal {
            what: format!("{ours}: lowest hostile share of bytes on average"),
            met,
            got: [got].into_iter().chain(lower).collect::<Vec<_>>().join("; "),
        }
    }

    /// One table; `last` condenses a column into its last line, under the name of what it does.
    fn table(&self, rows: &[Row], shown: fn(f64) -> String, (name, last): (&str, Condense)) -> String {
        let columns: Vec<&String> = self.policies.iter().filter(|name| *name != YARDSTICK).collect();
        // Names in two lines where they have two words: the table fits a terminal.
        let halves = |name: &&String| match name.split_once('-') {
            Some((first, second)) => (format!("{first}-"), second.to_owned()),
            None => (String::new(), (*name).clone()),
        };
        let (first, second): (Vec<String>, Vec<String>) = columns.iter().map(halves).unzip();
        let mut lines = vec![
            [String::new()].into_iter().chain(first).collect::<Vec<_>>(),
            ["plan".to_owned()].into_iter().chain(second).collect(),
        ];
        for row in rows {
            let cells = columns.iter().map(|name| row.value(name).map_or("—".to_owned(), shown));
            lines.push([row.plan.clone()].into_iter().chain(cells).collect());
        }
        let condensed = columns.iter().map(|policy| {
            let values: Vec<f64> = rows.iter().filter_map(|row| row.value(policy)).collect();
            last(&values).map_or("—".to_owned(), shown)
        });
        lines.push([name.to_owned()].into_iter().chain(condensed).collect());
        aligned(&lines)
    }
}

fn is_rival(name: &str) -> bool {
    ![OURS, ENGINE, YARDSTICK].contains(&name)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// A share in percent, as it is shown.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A ratio, as it is shown.
pub(crate) fn times(ratio: f64) -> String {
    if ratio >= 100.0 { format!("{ratio:.0}") } else { format!("{ratio:.2}") }
}

impl fmt::Display for Adversaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_shares = |rows| self.table(rows, percent, ("mean", mean));
        writeln!(f, "hostile share of bytes, %\n{}", of_shares(&self.hostile_share))?;
        writeln!(f, "deadlines missed, %\n{}", of_shares(&self.deadline_miss))?;
        let ratios = self.table(&self.credited_over_delivered, times, ("largest", largest));
        writeln!(f, "credited / delivered rate of hostile peers, the largest\n{ratios}")?;
        for goal in &self.goals {
            writeln!(f, "{goal}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{PLAN, Toy};
    use crate::report::{Lines, Selection, run, summarise};

    fn toy() -> Lines {
        run(&Toy, &[crate::plan::parse("toy.toml", PLAN).unwrap()], &Selection::default(), &|_| ()).unwrap()
    }

    fn goals(lines: &Lines) -> Vec<bool> {
        adversaries(&summarise(lines)).goals.iter().map(|goal| goal.met).collect()
    }

    #[test]
    fn figures_are_those_of_the_runs_and_fit_a_terminal() {
        let study = adversaries(&summarise(&toy()));
        assert_eq!(study.hostile_share[0].value("round-robin"), Some(0.5));
        assert_eq!(study.credited_over_delivered[0].value("peerq"), Some(1.2));
        assert!(study.deadline_miss.is_empty(), "the toy has no deadlines");
        let text = study.to_string();
        assert!(text.contains("50.0") && !text.contains(YARDSTICK), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn one_overrated_peer_in_one_seed_misses_the_bound() {
        let mut lines = toy();
        assert_eq!(goals(&lines), [true, true]);
        lines.runs.iter_mut().find(|run| run.policy == OURS).unwrap().credited_over_delivered = Some(1.34);
        assert_eq!(goals(&lines), [false, true]);
    }

    #[test]
    fn a_rival_with_a_lower_share_is_named_with_its_plan() {
        let mut lines = toy();
        lines.runs.iter_mut().filter(|run| run.policy == "round-robin").for_each(|run| run.hostile_bytes = 0);
        let study = adversaries(&summarise(&lines));
        assert!(!study.goals[1].met);
        assert_eq!(study.goals[1].got, "10.0 % against 0.0 % of round-robin; round-robin is lower in toy");
    }

    #[test]
    fn nobody_credited_is_no_bound_kept() {
        let mut lines = toy();
        lines.runs.iter_mut().for_each(|run| run.credited_over_delivered = None);
        assert_eq!(goals(&lines), [false, true]);
    }
}
