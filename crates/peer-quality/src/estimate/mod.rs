//! Estimation: samples become predictions with a basis and a spread (EST).

pub mod delivered;
pub mod log_estimate;
pub mod population;
pub mod reliability;
pub mod saturation;

pub use crate::facts::Path;
pub use delivered::{Basis, Delivered, Forecast};
pub use log_estimate::LogEstimate;
pub use population::Population;
pub use reliability::{Reliability, Verdict};
pub use saturation::Saturation;
