//! Ranking and planning: predictions become an order and a share of the work (RANK).
//!
//! ```text
//! peers ──quote──► cost, tail, room, class ──order──► ranked ──plan──► who, and how many requests each
//!                                                │       └──explore──► who is tried besides
//!                                                └──────decide──────► the answer
//! ```

pub(crate) mod crowds;
pub(crate) mod decide;
pub mod explain;
pub mod explore;
pub mod plan;
pub mod quote;

pub use explain::{Explained, Explanation, Reason};
pub use plan::{Advice, Pick, Work};
pub use quote::Quote;
