//! Disk space that Bailey sets aside for entries that it must write when the disk is full: that everything is
//! stopped, or that a session is removed, which frees space again.

use rustix::fs::{FallocateFlags, OFlags, fallocate, statvfs};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

/// The file in a home that holds the space.
pub const NAME: &str = "reserve";
/// The file lies beside this one.
const JOURNAL: &str = "journal.db";
/// The size: a few pages of the journal, and the space needed beside them.
const BYTES: u64 = 1 << 20;
/// Opening the file follows no link and does not wait for a pipe.
const PLAIN: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
/// The unit of a file's space on disk, in bytes (stat(2)).
const BLOCK: u64 = 512;
/// Bailey sets the space aside only when this much is free.
const ROOM_MIN: u64 = 16 << 20;

/// Sets the space aside, if there is a journal and enough free space. When that fails, the home has no
/// reserve.
pub(crate) fn keep(root: &Path) {
    let path = root.join(NAME);
    if is_kept(root) || !root.join(JOURNAL).exists() || room(root).is_none_or(|room| room < ROOM_MIN) {
        return;
    }
    // The file may also exist without any space, after a killed start, or in a copy.
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(PLAIN);
    let Ok(file) = options.open(&path) else { return };
    if fallocate(&file, FallocateFlags::empty(), 0, BYTES).is_err() {
        fs::remove_file(&path).ok();
    }
}

/// Frees the reserve when no other space is left. Returns whether it did.
pub fn give_up(root: &Path) -> bool {
    room(root).is_some_and(|room| room < BYTES) && fs::remove_file(root.join(NAME)).is_ok()
}

/// A message for the user when space is short. `None` when there is enough.
pub fn lack(root: &Path) -> Option<String> {
    let room = room(root)?;
    let is_kept = is_kept(root);
    let kept = if is_kept { "" } else { ", and no space is kept for an emergency stop" };
    if room < BYTES {
        return Some(format!(
            "the disk of this home is full, so nothing that has to be recorded can begin{kept}"
        ));
    }
    if room < ROOM_MIN {
        return Some(format!("the disk of this home has {} MiB left{kept}", room >> 20));
    }
    // The process that opened the home has just tried to set it aside.
    let is_impossible = !is_kept && root.join(JOURNAL).exists();
    is_impossible.then(|| {
        "no space can be kept in this home (because of its file system, or a quota), so on a full disk an \
         emergency stop has none"
            .into()
    })
}

/// Whether the file really takes disk space, and is not only a name.
fn is_kept(root: &Path) -> bool {
    root.join(NAME).symlink_metadata().is_ok_and(|about| about.blocks() * BLOCK >= BYTES)
}

/// How much the owner can write there, in bytes. A file system that counts nothing, such as a memory file
/// system without a limit, has endless space.
fn room(root: &Path) -> Option<u64> {
    let stat = statvfs(root).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    Some(if stat.f_blocks == 0 { u64::MAX } else { free })
}
