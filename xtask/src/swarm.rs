//! The gate's last step: a short real swarm, checked from its JSON report.
//!
//! Checks what must hold on any machine, however slow: every round of both policies ran and was
//! verified. It compares no times.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ci::{StepResult, cargo};
use crate::direction::metadata;

const PEERS: usize = 4;
const ROUNDS: usize = 3;

const ARGUMENTS: &str = "swarm --size 8MiB --peers 4 --hostile 1 --rounds 3 --seed 7 --json";

/// Runs the swarm with the binary that the tests built and reads its report.
///
/// # Errors
/// What the report lacks, or how the run failed.
pub(crate) fn check(root: &Path) -> StepResult {
    let binary = binary(root)?;
    let shown = format!("{} {ARGUMENTS}", binary.display());
    let output = Command::new(&binary)
        .current_dir(root)
        .args(ARGUMENTS.split(' '))
        .output()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{shown}` failed ({}):\n{stderr}", output.status));
    }
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("`{shown}` printed no single JSON document: {error}"))?;
    judge(&report)
}

/// The binary that the tests built.
///
/// # Errors
/// How the build failed.
pub(crate) fn binary(root: &Path) -> Result<PathBuf, String> {
    // `cargo run` would build the dependencies anew: without the tests they have other features.
    cargo(root, &["test", "--locked", "--quiet", "--no-run"], &[])?;
    let metadata = metadata(root)?;
    let folder = metadata["target_directory"].as_str().ok_or("`cargo metadata` names no target directory")?;
    Ok(Path::new(folder).join("debug").join(format!("peerq{}", std::env::consts::EXE_SUFFIX)))
}

fn judge(report: &Value) -> StepResult {
    let peers = report["peers"].as_array().map_or(0, Vec::len);
    if peers != PEERS {
        return Err(format!("the report names {peers} peers instead of {PEERS}"));
    }
    let rounds = report["rounds"].as_array().ok_or("the report has no `rounds`")?;
    for policy in ["peerq", "round-robin"] {
        let of_policy = rounds.iter().filter(|round| round["policy"] == policy);
        let (ran, verified) = of_policy
            .fold((0, 0), |(ran, verified), round| (ran + 1, verified + usize::from(round["verified"] == true)));
        if ran != ROUNDS || verified != ROUNDS {
            return Err(format!("{policy}: {ran} rounds ran and {verified} were verified, {ROUNDS} expected"));
        }
    }
    Ok(format!("{} rounds verified", rounds.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(verified: bool) -> Value {
        let round = |policy: &str| json!({"policy": policy, "verified": verified});
        let rounds: Vec<Value> =
            ["peerq", "round-robin"].into_iter().flat_map(|policy| vec![round(policy); ROUNDS]).collect();
        json!({"peers": vec![json!({}); PEERS], "rounds": rounds})
    }

    #[test]
    fn a_report_of_verified_rounds_passes() {
        assert!(judge(&report(true)).is_ok());
    }

    #[test]
    fn an_unverified_round_a_missing_round_and_a_missing_peer_each_fail() {
        assert!(judge(&report(false)).is_err());
        let mut short = report(true);
        short["rounds"].as_array_mut().map(Vec::pop);
        assert!(judge(&short).is_err());
        assert!(judge(&json!({"peers": [], "rounds": []})).is_err());
    }
}
