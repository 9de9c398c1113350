//! Recordings of a selector: made by `--record`, read by `peerq replay` and `peerq explain` (LAB-7).

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dig_peer_selector::{PeerSelector, SelectorConfig};
use peerq_lab::record::{self, Recorder, Recording};

use crate::exit::Failure;
use crate::output;

/// Derive every decision of a recording anew, and say where it first differs.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  peerq swarm --record run.jsonl\n  peerq replay run.jsonl\n\nExit code 1 means that a decision came out otherwise."
)]
pub(crate) struct ReplayArgs {
    /// The recording.
    file: PathBuf,
}

/// Explain a decision of a recording: each candidate's terms, and why it was taken or passed over.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  peerq explain run.jsonl --at 2.5 --peer 3f0a")]
pub(crate) struct ExplainArgs {
    /// The recording.
    file: PathBuf,
    /// The latest decision at or before this moment, seconds on the selector's clock; the last one by default.
    #[arg(long, value_name = "SECONDS")]
    at: Option<f64>,
    /// Only this peer: the beginning of its id.
    #[arg(long, value_name = "ID")]
    peer: Option<String>,
}

fn read(path: &Path) -> Result<Recording, Failure> {
    let file = path.display().to_string();
    let input = File::open(path).map_err(|error| Failure::Io(format!("cannot read {file}: {error}")))?;
    Recording::read(&file, BufReader::new(input)).map_err(|error| Failure::Usage(error.to_string()))
}

/// Replays a recording.
///
/// # Errors
/// [`Failure::Check`] at the first difference, [`Failure::Usage`] for a file that is no recording.
pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let replayed = record::replay(&read(&args.file)?);
    output::line(&replayed.to_string())?;
    match replayed.difference {
        None => Ok(()),
        Some(difference) => Err(Failure::Check(format!("line {} came out otherwise", difference.line))),
    }
}

/// Explains a decision.
///
/// # Errors
/// [`Failure::Usage`] for a file that is no recording or a moment before the first decision.
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let at_us = args.at.map_or(u64::MAX, |secs| (secs.max(0.0) * 1e6) as u64);
    let recording = read(&args.file)?;
    match record::explain(&recording, at_us, args.peer.as_deref()) {
        Some(explained) => output::line(explained.text.trim_end()),
        None => Err(Failure::Usage("nothing was decided by then".to_owned())),
    }
}

/// A selector that may be recorded.
pub(crate) struct Recorded {
    pub(crate) selector: Arc<PeerSelector>,
    recorder: Option<(Arc<Recorder<BufWriter<File>>>, PathBuf)>,
}

impl Recorded {
    /// A selector; with a path, everything it is told and answers goes there.
    ///
    /// # Errors
    /// [`Failure::Io`] if the file cannot be made.
    pub(crate) fn new(config: SelectorConfig, path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Recorded { selector: Arc::new(PeerSelector::new(config)), recorder: None });
        };
        let file =
            File::create(path).map_err(|error| Failure::Io(format!("cannot make {}: {error}", path.display())))?;
        let recorder = Arc::new(Recorder::new(BufWriter::new(file)));
        let selector = Arc::new(PeerSelector::with_tap(config, recorder.clone()));
        Ok(Recorded { selector, recorder: Some((recorder, path.to_path_buf())) })
    }

    /// Writes out what is left.
    ///
    /// # Errors
    /// [`Failure::Io`] if anything of the recording could not be written.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        let Some((recorder, path)) = &self.recorder else { return Ok(()) };
        recorder.finish().map_err(|error| Failure::Io(format!("cannot write {}: {error}", path.display())))
    }
}
