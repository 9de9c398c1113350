//! Worlds that cannot be, and checks that contradict themselves, are refused with the reason before anything runs.

use crate::model::{PeerGroup, Range, Workload, World};

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
    world(&plan.world)?;
    workload(&plan.workload)?;
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

fn world(world: &World) -> Checked {
    if world.peers.is_empty() {
        return refuse("world.peers", "a world needs at least one group of peers");
    }
    if world.peers.iter().map(|group| u64::from(group.count)).sum::<u64>() > MAX_PEERS {
        return refuse("world.peers", format!("more than {MAX_PEERS} peers"));
    }
    for (index, link) in world.shared.iter().enumerate() {
        if !(link.rate.is_finite() && link.rate > 0.0) {
            return refuse(format!("world.shared[{index}].rate"), "a shared link needs a rate above zero");
        }
    }
    if world.client.downlink.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
        return refuse("world.client.downlink", "a downlink needs a rate above zero");
    }
    for (index, outage) in world.client.outages.iter().enumerate() {
        if !(outage.at_s >= 0.0 && outage.for_s > 0.0 && outage.for_s.is_finite()) {
            return refuse(
                format!("world.client.outages[{index}]"),
                "an outage starts at zero or later and has an end",
            );
        }
    }
    if world.client.pause_every_s > 0.0 && world.client.pause_s.is_none() {
        return refuse("world.client.pause_every_s", "pauses need a length: pause_s");
    }
    world.peers.iter().enumerate().try_for_each(|(index, peers)| group(world, peers, index))
}

fn group(world: &World, group: &PeerGroup, index: usize) -> Checked {
    let at = |field: &str| format!("world.peers[{index}].{field}");
    if group.count == 0 {
        return refuse(at("count"), "a group needs at least one peer");
    }
    if world.peers[..index].iter().any(|earlier| earlier.name == group.name) {
        return refuse(at("name"), format!("`{}` is the name of an earlier group", group.name));
    }
    positive(group.rate, &at("rate"), "bytes per second")?;
    positive(group.rtt_ms, &at("rtt_ms"), "milliseconds")?;
    if let Some(shares) = &group.shares
        && !world.shared.iter().any(|link| link.name == *shares)
    {
        return refuse(at("shares"), format!("no shared link is named `{shares}`"));
    }
    if !(group.joins_at_s >= 0.0 && group.joins_at_s.is_finite()) {
        return refuse(at("joins_at_s"), "a peer joins at zero or later");
    }
    let mut last = 0.0;
    for (number, change) in group.changes.iter().enumerate() {
        let at = |field: &str| at(&format!("changes[{number}].{field}"));
        if !(change.at_s >= last && change.at_s.is_finite()) {
            return refuse(at("at_s"), "changes come in order of time, from zero on");
        }
        last = change.at_s;
        change.rate.map_or(Ok(()), |rate| positive(rate, &at("rate"), "bytes per second"))?;
        change.rtt_ms.map_or(Ok(()), |rtt| positive(rtt, &at("rtt_ms"), "milliseconds"))?;
    }
    Ok(())
}

fn positive(range: Range, field: &str, unit: &str) -> Checked {
    let (low, high) = range.bounds();
    if !(low.is_finite() && high.is_finite() && low > 0.0) {
        return refuse(field, format!("must be above zero {unit}"));
    }
    if low > high { refuse(field, "the lower bound comes first") } else { Ok(()) }
}

fn workload(workload: &Workload) -> Checked {
    let (form, numbers): (&str, Vec<(&str, f64)>) = match *workload {
        Workload::Downloads { requests, ranges, range_bytes, sources, in_flight, range_timeout_s, .. } => (
            "downloads",
            vec![
                ("requests", requests.into()),
                ("ranges", ranges.into()),
                ("range_bytes", range_bytes as f64),
                ("sources", sources.into()),
                ("in_flight", in_flight.into()),
                ("range_timeout_s", range_timeout_s),
            ],
        ),
        Workload::Requests { requests, per_s, range_bytes, range_timeout_s } => (
            "requests",
            vec![
                ("requests", requests.into()),
                ("per_s", per_s),
                ("range_bytes", range_bytes as f64),
                ("range_timeout_s", range_timeout_s),
            ],
        ),
        Workload::Closures { requests, closure_bytes, chunk_bytes, every_s, deadline_s, in_flight } => (
            "closures",
            vec![
                ("requests", requests.into()),
                ("closure_bytes", closure_bytes as f64),
                ("chunk_bytes", chunk_bytes as f64),
                ("every_s", every_s),
                ("deadline_s", deadline_s),
                ("in_flight", in_flight.into()),
            ],
        ),
    };
    match numbers.iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
        Some((field, _)) => refuse(format!("workload.{form}.{field}"), "must be above zero"),
        None => Ok(()),
    }
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
    let about_control = matches!(check.what, super::What::P50OverControl | super::What::P99OverControl);
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
