//! An honest node over real sockets: what it serves, and what it refuses (HOST-D4).

mod common;

use std::sync::Arc;

use common::*;
use dig_nat::NatConfig;
use dig_nat::mux::{AvailabilityItem, RangeFrame};
use peerq_dig::content::{FileId, MAX_MANIFEST_BYTES, Manifest};
use peerq_dig::discovery::Locator;
use peerq_dig::node::{Fault, Node};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CHUNK: usize = 256 * 1024;

fn locator(client: &str, nodes: &[&Node]) -> Locator {
    let peers = nodes.iter().map(|node| node.peer_addr()).collect();
    Locator::new(identity(client).peer_id(), peers, None)
}

#[tokio::test]
async fn dig_download_fetches_from_two_nodes_over_the_pool() {
    let file = file(20 * CHUNK + 12_345);
    let (one, two) = (serving("one", &file, Fault::None).await, serving("two", &file, Fault::None).await);
    let pool = pool("client");
    let transport = Arc::new(PooledTransport(Arc::clone(&pool)));
    let bytes = download(&file, locator("client", &[&one, &two]), transport).await.unwrap();
    assert!(bytes == file.bytes);
    for node in [&one, &two] {
        let stats = node.stats();
        assert!(stats.bytes_served > 0, "both serve");
        assert_eq!((stats.connections, stats.requests_refused, stats.ranges_in_flight), (1, 0, 0));
    }
    let served = one.stats().bytes_served + two.stats().bytes_served;
    assert_eq!(served, file.bytes.len() as u64 + 1, "each byte once, and the one that the layout came with");
}

#[tokio::test]
async fn dig_download_fetches_over_its_own_transport() {
    let file = file(3 * CHUNK);
    let node = serving("one", &file, Fault::None).await;
    let cert = Arc::clone(identity("client").cert());
    let transport = dig_download::NatRangeTransport::new(cert, NatConfig::default(), "DIG_MAINNET");
    let bytes = download(&file, locator("client", &[&node]), Arc::new(transport)).await.unwrap();
    assert!(bytes == file.bytes);
}

/// The client caps a layout page at 2048 chunks; 2049 make a layout in pages.
#[tokio::test]
async fn a_layout_of_several_pages_comes_ahead_of_the_data() {
    let (_dir, path) = sparse(2049 * CHUNK as u64);
    let node = node("one").share(&path).start().await.unwrap();
    let id = node.files()[0];
    let pool = pool("client");
    let request = content_request(&id, 2048 * CHUNK as u64, CHUNK as u64).with_skip_layout(false);
    let mut stream = open(&pool, node.peer_addr(), &request).await.unwrap();
    let (bytes, meta) = dig_download::assemble_range_stream(&mut stream, CHUNK as u64).await.unwrap();
    assert_eq!(bytes, vec![0; CHUNK]);
    assert_eq!(meta.chunk_lens, Some(vec![CHUNK as u64; 2049]));
    assert_eq!(meta.chunk_index, None, "the first frame is a page; those with data say where they are");
}

#[tokio::test]
async fn an_id_alone_leads_to_the_manifest_and_the_manifest_to_the_chunks() {
    let file = file(3 * CHUNK + 7);
    let node = serving("one", &file, Fault::None).await;
    let pool = pool("client");
    let (bytes, complete) =
        fetch(&pool, &node, &manifest_request(&file.id(), MAX_MANIFEST_BYTES as u64)).await.unwrap();
    assert!(complete);
    let manifest = Manifest::decode(&bytes, &file.id()).unwrap();
    for index in 0..manifest.chunk_count() {
        let request =
            content_request(&file.id(), manifest.chunk_offset(index).unwrap(), manifest.chunk_len(index).unwrap());
        let (bytes, _) = fetch(&pool, &node, &request).await.unwrap();
        manifest.verify_chunk(index, &bytes).unwrap();
    }
    assert_eq!(node.stats().bytes_served, file.bytes.len() as u64);
    assert_eq!(node.stats().manifest_bytes_served, bytes.len() as u64);
}

#[tokio::test]
async fn an_empty_file_is_served_too() {
    let file = file(0);
    let node = serving("one", &file, Fault::None).await;
    let pool = pool("client");
    let (bytes, _) = fetch(&pool, &node, &manifest_request(&file.id(), MAX_MANIFEST_BYTES as u64)).await.unwrap();
    assert_eq!(Manifest::decode(&bytes, &file.id()).unwrap().total_length(), 0);
    assert_eq!(fetch(&pool, &node, &content_request(&file.id(), 0, 1)).await.unwrap(), (vec![], true));
}

