//! Claims about manifests, most of them about hostile ones (HOST-D3).

use std::io::Write;

use proptest::prelude::*;

use super::*;

/// A manifest with `chunks` made-up leaves, for a file whose last chunk has one byte.
fn made_up(chunks: usize) -> Manifest {
    let total_length = chunks.saturating_sub(1) as u64 * u64::from(MIN_CHUNK_BYTES) + u64::from(chunks > 0);
    let leaves = (0..chunks).map(|index| merkle::leaf(&index.to_be_bytes())).collect();
    Manifest { total_length, chunk_size: MIN_CHUNK_BYTES, leaves }
}

fn header(total_length: u64, chunk_size: u32) -> Vec<u8> {
    [&MAGIC[..], &total_length.to_be_bytes(), &chunk_size.to_be_bytes()].concat()
}

#[test]
fn an_empty_file_has_an_id_and_no_chunks() {
    let manifest = Manifest::of_bytes(b"");
    assert_eq!((manifest.chunk_count(), manifest.total_length()), (0, 0));
    assert_eq!(Manifest::decode(&manifest.encode(), &manifest.id()), Ok(manifest.clone()));
    assert_eq!(manifest.verify_chunk(0, b""), Err(ChunkError::NoSuchChunk { index: 0 }));
}

#[test]
fn the_id_of_a_known_file_never_changes() {
    assert_eq!(
        Manifest::of_bytes(b"hello").id().to_string(),
        "6f23cc8082e0340dba7fef4c2780b70b5bd063181f75680dffa2dd2e032ca1bd"
    );
}

#[test]
fn a_file_and_its_bytes_have_the_same_manifest() {
    for length in [0, 1, MIN_CHUNK_BYTES as usize, 3 * MIN_CHUNK_BYTES as usize + 17] {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 31 % 251) as u8).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        assert_eq!(Manifest::of_file(file.path()).unwrap(), Manifest::of_bytes(&bytes), "{length} bytes");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_refused() {
    for told in [4, 6] {
        let error = Manifest::of_reader(&mut &b"hello"[..], told).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{told} of 5 bytes");
    }
}

#[test]
fn a_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(Manifest::of_file(directory.path()).is_err());
}

#[test]
fn the_chunk_size_grows_with_the_file_and_bounds_the_manifest() {
    let two_gib = 2 << 30;
    for (length, size) in [
        (0, Some(MIN_CHUNK_BYTES)),
        (two_gib, Some(MIN_CHUNK_BYTES)),
        (two_gib + 1, Some(2 * MIN_CHUNK_BYTES)),
        (MAX_FILE_BYTES, Some(1 << 31)),
        (MAX_FILE_BYTES + 1, None),
        (u64::MAX, None),
    ] {
        assert_eq!(chunk_size_for(length), size, "{length} bytes");
    }
    assert_eq!(made_up(MAX_CHUNKS).encode().len(), MAX_MANIFEST_BYTES);
}

#[test]
fn a_self_consistent_lie_is_refused_because_it_is_another_file() {
    let (honest, lie) = (made_up(3), made_up(4));
    assert_eq!(
        Manifest::decode(&lie.encode(), &honest.id()),
        Err(ManifestError::WrongFile { expected: honest.id(), found: lie.id() })
    );
}

#[test]
fn absurd_numbers_are_refused_before_anything_is_allocated() {
    let id = FileId::from_bytes([0; 32]);
    for (total_length, chunk_size) in
        [(u64::MAX, 1), (u64::MAX, u32::MAX), (1, 0), (0, 0), (MAX_FILE_BYTES + 1, 1 << 31), (1, 1 << 19)]
    {
        assert_eq!(
            Manifest::decode(&header(total_length, chunk_size), &id),
            Err(ManifestError::Layout { total_length, chunk_size })
        );
    }
    let promises_16_tib = header(MAX_FILE_BYTES, 1 << 31);
    assert_eq!(
        Manifest::decode(&promises_16_tib, &id),
        Err(ManifestError::Length { expected: MAX_MANIFEST_BYTES, actual: HEADER_BYTES })
    );
    let endless = vec![0; MAX_MANIFEST_BYTES + 1];
    assert!(matches!(Manifest::decode(&endless, &id), Err(ManifestError::Length { .. })));
}

#[test]
fn a_chunk_is_told_from_a_short_a_wrong_and_a_misplaced_one() {
    let bytes = [vec![1; MIN_CHUNK_BYTES as usize], vec![2; MIN_CHUNK_BYTES as usize], vec![3; 10]].concat();
    let manifest = Manifest::of_bytes(&bytes);
    let chunk = |index: usize| {
        let offset = manifest.chunk_offset(index).unwrap() as usize;
        &bytes[offset..offset + manifest.chunk_len(index).unwrap() as usize]
    };
    assert_eq!(manifest.chunk_lens(), [262_144, 262_144, 10]);
    assert_eq!(manifest.chunk_offset(3), None);
    for index in 0..3 {
        assert_eq!(manifest.verify_chunk(index, chunk(index)), Ok(()));
    }
    assert_eq!(manifest.verify_chunk(0, chunk(1)), Err(ChunkError::Hash { index: 0 }));
    assert_eq!(manifest.verify_chunk(2, &chunk(2)[..9]), Err(ChunkError::Length { index: 2, expected: 10, actual: 9 }));
    assert_eq!(manifest.verify_chunk(usize::MAX, b""), Err(ChunkError::NoSuchChunk { index: usize::MAX }));
}

proptest! {
    #[test]
    fn every_manifest_survives_the_round_trip(chunks in 0usize..300) {
        let manifest = made_up(chunks);
        prop_assert_eq!(Manifest::decode(&manifest.encode(), &manifest.id()), Ok(manifest));
    }

    #[test]
    fn any_bytes_at_all_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Manifest::decode(&bytes, &FileId::from_bytes([9; 32])).is_err());
    }

    #[test]
    fn any_numbers_at_all_are_refused_without_a_panic(
        total_length in any::<u64>(), power in 0u32..32, leaves in 0usize..4,
    ) {
        let mut bytes = header(total_length, 1 << power);
        bytes.extend(std::iter::repeat_n(7, leaves * 32));
        prop_assert!(Manifest::decode(&bytes, &FileId::from_bytes([9; 32])).is_err());
    }

    #[test]
    fn a_manifest_with_any_byte_changed_cut_or_added_is_refused(
        chunks in 0usize..20, at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        let manifest = made_up(chunks);
        let good = manifest.encode();
        let at = at.index(good.len());
        let mut changed = good.clone();
        changed[at] ^= flip;
        let longer = [&good[..], &[flip]].concat();
        for bad in [&changed[..], &good[..at], &longer] {
            prop_assert!(Manifest::decode(bad, &manifest.id()).is_err());
        }
    }
}
