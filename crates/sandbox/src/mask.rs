//! Secret-looking files of the workspace, covered for one effect.
//!
//! Each is covered by a bind of a stand-in: a regular file of the same size and time that nobody may read, on
//! a mount that is read-only. So reading fails, and the name can be neither written nor removed; git sees no
//! change, with the help of `worker/settle.rs`. What is found is what stands there when the effect starts; a
//! link to such a file leads to the same cover, and a file that the effect makes itself is no secret to it.

use crate::tree::{self, Access, Kind};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT},
    io::Errno,
    mount::MountAttrFlags,
};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// More covers than this are refused: each is a mount.
const COVERS_MAX: usize = 20_000;
/// A workspace of more entries than this is refused: a mask that gives up half-way would be none.
pub(crate) const ENTRIES_MAX: usize = 5_000_000;

/// A stand-in is at least as old as this.
const AGE: Duration = Duration::from_secs(2);

/// Where stand-ins are made: an empty directory of the root, which they leave again before the payload
/// starts.
const STAND_INS: &str = "run";

/// Makes that directory, as long as the root can be written.
///
/// # Errors
/// Of mkdirat(2).
pub(crate) fn place(root: BorrowedFd<'_>) -> io::Result<()> {
    tree::place(root, Path::new(STAND_INS), Kind::Directory).map(drop)
}

/// Compiles the names to cover.
///
/// # Errors
/// Names the glob that is none.
pub(crate) fn compile(masks: &[String]) -> io::Result<Masks> {
    let names = read(masks)?.build().map_err(|error| io::Error::other(format!("the masks: {error}")))?;
    Ok(Masks { names, above: None })
}

/// The names to cover, compared without case: on some file systems `.ENV` is `.env`, and on all of them it
/// looks as secret.
#[derive(Debug, Clone)]
pub(crate) struct Masks {
    names: Gitignore,
    /// The directory that paths are relative to, where its own name counts: `huggingface/token` is that
    /// file's name also where only `huggingface` is looked through.
    above: Option<PathBuf>,
}

