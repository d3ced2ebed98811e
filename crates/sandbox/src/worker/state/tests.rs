use super::{content_digest, copy, open_file};
use bailey_protocol::{Digest, file_state};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// A file of such parts, and all of its bytes.
fn file(parts: &[(u64, &[u8])], size: u64) -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("file")).unwrap();
    parts.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    file.set_len(size).unwrap();
    let bytes = std::fs::read(dir.path().join("file")).unwrap();
    (dir, bytes)
}

fn open(dir: &tempfile::TempDir) -> (OwnedFd, u64) {
    let (fd, stat) = open_file(File::open(dir.path()).unwrap(), "file".as_ref()).unwrap();
    (fd, u64::try_from(stat.st_size).unwrap())
}

#[test]
fn a_file_with_holes_has_the_digest_of_its_bytes() {
    const MIB: u64 = 1 << 20;
    let data = vec![7_u8; 100_000];
    for (parts, size) in [
        (&[][..], 0),
        (&[], 5),
        (&[(0, &data[..10])], 10),
        (&[], 3 * MIB),
        (&[(0, &data[..])], 3 * MIB),
        (&[(3 * MIB - 7, &data[..7])], 3 * MIB),
        (&[(5, &data[..1]), (MIB + 3, &data[..]), (2 * MIB, &data[..4096])], 3 * MIB),
        (&[(500_000, &data[..])], MIB),
    ] {
        let (dir, bytes) = file(parts, size);
        let (fd, told) = open(&dir);
        assert_eq!(content_digest(fd, told).unwrap(), Digest::of(&bytes), "{size}");
        let mut copied = Vec::new();
        assert_eq!(
            copy(open(&dir).0, told, 0o644, &mut copied).unwrap(),
            file_state(0o644, &bytes),
            "{size}"
        );
        assert!(copied == bytes, "{size}");
    }
}

#[test]
fn a_file_of_another_length_than_was_told_is_changing() {
    for (size, told) in
        [(3 << 20, (3 << 20) - 1), (3 << 20, (3 << 20) + 1), (10, 9), (10, 11), (1 << 21, 1 << 20)]
    {
        let (dir, _) = file(&[(3, b"x")], size);
        let (fd, _) = open(&dir);
        assert!(copy(fd, told, 0o644, &mut Vec::new()).is_err(), "{size} {told}");
    }
}
