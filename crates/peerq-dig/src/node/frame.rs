//! Writes the frames of a range answer (HOST-D4).
//!
//! The one idea: a frame is the same JSON as `dig_nat::mux::RangeFrame::encode` makes, written straight into the output
//! buffer with one pass of base64 over the payload. That type would copy each payload into a frame, into a base64 string,
//! into a JSON body and into a message; the format is small and fixed, and a test decodes every shape with the type itself.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dig_nat::mux::{MAX_CHUNK_LENS_PER_FRAME, MAX_RANGE_FRAME_PAYLOAD};

/// Most payload of one frame, bytes.
pub(super) const FRAME_BYTES: usize = MAX_RANGE_FRAME_PAYLOAD;

/// What every frame of one answer says about the resource.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// `"root":"…","total_length":…` and perhaps `,"chunk_count":…`, ready to be pasted.
    json: String,
}

impl Labels {
    /// Labels for a resource of `total_length` bytes under `root`, 64 hex digits. `chunk_count` only if the answer carries
    /// the layout: dig-download 0.26 takes a count without a layout for the start of a layout in pages, and fails.
    pub(super) fn new(root: &str, total_length: u64, chunk_count: Option<usize>) -> Labels {
        let count = chunk_count.map(|count| format!(r#","chunk_count":{count}"#)).unwrap_or_default();
        Labels { json: format!(r#""root":"{root}","total_length":{total_length}{count}"#) }
    }
}

/// Where a frame stands in its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place<'a> {
    /// Offset within the requested range, bytes.
    pub(super) offset: u64,
    /// The chunk that starts here, if one does.
    pub(super) chunk_index: Option<u64>,
    /// A page of the layout: the index of its first chunk, and chunk lengths.
    pub(super) page: Option<(usize, &'a [u64])>,
    /// Whether this frame is the last.
    pub(super) complete: bool,
}

/// Appends one frame with `payload`, at most [`FRAME_BYTES`].
pub(super) fn push(out: &mut Vec<u8>, labels: &Labels, place: Place<'_>, payload: &[u8]) {
    debug_assert!(payload.len() <= FRAME_BYTES);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out, format_args!(r#"{{"offset":{},"length":{},"bytes":""#, place.offset, payload.len()));
    let text = out.len();
    out.resize(text + payload.len().div_ceil(3) * 4, 0);
    // The space is exactly that of padded base64, so this fails never; a short write would leave zeros, not panic.
    let _ = STANDARD.encode_slice(payload, &mut out[text..]);
    write(out, format_args!(r#"","complete":{},{}"#, place.complete, labels.json));
    if let Some(index) = place.chunk_index {
        write(out, format_args!(r#","chunk_index":{index}"#));
    }
    if let Some((first, lengths)) = place.page {
        write(out, format_args!(r#","chunk_lens_offset":{first},"chunk_lens":["#));
        for (position, length) in lengths.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write(out, format_args!("{comma}{length}"));
        }
        out.push(b']');
    }
    out.push(b'}');
    let body = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&body.to_be_bytes());
}

/// Splits a layout into the page that rides the first data frame and, for long layouts, pages of their own before it: one
/// page goes with the data, several go ahead of it.
pub(super) fn pages(lengths: &[u64]) -> impl Iterator<Item = (usize, &[u64])> {
    lengths
        .chunks(MAX_CHUNK_LENS_PER_FRAME)
        .enumerate()
        .map(|(page, lengths)| (page * MAX_CHUNK_LENS_PER_FRAME, lengths))
}

fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector fails never.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use dig_nat::mux::RangeFrame;
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8]) -> RangeFrame {
        let mut reader = bytes;
        let frame = futures::executor::block_on(RangeFrame::decode(&mut reader)).unwrap().unwrap();
        assert!(reader.is_empty(), "the length prefix is exact");
        frame
    }

    proptest! {
        #[test]
        fn every_frame_says_what_the_wire_type_would(
            payload in proptest::collection::vec(any::<u8>(), 0..700),
            offset in any::<u64>(), total in any::<u64>(), chunk_index in any::<Option<u64>>(), complete in any::<bool>(),
            lengths in proptest::option::of(proptest::collection::vec(any::<u64>(), 0..5)), first in any::<usize>(),
            count in any::<Option<usize>>(),
        ) {
            let root = "ab".repeat(32);
            let mut out = Vec::new();
            let page = lengths.as_deref().map(|lengths| (first, lengths));
            push(&mut out, &Labels::new(&root, total, count), Place { offset, chunk_index, page, complete }, &payload);

            let mut expected = RangeFrame::data(offset, payload).with_identity(root, total, 0).with_complete(complete);
            expected.chunk_count = count.map(|count| count as u64);
            expected.chunk_index = chunk_index;
            expected.chunk_lens_offset = page.map(|(first, _)| first as u64);
            expected.chunk_lens = lengths;
            prop_assert_eq!(decode(&out), expected);
        }
    }

    /// A layout of one page belongs to a file of the smallest chunks, since chunks grow only when there are many.
    #[test]
    fn the_largest_frames_fit_the_wire_limit() {
        let labels = Labels::new(&"ab".repeat(32), u64::MAX, Some(usize::MAX));
        for (chunk_bytes, payload_bytes) in [(1 << 18, FRAME_BYTES), (1 << 31, 0)] {
            let lengths = [chunk_bytes; MAX_CHUNK_LENS_PER_FRAME];
            let page = Some((0, &lengths[..]));
            let place = Place { offset: u64::MAX, chunk_index: Some(u64::MAX), page, complete: false };
            let mut out = Vec::new();
            push(&mut out, &labels, place, &vec![7; payload_bytes]);
            assert_eq!(decode(&out).bytes.len(), payload_bytes);
        }
    }
}
