//! Describes and starts a node (HOST-D4).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::fault::{Fault, Misbehaviour};
use super::share::{Offer, Shares};
use super::{ANSWERS_MAX, Node, Shared, Switches, listener, stats};
use crate::content::Manifest;
use crate::discovery::{self, Discovery, DiscoveryError};
use crate::identity::Identity;
use crate::link::{Link, LinkShape};
use crate::peer::PeerAddr;
use crate::pool::{Pool, PoolConfig};

/// Describes a node; see [`Node::builder`].
#[must_use = "a node runs after `start`"]
pub struct NodeBuilder {
    identity: Arc<Identity>,
    listen: SocketAddr,
    advertise: Option<SocketAddr>,
    link: LinkShape,
    fault: Fault,
    bootstrap: Vec<PeerAddr>,
    offers: Vec<Offer>,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Another program listens there.
    #[error("{addr} is in use by another program; choose another port, or port 0 for any free one")]
    AddressInUse {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The address cannot be listened on for another reason.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// A file cannot be shared.
    #[error("cannot serve {}: {source}", path.display())]
    Share {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The peers to join the DHT through do not answer.
    #[error(transparent)]
    Bootstrap(#[from] DiscoveryError),
}

impl NodeBuilder {
    pub(super) fn new(identity: Arc<Identity>) -> NodeBuilder {
        NodeBuilder {
            identity,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertise: None,
            link: LinkShape::default(),
            fault: Fault::None,
            bootstrap: Vec::new(),
            offers: Vec::new(),
        }
    }

    /// Listens on `addr`; without this, on any free port of 127.0.0.1.
    pub fn listen(mut self, addr: SocketAddr) -> Self {
        self.listen = addr;
        self
    }

    /// Tells others to connect to `addr`; without this, to the address it listens on, or to the loopback address if it
    /// listens on all.
    pub fn advertise(mut self, addr: SocketAddr) -> Self {
        self.advertise = Some(addr);
        self
    }

    /// Puts a link between the node and everyone who connects to it.
    pub fn link(mut self, shape: LinkShape) -> Self {
        self.link = shape;
        self
    }

    /// Makes the node misbehave.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// Joins the DHT through these peers.
    pub fn bootstrap(mut self, peers: Vec<PeerAddr>) -> Self {
        self.bootstrap = peers;
        self
    }

    /// Serves the file at `path`, which is read once to make its manifest.
    pub fn share(mut self, path: impl AsRef<Path>) -> Self {
        self.offers.push(Offer { path: path.as_ref().to_owned(), manifest: None });
        self
    }

    /// Serves the file at `path` under a manifest made earlier. The bytes are not checked against it.
    pub fn share_prepared(mut self, path: impl AsRef<Path>, manifest: Arc<Manifest>) -> Self {
        self.offers.push(Offer { path: path.as_ref().to_owned(), manifest: Some(manifest) });
        self
    }

    /// Opens the files, listens, and joins the DHT. Nothing is announced yet.
    ///
    /// # Errors
    /// A [`NodeError`] that names the file, address or peers at fault.
    pub async fn start(self) -> Result<Node, NodeError> {
        let shares = open(self.offers).await?;
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => NodeError::AddressInUse { addr: self.listen },
            _ => NodeError::Listen { addr: self.listen, source },
        };
        let listener = TcpListener::bind(self.listen).await.map_err(refused)?;
        let local_addr = listener.local_addr().map_err(refused)?;
        let advertised = self.advertise.unwrap_or_else(|| reachable(local_addr));
        let pool = Pool::new(Arc::clone(&self.identity), PoolConfig::default());
        let discovery = Discovery::serving(pool, advertised);
        let shared = Arc::new(Shared {
            identity: self.identity,
            shares,
            link: Link::new(self.link),
            misbehaviour: Arc::new(Misbehaviour::new(self.fault)),
            discovery: Arc::clone(&discovery),
            counters: stats::Counters::default(),
            answers: Semaphore::new(ANSWERS_MAX),
            switches: Switches::new(),
            stop: watch::Sender::new(false),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(listener::run(Arc::clone(&shared), listener));
        tasks.spawn(discovery::maintain(Arc::clone(&discovery), shared.stop.subscribe()));
        let node = Node { shared, local_addr, advertised, tasks };
        if !self.bootstrap.is_empty() {
            discovery.bootstrap(&self.bootstrap).await?;
        }
        Ok(node)
    }
}

async fn open(offers: Vec<Offer>) -> Result<Shares, NodeError> {
    let mut shares = Shares::new();
    for offer in offers {
        let path = offer.path.clone();
        let failed = |source| NodeError::Share { path, source };
        let opened = tokio::task::spawn_blocking(move || offer.open()).await.map_err(io::Error::other);
        let (id, share) = opened.and_then(|opened| opened).map_err(failed)?;
        shares.insert(id, share);
    }
    Ok(shares)
}

/// The address under which this machine reaches a listener on `addr`.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        _ => return addr,
    };
    tracing::warn!(%addr, "listening on all addresses, announcing the loopback address; advertise one that others reach");
    SocketAddr::new(ip, addr.port())
}
