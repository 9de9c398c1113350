//! The staging file: where verified chunks wait until the whole file is there (HOST-D6).
//!
//! It lies hidden beside the output, so that the final rename stays within one file system, and its name carries the
//! file's id, so that two files fetched to the same output never mix. It stores no record of what is done: on start each
//! chunk that the file is long enough to hold is hashed against the manifest, and what does not match is missing. A crash
//! at any moment, a tampered file or a stale one can therefore cost a re-fetch but never a wrong byte.
//!
//! All calls block on the disk; callers move them off the async threads.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fs4::FileExt;

use super::error::FetchError;
use crate::content::{FileId, MAX_MANIFEST_BYTES, Manifest};

/// How many hex digits of the id a staging name carries: enough to tell files apart, short enough for any name limit.
const ID_DIGITS: usize = 16;

/// An open, locked staging file.
#[derive(Debug)]
pub(super) struct Staging {
    /// Held locked as long as this value lives; writers and readers share one cursor.
    file: Mutex<File>,
    path: PathBuf,
    manifest_path: PathBuf,
    output: PathBuf,
    overwrite: bool,
}

impl Staging {
    /// Opens or creates the staging file of `output` and locks it against every other fetch.
    ///
    /// # Errors
    /// The caller's: [`FetchError::OutputIsDirectory`], [`FetchError::OutputExists`] (unless `overwrite`),
    /// [`FetchError::OutputBusy`], [`FetchError::Io`] for a missing or forbidden folder.
    pub(super) fn open(output: &Path, id: &FileId, overwrite: bool) -> Result<Self, FetchError> {
        check_output(output, overwrite)?;
        let name = output.file_name().ok_or_else(|| FetchError::OutputIsDirectory { path: output.to_path_buf() })?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", &id.to_string()[..ID_DIGITS]));
        let path = output.with_file_name({
            let mut n = hidden.clone();
            n.push(".peerq-part");
            n
        });
        let manifest_path = output.with_file_name({
            hidden.push(".peerq-manifest");
            hidden
        });
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| FetchError::io("create the staging file", &path, 0, e))?;
        match FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(fs4::TryLockError::WouldBlock) => {
                return Err(FetchError::OutputBusy { path: output.to_path_buf() });
            }
            Err(fs4::TryLockError::Error(e)) => return Err(FetchError::io("lock", &path, 0, e)),
        }
        Ok(Staging { file: Mutex::new(file), path, manifest_path, output: output.to_path_buf(), overwrite })
    }

    /// Path of the staging file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest kept from an earlier attempt, verified again; `None` if there is none or it is not the file's.
    pub(super) fn cached_manifest(&self, id: &FileId) -> Option<Manifest> {
        let mut bytes = Vec::new();
        let file = File::open(&self.manifest_path).ok()?;
        file.take(MAX_MANIFEST_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
        Manifest::decode(&bytes, id).ok()
    }

    /// Keeps the manifest for the next attempt. A crash in between leaves a file that does not verify, which is as good
    /// as none.
    pub(super) fn keep_manifest(&self, manifest: &Manifest) -> Result<(), FetchError> {
        std::fs::write(&self.manifest_path, manifest.encode())
            .map_err(|e| FetchError::io("write", &self.manifest_path, 0, e))
    }

    /// Which chunks of the file are already there, told by their hashes. Reads one chunk at a time; `seen` is called
    /// with the bytes checked so far and returns false to stop early, which ends the check with what was found.
    pub(super) fn present_chunks(
        &self,
        manifest: &Manifest,
        mut seen: impl FnMut(u64) -> bool,
    ) -> Result<Vec<bool>, FetchError> {
        let mut present = vec![false; manifest.chunk_count()];
        let mut file = self.lock();
        let fault = |e| FetchError::io("read", &self.path, 0, e);
        let length = file.metadata().map_err(fault)?.len();
        let mut buffer = Vec::new();
        for (index, present) in present.iter_mut().enumerate() {
            let (Some(offset), Some(chunk)) = (manifest.chunk_offset(index), manifest.chunk_len(index)) else {
                continue;
            };
            let end = offset.saturating_add(chunk);
            if end > length {
                break;
            }
            buffer.resize(usize::try_from(chunk).unwrap_or(usize::MAX), 0);
            file.seek(SeekFrom::Start(offset)).map_err(fault)?;
            file.read_exact(&mut buffer).map_err(fault)?;
            *present = manifest.verify_chunk(index, &buffer).is_ok();
            if !seen(end) {
                break;
            }
        }
        Ok(present)
    }

    /// Refuses to start when the file system says that it has fewer than `needed` bytes left. Where it does not say,
    /// the write itself will.
    pub(super) fn check_space(&self, needed: u64) -> Result<(), FetchError> {
        let folder = match self.path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        match fs4::available_space(folder) {
            Ok(free) if free < needed => Err(FetchError::DiskFull { path: self.output.clone(), needed }),
            _ => Ok(()),
        }
    }

    /// Writes `bytes` at `offset` of the file.
    pub(super) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FetchError> {
        let mut file = self.lock();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.write_all(bytes))
            .map_err(|e| FetchError::io("write", &self.path, bytes.len() as u64, e))
    }

    /// Reads `length` bytes at `offset`; an error if the file is shorter.
    pub(super) fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        buffer.resize(length, 0);
        let mut file = self.lock();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut buffer)?;
        Ok(buffer)
    }

    /// Makes the staging file the output: cut to `total_length`, on disk, then renamed in one step. The caller has
    /// verified every chunk.
    pub(super) fn promote(&self, total_length: u64) -> Result<(), FetchError> {
        {
            let file = self.lock();
            file.set_len(total_length)
                .and_then(|()| file.sync_all())
                .map_err(|e| FetchError::io("write", &self.path, 0, e))?;
        }
        check_output(&self.output, self.overwrite)?;
        if self.overwrite {
            std::fs::rename(&self.path, &self.output)
        } else {
            rename_without_replacing(&self.path, &self.output)
        }
        .map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => FetchError::OutputExists { path: self.output.clone() },
            _ => FetchError::io("move the finished file to", &self.output, 0, e),
        })?;
        // The rename is durable once the folder is; not every platform can sync one, and the data itself is safe.
        if let Some(folder) = self.output.parent() {
            let _ = File::open(folder).and_then(|f| f.sync_all());
        }
        let _ = std::fs::remove_file(&self.manifest_path);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_output(output: &Path, overwrite: bool) -> Result<(), FetchError> {
    match std::fs::metadata(output) {
        Ok(m) if m.is_dir() => Err(FetchError::OutputIsDirectory { path: output.to_path_buf() }),
        Ok(_) if !overwrite => Err(FetchError::OutputExists { path: output.to_path_buf() }),
        _ => Ok(()),
    }
}

