//! Serving and fetching over real processes: the right file, from whoever has it, resumed where it stopped.

mod common;

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use common::{Server, code, make_file, peerq, stderr, stdout};
use serde_json::Value;

const MIB: usize = 1 << 20;

fn fetch_json(id: &str, peers: &[&str], output: &Path) -> Value {
    let mut command = peerq(&["fetch", id, "--json", "-o"]);
    command.arg(output);
    for peer in peers {
        command.args(["--peer", peer]);
    }
    let output = command.output().expect("peerq starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn same(one: &Path, other: &Path) -> bool {
    std::fs::read(one).expect("readable") == std::fs::read(other).expect("readable")
}

#[test]
fn a_file_arrives_from_two_servers_and_the_bytes_add_up() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = make_file(folder.path(), "source", 3 * MIB + 17);
    let (mut one, mut two) = (Server::start(&file, &[]), Server::start(&file, &[]));
    let (first, second) = (one.next(), two.next());
    assert_eq!(first.id, second.id);
    let target = folder.path().join("target");
    let report = fetch_json(&first.id, &[&first.peer, &second.peer], &target);
    assert!(same(&file, &target));
    assert_eq!(report["total_bytes"], 3 * MIB + 17);
    assert_eq!(report["network_bytes"], 3 * MIB + 17);
    assert_eq!(report["resumed_bytes"], 0);
    let peers = report["peers"].as_array().expect("peers");
    let by_peer: u64 = peers.iter().filter_map(|peer| peer["bytes"].as_u64()).sum();
    assert_eq!(by_peer, (3 * MIB + 17) as u64);
}

#[test]
fn holders_are_found_through_a_bootstrap_node() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (file, other) = (make_file(folder.path(), "source", MIB), make_file(folder.path(), "other", 10));
    let mut entry = Server::start(&other, &[]);
    let entry_peer = entry.next().peer;
    let mut holder = Server::start(&file, &["--bootstrap", &entry_peer]);
    let id = holder.next().id;
    // The line comes once the file is announced, so the entry node knows the holder.
    let target = folder.path().join("target");
    let output = peerq(&["fetch", &id, "--bootstrap", &entry_peer, "-o"]).arg(&target).output().expect("peerq starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("every byte verified"), "{}", stdout(&output));
    assert!(same(&file, &target));
}

#[test]
fn an_id_that_nobody_holds_ends_with_code_1() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut server = Server::start(&make_file(folder.path(), "source", 10), &[]);
    let peer = server.next().peer;
    let target = folder.path().join("target");
    let output = peerq(&["fetch", &"5e".repeat(32), "--peer", &peer, "-o"]).arg(&target).output().expect("starts");
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("holds"), "{}", stderr(&output));
    assert!(!target.exists());
}

#[test]
fn a_peer_with_another_identity_is_named_as_such() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = make_file(folder.path(), "source", 10);
    let mut server = Server::start(&file, &[]);
    let served = server.next();
    let addr = served.peer.split('#').next().expect("an address");
    let wrong = format!("{addr}#{}", "ab".repeat(32));
    let target = folder.path().join("target");
    let output = peerq(&["fetch", &served.id, "--peer", &wrong, "-o"]).arg(&target).output().expect("starts");
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains(&"ab".repeat(32)), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_server_keeps_its_identity_and_ends_in_order() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = make_file(folder.path(), "source", 10);
    let home = folder.path().join("identity");
    let home = home.to_str().expect("text");
    let peer_id = |served: common::Served| served.peer.split('#').nth(1).expect("a peer id").to_owned();
    let mut server = Server::start(&file, &["--identity", home]);
    let first = peer_id(server.next());
    assert_eq!(server.interrupt(), Some(0));
    let mut server = Server::start(&file, &["--identity", home]);
    assert_eq!(peer_id(server.next()), first);
}

/// HOST-D6: what was verified before Ctrl-C is not fetched again.
#[cfg(unix)]
#[test]
fn after_ctrl_c_the_same_command_fetches_only_what_is_missing() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let size = 64 * MIB;
    let file = make_file(folder.path(), "source", size);
    let mut server = Server::start(&file, &[]);
    let served = server.next();
    let target = folder.path().join("target");
    let mut child = peerq(&["fetch", &served.id, "--peer", &served.peer, "-o"])
        .arg(&target)
        .stderr(Stdio::piped())
        .spawn()
        .expect("peerq starts");
    wait_for_staged(folder.path(), &["source", "target"], &mut child);
    // From here on nothing more comes, so the fetch cannot end before it is told to.
    server.signal("STOP");
    common::signal(&child, "INT");
    let status = child.wait().expect("it ends");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("run the same command again"), "{said}");
    assert!(!target.exists());
    server.signal("CONT");
    let report = fetch_json(&served.id, &[&served.peer], &target);
    assert!(same(&file, &target));
    let number = |key: &str| report[key].as_u64().expect("a number");
    assert!(number("resumed_bytes") > 0, "{report}");
    assert_eq!(number("resumed_bytes") + number("network_bytes"), size as u64);
}

/// Waits until the fetch has written some of its staging file, or has ended.
#[cfg(unix)]
fn wait_for_staged(folder: &Path, known: &[&str], child: &mut std::process::Child) {
    use std::os::unix::fs::MetadataExt;
    loop {
        let staged = std::fs::read_dir(folder).expect("listed").filter_map(Result::ok).any(|entry| {
            let is_known = known.iter().any(|name| entry.file_name().to_str() == Some(*name));
            // Blocks, not length: a staging file may be as long as the result from the start.
            !is_known && entry.metadata().is_ok_and(|metadata| metadata.blocks() * 512 > MIB as u64)
        });
        if staged || child.try_wait().expect("asked").is_some() {
            return;
        }
        std::thread::yield_now();
    }
}
