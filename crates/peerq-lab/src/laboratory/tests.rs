//! The laboratory runs the built-in plans.

use crate::plan::{builtin, find};
use crate::report::{Lines, Selection, compare, run, summarise};

use super::Laboratory;

fn lines(plans: &[crate::plan::Plan], seeds: u32, threads: usize) -> Lines {
    let selection = Selection { seeds: Some(seeds), threads: Some(threads), ..Selection::default() };
    run(&Laboratory, plans, &selection, &|_| ()).unwrap()
}

#[test]
fn threads_cannot_be_seen_in_results() {
    let plans = find("a1").unwrap();
    assert_eq!(lines(&plans, 3, 1), lines(&plans, 3, 2));
}

#[test]
fn every_quick_plan_runs_under_every_policy() {
    let mut plans = builtin().unwrap();
    plans.retain(|plan| plan.quick && plan.scenario != "A15");
    let document = compare(&summarise(&lines(&plans, 1, 2)));
    for plan in &document.plans {
        assert!(plan.policies.values().all(|one| one.p50_s.is_some()), "{}", plan.name);
    }
}
