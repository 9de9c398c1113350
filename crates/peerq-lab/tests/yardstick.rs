//! The yardstick is best or tied in every built-in world (LAB-3): a planner that some policy beats measures nothing. To beat it is to be better at the median or at the
//! 99th percentile without being worse at the other.
//!
//! `YARDSTICK_PLANS=a1,c31` and `YARDSTICK_SEEDS=5` choose other plans than the quick ones and more seeds.

use std::env::var;

use peerq_lab::measure::completion::completion_s;
use peerq_lab::model::RunResult;
use peerq_lab::plan::{Plan, builtin};
use peerq_lab::policy::PolicyKind;
use peerq_lab::sim::run;

/// Better than the yardstick by less than this is a tie: losses and jitter fall where they fall.
const TIE: f64 = 0.97;

fn runs(plan: &Plan, kind: PolicyKind, seeds: u64) -> Vec<RunResult> {
    let one = |seed| {
        let mut policy = kind.build(&plan.world, &plan.workload, seed).expect("a built-in world is possible");
        run(&plan.world, &plan.workload, policy.as_mut(), seed, &mut ()).expect("a built-in world is possible")
    };
    (0..seeds).map(one).collect()
}

#[test]
fn no_policy_beats_the_yardstick() {
    let wanted = var("YARDSTICK_PLANS").ok();
    let seeds = var("YARDSTICK_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3);
    let mut plans = builtin().expect("the built-in plans are sound");
    plans.retain(|plan| match &wanted {
        Some(wanted) => wanted.split(',').any(|name| name == "all" || plan.name.starts_with(name)),
        None => plan.quick,
    });
    let mut beaten = Vec::new();
    for plan in &plans {
        let best = runs(plan, PolicyKind::Clairvoyant, seeds);
        let quantiles = |runs: &[RunResult]| [0.5, 0.99].map(|share| completion_s(runs, share));
        let best = quantiles(&best);
        println!("{:32} {best:.4?}", plan.name);
        for kind in PolicyKind::ALL.into_iter().filter(|kind| *kind != PolicyKind::Clairvoyant) {
            let own = quantiles(&runs(plan, kind, seeds));
            let ratios = [0, 1].map(|at| own[at].unwrap_or(f64::INFINITY) / best[at].unwrap_or(f64::INFINITY));
            // Better for most by making a few wait, or the other way round, is another choice, not a better one.
            let better = ratios.iter().any(|ratio| *ratio < TIE) && ratios.iter().all(|ratio| *ratio < 2.0 - TIE);
            let mark = if better { " <" } else { "" };
            println!("    {:12} {:8.3} {:8.3}{mark}", kind.name(), ratios[0], ratios[1]);
            if !mark.is_empty() {
                beaten.push(format!("{} by {}: {ratios:.3?}", plan.name, kind.name()));
            }
        }
    }
    assert!(beaten.is_empty(), "the yardstick is beaten\n{}", beaten.join("\n"));
}
