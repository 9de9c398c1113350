//! Pausing, resuming, cancelling and crashing lose nothing that was verified and charge nobody (HOST-D6; the main job's
//! show 3).

mod support;

use std::sync::Arc;

use peerq_dig::fetch::{FetchError, FetchHandle, FetchOptions, FetchState, Fetcher, Policy, Progress};
use support::{Act, Ask, CHUNK, Client, Holder, data, of};
use tokio::sync::Semaphore;

async fn until(handle: &FetchHandle, what: impl FnMut(&Progress) -> bool) {
    handle.progress().wait_for(what).await.expect("the fetch publishes its last state");
}

/// Serves the manifest freely and each chunk for one permit.
async fn gated(seed: u8, data: &Arc<Vec<u8>>, gate: &Arc<Semaphore>) -> Holder {
    let gate = gate.clone();
    Holder::start(seed, data, move |ask| match ask {
        Ask::Chunk(_) => Act::Gate(gate.clone()),
        _ => Act::Serve,
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_fetch_asks_only_for_what_a_killed_one_was_missing() {
    let data = data(10 * CHUNK + 5);
    let gate = Arc::new(Semaphore::new(4));
    let client = Client::new();
    let first = gated(1, &data, &gate).await;
    let handle = client.fetcher.fetch(client.options(&[&first]));
    until(&handle, |p| p.bytes_done == 4 * CHUNK as u64).await;
    first.kill();
    drop(handle);

    let second = Holder::honest(2, &data).await;
    // Another process: a new pool, a new selector; only the folder is the same.
    let fresh = Client { dir: client.dir, ..Client::new() };
    let report = loop {
        // The dropped fetch may still be settling; its lock tells.
        match fresh.fetcher.fetch(fresh.options(&[&second])).join().await {
            Err(FetchError::OutputBusy { .. }) => tokio::task::yield_now().await,
            other => break other.unwrap(),
        }
    };
    assert_eq!(fresh.fetched(), *data);
    assert_eq!(report.bytes_resumed, 4 * CHUNK as u64);
    assert_eq!(report.bytes_from_network, data.len() as u64 - 4 * CHUNK as u64);
    assert_eq!(second.bytes_served(), report.bytes_from_network);
    assert!(!second.manifest_asked(), "the verified manifest was kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_killed_half_way_costs_nothing_but_its_running_ranges() {
    let data = data(12 * CHUNK);
    let gate = Arc::new(Semaphore::new(3));
    let doomed = gated(1, &data, &gate).await;
    let honest = Holder::honest(2, &data).await;
    let client = Client::new();
    let handle = client.fetcher.fetch(client.options(&[&doomed, &honest]).policy(Policy::RoundRobin));
    until(&handle, |p| p.bytes_by_peer.iter().any(|(peer, bytes)| *peer == doomed.addr.peer_id && *bytes > 0)).await;
    doomed.kill();
    let report = handle.join().await.unwrap();
    assert_eq!(client.fetched(), *data);
    assert_eq!(of(&report.peers, &doomed).outcomes.verification_failed, 0);
    assert_eq!(of(&report.peers, &doomed).bytes + of(&report.peers, &honest).bytes, data.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_charges_nobody_and_the_rest_follows_after_it() {
    let data = data(20 * CHUNK);
    let gate = Arc::new(Semaphore::new(2));
    let holder = gated(1, &data, &gate).await;
    let client = Client::new();
    let handle = client.fetcher.fetch(client.options(&[&holder]));
    until(&handle, |p| p.bytes_done >= 2 * CHUNK as u64).await;
    handle.pause();
    until(&handle, |p| p.state == FetchState::Paused).await;
    gate.add_permits(8);
    // What was under way finishes; nothing new is asked for.
    until(&handle, |p| p.active.is_empty()).await;
    let asked = holder.chunks_asked().len();
    assert!(asked < 20, "a paused fetch asks for nothing new, but {asked} chunks were asked for");
    gate.add_permits(100);
    handle.resume();
    let report = handle.join().await.unwrap();
    assert_eq!(client.fetched(), *data);
    let outcomes = of(&report.peers, &holder).outcomes;
    assert_eq!((outcomes.ok, outcomes.timeout, outcomes.interrupted), (21, 0, 0), "20 chunks and a manifest");
    assert_eq!(outcomes.cancelled, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_fetch_says_so_keeps_what_it_has_and_charges_nobody() {
    let data = data(10 * CHUNK);
    let gate = Arc::new(Semaphore::new(3));
    let holder = gated(1, &data, &gate).await;
    let client = Client::new();
    let handle = client.fetcher.fetch(client.options(&[&holder]));
    until(&handle, |p| p.bytes_done == 3 * CHUNK as u64).await;
    handle.cancel();
    assert!(matches!(handle.join().await, Err(FetchError::Cancelled)));
    let known = client.selector.peer_snapshot(&holder.addr.peer_id).unwrap();
    assert_eq!((known.hard_failures, known.in_flight > 64), (0, false));
    assert!(!client.output().exists());
    gate.add_permits(100);
    let report = client.fetcher.fetch(client.options(&[&holder])).join().await.unwrap();
    assert_eq!(report.bytes_resumed, 3 * CHUNK as u64);
    assert_eq!(client.fetched(), *data);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_can_be_cancelled_while_it_looks_for_holders() {
    let data = data(CHUNK);
    let silent = Holder::start(1, &data, |_| Act::Silent).await;
    let client = Client::new();
    let handle = client.fetcher.fetch(client.options(&[&silent]));
    handle.cancel();
    assert!(matches!(handle.join().await, Err(FetchError::Cancelled)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_staging_file_needs_no_network_at_all() {
    let data = data(3 * CHUNK);
    let holder = Holder::honest(1, &data).await;
    let client = Client::new();
    // A crash between the last chunk and the rename leaves exactly this.
    let id = holder.id.to_string();
    let hidden = |kind: &str| client.dir.path().join(format!(".out.{}.peerq-{kind}", &id[..16]));
    std::fs::write(hidden("part"), &*data).unwrap();
    std::fs::write(hidden("manifest"), peerq_dig::Manifest::of_bytes(&data).encode()).unwrap();
    let report = client.fetcher.fetch(FetchOptions::new(holder.id, client.output())).join().await.unwrap();
    assert_eq!((report.bytes_resumed, report.bytes_from_network), (data.len() as u64, 0));
    assert_eq!(client.fetched(), *data);
    assert_eq!(client.leftovers(), ["out"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_rotted_in_the_staging_file_are_fetched_again() {
    let data = data(4 * CHUNK);
    let holder = Holder::honest(1, &data).await;
    let client = Client::new();
    let mut staged = data[..3 * CHUNK].to_vec();
    staged[CHUNK + 9] ^= 1;
    let id = holder.id.to_string();
    std::fs::write(client.dir.path().join(format!(".out.{}.peerq-part", &id[..16])), staged).unwrap();
    let report = client.fetcher.fetch(client.options(&[&holder])).join().await.unwrap();
    assert_eq!(report.bytes_resumed, 2 * CHUNK as u64);
    assert_eq!(client.fetched(), *data);
    let mut asked = holder.chunks_asked();
    asked.sort_unstable();
    assert_eq!(asked, [1, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_downloads_at_once_share_one_selector() {
    let (first, second) = (data(6 * CHUNK), data(5 * CHUNK + 1));
    let (a, b) = (Holder::honest(1, &first).await, Holder::honest(2, &second).await);
    let client = Client::new();
    let options = |holder: &Holder, name: &str| {
        FetchOptions::new(holder.id, client.dir.path().join(name))
            .peer(holder.addr)
            .policy(Policy::Peerq(client.selector.clone()))
    };
    let one = client.fetcher.fetch(options(&a, "one"));
    let two = client.fetcher.fetch(options(&b, "two"));
    let (one, two) = tokio::join!(one.join(), two.join());
    assert_eq!((one.unwrap().total_length, two.unwrap().total_length), (first.len() as u64, second.len() as u64));
    assert_eq!(std::fs::read(client.dir.path().join("one")).unwrap(), *first);
    assert_eq!(std::fs::read(client.dir.path().join("two")).unwrap(), *second);
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_that_cannot_be_written_are_refused_before_anybody_is_asked() {
    let data = data(CHUNK);
    let holder = Holder::honest(1, &data).await;
    let client = Client::new();
    std::fs::write(client.output(), b"mine").unwrap();
    let exists = client.fetcher.fetch(client.options(&[&holder])).join().await;
    assert!(matches!(exists, Err(FetchError::OutputExists { .. })));
    let folder = FetchOptions::new(holder.id, client.dir.path()).peer(holder.addr);
    let is_folder = Fetcher::new(client.pool.clone()).fetch(folder).join().await;
    assert!(matches!(is_folder, Err(FetchError::OutputIsDirectory { .. })));
    let nowhere = FetchOptions::new(holder.id, client.dir.path().join("no/such/out")).peer(holder.addr);
    let missing = client.fetcher.fetch(nowhere).join().await;
    assert!(matches!(missing, Err(FetchError::Io { .. })));
    assert!(holder.chunks_asked().is_empty() && !holder.manifest_asked());
}
