//! Host for the DIG stack.
#![forbid(unsafe_code)]

pub mod content;
pub mod fetch;
pub mod identity;
pub mod peer;
pub mod pool;

pub use content::{FileId, Manifest};
pub use dig_nat::PeerId;
pub use identity::Identity;
pub use peer::PeerAddr;
pub use pool::{Pool, PoolConfig, PoolError, PoolNotice};
