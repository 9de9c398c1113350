//! What can end a fetch, said so that a person can act on it (HOST-D, errors of the main job).
//!
//! The variants are split by who is at fault: the caller's arguments and disk, the network as a whole, or named
//! holders. A single holder's failure never ends a fetch; it becomes a [`HolderFailure`] in the report, and only when
//! nobody is left does the list of them become the error.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use dig_nat::PeerId;

use crate::content::FileId;

/// How many per-holder reasons an error message spells out before it says how many more there are.
const REASONS_SHOWN: usize = 8;

/// The longest reason kept, in characters: reasons quote what a peer sent, so their size is the peer's choice.
const REASON_CHARS: usize = 200;

/// Why one holder could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderFailure {
    /// The holder.
    pub peer_id: PeerId,
    /// What happened, in words; bounded and free of control characters.
    pub reason: String,
}

impl HolderFailure {
    pub(super) fn new(peer_id: PeerId, reason: impl fmt::Display) -> Self {
        let reason = dig_download::sanitize_untrusted_text(&reason.to_string(), REASON_CHARS);
        HolderFailure { peer_id, reason }
    }
}

impl fmt::Display for HolderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.peer_id.to_hex(), self.reason)
    }
}

/// Why a fetch ended without the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Nobody was named and nobody was found.
    #[error(
        "no holders found for {id}: name one with an address and peer id, or give a bootstrap node that knows one; \
         check that the id is complete and that a node serving it has announced it"
    )]
    NoHolders {
        /// The file that was asked for.
        id: FileId,
    },

    /// Nodes were reached, and every one of them said that it does not hold this file.
    #[error("none of the nodes asked holds {id}: check the id, or name a node that serves this file{}", list(reasons))]
    UnknownId {
        /// The file that was asked for.
        id: FileId,
        /// What each node said.
        reasons: Vec<HolderFailure>,
    },

    /// Holders were found, but none of them could be used to the end.
    #[error("{} could not be fetched from any holder{}", what_failed(id, *missing, *total), list(reasons))]
    AllHoldersFailed {
        /// The file that was asked for.
        id: FileId,
        /// Chunks still missing; equal to `total` when the manifest itself could not be fetched.
        missing: usize,
        /// Chunks of the whole file; 0 while the manifest is unknown.
        total: usize,
        /// The last failure of each holder.
        reasons: Vec<HolderFailure>,
    },

    /// The disk has no room for the rest of the file.
    #[error(
        "no space left for {}: {needed} more bytes are needed; free some space and run the same fetch again, which \
         continues from what is already there", path.display()
    )]
    DiskFull {
        /// The file being written.
        path: PathBuf,
        /// Bytes that were still to be written.
        needed: u64,
    },

    /// The output names an existing file.
    #[error("{} already exists: choose another output, or allow overwriting", path.display())]
    OutputExists {
        /// The output path.
        path: PathBuf,
    },

    /// The output names a directory.
    #[error("{} is a directory: give the path of a file in it", path.display())]
    OutputIsDirectory {
        /// The output path.
        path: PathBuf,
    },

    /// Another process (or another fetch of this one) writes the same file.
    #[error("another fetch is already writing {}: wait for it or choose another output", path.display())]
    OutputBusy {
        /// The output path.
        path: PathBuf,
    },

    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb phrase.
        action: &'static str,
        /// The file it was attempted on.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },

    /// The caller cancelled the fetch, or dropped its handle.
    #[error("fetch cancelled; what was verified is kept for the next attempt")]
    Cancelled,

    /// The download engine ended in a way that says nothing about holders or the disk.
    #[error("the download ended unexpectedly: {reason}")]
    Engine {
        /// The engine's own words.
        reason: String,
    },
}

impl FetchError {
    /// Sorts an I/O error: a full disk is its own variant because it has its own cure.
    pub(super) fn io(action: &'static str, path: &Path, needed: u64, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                FetchError::DiskFull { path: path.to_path_buf(), needed }
            }
            io::ErrorKind::IsADirectory => FetchError::OutputIsDirectory { path: path.to_path_buf() },
            _ => FetchError::Io { action, path: path.to_path_buf(), source },
        }
    }
}

fn what_failed(id: &FileId, missing: usize, total: usize) -> String {
    match total {
        0 => format!("the list of chunks of {id}"),
        _ => format!("{missing} of {total} chunks of {id} (what was verified is kept for the next attempt)"),
    }
}

fn list(reasons: &[HolderFailure]) -> String {
    let mut text = String::new();
    for failure in reasons.iter().take(REASONS_SHOWN) {
        text.push_str("\n  ");
        text.push_str(&failure.to_string());
    }
    if reasons.len() > REASONS_SHOWN {
        text.push_str(&format!("\n  and {} more", reasons.len() - REASONS_SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(byte: u8, reason: &str) -> HolderFailure {
        HolderFailure::new(PeerId::from_bytes([byte; 32]), reason)
    }

    #[test]
    fn a_holders_words_cannot_forge_a_second_line_or_grow_without_bound() {
        let hostile = format!("x\nfake line{}", "y".repeat(10_000));
        let shown = failure(1, &hostile).reason;
        assert!(!shown.contains('\n'));
        assert!(shown.chars().count() < 2 * REASON_CHARS);
    }

    #[test]
    fn a_long_list_of_reasons_is_cut_and_says_so() {
        let reasons: Vec<_> = (0..20).map(|i| failure(i, "refused")).collect();
        let text = list(&reasons);
        assert_eq!(text.lines().filter(|l| l.contains("refused")).count(), REASONS_SHOWN);
        assert!(text.ends_with("and 12 more"));
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_io_errors() {
        let full = FetchError::io("write", Path::new("f"), 7, io::ErrorKind::StorageFull.into());
        assert!(matches!(full, FetchError::DiskFull { needed: 7, .. }));
        let denied = FetchError::io("write", Path::new("f"), 7, io::ErrorKind::PermissionDenied.into());
        assert!(matches!(denied, FetchError::Io { .. }));
    }
}
