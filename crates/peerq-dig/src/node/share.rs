//! The files a node serves (HOST-D4).
//!
//! The one idea: a share is an open file and its manifest. Reads are positioned, so any number of answers read the same
//! file at once, each holding no more than the piece it sends.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dig_nat::mux::{AvailabilityAnswer, AvailabilityItem};

use crate::content::{FileId, Manifest, Resource};

/// One file and what is known of it.
pub(super) struct Share {
    pub(super) manifest: Arc<Manifest>,
    /// The text form of the file's id.
    pub(super) root: String,
    encoded: Vec<u8>,
    chunk_lens: Vec<u64>,
    file: File,
}

/// All files of a node, by id.
pub(super) type Shares = HashMap<FileId, Arc<Share>>;

/// A file to serve, as the caller names it.
pub(super) struct Offer {
    pub(super) path: PathBuf,
    /// Made from the file if there is none.
    pub(super) manifest: Option<Arc<Manifest>>,
}

impl Offer {
    /// Opens the file and, if need be, hashes it. Blocks.
    pub(super) fn open(&self) -> io::Result<(FileId, Arc<Share>)> {
        let manifest = match &self.manifest {
            Some(manifest) => Arc::clone(manifest),
            None => Arc::new(Manifest::of_file(&self.path)?),
        };
        let file = open_of_length(&self.path, manifest.total_length())?;
        let id = manifest.id();
        let share = Share {
            root: id.to_string(),
            encoded: manifest.encode(),
            chunk_lens: manifest.chunk_lens(),
            manifest,
            file,
        };
        Ok((id, Arc::new(share)))
    }
}

fn open_of_length(path: &Path, length: u64) -> io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.len() {
        actual if actual == length => Ok(file),
        actual => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the file has {actual} bytes, its manifest says {length}"),
        )),
    }
}

impl Share {
    /// Length of one of the share's resources, bytes.
    pub(super) fn length(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Content => self.manifest.total_length(),
            Resource::Manifest => self.encoded.len() as u64,
        }
    }

    /// The chunk lengths of one of the share's resources; a manifest is a single chunk.
    pub(super) fn layout(&self, resource: Resource) -> Vec<u64> {
        match resource {
            Resource::Content => self.chunk_lens.clone(),
            Resource::Manifest => vec![self.encoded.len() as u64],
        }
    }

    /// The number of chunks of one of the share's resources.
    pub(super) fn chunk_count(&self, resource: Resource) -> usize {
        match resource {
            Resource::Content => self.manifest.chunk_count(),
            Resource::Manifest => 1,
        }
    }

    /// The chunk of a resource that starts at `offset`, if one does.
    pub(super) fn chunk_at(&self, resource: Resource, offset: u64) -> Option<u64> {
        let chunk_size = match resource {
            Resource::Content => u64::from(self.manifest.chunk_size()),
            Resource::Manifest => u64::MAX,
        };
        offset.is_multiple_of(chunk_size).then_some(offset / chunk_size)
    }

    /// Fills `buffer` from `offset` of a resource. Blocks.
    ///
    /// # Errors
    /// Those of reading; `UnexpectedEof` for a file that became shorter than it was.
    pub(super) fn read(&self, resource: Resource, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match resource {
            Resource::Content => read_exact_at(&self.file, buffer, offset),
            Resource::Manifest => {
                let start = usize::try_from(offset).map_err(io::Error::other)?;
                let source = start.checked_add(buffer.len()).and_then(|end| self.encoded.get(start..end));
                buffer.copy_from_slice(source.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

/// What a node with `shares` answers about `item`.
pub(super) fn availability(shares: &Shares, item: &AvailabilityItem) -> AvailabilityAnswer {
    let (store, root) = (item.store_id.as_str(), item.root.as_deref());
    let named = match item.retrieval_key.as_deref() {
        Some(key) => FileId::of_wire(store, root, Some(key)),
        None => FileId::of_wire_root(store, root).map(|id| (id, Resource::Content)),
    };
    match named.and_then(|(id, resource)| shares.get(&id).map(|share| (share, resource))) {
        Some((share, resource)) => AvailabilityAnswer::available()
            .with_total_length(share.length(resource))
            .with_chunk_count(share.chunk_count(resource) as u64)
            .with_complete(true),
        None => AvailabilityAnswer::unavailable(),
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                buffer = &mut buffer[length..];
                offset += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
