//! Ctrl-C and termination, as one future to select on.

use std::future::Future;

use crate::exit::Failure;

/// Resolves when the process is asked to end. If the system offers no signals, never.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => return,
                result = tokio::signal::ctrl_c() => if result.is_ok() { return },
            }
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Runs `work` until it ends or the process is asked to; then `work` is dropped and so cleans up.
///
/// # Errors
/// Those of `work`, or [`Failure::Interrupted`] with `remark`.
pub(crate) async fn or_interrupted<T>(
    remark: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        () = interrupted() => Err(Failure::Interrupted(Some(remark.to_owned()))),
    }
}
