//! The engine's `Sink` over the staging file (HOST-D3, HOST-D6).
//!
//! The engine speaks of the virtual resource of missing chunks; this sink answers in the same terms and puts the bytes at
//! their real place. The engine promotes only after it has proven, through `truncate` and `read_at`, that the staged
//! length is the verified one. Those answers must be true of the chunks written by this download: a span counts as staged
//! only if every chunk under it was written here, and is then read from the very file that is promoted.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dig_download::{DownloadError, Sink};

use super::error::FetchError;
use super::layout::MissingLayout;
use super::staging::Staging;

/// Writes the chunks of one download; remembers the first disk fault in full, which the engine carries only as text.
pub(super) struct StagingSink {
    staging: Arc<Staging>,
    layout: Arc<MissingLayout>,
    written: Mutex<Vec<bool>>,
    fault: Mutex<Option<FetchError>>,
}

impl StagingSink {
    pub(super) fn new(staging: Arc<Staging>, layout: Arc<MissingLayout>) -> Self {
        let written = Mutex::new(vec![false; layout.range_count()]);
        StagingSink { staging, layout, written, fault: Mutex::new(None) }
    }

    /// The disk fault that ended the download, if one did.
    pub(super) fn take_fault(&self) -> Option<FetchError> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Chunks not yet written.
    pub(super) fn missing(&self) -> usize {
        self.written().iter().filter(|w| !**w).count()
    }

    /// Chunks of the whole file.
    pub(super) fn chunks(&self) -> usize {
        self.layout.manifest().chunk_count()
    }

    fn written(&self) -> std::sync::MutexGuard<'_, Vec<bool>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, fault: FetchError) -> DownloadError {
        let text = fault.to_string();
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        DownloadError::sink(text)
    }

    /// Bytes the disk still has to take.
    fn needed(&self) -> u64 {
        let written = self.written();
        (0..written.len()).filter(|r| !written[*r]).filter_map(|r| self.layout.chunk(r)).map(|c| c.length).sum()
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, DownloadError> {
    tokio::task::spawn_blocking(work).await.map_err(|e| DownloadError::sink(format!("disk task ended: {e}")))
}

#[async_trait]
impl Sink for StagingSink {
    async fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DownloadError> {
        let range = self
            .layout
            .range_at(offset, bytes.len() as u64)
            .ok_or_else(|| DownloadError::sink("write outside the chunk layout"))?;
        let chunk = self.layout.chunk(range).ok_or_else(|| DownloadError::sink("no such chunk"))?;
        let (staging, bytes) = (self.staging.clone(), bytes.to_vec());
        match blocking(move || staging.write_at(chunk.offset, &bytes)).await? {
            Ok(()) => {
                self.written()[range] = true;
                Ok(())
            }
            Err(FetchError::DiskFull { path, .. }) => {
                let needed = self.needed();
                Err(self.keep(FetchError::DiskFull { path, needed }))
            }
            Err(fault) => Err(self.keep(fault)),
        }
    }

    async fn finalize(&self) -> Result<(), DownloadError> {
        if self.missing() > 0 {
            return Err(DownloadError::sink("not every chunk has been written"));
        }
        let (staging, total) = (self.staging.clone(), self.layout.manifest().total_length());
        blocking(move || staging.promote(total)).await?.map_err(|fault| self.keep(fault))
    }

    async fn truncate(&self, len: u64) -> Result<(), DownloadError> {
        // Bytes of a forgotten chunk stay in the file, where the next start judges them by their hash.
        for (range, written) in self.written().iter_mut().enumerate() {
            *written &= self.layout.range_end(range).is_some_and(|end| end <= len);
        }
        Ok(())
    }

    fn supports_read_back(&self) -> bool {
        true
    }

    async fn read_at(&self, offset: u64, len: u64) -> Result<Vec<u8>, DownloadError> {
        let spans = self.layout.spans(offset, len).ok_or_else(|| DownloadError::sink("nothing is staged there"))?;
        if spans.iter().any(|(range, _, _)| !self.written()[*range]) {
            return Err(DownloadError::sink("that chunk has not been written"));
        }
        let staging = self.staging.clone();
        blocking(move || {
            let mut bytes = Vec::new();
            for (_, at, length) in spans {
                let length = usize::try_from(length).map_err(|_| std::io::ErrorKind::InvalidInput)?;
                bytes.extend(staging.read_at(at, length)?);
            }
            Ok::<_, std::io::Error>(bytes)
        })
        .await?
        .map_err(|e| DownloadError::sink(format!("read back: {e}")))
    }

    fn staging_path(&self) -> Option<&Path> {
        Some(self.staging.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Manifest;

    const CHUNK: usize = 256 * 1024;

    struct Bench {
        dir: tempfile::TempDir,
        data: Vec<u8>,
        sink: StagingSink,
    }

    /// Chunk 1 of three is already in the staging file.
    fn bench() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let data: Vec<u8> = (0..CHUNK * 2 + 100).map(|i| (i % 253) as u8).collect();
        let manifest = Arc::new(Manifest::of_bytes(&data));
        let staging = Arc::new(Staging::open(&dir.path().join("out"), &manifest.id(), false).unwrap());
        staging.write_at(CHUNK as u64, &data[CHUNK..2 * CHUNK]).unwrap();
        let layout = Arc::new(MissingLayout::new(manifest, &[false, true, false]));
        Bench { dir, data, sink: StagingSink::new(staging, layout) }
    }

    #[tokio::test]
    async fn chunks_land_at_their_real_offsets_and_the_file_is_promoted_whole() {
        let Bench { dir, data, sink } = bench();
        sink.write_at(CHUNK as u64, &data[2 * CHUNK..]).await.unwrap();
        sink.write_at(0, &data[..CHUNK]).await.unwrap();
        sink.finalize().await.unwrap();
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), data);
    }

    #[tokio::test]
    async fn a_download_that_lacks_a_chunk_is_not_promoted() {
        let Bench { dir, data, sink } = bench();
        sink.write_at(0, &data[..CHUNK]).await.unwrap();
        assert!(sink.finalize().await.is_err());
        assert!(!dir.path().join("out").exists());
    }

    #[tokio::test]
    async fn read_back_is_true_of_what_this_download_wrote() {
        let Bench { data, sink, dir: _dir } = bench();
        let total = (CHUNK + 100) as u64;
        assert!(sink.read_at(0, 1).await.is_err(), "not written yet");
        sink.write_at(0, &data[..CHUNK]).await.unwrap();
        sink.write_at(CHUNK as u64, &data[2 * CHUNK..]).await.unwrap();
        let crossing = sink.read_at(CHUNK as u64 - 1, 2).await.unwrap();
        assert_eq!(crossing, [data[CHUNK - 1], data[2 * CHUNK]]);
        assert!(sink.read_at(total - 1, 1).await.is_ok());
        assert!(sink.read_at(total, 1).await.is_err(), "past the end");
        sink.truncate(total).await.unwrap();
        assert!(sink.read_at(0, total).await.is_ok(), "cutting at the end changes nothing");
        sink.truncate(0).await.unwrap();
        assert!(sink.read_at(0, 1).await.is_err());
        assert_eq!(sink.missing(), 2);
    }

    #[tokio::test]
    async fn a_write_that_is_no_chunk_is_refused() {
        let Bench { data, sink, dir: _dir } = bench();
        assert!(sink.write_at(1, &data[..CHUNK]).await.is_err());
        assert!(sink.write_at(0, &data[..CHUNK - 1]).await.is_err());
    }
}
