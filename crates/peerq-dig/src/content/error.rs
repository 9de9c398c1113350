//! Why bytes from the network are not what they were asked for, told apart by what the sender did.

use super::FileId;

/// Why bytes are not the manifest of the expected file. The fault is the sender's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The bytes are too long or too short for what they say.
    #[error("the sender's manifest has {actual} bytes where {expected} belong")]
    Length {
        /// The length that belongs to the header; for a broken header, the shortest or longest length there is.
        expected: usize,
        /// The length of the bytes.
        actual: usize,
    },
    /// The bytes do not start like a manifest.
    #[error("the sender's manifest is none, or of a version this program does not know")]
    Magic,
    /// The chunk size is not the one that belongs to the length, or the length is beyond [`MAX_FILE_BYTES`](super::MAX_FILE_BYTES).
    #[error("the sender's manifest has chunks of {chunk_size} bytes for a file of {total_length} bytes")]
    Layout {
        /// The file length the manifest claims, bytes.
        total_length: u64,
        /// The chunk size it claims, bytes.
        chunk_size: u32,
    },
    /// The manifest is well formed and belongs to another file.
    #[error("the sender's manifest belongs to {found}, not to {expected}")]
    WrongFile {
        /// The id asked for.
        expected: FileId,
        /// The id of what came.
        found: FileId,
    },
}

/// Why bytes are not the chunk they were sent as. The fault is the sender's, except for [`ChunkError::NoSuchChunk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The file has no chunk of this index; the caller's fault.
    #[error("the file has no chunk {index}")]
    NoSuchChunk {
        /// The index asked for.
        index: usize,
    },
    /// Too few bytes (a transfer that broke off looks so) or too many.
    #[error("chunk {index} has {actual} bytes where {expected} belong")]
    Length {
        /// The chunk's index.
        index: usize,
        /// Its length, bytes.
        expected: u64,
        /// The bytes there are.
        actual: u64,
    },
    /// The right number of wrong bytes.
    #[error("chunk {index} does not have the hash its manifest gives it")]
    Hash {
        /// The chunk's index.
        index: usize,
    },
}
