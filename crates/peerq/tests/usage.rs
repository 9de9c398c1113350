//! Wrong usage ends with code 2 and a message that names what is wrong; help always works.

mod common;

use common::{code, peerq, run, stderr, stdout};

const PEER: &str = "127.0.0.1:1#abababababababababababababababababababababababababababababababab";

fn id() -> String {
    "5e".repeat(32)
}

#[test]
fn every_subcommand_explains_itself_with_examples() {
    for command in ["swarm", "serve", "fetch", "lab", "replay", "explain"] {
        let output = run(&[command, "--help"]);
        assert_eq!(code(&output), 0, "{command}");
        assert!(stdout(&output).contains("Examples:"), "{command}");
    }
}

#[test]
fn wrong_arguments_are_refused_with_code_2() {
    let id = id();
    for (args, hint) in [
        (vec!["swarm", "--size", "5 furlongs"], "furlongs"),
        (vec!["swarm", "--peers", "2", "--hostile", "2"], "no honest peer"),
        (vec!["swarm", "--peers", "0"], "--peers"),
        (vec!["swarm", "--peers", "8,65"], "--peers"),
        (vec!["swarm", "--peers", "8,4", "--hostile", "4"], "--peers 4"),
        (vec!["swarm", "--hostile", "half"], "25%"),
        (vec!["swarm", "--hostile", "100%"], "no honest peer"),
        (vec!["swarm", "--peers", "4,8", "--keep", "x"], "--keep"),
        (vec!["swarm", "--peers", "4,8", "--record", "x"], "--record"),
        (vec!["swarm", "--size", "1MiB", "--file", "x"], "--file"),
        (vec!["swarm", "--file", "no/such/file"], "no/such/file"),
        (vec!["serve"], "PATH"),
        (vec!["serve", "no/such/file"], "no such file"),
        (vec!["serve", "."], "folder"),
        (vec!["fetch", "abc", "--peer", PEER], "abc"),
        (vec!["fetch", &id], "--peer"),
        (vec!["fetch", &id, "--peer", "127.0.0.1:1"], "peer id"),
        (vec!["fetch", &id, "--peer", "nowhere#ab"], "nowhere"),
        (vec!["lab", "compare"], "--all"),
        (vec!["lab", "compare", "no-such-plan"], "no-such-plan"),
        (vec!["lab", "compare", "adversaries", "a1"], "`adversaries` is a study"),
        (vec!["lab", "compare", "adversaries", "--quick"], "--seeds 3"),
        (vec!["lab", "compare", "adversaries", "--shard", "1/2"], "merge"),
        (vec!["lab", "compare", "specs", "--policies", "haskell"], "published"),
        (vec!["lab", "compare", "a1", "--seeds", "0"], "--seeds"),
        (vec!["lab", "compare", "a1", "--policies", "oracle"], "clairvoyant"),
        (vec!["lab", "compare", "a1", "--shard", "5/4"], "2/4"),
        (vec!["lab", "fuzz", "--seeds", "0"], "--seeds"),
        (vec!["lab", "report", "no/such/results"], "no/such/results"),
        (vec!["replay", "no/such/recording"], "no/such/recording"),
    ] {
        let output = run(&args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address").to_string();
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = common::make_file(folder.path(), "f", 10);
    let output = peerq(&["serve", "--listen", &addr]).arg(file).output().expect("peerq starts");
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains(&addr) && stderr(&output).contains("in use"), "{}", stderr(&output));
}

#[test]
fn an_existing_output_is_not_touched() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = common::make_file(folder.path(), "precious", 10);
    let output = peerq(&["fetch", &id(), "--peer", PEER, "-o"]).arg(&file).output().expect("peerq starts");
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
    assert_eq!(std::fs::read(&file).expect("still there").len(), 10);
}
