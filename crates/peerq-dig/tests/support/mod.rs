//! A holder that does exactly what a test's script says, over real mTLS on loopback, and what tests need around it.
//!
//! The product's own node is honest or hostile as a whole. Tests of blame need a peer whose fault sits at one place (the
//! third chunk, the manifest, the second connection), and one that holds an answer back until the test lets it go.
#![allow(dead_code, unreachable_pub)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dig_nat::{AvailabilityAnswer, AvailabilityResponse, PeerSession, PeerStream, RangeFrame, RangeRequest};
use dig_peer_selector::{PeerSelector, SelectorConfig};
use dig_tls::BindingPolicy;
use peerq_dig::fetch::{FetchOptions, Fetcher, PeerReport, Policy};
use peerq_dig::{FileId, Identity, Manifest, PeerAddr, Pool, PoolConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// Most payload bytes of one frame.
const FRAME: usize = 32 * 1024;

/// The chunk size of every file in these tests.
pub const CHUNK: usize = 256 * 1024;

/// What is asked of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Whether it holds the file.
    Availability,
    /// The manifest.
    Manifest,
    /// A chunk.
    Chunk(usize),
}

/// What the holder does about it.
#[derive(Clone)]
pub enum Act {
    /// Answers truthfully.
    Serve,
    /// Answers "no" to availability, and ends the stream of anything else.
    Refuse,
    /// Flips a bit in everything.
    Corrupt,
    /// Never answers, and keeps the stream open.
    Silent,
    /// Sends this many payload bytes, then closes the whole connection.
    Cut(usize),
    /// Sends this many payload bytes, then ends the stream as if that were all.
    Short(usize),
    /// Sends a frame that is no frame.
    Garbage,
    /// Sends this many payload bytes, then holds the rest back for ever.
    Stall(usize),
    /// Answers truthfully once the test has added a permit.
    Gate(Arc<Semaphore>),
}

type Script = dyn Fn(Ask) -> Act + Send + Sync;

/// A scripted holder. Stops, sockets and all, when dropped.
pub struct Holder {
    pub addr: PeerAddr,
    pub id: FileId,
    served: Arc<AtomicU64>,
    asked: Arc<Mutex<Vec<Ask>>>,
    task: AbortHandle,
}

struct Shared {
    identity: Identity,
    data: Arc<Vec<u8>>,
    manifest: Vec<u8>,
    id: FileId,
    script: Box<Script>,
    served: Arc<AtomicU64>,
    asked: Arc<Mutex<Vec<Ask>>>,
}

