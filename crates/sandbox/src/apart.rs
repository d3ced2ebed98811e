//! Files of the host, shown in a root so that no socket among them can be connected to.
//!
//! The kernel finds a socket by its inode (unix(7)), and an overlay gives what lies beneath it inodes of its
//! own: a connection to a socket of the host ends with `ECONNREFUSED`, whatever its permissions are, and
//! through a bind of the same directory it would succeed, also through a read-only one. So each directory is
//! shown through a read-only overlay; of other files only regular ones are bound, which never become sockets.
//!
//! An overlay shows the one file system that its directory lies in, and the kernel makes none over a
//! directory in which something is mounted: that would show what the mount covers. So the entries of such a
//! directory are shown one by one.

use crate::{
    sys::{self, attr},
    tree::{self, Access, Content, Kind},
};
use rustix::{
    fs::{AtFlags, FileType, Mode, fstat},
    mount::MountAttrFlags,
};
use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::MetadataExt as _,
        },
    },
    path::{Path, PathBuf},
};

/// Where the trees of the host are attached, in the staging directory, and what lies above each in its
/// overlay. The root is the working directory, beside them.
const SHOWN: &str = "shown";
const EMPTY: &str = "../empty";

/// How many entries of directories with mounts in them are shown one by one. Each is a mount, which each
/// command takes time to copy.
const PIECES_MAX: usize = 512;

/// The bits of a mode that a directory which is split keeps.
const MODE: u32 = 0o777;

/// Attaches a tree of the host beside the root, called so.
///
/// # Errors
/// Of the mount.
pub(crate) fn attach(staging: BorrowedFd<'_>, name: &str, tree: BorrowedFd<'_>) -> io::Result<()> {
    tree::place(staging, Path::new("empty"), Kind::Directory)?;
    let at = Path::new(SHOWN).join(name);
    let place = tree::place(staging, &at, tree::kind_of(tree)?)?;
    tree::attach(tree, place.as_fd())
}

/// A copy of what is attached so.
///
/// # Errors
/// Of open_tree(2).
pub(crate) fn attached(root: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    tree::open_at(root, Path::new("..").join(SHOWN).join(name))
}

/// What is mounted below the trees that are attached.
#[derive(Debug)]
pub(crate) struct Mounts(Vec<PathBuf>);

impl Mounts {
    /// Looks at this process's mounts (proc_pid_mountinfo(5)). `staging` is the path of the staging
    /// directory.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub(crate) fn read(staging: &Path) -> io::Result<Self> {
        let shown = staging.join(SHOWN);
        let mounts = fs::read("/proc/self/mountinfo")?;
        let places = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
            let place = line.split(|byte| *byte == b' ').nth(4)?;
            Some(unescaped(place).strip_prefix(&shown).ok()?.to_path_buf())
        });
        Ok(Self(places.collect()))
    }

    fn are_below(&self, name: &Path) -> bool {
        self.0.iter().any(|place| place.strip_prefix(name).is_ok_and(|rest| rest != Path::new("")))
    }
}

/// A path as the kernel writes it there: `\040` for a blank.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let number = || u8::from_str_radix(std::str::from_utf8(behind.get(..3)?).ok()?, 8).ok();
        match (first, number()) {
            (b'\\', Some(byte)) => {
                path.push(byte);
                rest = behind.get(3..).unwrap_or_default();
            }
            (byte, _) => {
                path.push(*byte);
                rest = behind;
            }
        }
    }
    OsString::from_vec(path).into()
}

/// Shows what is attached under this name at a place of the root. The root is the working directory. Returns
/// the directory that had to be bound, where one had to: its file system takes no overlay.
///
/// # Errors
/// Of the mounts.
pub(crate) fn show(
    root: BorrowedFd<'_>,
    (name, at): (&str, &Path),
    mounts: &Mounts,
    binds: bool,
) -> io::Result<Option<PathBuf>> {
    let lower = Path::new("..").join(SHOWN).join(name);
    if binds {
        bind(root, &lower, at)?;
        return Ok(None);
    }
    let mut shown = Showing { root, mounts, left: PIECES_MAX, bound: None };
    shown.top(Path::new(name), &lower, at)?;
    Ok(shown.bound)
}

struct Showing<'a> {
    root: BorrowedFd<'a>,
    mounts: &'a Mounts,
    /// How many entries may still be shown one by one.
    left: usize,
    bound: Option<PathBuf>,
}

