//! The study of drawn worlds: every policy in worlds that nobody chose ([`plan::drawn`]), against the yardstick.
//!
//! A policy has one line: the geometric means of its ratios to the yardstick over all worlds, the worst of each with its world (`peerq lab compare drawn-17` shows that one
//! alone), and in how many worlds its median is more than a tenth behind that of round robin, which knows nothing of anybody.
//! The yardstick knows what will happen, so a ratio below 1 is luck of its heuristic.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Goal;
use crate::plan::{self, Plan};
use crate::report::{ENGINE, OURS, PolicyFigures, Summary, YARDSTICK, aligned};

/// Worlds of the study.
pub const WORLDS: u64 = 60;

/// Seeds of each world.
const SEEDS: u32 = 3;

/// Who knows nothing of anybody.
const PLAIN: &str = "round-robin";

/// A median this many times another is behind it.
const BEHIND: f64 = 1.1;

/// The plans.
pub(super) fn plans() -> Vec<Plan> {
    (1..=WORLDS).map(|seed| Plan { seeds: Some(SEEDS), ..plan::drawn(seed) }).collect()
}

/// The whole study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// Worlds in which the yardstick has times to compare with.
    pub worlds: usize,
    /// The policies, in order.
    pub policies: Vec<Row>,
    /// The goals.
    pub goals: Vec<Goal>,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub policy: String,
    /// Of medians.
    pub p50: Ratios,
    /// Of 99th percentiles.
    pub p99: Ratios,
    /// Worlds in which its median is more than a tenth behind round robin's.
    pub behind_plain: usize,
}

/// Ratios to the yardstick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Their geometric mean; null without any.
    pub mean: Option<f64>,
    /// The largest, and in which world.
    pub worst: Option<(f64, String)>,
}

/// A ratio of a policy's.
type Ratio = fn(&PolicyFigures) -> Option<f64>;

/// The study of these results.
pub fn drawn(summaries: &[Summary]) -> Drawn {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in summaries.iter().flat_map(|summary| &summary.policies) {
        if name != YARDSTICK && !names.contains(&name) {
            names.push(name);
        }
    }
    let policies: Vec<Row> = names.iter().map(|name| row(summaries, name)).collect();
    let worlds = summaries.iter().filter(|summary| figures(summary, YARDSTICK).is_some_and(|one| one.p50_s.is_some()));
    let mut study = Drawn { worlds: worlds.count(), policies, goals: Vec::new() };
    for ours in [OURS, ENGINE] {
        if let Some(row) = study.policies.iter().find(|row| row.policy == ours) {
            study.goals.extend([study.leads(row), is_never_behind(row)]);
        }
    }
    study
}

fn figures<'a>(summary: &'a Summary, policy: &str) -> Option<&'a PolicyFigures> {
    summary.policies.iter().find(|(name, _)| name == policy).map(|(_, figures)| figures)
}

fn row(summaries: &[Summary], policy: &str) -> Row {
    let ratios = |of: Ratio| -> Ratios {
        let each = summaries
            .iter()
            .filter_map(|summary| Some((of(figures(summary, policy)?).filter(|ratio| *ratio > 0.0)?, summary)));
        let each: Vec<(f64, &Summary)> = each.collect();
        let worst = each.iter().max_by(|one, other| one.0.total_cmp(&other.0));
        let ln: f64 = each.iter().map(|(ratio, _)| ratio.ln()).sum();
        Ratios {
            mean: (!each.is_empty()).then(|| (ln / each.len() as f64).exp()),
            worst: worst.map(|(ratio, summary)| (*ratio, summary.plan.plan.clone())),
        }
    };
    let is_behind = |summary: &&Summary| {
        let median = |name: &str| figures(summary, name)?.p50_s;
        median(policy).zip(median(PLAIN)).is_some_and(|(own, plain)| own > BEHIND * plain)
    };
    Row {
        policy: policy.to_owned(),
        p50: ratios(|one| one.yardstick_p50),
        p99: ratios(|one| one.yardstick_p99),
        behind_plain: summaries.iter().filter(is_behind).count(),
    }
}

