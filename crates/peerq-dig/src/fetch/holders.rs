//! Who holds the file, found and confirmed in the background (HOST-D2, HOST-D5).
//!
//! dig-download asks every provider for availability, one after the other, without a timeout, and silently drops those
//! that fail. Here a finder task looks holders up, asks all of them at once with a bound, and charges those that cannot
//! be reached; the engine is only ever shown what is already confirmed, so that neither its start nor its refreshes wait
//! for a silent peer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dig_dht::{CandidateAddr, ContentId, PeerId as DhtPeerId, ProviderRecord};
use dig_download::{DownloadError, ProviderLocator};
use dig_nat::{AvailabilityItem, PeerId};
use dig_peer_selector::Candidate;
use tokio::sync::watch;
use tokio::time::Instant;

use super::ending::{Ending, Seen};
use super::error::HolderFailure;
use super::scorebook::Scorebook;
use super::task::AbortOnDrop;
use crate::content::FileId;
use crate::peer::PeerAddr;
use crate::pool::{Pool, PoolError};

/// How long a holder has to say that it holds the file, dialling included. Higher: a fetch whose holders are all silent
/// fails later. Lower: distant holders behind a slow handshake (three round trips) are lost.
const AVAILABILITY_TIMEOUT: Duration = Duration::from_secs(5);

/// How often holders are looked up anew, and failed ones asked again: dig-download's own refresh interval.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(15);

/// After the first confirmation the start waits for the others this multiple of the time it took, within the bounds.
const GRACE_FACTOR: u32 = 3;
const GRACE_MIN: Duration = Duration::from_millis(20);
const GRACE_MAX: Duration = Duration::from_secs(1);

/// Most holders kept; those named by the caller come first, then those found first. Bounds what strangers who announce
/// themselves can make this fetch do.
const MAX_HOLDERS: usize = 256;

/// Most addresses kept per holder.
const MAX_ADDRS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    Unasked,
    Asking,
    Confirmed,
    /// Confirmed, but has lied since; the engine keeps it in its list, the adapter passes it over.
    Expelled,
    /// Said that it does not hold the file.
    Refused,
    Failed,
}

#[derive(Debug)]
struct Holder {
    addrs: Vec<SocketAddr>,
    standing: Standing,
    reason: Option<String>,
}

/// How far the search has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Search {
    /// Holders that confirmed.
    pub(super) confirmed: usize,
    /// Holders whose answer is outstanding.
    pub(super) asking: usize,
    /// Whether the first look-up is through.
    pub(super) looked_up: bool,
}

impl Search {
    /// Nobody is left who might still confirm, until the next look-up.
    pub(super) fn settled(&self) -> bool {
        self.looked_up && self.asking == 0
    }
}

/// The holders of one file, as far as known.
pub(super) struct Holders {
    id: FileId,
    pool: Arc<Pool>,
    locator: Option<Arc<dyn ProviderLocator>>,
    book: Arc<Scorebook>,
    holders: Mutex<BTreeMap<[u8; 32], Holder>>,
    search: watch::Sender<Search>,
}

impl Holders {
    /// Starts the search, which goes on until the returned task is dropped.
    pub(super) fn search(
        id: FileId,
        pool: Arc<Pool>,
        named: &[PeerAddr],
        locator: Option<Arc<dyn ProviderLocator>>,
        book: Arc<Scorebook>,
    ) -> (Arc<Self>, AbortOnDrop<()>) {
        let search = watch::Sender::new(Search::default());
        let holders = Arc::new(Holders { id, pool, locator, book, holders: Mutex::default(), search });
        for peer in named {
            holders.add(peer.peer_id, [peer.addr]);
        }
        let finder = AbortOnDrop::spawn(holders.clone().run());
        (holders, finder)
    }

    /// Follows the search.
    pub(super) fn watch(&self) -> watch::Receiver<Search> {
        self.search.subscribe()
    }

