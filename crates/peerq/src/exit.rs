//! How a run ends: the four exit codes and the message that goes with each.

use std::process::ExitCode;

/// Why a run did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run worked but its own check failed: a file not fetched, a round not verified. Code 1.
    Check(String),
    /// The caller asked for something that makes no sense. Code 2.
    Usage(String),
    /// A file, an address or the system refused. Code 2.
    Io(String),
    /// Stopped by Ctrl-C; the text says what remains. Code 130, as shells expect.
    Interrupted(Option<String>),
    /// Whoever read stdout went away (`peerq … | head`). Ends quietly with code 0.
    ReaderGone,
}

impl Failure {
    /// What to tell the person, if anything.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Check(text) | Self::Usage(text) | Self::Io(text) => Some(text),
            Self::Interrupted(text) => text.as_deref(),
            Self::ReaderGone => None,
        }
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Check(_) => ExitCode::from(1),
            Self::Usage(_) | Self::Io(_) => ExitCode::from(2),
            Self::Interrupted(_) => ExitCode::from(130),
            Self::ReaderGone => ExitCode::SUCCESS,
        }
    }
}