impl Holder {
    /// Starts a holder of `data` with an identity drawn from `seed`.
    pub async fn start(seed: u8, data: &Arc<Vec<u8>>, script: impl Fn(Ask) -> Act + Send + Sync + 'static) -> Holder {
        let manifest = Manifest::of_bytes(data);
        let (served, asked) = (Arc::<AtomicU64>::default(), Arc::<Mutex<Vec<Ask>>>::default());
        let shared = Arc::new(Shared {
            identity: Identity::from_seed(&[seed]).unwrap(),
            data: data.clone(),
            id: manifest.id(),
            manifest: manifest.encode(),
            script: Box::new(script),
            served: served.clone(),
            asked: asked.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = PeerAddr { addr: listener.local_addr().unwrap(), peer_id: shared.identity.peer_id() };
        let id = shared.id;
        let task = tokio::spawn(listen(listener, shared)).abort_handle();
        Holder { addr, id, served, asked, task }
    }

    /// Starts an honest holder.
    pub async fn honest(seed: u8, data: &Arc<Vec<u8>>) -> Holder {
        Holder::start(seed, data, |_| Act::Serve).await
    }

    /// Chunk payload bytes it has sent.
    pub fn bytes_served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// The chunks it was asked for, in order, with repetitions.
    pub fn chunks_asked(&self) -> Vec<usize> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter_map(|a| if let Ask::Chunk(i) = a { Some(*i) } else { None }).collect()
    }

    /// Whether it was asked for the manifest.
    pub fn manifest_asked(&self) -> bool {
        self.asked.lock().unwrap().contains(&Ask::Manifest)
    }

    /// Closes its sockets at once, as a crash does.
    pub fn kill(&self) {
        self.task.abort();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    // The set aborts its tasks when the holder is killed, which drops every socket.
    let mut connections = JoinSet::new();
    while let Ok((tcp, _)) = listener.accept().await {
        let _ = tcp.set_nodelay(true);
        connections.spawn(connection(tcp, shared.clone()));
    }
}

async fn connection(tcp: tokio::net::TcpStream, shared: Arc<Shared>) {
    let config = dig_tls::server_config(shared.identity.cert(), BindingPolicy::Opportunistic).unwrap();
    let Ok(tls) = TlsAcceptor::from(config.config).accept(tcp).await else {
        return;
    };
    let mut session = PeerSession::server(tls);
    let mut streams = JoinSet::new();
    let cut = Arc::new(tokio::sync::Notify::new());
    loop {
        tokio::select! {
            stream = session.accept_stream() => match stream {
                Some(stream) => streams.spawn(answer(stream, shared.clone(), cut.clone())),
                None => return,
            },
            () = cut.notified() => return,
        };
    }
}

async fn answer(mut stream: PeerStream, shared: Arc<Shared>, cut: Arc<tokio::sync::Notify>) {
    let Ok(length) = stream.read_u32().await else {
        return;
    };
    let mut body = vec![0; length as usize];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let message: serde_json::Value = serde_json::from_slice(&body).unwrap();
    if message.get("items").is_some() {
        shared.note(Ask::Availability);
        let yes = match (shared.script)(Ask::Availability) {
            Act::Silent => return std::future::pending().await,
            Act::Refuse => false,
            _ => true,
        };
        let item = if yes { AvailabilityAnswer::available() } else { AvailabilityAnswer::unavailable() };
        let answer = AvailabilityResponse::new(vec![item]).encode().unwrap();
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
        return;
    }
    let request: RangeRequest = serde_json::from_value(message).unwrap();
    let wants_manifest = request.retrieval_key == Some(hex_key(&shared.id));
    let (ask, bytes) = if wants_manifest {
        (Ask::Manifest, shared.manifest.clone())
    } else {
        let start = (request.offset as usize).min(shared.data.len());
        let end = start.saturating_add(request.length as usize).min(shared.data.len());
        (Ask::Chunk(start / CHUNK), shared.data[start..end].to_vec())
    };
    shared.note(ask);
    match (shared.script)(ask) {
        Act::Serve => shared.send(&mut stream, ask, bytes, true).await,
        Act::Gate(gate) => {
            gate.acquire().await.unwrap().forget();
            shared.send(&mut stream, ask, bytes, true).await;
        }
        Act::Corrupt => {
            let mut bytes = bytes;
            bytes.iter_mut().for_each(|b| *b ^= 1);
            shared.send(&mut stream, ask, bytes, true).await;
        }
        Act::Silent => std::future::pending().await,
        Act::Refuse => {
            let _ = stream.shutdown().await;
        }
        Act::Cut(n) => {
            shared.send(&mut stream, ask, bytes[..n.min(bytes.len())].to_vec(), false).await;
            cut.notify_one();
        }
        Act::Short(n) => {
            shared.send(&mut stream, ask, bytes[..n.min(bytes.len())].to_vec(), false).await;
            let _ = stream.shutdown().await;
        }
        Act::Stall(n) => {
            shared.send(&mut stream, ask, bytes[..n.min(bytes.len())].to_vec(), false).await;
            std::future::pending().await
        }
        Act::Garbage => {
            let _ = stream.write_all(b"\0\0\0\x05bogus").await;
            let _ = stream.shutdown().await;
        }
    }
}

impl Shared {
    fn note(&self, ask: Ask) {
        self.asked.lock().unwrap().push(ask);
    }

    /// Sends the frames of `bytes`; with `whole`, marks the last and ends the stream.
    async fn send(&self, stream: &mut PeerStream, ask: Ask, bytes: Vec<u8>, whole: bool) {
        let total = if ask == Ask::Manifest { self.manifest.len() } else { self.data.len() };
        let count = bytes.len().div_ceil(FRAME).max(1);
        for i in 0..count {
            let part = bytes[i * FRAME..bytes.len().min((i + 1) * FRAME)].to_vec();
            let sent = part.len() as u64;
            let frame = RangeFrame::data((i * FRAME) as u64, part).with_complete(whole && i + 1 == count);
            let mut frame = frame.with_identity(self.id.to_string(), total as u64, 1);
            frame.chunk_count = None;
            if stream.write_all(&frame.encode().unwrap()).await.is_err() {
                return;
            }
            if matches!(ask, Ask::Chunk(_)) {
                self.served.fetch_add(sent, Ordering::Relaxed);
            }
        }
        let _ = stream.flush().await;
        if whole {
            let _ = stream.shutdown().await;
        }
    }
}

fn hex_key(id: &FileId) -> String {
    match id.manifest_content() {
        dig_dht::ContentId::Resource { retrieval_key, .. } => {
            retrieval_key.iter().map(|b| format!("{b:02x}")).collect()
        }
        _ => unreachable!("a manifest is a resource"),
    }
}

/// `length` bytes in which every chunk differs.
pub fn data(length: usize) -> Arc<Vec<u8>> {
    let byte = |i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
    Arc::new((0..length).map(byte).collect())
}

/// A fresh client with a fresh selector and a folder for its output.
pub struct Client {
    pub fetcher: Fetcher,
    pub selector: Arc<PeerSelector>,
    pub pool: Arc<Pool>,
    pub dir: tempfile::TempDir,
}

impl Client {
    pub fn new() -> Client {
        let pool = Pool::new(Arc::new(Identity::from_seed(b"client").unwrap()), PoolConfig::default());
        let selector = Arc::new(PeerSelector::new(SelectorConfig { rng_seed: Some(7), ..SelectorConfig::default() }));
        let fetcher = Fetcher::new(pool.clone());
        Client { fetcher, selector, pool, dir: tempfile::tempdir().unwrap() }
    }

    pub fn output(&self) -> std::path::PathBuf {
        self.dir.path().join("out")
    }

    /// Options that fetch what `holders` hold by this client's selector.
    pub fn options(&self, holders: &[&Holder]) -> FetchOptions {
        FetchOptions::new(holders[0].id, self.output())
            .peers(holders.iter().map(|h| h.addr))
            .policy(Policy::Peerq(self.selector.clone()))
    }

    /// The fetched file.
    pub fn fetched(&self) -> Vec<u8> {
        std::fs::read(self.output()).unwrap()
    }

    /// The names of what is left in the output folder.
    pub fn leftovers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The line of `holder` in a report.
pub fn of<'a>(peers: &'a [PeerReport], holder: &Holder) -> &'a PeerReport {
    peers.iter().find(|p| p.peer_id == holder.addr.peer_id).expect("every asked peer is in the report")
}

/// A loopback address on which nobody listens.
pub async fn dead_addr() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}
