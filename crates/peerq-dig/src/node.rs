//! The serving node: ranges, availability and DHT on one mTLS listener (HOST-D4).
//!
//! The one idea: a node is a listener over shared files, a link and a fault; the same node serves a person's files, fills a
//! swarm and plays the villain in a test, and the path of the bytes is the same in all three.

mod answer;
mod builder;
mod fault;
mod frame;
mod listener;
mod request;
mod share;
mod stats;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dig_nat::PeerId;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::content::FileId;
use crate::discovery::{Discovery, DiscoveryError};
use crate::identity::Identity;
pub use crate::link::LinkShape;
use crate::link::{Link, Switch};
use crate::peer::PeerAddr;
pub use builder::{NodeBuilder, NodeError};
pub use fault::Fault;
use fault::Misbehaviour;
use share::Shares;
pub use stats::NodeStats;

/// Most range answers being sent at once; more wait in order. Each holds less than 400 KiB, all together less than 50 MiB.
const ANSWERS_MAX: usize = 128;

/// A running node. Dropping it is [`Node::kill`].
pub struct Node {
    shared: Arc<Shared>,
    local_addr: SocketAddr,
    advertised: SocketAddr,
    tasks: JoinSet<()>,
}

/// What all tasks of a node share.
struct Shared {
    identity: Arc<Identity>,
    shares: Shares,
    link: Link,
    misbehaviour: Arc<Misbehaviour>,
    discovery: Arc<Discovery>,
    counters: stats::Counters,
    answers: Semaphore,
    switches: Switches,
    stop: watch::Sender<bool>,
}

impl Shared {
    /// Waits until the node is told to stop.
    async fn stopped(&self) {
        // Fails only if the sender is gone, and it is part of `self`.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }
}

impl Node {
    /// Starts to describe a node; it runs after [`NodeBuilder::start`].
    pub fn builder(identity: Arc<Identity>) -> NodeBuilder {
        NodeBuilder::new(identity)
    }

    /// Who the node is.
    pub fn peer_id(&self) -> PeerId {
        self.shared.identity.peer_id()
    }

    /// Where it listens; the port is a real one even if 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What others need in order to talk to it.
    pub fn peer_addr(&self) -> PeerAddr {
        PeerAddr { addr: self.advertised, peer_id: self.peer_id() }
    }

    /// The files it serves, by id.
    pub fn files(&self) -> Vec<FileId> {
        let mut files: Vec<_> = self.shared.shares.keys().copied().collect();
        files.sort_unstable();
        files
    }

    /// The node's part in the DHT.
    pub fn discovery(&self) -> &Arc<Discovery> {
        &self.shared.discovery
    }

    /// Tells the DHT of every file. Returns the fewest other nodes that took note of one of them; 0 for a node that knows
    /// no other. The node repeats this by itself before the records expire.
    ///
    /// # Errors
    /// Those of [`Discovery::announce`].
    pub async fn announce(&self) -> Result<usize, DiscoveryError> {
        let mut fewest = usize::MAX;
        for file in self.files() {
            fewest = fewest.min(self.shared.discovery.announce(&file).await?);
        }
        Ok(if fewest == usize::MAX { 0 } else { fewest })
    }

    /// What the node has served.
    pub fn stats(&self) -> NodeStats {
        self.shared.counters.read()
    }

    /// Stops to accept, lets answers in flight end for a few seconds, and closes everything. The port is free afterwards.
    pub async fn shutdown(mut self) {
        self.shared.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        self.kill();
    }

    /// Drops every connection at once, as a crash would; peers see them break. Whoever holds the node keeps its name and
    /// its statistics.
    pub fn kill(&mut self) {
        self.shared.stop.send_replace(true);
        self.tasks.abort_all();
        self.shared.switches.cut_all();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("peer", &self.peer_addr().to_string()).field("files", &self.files()).finish()
    }
}

/// The switches of all open connections, one each.
#[derive(Default)]
struct Switches {
    next: AtomicU64,
    /// `None` once all were cut: from then on every new one is cut too.
    open: Mutex<Option<HashMap<u64, Switch>>>,
}

impl Switches {
    fn new() -> Switches {
        Switches { next: AtomicU64::new(0), open: Mutex::new(Some(HashMap::new())) }
    }

    fn add(&self, switch: Switch) -> Registered<'_> {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        match self.lock().as_mut() {
            Some(open) => drop(open.insert(key, switch.clone())),
            None => switch.cut(),
        }
        Registered { switches: self, key, cut: Some(switch) }
    }

    fn cut_all(&self) {
        let open = self.lock().take();
        open.iter().flat_map(HashMap::values).for_each(Switch::cut);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<HashMap<u64, Switch>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a switch when its connection ends, and cuts the connection if it is dropped half-way.
struct Registered<'a> {
    switches: &'a Switches,
    key: u64,
    cut: Option<Switch>,
}

impl Registered<'_> {
    /// The connection ended well; what is still under way arrives.
    fn ended(mut self) {
        self.cut = None;
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if let Some(switch) = &self.cut {
            switch.cut();
        }
        if let Some(open) = self.switches.lock().as_mut() {
            open.remove(&self.key);
        }
    }
}
