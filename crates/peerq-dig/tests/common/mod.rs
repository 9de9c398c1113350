//! Nodes, files and clients for tests over real sockets on the loopback interface.
#![allow(dead_code, reason = "each test file uses some of this")]

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dig_download::{
    AvailabilityItem, AvailabilityResponse, DownloadConfig, DownloadError, DownloadOptions, Downloader, FetchedRange,
    InMemorySink, InMemoryStateStore, ProviderRecord, RangeRequest, RangeTransport, ResourceCommitment, Verifier,
    VerifyError, assemble_range_stream, drain_trailer_bounded,
};
use dig_nat::mux::{PeerStream, RangeFrame};
use peerq_dig::content::{FileId, Manifest};
use peerq_dig::discovery::{Locator, socket_addrs};
use peerq_dig::node::{Fault, Node, NodeBuilder};
use peerq_dig::{Identity, PeerAddr, PeerId, Pool, PoolConfig, PoolError};
use tempfile::NamedTempFile;

/// Long enough that only a hang reaches it.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// A file, its bytes and its manifest.
pub(crate) struct TestFile {
    pub(crate) file: NamedTempFile,
    pub(crate) bytes: Vec<u8>,
    pub(crate) manifest: Arc<Manifest>,
}

impl TestFile {
    pub(crate) fn id(&self) -> FileId {
        self.manifest.id()
    }
}

/// A file of `length` bytes without a pattern that a shifted read would hide in.
pub(crate) fn file(length: usize) -> TestFile {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ length as u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    let manifest = Arc::new(Manifest::of_bytes(&bytes));
    TestFile { file, bytes, manifest }
}

pub(crate) fn identity(name: &str) -> Arc<Identity> {
    Arc::new(Identity::from_seed(name.as_bytes()).unwrap())
}

pub(crate) fn pool(name: &str) -> Arc<Pool> {
    Pool::new(identity(name), PoolConfig::default())
}

pub(crate) fn node(name: &str) -> NodeBuilder {
    Node::builder(identity(name))
}

pub(crate) async fn serving(name: &str, file: &TestFile, fault: Fault) -> Node {
    node(name).fault(fault).share_prepared(file.file.path(), Arc::clone(&file.manifest)).start().await.unwrap()
}

/// A request for a part of a file, with or without the layout.
pub(crate) fn content_request(id: &FileId, offset: u64, length: u64) -> RangeRequest {
    request(&id.content(), offset, length)
}

pub(crate) fn manifest_request(id: &FileId, length: u64) -> RangeRequest {
    request(&id.manifest_content(), 0, length)
}

fn request(content: &dig_dht::ContentId, offset: u64, length: u64) -> RangeRequest {
    let dig_dht::ContentId::Resource { store_id, root, retrieval_key } = content else { panic!("not a resource") };
    RangeRequest::resource(hex::encode(store_id), hex::encode(retrieval_key), offset, length)
        .with_root(hex::encode(root))
        .with_skip_layout(true)
}

/// Opens a stream to `peer` for `request`.
pub(crate) async fn open(pool: &Arc<Pool>, peer: PeerAddr, request: &RangeRequest) -> Result<PeerStream, PoolError> {
    pool.open_range(&peer.peer_id, &[peer.addr], request).await
}

/// Reads all frames of an answer; the bytes, and whether the last frame says it is the last.
pub(crate) async fn read_all(mut stream: PeerStream) -> std::io::Result<(Vec<u8>, bool)> {
    let (mut bytes, mut complete) = (Vec::new(), false);
    while let Some(frame) = tokio::time::timeout(HANG, RangeFrame::decode(&mut stream)).await.expect("no hang")? {
        assert_eq!(frame.offset, bytes.len() as u64, "frames tile the range");
        bytes.extend_from_slice(&frame.bytes);
        complete = frame.complete;
    }
    Ok((bytes, complete))
}

/// Fetches one part of a file from one node.
pub(crate) async fn fetch(pool: &Arc<Pool>, node: &Node, request: &RangeRequest) -> std::io::Result<(Vec<u8>, bool)> {
    read_all(open(pool, node.peer_addr(), request).await.unwrap()).await
}

/// dig-download's transport over the pool.
pub(crate) struct PooledTransport(pub(crate) Arc<Pool>);

impl PooledTransport {
    fn target(record: &ProviderRecord) -> (PeerId, Vec<SocketAddr>) {
        (record.provider_peer_id().unwrap(), socket_addrs(record))
    }
}

#[async_trait]
impl RangeTransport for PooledTransport {
    async fn query_availability(
        &self,
        provider: &ProviderRecord,
        items: Vec<AvailabilityItem>,
    ) -> Result<AvailabilityResponse, DownloadError> {
        let (peer, addrs) = Self::target(provider);
        let query = self.0.query_availability(&peer, &addrs, items, Duration::from_secs(5));
        query.await.map_err(|error| DownloadError::transport(peer.to_hex(), error))
    }

    async fn fetch_range(&self, provider: &ProviderRecord, req: &RangeRequest) -> Result<FetchedRange, DownloadError> {
        let (peer, addrs) = Self::target(provider);
        let open = self.0.open_range(&peer, &addrs, req).await;
        let mut stream = open.map_err(|error| DownloadError::transport(peer.to_hex(), error))?;
        let (bytes, meta) = assemble_range_stream(&mut stream, req.length).await?;
        drain_trailer_bounded(&mut stream, 4096).await;
        Ok(FetchedRange { request_offset: req.offset, bytes, meta })
    }
}

/// Checks each range by the manifest's chunk hashes.
pub(crate) struct ManifestVerifier(pub(crate) Arc<Manifest>);

impl Verifier for ManifestVerifier {
    fn verify_range(&self, _: &ResourceCommitment, first: u64, expected: u64, bytes: &[u8]) -> Result<(), VerifyError> {
        if bytes.len() as u64 != expected {
            return Err(VerifyError::Length { expected, actual: bytes.len() as u64 });
        }
        let (mut rest, mut index) = (bytes, first as usize);
        while !rest.is_empty() {
            let length = self.0.chunk_len(index).ok_or(VerifyError::Root)? as usize;
            let (chunk, after) = rest.split_at_checked(length).ok_or(VerifyError::Root)?;
            self.0.verify_chunk(index, chunk).map_err(|_| VerifyError::Root)?;
            (rest, index) = (after, index + 1);
        }
        Ok(())
    }

    fn verify_resource(&self, _: &ResourceCommitment, full: &[u8]) -> Result<(), VerifyError> {
        (Manifest::of_bytes(full) == *self.0).then_some(()).ok_or(VerifyError::Root)
    }

    fn verify_resource_leaf(&self, _: &ResourceCommitment, _: &[u8; 32], _: u64) -> Result<(), VerifyError> {
        Ok(()) // Every chunk was checked.
    }
}

/// Downloads the file with dig-download's own round robin, and returns the bytes.
pub(crate) async fn download(
    file: &TestFile,
    locator: Locator,
    transport: Arc<dyn RangeTransport>,
) -> Result<Vec<u8>, DownloadError> {
    let mut config = DownloadConfig::default();
    config.window = u64::from(file.manifest.chunk_size());
    let downloader = Downloader::new(
        Arc::new(locator),
        transport,
        Arc::new(ManifestVerifier(Arc::clone(&file.manifest))),
        Arc::new(InMemoryStateStore::new()),
        config,
    );
    let sink = Arc::new(InMemorySink::new());
    let mut handle = downloader.download(file.id().content(), sink.clone(), DownloadOptions::default());
    while handle.next_event().await.is_some() {}
    handle.join().await?;
    Ok(sink.contents().await)
}
