//! What happens to connections, told to the selector (HOST-D5).

use std::sync::{Arc, Weak};

use dig_peer_selector::{PeerSelector, PoolEvent, PoolRemovalReason};
use tokio::sync::broadcast::error::RecvError;

use super::task::AbortOnDrop;
use crate::pool::{Pool, PoolNotice};

/// Forwards the pool's notices to one selector, until either is gone.
pub(super) struct Forwarder {
    selector: Weak<PeerSelector>,
    _task: AbortOnDrop<()>,
}

impl Forwarder {
    pub(super) fn start(pool: &Arc<Pool>, selector: &Arc<PeerSelector>) -> Self {
        let mut notices = pool.subscribe();
        let target = Arc::downgrade(selector);
        catch_up(pool, selector);
        let (pool, receiver) = (Arc::downgrade(pool), target.clone());
        let task = AbortOnDrop::spawn(async move {
            loop {
                let notice = notices.recv().await;
                let Some(selector) = receiver.upgrade() else {
                    return;
                };
                match notice {
                    Ok(notice) => forward(&selector, notice),
                    Err(RecvError::Lagged(_)) => match pool.upgrade() {
                        Some(pool) => catch_up(&pool, &selector),
                        None => return,
                    },
                    Err(RecvError::Closed) => return,
                }
            }
        });
        Forwarder { selector: target, _task: task }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.selector.strong_count() > 0
    }

    pub(super) fn serves(&self, selector: &Arc<PeerSelector>) -> bool {
        std::ptr::eq(self.selector.as_ptr(), Arc::as_ptr(selector))
    }
}

/// A second "added" for a peer is an update, so telling of all open connections is always right.
fn catch_up(pool: &Pool, selector: &PeerSelector) {
    for (peer, addr) in pool.connected() {
        forward(selector, PoolNotice::Added { peer, addr });
    }
}

fn forward(selector: &PeerSelector, notice: PoolNotice) {
    match notice {
        PoolNotice::Added { peer, addr } => selector.on_pool_event(&PoolEvent::PeerAdded { peer_id: peer, addr }),
        PoolNotice::Class { peer, kind } => selector.on_connection_class(&peer, kind),
        PoolNotice::Removed { peer } => {
            selector.on_pool_event(&PoolEvent::PeerRemoved { peer_id: peer, reason: PoolRemovalReason::Disconnected })
        }
    }
}
