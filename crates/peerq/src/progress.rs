//! Progress on stderr, on a terminal only.
//!
//! indicatif draws nothing when stderr is no terminal, so callers need not ask.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// A bar that counts bytes, with a text beside it. An unknown `total` counts as 0 until
/// [`ProgressBar::set_length`] says more.
pub(crate) fn bytes(total: u64) -> ProgressBar {
    bar(total, "{prefix}[{bar:30}] {binary_bytes}/{binary_total_bytes} {wide_msg}")
}

/// A spinner with a text beside it, for work whose length is unknown.
pub(crate) fn spinner(message: impl Into<String>) -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        spinner.set_style(style.tick_chars("-\\|/ "));
    }
    spinner.set_message(message.into());
    spinner.enable_steady_tick(TICK);
    spinner
}

/// A bar over simulated runs.
pub(crate) fn runs(total: u64) -> ProgressBar {
    bar(total, "[{bar:30}] {pos}/{len} runs {wide_msg}")
}

fn bar(total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
