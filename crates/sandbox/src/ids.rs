//! Who a sandbox's processes are on the host.
//!
//! An ordinary user's sandboxes run as that user: the kernel lets nobody else be mapped without help. Root's
//! run as an unprivileged uid that owns nothing; mounts whose owners are mapped (idmapped mounts) let it work
//! on the project, and what it writes belongs to the project's owner on disk.

use crate::{
    plan::ID,
    sys::{self, Namespaces},
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::Path,
};

/// The uid and gid of root's sandboxes on the host. It lies where nothing is given out: above what systemd
/// gives to containers (to 1,879,048,191) and above the ranges of /etc/subuid (to 600,100,000), whose first
/// one, at 100,000, belongs to the host's first ordinary user.
const UNPRIVILEGED: u32 = 1_900_000_000;

/// The way ids are mapped here.
#[derive(Debug)]
pub(crate) enum Ids {
    /// We are root: sandboxes run as [`UNPRIVILEGED`].
    Root(Owners),
    /// We are not: sandboxes run as ourselves.
    User,
}

/// User namespaces that map an owner on disk to [`UNPRIVILEGED`], one for each owner.
#[derive(Debug, Default)]
pub(crate) struct Owners(BTreeMap<(u32, u32), OwnedFd>);

impl Ids {
    /// Looks at who we are. Without user namespaces nothing can be mapped, not even by root.
    pub(crate) fn new(has_user_namespaces: bool) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        if is_root && has_user_namespaces { Self::Root(Owners::default()) } else { Self::User }
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Self::Root(_))
    }
}

impl Owners {
    /// The user namespace that maps the owner of `path` to the inside's user.
    ///
    /// # Errors
    /// When `path` cannot be looked at, or no user namespace can be made.
    pub(crate) fn of(&mut self, path: &Path) -> io::Result<BorrowedFd<'_>> {
        let owner = fs::metadata(path)?;
        let key = (owner.uid(), owner.gid());
        let namespace: &OwnedFd = match self.0.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(namespace(key.0, key.1)?),
        };
        Ok(namespace.as_fd())
    }
}

/// Writes the maps of a child that waits for them. Root only.
///
/// # Errors
/// When the maps cannot be written.
pub(crate) fn map_child(child: Pid) -> io::Result<()> {
    write_maps(
        &format!("/proc/{}", child.as_raw_pid()),
        &format!("{ID} {UNPRIVILEGED} 1"),
        &format!("{ID} {UNPRIVILEGED} 1"),
    )
}

/// Writes the maps of this process, which has just entered a new user namespace as the ordinary user `uid`,
/// `gid`.
///
/// # Errors
/// When the maps cannot be written.
pub(crate) fn map_self(uid: u32, gid: u32) -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // The kernel gives the files of a process that is not dumpable to root, so for these writes it must be.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    fs::write("/proc/self/setgroups", "deny")?;
    let written = write_maps("/proc/self", &format!("{ID} {uid} 1"), &format!("{ID} {gid} 1"));
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    written
}

/// Becomes the inside's user, without any further group. Root's children only.
///
/// # Errors
/// When the maps do not hold.
pub(crate) fn become_user() -> io::Result<()> {
    use rustix::{fs::Gid, fs::Uid, thread};
    let (uid, gid) = (Uid::from_raw(ID), Gid::from_raw(ID));
    thread::set_thread_groups(&[])?;
    thread::set_thread_res_gid(gid, gid, gid)?;
    thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

fn write_maps(process: &str, uid_map: &str, gid_map: &str) -> io::Result<()> {
    fs::write(format!("{process}/uid_map"), uid_map)?;
    fs::write(format!("{process}/gid_map"), gid_map)
}

/// A user namespace that a descriptor alone keeps alive.
fn namespace(uid: u32, gid: u32) -> io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let Some(child) = sys::fork(Namespaces::USER)? else {
        drop(write);
        // It ends when the parent is done (or gone) and the pipe closes.
        let ended = rustix::io::read(&read, &mut [0u8; 1]).is_ok();
        sys::exit(i32::from(!ended));
    };
    let process = format!("/proc/{}", child.as_raw_pid());
    let made = write_maps(&process, &format!("{uid} {UNPRIVILEGED} 1"), &format!("{gid} {UNPRIVILEGED} 1"))
        .and_then(|()| File::open(format!("{process}/ns/user")));
    drop(write);
    kill_process(child, Signal::KILL)?;
    waitpid(Some(child), WaitOptions::empty())?;
    made.map(OwnedFd::from)
}
