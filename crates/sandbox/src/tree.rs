//! Mounts by descriptor: opened, given their attributes, and attached beneath a root that is held open.
//!
//! Nothing here follows a symbolic link at the place of a mount: what a session's programs left in its home
//! or its temporary files must not decide where the next mount goes.

use crate::sys::{self, attr};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags},
    io::Errno,
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags},
};
use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

/// The longest part of a path that is opened at once, in bytes.
const STEP_BYTES: usize = 2_048;

/// A copy of the mounts at a path, attached nowhere yet. A last symbolic link is followed.
///
/// # Errors
/// `ENOENT`, or `EPERM` without CAP_SYS_ADMIN in the mount namespace.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// The same of a canonical path: no link in it is followed, so it leads where it led when it was judged.
///
/// # Errors
/// `ELOOP` when a part of it has become a link.
pub(crate) fn open_canonical(path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = rustix::fs::openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    open_at(fd.as_fd(), "")
}

/// The same, of an open directory or file.
///
/// # Errors
/// Of open_tree(2).
pub(crate) fn open_at(at: BorrowedFd<'_>, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(rustix::mount::open_tree(at, path.as_ref(), flags)?)
}

/// What a copied mount is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
    Device,
}

/// Gives a tree its attributes: no set-user-id ever, no devices but where one is meant.
///
/// # Errors
/// `EINVAL` when `owner` is given and the file system cannot map owners.
pub(crate) fn restrict(
    tree: BorrowedFd<'_>,
    access: Access,
    owner: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let set = match access {
        Access::ReadOnly => attr::READ_ONLY | attr::NO_SUID | attr::NO_DEV,
        Access::ReadWrite => attr::NO_SUID | attr::NO_DEV,
        Access::Device => attr::NO_SUID,
    };
    sys::mount_setattr(tree, true, set, owner)
}

/// Attaches a tree at an open place.
///
/// # Errors
/// Of move_mount(2).
pub(crate) fn attach(tree: BorrowedFd<'_>, at: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree, "", at, "", flags)?)
}

/// A new file system of a kind without a device, attached nowhere yet. An option without a value is a flag.
///
/// # Errors
/// Of fsopen(2), fsconfig(2), fsmount(2).
pub(crate) fn make(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        match *value {
            "" => rustix::mount::fsconfig_set_flag(context.as_fd(), *key)?,
            value => rustix::mount::fsconfig_set_string(context.as_fd(), *key, value)?,
        }
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Whether a mount's file system takes no writes.
///
/// # Errors
/// Of fstatvfs(3).
pub(crate) fn is_read_only(tree: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(rustix::fs::fstatvfs(tree)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// What must stand at a place for a tree to be attached there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
}

/// Whether an open file is a directory.
///
/// # Errors
/// Of fstat(2).
pub(crate) fn kind_of(fd: BorrowedFd<'_>) -> io::Result<Kind> {
    let mode = rustix::fs::fstat(fd)?.st_mode;
    Ok(if mode & 0o170_000 == 0o040_000 { Kind::Directory } else { Kind::File })
}

/// Opens the place of an absolute path beneath `root`, made when it is not there.
///
/// # Errors
/// `ELOOP` when a symbolic link stands in the way; of openat2(2) and mkdirat(2).
pub(crate) fn place(root: BorrowedFd<'_>, path: &Path, kind: Kind) -> io::Result<OwnedFd> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    match beneath(root, relative) {
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {}
        done => return done,
    }
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    let (true, Some(parent), Some(name)) = (is_plain, relative.parent(), relative.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a plain absolute path"));
    };
    // What leads there is there more often than not: mounts stand side by side.
    let at = place(root, parent, Kind::Directory)?;
    step(at.as_fd(), name, kind)
}

fn step(at: BorrowedFd<'_>, name: &OsStr, kind: Kind) -> io::Result<OwnedFd> {
    let made = match kind {
        Kind::Directory => rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755)),
        Kind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(at, name, flags, Mode::from_raw_mode(0o644)).map(drop)
        }
    };
    match made {
        Ok(()) | Err(Errno::EXIST) => beneath(at, Path::new(name)),
        Err(error) => Err(error.into()),
    }
}

/// Opens what stands at a relative path beneath `root`, no link followed.
///
/// # Errors
/// Of openat2(2).
pub(crate) fn beneath(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    Ok(open_beneath(root, path, OFlags::PATH | OFlags::CLOEXEC)?)
}

/// Whether nothing stands at a relative path beneath `root`. What lies behind a link or in another mount may
/// be there.
pub(crate) fn is_absent(root: BorrowedFd<'_>, path: &Path) -> bool {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The kernel finds nothing at an empty path, either.
    !path.as_os_str().is_empty()
        && rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
            .is_err_and(|error| error == Errno::NOENT)
}

/// The same, opened with these flags. A path may be longer than the kernel takes one (PATH_MAX): who goes
/// down step by step makes such.
///
/// # Errors
/// Of openat2(2).
pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |from: BorrowedFd<'_>, path: &Path, flags| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        rustix::fs::openat2(from, path, flags, Mode::empty(), resolve)
    };
    if path.as_os_str().len() < STEP_BYTES {
        return open(root, path, flags);
    }
    let mut reached: Option<OwnedFd> = None;
    let mut step = PathBuf::new();
    for part in path.components() {
        if step.as_os_str().len() + part.as_os_str().len() >= STEP_BYTES {
            let from = reached.as_ref().map_or(root, AsFd::as_fd);
            let next = open(from, &step, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
            (reached, step) = (Some(next), PathBuf::new());
        }
        step.push(part);
    }
    open(reached.as_ref().map_or(root, AsFd::as_fd), &step, flags)
}

/// Takes away what is attached on top at `path`, relative to `root`.
///
/// # Errors
/// Of umount2(2).
pub(crate) fn detach(path: &str) -> io::Result<()> {
    use rustix::mount::UnmountFlags;
    Ok(rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}

/// The same at an absolute path of the root, which is the working directory.
///
/// # Errors
/// Of umount2(2).
pub(crate) fn detach_at(path: &Path) -> io::Result<()> {
    use rustix::mount::UnmountFlags;
    let relative = path.strip_prefix("/").unwrap_or(path);
    Ok(rustix::mount::unmount(relative, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}

/// Makes a symbolic link or a file with this text beneath `root`; its directory is made when it is not there.
///
/// # Errors
/// Of symlinkat(2), openat(2), write(2).
pub(crate) fn write(root: BorrowedFd<'_>, path: &Path, content: Content<'_>) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = place(root, parent, Kind::Directory)?;
    match content {
        Content::Link(target) => rustix::fs::symlinkat(target, &parent, name)?,
        Content::Text(text) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o444))?;
            rustix::io::write(&file, text.as_bytes())?;
        }
    }
    Ok(())
}

/// What [`write`] makes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    Link(&'a Path),
    Text(&'a str),
}

/// Opens a directory for `*at` calls.
///
/// # Errors
/// Of openat(2).
pub(crate) fn directory(path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(CWD, path.as_ref(), flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::{directory, is_absent};
    use std::{os::fd::AsFd as _, path::Path};

    #[test]
    fn what_another_mount_may_hold_is_not_absent() {
        let root = directory("/").unwrap();
        let absent = |path| is_absent(root.as_fd(), Path::new(path));
        assert!(absent("nothing-is-called-so") && absent("nothing-is-called-so/below"));
        // /proc is a mount, in which there is nothing of that name.
        for path in ["proc/nothing-is-called-so", "proc", "proc/self/nothing", "..", ".", ""] {
            assert!(!absent(path), "{path}");
        }
    }
}
