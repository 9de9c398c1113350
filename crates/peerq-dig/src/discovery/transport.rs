//! Carries the DHT's questions over the connection pool (HOST-D5).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dig_dht::{Contact, DhtError, DhtRequest, DhtResponse, DhtTransport};
use tokio::io::AsyncWriteExt;

use super::records::socket_addr;
use crate::pool::{Pool, PoolError};

/// Most failures remembered between two sweeps.
const FAILED_MAX: usize = 1024;

pub(super) struct PoolTransport {
    pool: Arc<Pool>,
    timeout: Duration,
    /// Peers that did not answer, with the reason; swept by [`super::Discovery`].
    failed: Mutex<BTreeMap<[u8; 32], String>>,
}

impl PoolTransport {
    pub(super) fn new(pool: Arc<Pool>, timeout: Duration) -> Self {
        PoolTransport { pool, timeout, failed: Mutex::default() }
    }

    pub(super) fn take_failed(&self) -> BTreeMap<[u8; 32], String> {
        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn ask(&self, peer: &Contact, request: &DhtRequest) -> Result<DhtResponse, PoolError> {
        // A malformed id has no address to be dialled at, either.
        let Some(id) = peer.peer_id() else {
            return Err(PoolError::SelfDial);
        };
        let addrs: Vec<_> = peer.dial_candidates().into_iter().filter_map(socket_addr).collect();
        let asking = async {
            let broken = |error| PoolError::session(&id, error);
            let mut stream = self.pool.open_stream(&id, &addrs).await?;
            stream.write_all(&request.encode()).await.map_err(broken)?;
            stream.flush().await.map_err(broken)?;
            DhtResponse::decode(&mut stream).await.map_err(broken)
        };
        let late = PoolError::Timeout { peer: id, doing: "answering a DHT request", after: self.timeout };
        tokio::time::timeout(self.timeout, asking).await.unwrap_or(Err(late))
    }
}

#[async_trait]
impl DhtTransport for PoolTransport {
    async fn rpc(&self, _: &Contact, peer: &Contact, request: &DhtRequest) -> Result<DhtResponse, DhtError> {
        match self.ask(peer, request).await {
            Ok(response) => Ok(response),
            Err(error) => {
                if let Some(id) = peer.peer_id() {
                    let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                    if failed.len() < FAILED_MAX {
                        failed.insert(*id.as_bytes(), error.to_string());
                    }
                }
                Err(match error {
                    PoolError::Timeout { .. } => DhtError::Timeout,
                    error => DhtError::transport_from_untrusted(error),
                })
            }
        }
    }
}
