//! What stands at a path, and the digest by which merges compare it.

use super::beneath::{look, type_of};
use super::error::errno;
use bailey_protocol::{Digest, FileKind, Hasher};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};

/// The largest file that is compared, shown or merged, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 30;

/// Permission bits, with set-user-id, set-group-id and sticky.
pub(super) const MODE_BITS: u32 = 0o7777;

const CHUNK: usize = 1 << 16;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) kind: FileKind,
    /// Permission bits.
    pub(super) mode: u32,
    /// In bytes; of a symlink, its target's length.
    pub(super) size: u64,
    /// Of a symlink.
    pub(super) target: Option<Vec<u8>>,
    pub(super) digest: Digest,
}

/// Why a state could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("{}", super::error::plain(*.0))]
    System(#[from] Errno),
    #[error("it is larger than 1 GiB")]
    TooLarge,
    #[error("it changed while it was read")]
    Changing,
}

/// The state of `name` in `dir`, a symlink not followed; `None` when nothing is there.
///
/// The *state digest* is `Digest::of_parts([kind, mode, content])`: the kind is `file`, `dir`, `symlink` or
/// `other`; the mode is the permission bits (`st_mode & 0o7777`) in decimal digits; the content is the
/// file's bytes or the link's target. Directories and others end with the mode. So two states are equal
/// when kind, mode and content are, and a mode or a link is restored as exactly as text.
pub(super) fn state_of(dir: impl AsFd, name: &OsStr) -> Result<Option<State>, Unreadable> {
    let Some(stat) = look(&dir, name)? else { return Ok(None) };
    let mode = stat.st_mode & MODE_BITS;
    let plain = |kind, tag: &[u8]| {
        let digest = Digest::of_parts(&[tag, mode.to_string().as_bytes()]);
        State { kind, mode, size: 0, target: None, digest }
    };
    Ok(Some(match type_of(&stat) {
        FileType::Directory => plain(FileKind::Directory, b"dir"),
        FileType::Symlink => {
            let target = readlinkat(&dir, name, Vec::new())?.into_bytes();
            let digest = Digest::of_parts(&[b"symlink", mode.to_string().as_bytes(), &target]);
            let size = target.len() as u64;
            State { kind: FileKind::Symlink, mode, size, target: Some(target), digest }
        }
        FileType::RegularFile => file_state(dir, name)?,
        _ => plain(FileKind::Other, b"other"),
    }))
}

/// Opens a regular file for reading; a symlink, a FIFO, a device or a directory put there meanwhile is
/// [`Unreadable::Changing`].
pub(super) fn open_file(dir: impl AsFd, name: &OsStr) -> Result<(OwnedFd, Stat), Unreadable> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = openat(dir, name, flags, Mode::empty())?;
    let stat = fstat(&fd)?;
    if type_of(&stat) == FileType::RegularFile { Ok((fd, stat)) } else { Err(Unreadable::Changing) }
}

/// Copies a regular file's bytes into `sink` and gives the state digest that they have with `mode`.
pub(super) fn copy(from: OwnedFd, size: u64, mode: u32, sink: &mut impl Write) -> Result<Digest, Unreadable> {
    if size > FILE_BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let mode = mode.to_string();
    let mut hasher = Hasher::default();
    for part in [b"file".as_slice(), mode.as_bytes()] {
        hasher.part(part.len() as u64);
        hasher.update(part);
    }
    hasher.part(size);
    let copied = pour(from, size, |bytes| {
        hasher.update(bytes);
        sink.write_all(bytes).map_err(|error| errno(&error))
    })?;
    if copied == size { Ok(hasher.finish()) } else { Err(Unreadable::Changing) }
}

/// The digest of a file's content alone, as `Read` and `Change` use it.
pub(super) fn content_digest(from: OwnedFd, size: u64) -> Result<Digest, Unreadable> {
    if size > FILE_BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let mut hasher = Hasher::default();
    let read = pour(from, size, |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    if read == size { Ok(hasher.finish()) } else { Err(Unreadable::Changing) }
}

fn file_state(dir: impl AsFd, name: &OsStr) -> Result<State, Unreadable> {
    let (fd, stat) = open_file(dir, name)?;
    let mode = stat.st_mode & MODE_BITS;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let digest = copy(fd, size, mode, &mut std::io::sink())?;
    Ok(State { kind: FileKind::File, mode, size, target: None, digest })
}

/// Reads to the end, but at most one byte more than `size`; gives the number of bytes.
fn pour(from: OwnedFd, size: u64, mut to: impl FnMut(&[u8]) -> Result<(), Errno>) -> Result<u64, Errno> {
    let mut file = File::from(from).take(size.saturating_add(1));
    let mut chunk = vec![0; CHUNK];
    let mut total = 0_u64;
    loop {
        let read = file.read(&mut chunk).map_err(|error| errno(&error))?;
        if read == 0 {
            return Ok(total);
        }
        to(chunk.get(..read).unwrap_or_default())?;
        total = total.saturating_add(read as u64);
    }
}