/// A hard link fails if the name is taken, where a rename would silently replace a file that appeared meanwhile. File
/// systems without links get the rename; the check just before it is the best they allow.
fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
        Err(_) => std::fs::rename(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 256 * 1024;

    fn data() -> Vec<u8> {
        (0..CHUNK * 2 + 100).map(|i| (i % 251) as u8).collect()
    }

    fn open(dir: &tempfile::TempDir, manifest: &Manifest) -> Staging {
        Staging::open(&dir.path().join("out"), &manifest.id(), false).unwrap()
    }

    #[test]
    fn only_chunks_that_hash_to_the_manifest_count_as_present() {
        let (dir, data) = (tempfile::tempdir().unwrap(), data());
        let manifest = Manifest::of_bytes(&data);
        let staging = open(&dir, &manifest);
        assert_eq!(staging.present_chunks(&manifest, |_| true).unwrap(), [false; 3]);
        staging.write_at(2 * CHUNK as u64, &data[2 * CHUNK..]).unwrap();
        assert_eq!(staging.present_chunks(&manifest, |_| true).unwrap(), [false, false, true]);
        staging.write_at(0, &data[..CHUNK]).unwrap();
        staging.write_at(5, b"bit rot").unwrap();
        assert_eq!(staging.present_chunks(&manifest, |_| true).unwrap(), [false, false, true]);
    }

    #[test]
    fn promotion_cuts_a_leftover_tail_and_cleans_up() {
        let (dir, data) = (tempfile::tempdir().unwrap(), data());
        let manifest = Manifest::of_bytes(&data);
        let staging = open(&dir, &manifest);
        staging.keep_manifest(&manifest).unwrap();
        staging.write_at(0, &data).unwrap();
        staging.write_at(data.len() as u64, b"older and longer").unwrap();
        staging.promote(data.len() as u64).unwrap();
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), data);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing hidden is left behind");
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_replaced() {
        let (dir, data) = (tempfile::tempdir().unwrap(), data());
        let manifest = Manifest::of_bytes(&data);
        let staging = open(&dir, &manifest);
        staging.write_at(0, &data).unwrap();
        std::fs::write(dir.path().join("out"), b"precious").unwrap();
        assert!(matches!(staging.promote(data.len() as u64), Err(FetchError::OutputExists { .. })));
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), b"precious");
    }

    #[test]
    fn a_second_fetch_of_the_same_output_is_refused_while_the_first_lives() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = Manifest::of_bytes(&data());
        let first = open(&dir, &manifest);
        let second = Staging::open(&dir.path().join("out"), &manifest.id(), false);
        assert!(matches!(second, Err(FetchError::OutputBusy { .. })));
        drop(first);
        open(&dir, &manifest);
    }

    #[test]
    fn outputs_that_cannot_be_written_are_named_before_anything_is_fetched() {
        let dir = tempfile::tempdir().unwrap();
        let id = Manifest::of_bytes(b"x").id();
        let is_dir = Staging::open(dir.path(), &id, true);
        assert!(matches!(is_dir, Err(FetchError::OutputIsDirectory { .. })));
        std::fs::write(dir.path().join("taken"), b"").unwrap();
        let taken = Staging::open(&dir.path().join("taken"), &id, false);
        assert!(matches!(taken, Err(FetchError::OutputExists { .. })));
        let nowhere = Staging::open(&dir.path().join("no/such/folder"), &id, false);
        assert!(matches!(nowhere, Err(FetchError::Io { .. })));
    }

    #[test]
    fn a_kept_manifest_is_verified_again_when_read() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = Manifest::of_bytes(&data());
        let staging = open(&dir, &manifest);
        assert!(staging.cached_manifest(&manifest.id()).is_none());
        staging.keep_manifest(&manifest).unwrap();
        assert!(staging.cached_manifest(&manifest.id()).is_some());
        staging.keep_manifest(&Manifest::of_bytes(b"another file")).unwrap();
        assert!(staging.cached_manifest(&manifest.id()).is_none());
    }

    #[test]
    fn a_file_larger_than_the_disk_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let staging = open(&dir, &Manifest::of_bytes(b"x"));
        assert!(matches!(staging.check_space(u64::MAX), Err(FetchError::DiskFull { needed: u64::MAX, .. })));
        assert!(staging.check_space(0).is_ok());
    }
}
