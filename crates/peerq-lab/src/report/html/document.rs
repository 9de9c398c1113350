//! The report of a compare document: the tables alone. The document holds no runs, so there is nothing to plot.

use std::fmt::Write;

use crate::report::compare::{Compare, ComparePlan};
use crate::report::svg::escaped;

use super::study::{self, chip};
use super::{HEADS, Palette, begin, end, named, overview_table, row};

/// The page of this document.
pub fn document_page(document: &Compare) -> String {
    let palette = Palette::from_names(document.plans.iter().flat_map(|plan| plan.policies.keys()));
    let mut html = begin();
    let met = document.plans.iter().filter(|plan| plan.met).count();
    let means = document.geomean.iter().map(|(policy, means)| (policy.clone(), (means.p50, means.p99))).collect();
    overview_table(&mut html, met, document.plans.len(), &means, &palette);
    html.push_str(
        "<p>A compare document holds no runs, so there are no plots: keep the runs with <code>--output</code> and report those.</p>\n",
    );
    html.push_str("<nav aria-label=\"Plans\"><ul class=\"plans\">\n");
    for plan in &document.plans {
        let name = escaped(&plan.name);
        let _ = writeln!(html, "<li><a href=\"#{name}\">{name}</a> {}</li>", chip(plan.met));
    }
    html.push_str("</ul></nav>\n");
    if let Some(found) = &document.adversaries {
        study::adversaries(&mut html, found, &palette);
    }
    if let Some(found) = &document.specs {
        study::specs(&mut html, found, &palette);
    }
    if let Some(found) = &document.drawn {
        study::drawn(&mut html, found, &palette);
    }
    document.plans.iter().for_each(|plan| section(&mut html, plan, &palette));
    end(html)
}

fn section(html: &mut String, plan: &ComparePlan, palette: &Palette) {
    let (name, scenario) = (escaped(&plan.name), escaped(&plan.scenario));
    let _ = write!(html, "<section id=\"{name}\">\n<h2>{name} {}</h2>\n<p>Scenario {scenario}</p>\n", chip(plan.met));
    html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    HEADS.iter().for_each(|head| {
        let _ = write!(html, "<th>{head}</th>");
    });
    html.push_str("</tr></thead>\n<tbody>\n");
    plan.policies.iter().for_each(|(policy, one)| row(html, &named(policy, palette), policy, one));
    html.push_str("</tbody></table></div>\n<ul class=\"checks\">\n");
    for check in &plan.checks {
        let got = check.got.map_or("nothing to measure yet".to_owned(), |got| got.to_string());
        let (what, want) = (escaped(&check.what), escaped(&check.want));
        let _ = writeln!(html, "<li>{} {what}: want {want}, got {got}</li>", chip(check.ok));
    }
    html.push_str("</ul>\n</section>\n");
}
