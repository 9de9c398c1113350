//! Studies in a report: the same tables as on a terminal, with every policy that ran.

use std::fmt::Write;

use super::{OURS, Palette, named};
use crate::report::svg::escaped;
use crate::study::adversaries::{Row, percent, times};
use crate::study::specs::number;
use crate::study::{Adversaries, Specs};

/// The study of adversaries.
pub(super) fn adversaries(html: &mut String, study: &Adversaries, palette: &Palette) {
    html.push_str("<section id=\"adversaries\">\n<h2>Adversaries</h2>\n");
    table(html, "Hostile share of bytes, %", &study.policies, &study.hostile_share, percent, palette);
    table(html, "Deadlines missed, %", &study.policies, &study.deadline_miss, percent, palette);
    let title = "Credited / delivered rate of hostile peers, the largest";
    table(html, title, &study.policies, &study.credited_over_delivered, times, palette);
    html.push_str("<ul class=\"checks\">\n");
    for goal in &study.goals {
        let _ = writeln!(html, "<li>{} {}: {}</li>", chip(goal.met), escaped(&goal.what), escaped(&goal.got));
    }
    html.push_str("</ul>\n</section>\n");
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
