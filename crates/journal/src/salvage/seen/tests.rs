//! What a disk does not give hinders nothing.

use super::{digest, digest_of};
use crate::salvage::{PAGE, PIECE};
use bailey_protocol::Digest;
use std::{fs, io, path::Path};

/// A disk with these bytes, which gives none of the pages that are named.
fn disk<'a>(bytes: &'a [u8], bad: &'a [usize]) -> impl Fn(&mut [u8], u64) -> io::Result<usize> + 'a {
    move |room, at| {
        let at = usize::try_from(at).unwrap();
        if bad.contains(&(at / PAGE)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        // As much as there is before the next bad page.
        let page = bad.iter().map(|page| page * PAGE).filter(|page| *page > at).min();
        let end = page.unwrap_or(bytes.len()).min(bytes.len()).min(at + room.len());
        room[..end - at].copy_from_slice(&bytes[at..end]);
        Ok(end - at)
    }
}

#[test]
fn what_a_disk_does_not_give_counts_as_zeros_and_the_rest_is_read() {
    let bytes: Vec<u8> = (0..2 * PIECE + 100).map(|at| (at % 251) as u8 + 1).collect();
    let last = bytes.len() / PAGE;
    let cases: [&[usize]; 6] = [&[], &[0], &[3, 4], &[PIECE / PAGE], &[last], &[0, 7, last - 1, last]];
    for bad in cases {
        let mut readable = bytes.clone();
        for page in bad {
            let end = bytes.len().min((page + 1) * PAGE);
            readable[page * PAGE..end].fill(0);
        }
        let found = digest_of(bytes.len() as u64, disk(&bytes, bad));
        assert_eq!(found, Digest::of(&readable), "{bad:?}");
        assert_eq!(found == Digest::of(&bytes), bad.is_empty(), "{bad:?}: the control");
    }
    // One that gives nothing at all, and one that ends sooner than it said.
    assert_eq!(digest_of(10_000, |_, _| Err(io::Error::from_raw_os_error(5))), Digest::of(&[0; 10_000]));
    assert_eq!(digest_of(1 << 40, disk(&bytes, &[])), Digest::of(&bytes));
}

#[test]
fn a_file_has_a_digest_whether_or_not_it_can_be_read() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    assert_eq!(digest(&file).unwrap(), None);
    fs::write(&file, b"as it is").unwrap();
    assert_eq!(digest(&file).unwrap(), Some(Digest::of(b"as it is")));
    // It gives nothing at its beginning, and says that it has no length.
    let memory = Path::new("/proc/self/mem");
    assert!(fs::read(memory).is_err(), "the control");
    assert_eq!(digest(memory).unwrap(), Some(Digest::of(b"")));
}
