//! The manifest: a file's length, chunk size and chunk hashes (HOST-D3).
//!
//! The one idea: the chunk size is a function of the length, so that one file has exactly one manifest and one id, and a
//! manifest from the network is accepted only if it hashes to the id the user asked for.
//!
//! Encoding, all numbers big-endian: `"peerqmf1" | total_length u64 | chunk_size u32 | leaf hash (32 bytes) …`. The number
//! of leaves is not sent; it follows from the two numbers and has to match the bytes that are there.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::FileId;
use super::error::{ChunkError, ManifestError};
use super::merkle::{self, LeafHasher};

/// The smallest chunk size, bytes. Smaller: more requests and hashes per byte. Larger: small files lose parallelism, and
/// more bytes are lost with each failed chunk. Unmeasured heuristic.
pub const MIN_CHUNK_BYTES: u32 = 256 * 1024;
/// The most chunks a file has. Larger: longer manifests before the first byte. Smaller: larger chunks, hence more memory
/// per chunk in flight. Unmeasured heuristic.
pub const MAX_CHUNKS: usize = 8192;
/// The largest chunk size, bytes; `u32` holds it.
const MAX_CHUNK_BYTES: u64 = 1 << 31;
/// The longest file that has an id, bytes (16 TiB).
pub const MAX_FILE_BYTES: u64 = MAX_CHUNK_BYTES * MAX_CHUNKS as u64;
/// The longest encoding of a manifest, bytes: what a reader may have to buffer before it knows anything.
pub const MAX_MANIFEST_BYTES: usize = HEADER_BYTES + MAX_CHUNKS * 32;

const MAGIC: &[u8; 8] = b"peerqmf1";
const HEADER_BYTES: usize = 8 + 8 + 4;
/// Sets ids apart from every other hash.
const ID_DOMAIN: &[u8] = b"peerq/1/file-id";
/// How much of a file is read at a time, bytes.
const READ_BYTES: usize = 256 * 1024;

/// A file's length, chunk size and chunk hashes.
///
/// Size in memory: at most [`MAX_CHUNKS`] × 32 bytes.
///
/// ```
/// use peerq_dig::content::{FileId, Manifest};
///
/// let manifest = Manifest::of_bytes(b"hello");
/// let bytes = manifest.encode();
/// assert_eq!(Manifest::decode(&bytes, &manifest.id()), Ok(manifest));
/// assert!(Manifest::decode(&bytes, &FileId::from_bytes([0; 32])).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    total_length: u64,
    chunk_size: u32,
    leaves: Vec<[u8; 32]>,
}