impl Masks {
    /// Whether a file at this path, relative to the workspace, has one of the names. They are names of files:
    /// the files of a directory with such a name, such as a Python environment called `.env`, are judged by
    /// names of their own. A name that ends in a slash is a directory's, with all that lies in it.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        self.say(path).unwrap_or_else(|| {
            let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
            above.any(|above| self.close(above))
        })
    }

    /// The same for paths that are relative to a directory outside of the workspace, absolute.
    pub(crate) fn beneath(&self, directory: &Path) -> Self {
        Self { above: Some(directory.to_path_buf()), ..self.clone() }
    }

    /// Whether an entry of either kind has one of the names itself.
    pub(crate) fn is_named(&self, path: &Path) -> bool {
        self.say(path) == Some(true) || self.close(path)
    }

    /// What the names say of a file at this path. Where one of its two paths is a secret's, it is one.
    fn say(&self, path: &Path) -> Option<bool> {
        let said = |path: &Path| match self.names.matched(lower(path), false) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        };
        said(path).max(self.above.as_ref().and_then(|above| said(&above.join(path))))
    }

    /// Whether a name is that of this directory.
    fn close(&self, directory: &Path) -> bool {
        let is_closed = |path: &Path| matches!(self.names.matched(lower(path), true), Match::Ignore(name) if name.is_only_dir());
        is_closed(directory) || self.above.as_ref().is_some_and(|above| is_closed(&above.join(directory)))
    }

    /// Whether all that paths are relative to lies in a directory of such a name.
    fn is_closed(&self) -> bool {
        let mut above = self.above.iter().flat_map(|above| above.ancestors());
        above.any(|above| self.close(above))
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Names are matched as they are where both sides are in one case, which is faster than globs of either case.
fn lower(path: &Path) -> PathBuf {
    OsStr::from_bytes(&path.as_os_str().as_bytes().to_ascii_lowercase()).into()
}

/// Reads the names without compiling them, which takes longer.
///
/// # Errors
/// As [`compile`].
pub(crate) fn read(masks: &[String]) -> io::Result<GitignoreBuilder> {
    let mut builder = GitignoreBuilder::new("");
    for mask in masks {
        builder
            .add_line(None, &mask.to_ascii_lowercase())
            .map_err(|error| io::Error::other(format!("the mask `{mask}` is no glob: {error}")))?;
    }
    Ok(builder)
}

/// Covers every file of the workspace that the masks name and that is neither revealed nor lies in a
/// directory that is, and whole what cannot be looked through. `root` is the sandbox's root and the working
/// directory, with the [`place`] made; `workspace` is the project's absolute path, or another directory's;
/// what lies at `beside` in it is passed over. Of more than `most` entries nothing is covered. Returns the
/// absolute paths of the files that are covered.
///
/// # Errors
/// When the workspace cannot be walked, or has too much to cover.
pub(crate) fn cover(
    root: BorrowedFd<'_>,
    workspace: &Path,
    beside: &Path,
    masks: &Masks,
    revealed: &BTreeSet<PathBuf>,
    most: usize,
) -> io::Result<Vec<PathBuf>> {
    if masks.is_empty() {
        return Ok(Vec::new());
    }
    // Where it is not any more, nothing is made in its place: what was there may be at another path.
    let top = tree::beneath(root, workspace.strip_prefix("/").unwrap_or(workspace))?;
    let WalkResult { files, closed } = find(&top, beside.strip_prefix(workspace).ok(), masks, most)?;
    let hidden: Vec<&PathBuf> = files
        .iter()
        .filter(|path| !workspace.join(path).ancestors().any(|at| revealed.contains(at)))
        .collect();
    let wanted = hidden.len() + closed.len();
    if wanted > COVERS_MAX {
        return Err(io::Error::other(format!(
            "{wanted} secret-looking files are more than the {COVERS_MAX} that can be masked, so nothing runs over them, such as `{}`: \
             where they are no secrets, reveal their directory (`--reveal DIR`, which `bailey run`, `bailey chat` and `bailey sessions \
             resume` take), or throw away what the session made of them (`bailey sessions discard`)",
            hidden.first().map_or(Path::new("."), |path| path).display()
        )));
    }
    if wanted == 0 {
        return Ok(Vec::new());
    }
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let stand_ins = tree::make("tmpfs", &[("size", "1m"), ("mode", "700")], attributes)?;
    let place = tree::place(root, Path::new(STAND_INS), Kind::Directory)?;
    tree::attach(stand_ins.as_fd(), place.as_fd())?;
    let stand_ins = tree::directory(STAND_INS)?;
    let mut covered = Vec::new();
    for (number, path) in hidden.iter().enumerate() {
        // A file that has gone meanwhile needs no cover.
        match cover_one(&top, &stand_ins, number, path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone(&top, path)?,
            done => covered.extend(done?.then(|| workspace.join(path))),
        }
    }
    for (number, path) in closed.iter().enumerate() {
        match close(&top, &stand_ins, &format!("d{number}"), path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone(&top, path)?,
            done => done?,
        }
    }
    tree::detach(STAND_INS)?;
    Ok(covered)
}

/// Makes sure that what was listed a moment ago and is not found is gone. An overlay that was asked for a
/// name before the host made it does not find it, and may find it at any time later, when nothing covers it.
///
/// # Errors
/// When it is listed still.
fn gone(top: &OwnedFd, path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(parent) = tree::open_beneath(top.as_fd(), parent, flags) else { return Ok(()) };
    for entry in Dir::read_from(&parent)? {
        if entry?.file_name().to_bytes() == name.as_bytes() {
            return Err(io::Error::other(format!(
                "`{}` came to the host while something of the session lived; wait until that has ended, and try again",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Covers a directory outside of the workspace whole, whatever it holds.
///
/// # Errors
/// Of the mount.
pub(crate) fn shut(root: BorrowedFd<'_>, directory: &Path) -> io::Result<()> {
    let place = tree::beneath(root, directory.strip_prefix("/").unwrap_or(directory))?;
    let tree = tree::make("tmpfs", &[("size", "4k"), ("mode", "0")], MountAttrFlags::MOUNT_ATTR_NOEXEC)?;
    tree::restrict(tree.as_fd(), Access::ReadOnly, None)?;
    tree::attach(tree.as_fd(), place.as_fd())
}

/// Covers a directory with one that nobody can enter.
fn close(top: &OwnedFd, stand_ins: &OwnedFd, name: &str, path: &Path) -> io::Result<()> {
    let place = tree::beneath(top.as_fd(), path)?;
    rustix::fs::mkdirat(stand_ins, name, Mode::empty())?;
    let tree = tree::open_at(stand_ins.as_fd(), name)?;
    tree::restrict(tree.as_fd(), Access::ReadOnly, None)?;
    tree::attach(tree.as_fd(), place.as_fd())
}

/// Covers what stands at a path relative to the workspace; tells whether it was a file.
fn cover_one(top: &OwnedFd, stand_ins: &OwnedFd, number: usize, path: &Path) -> io::Result<bool> {
    let place = tree::beneath(top.as_fd(), path)?;
    let stat = rustix::fs::statat(&place, "", AtFlags::EMPTY_PATH)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(false);
    }
    let name = number.to_string();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    // Git tracks whether a file can be executed; what cannot be read, and lies on a mount like this, cannot.
    let mode = Mode::from_raw_mode(stat.st_mode & 0o111);
    let stand_in = rustix::fs::openat(stand_ins, &name, flags, mode)?;
    rustix::fs::ftruncate(&stand_in, u64::try_from(stat.st_size).unwrap_or(0))?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: stat.st_mtime.min(old()),
            tv_nsec: i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        },
    };
    rustix::fs::futimens(&stand_in, &times)?;
    let tree = tree::open_at(stand_ins.as_fd(), &name)?;
    tree::restrict(tree.as_fd(), Access::ReadOnly, None)?;
    tree::attach(tree.as_fd(), place.as_fd())?;
    Ok(true)
}

/// The latest time of a stand-in, in seconds of Unix time: git reads what is as young as its index, whenever
/// it writes that.
fn old() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_sub(AGE).as_secs()).unwrap_or(0)
}

/// What a walk found, relative to the workspace.
#[derive(Default)]
struct WalkResult {
    /// Files that the masks name.
    files: Vec<PathBuf>,
    /// Directories of others that may not be listed: what they hold could still be opened by its name.
    closed: Vec<PathBuf>,
}

/// Walks the workspace by names and types alone; nothing is opened but directories, and no link is followed.
fn find(top: &OwnedFd, beside: Option<&Path>, masks: &Masks, most: usize) -> io::Result<WalkResult> {
    let mut found = WalkResult::default();
    let mut seen = 0;
    let mut waiting = vec![(PathBuf::new(), masks.is_closed())];
    while let Some((path, is_closed)) = waiting.pop() {
        // Another effect of the session may swap a directory for a link meanwhile.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match tree::open_beneath(top.as_fd(), &path, flags) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => {
                gone(top, &path)?;
                continue;
            }
            Err(Errno::NOTDIR | Errno::LOOP) => continue,
            Err(Errno::ACCESS) if !path.as_os_str().is_empty() => {
                found.closed.push(path);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut entries = Dir::read_from(&directory)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            seen += 1;
            if seen > most {
                return Err(io::Error::other(format!(
                    "the workspace has more than {most} entries, too many to mask"
                )));
            }
            let inner = path.join(OsStr::from_bytes(name));
            let kind = match entry.file_type() {
                FileType::Unknown => kind_at(&directory, entry.file_name())?,
                kind => kind,
            };
            match kind {
                FileType::Directory if inner.ends_with(".git/objects") || beside == Some(&inner) => {}
                FileType::Directory => {
                    let is_closed = is_closed || masks.close(&inner);
                    waiting.push((inner, is_closed));
                }
                FileType::RegularFile => match masks.say(&inner) {
                    Some(true) => found.files.push(inner),
                    None if is_closed => found.files.push(inner),
                    _ => {}
                },
                _ => {}
            }
        }
    }
    Ok(found)
}

fn kind_at(directory: &OwnedFd, name: &std::ffi::CStr) -> io::Result<FileType> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode)),
        Err(Errno::NOENT) => Ok(FileType::Unknown),
        Err(error) => Err(error.into()),
    }
}
