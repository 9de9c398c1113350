//! Estimation: samples become predictions with a basis and a spread (EST).

pub mod delivered;
pub mod downlink;
pub mod forecast;
pub mod lateness;
pub mod log_estimate;
pub mod population;
pub mod predicted;
pub mod ramp;
pub mod refusals;
pub mod reliability;
pub mod saturation;
pub mod seats;
pub mod trust;
pub mod warmth;

pub use crate::facts::Path;
pub use delivered::Delivered;
pub use downlink::Downlink;
pub use forecast::{Basis, Forecast};
pub use lateness::Lateness;
pub use log_estimate::LogEstimate;
pub use population::Population;
pub use predicted::{Rating, Wire};
pub use ramp::{Opening, Ramp, Warmth};
pub use refusals::Refusals;
pub use reliability::{Reliability, Verdict};
pub use saturation::Saturation;
pub use seats::Seats;
pub use trust::{Retention, Sanity};
pub use warmth::{Connection, Idleness};