impl Drawn {
    /// Whether no rival is nearer to the yardstick, at the median or at the 99th percentile.
    fn leads(&self, ours: &Row) -> Goal {
        let rivals = || self.policies.iter().filter(|row| ![OURS, ENGINE].contains(&row.policy.as_str()));
        let best = |of: fn(&Row) -> Option<f64>| {
            let rated = rivals().filter_map(|row| Some((of(row)?, &row.policy)));
            rated.min_by(|one, other| one.0.total_cmp(&other.0))
        };
        let judge = |name: &str, of: fn(&Row) -> Option<f64>| match (of(ours), best(of)) {
            (Some(own), Some((rival, policy))) => {
                (own <= rival, format!("{name} {own:.2} against {rival:.2} of {policy}"))
            }
            (Some(own), None) => (true, format!("{name} {own:.2}, without a rival")),
            (None, _) => (false, format!("{name} has nothing to compare with")),
        };
        let judged = [judge("p50", |row| row.p50.mean), judge("p99", |row| row.p99.mean)];
        Goal {
            what: format!("{}: nearest to the yardstick on average", ours.policy),
            met: judged.iter().all(|(met, _)| *met),
            got: judged.map(|(_, got)| got).join("; "),
        }
    }
}

fn is_never_behind(ours: &Row) -> Goal {
    Goal {
        what: format!("{}: in no world more than a tenth behind {PLAIN} at the median", ours.policy),
        met: ours.behind_plain == 0,
        got: format!("in {}", ours.behind_plain),
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<f64>| value.map_or("—".to_owned(), |value| format!("{value:.2}"));
        let worst = |ratios: &Ratios| {
            ratios.worst.as_ref().map_or("—".to_owned(), |(ratio, world)| format!("{ratio:.1} in {world}"))
        };
        let head = ["policy", "p50", "p99", "worst p50", "worst p99", "behind round robin"];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        for row in &self.policies {
            lines.push(vec![
                row.policy.clone(),
                number(row.p50.mean),
                number(row.p99.mean),
                worst(&row.p50),
                worst(&row.p99),
                format!("in {}", row.behind_plain),
            ]);
        }
        writeln!(f, "Times over those of the yardstick in {} drawn worlds, geometric means", self.worlds)?;
        write!(f, "{}\n\n", aligned(&lines))?;
        self.goals.iter().try_for_each(|goal| writeln!(f, "{goal}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::Toy;
    use crate::report::{Selection, run, summarise};

    fn study(policies: &[&str]) -> Drawn {
        let policies = Some(policies.iter().map(|name| (*name).to_owned()).collect());
        let selection = Selection { seeds: Some(1), policies, ..Selection::default() };
        let plans: Vec<Plan> = plans().into_iter().take(4).collect();
        drawn(&summarise(&run(&Toy, &plans, &selection, &|_| ()).unwrap()))
    }

    #[test]
    fn every_policy_has_a_line_and_ours_have_goals() {
        let study = study(&["peerq", "round-robin", "clairvoyant"]);
        let names: Vec<&str> = study.policies.iter().map(|row| row.policy.as_str()).collect();
        assert_eq!(names, ["peerq", "round-robin"]);
        assert_eq!((study.worlds, study.goals.len()), (4, 2));
        let text = study.to_string();
        assert!(text.contains("in 4 drawn worlds") && text.contains("drawn-"), "{text}");
    }

    #[test]
    fn without_a_yardstick_nothing_is_met() {
        let study = study(&["peerq", "round-robin"]);
        assert!(study.worlds == 0 && !study.goals[0].met, "{study}");
        assert_eq!(drawn(&[]), Drawn { worlds: 0, policies: Vec::new(), goals: Vec::new() });
    }
}
