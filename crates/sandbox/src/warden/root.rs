//! The root of one sandbox: what its init puts into the one that the holder made.

use super::Ground;
use crate::{
    apart::{self, Mounts},
    mask,
    stage::STAGING,
    sys::{self, attr},
    tree,
    wire::{Header, View},
};
use bailey_protocol::Wall;
use rustix::mount::MountAttrFlags;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

/// What was done, and how it failed.
type FailedStep = (String, io::Error);

/// The rest of the root, and then no way back: the old root goes. Returns whether a directory of the host had
/// to be bound.
///
/// # Errors
/// Names the step.
pub(super) fn finish(ground: &Ground, header: &Header, extra: &[OwnedFd]) -> Result<bool, FailedStep> {
    let step = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| (what, error)
    };
    let root = tree::directory(".").map_err(step("the root"))?;
    let mut has_bound = false;
    proc(ground, &root).map_err(step("/proc (a fully visible one is needed outside)"))?;
    if header.view == View::Workspace {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let size = (header.limits.memory_bytes / 4).to_string();
        let shm = tree::make("tmpfs", &[("size", &size), ("mode", "1777")], attributes)
            .map_err(step("/dev/shm"))?;
        put(&root, Path::new("/dev/shm"), &shm).map_err(step("/dev/shm"))?;
        // Whoever shared one with a command could read what is typed there, and answer in its place.
        let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "620")];
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let pts = tree::make("devpts", &options, attributes).map_err(step("a devpts"))?;
        put(&root, Path::new("/dev/pts"), &pts).map_err(step("/dev/pts"))?;
        for (number, path) in header.extra_reads.iter().enumerate() {
            has_bound |= extra_read(ground, &root, (number, path), extra.get(number)).map_err(step(path))?;
        }
        // Masks come when the root is read-only.
        mask::place(root.as_fd()).map_err(step("a place for masks"))?;
    }
    sys_read_only(&root).map_err(step("the root"))?;
    rustix::process::pivot_root(".", ".").map_err(|error| step("pivot_root")(error.into()))?;
    tree::detach(".").map_err(step("the old root"))?;
    std::env::set_current_dir("/").map_err(step("the new root"))?;
    Ok(has_bound)
}

/// What a fresh /proc still tells of the host's user: the kernel's keys, whose names are no part of any
/// namespace.
const OF_THE_USER: [&str; 2] = ["proc/keys", "proc/key-users"];

/// A fresh /proc; without a pid namespace of its own there can be none, and the host's is bound.
fn proc(ground: &Ground, root: &OwnedFd) -> io::Result<()> {
    if ground.config.without.contains(&Wall::PidNamespace) {
        return put(root, Path::new("/proc"), &tree::open(Path::new("/proc"))?);
    }
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    put(root, Path::new("/proc"), &tree::make("proc", &[], attributes)?)?;
    for name in OF_THE_USER {
        match tree::beneath(root.as_fd(), Path::new(name)) {
            Ok(place) => tree::attach(tree::open_at(root.as_fd(), "dev/null")?.as_fd(), place.as_fd())?,
            // A kernel without keys.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Shows what one effect may read besides. Returns whether it is a directory that had to be bound.
fn extra_read(
    ground: &Ground,
    root: &OwnedFd,
    (number, path): (usize, &str),
    opened: Option<&OwnedFd>,
) -> io::Result<bool> {
    let path = Path::new(path);
    let own;
    let tree = match opened {
        Some(tree) => tree,
        None => {
            own = tree::open_canonical(path)?;
            &own
        }
    };
    // The staging directory is the session's, and another effect's may have left a place there.
    let kind = tree::kind_of(tree.as_fd())?;
    let name = format!("{kind:?}{number}");
    apart::attach(tree::directory("..")?.as_fd(), &name, tree.as_fd())?;
    let mounts = Mounts::read(Path::new(STAGING))?;
    Ok(apart::show(root.as_fd(), (&name, path), &mounts, ground.binds())?.is_some())
}

fn put(root: &OwnedFd, at: &Path, tree: &OwnedFd) -> io::Result<()> {
    let place = tree::place(root.as_fd(), at, tree::kind_of(tree.as_fd())?)?;
    tree::attach(tree.as_fd(), place.as_fd())
}

/// The root's own tmpfs; what is mounted beneath keeps its attributes.
fn sys_read_only(root: &OwnedFd) -> io::Result<()> {
    sys::mount_setattr(root.as_fd(), false, attr::READ_ONLY, None)
}
