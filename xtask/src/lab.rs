//! The gate's laboratory: the quick set of plans, and fuzzed worlds on one thread and on two.
//!
//! Checks what must hold on any machine: every policy has results in every plan, ours never panics, nobody beats the yardstick by more than a tie without wasting more, and fuzzing
//! finds nothing and is the same whatever the threads. It compares no times.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ci::StepResult;
use crate::swarm::binary;

/// Fuzzed worlds: enough to meet every behaviour, few enough for a debug build.
const SEEDS: &str = "40";
const POLICIES: usize = 9;
const COMPARE: [&str; 5] = ["lab", "compare", "--quick", "--seeds", "1"];
/// A ratio to the yardstick from here on is a tie.
const TIE: f64 = 0.98;

/// Who wastes so much more of the bytes than the yardstick buys its time with them: the yardstick may not go on asking a peer that corrupts.
const BOUGHT: f64 = 0.05;

/// Runs the quick set and the fuzzer with the binary that the tests built.
///
/// # Errors
/// What does not hold, or how a run failed.
pub(crate) fn check(root: &Path) -> StepResult {
    let binary = binary(root)?;
    let compared = run(root, &binary, &[&COMPARE[..], &["--json"]].concat())?;
    let plans = judge(&compared)?;
    let fuzz = |threads| run(root, &binary, &["lab", "fuzz", "--seeds", SEEDS, "--threads", threads, "--json"]);
    let (one, two) = (fuzz("1")?, fuzz("2")?);
    if one != two {
        return Err("fuzzing on one thread and on two gave different results".to_owned());
    }
    Ok(format!("{plans} plans, {SEEDS} fuzzed worlds, digest {}", one["digest"].as_str().unwrap_or("missing")))
}

/// Runs the binary and reads the document it prints.
fn run(root: &Path, binary: &Path, arguments: &[&str]) -> Result<Value, String> {
    let shown = format!("{} {}", binary.display(), arguments.join(" "));
    let output = Command::new(binary)
        .current_dir(root)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{shown}` failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("`{shown}` printed no single JSON document: {error}"))
}

/// The number of plans, if all is as it must be.
fn judge(document: &Value) -> Result<usize, String> {
    let plans = document["plans"].as_array().filter(|plans| !plans.is_empty()).ok_or("no plan was compared")?;
    for plan in plans {
        let name = plan["name"].as_str().unwrap_or("a plan without a name");
        let policies = plan["policies"].as_object().ok_or_else(|| format!("{name}: no policies"))?;
        if policies.len() != POLICIES {
            return Err(format!("{name}: {} policies instead of {POLICIES}", policies.len()));
        }
        if policies["peerq"]["panics"] != 0 || policies["engine"]["panics"] != 0 {
            return Err(format!("{name}: our own policy panicked"));
        }
        for (policy, figures) in policies {
            let ratio = |key: &str| figures[key].as_f64().unwrap_or(f64::INFINITY);
            let wastes = |figures: &Value| figures["duplicate_share"].as_f64().unwrap_or(0.0);
            let is_bought = wastes(figures) > wastes(&policies["clairvoyant"]) + BOUGHT;
            // One that is quicker in one quantile and slower in the other made a choice, and is not better.
            if !is_bought && ratio("yardstick_p50").max(ratio("yardstick_p99")) < TIE {
                return Err(format!("{name}: {policy} beats the yardstick, so the yardstick is wrong"));
            }
        }
    }
    Ok(plans.len())
}
