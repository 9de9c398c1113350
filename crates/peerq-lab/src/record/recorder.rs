//! Writes a recording from a selector's tap.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use dig_peer_selector::tap::{Call, Tap};
use peer_quality::units::Time;

use super::{Header, SCHEMA, Step, Told};

/// A tap that writes a line per call. Writing fails silently for the selector, whose work it must not disturb; [`Recorder::finish`] says whether it did.
pub struct Recorder<W> {
    out: Mutex<Out<W>>,
}

struct Out<W> {
    to: W,
    failed: Option<std::io::Error>,
}

impl<W> std::fmt::Debug for Recorder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

impl<W: Write> Recorder<W> {
    /// Writes to this; buffer it, since every call is a write.
    pub fn new(to: W) -> Self {
        Recorder { out: Mutex::new(Out { to, failed: None }) }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// The first that any write met: the recording is then torn at that place.
    pub fn finish(&self) -> std::io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        match out.failed.take() {
            Some(error) => Err(error),
            None => out.to.flush(),
        }
    }

    fn line(&self, value: &impl serde::Serialize) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if out.failed.is_some() {
            return;
        }
        let written = serde_json::to_vec(value).map_err(std::io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            out.to.write_all(&line)
        });
        out.failed = written.err();
    }
}

impl<W: Write + Send> Tap for Recorder<W> {
    fn begins(&self, seed: u64, capacity: usize) {
        self.line(&Header { recording: "peerq".to_owned(), schema: SCHEMA, seed, capacity });
    }

    fn called(&self, at: Time, call: &Call<'_>) {
        self.line(&Step { at_us: at.as_micros(), told: Told::of(call) });
    }
}