    /// Waits until the first holders are confirmed and the others had a fair chance, or until nobody is left.
    pub(super) async fn ready(&self) -> Search {
        let mut search = self.watch();
        let started = Instant::now();
        if search.wait_for(|s| s.confirmed > 0 || s.settled()).await.is_err() {
            return Search::default();
        }
        let grace = (started.elapsed() * GRACE_FACTOR).clamp(GRACE_MIN, GRACE_MAX);
        let _ = tokio::time::timeout(grace, search.wait_for(Search::settled)).await;
        *search.borrow()
    }

    /// The confirmed holders, ordered by peer id.
    pub(super) fn confirmed(&self) -> Vec<PeerId> {
        let holders = self.lock();
        let confirmed = holders.iter().filter(|(_, h)| h.standing == Standing::Confirmed);
        confirmed.map(|(id, _)| PeerId::from_bytes(*id)).collect()
    }

    /// The addresses of a holder, in the order to dial them.
    pub(super) fn addrs(&self, peer: &PeerId) -> Vec<SocketAddr> {
        self.lock().get(peer.as_bytes()).map(|h| h.addrs.clone()).unwrap_or_default()
    }

    /// The holder as the selector knows it.
    pub(super) fn candidate(&self, peer: &PeerId) -> Candidate {
        Candidate::new(*peer, addresses(&self.addrs(peer)))
    }

    /// Takes a liar off the list of confirmed holders.
    pub(super) fn expel(&self, peer: &PeerId) {
        if let Some(holder) = self.lock().get_mut(peer.as_bytes()) {
            holder.standing = Standing::Expelled;
            holder.reason = Some("sent wrong data repeatedly".into());
        }
        self.publish(false);
    }

    /// Whether everybody who answered said that they do not hold the file.
    pub(super) fn all_refused(&self) -> bool {
        let holders = self.lock();
        !holders.is_empty() && holders.values().all(|h| h.standing == Standing::Refused)
    }

    /// Whether nobody was ever known.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Why each holder that is not confirmed is not.
    pub(super) fn failures(&self) -> Vec<HolderFailure> {
        let holders = self.lock();
        let failed = holders.iter().filter(|(_, h)| h.standing != Standing::Confirmed);
        failed.filter_map(|(id, h)| Some(HolderFailure::new(PeerId::from_bytes(*id), h.reason.as_ref()?))).collect()
    }

    async fn run(self: Arc<Self>) {
        loop {
            // Named holders need no look-up; ask them while it runs.
            self.ask_all();
            if let Some(locator) = &self.locator {
                match locator.find_providers(&self.id.content()).await {
                    Ok(records) => records.iter().for_each(|r| self.add_record(r)),
                    Err(e) => tracing::debug!(id = %self.id, error = %e, "holder look-up failed"),
                }
            }
            self.ask_all();
            self.publish(true);
            tokio::time::sleep(LOOKUP_INTERVAL).await;
            for holder in self.lock().values_mut().filter(|h| h.standing == Standing::Failed) {
                holder.standing = Standing::Unasked;
            }
        }
    }

    fn add_record(&self, record: &ProviderRecord) {
        let Some(peer) = PeerId::from_hex(&record.provider_peer_id) else {
            return;
        };
        let addrs = dig_dht::dial_candidates(&record.addresses);
        self.add(peer, addrs.into_iter().filter_map(|a| dig_download::candidate_socket(a).ok()));
    }

    /// Adds a holder, or further addresses of a known one behind those it has.
    fn add(&self, peer: PeerId, addrs: impl IntoIterator<Item = SocketAddr>) {
        if peer == self.pool.identity().peer_id() {
            return;
        }
        let mut holders = self.lock();
        if holders.len() >= MAX_HOLDERS && !holders.contains_key(peer.as_bytes()) {
            return;
        }
        let fresh = || Holder { addrs: Vec::new(), standing: Standing::Unasked, reason: None };
        let holder = holders.entry(*peer.as_bytes()).or_insert_with(fresh);
        for addr in addrs {
            if holder.addrs.len() < MAX_ADDRS && !holder.addrs.contains(&addr) {
                holder.addrs.push(addr);
            }
        }
    }

