//! The plots of a plan: completion times, where the bytes came from, what peers were credited with.

use std::fmt::Write;

use crate::report::quantile::quantile;
use crate::report::series::Series;
use crate::report::svg::{Axis, COLOURS, Line, escaped, lines, stacked};
use crate::report::{RunLine, Summary};

use super::{Palette, named, side};

/// Points of a distribution's line.
const POINTS: usize = 80;

/// The distribution of completion times, a line per policy.
pub(super) fn completion(html: &mut String, summary: &Summary, palette: &Palette) {
    let drawn: Vec<_> = summary.policies.iter().filter(|(_, one)| !one.times_s.is_empty()).collect();
    if drawn.is_empty() {
        return;
    }
    let series: Vec<Line> = (drawn.iter())
        .map(|(policy, one)| Line {
            colour: palette.colour(policy),
            style: Palette::style(policy),
            title: policy.clone(),
            points: (0..=POINTS)
                .map(|point| point as f64 / POINTS as f64)
                .map(|share| quantile(&one.times_s, share).map(|time| (time, share)))
                .collect(),
        })
        .collect();
    let x = Axis { name: "completion time, s", logarithmic: true };
    let y = Axis { name: "share of requests", logarithmic: false };
    let plot = lines(&format!("{}: distribution of completion times", summary.plan.plan), &x, &y, &series);
    let keys = drawn.iter().map(|(policy, _)| named(policy, palette));
    figure(html, "Requests done within a time", &plot, keys);
}

/// Where the bytes of a run came from, over time.
pub(super) fn shares(html: &mut String, run: &RunLine) {
    let Some(series) = &run.series else { return };
    let groups: Vec<_> = (series.groups.iter().enumerate())
        .map(|(index, group)| (index, group.name.clone(), group.bytes.iter().map(|bytes| *bytes as f64).collect()))
        .collect();
    let plot = stacked(&format!("{}, {}: share of bytes over time", run.plan, run.policy), series.bin_s, &groups);
    figure(html, &format!("{}: where its bytes came from (seed {})", run.policy, run.seed), &plot, keys(series));
}

/// What the groups were credited with in a run, over time; nothing where the policy credits no rates.
pub(super) fn standing(html: &mut String, run: &RunLine) {
    let Some(series) = &run.series else { return };
    let mut drawn = Vec::new();
    for (index, group) in series.groups.iter().enumerate() {
        let at = |bin: usize| (bin as f64 + 0.5) * series.bin_s;
        // The line is broken where most of the group is demoted.
        let points: Vec<_> = (group.credited.iter().zip(&group.demoted).enumerate())
            .map(|(bin, (rate, demoted))| rate.filter(|_| *demoted < 0.5).map(|rate| (at(bin), rate)))
            .collect();
        if points.iter().any(Option::is_some) {
            drawn.push(Line { colour: index, style: "", title: group.name.clone(), points });
        }
    }
    if drawn.is_empty() {
        return;
    }
    let x = Axis { name: "virtual seconds", logarithmic: false };
    let y = Axis { name: "credited, bytes/s", logarithmic: true };
    let plot = lines(&format!("{}, {}: credited rates over time", run.plan, run.policy), &x, &y, &drawn);
    let caption = format!("{}: what peers are credited with; gaps are demotions (seed {})", run.policy, run.seed);
    figure(html, &caption, &plot, keys(series));
}

fn keys(series: &Series) -> impl Iterator<Item = String> {
    series.groups.iter().enumerate().map(|(index, group)| {
        format!("<span class=\"key c{}\"></span>{} ({})", index % COLOURS, escaped(&group.name), side(group.kind))
    })
}

fn figure(html: &mut String, caption: &str, plot: &str, keys: impl Iterator<Item = String>) {
    let _ = writeln!(html, "<figure>\n<figcaption>{}</figcaption>\n{plot}\n<p class=\"keys\">", escaped(caption));
    for key in keys {
        let _ = writeln!(html, "<span>{key}</span>");
    }
    html.push_str("</p>\n</figure>\n");
}
