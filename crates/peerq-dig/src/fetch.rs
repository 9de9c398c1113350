//! Fetching a file: verified from the first byte, from whoever really delivers (HOST-D1, D2, D3, D6, MEAS-10).

mod error;
mod layout;
mod sink;
mod staging;
mod state;

pub use error::{FetchError, HolderFailure};
