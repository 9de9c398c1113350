//! The nouns of the laboratory: worlds, behaviours, workloads and what a run measures. Worlds and workloads are read from plans (TOML).

mod behaviour;
mod result;
mod wire;
mod workload;
mod world;

pub use behaviour::{Behaviour, Kind};
pub use result::{PeerResult, RequestResult, RunResult};
pub use wire::Wire;
pub use workload::Workload;
pub use world::{Change, Client, History, Loss, Outage, PeerGroup, Range, Serve, SharedLink, Tcp, World};
