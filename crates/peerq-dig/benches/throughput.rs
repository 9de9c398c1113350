//! One unshaped peer on loopback: what choosing costs when there is nothing to choose (issue target: at least 0.9 × round robin).
//!
//! Both policies fetch the same file over the same transport, by turns in one process, so the ratio holds where absolute rates do not.
//! `cargo bench --bench throughput` prints the table; `-- --check` fails below the target.
#![allow(missing_docs)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use dig_peer_selector::{PeerSelector, SelectorConfig};
use peerq_dig::content::Manifest;
use peerq_dig::fetch::{FetchOptions, Fetcher, Policy};
use peerq_dig::node::Node;
use peerq_dig::{Identity, Pool, PoolConfig};

const FILE_BYTES: usize = 256 << 20;
const ROUNDS: usize = 5;
const TARGET: f64 = 0.9;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (ours, theirs) = runtime.block_on(rounds());
    let ratio = ours / theirs;
    println!("one unshaped peer, {} MiB, median of {ROUNDS} rounds each", FILE_BYTES >> 20);
    println!("peerq {ours:.1} MB/s, round robin {theirs:.1} MB/s, ratio {ratio:.2}, target >= {TARGET}");
    let failed = std::env::args().any(|word| word == "--check") && ratio < TARGET;
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Median MB/s of each policy.
async fn rounds() -> (f64, f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("source");
    let bytes: Vec<u8> = (0..FILE_BYTES as u64).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 13) as u8).collect();
    std::fs::write(&path, &bytes).expect("room for the file");
    let manifest = Arc::new(Manifest::of_bytes(&bytes));
    drop(bytes);
    let listen = "127.0.0.1:0".parse().expect("an address");
    let server = Arc::new(Identity::from_seed(b"server").expect("an identity"));
    let node =
        Node::builder(server).listen(listen).share_prepared(&path, manifest.clone()).start().await.expect("a node");
    let selector = Arc::new(PeerSelector::new(SelectorConfig::default()));
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..2 * ROUNDS {
        let policy = if round % 2 == 0 { Policy::Peerq(selector.clone()) } else { Policy::RoundRobin };
        let client = Arc::new(Identity::generate().expect("an identity"));
        let options = FetchOptions::new(manifest.id(), folder.path().join(format!("copy{round}")))
            .peer(node.peer_addr())
            .policy(policy);
        let begun = Instant::now();
        let report =
            Fetcher::new(Pool::new(client, PoolConfig::default())).fetch(options).join().await.expect("the file");
        let seconds = begun.elapsed().as_secs_f64();
        assert_eq!(report.bytes_from_network, FILE_BYTES as u64);
        std::fs::remove_file(folder.path().join(format!("copy{round}"))).expect("a file to remove");
        rates[round % 2].push(FILE_BYTES as f64 / 1e6 / seconds);
    }
    rates.iter_mut().for_each(|rates| rates.sort_by(f64::total_cmp));
    (rates[0][ROUNDS / 2], rates[1][ROUNDS / 2])
}
