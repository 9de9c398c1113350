//! Results: running plans, keeping what they gave, and showing it (LAB-4, LAB-5).
//!
//! ```text
//! plans ──► runner ──lines (JSON)──► summary ──► compare document, tables, HTML page
//!              ▲          │  ▲
//!            bench        └──┘ shards are merged
//! ```
//! The one idea: a line holds everything that is ever shown of a run, so documents, tables and pages are functions of lines alone, and a run can be split over
//! any number of threads or machines without a difference in the result.

mod bench;
mod compare;
mod figures;
mod html;
mod lines;
mod log;
mod quantile;
mod runner;
mod series;
mod summary;
mod svg;
mod table;
#[cfg(test)]
pub(crate) mod testing;

pub use bench::{Bench, ENGINE, OURS, YARDSTICK};
pub use compare::{Compare, CompareCheck, ComparePlan, Means, compare};
pub use html::{document_page, page};
pub use lines::{Lines, LinesError, PlanLine, RunLine, SCHEMA};
pub use log::{Ended, How, Predicted, RunLog, Sent, Viewed};
pub use runner::{Progress, Selection, Shard, run};
pub use series::Series;
pub use summary::{PolicyFigures, Summary, summarise};
pub(crate) use table::aligned;
pub use table::{compare_table, plan_table};
