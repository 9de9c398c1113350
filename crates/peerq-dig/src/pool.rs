//! One mTLS connection per peer, shared by everything that talks to it (HOST-D2, HOST-D5).
//!
//! The one idea: callers name a peer and its addresses and get a fresh stream; whether a connection was there, was being
//! dialled by someone else or had to be made is the pool's business. Connections are dialled once however many callers
//! wait, without Nagle's delay, and dropped as soon as they are known to be dead.

mod config;
mod dial;
mod error;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dig_nat::mux::{
    AvailabilityItem, AvailabilityRequest, AvailabilityResponse, ClosedHandle, PeerSession, PeerStream, RangeRequest,
};
use dig_nat::{PeerId, TraversalKind};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Semaphore, broadcast, watch};

use crate::identity::Identity;
use crate::link::Socket;
pub use config::{PoolConfig, PoolNotice};
use dial::Dialled;
pub(crate) use dial::{READ_BUFFER_BYTES, WRITE_BUFFER_BYTES};
pub use error::PoolError;

/// Events a subscriber may fall behind before it loses some.
const EVENT_BACKLOG: usize = 1024;

/// Connections to peers, one each, shared by all callers.
///
/// Bounded by [`PoolConfig::max_connections`]; the least recently used connection goes first, and with it the streams
/// that may still run on it. All methods are safe to call from many tasks.
pub struct Pool {
    identity: Arc<Identity>,
    config: PoolConfig,
    slots: Mutex<HashMap<PeerId, Slot>>,
    dials: Semaphore,
    events: broadcast::Sender<PoolNotice>,
    /// Counts uses and connections; the larger, the later.
    ticks: AtomicU64,
}

/// What the pool has for a peer.
enum Slot {
    /// Someone dials; the receiver tells how it ended.
    Dialing(watch::Receiver<Option<DialOutcome>>),
    Open(Arc<Connection>),
}

type DialOutcome = Result<Arc<Connection>, PoolError>;

struct Connection {
    /// Tells this connection from an earlier or later one to the same peer.
    serial: u64,
    addr: SocketAddr,
    session: tokio::sync::Mutex<PeerSession>,
    socket: Socket,
    closed: ClosedHandle,
    last_used: AtomicU64,
}

impl Drop for Connection {
    /// The multiplexer says good-bye when its session is dropped, and a peer that does not read would keep it, and the
    /// socket, for ever.
    fn drop(&mut self) {
        self.socket.cut();
    }
}

impl Pool {
    /// A pool that dials as `identity`. Opens nothing yet.
    pub fn new(identity: Arc<Identity>, config: PoolConfig) -> Arc<Pool> {
        Arc::new(Pool {
            identity,
            dials: Semaphore::new(config.max_dials.max(1)),
            config,
            slots: Mutex::default(),
            events: broadcast::Sender::new(EVENT_BACKLOG),
            ticks: AtomicU64::new(0),
        })
    }

    /// Who this pool dials as.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Everything that happens to connections from now on. A subscriber that falls behind is told so by `Lagged` and
    /// can catch up with [`Pool::connected`].
    pub fn subscribe(&self) -> broadcast::Receiver<PoolNotice> {
        self.events.subscribe()
    }

    /// The peers a connection is open to, by peer id.
    pub fn connected(&self) -> Vec<(PeerId, SocketAddr)> {
        let mut peers: Vec<_> = self
            .slots()
            .iter()
            .filter_map(|(peer, slot)| match slot {
                Slot::Open(connection) => Some((*peer, connection.addr)),
                Slot::Dialing(_) => None,
            })
            .collect();
        peers.sort_by_key(|(peer, _)| *peer.as_bytes());
        peers
    }