    /// Asks everybody who has not been asked, all at once; the answers come in by themselves.
    fn ask_all(self: &Arc<Self>) {
        let mut asked = Vec::new();
        for (id, holder) in self.lock().iter_mut().filter(|(_, h)| h.standing == Standing::Unasked) {
            holder.standing = Standing::Asking;
            asked.push((PeerId::from_bytes(*id), holder.addrs.clone()));
        }
        self.publish(false);
        for (peer, addrs) in asked {
            self.book.met(peer, addrs.first().copied());
            // Bounded by the timeout and holding only a weak reference, so it needs no owner.
            let (pool, holders, item) = (self.pool.clone(), Arc::downgrade(self), item(&self.id.content()));
            tokio::spawn(async move {
                let started = Instant::now();
                let answer = pool.query_availability(&peer, &addrs, vec![item], AVAILABILITY_TIMEOUT).await;
                if let Some(holders) = holders.upgrade() {
                    let available = answer.map(|a| a.items.first().is_some_and(|i| i.available));
                    holders.answered(peer, available, started.elapsed());
                }
            });
        }
    }

    fn answered(&self, peer: PeerId, answer: Result<bool, PoolError>, took: Duration) {
        let (standing, ending) = match answer {
            Ok(true) => (Standing::Confirmed, None),
            Ok(false) => (Standing::Refused, Some(Ending::Unavailable("does not hold this file".into()))),
            Err(e) => (Standing::Failed, Some(pool_ending(&e))),
        };
        if let Some(ending) = &ending {
            let seen = Seen { duration: took, ..Seen::default() };
            self.book.record_unplanned(peer, self.id.content(), ending, seen);
        }
        if let Some(holder) = self.lock().get_mut(peer.as_bytes()) {
            holder.standing = standing;
            holder.reason = ending.and_then(|e| e.reason().map(str::to_owned));
        }
        self.publish(false);
    }

    fn publish(&self, looked_up: bool) {
        let (confirmed, asking) = {
            let holders = self.lock();
            let count = |s| holders.values().filter(|h| h.standing == s).count();
            (count(Standing::Confirmed), count(Standing::Asking) + count(Standing::Unasked))
        };
        self.search.send_modify(|s| {
            *s = Search { confirmed, asking, looked_up: s.looked_up || looked_up };
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why no stream could be opened, in the terms of a request's end.
pub(super) fn pool_ending(error: &PoolError) -> Ending {
    match error {
        PoolError::Timeout { .. } => Ending::TimedOut(error.to_string()),
        PoolError::Session { .. } => Ending::Interrupted(error.to_string()),
        _ => Ending::Unreachable(error.to_string()),
    }
}

fn addresses(addrs: &[SocketAddr]) -> Vec<CandidateAddr> {
    addrs.iter().map(|a| CandidateAddr::direct(a.ip().to_string(), a.port())).collect()
}

/// The question whether a peer holds `content`.
fn item(content: &ContentId) -> AvailabilityItem {
    match content {
        ContentId::Store { store_id } => AvailabilityItem::store(hex::encode(store_id)),
        ContentId::Root { store_id, root } => {
            AvailabilityItem::store(hex::encode(store_id)).with_root(hex::encode(root))
        }
        ContentId::Resource { store_id, root, retrieval_key } => AvailabilityItem::store(hex::encode(store_id))
            .with_root(hex::encode(root))
            .with_retrieval_key(hex::encode(retrieval_key)),
    }
}

/// What the engine is told when it looks for providers: those confirmed by now, without waiting except at the start.
#[async_trait]
impl ProviderLocator for Holders {
    async fn find_providers(&self, content: &ContentId) -> Result<Vec<ProviderRecord>, DownloadError> {
        if self.search.borrow().confirmed == 0 {
            self.ready().await;
        }
        let key = content.to_key();
        let record = |p: PeerId| {
            let provider = DhtPeerId::from_bytes(*p.as_bytes());
            ProviderRecord::new(&key, &provider, addresses(&self.addrs(&p)), u64::MAX)
        };
        Ok(self.confirmed().into_iter().map(record).collect())
    }
}