impl Manifest {
    /// The manifest of the file at `path`, read once from start to end in bounded memory. Blocks.
    ///
    /// # Errors
    /// Those of reading; `InvalidData` if the file changes its length meanwhile; `InvalidInput` for a directory or a file
    /// beyond [`MAX_FILE_BYTES`].
    pub fn of_file(path: impl AsRef<Path>) -> io::Result<Manifest> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Manifest::of_reader(&mut file, metadata.len())
    }

    /// The manifest of `bytes`, which are shorter than [`MAX_FILE_BYTES`] because they are in memory.
    pub fn of_bytes(bytes: &[u8]) -> Manifest {
        let total_length = bytes.len() as u64;
        // A slice beyond 16 TiB does not exist on any machine this runs on; the largest chunk size keeps it defined.
        let chunk_size = chunk_size_for(total_length).unwrap_or(MAX_CHUNK_BYTES as u32);
        let leaves = bytes.chunks(chunk_size as usize).map(merkle::leaf).collect();
        Manifest { total_length, chunk_size, leaves }
    }

    fn of_reader(reader: &mut impl Read, total_length: u64) -> io::Result<Manifest> {
        let chunk_size = chunk_size_for(total_length)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "files beyond 16 TiB have no id"))?;
        let changed = || io::Error::new(io::ErrorKind::InvalidData, "the file changed while it was read; try again");
        let mut manifest = Manifest { total_length, chunk_size, leaves: Vec::new() };
        let mut buffer = vec![0; READ_BYTES];
        let mut index = 0;
        while let Some(length) = manifest.chunk_len_of_layout(index) {
            let mut hasher = LeafHasher::new();
            let mut left = length;
            while left > 0 {
                let piece = &mut buffer[..left.min(READ_BYTES as u64) as usize];
                reader.read_exact(piece).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => changed(),
                    _ => error,
                })?;
                hasher.update(piece);
                left -= piece.len() as u64;
            }
            manifest.leaves.push(hasher.finish());
            index += 1;
        }
        if reader.read(&mut buffer[..1])? != 0 {
            return Err(changed());
        }
        Ok(manifest)
    }

    /// The id of the file: SHA-256 over a domain tag, the length, the chunk size and the Merkle root of the chunks.
    pub fn id(&self) -> FileId {
        let mut hasher = Sha256::new_with_prefix(ID_DOMAIN);
        hasher.update(self.total_length.to_be_bytes());
        hasher.update(self.chunk_size.to_be_bytes());
        hasher.update(merkle::root(&self.leaves));
        FileId(hasher.finalize().into())
    }

    /// The bytes that [`Manifest::decode`] reads; at most [`MAX_MANIFEST_BYTES`].
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.leaves.len() * 32);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.total_length.to_be_bytes());
        bytes.extend_from_slice(&self.chunk_size.to_be_bytes());
        bytes.extend_from_slice(self.leaves.as_flattened());
        bytes
    }

    /// Reads a manifest that came from anywhere, and accepts it only if it is that of `expected`.
    ///
    /// # Errors
    /// A [`ManifestError`], which is the sender's fault. Allocates nothing before the lengths agree.
    pub fn decode(bytes: &[u8], expected: &FileId) -> Result<Manifest, ManifestError> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(ManifestError::Length { expected: MAX_MANIFEST_BYTES, actual: bytes.len() });
        }
        let (magic, rest) = split::<8>(bytes)?;
        let (total_length, rest) = split::<8>(rest)?;
        let (chunk_size, rest) = split::<4>(rest)?;
        if magic != MAGIC {
            return Err(ManifestError::Magic);
        }
        let (total_length, chunk_size) = (u64::from_be_bytes(*total_length), u32::from_be_bytes(*chunk_size));
        if chunk_size_for(total_length) != Some(chunk_size) {
            return Err(ManifestError::Layout { total_length, chunk_size });
        }
        let chunks = total_length.div_ceil(u64::from(chunk_size)) as usize; // ≤ MAX_CHUNKS, by the check above
        let (leaves, odd) = rest.as_chunks::<32>();
        if leaves.len() != chunks || !odd.is_empty() {
            return Err(ManifestError::Length { expected: HEADER_BYTES + chunks * 32, actual: bytes.len() });
        }
        let manifest = Manifest { total_length, chunk_size, leaves: leaves.to_vec() };
        match manifest.id() {
            found if found == *expected => Ok(manifest),
            found => Err(ManifestError::WrongFile { expected: *expected, found }),
        }
    }

    /// Length of the file, bytes.
    pub fn total_length(&self) -> u64 {
        self.total_length
    }

    /// Length of every chunk but the last, bytes.
    pub fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// The chunk hashes, in order.
    pub fn leaves(&self) -> &[[u8; 32]] {
        &self.leaves
    }

    /// Number of chunks; 0 for an empty file, never more than [`MAX_CHUNKS`].
    pub fn chunk_count(&self) -> usize {
        self.leaves.len()
    }

    /// Length of chunk `index`, bytes, or `None` if there is none.
    pub fn chunk_len(&self, index: usize) -> Option<u64> {
        (index < self.leaves.len()).then(|| self.chunk_len_of_layout(index)).flatten()
    }

    /// Where chunk `index` starts in the file, bytes, or `None` if there is none.
    pub fn chunk_offset(&self, index: usize) -> Option<u64> {
        (index < self.leaves.len()).then(|| index as u64 * u64::from(self.chunk_size))
    }

    /// The lengths of all chunks, in order, bytes.
    pub fn chunk_lens(&self) -> Vec<u64> {
        (0..self.chunk_count()).filter_map(|index| self.chunk_len(index)).collect()
    }

    /// Says whether `bytes` are chunk `index` of the file.
    ///
    /// # Errors
    /// A [`ChunkError`] that tells a short transfer from wrong bytes.
    pub fn verify_chunk(&self, index: usize, bytes: &[u8]) -> Result<(), ChunkError> {
        let expected = self.chunk_len(index).ok_or(ChunkError::NoSuchChunk { index })?;
        let actual = bytes.len() as u64;
        if actual != expected {
            return Err(ChunkError::Length { index, expected, actual });
        }
        match merkle::leaf(bytes) == self.leaves[index] {
            true => Ok(()),
            false => Err(ChunkError::Hash { index }),
        }
    }

    /// Length of chunk `index` by length and chunk size alone.
    fn chunk_len_of_layout(&self, index: usize) -> Option<u64> {
        let offset = (index as u64).checked_mul(u64::from(self.chunk_size))?;
        let left = self.total_length.checked_sub(offset)?;
        (left > 0).then(|| left.min(u64::from(self.chunk_size)))
    }
}

/// The chunk size for a file of `total_length` bytes: the smallest power of two from [`MIN_CHUNK_BYTES`] that keeps the
/// chunks at or below [`MAX_CHUNKS`]; `None` beyond [`MAX_FILE_BYTES`].
fn chunk_size_for(total_length: u64) -> Option<u32> {
    if total_length > MAX_FILE_BYTES {
        return None;
    }
    let needed = total_length.div_ceil(MAX_CHUNKS as u64).next_power_of_two();
    u32::try_from(needed.max(u64::from(MIN_CHUNK_BYTES))).ok()
}

fn split<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), ManifestError> {
    bytes.split_first_chunk().ok_or(ManifestError::Length { expected: HEADER_BYTES, actual: bytes.len() })
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