    /// Opens a stream to `peer`, over the open connection or a new one to the first of `addrs` that answers as `peer`.
    ///
    /// # Errors
    /// A [`PoolError`], which says whether the address, the peer or we are at fault.
    pub async fn open_stream(self: &Arc<Self>, peer: &PeerId, addrs: &[SocketAddr]) -> Result<PeerStream, PoolError> {
        let connection = self.connection(peer, addrs).await?;
        match self.open_on(peer, &connection).await {
            Ok(stream) => Ok(stream),
            // The connection was kept from earlier and may have died since; a new one settles it.
            Err(_) => {
                let connection = self.connection(peer, addrs).await?;
                self.open_on(peer, &connection).await
            }
        }
    }

    /// Opens a stream to `peer` and sends `request`; the caller reads the frames of the answer.
    ///
    /// # Errors
    /// Those of [`Pool::open_stream`].
    pub async fn open_range(
        self: &Arc<Self>,
        peer: &PeerId,
        addrs: &[SocketAddr],
        request: &RangeRequest,
    ) -> Result<PeerStream, PoolError> {
        let stream = self.open_stream(peer, addrs).await?;
        let message = request.encode().map_err(|error| PoolError::session(peer, error))?;
        self.send(peer, stream, &message).await
    }

    /// Asks `peer` what it has of `items`; the answers are in the same order and of the same number.
    ///
    /// # Errors
    /// Those of [`Pool::open_stream`], [`PoolError::Timeout`] if the whole takes longer than `timeout`, and
    /// [`PoolError::Session`] for an answer that is none.
    pub async fn query_availability(
        self: &Arc<Self>,
        peer: &PeerId,
        addrs: &[SocketAddr],
        items: Vec<AvailabilityItem>,
        timeout: Duration,
    ) -> Result<AvailabilityResponse, PoolError> {
        let asked = items.len();
        let query = async {
            let message = AvailabilityRequest::new(items).encode().map_err(|error| PoolError::session(peer, error))?;
            let stream = self.open_stream(peer, addrs).await?;
            let mut stream = self.send(peer, stream, &message).await?;
            let answer =
                AvailabilityResponse::decode(&mut stream).await.map_err(|error| PoolError::session(peer, error))?;
            match answer.items.len() {
                answered if answered == asked => Ok(answer),
                answered => {
                    Err(PoolError::session(peer, io::Error::other(format!("{answered} answers to {asked} items"))))
                }
            }
        };
        tokio::time::timeout(timeout, query).await.unwrap_or(Err(PoolError::Timeout {
            peer: *peer,
            doing: "answering an availability query",
            after: timeout,
        }))
    }

    /// Closes the connection to `peer`, if there is one; the next call dials anew. For callers that know better than
    /// TCP that a peer is gone.
    pub fn evict(&self, peer: &PeerId) {
        let serial = match self.slots().get(peer) {
            Some(Slot::Open(connection)) => connection.serial,
            _ => return,
        };
        self.remove(peer, serial);
    }

    async fn send(&self, peer: &PeerId, mut stream: PeerStream, message: &[u8]) -> Result<PeerStream, PoolError> {
        let sending = async {
            stream.write_all(message).await?;
            stream.flush().await
        };
        sending.await.map_err(|error| PoolError::session(peer, error))?;
        Ok(stream)
    }

    async fn open_on(&self, peer: &PeerId, connection: &Connection) -> Result<PeerStream, PoolError> {
        let opening = async { connection.session.lock().await.open_stream().await };
        let result = match tokio::time::timeout(self.config.open_timeout, opening).await {
            Ok(opened) => opened.map_err(|error| PoolError::session(peer, error)),
            Err(_) => {
                Err(PoolError::Timeout { peer: *peer, doing: "opening a stream", after: self.config.open_timeout })
            }
        };
        match &result {
            Ok(_) => connection.last_used.store(self.tick(), Ordering::Relaxed),
            Err(_) => self.remove(peer, connection.serial),
        }
        result
    }

