//! Answers the requests of one stream (HOST-D4).
//!
//! The one idea: an answer is a loop of pieces – read, frame, send – with buffers of one piece, so that a range of any
//! length from a file of any size costs the same memory, and a receiver that does not read stops the reading.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dig_nat::PeerId;
use dig_nat::mux::{AvailabilityResponse, PeerStream, RangeRequest};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Shared;
use super::fault::Fault;
use super::frame::{self, FRAME_BYTES, Labels, Place};
use super::request::{self, Code, Request};
use super::share::{self, Share};
use crate::content::{FileId, Resource};
use crate::link::Switch;

/// How long a peer may take to state its request after opening a stream.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a peer may leave a piece unread before its stream is dropped. Shorter breaks slow links with many streams;
/// longer lets idle streams hold their places. Unmeasured heuristic.
const SEND_TIMEOUT: Duration = Duration::from_secs(120);
/// Payload read and sent at once, bytes: four frames.
const PIECE_BYTES: usize = 4 * FRAME_BYTES;

/// Answers the one request of `stream`, from the peer that proved to be `peer`.
pub(super) async fn answer(
    shared: Arc<Shared>,
    peer: PeerId,
    mut stream: PeerStream,
    switch: Switch,
) -> io::Result<()> {
    let request = timely(REQUEST_TIMEOUT, request::read(&mut stream)).await?;
    if shared.misbehaviour.fault == Fault::NeverAnswers {
        return silence(stream).await;
    }
    match request {
        Request::Range(request) => match named(&shared, &request) {
            Some((share, resource)) => {
                return range(&shared, stream, &request, &share, resource, &switch).await;
            }
            None => {
                let refusal = request::error(None, Code::ResourceUnavailable, "this node does not have the resource");
                refuse(&shared, &mut stream, &refusal).await?;
            }
        },
        Request::Availability(request) => {
            let answers = request.items.iter().map(|item| share::availability(&shared.shares, item)).collect();
            send(&mut stream, &AvailabilityResponse::new(answers).encode()?).await?;
        }
        Request::Dht(request) => {
            let response = shared.discovery.answer(&peer, request).await;
            send(&mut stream, &response.encode()).await?;
        }
        Request::Refused(refusal) => refuse(&shared, &mut stream, &refusal).await?,
    }
    finish(&mut stream).await
}

/// The resource that `request` names, if this node has it.
fn named(shared: &Shared, request: &RangeRequest) -> Option<(Arc<Share>, Resource)> {
    let key = request.retrieval_key.as_deref().filter(|_| !request.capsule);
    let (id, resource) = FileId::of_wire(&request.store_id, request.root.as_deref(), key)?;
    Some((Arc::clone(shared.shares.get(&id)?), resource))
}

async fn range(
    shared: &Shared,
    mut stream: PeerStream,
    request: &RangeRequest,
    share: &Arc<Share>,
    resource: Resource,
    switch: &Switch,
) -> io::Result<()> {
    let total = share.length(resource);
    let start = request.offset.min(total);
    let length = request.length.min(total - start);
    let of_content = resource == Resource::Content;
    let mut in_flight = of_content.then(|| shared.counters.range_starts());
    if of_content && shared.misbehaviour.ignores(length) {
        return silence(stream).await;
    }
    // Streams wait here for their turn, holding no buffers.
    let _place = shared.answers.acquire().await.map_err(io::Error::other)?;
    let with_layout = request.skip_layout != Some(true);
    let mut writer = Writer {
        labels: Labels::new(&share.root, total, with_layout.then(|| share.chunk_count(resource))),
        layout: if with_layout { share.layout(resource) } else { Vec::new() },
        share: Arc::clone(share),
        resource,
        start,
        length,
        sent: 0,
        raw: Vec::new(),
        out: Vec::new(),
    };
    let cut_after = shared.misbehaviour.cut_after(length).filter(|_| of_content);
    loop {
        let served = shared.counters.bytes_served.load(Relaxed);
        let left = cut_after.unwrap_or(length) - writer.sent;
        let wanted = left.min(PIECE_BYTES as u64).min(shared.misbehaviour.piece_bytes(served) as u64) as usize;
        if of_content {
            shared.misbehaviour.dawdle(served, wanted).await;
        }
        writer = writer.fill(wanted, shared).await?;
        if writer.sent == length {
            // Whoever has its last bytes may ask for the next range before this stream is closed.
            in_flight.take();
        }
        timely(SEND_TIMEOUT, stream.write_all(&writer.out)).await?;
        let counter = if of_content { &shared.counters.bytes_served } else { &shared.counters.manifest_bytes_served };
        counter.fetch_add(wanted as u64, Relaxed);
        if cut_after == Some(writer.sent) {
            timely(SEND_TIMEOUT, stream.flush()).await?;
            switch.cut();
            return Ok(());
        }
        if writer.sent == length {
            shared.counters.ranges_served.fetch_add(1, Relaxed);
            return finish(&mut stream).await;
        }
    }
}

