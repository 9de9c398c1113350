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
fn a_fetch_that_never_got_a_byte_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = Manifest::of_bytes(&data());
    drop(open(&dir, &manifest));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let staging = open(&dir, &manifest);
    staging.write_at(0, b"something").unwrap();
    drop(staging);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
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
