//! The measuring transport: one chunk from one peer, timed, verified and judged (HOST-D2, HOST-D3, MEAS-10).
//!
//! Each request runs in a task of its own. The engine polls its requests from the same loop that writes to disk and looks
//! holders up, so times taken there would contain its stalls; here a byte is stamped when it arrives and a chunk is
//! hashed by the task that received it. The request's end is reported from that task, once; if the engine drops the
//! request, the task is aborted and the end is `Cancelled`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dig_dht::ProviderRecord;
use dig_download::{
    DownloadError, FetchedRange, RangeMeta, RangeTransport, VerifyError, assemble_range_stream, drain_trailer_bounded,
};
use dig_nat::{AvailabilityAnswer, AvailabilityItem, AvailabilityResponse, PeerId, RangeRequest};
use tokio::io::AsyncRead;
use tokio::time::Instant;

use super::ending::{Ending, Seen, broken_stream};
use super::holders::{Holders, pool_ending};
use super::ledger::{Attempt, Ledger, Verdict};
use super::reader::{StampedReader, Stamps};
use super::task::AbortOnDrop;
use crate::content::Manifest;
use crate::pool::Pool;

/// What a peer may send after its last frame before the stream is simply dropped, bytes.
const TRAILER_BYTES: u64 = 64 * 1024;

/// How long the end of a stream is waited for after the last frame, off the critical path.
const TRAILER_TIMEOUT: Duration = Duration::from_secs(1);

/// From this chunk length on, hashing moves off the async threads.
const HASH_INLINE_MAX: u64 = 1024 * 1024;

/// Carries the ranges of one download.
pub(super) struct MeasuringTransport {
    carrier: Arc<Carrier>,
    holders: Arc<Holders>,
}

/// What a request's own task needs.
struct Carrier {
    pool: Arc<Pool>,
    ledger: Arc<Ledger>,
    /// Bound on one request in any case.
    range_timeout: Duration,
    /// Whether late ranges are given up for other peers.
    patient: bool,
}

impl MeasuringTransport {
    pub(super) fn new(
        pool: Arc<Pool>,
        ledger: Arc<Ledger>,
        holders: Arc<Holders>,
        range_timeout: Duration,
        patient: bool,
    ) -> Self {
        let carrier = Arc::new(Carrier { pool, ledger, range_timeout, patient });
        MeasuringTransport { carrier, holders }
    }
}

#[async_trait]
impl RangeTransport for MeasuringTransport {
    /// Answered from what the finder has confirmed: the engine asks only about holders it was shown.
    async fn query_availability(
        &self,
        _provider: &ProviderRecord,
        items: Vec<AvailabilityItem>,
    ) -> Result<AvailabilityResponse, DownloadError> {
        Ok(AvailabilityResponse::new(items.iter().map(|_| AvailabilityAnswer::available()).collect()))
    }

    async fn fetch_range(&self, provider: &ProviderRecord, req: &RangeRequest) -> Result<FetchedRange, DownloadError> {
        let name = &provider.provider_peer_id;
        let fault = |reason: &str| DownloadError::transport(name, reason);
        let peer = PeerId::from_hex(name).ok_or_else(|| fault("malformed peer id"))?;
        let ledger = &self.carrier.ledger;
        let range = ledger.layout().range_at(req.offset, req.length).ok_or_else(|| fault("no such chunk"))?;
        let attempt = ledger.begin(range, peer).ok_or_else(|| fault("no such chunk"))?;

        let mut real = req.clone();
        (real.offset, real.length) = (attempt.chunk.offset, attempt.chunk.length);
        let mut guard = Guard::new(self.carrier.clone(), attempt);
        let addrs = self.holders.addrs(&peer);
        let (carrier, reported) = (self.carrier.clone(), guard.reported.clone());
        let task = AbortOnDrop::spawn(async move {
            let (ending, seen, bytes) = carrier.carry(&attempt, &addrs, &real).await;
            if !reported.swap(true, Ordering::AcqRel) {
                carrier.ledger.report(&attempt, &ending, seen);
            }
            (ending, bytes)
        });
        let (ending, bytes) = task.await.map_err(|_| fault("the request's task ended"))?;
        guard.close(ending == Ending::Verified);
        if ledger.is_expelled(&peer) {
            self.holders.expel(&peer);
        }
        match ending {
            Ending::Verified => Ok(FetchedRange { request_offset: req.offset, bytes, meta: RangeMeta::default() }),
            Ending::Hostile(why) => Err(DownloadError::Verify(VerifyError::Metadata(why))),
            Ending::TimedOut(_) => Err(DownloadError::Timeout { provider: name.clone() }),
            other => Err(fault(other.reason().unwrap_or("cancelled"))),
        }
    }
}

/// Settles an attempt that the engine drops.
struct Guard {
    carrier: Arc<Carrier>,
    attempt: Attempt,
    reported: Arc<AtomicBool>,
    closed: bool,
}

