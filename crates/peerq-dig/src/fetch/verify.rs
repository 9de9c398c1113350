//! The engine's `Verifier`: a range is one chunk, and a chunk hashes to its leaf in the manifest (HOST-D3).
//!
//! Chunks are hashed where they arrive, in the transport's own task, because there the sender is known and blame costs
//! nothing. This second gate sits on the engine's task: it takes the transport's mark that exactly this range was proven,
//! and hashes the bytes itself if the mark is missing, so that no path into the file avoids the hash.
//!
//! The engine's whole-resource check stays off. It would hash a virtual resource that means nothing, it keeps every range
//! that arrives out of order in memory, and its failure blames nobody; the manifest has already bound every chunk.

use std::sync::Arc;

use dig_download::{ResourceCommitment, Verifier, VerifyError};

use super::ledger::Ledger;

pub(super) struct ChunkVerifier {
    ledger: Arc<Ledger>,
}

impl ChunkVerifier {
    pub(super) fn new(ledger: Arc<Ledger>) -> Self {
        ChunkVerifier { ledger }
    }
}

impl Verifier for ChunkVerifier {
    fn verify_range(
        &self,
        _commitment: &ResourceCommitment,
        first_chunk: u64,
        expected_len: u64,
        bytes: &[u8],
    ) -> Result<(), VerifyError> {
        let actual = bytes.len() as u64;
        if actual != expected_len {
            return Err(VerifyError::Length { expected: expected_len, actual });
        }
        let layout = self.ledger.layout();
        let range = usize::try_from(first_chunk).ok();
        let (range, chunk) = range
            .and_then(|r| Some((r, layout.chunk(r)?)))
            .ok_or_else(|| VerifyError::Alignment(format!("no chunk {first_chunk}")))?;
        if chunk.length != actual {
            return Err(VerifyError::Length { expected: chunk.length, actual });
        }
        if self.ledger.take_proven(range) {
            return Ok(());
        }
        layout.manifest().verify_chunk(chunk.index, bytes).map_err(|_| VerifyError::Root)
    }

    fn verify_resource(&self, _commitment: &ResourceCommitment, _full: &[u8]) -> Result<(), VerifyError> {
        Err(VerifyError::MissingMetadata("chunks are verified one by one; there is no whole-resource hash".into()))
    }

    fn verify_resource_leaf(
        &self,
        _commitment: &ResourceCommitment,
        _leaf: &[u8; 32],
        _assembled_len: u64,
    ) -> Result<(), VerifyError> {
        Err(VerifyError::MissingMetadata("chunks are verified one by one; there is no whole-resource hash".into()))
    }
}
