//! The missing chunks as one gapless virtual resource (HOST-D6).
//!
//! dig-download plans over a whole resource. A resumed fetch wants only some of its chunks, so the engine is shown a
//! resource that consists of exactly those, one after the other: range `r` of the engine is the `r`-th missing chunk.
//! This file is the only place that translates between the two coordinate systems.

use std::sync::Arc;

use crate::content::Manifest;

/// The window to give dig-download's planner: a range holds whole chunks up to the window and at least one, so with one
/// byte every range is exactly one chunk, which is the unit that can be verified and blamed.
pub(super) const ONE_CHUNK_PER_RANGE: u64 = 1;

/// One range of the engine and the chunk that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Index of the chunk in the file.
    pub(super) index: usize,
    /// Offset of the chunk in the file, in bytes.
    pub(super) offset: u64,
    /// Length of the chunk, in bytes.
    pub(super) length: u64,
}

/// Translates between the engine's virtual resource and the real file. Holds one entry per missing chunk.
#[derive(Debug)]
pub(super) struct MissingLayout {
    manifest: Arc<Manifest>,
    chunks: Vec<Chunk>,
    /// Virtual offset of each range, and the virtual end.
    starts: Vec<u64>,
}

impl MissingLayout {
    /// The layout of the chunks for which `present` is false. `present` shorter than the manifest counts as missing.
    pub(super) fn new(manifest: Arc<Manifest>, present: &[bool]) -> Self {
        let mut chunks = Vec::new();
        let mut starts = vec![0];
        let mut end: u64 = 0;
        for index in 0..manifest.chunk_count() {
            if present.get(index).copied().unwrap_or(false) {
                continue;
            }
            let (Some(offset), Some(length)) = (manifest.chunk_offset(index), manifest.chunk_len(index)) else {
                continue;
            };
            chunks.push(Chunk { index, offset, length });
            end = end.saturating_add(length);
            starts.push(end);
        }
        MissingLayout { manifest, chunks, starts }
    }

    pub(super) fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Number of ranges, which is the number of missing chunks.
    pub(super) fn range_count(&self) -> usize {
        self.chunks.len()
    }

    /// Length of the virtual resource: the bytes still missing.
    pub(super) fn total(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    pub(super) fn chunk_lens(&self) -> Vec<u64> {
        self.chunks.iter().map(|c| c.length).collect()
    }

    /// The chunk behind `range`.
    pub(super) fn chunk(&self, range: usize) -> Option<Chunk> {
        self.chunks.get(range).copied()
    }

    /// Virtual end of `range`.
    pub(super) fn range_end(&self, range: usize) -> Option<u64> {
        self.starts.get(range.checked_add(1)?).copied()
    }

    /// The range that starts exactly at `offset` and is exactly `length` long, in virtual bytes.
    pub(super) fn range_at(&self, offset: u64, length: u64) -> Option<usize> {
        let range = self.starts.binary_search(&offset).ok()?;
        (self.chunks.get(range)?.length == length).then_some(range)
    }

    /// The pieces of the real file, as (real offset, length), that the virtual span covers; `None` if any part of it is
    /// outside the virtual resource.
    pub(super) fn spans(&self, offset: u64, length: u64) -> Option<Vec<(usize, u64, u64)>> {
        let end = offset.checked_add(length)?;
        if end > self.total() {
            return None;
        }
        let mut spans = Vec::new();
        let mut at = offset;
        let mut range = self.starts.partition_point(|s| *s <= at).saturating_sub(1);
        while at < end {
            let chunk = self.chunk(range)?;
            let inside = at - self.starts[range];
            let take = (chunk.length - inside).min(end - at);
            spans.push((range, chunk.offset + inside, take));
            at += take;
            range += 1;
        }
        Some(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(present: &[bool]) -> MissingLayout {
        let bytes = vec![7u8; 256 * 1024 * 3 + 10];
        MissingLayout::new(Arc::new(Manifest::of_bytes(&bytes)), present)
    }

    const CHUNK: u64 = 256 * 1024;

    #[test]
    fn only_missing_chunks_are_part_of_the_virtual_resource() {
        let l = layout(&[true, false, true, false]);
        assert_eq!(l.range_count(), 2);
        assert_eq!(l.total(), CHUNK + 10);
        assert_eq!(l.chunk(0), Some(Chunk { index: 1, offset: CHUNK, length: CHUNK }));
        assert_eq!(l.chunk(1), Some(Chunk { index: 3, offset: 3 * CHUNK, length: 10 }));
        assert_eq!(l.chunk(2), None);
    }

    #[test]
    fn a_range_is_found_only_by_its_exact_bounds() {
        let l = layout(&[true, false, true, false]);
        assert_eq!(l.range_at(0, CHUNK), Some(0));
        assert_eq!(l.range_at(CHUNK, 10), Some(1));
        assert_eq!(l.range_at(CHUNK, 11), None);
        assert_eq!(l.range_at(1, CHUNK), None);
        assert_eq!(l.range_at(CHUNK + 10, 0), None);
    }

    #[test]
    fn a_virtual_span_may_cross_chunks_that_are_apart_in_the_file() {
        let l = layout(&[true, false, true, false]);
        assert_eq!(l.spans(CHUNK - 1, 2), Some(vec![(0, 2 * CHUNK - 1, 1), (1, 3 * CHUNK, 1)]));
        assert_eq!(l.spans(CHUNK + 9, 1), Some(vec![(1, 3 * CHUNK + 9, 1)]));
        assert_eq!(l.spans(CHUNK + 10, 1), None, "nothing lives past the end");
        assert_eq!(l.spans(u64::MAX, 2), None);
    }

    #[test]
    fn dig_download_plans_one_range_per_missing_chunk() {
        let l = layout(&[false, true, false, false]);
        let planned = dig_download::plan_ranges(&dig_download::ChunkLayout::new(l.chunk_lens()), ONE_CHUNK_PER_RANGE);
        assert_eq!(planned.len(), l.range_count());
        for range in planned {
            assert_eq!(l.range_at(range.offset, range.length), Some(range.index));
        }
    }
}
