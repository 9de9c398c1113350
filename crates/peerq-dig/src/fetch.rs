//! Fetching a file: verified from the first byte, from whoever really delivers (HOST-D1, D2, D3, D6, MEAS-10).

mod ending;
mod error;
mod layout;
mod patience;
mod reader;
mod report;
mod scorebook;
mod sink;
mod staging;
mod state;
mod task;

pub use error::{FetchError, HolderFailure};
pub use report::{FetchReport, OutcomeCounts, PeerReport};
