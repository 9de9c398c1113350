//! The loop closed: real nodes, found through the DHT, some of them hostile, and a selector that learns (HOST-D1, D3,
//! D5; scenarios A25 and C40 as far as they are the host's; the main job's show 6).

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{TestFile, file, node, pool, serving};
use dig_peer_selector::{PeerSelector, SelectorConfig};
use peerq_dig::fetch::{FetchOptions, FetchReport, FetchState, Fetcher, PeerReport, Policy};
use peerq_dig::node::{Fault, Node};
use peerq_dig::{Discovery, Pool};

const CHUNK: usize = 256 * 1024;

fn selector() -> Arc<PeerSelector> {
    Arc::new(PeerSelector::new(SelectorConfig { rng_seed: Some(7), ..SelectorConfig::default() }))
}

fn of<'a>(report: &'a FetchReport, node: &Node) -> &'a PeerReport {
    report.peers.iter().find(|p| p.peer_id == node.peer_id()).expect("every asked peer is in the report")
}

struct Client {
    pool: Arc<Pool>,
    selector: Arc<PeerSelector>,
    dir: tempfile::TempDir,
}

impl Client {
    fn new(name: &str) -> Client {
        Client { pool: pool(name), selector: selector(), dir: tempfile::tempdir().unwrap() }
    }

    fn options(&self, file: &TestFile, name: &str) -> FetchOptions {
        FetchOptions::new(file.id(), self.dir.path().join(name)).policy(Policy::Peerq(self.selector.clone()))
    }

    /// Fetches `file` from `nodes` and checks it.
    async fn fetch(&self, file: &TestFile, name: &str, nodes: &[&Node]) -> FetchReport {
        let options = self.options(file, name).peers(nodes.iter().map(|n| n.peer_addr()));
        let report = Fetcher::new(self.pool.clone()).fetch(options).join().await.unwrap();
        assert!(std::fs::read(self.dir.path().join(name)).unwrap() == file.bytes, "the file is whole");
        report
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_are_found_through_the_dht_without_being_named() {
    let file = file(3 * CHUNK + 11);
    let first = node("swarm-first").start().await.unwrap();
    let mut builder = node("swarm-holder").bootstrap(vec![first.peer_addr()]);
    builder = builder.share_prepared(file.file.path(), file.manifest.clone());
    let holder = builder.start().await.unwrap();
    holder.announce().await.unwrap();
    let client = Client::new("swarm-finder");
    let discovery = Discovery::client(client.pool.clone());
    discovery.bootstrap(&[first.peer_addr()]).await.unwrap();
    let fetcher = Fetcher::new(client.pool.clone()).with_discovery(discovery);
    let report = fetcher.fetch(client.options(&file, "out")).join().await.unwrap();
    assert_eq!(of(&report, &holder).bytes, file.bytes.len() as u64);
    assert!(std::fs::read(client.dir.path().join("out")).unwrap() == file.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_arrives_through_every_kind_of_hostile_node_and_the_liar_alone_is_proven() {
    let file = file(16 * CHUNK);
    let honest = serving("kinds-honest", &file, Fault::None).await;
    let corrupter = serving("kinds-corrupter", &file, Fault::CorruptBytes).await;
    let silent = serving("kinds-silent", &file, Fault::SilentAfterAccept).await;
    let mute = serving("kinds-mute", &file, Fault::NeverAnswers).await;
    let cutter = serving("kinds-cutter", &file, Fault::CutMidRange).await;
    let client = Client::new("kinds-client");
    let nodes = [&honest, &corrupter, &silent, &mute, &cutter];
    let mut lies = 0;
    for round in 0..3 {
        let report = client.fetch(&file, &format!("out{round}"), &nodes).await;
        lies += of(&report, &corrupter).outcomes.verification_failed;
        for good in [&honest, &silent, &mute, &cutter] {
            assert_eq!(of(&report, good).outcomes.verification_failed, 0, "round {round}");
        }
        assert_eq!(of(&report, &honest).bytes, file.bytes.len() as u64);
    }
    assert!(lies > 0, "the corrupter was tried at least once");
    let known = |node: &Node| client.selector.peer_snapshot(&node.peer_id()).unwrap();
    assert!(known(&corrupter).hard_failures > 0);
    assert_eq!(known(&honest).hard_failures + known(&cutter).hard_failures + known(&silent).hard_failures, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peers_concurrency_stays_within_what_the_selector_grants_and_the_engine_allows() {
    let file = file(40 * CHUNK);
    let only = serving("caps-node", &file, Fault::None).await;
    let client = Client::new("caps-client");
    client.fetch(&file, "out", &[&only]).await;
    let most = only.stats().ranges_in_flight_max;
    assert!((1..=8).contains(&most), "{most} ranges at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_fetched_once_when_nobody_fails() {
    let file = file(24 * CHUNK + 3);
    let only = serving("once-node", &file, Fault::None).await;
    let client = Client::new("once-client");
    let report = client.fetch(&file, "out", &[&only]).await;
    assert_eq!(only.stats().bytes_served, file.bytes.len() as u64, "{:?}", report.peers);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_killed_half_way_is_replaced_and_a_second_fetch_needs_no_more_than_the_rest() {
    let file = file(64 * CHUNK);
    let shape = peerq_dig::LinkShape { rate_bytes_per_s: Some(16 << 20), delay: Duration::ZERO };
    let slow = |name: &str| node(name).link(shape).share_prepared(file.file.path(), file.manifest.clone());
    let mut doomed = slow("kill-doomed").start().await.unwrap();
    let client = Client::new("kill-client");
    let options = client.options(&file, "out").peer(doomed.peer_addr()).give_up_after(Duration::from_secs(2));
    let handle = Fetcher::new(client.pool.clone()).fetch(options);
    let progressed = |p: &peerq_dig::fetch::Progress| p.bytes_done >= 8 * CHUNK as u64;
    handle.progress().wait_for(|p| p.state == FetchState::Downloading && progressed(p)).await.unwrap();
    doomed.kill();
    let error = handle.join().await.unwrap_err();
    assert!(error.to_string().contains("kept for the next attempt"), "{error}");

    let other = serving("kill-other", &file, Fault::None).await;
    let report = client.fetch(&file, "out", &[&other]).await;
    assert!(report.bytes_resumed >= 8 * CHUNK as u64);
    assert_eq!(other.stats().bytes_served, report.bytes_from_network);
    assert_eq!(report.bytes_resumed + report.bytes_from_network, file.bytes.len() as u64);
    assert_eq!(other.stats().manifest_bytes_served, 0, "the manifest was kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_selector_is_told_of_connections() {
    let file = file(CHUNK);
    let holder = serving("events-node", &file, Fault::None).await;
    let client = Client::new("events-client");
    let fetcher = Fetcher::new(client.pool.clone());
    let options = client.options(&file, "out").peer(holder.peer_addr());
    fetcher.fetch(options).join().await.unwrap();
    let known = client.selector.peer_snapshot(&holder.peer_id()).unwrap();
    assert!(known.connected);
    assert_eq!(known.connection_class.as_deref(), Some("direct"));
}
