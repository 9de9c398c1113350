//! Recordings: what a selector was told and what it answered, as JSON lines that replay bit for bit (LAB-7).
//!
//! The one idea: a selector is deterministic, so a recording needs its seed and its calls with their moments, nothing of its state. Replaying derives every decision
//! anew and compares; explaining replays up to a moment and asks.
//!
//! The first line is a [`Header`]; each other line is a [`Step`]. [`Recorder`] writes them from a selector's tap, in a host as in the laboratory.

mod explain;
mod file;
mod recorder;
mod replay;
mod step;
#[cfg(test)]
mod tests;

pub use explain::{Explained, explain};
pub use file::{Header, Recording, RecordingError, SCHEMA};
pub use recorder::Recorder;
pub use replay::{Difference, Replay, replay};
pub use step::{Gave, Step, Told};
