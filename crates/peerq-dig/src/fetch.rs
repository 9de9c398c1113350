//! Fetching a file: verified from the first byte, from whoever really delivers (HOST-D1, D2, D3, D6, MEAS-10).
//!
//! # How a fetch runs
//! 1. **Staging.** A hidden file beside the output is opened and locked (`staging`).
//! 2. **Holders** are found and confirmed in the background (`holders`).
//! 3. **The manifest** comes from the earlier attempt or from a holder, and is believed once it hashes to the id
//!    (`manifest_fetch`). From here on every chunk can be checked by itself.
//! 4. **What is there** is found by hashing the staging file. The missing chunks become a resource of their own
//!    (`layout`).
//! 5. **dig-download** fetches that resource, with our parts at its seams: `adapter` chooses the peers, `transport`
//!    carries, measures and verifies, `sink` writes, `state` hands over the verified layout, `verify` guards the way
//!    into the file.
//! 6. **The file** is synced and renamed into place once the last chunk is in it.
//!
//! Every request to a peer ends in the `scorebook`, once, and from there in the selector.
//!
//! # Example
//! ```no_run
//! # async fn example(id: peerq_dig::FileId, peer: peerq_dig::PeerAddr) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use dig_peer_selector::{PeerSelector, SelectorConfig};
//! use peerq_dig::fetch::{FetchError, FetchOptions, Fetcher, Policy};
//! use peerq_dig::{Identity, Pool, PoolConfig};
//!
//! let pool = Pool::new(Arc::new(Identity::generate()?), PoolConfig::default());
//! let selector = Arc::new(PeerSelector::new(SelectorConfig::default()));
//! let options = FetchOptions::new(id, "file.bin").peer(peer).policy(Policy::Peerq(selector));
//! match Fetcher::new(pool).fetch(options).join().await {
//!     Ok(report) => println!("{} bytes, {} of them resumed", report.total_length, report.bytes_resumed),
//!     Err(FetchError::DiskFull { path, needed }) => println!("free {needed} bytes for {} and run again", path.display()),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok(())
//! # }
//! ```

mod adapter;
mod ending;
mod error;
mod events;
mod handle;
mod holders;
mod layout;
mod ledger;
mod manifest_fetch;
mod patience;
mod plan;
mod progress;
mod reader;
mod report;
mod run;
mod scorebook;
mod sink;
mod staging;
mod state;
mod task;
mod transport;
mod verify;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dig_dht::ContentId;
use dig_download::ProviderLocator;
use dig_nat::RangeRequest;
use dig_peer_selector::PeerSelector;

pub use error::{FetchError, HolderFailure};
pub use handle::FetchHandle;
pub use progress::{FetchState, Progress};
pub use report::{FetchReport, OutcomeCounts, PeerReport};

use crate::content::FileId;
use crate::discovery::{Discovery, Locator};
use crate::peer::PeerAddr;
use crate::pool::Pool;

/// The default of [`FetchOptions::range_timeout`]: dig-download's own, so that policies compare.
pub const DEFAULT_RANGE_TIMEOUT: Duration = dig_download::DEFAULT_RANGE_TIMEOUT;

/// The default of [`FetchOptions::give_up_after`]. Higher: a fetch whose holders are all gone ends later. Lower: an outage
/// of our own link, or the restart of the only holder, ends a fetch that would have gone on. Unmeasured heuristic.
pub const DEFAULT_GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// How the holders of the next chunks are chosen.
#[derive(Clone)]
pub enum Policy {
    /// By what they delivered so far, in this and other fetches that share the selector. Late ranges move to other
    /// holders.
    Peerq(Arc<PeerSelector>),
    /// dig-download's own round robin with its default concurrency, over the same transport and the same verification: the
    /// baseline. It learns nothing and waits for [`FetchOptions::range_timeout`].
    RoundRobin,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Peerq(_) => "Peerq",
            Policy::RoundRobin => "RoundRobin",
        })
    }
}