#[tokio::test]
async fn ranges_beyond_the_end_are_cut_to_what_there_is() {
    let file = file(CHUNK + 1000);
    let total = file.bytes.len() as u64;
    let node = serving("one", &file, Fault::None).await;
    let pool = pool("client");
    for (offset, length, expected) in [
        (0, u64::MAX, &file.bytes[..]),
        (total - 5, 100, &file.bytes[file.bytes.len() - 5..]),
        (total, 1, &[][..]),
        (u64::MAX, u64::MAX, &[][..]),
        (7, 0, &[][..]),
    ] {
        let (bytes, complete) = fetch(&pool, &node, &content_request(&file.id(), offset, length)).await.unwrap();
        assert!(bytes == expected && complete, "offset {offset}, length {length}");
    }
}

#[tokio::test]
async fn availability_tells_what_is_there_and_what_is_not() {
    let file = file(2 * CHUNK);
    let node = serving("one", &file, Fault::None).await;
    let item = |id: &FileId| {
        let request = content_request(id, 0, 1);
        AvailabilityItem::store(request.store_id)
            .with_root(request.root.unwrap())
            .with_retrieval_key(request.retrieval_key.unwrap())
    };
    let unknown = FileId::from_bytes([1; 32]);
    let items = vec![item(&unknown), item(&file.id()), AvailabilityItem::store("not hex")];
    let peer = node.peer_addr();
    let answer = pool("client").query_availability(&peer.peer_id, &[peer.addr], items, HANG).await.unwrap();
    let available: Vec<_> = answer.items.iter().map(|item| item.available).collect();
    assert_eq!(available, [false, true, false]);
    assert_eq!((answer.items[1].total_length, answer.items[1].chunk_count), (Some(2 * CHUNK as u64), Some(2)));
}

#[tokio::test]
async fn an_unknown_id_gets_an_error_and_the_connection_stays() {
    let file = file(10);
    let node = serving("one", &file, Fault::None).await;
    let pool = pool("client");
    let error = fetch(&pool, &node, &content_request(&FileId::from_bytes([1; 32]), 0, 10)).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "an error is no frame: {error}");
    assert!(fetch(&pool, &node, &content_request(&file.id(), 0, 10)).await.unwrap().0 == file.bytes);
    assert_eq!((node.stats().requests_refused, node.stats().connections), (1, 1));
}

#[tokio::test]
async fn garbage_on_a_stream_ends_that_stream_and_nothing_else() {
    let file = file(10);
    let node = serving("one", &file, Fault::None).await;
    let (pool, peer) = (pool("client"), node.peer_addr());
    let endless = u32::MAX.to_be_bytes();
    for garbage in [&b"\0\0\0\x05nope!"[..], b"\0\0\0\x02{}", b"\0\0\0\0", &endless, b"\0\0"] {
        let mut stream = pool.open_stream(&peer.peer_id, &[peer.addr]).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // An error message, an end or a reset; no hang.
        let _ = tokio::time::timeout(HANG, stream.read_to_end(&mut answer)).await.expect("no hang");
    }
    assert!(fetch(&pool, &node, &content_request(&file.id(), 0, 10)).await.unwrap().0 == file.bytes);
    assert_eq!(node.stats().connections, 1);
}

#[tokio::test]
async fn bytes_that_are_no_handshake_do_not_disturb_the_node() {
    let file = file(10);
    let node = serving("one", &file, Fault::None).await;
    let mut stranger = tokio::net::TcpStream::connect(node.local_addr()).await.unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(HANG, stranger.read_to_end(&mut answer)).await.expect("the node hangs up");
    assert!(fetch(&pool("client"), &node, &content_request(&file.id(), 0, 10)).await.unwrap().0 == file.bytes);
}

#[tokio::test]
async fn a_file_of_many_chunks_is_served_piece_by_piece() {
    let (_dir, path) = sparse(96 * 1024 * 1024);
    let node = node("one").share(&path).start().await.unwrap();
    let pool = pool("client");
    let before = resident_kib();
    let mut streams = Vec::new();
    for _ in 0..8 {
        // Eight times the whole file is asked for, and nobody reads on: the node has to stop, not to buffer.
        let mut stream = open(&pool, node.peer_addr(), &content_request(&node.files()[0], 0, u64::MAX)).await.unwrap();
        RangeFrame::decode(&mut stream).await.unwrap().unwrap();
        streams.push(stream);
    }
    let (bytes, _) = fetch(&pool, &node, &content_request(&node.files()[0], 0, 8 << 20)).await.unwrap();
    assert_eq!(bytes.len(), 8 << 20, "a stalled reader holds up nobody else");
    if let (Some(before), Some(after)) = (before, resident_kib()) {
        assert!(after.saturating_sub(before) < 100 * 1024, "{before} KiB became {after} KiB");
    }
}

/// A file of zeros that takes no space.
fn sparse(length: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeros");
    std::fs::File::create(&path).unwrap().set_len(length).unwrap();
    (dir, path)
}

/// The memory of this process, where the operating system tells it in the way of Linux.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
