//! Finding holders over a real DHT on the loopback interface (HOST-D5).

mod common;

use std::sync::Arc;

use common::*;
use dig_dht::{CandidateAddr, DhtRequest, DhtResponse, ProviderRecord};
use dig_download::ProviderLocator;
use peerq_dig::content::FileId;
use peerq_dig::discovery::{Discovery, DiscoveryError, Locator, socket_addrs};
use peerq_dig::node::{Fault, Node};
use peerq_dig::{PeerAddr, Pool};
use tokio::io::AsyncWriteExt;

/// `names` as nodes that serve `file`, all joined through the first; none has announced.
async fn swarm(names: &[&str], file: &TestFile) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for name in names {
        let through = nodes.first().map(Node::peer_addr).into_iter().collect();
        let node = node(name).share_prepared(file.file.path(), Arc::clone(&file.manifest)).bootstrap(through);
        nodes.push(node.start().await.unwrap());
    }
    nodes
}

async fn client(pool: &Arc<Pool>, through: &Node) -> Arc<Discovery> {
    let discovery = Discovery::client(Arc::clone(pool));
    discovery.bootstrap(&[through.peer_addr()]).await.unwrap();
    discovery
}

fn found(records: &[ProviderRecord]) -> Vec<PeerAddr> {
    let addr = |record: &ProviderRecord| socket_addrs(record)[0];
    records.iter().map(|record| PeerAddr { addr: addr(record), peer_id: record.provider_peer_id().unwrap() }).collect()
}

fn sorted(nodes: &[&Node]) -> Vec<PeerAddr> {
    let mut peers: Vec<_> = nodes.iter().map(|node| node.peer_addr()).collect();
    peers.sort_by_key(|peer| *peer.peer_id.as_bytes());
    peers
}

#[tokio::test]
async fn four_nodes_find_each_other_and_a_client_finds_the_holders_in_order() {
    let file = file(10);
    let nodes = swarm(&["a", "b", "c", "d"], &file).await;
    for node in &nodes[1..] {
        assert!(node.announce().await.unwrap() >= 1, "others take note");
    }
    let pool = pool("client");
    let discovery = client(&pool, &nodes[3]).await;
    let expected = sorted(&[&nodes[1], &nodes[2], &nodes[3]]);
    for _ in 0..5 {
        assert_eq!(found(&discovery.find(&file.id()).await.unwrap()), expected);
    }
    assert_eq!(discovery.find(&FileId::from_bytes([1; 32])).await.unwrap(), []);
    let others = found(&nodes[1].discovery().find(&file.id()).await.unwrap());
    assert_eq!(others, sorted(&[&nodes[2], &nodes[3]]), "a node does not find itself");
}

/// The DHT's own cache would answer with the holders of a quarter of an hour ago.
#[tokio::test]
async fn a_holder_that_announces_later_is_found_by_the_next_question() {
    let file = file(10);
    let nodes = swarm(&["a", "b", "c", "d"], &file).await;
    nodes[1].announce().await.unwrap();
    let pool = pool("client");
    let discovery = client(&pool, &nodes[0]).await;
    assert_eq!(found(&discovery.find(&file.id()).await.unwrap()), sorted(&[&nodes[1]]));
    nodes[2].announce().await.unwrap();
    assert_eq!(found(&discovery.find(&file.id()).await.unwrap()), sorted(&[&nodes[1], &nodes[2]]));
}

#[tokio::test]
async fn a_client_is_told_to_nobody_and_cannot_announce() {
    let file = file(10);
    let nodes = swarm(&["a", "b"], &file).await;
    nodes[1].announce().await.unwrap();
    let pool = pool("client");
    let discovery = client(&pool, &nodes[0]).await;
    discovery.find(&file.id()).await.unwrap();
    assert!(matches!(discovery.announce(&file.id()).await, Err(DiscoveryError::NotServing)));

    let me = pool.identity().peer_id().to_hex();
    for node in &nodes {
        let question = DhtRequest::FindNode { target: me.clone() };
        let DhtResponse::Nodes { nodes } = ask(&pool, node, &question).await else { panic!("no nodes") };
        assert!(nodes.iter().all(|contact| contact.peer_id != me));
    }
}

