//! Connections: who is dialled, who answers, and what is said when it goes wrong (HOST-D2, HOST-D4).

mod common;

use common::*;
use dig_nat::mux::RangeFrame;
use peerq_dig::node::{Fault, NodeError};
use peerq_dig::{PeerAddr, PeerId, PoolError, PoolNotice};

const CHUNK: usize = 256 * 1024;

#[tokio::test]
async fn whoever_answers_as_someone_else_is_named_in_the_error() {
    let file = file(10);
    let node = serving("one", &file, Fault::None).await;
    let asked = PeerAddr { addr: node.local_addr(), peer_id: PeerId::from_bytes([1; 32]) };
    let error = open(&pool("client"), asked, &content_request(&file.id(), 0, 1)).await.unwrap_err();
    let PoolError::WrongPeer { expected, found, .. } = &error else { panic!("not {error}") };
    assert_eq!((*expected, *found), (asked.peer_id, node.peer_id()));
    assert!(error.to_string().contains(&node.peer_id().to_hex()), "{error}");
}

#[tokio::test]
async fn an_address_nobody_listens_on_is_unreachable_and_a_second_one_is_tried() {
    let file = file(10);
    let node = serving("one", &file, Fault::None).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (pool, peer) = (pool("client"), node.peer_id());
    let error = pool.open_stream(&peer, &[free]).await.unwrap_err();
    assert!(matches!(error, PoolError::Unreachable { addr, .. } if addr == free), "{error}");
    assert!(pool.open_stream(&peer, &[free, node.local_addr()]).await.is_ok());
    assert!(matches!(pool.open_stream(&PeerId::from_bytes([3; 32]), &[]).await, Err(PoolError::NoAddress { .. })));
    let own = pool.identity().peer_id();
    assert!(matches!(pool.open_stream(&own, &[node.local_addr()]).await, Err(PoolError::SelfDial)));
}

#[tokio::test]
async fn an_address_in_use_and_a_missing_file_are_named() {
    let file = file(10);
    let first = serving("one", &file, Fault::None).await;
    let error = node("two").listen(first.local_addr()).start().await.unwrap_err();
    assert!(matches!(error, NodeError::AddressInUse { addr } if addr == first.local_addr()), "{error}");
    let error = node("two").share("/no/such/file").start().await.unwrap_err();
    assert!(error.to_string().contains("/no/such/file"), "{error}");
    let addr = first.local_addr();
    first.shutdown().await;
    node("two").listen(addr).start().await.expect("the port is free after a shutdown");
}

#[tokio::test]
async fn many_callers_share_one_connection_and_a_killed_node_breaks_it() {
    let file = file(4 * CHUNK);
    let mut node = serving("one", &file, Fault::None).await;
    let (pool, peer) = (pool("client"), node.peer_addr());
    let mut events = pool.subscribe();
    let request = content_request(&file.id(), 0, 4 * CHUNK as u64);
    let fetches =
        (0..40).map(|_| async { read_all(open(&pool, peer, &request).await.unwrap()).await.unwrap().0.len() });
    let lengths = futures::future::join_all(fetches).await;
    assert_eq!(lengths, [4 * CHUNK; 40]);
    assert_eq!(node.stats().connections, 1, "dialled once for all");
    assert_eq!(pool.connected(), [(peer.peer_id, peer.addr)]);
    assert!(
        matches!(events.recv().await.unwrap(), PoolNotice::Added { peer: p, addr } if p == peer.peer_id && addr == peer.addr)
    );
    assert!(matches!(events.recv().await.unwrap(), PoolNotice::Class { kind: dig_nat::TraversalKind::Direct, .. }));

    let mut stream = open(&pool, peer, &request).await.unwrap();
    RangeFrame::decode(&mut stream).await.unwrap().unwrap();
    node.kill();
    assert!(!read_all_quietly(stream).await, "the range does not end as if it were whole");
    assert_eq!(events.recv().await.unwrap(), PoolNotice::Removed { peer: peer.peer_id });
    assert!(pool.connected().is_empty());
    let error = loop {
        // The listener goes away a moment after the connections.
        match open(&pool, peer, &request).await {
            Ok(stream) => assert!(!read_all_quietly(stream).await),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, PoolError::Unreachable { .. } | PoolError::Handshake { .. } | PoolError::Session { .. }),
        "{error}"
    );
}

/// Reads what comes; whether the last frame came.
async fn read_all_quietly(mut stream: dig_nat::mux::PeerStream) -> bool {
    while let Ok(Some(frame)) = tokio::time::timeout(HANG, RangeFrame::decode(&mut stream)).await.expect("no hang") {
        if frame.complete {
            return true;
        }
    }
    false
}
