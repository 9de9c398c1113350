//! A `StateStore` that only seeds the engine with a layout that is already verified (HOST-D3).
//!
//! dig-download learns a resource's layout from the first holder that answers, unless its state store already knows it.
//! The manifest has been verified against the file's id by then, so the store hands that layout over and no holder
//! shapes anything. What is done is not stored: a resume derives it from the staging file, chunk by chunk, because only
//! bytes that hash to the manifest prove themselves.

use async_trait::async_trait;
use dig_download::{DownloadError, DownloadState, StateStore};

/// Seeds one download; later checkpoints are dropped on purpose.
pub(super) struct SeededState {
    seed: DownloadState,
}

impl SeededState {
    /// The state of a resource made of `chunk_lens`, under the content root `root_hex`, none of it done.
    pub(super) fn new(key: String, root_hex: String, chunk_lens: Vec<u64>) -> Self {
        let mut seed = DownloadState::new(key);
        seed.total_length = chunk_lens.iter().sum();
        seed.chunk_lens = chunk_lens;
        seed.root = Some(root_hex);
        SeededState { seed }
    }
}

#[async_trait]
impl StateStore for SeededState {
    async fn load(&self, key: &str) -> Result<Option<DownloadState>, DownloadError> {
        Ok((key == self.seed.key).then(|| self.seed.clone()))
    }

    async fn save(&self, _state: &DownloadState) -> Result<(), DownloadError> {
        Ok(())
    }

    async fn clear(&self, _key: &str) -> Result<(), DownloadError> {
        Ok(())
    }
}
