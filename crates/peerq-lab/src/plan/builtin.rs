//! The plans that ship with the laboratory, one file each in `plans/`.

use super::drawn::{drawn, seed_of};
use super::{Plan, PlanError, parse};

macro_rules! plans {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../plans/", $name, ".toml")))),*] };
}

/// Name and text, by scenario.
const FILES: &[(&str, &str)] = plans![
    "a1-settled-on-slow",
    "a2-inertia",
    "a3-recovered-peer",
    "a5-local-outage",
    "a5-six-of-64-fail",
    "a6-mirrors-share-a-link",
    "a6-our-link-is-the-bottleneck",
    "a8-black-hole",
    "a9-trickle",
    "a10-last-chunk",
    "a11-hedge-storm",
    "a13-size-bias-large",
    "a13-size-bias-small",
    "a15-newcomer-flood",
    "a17-sybil-newcomers",
    "a19-capacity-lie",
    "a20-whose-bytes-were-bad",
    "a21-refusals-are-capacity",
    "a22-a-hair-slower",
    "a22-one-peer-at-no-distance",
    "a25-absent-silent-late",
    "b1-idle-gap-pacer",
    "b2-persistent-pacer",
    "b3-busy-filler",
    "b4-byte-padder-demoted",
    "b4-byte-padder-ranked",
    "b5-cold-cache",
    "b6-slow-loris",
    "b7-echo-holder",
    "b7-stale-echoes",
    "b8-echo-guesser",
    "b9-all-advertisers-lie",
    "b9-claims-conflict",
    "b9-size-liar",
    "b9-size-liar-mid-fetch",
    "b10-farmer",
    "b11-baseline-poisoning",
    "b12-estimates-over-pauses",
    "b12-our-own-pauses",
    "b13-far-honest-peer",
    "b14-covert-flash",
    "b15-saturator",
    "b16-idle-restart",
    "c12-fast-in-sum",
    "c27-10-peers",
    "c27-2-peers",
    "c27-3-peers",
    "c27-30-peers",
    "c31-one-in-ten-takes-long",
    "c35-the-fast-relayed-peer",
    "c38-fast-but-corrupt",
    "s1-convergence",
    "s2-anti-herd",
    "s5-exploration",
];

/// All of them, by scenario.
///
/// # Errors
/// None in a released laboratory: a test reads every one.
pub fn builtin() -> Result<Vec<Plan>, PlanError> {
    FILES.iter().map(|(name, text)| parse(&format!("{name}.toml"), text)).collect()
}

/// The built-in plans with this name, or of this scenario (in either case); or the plan that is drawn under this name.
///
/// # Errors
/// [`PlanError::Unknown`] when there is none.
pub fn find(name: &str) -> Result<Vec<Plan>, PlanError> {
    if let Some(seed) = seed_of(name) {
        return Ok(vec![drawn(seed)]);
    }
    let mut plans = builtin()?;
    plans.retain(|plan| plan.name == name || plan.scenario.eq_ignore_ascii_case(name));
    if plans.is_empty() { Err(PlanError::Unknown { name: name.to_owned() }) } else { Ok(plans) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_plan_is_read_and_named_after_its_file() {
        for (file, text) in FILES {
            let plan = parse(&format!("{file}.toml"), text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan.name, *file);
            assert!(plan.name.starts_with(&plan.scenario.to_lowercase()), "{file}: scenario {}", plan.scenario);
            assert!(!plan.checks.is_empty(), "{file} has no pass mark");
            assert!(plan.about.len() > 20 && plan.about.ends_with('.'), "{file}: about is a sentence");
        }
    }

    #[test]
    fn names_are_unique_and_in_order_of_scenarios() {
        let key = |scenario: &str| (scenario[..1].to_owned(), scenario[1..].parse::<u32>().unwrap());
        let plans = builtin().unwrap();
        for pair in plans.windows(2) {
            assert!(
                (key(&pair[0].scenario), &pair[0].name) < (key(&pair[1].scenario), &pair[1].name),
                "{}",
                pair[1].name
            );
        }
    }

    #[test]
    fn a_scenario_finds_all_its_plans_and_an_unknown_name_says_where_to_look() {
        assert!(find("a1").unwrap().iter().all(|plan| plan.scenario == "A1"));
        assert!(find("z9").unwrap_err().to_string().contains("lab list"));
    }
}
