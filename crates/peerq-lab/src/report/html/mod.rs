//! The report: one HTML file that opens without a network, on a phone too, light or dark as the reader's system is.
//!
//! Nothing in it is a script or comes from elsewhere; what is folded unfolds by HTML's own means.

mod document;
mod plots;
mod study;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::model::Kind;
use crate::study::Study;
use crate::study::adversaries::adversaries;
use crate::study::drawn::drawn;

use super::summary::geometric_means;
use super::svg::{COLOURS, escaped};
use super::table::{cells, number, verdict};
use super::{Lines, OURS, PolicyFigures, Summary, YARDSTICK, summarise};

pub use document::document_page;

const STYLE: &str = include_str!("style.css");

/// The page of these results.
pub fn page(lines: &Lines) -> String {
    let summaries = summarise(lines);
    let palette = Palette::of(&summaries);
    let mut html = begin();
    overview(&mut html, &summaries, &palette);
    if Study::Adversaries.is_of(lines) {
        study::adversaries(&mut html, &adversaries(&summaries), &palette);
    }
    if Study::Drawn.is_of(lines) {
        study::drawn(&mut html, &drawn(&summaries), &palette);
    }
    for summary in &summaries {
        section(&mut html, summary, lines, &palette);
    }
    end(html)
}

fn begin() -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n<title>peerq laboratory report</title>\n");
    let _ = write!(html, "<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n");
    html
}

fn end(mut html: String) -> String {
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

/// The colour of each policy, the same in every plot.
struct Palette(Vec<String>);

impl Palette {
    fn of(summaries: &[Summary]) -> Self {
        Palette::from_names(summaries.iter().flat_map(|summary| &summary.policies).map(|(name, _)| name))
    }

    fn from_names<'a>(policies: impl Iterator<Item = &'a String>) -> Self {
        let mut names: Vec<String> = Vec::new();
        for name in policies {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Palette(names)
    }

    fn colour(&self, policy: &str) -> usize {
        self.0.iter().position(|name| name == policy).unwrap_or(0) % COLOURS
    }

    fn style(policy: &str) -> &'static str {
        match policy {
            OURS => "bold",
            YARDSTICK => "dashed",
            _ => "",
        }
    }
}

fn overview(html: &mut String, summaries: &[Summary], palette: &Palette) {
    let met = summaries.iter().filter(|summary| summary.met).count();
    overview_table(html, met, summaries.len(), &geometric_means(summaries), palette);
    html.push_str("<nav aria-label=\"Plans\"><ul class=\"plans\">\n");
    for summary in summaries {
        let name = escaped(&summary.plan.plan);
        let _ = writeln!(html, "<li><a href=\"#{name}\">{name}</a> {}</li>", chip(summary));
    }
    html.push_str("</ul></nav>\n");
}

/// Geometric means by policy: (median, 99th percentile).
type Means = BTreeMap<String, (Option<f64>, Option<f64>)>;

fn overview_table(html: &mut String, met: usize, plans: usize, means: &Means, palette: &Palette) {
    let _ = write!(
        html,
        "<h1>peerq laboratory</h1>\n<p>{} of {} plans met. Ratios are completion times over those of the yardstick, a planner that knows every peer's true \
         rate and failures; 1 is as good as can be.</p>\n",
        met, plans
    );
    html.push_str("<div class=\"scroll\"><table>\n<caption>Geometric mean over all plans</caption>\n");
    html.push_str("<thead><tr><th>policy</th><th>p50</th><th>p99</th></tr></thead>\n<tbody>\n");
    for policy in &palette.0 {
        let (p50, p99) = means.get(policy).copied().unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><th>{}</th><td>{}</td><td>{}</td></tr>",
            named(policy, palette),
            number(p50),
            number(p99)
        );
    }
    html.push_str("</tbody></table></div>\n");
}

fn chip(summary: &Summary) -> String {
    let class = if summary.met { "met" } else { "unmet" };
    format!(
        "<span class=\"chip {class}\">{}</span> <span class=\"part\">part {:?}</span>",
        verdict(summary),
        summary.plan.part
    )
}

fn named(policy: &str, palette: &Palette) -> String {
    format!("<span class=\"key c{}\"></span>{}", palette.colour(policy), escaped(policy))
}

fn section(html: &mut String, summary: &Summary, lines: &Lines, palette: &Palette) {
    let plan = &summary.plan;
    let name = escaped(&plan.plan);
    let _ =
        write!(html, "<section id=\"{name}\">\n<h2>{name} {}</h2>\n<p>{}</p>\n", chip(summary), escaped(&plan.about));
    policies(html, summary, palette);
    checks(html, summary);
    html.push_str("<div class=\"plots\">\n");
    plots::completion(html, summary, palette);
    let runs: Vec<_> = lines.of_plan(&plan.plan).filter(|run| run.series.is_some()).collect();
    let ours = runs.iter().find(|run| run.policy == OURS).or(runs.first());
    if let Some(run) = ours {
        plots::shares(html, run);
        plots::standing(html, run);
    }
    html.push_str("</div>\n");
    let others: Vec<_> = runs.iter().filter(|run| ours.is_none_or(|ours| run.policy != ours.policy)).collect();
    if !others.is_empty() {
        html.push_str("<details><summary>Where the other policies' bytes came from</summary>\n<div class=\"plots\">\n");
        others.iter().for_each(|run| plots::shares(html, run));
        html.push_str("</div></details>\n");
    }
    html.push_str("</section>\n");
}

fn policies(html: &mut String, summary: &Summary, palette: &Palette) {
    html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for head in HEADS {
        let _ = write!(html, "<th>{head}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (policy, one) in &summary.policies {
        row(html, &named(policy, palette), policy, one);
    }
    html.push_str("</tbody></table></div>\n");
    for (policy, error) in summary.policies.iter().filter_map(|(name, one)| Some((name, one.error.as_ref()?))) {
        let _ = writeln!(html, "<p class=\"unmet\">{}: {}</p>", escaped(policy), escaped(error));
    }
}

const HEADS: [&str; 10] = [
    "policy",
    "p50 s",
    "p95 s",
    "p99 s",
    "over yardstick p50 / p99",
    "missed",
    "hostile",
    "credited / delivered",
    "wasted",
    "panics",
];

fn row(html: &mut String, shown: &str, policy: &str, one: &PolicyFigures) {
    let class = if policy == OURS { " class=\"ours\"" } else { "" };
    let _ = write!(html, "<tr{class}><th>{shown}</th>");
    for cell in cells(one) {
        let _ = write!(html, "<td>{}</td>", escaped(&cell));
    }
    html.push_str("</tr>\n");
}

fn checks(html: &mut String, summary: &Summary) {
    html.push_str("<ul class=\"checks\">\n");
    for judged in &summary.checks {
        let (class, mark) = if judged.ok { ("met", "met") } else { ("unmet", "not met") };
        let got = judged.got.map_or("nothing to measure yet".to_owned(), |got| got.to_string());
        let _ = writeln!(
            html,
            "<li><span class=\"chip {class}\">{mark}</span> {}: want {}, got {got}</li>",
            escaped(&judged.check.what_in_words()),
            escaped(&judged.check.want_in_words())
        );
    }
    if summary.missing > 0 {
        let _ =
            writeln!(html, "<li><span class=\"chip unmet\">not met</span> {} runs are missing</li>", summary.missing);
    }
    html.push_str("</ul>\n");
}

/// The side of a group, in a word.
fn side(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::Honest) => "honest",
        Some(Kind::Broken) => "broken",
        Some(Kind::Hostile) => "hostile",
        None => "unknown",
    }
}