impl Showing<'_> {
    /// Shows the whole. A directory that is split lies in a file system of its own, which is read-only when
    /// it is done: the place may be in a home that commands write.
    fn top(&mut self, name: &Path, lower: &Path, at: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(lower)?;
        if !found.is_dir() || !self.mounts.are_below(name) {
            return self.entry(name, lower, at);
        }
        let mode = format!("{:o}", found.mode() & MODE);
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let own = tree::make("tmpfs", &[("size", "1m"), ("mode", &mode)], attributes)?;
        put(self.root, at, own.as_fd())?;
        match self.each(name, lower, at) {
            Ok(true) => sys::mount_setattr(own.as_fd(), false, attr::READ_ONLY, None),
            // Too much to show, or something that this user may not look at.
            Ok(false) | Err(_) => {
                tree::detach_at(at)?;
                self.whole(lower, at)
            }
        }
    }

    fn entry(&mut self, name: &Path, lower: &Path, at: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(lower)?;
        if found.is_dir() && self.mounts.are_below(name) {
            tree::place(self.root, at, Kind::Directory)?;
            // In a file system of this root's own, where no link stands.
            let place = at.strip_prefix("/").unwrap_or(at);
            rustix::fs::chmodat(
                self.root,
                place,
                Mode::from_raw_mode(found.mode() & MODE),
                AtFlags::empty(),
            )?;
            return if self.each(name, lower, at)? { Ok(()) } else { Err(io::ErrorKind::Other.into()) };
        }
        if found.is_dir() {
            return match overlay(lower) {
                Ok(overlay) => put(self.root, at, overlay.as_fd()),
                Err(_) => self.whole(lower, at),
            };
        }
        if found.is_file() {
            return bind(self.root, lower, at);
        }
        if found.is_symlink() {
            return tree::write(self.root, at, Content::Link(&fs::read_link(lower)?));
        }
        // Sockets, pipes and devices are not shown.
        Ok(())
    }

    /// Shows the entries of a directory one by one: below one of them something is mounted. Returns whether
    /// there are not too many.
    fn each(&mut self, name: &Path, lower: &Path, at: &Path) -> io::Result<bool> {
        let entries = fs::read_dir(lower)?.take(self.left + 1).collect::<io::Result<Vec<_>>>()?;
        if entries.len() > self.left {
            return Ok(false);
        }
        self.left -= entries.len();
        for entry in entries {
            let entry = entry.file_name();
            match self.entry(&name.join(&entry), &lower.join(&entry), &at.join(&entry)) {
                // It has gone meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
        Ok(true)
    }

    /// Binds a directory: a socket in it can be connected to.
    fn whole(&mut self, lower: &Path, at: &Path) -> io::Result<()> {
        self.bound.get_or_insert_with(|| at.to_path_buf());
        bind(self.root, lower, at)
    }
}

fn bind(root: BorrowedFd<'_>, lower: &Path, at: &Path) -> io::Result<()> {
    let tree = tree::open_at(root, lower)?;
    // What was no socket when it was looked at may be one by now.
    if !matches!(FileType::from_raw_mode(fstat(&tree)?.st_mode), FileType::Directory | FileType::RegularFile)
    {
        return Ok(());
    }
    tree::restrict(tree.as_fd(), Access::ReadOnly, None)?;
    put(root, at, tree.as_fd())
}

fn put(root: BorrowedFd<'_>, at: &Path, tree: BorrowedFd<'_>) -> io::Result<()> {
    let place = tree::place(root, at, tree::kind_of(tree)?)?;
    tree::attach(tree, place.as_fd())
}

fn overlay(lower: &Path) -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    let layers = [EMPTY.as_ref(), escaped(lower).as_os_str()].join(OsStr::new(":"));
    // Nobody mounts file systems at a name that is no text, so nothing is lost.
    let layers = layers.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    tree::make("overlay", &[("lowerdir", layers)], attributes)
}

/// A path as overlays read one: a colon would end it.
fn escaped(path: &Path) -> OsString {
    let mut escaped = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b':' | b'\\') {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    OsString::from_vec(escaped)
}

#[cfg(test)]
mod tests {
    use super::{Mounts, escaped, unescaped};
    use std::path::{Path, PathBuf};

    #[test]
    fn paths_are_written_and_read_as_the_kernel_does() {
        assert_eq!(unescaped(br"/a\040b\011c\134d"), PathBuf::from("/a b\tc\\d"));
        assert_eq!(unescaped(br"/a\04"), PathBuf::from(r"/a\04"));
        assert_eq!(escaped(Path::new(r"a:b\c")), r"a\:b\\c");
    }

    #[test]
    fn mounts_are_those_below_a_tree_of_that_very_name() {
        let mounts = Mounts(["1", "1/local", "10/x", "1/local/a"].map(PathBuf::from).into());
        let below = ["1", "1/local", "10", "10/x", "2"].map(|name| mounts.are_below(Path::new(name)));
        assert_eq!(below, [true, true, true, false, false]);
    }
}
