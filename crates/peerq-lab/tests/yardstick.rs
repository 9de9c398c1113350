//! The yardstick is best or tied in every built-in world (LAB-3): a planner that some policy beats measures nothing.
//!
//! `YARDSTICK_PLANS=a1,c31` and `YARDSTICK_SEEDS=5` choose other plans than the quick ones and more seeds.

use std::env::var;

use peerq_lab::measure::completion::completion_s;
use peerq_lab::model::RunResult;
use peerq_lab::plan::{Plan, builtin};
use peerq_lab::policy::PolicyKind;
use peerq_lab::sim::{Observer, run};

/// Better than the yardstick by less than this is a tie: losses and jitter fall where they fall.
const TIE: f64 = 0.97;

struct Nobody;

impl Observer for Nobody {}

fn runs(plan: &Plan, kind: PolicyKind, seeds: u64) -> Vec<RunResult> {
    let one = |seed| {
        let mut policy = kind.build(&plan.world, &plan.workload, seed).expect("a built-in world is possible");
        run(&plan.world, &plan.workload, policy.as_mut(), seed, &mut Nobody).expect("a built-in world is possible")
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
        if var("YARDSTICK_DUMP").is_ok() {
            for kind in PolicyKind::ALL {
                let own = runs(plan, kind, 1);
                let t: Vec<f64> = own[0].requests.iter().map(|r| r.end_s.unwrap_or(9e9) - r.start_s).collect();
                println!("{}: {:.3?}", kind.name(), &t[..t.len().min(60)]);
                let mut m: std::collections::BTreeMap<String, (u64, u64, u32, u32)> = Default::default();
                for p in &own[0].peers {
                    let e = m.entry(p.group.clone()).or_default();
                    *e = (e.0 + p.bytes, e.1 + p.wasted_bytes, e.2 + p.requests, e.3 + p.failures);
                }
                println!("   {m:?}");
            }
        }
        for kind in PolicyKind::ALL.into_iter().filter(|kind| *kind != PolicyKind::Clairvoyant) {
            let own = quantiles(&runs(plan, kind, seeds));
            let ratios = [0, 1].map(|at| own[at].unwrap_or(f64::INFINITY) / best[at].unwrap_or(f64::INFINITY));
            let mark = if ratios.iter().any(|ratio| *ratio < TIE) { " <" } else { "" };
            println!("    {:12} {:8.3} {:8.3}{mark}", kind.name(), ratios[0], ratios[1]);
            if !mark.is_empty() {
                beaten.push(format!("{} by {}: {ratios:.3?}", plan.name, kind.name()));
            }
        }
    }
    assert!(beaten.is_empty(), "the yardstick is beaten\n{}", beaten.join("\n"));
}
