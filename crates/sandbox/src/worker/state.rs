//! What stands at a path, and the digest by which merges compare it.

use super::attributes::{self, Attributes};
use super::beneath::{Root, look, type_of};
use super::error::errno;
use bailey_kernel::Marks;
use bailey_protocol::{Digest, FileKind, Hasher};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, fstat, openat, readlinkat, seek};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};

/// The largest file that is compared, shown or merged, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 30;

/// Permission bits, with set-user-id, set-group-id and sticky.
pub(super) const MODE_BITS: u32 = 0o7777;

const CHUNK: usize = 1 << 16;

/// The smallest file that is looked through for holes.
const HOLES_MIN: u64 = 1 << 20;

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

impl State {
    pub(super) fn directory(mode: u32) -> Self {
        Self::plain(FileKind::Directory, b"dir", mode)
    }

    fn plain(kind: FileKind, tag: &[u8], mode: u32) -> Self {
        let digest = Digest::of_parts(&[tag, mode.to_string().as_bytes()]);
        Self { kind, mode, size: 0, target: None, digest }
    }
}

/// A state, with what else was seen when it was taken.
pub(super) struct Seen {
    pub(super) state: State,
    pub(super) stat: Stat,
    /// The bytes of a file, where they are no more than was asked for: those that the digest is over.
    pub(super) content: Option<Vec<u8>>,
    /// Of a file.
    pub(super) attributes: Attributes,
    /// The redaction marks of a file, in all of its bytes.
    pub(super) marks: Marks,
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
    Ok(take(dir, name, None)?.map(|seen| seen.state))
}

/// The same with what else is to be known of it; of a file its bytes, up to so many.
pub(super) fn see(dir: impl AsFd, name: &OsStr, content_max: u64) -> Result<Option<Seen>, Unreadable> {
    take(dir, name, Some(content_max))
}

/// The same for a path below `root`; nothing there when one of the directories above is not there.
pub(super) fn seen(root: &Root, at: &str, content_max: u64) -> Result<Option<Seen>, Unreadable> {
    match root.place(at)? {
        Some((dir, name)) => see(dir, name.as_ref(), content_max),
        None => Ok(None),
    }
}

/// What stands there; `content_max`: how many bytes of a file to bring, and its attributes.
fn take(dir: impl AsFd, name: &OsStr, content_max: Option<u64>) -> Result<Option<Seen>, Unreadable> {
    let Some(stat) = look(&dir, name)? else { return Ok(None) };
    if type_of(&stat) == FileType::RegularFile {
        return take_file(dir, name, content_max).map(Some);
    }
    let mode = stat.st_mode & MODE_BITS;
    let state = match type_of(&stat) {
        FileType::Directory => State::directory(mode),
        FileType::Symlink => {
            let target = readlinkat(&dir, name, Vec::new())?.into_bytes();
            let digest = Digest::of_parts(&[b"symlink", mode.to_string().as_bytes(), &target]);
            let size = target.len() as u64;
            State { kind: FileKind::Symlink, mode, size, target: Some(target), digest }
        }
        _ => State::plain(FileKind::Other, b"other", mode),
    };
    Ok(Some(Seen { state, stat, content: None, attributes: Attributes::new(), marks: Marks::default() }))
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

fn take_file(dir: impl AsFd, name: &OsStr, content_max: Option<u64>) -> Result<Seen, Unreadable> {
    let (fd, stat) = open_file(dir, name)?;
    let attributes = if content_max.is_some() { attributes::of(&fd)? } else { Attributes::new() };
    let mode = stat.st_mode & MODE_BITS;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let mut content = content_max.filter(|most| size <= *most).map(|_| Vec::new());
    let mut marks = Marks::default();
    let digest = match content_max {
        Some(_) => copy(fd, size, mode, &mut Looked { content: content.as_mut(), marks: &mut marks })?,
        None => copy(fd, size, mode, &mut std::io::sink())?,
    };
    let state = State { kind: FileKind::File, mode, size, target: None, digest };
    Ok(Seen { state, stat, content, attributes, marks })
}

/// Takes down a file's text and its marks as the bytes pass.
struct Looked<'a> {
    content: Option<&'a mut Vec<u8>>,
    marks: &'a mut Marks,
}

impl Write for Looked<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.marks.update(bytes);
        if let Some(content) = &mut self.content {
            content.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reads to the end, but at most one byte more than `size`; gives the number of bytes. Where nothing was ever
/// written, zeros are given without being read.
pub(super) fn pour(
    from: OwnedFd,
    size: u64,
    mut to: impl FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<u64, Errno> {
    let most = size.saturating_add(1);
    let room = usize::try_from(most).unwrap_or(CHUNK);
    let mut chunk = vec![0; CHUNK.min(room)];
    let file = File::from(from);
    if size < HOLES_MIN {
        return read(&file, most, &mut chunk, &mut to);
    }
    let mut total = 0_u64;
    while total <= size
        && let Some((hole, data)) = extent(&file, total)?
    {
        chunk.fill(0);
        total += fill(hole.min(most - total), &chunk, &mut to)?;
        total += read(&file, data.min(most - total), &mut chunk, &mut to)?;
    }
    Ok(total)
}

/// How many bytes from `at` on were never written, and how many follow that were; none at the end. The file
/// then stands at the latter.
fn extent(file: &File, at: u64) -> Result<Option<(u64, u64)>, Errno> {
    let data = match seek(file, SeekFrom::Data(at)) {
        // Nothing but a hole is left, or nothing.
        Err(Errno::NXIO) => {
            let end = seek(file, SeekFrom::End(0))?;
            return Ok((end > at).then(|| (end - at, 0)));
        }
        data => data?,
    };
    let end = seek(file, SeekFrom::Hole(data))?;
    seek(file, SeekFrom::Start(data))?;
    Ok(Some((data.saturating_sub(at), end.saturating_sub(data))))
}

/// Reads at most so many bytes from where the file stands.
fn read(
    file: &File,
    most: u64,
    chunk: &mut [u8],
    to: &mut impl FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<u64, Errno> {
    let mut file = file.take(most);
    let mut total = 0_u64;
    loop {
        let read = file.read(chunk).map_err(|error| errno(&error))?;
        if read == 0 {
            return Ok(total);
        }
        to(chunk.get(..read).unwrap_or_default())?;
        total = total.saturating_add(read as u64);
    }
}

/// Gives so many zeros.
fn fill(count: u64, zeros: &[u8], to: &mut impl FnMut(&[u8]) -> Result<(), Errno>) -> Result<u64, Errno> {
    let mut left = count;
    while left > 0 {
        let some = usize::try_from(left).unwrap_or(zeros.len()).min(zeros.len());
        to(zeros.get(..some).unwrap_or_default())?;
        left -= some as u64;
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
