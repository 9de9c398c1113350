//! Worlds that cannot be, and checks that contradict themselves, are refused with the reason before anything runs.

use crate::model::World;
use crate::sim::{check_workload, check_world};

use super::{Check, MAX_SEEDS, Plan};

/// Most peers of a world; beyond it a run no longer fits the memory of a small machine.
const MAX_PEERS: u64 = 100_000;

/// The field at fault, and why.
pub(super) struct Impossible {
    pub(super) field: String,
    pub(super) reason: String,
}

type Checked = Result<(), Impossible>;

fn refuse(field: impl Into<String>, reason: impl Into<String>) -> Checked {
    Err(Impossible { field: field.into(), reason: reason.into() })
}

/// Refuses what cannot be run or judged.
pub(super) fn check(plan: &Plan) -> Checked {
    let named_well = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if !named_well(&plan.name) {
        return refuse("name", "a plan's name is lower-case letters, digits and `-`");
    }
    if let Some(seeds) = plan.seeds
        && !(1..=MAX_SEEDS).contains(&seeds)
    {
        return refuse("seeds", format!("between 1 and {MAX_SEEDS}"));
    }
    simulated(plan)?;
    if plan.world.peers.iter().map(|group| u64::from(group.count)).sum::<u64>() > MAX_PEERS {
        return refuse("world.peers", format!("more than {MAX_PEERS} peers"));
    }
    if let Some(control) = plan.control_world() {
        for name in plan.control.iter().flat_map(|control| &control.without) {
            known_group(&plan.world, name, "control.without")?;
        }
        if control.peers.is_empty() {
            return refuse("control.without", "nobody is left in the control world");
        }
    }
    plan.checks.iter().enumerate().try_for_each(|(index, check)| mark(plan, check, &format!("checks[{index}]")))
}

/// What the simulator would refuse, under the names that a plan has for it.
fn simulated(plan: &Plan) -> Checked {
    let named = |part: &str, impossible: crate::sim::Impossible| Impossible {
        field: format!("{part}.{}", impossible.field),
        reason: impossible.flaw.to_string(),
    };
    check_world(&plan.world).map_err(|impossible| named("world", impossible))?;
    check_workload(&plan.workload).map_err(|impossible| named("workload", impossible))
}

fn mark(plan: &Plan, check: &Check, path: &str) -> Checked {
    let at = |field: &str| format!("{path}.{field}");
    let known = check.what.arguments();
    if let Some(name) = check.given().find(|name| !known.iter().any(|(known, _)| known == name)) {
        return refuse(at(name), "this figure has no such argument");
    }
    if let Some((name, _)) = known.iter().find(|(name, required)| *required && !check.given().any(|it| it == *name)) {
        return refuse(at("what"), format!("this figure needs `{name}`"));
    }
    if let Some(group) = &check.group {
        known_group(&plan.world, group, &at("group"))?;
    }
    for (name, value) in
        [("at_most", check.at_most), ("at_least", check.at_least), ("from_s", check.from_s), ("to_s", check.to_s)]
    {
        if value.is_some_and(|value| !value.is_finite()) {
            return refuse(at(name), "must be a finite number");
        }
    }
    if check.at_most.is_none() && check.at_least.is_none() {
        return refuse(at("what"), "a check needs `at_most` or `at_least`");
    }
    let about_control = matches!(
        check.what,
        super::What::P50OverControl | super::What::P99OverControl | super::What::EstimateOverControl
    );
    if about_control && plan.control.is_none() {
        return refuse(at("what"), "the plan has no [control] world to compare with");
    }
    Ok(())
}

fn known_group(world: &World, name: &str, field: &str) -> Checked {
    match world.peers.iter().any(|group| group.name == name) {
        true => Ok(()),
        false => refuse(field, format!("no group of peers is named `{name}`")),
    }
}
