//! Results as text tables for a terminal.

use std::fmt::Write;

use super::summary::{PolicyFigures, geometric_means};
use super::{Summary, YARDSTICK};

/// One line per plan: whether it is met, and how each policy stands to the yardstick; the geometric means last.
pub fn compare_table(summaries: &[Summary]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in summaries.iter().flat_map(|summary| &summary.policies) {
        if name != YARDSTICK && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut head = vec!["plan".to_owned(), "part".to_owned(), "met".to_owned()];
    head.extend(names.iter().map(|name| (*name).to_owned()));
    let mut rows = vec![head];
    for summary in summaries {
        let mut row = vec![summary.plan.plan.clone(), format!("{:?}", summary.plan.part), verdict(summary).to_owned()];
        for name in &names {
            let one = summary.policies.iter().find(|(policy, _)| policy == name).map(|(_, one)| one);
            row.push(one.map_or("-".to_owned(), |one| ratios(one.yardstick_p50, one.yardstick_p99)));
        }
        rows.push(row);
    }
    let means = geometric_means(summaries);
    let mut last = vec!["geometric mean".to_owned(), String::new(), String::new()];
    last.extend(names.iter().map(|name| {
        let (p50, p99) = means.get(*name).copied().unwrap_or_default();
        ratios(p50, p99)
    }));
    rows.push(last);
    format!("p50 / p99 of completion over the yardstick's\n{}", aligned(&rows))
}

/// Everything of one plan.
pub fn plan_table(summary: &Summary) -> String {
    let plan = &summary.plan;
    let mut text = format!("{} ({}): {}\n{}\n\n", plan.plan, plan.scenario, verdict(summary), plan.about);
    let mut rows = vec![
        ["policy", "p50 s", "p95 s", "p99 s", "/yardstick", "missed", "hostile", "credited", "wasted", "panics"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (name, one) in &summary.policies {
        rows.push([name.clone()].into_iter().chain(cells(one)).collect());
    }
    text.push_str(&aligned(&rows));
    text.push('\n');
    for judged in &summary.checks {
        let got = judged.got.map_or("nothing to measure".to_owned(), |got| got.to_string());
        let mark = if judged.ok { "ok  " } else { "FAIL" };
        let _ =
            writeln!(text, "{mark} {}: want {}, got {got}", judged.check.what_in_words(), judged.check.want_in_words());
    }
    for (name, one) in &summary.policies {
        if let Some(error) = &one.error {
            let _ = writeln!(text, "FAIL {name}: {error}");
        }
    }
    if summary.missing > 0 {
        let _ = writeln!(text, "FAIL {} runs are missing: merge the other shards", summary.missing);
    }
    text
}

/// The figures of one policy: completion, over the yardstick, shares, credited over delivered, panics.
pub(super) fn cells(one: &PolicyFigures) -> [String; 9] {
    [
        number(one.p50_s),
        number(one.p95_s),
        number(one.p99_s),
        ratios(one.yardstick_p50, one.yardstick_p99),
        percent(one.deadline_miss),
        percent(one.hostile_share),
        one.credited_over_delivered.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
        percent(one.duplicate_share),
        one.panics.to_string(),
    ]
}

/// Whether a plan is met, in a word or two.
pub(super) fn verdict(summary: &Summary) -> &'static str {
    if summary.met { "met" } else { "not yet met" }
}

fn ratios(p50: Option<f64>, p99: Option<f64>) -> String {
    match (p50, p99) {
        (Some(p50), Some(p99)) => format!("{p50:.2} / {p99:.2}"),
        _ => "-".to_owned(),
    }
}

pub(super) fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 1.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.4}"),
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{:.1} %", value * 100.0))
}

/// Rows of cells as lines: the first column to the left, figures to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            match column {
                0 => text.push_str(&format!("{cell}{gap}")),
                _ => text.push_str(&format!("  {gap}{cell}")),
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}
