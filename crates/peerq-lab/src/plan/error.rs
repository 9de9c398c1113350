//! Why a plan cannot be run: the file, the line and the field, so that its author finds the place (LAB-5).

use std::path::PathBuf;

use thiserror::Error;

/// A plan that is not one.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("cannot read plan {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a plan.
    #[error("{file}:{line}: field `{field}`: {reason}")]
    Malformed {
        /// The file, or the built-in's name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Path of the field, such as `world.peers[0].rate`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is a plan of a world that cannot be.
    #[error("{file}: field `{field}`: {reason}")]
    Impossible {
        /// The file, or the built-in's name.
        file: String,
        /// Path of the field, such as `world.peers[0].rate`.
        field: String,
        /// Why such a world cannot be.
        reason: String,
    },
    /// No plan has this name.
    #[error(
        "no plan or scenario is named `{name}`; `peerq lab list` shows them, and a path to a .toml file is read as a plan"
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
}
