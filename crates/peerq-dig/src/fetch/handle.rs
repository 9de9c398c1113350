//! The caller's end of a running fetch (HOST-D6).

use std::future::Future;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::error::FetchError;
use super::progress::Progress;
use super::report::FetchReport;

/// What the caller can ask of a running fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Pause,
    Resume,
    Cancel,
}

/// A running fetch. Dropping it cancels the fetch as [`cancel`](Self::cancel) does: its task notices that nobody listens
/// any more, settles what is under way and ends. What was verified stays for the next attempt.
#[derive(Debug)]
pub struct FetchHandle {
    control: mpsc::UnboundedSender<Control>,
    progress: watch::Receiver<Progress>,
    task: JoinHandle<Result<FetchReport, FetchError>>,
}

impl FetchHandle {
    /// Starts `run` with the other ends of the handle's channels.
    pub(super) fn spawn<F>(run: impl FnOnce(mpsc::UnboundedReceiver<Control>, watch::Sender<Progress>) -> F) -> Self
    where
        F: Future<Output = Result<FetchReport, FetchError>> + Send + 'static,
    {
        let (control, commands) = mpsc::unbounded_channel();
        let (sender, progress) = watch::channel(Progress::default());
        let task = tokio::spawn(run(commands, sender));
        FetchHandle { control, progress, task }
    }

    /// The newest snapshot, and a way to wait for the next one. It may lag behind by a tenth of a second.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Asks for no further chunks until [`resume`](Self::resume). Requests under way finish, and nobody is charged.
    /// Without effect if paused already or done.
    pub fn pause(&self) {
        let _ = self.control.send(Control::Pause);
    }

    /// Goes on after [`pause`](Self::pause); otherwise without effect.
    pub fn resume(&self) {
        let _ = self.control.send(Control::Resume);
    }

    /// Ends the fetch; [`join`](Self::join) then tells [`FetchError::Cancelled`], or the result if it was done already.
    pub fn cancel(&self) {
        let _ = self.control.send(Control::Cancel);
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// [`FetchError`], which says who is at fault and what to do.
    pub async fn join(self) -> Result<FetchReport, FetchError> {
        let FetchHandle { control: _control, progress: _progress, task } = self;
        task.await.unwrap_or_else(|e| Err(FetchError::Engine { reason: e.to_string() }))
    }
}