impl Guard {
    fn new(carrier: Arc<Carrier>, attempt: Attempt) -> Self {
        Guard { carrier, attempt, reported: Arc::default(), closed: false }
    }

    fn close(&mut self, done: bool) {
        self.closed = true;
        self.carrier.ledger.close(&self.attempt, done);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.reported.swap(true, Ordering::AcqRel) {
            let seen = self.carrier.ledger.seen(&self.attempt);
            self.carrier.ledger.report(&self.attempt, &Ending::Cancelled, seen);
        }
        if !self.closed {
            self.close(false);
        }
    }
}

impl Carrier {
    /// Runs one request to its end, or until patience ends.
    async fn carry(
        &self,
        attempt: &Attempt,
        addrs: &[std::net::SocketAddr],
        request: &RangeRequest,
    ) -> (Ending, Seen, Vec<u8>) {
        let exchange = self.exchange(attempt, addrs, request);
        tokio::pin!(exchange);
        let mut wait = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                done = &mut exchange => return done,
                () = tokio::time::sleep(wait) => {
                    match self.ledger.judge(attempt, self.range_timeout, self.patient) {
                        Verdict::Wait(longer) => wait = longer,
                        Verdict::Move => return (Ending::Cancelled, self.ledger.seen(attempt), Vec::new()),
                        Verdict::GiveUp(why) => return (Ending::TimedOut(why), self.ledger.seen(attempt), Vec::new()),
                    }
                }
            }
        }
    }

    async fn exchange(
        &self,
        attempt: &Attempt,
        addrs: &[std::net::SocketAddr],
        request: &RangeRequest,
    ) -> (Ending, Seen, Vec<u8>) {
        let asked = Instant::now();
        let stream = match self.pool.open_range(&attempt.peer, addrs, request).await {
            Ok(stream) => stream,
            Err(e) => {
                let seen = Seen { duration: asked.elapsed(), ..Seen::default() };
                return (pool_ending(&e), seen, Vec::new());
            }
        };
        let stamps = Stamps::new(Instant::now());
        self.ledger.sent(attempt, stamps.clone());
        let reader = StampedReader::new(stream, stamps.clone());
        let received = receive(reader, &stamps, attempt.chunk.length).await;
        let seen = Seen {
            bytes: received.bytes.len() as u64,
            duration: stamps.last_byte().unwrap_or_else(|| stamps.sent().elapsed()),
            first_byte: stamps.first_byte(),
        };
        match received.fault {
            Some(fault) => (
                fault,
                Seen { bytes: seen.bytes.max(stamps.payload_bytes()).min(attempt.chunk.length), ..seen },
                Vec::new(),
            ),
            None => {
                let manifest = self.ledger.layout().manifest().clone();
                let (ending, bytes) = proven(manifest, attempt.chunk.index, received.bytes).await;
                (ending, seen, bytes)
            }
        }
    }
}

/// What came of one answer.
pub(super) struct Received {
    pub(super) bytes: Vec<u8>,
    /// Why it is not the whole answer, if it is not.
    pub(super) fault: Option<Ending>,
}

/// Reads an answer of exactly `length` bytes.
async fn receive<R: AsyncRead + Unpin + Send + 'static>(
    mut reader: StampedReader<R>,
    stamps: &Stamps,
    length: u64,
) -> Received {
    match assemble_range_stream(&mut reader, length).await {
        Err(e) => Received { bytes: Vec::new(), fault: Some(broken_stream(stamps.connection_ended(), e.to_string())) },
        Ok((bytes, _)) if (bytes.len() as u64) < length => {
            let why = format!("the stream ended after {} of {length} bytes", bytes.len());
            Received { bytes, fault: Some(Ending::Interrupted(why)) }
        }
        Ok((bytes, _)) => {
            drain(reader);
            Received { bytes, fault: None }
        }
    }
}

/// Lets the stream close cleanly without anybody waiting for it.
pub(super) fn drain<R: AsyncRead + Unpin + Send + 'static>(mut reader: R) {
    tokio::spawn(async move {
        let _ = tokio::time::timeout(TRAILER_TIMEOUT, drain_trailer_bounded(&mut reader, TRAILER_BYTES)).await;
    });
}

/// Hashes a chunk against the manifest.
async fn proven(manifest: Arc<Manifest>, index: usize, bytes: Vec<u8>) -> (Ending, Vec<u8>) {
    let long = bytes.len() as u64 > HASH_INLINE_MAX;
    let check = move || match manifest.verify_chunk(index, &bytes) {
        Ok(()) => (Ending::Verified, bytes),
        Err(e) => (Ending::Hostile(e.to_string()), Vec::new()),
    };
    if !long {
        return check();
    }
    match tokio::task::spawn_blocking(check).await {
        Ok(done) => done,
        Err(e) => (Ending::Interrupted(format!("hashing ended: {e}")), Vec::new()),
    }
}