/// The state of one range answer: what it is of, how far it is, and its two buffers.
struct Writer {
    labels: Labels,
    /// What is left to state of the layout.
    layout: Vec<u64>,
    share: Arc<Share>,
    resource: Resource,
    start: u64,
    length: u64,
    sent: u64,
    raw: Vec<u8>,
    out: Vec<u8>,
}

impl Writer {
    /// Reads the next `wanted` bytes and leaves their frames in `out`. The disk and the encoding keep a thread of the
    /// blocking pool busy, not one that drives connections.
    async fn fill(mut self, wanted: usize, shared: &Shared) -> io::Result<Writer> {
        let misbehaviour = Arc::clone(&shared.misbehaviour);
        tokio::task::spawn_blocking(move || {
            self.raw.resize(wanted, 0);
            self.share.read(self.resource, self.start + self.sent, &mut self.raw)?;
            misbehaviour.distort(&mut self.raw);
            self.encode();
            self.sent += wanted as u64;
            Ok(self)
        })
        .await
        .map_err(io::Error::other)?
    }

    fn encode(&mut self) {
        self.out.clear();
        let layout = std::mem::take(&mut self.layout);
        let mut pages: Vec<_> = frame::pages(&layout).collect();
        // One page rides the first data frame; a longer layout goes ahead of the data, in frames without payload.
        let riding = if pages.len() == 1 { pages.pop() } else { None };
        for page in pages {
            let place = Place { page: Some(page), ..Place::default() };
            frame::push(&mut self.out, &self.labels, place, &[]);
        }
        let mut place = Place { offset: self.sent, page: riding, ..Place::default() };
        if self.raw.is_empty() {
            place.complete = true;
            return frame::push(&mut self.out, &self.labels, place, &[]);
        }
        for payload in self.raw.chunks(FRAME_BYTES) {
            place.chunk_index = self.share.chunk_at(self.resource, self.start + place.offset);
            place.complete = place.offset + payload.len() as u64 == self.length;
            frame::push(&mut self.out, &self.labels, place, payload);
            place = Place { offset: place.offset + payload.len() as u64, ..Place::default() };
        }
    }
}

async fn refuse(shared: &Shared, stream: &mut PeerStream, refusal: &[u8]) -> io::Result<()> {
    shared.counters.requests_refused.fetch_add(1, Relaxed);
    send(stream, refusal).await
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    timely(SEND_TIMEOUT, stream.write_all(message)).await
}

/// Ends the answer: without this the reader waits for more until its own time-out.
async fn finish(stream: &mut PeerStream) -> io::Result<()> {
    timely(SEND_TIMEOUT, async {
        stream.flush().await?;
        stream.shutdown().await
    })
    .await
}

/// Says nothing for as long as the peer keeps the stream.
async fn silence(mut stream: PeerStream) -> io::Result<()> {
    let mut scratch = [0; 64];
    while stream.read(&mut scratch).await? > 0 {}
    std::future::pending().await
}

async fn timely<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
