//! Writing results to stdout, where a closed pipe is no error.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::exit::Failure;

/// Writes `text` and a line end, and flushes so that a reading process sees the line at once.
///
/// # Errors
/// [`Failure::ReaderGone`] when the pipe is closed, [`Failure::Io`] otherwise.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Io(format!("cannot write to standard output: {error}")),
    })
}

/// One JSON document as text.
///
/// # Errors
/// [`Failure::Io`]; none is known for the documents of this program.
pub(crate) fn to_json(document: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(document)
        .map_err(|error| Failure::Io(format!("cannot write the JSON document: {error}")))
}
