//! Who holds locks of files, as the kernel tells it: what a file says of its holder is the word of whoever can write there.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
};

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Alone,
    Shared,
}

/// A file as the kernel's list names it: the numbers of its file system, and its own.
type Name = (u32, u32, u64);

/// The locks on whole files (flock(2)) that are held at one moment. Of processes in another pid namespace than that of `/proc`
/// the kernel tells nothing.
#[derive(Debug, Default)]
pub struct FileLocks {
    held: Vec<(Name, Mode, u32)>,
    /// The numbers of a file system by its mount's. What stat(2) says is another number on some file systems.
    mounts: HashMap<u64, (u32, u32)>,
}

impl FileLocks {
    /// Those of this moment.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn now() -> io::Result<Self> {
        let locks = fs::read_to_string("/proc/locks")?;
        let mounts = fs::read("/proc/self/mountinfo")?;
        let mounts = String::from_utf8_lossy(&mounts).lines().filter_map(mount).collect();
        Ok(Self { held: locks.lines().filter_map(held).collect(), mounts })
    }

    /// The processes that hold a file's lock in this way.
    pub(crate) fn holders(&self, file: &File, mode: Mode) -> io::Result<Vec<u32>> {
        let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
        let number = |name: &str| {
            about
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse::<u64>().ok())
        };
        let Some((major, minor)) = number("mnt_id").and_then(|mount| self.mounts.get(&mount).copied()) else {
            return Ok(Vec::new());
        };
        // Older kernels tell the second number by stat(2) alone.
        let inode = match number("ino") {
            Some(inode) => inode,
            None => file.metadata()?.ino(),
        };
        let held = self.held.iter().filter(|(name, how, _)| (*name, *how) == ((major, minor, inode), mode));
        Ok(held.map(|(.., process)| *process).collect())
    }
}

/// `3: FLOCK  ADVISORY  WRITE 4242 fe:00:12345 0 EOF`; one that is waited for has an arrow.
fn held(line: &str) -> Option<(Name, Mode, u32)> {
    let mut words = line.split_whitespace().skip(1);
    words.next().filter(|kind| *kind == "FLOCK")?;
    let mode = match words.nth(1)? {
        "WRITE" => Mode::Alone,
        "READ" => Mode::Shared,
        _ => return None,
    };
    let process = words.next()?.parse().ok().filter(|process| *process > 0)?;
    let mut name = words.next()?.split(':');
    let major = u32::from_str_radix(name.next()?, 16).ok()?;
    let minor = u32::from_str_radix(name.next()?, 16).ok()?;
    Some(((major, minor, name.next()?.parse().ok()?), mode, process))
}

/// `36 35 98:0 /mnt1 /mnt2 rw - ext3 /dev/root rw`: the mount's number, and its file system's.
fn mount(line: &str) -> Option<(u64, (u32, u32))> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let (major, minor) = words.nth(1)?.split_once(':')?;
    Some((number, (major.parse().ok()?, minor.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_locks_that_are_held_by_somebody_are_taken_from_the_list() {
        assert_eq!(
            held("3: FLOCK  ADVISORY  WRITE 4242 fe:00:12345 0 EOF"),
            Some(((0xfe, 0, 12345), Mode::Alone, 4242))
        );
        assert_eq!(held("12: FLOCK  ADVISORY  READ 7 00:1b:9 0 EOF"), Some(((0, 0x1b, 9), Mode::Shared, 7)));
        for other in [
            "3: -> FLOCK  ADVISORY  WRITE 4242 fe:00:12345 0 EOF",
            "4: POSIX  ADVISORY  WRITE 4242 fe:00:12345 0 EOF",
            "5: OFDLCK ADVISORY  WRITE -1 fe:00:12345 0 EOF",
            "6: FLOCK  ADVISORY  WRITE -1 fe:00:12345 0 EOF",
            "7: FLOCK  ADVISORY  WRITE 0 fe:00:12345 0 EOF",
            "8: FLOCK  ADVISORY  WRITE 4242 <none>:0 0 EOF",
            "",
        ] {
            assert_eq!(held(other), None, "{other}");
        }
    }
}
