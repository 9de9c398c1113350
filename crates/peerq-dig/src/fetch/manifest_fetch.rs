//! The manifest first: small, from anybody, checked against the id before it is believed (HOST-D3).
//!
//! Holders are asked one after the other, the best known first. The next one starts when the one before has failed, or
//! when it has shown nothing for a short while; the first manifest that hashes to the id wins. A wrong one is proof
//! against its sender, and whoever answers first shapes nothing.

use std::sync::Arc;
use std::time::Duration;

use dig_download::assemble_range_stream;
use dig_nat::PeerId;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use super::ending::{Ending, Seen, broken_stream};
use super::holders::{Holders, pool_ending};
use super::reader::{StampedReader, Stamps};
use super::scorebook::Scorebook;
use super::transport::drain;
use crate::content::{FileId, MAX_MANIFEST_BYTES, Manifest};
use crate::pool::Pool;

/// How long one holder has before the next is asked as well. Higher: a silent holder delays the start. Lower: distant
/// holders are asked in vain. Unmeasured heuristic; a few round trips of a long path.
const HEDGE_AFTER: Duration = Duration::from_millis(400);

/// Most holders asked at a time; bounds memory to this many manifests.
const MAX_RUNNING: usize = 4;

/// Fetches and verifies the manifest of `id`; `None` when no holder is left that could still be asked.
pub(super) async fn fetch_manifest(
    id: FileId,
    pool: &Arc<Pool>,
    holders: &Holders,
    book: &Arc<Scorebook>,
    timeout: Duration,
) -> Option<Manifest> {
    let mut search = holders.watch();
    let mut asked: Vec<PeerId> = Vec::new();
    let mut running = FuturesUnordered::new();
    let mut next_start = Instant::now();
    holders.ready().await;
    loop {
        let state = *search.borrow_and_update();
        let next = best(holders, book, &asked);
        let due = running.is_empty() || Instant::now() >= next_start;
        if let Some(peer) = next.filter(|_| due && running.len() < MAX_RUNNING) {
            asked.push(peer);
            running.push(ask(id, pool, peer, holders, book, timeout));
            next_start = Instant::now() + HEDGE_AFTER;
            continue;
        }
        if running.is_empty() && state.settled() {
            return None;
        }
        tokio::select! {
            Some(manifest) = running.next(), if !running.is_empty() => {
                if manifest.is_some() {
                    return manifest;
                }
            }
            changed = search.changed() => changed.ok()?,
            () = tokio::time::sleep_until(next_start), if next.is_some() && !due => {}
        }
    }
}

/// The best confirmed holder not asked yet: not banned, then reliable, then fast, then by id.
fn best(holders: &Holders, book: &Scorebook, asked: &[PeerId]) -> Option<PeerId> {
    let score = |peer: &PeerId| {
        let known = book.selector().and_then(|s| s.peer_snapshot(peer));
        known.map_or((0, 0.5, 0.0), |k| {
            (u8::from(k.banned), k.reliability.unwrap_or(0.5), k.throughput_bps.unwrap_or(0.0))
        })
    };
    let mut open: Vec<_> =
        holders.confirmed().into_iter().filter(|p| !asked.contains(p)).map(|p| (score(&p), p)).collect();
    open.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(b.2.total_cmp(&a.2)));
    open.first().map(|(_, p)| *p)
}

async fn ask(
    id: FileId,
    pool: &Arc<Pool>,
    peer: PeerId,
    holders: &Holders,
    book: &Arc<Scorebook>,
    timeout: Duration,
) -> Option<Manifest> {
    let asking = exchange(id, pool, peer, holders);
    let (ending, seen, manifest) = match tokio::time::timeout(timeout, asking).await {
        Ok(done) => done,
        Err(_) => {
            let seen = Seen { duration: timeout, ..Seen::default() };
            (Ending::TimedOut(format!("no manifest within {timeout:?}")), seen, None)
        }
    };
    book.record_unplanned(peer, id.manifest_content(), &ending, seen);
    manifest
}

async fn exchange(id: FileId, pool: &Arc<Pool>, peer: PeerId, holders: &Holders) -> (Ending, Seen, Option<Manifest>) {
    let max = MAX_MANIFEST_BYTES as u64;
    let asked = Instant::now();
    let Some(request) = super::request(&id.manifest_content(), 0, max) else {
        return (Ending::Cancelled, Seen::default(), None);
    };
    let stream = match pool.open_range(&peer, &holders.addrs(&peer), &request).await {
        Ok(stream) => stream,
        Err(e) => {
            let seen = Seen { duration: asked.elapsed(), ..Seen::default() };
            return (pool_ending(&e), seen, None);
        }
    };
    let stamps = Stamps::new(Instant::now());
    let mut reader = StampedReader::new(stream, stamps.clone());
    let answer = assemble_range_stream(&mut reader, max).await;
    let (ending, bytes, manifest) = match answer {
        Ok((bytes, meta)) => {
            drain(reader);
            judge(id, &bytes, meta.total_length)
        }
        Err(e) => (broken_stream(stamps.connection_ended(), e.to_string()), 0, None),
    };
    let duration = stamps.last_byte().unwrap_or_else(|| stamps.sent().elapsed());
    (ending, Seen { bytes, duration, first_byte: stamps.first_byte() }, manifest)
}

/// What an answer of `bytes` out of `declared` is.
fn judge(id: FileId, bytes: &[u8], declared: Option<u64>) -> (Ending, u64, Option<Manifest>) {
    let got = bytes.len() as u64;
    match Manifest::decode(bytes, &id) {
        Ok(manifest) => (Ending::Verified, got, Some(manifest)),
        Err(_) if got == 0 || got < declared.unwrap_or(0).min(MAX_MANIFEST_BYTES as u64) => {
            (Ending::Interrupted(format!("the manifest ended after {got} bytes")), got, None)
        }
        Err(e) => (Ending::Hostile(e.to_string()), got, None),
    }
}
