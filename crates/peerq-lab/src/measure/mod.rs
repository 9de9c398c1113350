//! Measures (LAB-4): what the runs of one policy in one world say, over several seeds.
//!
//! Pure functions of [`RunResult`]s. A run is one draw of the world, and what happens within it hangs together; so intervals come from drawing whole runs anew, never
//! single requests ([`interval`]). A measure that has nothing to say (no deadline, no bytes, nobody demoted) is none, not zero.
//!
//! | measure | formula | file |
//! |---|---|---|
//! | completion | quantiles of end − start over all requests | [`completion`] |
//! | deadline misses | late or never, of those with a deadline | [`completion`] |
//! | hostile, wasted | bytes over bytes | [`shares`] |
//! | credited over delivered | largest and geometric mean over peers, at the end; of hostile peers just after their latest bytes | [`credit`] |
//! | demotion | seconds until it, and of the wrong ones | [`demotion`] |
//! | fairness | Jain's index of bytes per capacity, honest peers | [`fairness`] |
//! | over the yardstick | geometric mean of ratios | [`yardstick`] |

pub mod completion;
pub mod credit;
pub mod demotion;
pub mod fairness;
pub mod interval;
pub mod quantile;
pub mod shares;
mod summary;
pub mod yardstick;

pub use interval::Interval;
pub use summary::Measures;

#[cfg(doc)]
use crate::model::RunResult;

#[cfg(test)]
pub(crate) mod testing;
