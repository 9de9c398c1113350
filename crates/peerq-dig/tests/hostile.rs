//! Nodes that misbehave really do, and in the way they say (HOST-D4; issue A, "Shows" 6).

mod common;

use std::time::Duration;

use common::*;
use dig_nat::mux::{AvailabilityItem, RangeFrame};
use peerq_dig::content::{ChunkError, MAX_MANIFEST_BYTES, Manifest};
use peerq_dig::node::{Fault, LinkShape, Node};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

const CHUNK: u64 = 256 * 1024;
/// For claims that nothing comes; the claim holds for any time.
const A_WHILE: Duration = Duration::from_millis(300);

async fn says_it_has(node: &Node, file: &TestFile) -> Option<bool> {
    let request = content_request(&file.id(), 0, 1);
    let item = AvailabilityItem::store(request.store_id)
        .with_root(request.root.unwrap())
        .with_retrieval_key(request.retrieval_key.unwrap());
    let peer = node.peer_addr();
    let answer = pool("client").query_availability(&peer.peer_id, &[peer.addr], vec![item], A_WHILE).await;
    answer.ok().map(|answer| answer.items[0].available)
}

#[tokio::test]
async fn a_corrupting_node_spoils_chunks_and_manifests_and_both_are_caught() {
    let file = file(2 * CHUNK as usize);
    let node = serving("bad", &file, Fault::CorruptBytes).await;
    let pool = pool("client");
    assert_eq!(says_it_has(&node, &file).await, Some(true));
    let (chunk, complete) = fetch(&pool, &node, &content_request(&file.id(), 0, CHUNK)).await.unwrap();
    assert!(complete);
    assert_eq!(file.manifest.verify_chunk(0, &chunk), Err(ChunkError::Hash { index: 0 }));
    assert!(chunk.iter().zip(&file.bytes).all(|(got, good)| got != good), "every byte is wrong");
    let (manifest, _) = fetch(&pool, &node, &manifest_request(&file.id(), MAX_MANIFEST_BYTES as u64)).await.unwrap();
    assert!(Manifest::decode(&manifest, &file.id()).is_err());
}

#[tokio::test]
async fn a_silent_node_answers_questions_and_no_request_for_data() {
    let file = file(2 * CHUNK as usize);
    let node = serving("bad", &file, Fault::SilentAfterAccept).await;
    let pool = pool("client");
    assert_eq!(says_it_has(&node, &file).await, Some(true));
    assert_eq!(fetch(&pool, &node, &content_request(&file.id(), 0, 1)).await.unwrap().0, file.bytes[..1]);
    let mut stream = open(&pool, node.peer_addr(), &content_request(&file.id(), 0, CHUNK)).await.unwrap();
    assert!(timeout(A_WHILE, stream.read_u8()).await.is_err(), "not a byte, and no end");
    assert_eq!(node.stats().ranges_in_flight, 1);
}

#[tokio::test]
async fn a_node_that_never_answers_does_not_even_say_what_it_has() {
    let file = file(10);
    let node = serving("bad", &file, Fault::NeverAnswers).await;
    assert_eq!(says_it_has(&node, &file).await, None);
    assert_eq!(node.stats().connections, 1, "the handshake was complete");
}

#[tokio::test]
async fn a_cutting_node_breaks_the_connection_half_way_and_takes_the_next_one() {
    let file = file(2 * CHUNK as usize);
    let node = serving("bad", &file, Fault::CutMidRange).await;
    let pool = pool("client");
    for _ in 0..2 {
        let mut stream = open(&pool, node.peer_addr(), &content_request(&file.id(), 0, CHUNK)).await.unwrap();
        let mut got = 0;
        while let Ok(Some(frame)) = timeout(HANG, RangeFrame::decode(&mut stream)).await.expect("no hang") {
            assert!(!frame.complete);
            got += frame.length;
        }
        assert!(got <= CHUNK / 2, "{got} bytes came");
    }
    assert_eq!(node.stats().connections, 2);
    assert_eq!(node.stats().ranges_served, 0);
}

#[tokio::test]
async fn a_dribbling_node_starts_fast_and_then_keeps_to_its_rate() {
    let file = file(4 * CHUNK as usize);
    let node = serving("bad", &file, Fault::DribbleAfter { bytes: CHUNK, rate_bytes_per_s: 1000 }).await;
    let pool = pool("client");
    assert_eq!(fetch(&pool, &node, &content_request(&file.id(), 0, CHUNK)).await.unwrap().0.len() as u64, CHUNK);
    let mut stream = open(&pool, node.peer_addr(), &content_request(&file.id(), CHUNK, CHUNK)).await.unwrap();
    let mut got = 0;
    let started = std::time::Instant::now();
    while got < 500 {
        got += timeout(HANG, RangeFrame::decode(&mut stream)).await.expect("no hang").unwrap().unwrap().length;
    }
    // 500 bytes at 1000 a second; a slow machine only makes it longer.
    assert!(started.elapsed() >= Duration::from_millis(400), "{got} bytes after {:?}", started.elapsed());
    assert!(got < 1000);
}

/// A peer that opens streams and reads none of them must not keep a node from ending.
#[tokio::test]
async fn a_reader_that_stalls_does_not_keep_a_node_from_shutting_down() {
    let file = file(64 * CHUNK as usize);
    let node = serving("one", &file, Fault::None).await;
    let pool = pool("client");
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let mut stream = open(&pool, node.peer_addr(), &content_request(&file.id(), 0, u64::MAX)).await.unwrap();
        RangeFrame::decode(&mut stream).await.unwrap().unwrap();
        stalled.push(stream);
    }
    let peer = node.peer_addr();
    timeout(HANG, node.shutdown()).await.expect("the node ends");
    assert!(pool.open_stream(&identity("other").peer_id(), &[peer.addr]).await.is_err(), "nobody listens any more");
}

/// The link sits below everything: even the handshake takes its round trips.
#[tokio::test]
async fn a_link_delays_every_round_trip_and_loses_nothing() {
    let file = file(2 * CHUNK as usize);
    let shape = LinkShape { rate_bytes_per_s: Some(20_000_000), delay: Duration::from_millis(25) };
    let node = node("far").link(shape).share_prepared(file.file.path(), file.manifest.clone()).start().await.unwrap();
    let pool = pool("client");
    let started = std::time::Instant::now();
    let (bytes, complete) = fetch(&pool, &node, &content_request(&file.id(), 0, u64::MAX)).await.unwrap();
    assert!(bytes == file.bytes && complete);
    // TLS 1.3 takes one round trip before the request, and the request another; timers are never early.
    assert!(started.elapsed() >= 4 * shape.delay, "{:?}", started.elapsed());
    timeout(HANG, node.shutdown()).await.expect("the node ends");
}
