//! Finding the holders of a file through the DHT (HOST-D5).
//!
//! The one idea: what the DHT says is a list of addresses worth a dial, never a fact. A record costs at most a failed
//! dial, since the peer has to prove its id and the bytes have to hash to the file's id; so everything is bounded,
//! filtered and put in a fixed order, and nothing more is believed.

mod locator;
mod records;
mod transport;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dig_dht::{
    BootstrapPeer, Contact, ContentId, DhtConfig, DhtError, DhtRequest, DhtResponse, DhtService, DhtTransport, Key,
    ProviderRecord,
};
use dig_nat::PeerId;
use futures::stream::{self, StreamExt};
use tokio::sync::watch;

use crate::content::FileId;
use crate::peer::PeerAddr;
use crate::pool::Pool;
pub use locator::Locator;
pub use records::socket_addrs;
use records::{HOLDERS_MAX, candidate, holders};
use transport::PoolTransport;

/// How many of the nodes closest to a file are asked beyond the lookup, which ends with the first that knows a holder.
const WIDE_ASK: usize = 8;
/// Most bootstrap peers remembered for a node that lost all others.
const BOOTSTRAP_MAX: usize = 64;
/// How often a node sweeps out expired records, and looks whether it is time to announce again.
const MAINTENANCE: Duration = Duration::from_secs(300);
/// The store under which nodes announce themselves, each under its own id: how a node without files becomes known.
const PRESENCE: [u8; 32] = *b"peerq/1/presence________________";

/// A node's or a client's part in the DHT.
///
/// Bounded by the DHT's own tables; at most 256 holders of a file with 8 addresses each, and 64 bootstrap peers. What comes
/// later than that is left out.
pub struct Discovery {
    dht: DhtService,
    transport: Arc<PoolTransport>,
    local: PeerId,
    /// Where this node can be reached; `None` for a client, which nobody is told of.
    advertised: Option<SocketAddr>,
    bootstrap: Mutex<Vec<PeerAddr>>,
}

/// Why something could not be found or announced.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// None of the peers to join through answered; each with its reason.
    #[error("none of the bootstrap peers answered: {}", .0.iter().map(|(peer, why)| format!("{peer}: {why}")).collect::<Vec<_>>().join("; "))]
    NoBootstrap(Vec<(PeerAddr, String)>),
    /// A client cannot announce: nobody could connect to it.
    #[error("only a serving node can announce files")]
    NotServing,
    /// The DHT failed otherwise.
    #[error("the DHT failed: {0}")]
    Dht(#[from] DhtError),
}

impl Discovery {
    /// Discovery for a node that only asks. It is never told to anyone.
    pub fn client(pool: Arc<Pool>) -> Arc<Discovery> {
        Discovery::new(pool, None)
    }

    /// Discovery for a node that others reach at `advertised`.
    pub fn serving(pool: Arc<Pool>, advertised: SocketAddr) -> Arc<Discovery> {
        Discovery::new(pool, Some(advertised))
    }

    fn new(pool: Arc<Pool>, advertised: Option<SocketAddr>) -> Arc<Discovery> {
        let local = pool.identity().peer_id();
        let config = DhtConfig::default();
        let transport = Arc::new(PoolTransport::new(pool, config.rpc_timeout));
        let addresses = advertised.map(candidate).into_iter().collect();
        let dht = DhtService::new(local, addresses, config, Arc::clone(&transport) as Arc<dyn DhtTransport>);
        Arc::new(Discovery { dht, transport, local, advertised, bootstrap: Mutex::default() })
    }

    /// Joins the DHT through `peers`. Returns how many nodes are known now. May be called again.
    ///
    /// # Errors
    /// [`DiscoveryError::NoBootstrap`] if `peers` are there and none of them answers.
    pub async fn bootstrap(&self, peers: &[PeerAddr]) -> Result<usize, DiscoveryError> {
        {
            let mut known = self.bootstrap.lock().unwrap_or_else(PoisonError::into_inner);
            let new: Vec<_> = peers.iter().filter(|peer| !known.contains(peer)).copied().collect();
            let room = BOOTSTRAP_MAX.saturating_sub(known.len());
            known.extend(new.into_iter().take(room));
        }
        let seeds: Vec<_> = peers
            .iter()
            .filter(|peer| peer.peer_id != self.local)
            .map(|peer| BootstrapPeer { peer_id: peer.peer_id, addresses: vec![candidate(peer.addr)] })
            .collect();
        self.dht.bootstrap(&seeds).await?;
        let failed = self.drop_failed().await;
        let silent = |seed: &BootstrapPeer| failed.contains_key(seed.peer_id.as_bytes());
        if !seeds.is_empty() && (seeds.iter().all(silent) || self.dht.routing_len().await == 0) {
            let reason = |peer: &PeerAddr| match failed.get(peer.peer_id.as_bytes()) {
                Some(why) => (*peer, why.clone()),
                None => (*peer, "it does not answer".to_owned()),
            };
            return Err(DiscoveryError::NoBootstrap(peers.iter().map(reason).collect()));
        }
        if self.advertised.is_some() {
            self.dht.announce_provider(&ContentId::root(PRESENCE, *self.local.as_bytes())).await?;
            self.drop_failed().await;
        }
        Ok(self.dht.routing_len().await)
    }

