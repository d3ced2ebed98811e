//! Room that is kept for what must be written where there is none left: that everything is stopped, or that a
//! session is removed, which makes room again.

use rustix::fs::{FallocateFlags, OFlags, fallocate, statvfs};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

/// The file in a home whose room it is.
pub const NAME: &str = "reserve";
/// It is kept beside that.
const JOURNAL: &str = "journal.db";
/// How much room: a few pages of the journal, and what it needs beside them.
const BYTES: u64 = 1 << 20;
/// A link there is not followed, and a pipe is not waited for.
const PLAIN: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
/// What a file's room is counted in, in bytes (stat(2)).
const BLOCK: u64 = 512;
/// It is kept where there is so much more.
const ROOM_MIN: u64 = 16 << 20;

/// Keeps it, where there is a journal, and room for it. Where it cannot be kept, there is none.
pub(crate) fn keep(root: &Path) {
    let path = root.join(NAME);
    if is_kept(root) || !root.join(JOURNAL).exists() || room(root).is_none_or(|room| room < ROOM_MIN) {
        return;
    }
    // Also one that holds no room yet, as a start that was killed leaves it, or a copy.
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(PLAIN);
    let Ok(file) = options.open(&path) else { return };
    if fallocate(&file, FallocateFlags::empty(), 0, BYTES).is_err() {
        fs::remove_file(&path).ok();
    }
}

/// Gives it up, where there is no other room left; whether it did.
pub fn give_up(root: &Path) -> bool {
    room(root).is_some_and(|room| room < BYTES) && fs::remove_file(root.join(NAME)).is_ok()
}

/// What is short of room, for people; none where there is enough.
pub fn lack(root: &Path) -> Option<String> {
    let room = room(root)?;
    let is_kept = is_kept(root);
    let kept = if is_kept { "" } else { ", and none is kept for an emergency stop" };
    if room < BYTES {
        return Some(format!("the disk of this home is full: what cannot be recorded does not begin{kept}"));
    }
    if room < ROOM_MIN {
        return Some(format!("the disk of this home has {} MiB left{kept}", room >> 20));
    }
    // Whoever opened the home has just tried to.
    let is_impossible = !is_kept && root.join(JOURNAL).exists();
    is_impossible.then(|| {
        "no room can be set aside in this home (by its file system, or for a quota), so that an emergency stop has none on a full disk".into()
    })
}

/// Whether it takes the disk's room, and not its name alone.
fn is_kept(root: &Path) -> bool {
    root.join(NAME).symlink_metadata().is_ok_and(|about| about.blocks() * BLOCK >= BYTES)
}

/// How much its owner can write there, in bytes. What counts nothing, such as a memory file system without a
/// limit, has no end of it.
fn room(root: &Path) -> Option<u64> {
    let stat = statvfs(root).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    Some(if stat.f_blocks == 0 { u64::MAX } else { free })
}
