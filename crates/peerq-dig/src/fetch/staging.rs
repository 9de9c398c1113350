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
        let file = open_locked(&path).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => FetchError::OutputBusy { path: output.to_path_buf() },
            _ => FetchError::io("create the staging file", &path, 0, e),
        })?;
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
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.write_all(bytes)).map_err(|e| {
            match FetchError::io("write", &self.path, bytes.len() as u64, e) {
                FetchError::DiskFull { needed, .. } => FetchError::DiskFull { path: self.output.clone(), needed },
                other => other,
            }
        })
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

/// A staging file that never got a byte is of no use to a later attempt. Removed while it is still locked.
impl Drop for Staging {
    fn drop(&mut self) {
        if self.lock().metadata().is_ok_and(|m| m.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
            let _ = std::fs::remove_file(&self.manifest_path);
        }
    }
}

/// Opens and locks the file at `path`, which another fetch may be removing: then its lock is that of a file without a
/// name, and the next try makes a new one. `WouldBlock` if another fetch holds the lock.
fn open_locked(path: &Path) -> io::Result<File> {
    const TRIES: usize = 4;
    for _ in 0..TRIES {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match FileExt::try_lock(&file) {
            Ok(()) if path.exists() => return Ok(file),
            Ok(()) => {}
            Err(fs4::TryLockError::WouldBlock) => break,
            Err(fs4::TryLockError::Error(e)) => return Err(e),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
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
mod tests;
