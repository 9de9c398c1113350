//! Host for the DIG stack.
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
