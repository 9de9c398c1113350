//! Host for the DIG stack: nodes that serve files, and what it takes to fetch from them.
//!
//! - [`content`]: a file's id, and the manifest that makes every chunk checkable by itself
//! - [`identity`], [`peer`]: who a node is, and how it is named
//! - [`pool`]: one mTLS connection per peer
//! - [`discovery`]: holders of a file through the DHT
//! - [`node`]: serving, behind a link of a given rate and delay, honest or not
//!
//! Whatever comes from the network is a claim until it is checked: ids against certificates, manifests against ids, chunks
//! against manifests, sizes against limits.
#![forbid(unsafe_code)]

pub mod content;
pub mod discovery;
pub mod fetch;
pub mod identity;
mod link;
pub mod node;
pub mod peer;
pub mod pool;

pub use content::{FileId, Manifest};
pub use dig_nat::PeerId;
pub use discovery::Discovery;
pub use identity::Identity;
pub use node::{Fault, LinkShape, Node, NodeStats};
pub use peer::PeerAddr;
pub use pool::{Pool, PoolConfig, PoolError, PoolNotice};
