//! Recordings as files: a header, then a step per line; a torn last line is left out and said.

use std::io::BufRead;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Step;

/// Version of the form; raised when an old reader would misread a new recording, or an old recording would replay differently for its form alone.
pub const SCHEMA: u32 = 1;

/// Longest line that is read, bytes: a selection among thousands of candidates is far below it.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Always `peerq`.
    pub recording: String,
    /// [`SCHEMA`].
    pub schema: u32,
    /// The selector's seed.
    pub seed: u64,
    /// Its registry's capacity.
    pub capacity: usize,
}

/// A recording, whole or up to where it was torn.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The selector.
    pub header: Header,
    /// Its calls, each with its line in the file.
    pub steps: Vec<(usize, Step)>,
    /// Line at which the file is torn: its last, which is no whole line.
    pub torn_at: Option<usize>,
}

/// Why a file is no recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The system could not read it.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It begins with something else.
    #[error("{file}: not a recording: its first line is not a header ({reason})")]
    NoHeader {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// Another version wrote it.
    #[error("{file}: recording of schema {found}, this version replays {SCHEMA}")]
    Schema {
        /// The file.
        file: String,
        /// Its schema.
        found: u32,
    },
    /// A line in the middle is not a step.
    #[error("{file}:{line}: not a step of a recording: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl Recording {
    /// Reads a recording; `file` names it in errors. A last line that does not end or cannot be read is left out, and [`Recording::torn_at`] says so.
    ///
    /// # Errors
    /// [`RecordingError`] for anything but a torn end.
    pub fn read(file: &str, mut input: impl BufRead) -> Result<Recording, RecordingError> {
        let io = |source| RecordingError::Io { file: file.to_owned(), source };
        let mut header = None;
        let mut steps: Vec<(usize, Step)> = Vec::new();
        let mut failed: Option<(usize, String)> = None;
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            if input.read_until(b'\n', &mut text).map_err(io)? == 0 {
                break;
            }
            if let Some((line, reason)) = failed {
                return Err(RecordingError::Malformed { file: file.to_owned(), line, reason });
            }
            let whole = text.last() == Some(&b'\n') && text.len() <= MAX_LINE_BYTES;
            if header.is_none() {
                header = Some(header_of(file, &text)?);
                continue;
            }
            match serde_json::from_slice(&text) {
                Ok(step) if whole => steps.push((line, step)),
                Ok(_) => failed = Some((line, "the line does not end".to_owned())),
                Err(error) => failed = Some((line, error.to_string())),
            }
        }
        let empty = || RecordingError::NoHeader { file: file.to_owned(), reason: "it is empty".to_owned() };
        Ok(Recording { header: header.ok_or_else(empty)?, steps, torn_at: failed.map(|(line, _)| line) })
    }
}

fn header_of(file: &str, text: &[u8]) -> Result<Header, RecordingError> {
    let no_header = |reason: String| RecordingError::NoHeader { file: file.to_owned(), reason };
    let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| no_header(error.to_string()))?;
    if value.get("recording").and_then(serde_json::Value::as_str) != Some("peerq") {
        return Err(no_header("it does not name itself a peerq recording".to_owned()));
    }
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(schema) if schema != u64::from(SCHEMA) => {
            Err(RecordingError::Schema { file: file.to_owned(), found: u32::try_from(schema).unwrap_or(u32::MAX) })
        }
        _ => serde_json::from_value(value).map_err(|error| no_header(error.to_string())),
    }
}