/// What to fetch, whereto and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FetchOptions {
    /// The file.
    pub id: FileId,
    /// Where it goes. Its folder must exist and allow a hidden file beside it.
    pub output: PathBuf,
    /// Holders known to the caller; tried in addition to those that are found.
    pub peers: Vec<PeerAddr>,
    /// How holders are chosen.
    pub policy: Policy,
    /// Bound on one request for one chunk, default [`DEFAULT_RANGE_TIMEOUT`]. With [`Policy::Peerq`] it doubles for a
    /// chunk each time it was given up, so that slow links can deliver large chunks.
    pub range_timeout: Duration,
    /// How long a download goes on without a verified chunk while nothing arrives, default [`DEFAULT_GIVE_UP_AFTER`];
    /// pauses do not count.
    pub give_up_after: Duration,
    /// Whether an existing output may be replaced; default no.
    pub overwrite: bool,
    /// Whether to start paused: holders are found and what is there is verified, but no chunk is asked for.
    pub start_paused: bool,
}

impl FetchOptions {
    /// Fetches `id` to `output` by round robin from holders yet to be named or found.
    pub fn new(id: FileId, output: impl Into<PathBuf>) -> Self {
        FetchOptions {
            id,
            output: output.into(),
            peers: Vec::new(),
            policy: Policy::RoundRobin,
            range_timeout: DEFAULT_RANGE_TIMEOUT,
            give_up_after: DEFAULT_GIVE_UP_AFTER,
            overwrite: false,
            start_paused: false,
        }
    }

    /// Names a holder.
    #[must_use]
    pub fn peer(mut self, peer: PeerAddr) -> Self {
        self.peers.push(peer);
        self
    }

    /// Names holders.
    #[must_use]
    pub fn peers(mut self, peers: impl IntoIterator<Item = PeerAddr>) -> Self {
        self.peers.extend(peers);
        self
    }

    /// Sets the policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets whether an existing output may be replaced.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets how long a download goes on while nothing comes.
    #[must_use]
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.give_up_after = time;
        self
    }

    /// Sets the bound on one request for one chunk.
    #[must_use]
    pub fn range_timeout(mut self, timeout: Duration) -> Self {
        self.range_timeout = timeout;
        self
    }
}

/// Starts fetches over one pool of connections. Cheap to share; fetches run independently of it.
pub struct Fetcher {
    pool: Arc<Pool>,
    locator: Option<Arc<dyn ProviderLocator>>,
    forwarders: Mutex<Vec<events::Forwarder>>,
}

impl Fetcher {
    /// A fetcher that knows only the holders that each fetch names.
    pub fn new(pool: Arc<Pool>) -> Self {
        Fetcher { pool, locator: None, forwarders: Mutex::default() }
    }

    /// Finds holders in the DHT as well.
    #[must_use]
    pub fn with_discovery(self, discovery: Arc<Discovery>) -> Self {
        let local = self.pool.identity().peer_id();
        self.with_locator(Arc::new(Locator::new(local, Vec::new(), Some(discovery))))
    }

    /// Sets the way to find holders.
    #[must_use]
    pub fn with_locator(mut self, locator: Arc<dyn ProviderLocator>) -> Self {
        self.locator = Some(locator);
        self
    }

    /// Starts a fetch. Must be called within a tokio runtime. Errors come from [`FetchHandle::join`].
    pub fn fetch(&self, options: FetchOptions) -> FetchHandle {
        if let Policy::Peerq(selector) = &options.policy {
            self.forward_events_to(selector);
        }
        let (pool, locator) = (self.pool.clone(), self.locator.clone());
        FetchHandle::spawn(move |commands, progress| {
            let paused = options.start_paused;
            run::Run { pool, locator, options, commands, progress, paused }.run()
        })
    }

    /// The selector learns what happens to connections as long as this fetcher and the selector live.
    fn forward_events_to(&self, selector: &Arc<PeerSelector>) {
        let mut forwarders = self.forwarders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        forwarders.retain(events::Forwarder::is_alive);
        if !forwarders.iter().any(|f| f.serves(selector)) {
            forwarders.push(events::Forwarder::start(&self.pool, selector));
        }
    }
}

/// The request for a span of `content`, without layout, which the manifest has settled already.
fn request(content: &ContentId, offset: u64, length: u64) -> Option<RangeRequest> {
    let ContentId::Resource { store_id, root, retrieval_key } = content else {
        return None;
    };
    let request = RangeRequest::resource(hex::encode(store_id), hex::encode(retrieval_key), offset, length);
    Some(request.with_root(hex::encode(root)).with_skip_layout(true))
}
