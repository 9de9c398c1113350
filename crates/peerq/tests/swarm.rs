//! The swarm's JSON document has the promised shape, and every round of a small swarm is verified.

mod common;

use std::collections::BTreeSet;

use common::{code, peerq, stderr};
use serde_json::Value;

const KINDS: [&str; 4] = ["honest", "corrupts", "dribbles", "silent"];

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn a_small_swarm_verifies_every_round_and_reports_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let keep = folder.path().join("keep");
    let arguments = "swarm --size 2MiB --peers 4 --hostile 1 --rounds 2 --seed 7 --json --keep";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let output = peerq(&arguments).arg(&keep).output().expect("peerq starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else");

    assert_eq!(keys(&report), ["file_bytes", "peers", "rounds", "summary"].into());
    assert_eq!(report["file_bytes"], 2 << 20);
    let peers = report["peers"].as_array().expect("peers");
    assert_eq!(peers.len(), 4);
    for peer in peers {
        assert_eq!(keys(peer), ["delay_ms", "id", "kind", "rate_bytes_per_s"].into());
        assert!(KINDS.iter().any(|kind| peer["kind"] == *kind), "{peer}");
    }
    assert_eq!(peers.iter().filter(|peer| peer["kind"] != "honest").count(), 1);

    let rounds = report["rounds"].as_array().expect("rounds");
    let order: Vec<&str> = rounds.iter().filter_map(|round| round["policy"].as_str()).collect();
    assert_eq!(order, ["peerq", "round-robin", "peerq", "round-robin"]);
    for round in rounds {
        assert_eq!(keys(round), ["bytes_by_peer", "policy", "round", "seconds", "verified"].into());
        assert_eq!(round["verified"], true, "{round}");
        let bytes: u64 = round["bytes_by_peer"].as_object().expect("bytes").values().filter_map(Value::as_u64).sum();
        assert!(bytes >= 2 << 20, "{round}");
    }
    for policy in ["peerq", "round-robin"] {
        assert_eq!(keys(&report["summary"][policy]), ["hostile_byte_share", "p50_s", "p99_s"].into());
    }

    let kept: Value = serde_json::from_slice(&std::fs::read(keep.join("swarm.json")).expect("kept")).expect("JSON");
    assert_eq!(kept, report);
    let one = std::fs::read(keep.join("peerq.bin")).expect("kept");
    assert_eq!(one.len(), 2 << 20);
    assert_eq!(one, std::fs::read(keep.join("round-robin.bin")).expect("kept"));
}

#[test]
fn a_file_of_ones_own_is_distributed_and_told_in_tables() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = common::make_file(folder.path(), "own", 300_000);
    let output = peerq(&["swarm", "--peers", "2", "--hostile", "0", "--rounds", "1", "--file"])
        .arg(&file)
        .output()
        .expect("peerq starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = common::stdout(&output);
    assert!(text.contains("round-robin") && text.contains("standing"), "{text}");
}

#[test]
fn several_swarms_make_one_table_and_the_exit_code_is_its_verdict() {
    let arguments = "swarm --size 512KiB --peers 2,3 --hostile 0,33% --rounds 1 --json";
    let output = peerq(&arguments.split(' ').collect::<Vec<_>>()).output().expect("peerq starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else");
    assert_eq!(keys(&report), ["never_slower", "swarms"].into());
    let swarms = report["swarms"].as_array().expect("swarms");
    let sizes: Vec<_> = swarms.iter().map(|one| (one["peer_count"].as_u64(), one["hostile_count"].as_u64())).collect();
    let of = |peers, hostile| (Some(peers), Some(hostile));
    assert_eq!(sizes, [of(2, 0), of(2, 1), of(3, 0), of(3, 1)]);
    for swarm in swarms {
        assert_eq!(swarm["verified"], true, "{swarm}");
        let time = |policy: &str, which: &str| swarm["summary"][policy][which].as_f64().expect("seconds");
        for (ratio, which) in [("p50_ratio", "p50_s"), ("p99_ratio", "p99_s")] {
            let expected = time("peerq", which) / time("round-robin", which);
            assert!((swarm[ratio].as_f64().expect("a ratio") - expected).abs() < 1e-9, "{swarm}");
        }
    }
    let slower =
        swarms.iter().any(|one| ["p50_ratio", "p99_ratio"].iter().any(|ratio| one[*ratio].as_f64() > Some(1.0)));
    assert_eq!(report["never_slower"], !slower);
    assert_eq!(code(&output), i32::from(slower), "{}", stderr(&output));
}