    /// Tells the nodes closest to the file that this node has it. Returns how many took note; 0 if none is known.
    ///
    /// # Errors
    /// [`DiscoveryError::NotServing`] for a client.
    pub async fn announce(&self, file: &FileId) -> Result<usize, DiscoveryError> {
        if self.advertised.is_none() {
            return Err(DiscoveryError::NotServing);
        }
        self.rejoin_if_alone().await;
        let noted = self.dht.announce_provider(&file.content()).await?;
        self.drop_failed().await;
        Ok(noted)
    }

    /// The holders of the file that the DHT knows now, in the order of their peer ids, this node left out. Asks the
    /// network every time: a cached answer would hide new holders for a quarter of an hour.
    ///
    /// # Errors
    /// [`DiscoveryError::Dht`]. No holders is an empty list, not an error.
    pub async fn find(&self, file: &FileId) -> Result<Vec<ProviderRecord>, DiscoveryError> {
        self.rejoin_if_alone().await;
        let content = file.content();
        self.dht.forget_discovered(&content).await;
        let mut records = self.dht.find_providers(&content).await?;
        records.extend(self.ask_wide(&content.to_key()).await);
        self.drop_failed().await;
        Ok(holders(records, &content.to_key(), &self.local, unix_now()))
    }

    /// Answers a request that `caller` sent, who proved to be that peer.
    pub(crate) async fn answer(&self, caller: &PeerId, request: DhtRequest) -> DhtResponse {
        if let DhtRequest::AddProvider { record } = &request
            && record.provider_peer_id() != Some(*caller)
        {
            return DhtResponse::Error { code: 4, message: "a peer announces itself only".to_owned() };
        }
        // The caller is not passed on: all that is known of it is the port it called from, which nobody can dial, and a
        // client is no part of the DHT. Serving nodes make themselves known by what they announce.
        self.dht.handle_request_from(None, request).await
    }

    /// Asks the closest nodes known for what the lookup, which stops early, did not hear.
    async fn ask_wide(&self, key: &Key) -> Vec<ProviderRecord> {
        let from = Contact::new(&self.local, self.advertised.map(candidate).into_iter().collect());
        let request = DhtRequest::FindProviders { content_key: key.to_hex() };
        let closest = self.dht.known_closest(key).await.into_iter().take(WIDE_ASK);
        let asking = closest.map(|contact| {
            let (transport, from, request) = (Arc::clone(&self.transport), from.clone(), request.clone());
            async move { transport.rpc(&from, &contact, &request).await }
        });
        let answers: Vec<_> = stream::iter(asking).buffer_unordered(WIDE_ASK).collect().await;
        let records = |answer| match answer {
            Ok(DhtResponse::Providers { providers, .. }) => providers,
            _ => Vec::new(),
        };
        answers.into_iter().flat_map(|answer| records(answer).into_iter().take(HOLDERS_MAX)).collect()
    }

    /// Joins again through the bootstrap peers if every other node is gone.
    async fn rejoin_if_alone(&self) {
        let known = self.bootstrap.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !known.is_empty() && self.dht.routing_len().await == 0 && Box::pin(self.bootstrap(&known)).await.is_err() {
            tracing::debug!("no bootstrap peer answers");
        }
    }

    /// Takes peers that did not answer out of the routing table, which would go on to ask them; says why for each.
    async fn drop_failed(&self) -> BTreeMap<[u8; 32], String> {
        let failed = self.transport.take_failed();
        for peer in failed.keys() {
            self.dht.remove_peer(&hex::encode(peer)).await;
        }
        failed
    }
}

/// Keeps a node's records alive until `stop` is true or nobody can set it any more.
pub(crate) async fn maintain(discovery: Arc<Discovery>, mut stop: watch::Receiver<bool>) {
    let republish_every = DhtConfig::default().republish_interval;
    let mut republished = tokio::time::Instant::now();
    let upkeep = async {
        loop {
            tokio::time::sleep(MAINTENANCE).await;
            discovery.dht.gc().await;
            if republished.elapsed() >= republish_every {
                republished = tokio::time::Instant::now();
                discovery.rejoin_if_alone().await;
                discovery.dht.republish().await;
                discovery.dht.refresh_buckets().await;
                discovery.drop_failed().await;
            }
        }
    };
    tokio::select! {
        () = upkeep => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
