//! The file that a swarm distributes, and the hash that every download is compared with.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::world;
use crate::exit::Failure;

const BLOCK: usize = 1 << 20;

/// The source file and its SHA-256.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) sha256: [u8; 32],
}

impl Source {
    /// The user's own file.
    ///
    /// # Errors
    /// [`Failure::Io`] that names the file.
    pub(crate) async fn existing(path: PathBuf) -> Result<Self, Failure> {
        let hashed = path.clone();
        let sha256 = blocking(move || sha256(&hashed))
            .await
            .map_err(|error| Failure::Io(format!("cannot read {}: {error}", path.display())))?;
        Ok(Self { path, sha256 })
    }

    /// A file of `size` bytes made from the seed, in `folder`.
    ///
    /// # Errors
    /// [`Failure::Io`], for instance when the disk is full.
    pub(crate) async fn made(folder: &Path, size: u64, seed: u64) -> Result<Self, Failure> {
        let path = folder.join("source.bin");
        let target = path.clone();
        let sha256 = blocking(move || make(&target, size, seed))
            .await
            .map_err(|error| Failure::Io(format!("cannot write {size} bytes to {}: {error}", path.display())))?;
        Ok(Self { path, sha256 })
    }

    /// Whether the file at `path` is the source's equal. A missing or unreadable file is not.
    pub(crate) async fn matches(&self, path: &Path) -> bool {
        let path = path.to_path_buf();
        blocking(move || sha256(&path)).await.is_ok_and(|hash| hash == self.sha256)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn make(path: &Path, size: u64, seed: u64) -> io::Result<[u8; 32]> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut fill = world::file_bytes(seed);
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    let mut left = size;
    while left > 0 {
        let part = &mut block[..left.min(BLOCK as u64) as usize];
        fill(part);
        hash.update(&*part);
        file.write_all(part)?;
        left -= part.len() as u64;
    }
    file.flush()?;
    Ok(hash.finalize().into())
}

fn sha256(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hash.finalize().into()),
            read => hash.update(&block[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_made_file_has_its_size_and_matches_only_its_equal() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let size = BLOCK as u64 + 17;
        let source = Source::made(folder.path(), size, 7).await.expect("made");
        assert_eq!(std::fs::metadata(&source.path).expect("there").len(), size);
        assert!(source.matches(&source.path).await);
        let other = folder.path().join("other");
        std::fs::write(&other, b"something else").expect("written");
        assert!(!source.matches(&other).await);
        assert!(!source.matches(&folder.path().join("missing")).await);
    }
}
