//! Room that is kept for what must be written where there is none left: that everything is stopped, or that a session is removed,
//! which makes room again.

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::{fs, os::unix::fs::OpenOptionsExt as _, path::Path};

/// The file in a home whose room it is.
pub(crate) const NAME: &str = "reserve";
/// How much room: a few pages of the journal, and what it needs beside them.
const BYTES: u64 = 1 << 20;
/// It is kept where there is so much more.
const ROOM_MIN: u64 = 16 << 20;

/// Keeps it, where there is a journal, and room for it. Where it cannot be kept, there is none.
pub(crate) fn keep(root: &Path) {
    let path = root.join(NAME);
    if path.exists() || !root.join("journal.db").exists() || room(root).is_none_or(|room| room < ROOM_MIN) {
        return;
    }
    let Ok(file) = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) else {
        return;
    };
    if fallocate(&file, FallocateFlags::empty(), 0, BYTES).is_err() {
        fs::remove_file(&path).ok();
    }
}

/// Gives it up, where there is no other room left; whether it did.
pub(crate) fn give_up(root: &Path) -> bool {
    room(root).is_some_and(|room| room < BYTES) && fs::remove_file(root.join(NAME)).is_ok()
}

/// What is short of room, for people; none where there is enough.
pub(crate) fn lack(root: &Path) -> Option<String> {
    let room = room(root).filter(|room| *room < ROOM_MIN)?;
    let kept = if root.join(NAME).exists() { "" } else { ", and none is kept for an emergency stop" };
    Some(if room < BYTES {
        format!("the disk of this home is full: what cannot be recorded does not begin{kept}")
    } else {
        format!("the disk of this home has {} MiB left{kept}", room >> 20)
    })
}

/// How much its owner can write there, in bytes. What counts nothing, such as a memory file system without a limit, has no end of it.
fn room(root: &Path) -> Option<u64> {
    let stat = statvfs(root).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    Some(if stat.f_blocks == 0 { u64::MAX } else { free })
}
