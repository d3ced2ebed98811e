//! Who holds locks of files, as the kernel tells it: what a file says of its holder is the word of whoever
//! can write there.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _},
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
};

/// The kernel gives its list in parts of a page, each of one moment. What is this short was one, and had room
/// for more.
const PART_BYTES: usize = 2048;

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Alone,
    Shared,
}

/// A file as the kernel's list names it: the numbers of its file system, and its own.
type Name = (u32, u32, u64);

/// The locks on whole files (flock(2)) that are held at one moment. Of processes in another pid namespace
/// than that of `/proc` the kernel tells nothing.
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
        let (list, is_whole) = list()?;
        let mut held: Vec<_> = list.lines().filter_map(held).collect();
        if !is_whole {
            held.extend(of_open_files());
            held.sort_unstable();
            held.dedup();
        }
        let mounts = fs::read("/proc/self/mountinfo")?;
        let mounts = String::from_utf8_lossy(&mounts).lines().filter_map(mount).collect();
        Ok(Self { held, mounts })
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

/// The kernel's list, and whether it is all of one moment. Between two parts of it the kernel remembers only
/// how many it told, and where others let go meanwhile it passes over one that is held all along.
fn list() -> io::Result<(String, bool)> {
    let mut file = File::open("/proc/locks")?;
    // What is asked for in smaller pieces comes in smaller parts.
    let mut list = vec![0; 2 * PART_BYTES];
    let first = file.read(&mut list)?;
    list.truncate(first);
    let is_whole = first < PART_BYTES;
    if !is_whole {
        file.read_to_end(&mut list)?;
    }
    Ok((String::from_utf8_lossy(&list).into_owned(), is_whole))
}

/// The locks as each process's open files tell them, which misses none that is held all along; of processes
/// that this one may look at.
fn of_open_files() -> Vec<(Name, Mode, u32)> {
    let mut locks = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = process.path();
        let is_process =
            process.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        // It may have ended, or be somebody else's.
        let Some(files) = is_process.then(|| fs::read_dir(process.join("fd")).ok()).flatten() else {
            continue;
        };
        for file in files.flatten() {
            // Sockets and pipes, of which there are many, have no path.
            if fs::read_link(file.path()).is_ok_and(|path| path.is_absolute()) {
                let about =
                    fs::read_to_string(process.join("fdinfo").join(file.file_name())).unwrap_or_default();
                locks.extend(about.lines().filter_map(|line| held(line.strip_prefix("lock:")?)));
            }
        }
    }
    locks
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
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    #[test]
    fn a_lock_is_told_however_many_others_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| File::create(folder.path().join(name)).unwrap();
        let kept = file("kept");
        kept.lock().unwrap();
        let is_told = |locks: FileLocks| locks.holders(&kept, Mode::Alone).unwrap() == [std::process::id()];
        let is_over = AtomicBool::new(false);
        let mut in_parts = 0;
        thread::scope(|scope| {
            for thread in 0..3 {
                let files: Vec<_> = (0..40).map(|number| file(&format!("{thread}-{number}"))).collect();
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        files.iter().for_each(|file| file.lock().unwrap());
                        files.iter().rev().for_each(|file| file.unlock().unwrap());
                    }
                });
            }
            let mut told = 0;
            for _ in 0..300 {
                in_parts += usize::from(!list().unwrap().1);
                told += usize::from(is_told(FileLocks::now().unwrap()));
            }
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(told, 300);
        });
        assert!(in_parts > 0, "the list was short each time: nothing was tried");
    }

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
