//! Read, Stat and List: one file, one path, one directory.

use super::beneath::{Root, look, names, type_of};
use super::error::{Error, errno};
use super::state::MODE_BITS;
use bailey_protocol::{Blob, Digest, FileKind, FileReport, ListReport, Listed, StatReport, WsPath};
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

/// Bytes of a file that a read keeps.
const CONTENT_MAX: u64 = 8 << 20;
/// Entries that a listing gives.
const ENTRIES_MAX: usize = 2_000;
/// Names that a listing looks at; beyond it `more` counts what was seen.
const NAMES_MAX: usize = 1_000_000;

/// The content of a regular file. Anything else is refused at once, without waiting for it.
pub(super) fn read(root: &Root, path: &WsPath) -> Result<FileReport, Error> {
    let at = below(path)?;
    let fd = root.file(at).map_err(|errno| not_opened(root, path, errno))?;
    let stat = fstat(&fd).map_err(Error::system("read", &path.0))?;
    if type_of(&stat) != FileType::RegularFile {
        return Err(Error::path(&path.0, format!("is {}, not a regular file", noun(&stat))));
    }
    let mut content = Vec::new();
    let mut file = File::from(fd).take(CONTENT_MAX + 1);
    file.read_to_end(&mut content).map_err(|error| Error::system("read", &path.0)(errno(&error)))?;
    let whole = content.len() as u64 <= CONTENT_MAX;
    let size = if whole { content.len() as u64 } else { size(&stat).max(content.len() as u64) };
    content.truncate(usize::try_from(CONTENT_MAX).unwrap_or(usize::MAX));
    let digest = whole.then(|| Digest::of(&content));
    Ok(FileReport { content: Blob(content), size, digest, mode: stat.st_mode & MODE_BITS })
}

/// What stands at a path; a symlink put there since it was resolved is told as one.
pub(super) fn stat(root: &Root, path: &WsPath) -> Result<StatReport, Error> {
    let found = root.stat(below(path)?).map_err(Error::system("look at", &path.0))?;
    Ok(match found {
        Some(stat) => StatReport { found: Some(kind(&stat)), size: size(&stat) },
        None => StatReport { found: None, size: 0 },
    })
}

/// The entries of a directory.
pub(super) fn list(root: &Root, path: &WsPath) -> Result<ListReport, Error> {
    let dir = root.dir(below(path)?).map_err(Error::system("list", &path.0))?;
    let (mut names, _) = names(&dir, NAMES_MAX).map_err(Error::system("list", &path.0))?;
    names.sort_unstable();
    let more = names.len().saturating_sub(ENTRIES_MAX) as u64;
    names.truncate(ENTRIES_MAX);
    let listed = |name: &OsString| {
        // What vanished since it was named is left out.
        let stat = look(&dir, name).ok().flatten()?;
        Some(Listed { name: name.to_string_lossy().into_owned(), kind: kind(&stat), size: size(&stat) })
    };
    Ok(ListReport { entries: names.iter().filter_map(listed).collect(), more })
}

/// The path relative to `/`. Only canonical paths have one: `openat2` itself would accept `..`.
pub(super) fn below(path: &WsPath) -> Result<&str, Error> {
    let canonical = |at: &str| at.is_empty() || at.split('/').all(|part| !matches!(part, "" | "." | ".."));
    match path.0.strip_prefix('/') {
        Some(at) if canonical(at) && !at.contains('\0') => Ok(at),
        _ => Err(Error::path(&path.0, "is not canonical")),
    }
}

/// The kind in the protocol's words.
pub(super) fn kind(stat: &Stat) -> FileKind {
    match type_of(stat) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

/// The kind in words for people.
pub(super) fn noun(stat: &Stat) -> &'static str {
    match type_of(stat) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}

pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

fn not_opened(root: &Root, path: &WsPath, errno: Errno) -> Error {
    let found = below(path).ok().and_then(|at| root.stat(at).ok().flatten());
    match (errno, found) {
        // A mask has no permission bits or is a device; a file without permission is not shown either.
        (Errno::ACCESS, Some(stat))
            if stat.st_mode & 0o777 == 0 || type_of(&stat) == FileType::CharacterDevice =>
        {
            let how = "is masked because its name looks like a secret's, or is a file that nobody may read; only the user can reveal what \
                       is masked: with `--reveal PATH`, which `bailey run`, `bailey chat` and `bailey sessions resume` take";
            Error::path(&path.0, how)
        }
        (Errno::NXIO | Errno::NODEV, Some(stat)) => {
            Error::path(&path.0, format!("is {}, not a regular file", noun(&stat)))
        }
        _ => Error::system("read", &path.0)(errno),
    }
}