#[tokio::test]
async fn nobody_can_announce_someone_else() {
    let file = file(10);
    let nodes = swarm(&["a"], &file).await;
    let pool = pool("liar");
    let key = file.id().content().to_key();
    let address = vec![CandidateAddr::direct("127.0.0.1", 1)];
    let record = ProviderRecord::new(&key, &identity("victim").peer_id(), address, u64::MAX);
    let answer = ask(&pool, &nodes[0], &DhtRequest::AddProvider { record }).await;
    assert!(matches!(answer, DhtResponse::Error { .. }), "{answer:?}");
    assert_eq!(client(&pool, &nodes[0]).await.find(&file.id()).await.unwrap(), []);
}

async fn ask(pool: &Arc<Pool>, node: &Node, request: &DhtRequest) -> DhtResponse {
    let peer = node.peer_addr();
    let mut stream = pool.open_stream(&peer.peer_id, &[peer.addr]).await.unwrap();
    stream.write_all(&request.encode()).await.unwrap();
    stream.flush().await.unwrap();
    DhtResponse::decode(&mut stream).await.unwrap()
}

#[tokio::test]
async fn a_bootstrap_peer_that_is_not_there_or_is_another_is_named_with_the_reason() {
    let file = file(10);
    let nodes = swarm(&["a"], &file).await;
    let wrong = PeerAddr { peer_id: identity("other").peer_id(), ..nodes[0].peer_addr() };
    let error = Discovery::client(pool("client")).bootstrap(&[wrong]).await.unwrap_err();
    assert!(error.to_string().contains("answers as peer"), "{error}");
    let error = node("b").bootstrap(vec![wrong]).start().await.unwrap_err();
    assert!(error.to_string().contains(&wrong.to_string()), "{error}");
    let both = [wrong, nodes[0].peer_addr()];
    assert_eq!(Discovery::client(pool("client")).bootstrap(&both).await.unwrap(), 1, "one of two is enough");
}

#[tokio::test]
async fn dead_nodes_are_forgotten_and_the_living_still_found() {
    let file = file(10);
    let mut nodes = swarm(&["a", "b", "c"], &file).await;
    for node in &nodes {
        node.announce().await.unwrap();
    }
    let pool = pool("client");
    let discovery = client(&pool, &nodes[0]).await;
    assert_eq!(discovery.find(&file.id()).await.unwrap().len(), 3);
    let dead = nodes.remove(2);
    dead.shutdown().await;
    let still = found(&discovery.find(&file.id()).await.unwrap());
    assert!(sorted(&[&nodes[0], &nodes[1]]).iter().all(|peer| still.contains(peer)));
}

#[tokio::test]
async fn a_download_needs_no_more_than_the_id_and_one_node_that_knows_others() {
    let file = file(600_000);
    let nodes = swarm(&["a", "b", "c"], &file).await;
    let bystander = node("bystander").bootstrap(vec![nodes[0].peer_addr()]).start().await.unwrap();
    for node in &nodes {
        node.announce().await.unwrap();
    }
    let pool = pool("client");
    let discovery = client(&pool, &bystander).await;
    let locator = Locator::new(pool.identity().peer_id(), vec![], Some(discovery));
    for content in [file.id().content(), file.id().manifest_content()] {
        assert_eq!(locator.find_providers(&content).await.unwrap().len(), 3);
    }
    let bytes = download(&file, locator, Arc::new(PooledTransport(pool))).await.unwrap();
    assert!(bytes == file.bytes);
}

#[tokio::test]
async fn hostile_nodes_take_part_in_the_dht_like_any_other() {
    let file = file(10);
    let first = serving("a", &file, Fault::CorruptBytes).await;
    first.announce().await.unwrap();
    let pool = pool("client");
    let discovery = client(&pool, &first).await;
    assert_eq!(found(&discovery.find(&file.id()).await.unwrap()), [first.peer_addr()]);
}