    /// The open connection to `peer`, or the outcome of dialling it. Dialling goes on if the caller goes away, so that
    /// others who wait for it are not set back.
    async fn connection(self: &Arc<Self>, peer: &PeerId, addrs: &[SocketAddr]) -> DialOutcome {
        let mut outcome = {
            let mut slots = self.slots();
            match slots.get(peer) {
                Some(Slot::Open(connection)) if !connection.closed.is_closed() => {
                    return Ok(Arc::clone(connection));
                }
                Some(Slot::Dialing(outcome)) => outcome.clone(),
                _ if *peer == self.identity.peer_id() => return Err(PoolError::SelfDial),
                _ if addrs.is_empty() => return Err(PoolError::NoAddress { peer: *peer }),
                _ => {
                    let (sender, receiver) = watch::channel(None);
                    let (pool, peer, addrs) = (Arc::clone(self), *peer, addrs.to_vec());
                    slots.insert(peer, Slot::Dialing(receiver.clone()));
                    tokio::spawn(async move { pool.dial(peer, addrs, sender).await });
                    receiver
                }
            }
        };
        match outcome.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            // The dialling task is gone without a word: the runtime shuts down.
            _ => Err(PoolError::session(peer, io::Error::other("the dial was abandoned"))),
        }
    }

    async fn dial(self: Arc<Self>, peer: PeerId, addrs: Vec<SocketAddr>, outcome: watch::Sender<Option<DialOutcome>>) {
        let permit = self.dials.acquire().await;
        let dialled = dial::dial(&self.identity, peer, &addrs, self.config.connect_timeout).await;
        drop(permit);
        let result = dialled.map(|dialled| self.admit(peer, dialled));
        if result.is_err() {
            self.slots().remove(&peer);
        }
        outcome.send_replace(Some(result));
    }

    fn admit(self: &Arc<Self>, peer: PeerId, dialled: Dialled) -> Arc<Connection> {
        let Dialled { addr, socket, session } = dialled;
        let closed = session.closed_handle();
        let serial = self.tick();
        let connection = Arc::new(Connection {
            serial,
            addr,
            session: tokio::sync::Mutex::new(session),
            socket,
            closed: closed.clone(),
            last_used: AtomicU64::new(serial),
        });
        let (superseded, surplus) = {
            let mut slots = self.slots();
            let superseded = slots.insert(peer, Slot::Open(Arc::clone(&connection)));
            (superseded, least_recently_used(&slots, self.config.max_connections.max(1)))
        };
        drop(superseded); // The dial in progress, or a dead connection that was not noticed yet.
        self.notify(PoolNotice::Added { peer, addr });
        self.notify(PoolNotice::Class { peer, kind: TraversalKind::Direct });
        if let Some((peer, serial)) = surplus {
            self.remove(&peer, serial);
        }
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            closed.closed().await;
            if let Some(pool) = pool.upgrade() {
                pool.remove(&peer, serial);
            }
        });
        connection
    }

    /// Forgets the connection with this serial number, if it is still the one to `peer`.
    fn remove(&self, peer: &PeerId, serial: u64) {
        let removed = {
            let mut slots = self.slots();
            match slots.get(peer) {
                Some(Slot::Open(connection)) if connection.serial == serial => slots.remove(peer),
                _ => None,
            }
        };
        if removed.is_some() {
            self.notify(PoolNotice::Removed { peer: *peer });
        }
    }

    fn notify(&self, notice: PoolNotice) {
        // Fails only if nobody listens.
        let _ = self.events.send(notice);
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<PeerId, Slot>> {
        // No code panics while it holds the lock, and the map is sound at every step.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The open connection that was used longest ago, if there are more than `limit`.
fn least_recently_used(slots: &HashMap<PeerId, Slot>, limit: usize) -> Option<(PeerId, u64)> {
    let open = slots.iter().filter_map(|(peer, slot)| match slot {
        Slot::Open(connection) => Some((connection.last_used.load(Ordering::Relaxed), *peer, connection.serial)),
        Slot::Dialing(_) => None,
    });
    let open: Vec<_> = open.collect();
    if open.len() <= limit {
        return None;
    }
    open.into_iter().min_by_key(|(used, ..)| *used).map(|(_, peer, serial)| (peer, serial))
}
