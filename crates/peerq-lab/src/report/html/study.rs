//! Studies in a report: the same tables as on a terminal, with every policy that ran.

use std::fmt::Write;

use super::{OURS, Palette, named};
use crate::report::svg::escaped;
use crate::study::adversaries::{Row, percent, times};
use crate::study::drawn::Ratios;
use crate::study::specs::number;
use crate::study::{Adversaries, Drawn, Goal, Specs};

/// The study of adversaries.
pub(super) fn adversaries(html: &mut String, study: &Adversaries, palette: &Palette) {
    html.push_str("<section id=\"adversaries\">\n<h2>Adversaries</h2>\n");
    table(html, "Hostile share of bytes, %", &study.policies, &study.hostile_share, percent, palette);
    table(html, "Deadlines missed, %", &study.policies, &study.deadline_miss, percent, palette);
    let title = "Credited / delivered rate of hostile peers, the largest";
    table(html, title, &study.policies, &study.credited_over_delivered, times, palette);
    goals(html, &study.goals);
    html.push_str("</section>\n");
}

/// The study of drawn worlds.
pub(super) fn drawn(html: &mut String, study: &Drawn, palette: &Palette) {
    html.push_str("<section id=\"drawn\">\n<h2>Drawn worlds</h2>\n<div class=\"scroll\"><table>\n");
    let _ = write!(html, "<caption>Times over those of the yardstick in {} worlds</caption>", study.worlds);
    html.push_str("<thead><tr><th>policy</th><th>p50</th><th>p99</th><th>worst p50</th><th>worst p99</th>");
    html.push_str("<th>behind round robin</th></tr></thead>\n<tbody>\n");
    let shown = |value: Option<f64>| value.map_or("—".to_owned(), |value| format!("{value:.2}"));
    for row in &study.policies {
        let _ = write!(html, "<tr><th>{}</th>", named(&row.policy, palette));
        let worst = |ratios: &Ratios| ratios.worst.as_ref().map(|(ratio, _)| *ratio);
        for value in [row.p50.mean, row.p99.mean, worst(&row.p50), worst(&row.p99)] {
            let _ = write!(html, "<td>{}</td>", shown(value));
        }
        let _ = writeln!(html, "<td>in {}</td></tr>", row.behind_plain);
    }
    html.push_str("</tbody></table></div>\n");
    goals(html, &study.goals);
    html.push_str("</section>\n");
}

fn goals(html: &mut String, goals: &[Goal]) {
    html.push_str("<ul class=\"checks\">\n");
    for goal in goals {
        let _ = writeln!(html, "<li>{} {}: {}</li>", chip(goal.met), escaped(&goal.what), escaped(&goal.got));
    }
    html.push_str("</ul>\n");
}

fn table(
    html: &mut String,
    title: &str,
    policies: &[String],
    rows: &[Row],
    shown: fn(f64) -> String,
    palette: &Palette,
) {
    let _ = write!(html, "<div class=\"scroll\"><table>\n<caption>{title}</caption>\n<thead><tr><th>plan</th>");
    policies.iter().for_each(|policy| {
        let _ = write!(html, "<th>{}</th>", named(policy, palette));
    });
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let _ = write!(html, "<tr><th>{}</th>", escaped(&row.plan));
        policies.iter().for_each(|policy| {
            let _ = write!(html, "<td>{}</td>", row.value(policy).map_or("—".to_owned(), shown));
        });
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

/// The study of the selector specification.
pub(super) fn specs(html: &mut String, study: &Specs, palette: &Palette) {
    html.push_str(
        "<section id=\"specs\">\n<h2>Selector specification</h2>\n<div class=\"scroll\"><table>\n<thead><tr>",
    );
    html.push_str("<th>invariant</th><th>goal</th>");
    study.policies.iter().for_each(|policy| {
        let _ = write!(html, "<th>{}</th>", named(policy, palette));
    });
    let _ = writeln!(html, "<th>{OURS}</th></tr></thead>\n<tbody>");
    for invariant in &study.invariants {
        let columns = study.policies.len() + 3;
        let words = format!("{}, {}: {}", invariant.id, invariant.name, invariant.says);
        let _ = writeln!(html, "<tr><th colspan=\"{columns}\">{}</th></tr>", escaped(&words));
        for row in &invariant.rows {
            let _ = write!(html, "<tr><th>{}</th><td>{}</td>", escaped(&row.shows), escaped(&row.want));
            study.policies.iter().for_each(|policy| {
                let value = row.values.get(policy).copied().flatten();
                let _ = write!(html, "<td>{}</td>", number(value));
            });
            let _ = writeln!(html, "<td>{}</td></tr>", chip(row.met));
        }
    }
    html.push_str("</tbody></table></div>\n</section>\n");
}

/// Whether a goal is met, as a coloured word.
pub(super) fn chip(met: bool) -> &'static str {
    if met { "<span class=\"chip met\">met</span>" } else { "<span class=\"chip unmet\">not met</span>" }
}
