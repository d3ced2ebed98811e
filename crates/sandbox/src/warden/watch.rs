//! Looking at what the kernel was not asked to hold: the memory of a tree, the size of a session's folder,
//! and the packets that found no way out.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, Stat, StatFs, accessat, chmod, fstat},
    io::Errno,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    ops::Range,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::fs::{FileExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

/// What one directory entry counts beyond its blocks: an inode and a name are not free either.
const ENTRY_BYTES: u64 = 1024;
/// The magic number of tmpfs, which memory without a name lies in, too (statfs(2)).
const TMPFS: rustix::fs::FsWord = 0x0102_1994;
/// The most descriptors that one look at a tree's files counts.
const LOOKS_MAX: usize = 50_000;
/// The most that stays free on a disk where the configuration names no amount.
const RESERVE_MAX: u64 = 1 << 30;
/// The most processes that one look at a tree's memory counts.
const PROCESSES_MAX: usize = 10_000;

/// Whether something can be received, or will never be.
pub(super) fn has_input(socket: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// The children of this process, which has one thread.
pub(super) fn children() -> impl Iterator<Item = Pid> {
    let own = getpid().as_raw_pid();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let pids = children.split_whitespace().map(str::parse).filter_map(Result::ok);
    pids.filter_map(Pid::from_raw).collect::<Vec<_>>().into_iter()
}

/// Whose memory counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// All processes of this pid namespace, and its /dev/shm.
    Namespace,
    /// What this process started, and what that did, where no namespace holds it together. Such a tree writes
    /// no /dev/shm.
    Below,
}

impl Tree {
    fn processes(self) -> Vec<PathBuf> {
        match self {
            Self::Namespace => all(),
            Self::Below => below(),
        }
    }
}

/// Bytes of files without a name that a tree holds open, which no walk over names finds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nameless {
    pub(super) on_disk: u64,
    /// Those of memfd_create(2), and what else lies in memory alone; /dev/shm counts its own.
    pub(super) in_memory: u64,
}

impl Nameless {
    /// Those of a tree.
    pub(super) fn of(tree: Tree) -> Self {
        let shared = fs::metadata("/dev/shm").map(|shared| shared.dev()).ok();
        let mut count =
            NamelessSearch { shared, sum: Self::default(), seen: BTreeSet::new(), looks: 0..LOOKS_MAX };
        for process in tree.processes() {
            let counted = match fs::read_dir(process.join("fd")) {
                Ok(open) => count.shown(open),
                // It hides its descriptors (`PR_SET_DUMPABLE`, prctl(2)), or is gone.
                Err(_) => count.hidden(&process),
            };
            if counted.is_none() {
                break;
            }
        }
        count.sum
    }
}

/// A search for files without a name.
struct NamelessSearch {
    /// The device of /dev/shm.
    shared: Option<u64>,
    sum: Nameless,
    seen: BTreeSet<(u64, u64)>,
    /// So many looks at most, so that a caller that waits for them is not held up by more.
    looks: Range<usize>,
}

impl NamelessSearch {
    /// Those of a process whose descriptors are shown; `None` once the looks are used up.
    fn shown(&mut self, open: fs::ReadDir) -> Option<()> {
        for open in open.flatten() {
            self.looks.next()?;
            // Looked at by its path, which opens nothing.
            let Ok(file) = rustix::fs::stat(open.path()) else { continue };
            self.add(&file, || rustix::fs::statfs(open.path()));
        }
        Some(())
    }

    /// Those of a process that hides them. Each number that may be a descriptor of it is tried by
    /// pidfd_getfd(2), which takes the right to trace it and no directory.
    fn hidden(&mut self, process: &Path) -> Option<()> {
        let pid = process.file_name().and_then(|name| name.to_str()?.parse().ok());
        let Some(Ok(process_fd)) =
            pid.and_then(Pid::from_raw).map(|pid| pidfd_open(pid, PidfdFlags::empty()))
        else {
            return Some(());
        };
        let most = fs::read_to_string(process.join("status")).unwrap_or_default();
        let most = most.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse().ok());
        for number in 0..most.unwrap_or(0) {
            self.looks.next()?;
            match pidfd_getfd(&process_fd, number, PidfdGetfdFlags::empty()) {
                Ok(open) => {
                    let Ok(file) = fstat(&open) else { continue };
                    self.add(&file, || rustix::fs::fstatfs(&open));
                }
                Err(Errno::BADF) => {}
                // It is gone, or Bailey may not look.
                Err(_) => return Some(()),
            }
        }
        Some(())
    }

    fn add(&mut self, file: &Stat, system: impl FnOnce() -> rustix::io::Result<StatFs>) {
        let is_file = FileType::from_raw_mode(file.st_mode) == FileType::RegularFile;
        let is_one = is_file && file.st_nlink == 0 && Some(file.st_dev) != self.shared;
        if !is_one || !self.seen.insert((file.st_dev, file.st_ino)) {
            return;
        }
        let bytes = u64::try_from(file.st_blocks).unwrap_or(0).saturating_mul(512);
        let is_memory = system().is_ok_and(|stat| stat.f_type == TMPFS);
        let part = if is_memory { &mut self.sum.in_memory } else { &mut self.sum.on_disk };
        *part = part.saturating_add(bytes);
    }
}

/// Bytes of a folder's disk that are free for this user, and all that it has.
pub(super) fn free(folder: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let stat = rustix::fs::fstatvfs(folder).ok()?;
    Some((stat.f_bavail.saturating_mul(stat.f_frsize), stat.f_blocks.saturating_mul(stat.f_frsize)))
}

/// How much of that a command leaves free: the reserve, or half of the free part where that is less already.
/// Else nothing would run on a disk that is nearly full, not even a command that makes room there.
pub(super) fn floor(reserve: Option<u64>, (free, all): (u64, u64)) -> u64 {
    let reserve = reserve.unwrap_or(RESERVE_MAX.min(all / 20));
    if free > reserve { reserve } else { free / 2 }
}

/// Bytes of segments that no process maps (shmget(2)), in an ipc namespace of its own.
fn segments() -> u64 {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    let column = |name: &str| head.iter().position(|word| *word == name);
    let (Some(mapped), Some(resident)) = (column("nattch"), column("rss")) else { return 0 };
    let of = |line: &Vec<&str>, column: usize| line.get(column).and_then(|word| word.parse::<u64>().ok());
    lines
        .filter(|line| of(line, mapped) == Some(0))
        .filter_map(|line| of(&line, resident))
        .fold(0, u64::saturating_add)
}

/// Whether a tree's memory is above `limit` bytes, with files in memory that have no name, which its
/// processes map or not.
///
/// Resident memory counts what several processes share more than once, so only when that is too much the
/// exact, slower measure (the proportional share of each) is taken.
pub(super) fn is_memory_above(limit: u64, tree: Tree, nameless: u64) -> bool {
    let shared_memory = match tree {
        Tree::Namespace => file_system_used("/dev/shm").saturating_add(segments()),
        Tree::Below => 0,
    };
    let processes = tree.processes();
    let sum = |file: &str, field: &str| {
        let each = processes.iter().map(|process| kilobytes(process, file, field));
        each.fold(0, u64::saturating_add)
    };
    let is_above = |file: &str, private: &str, shared: &str| {
        // What has no name may be mapped as well, and is there once.
        let shared = sum(file, shared).max(nameless);
        sum(file, private).saturating_add(shared).saturating_add(shared_memory) > limit
    };
    is_above("status", "RssAnon:", "RssShmem:") && is_above("smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
}

/// Tasks of this process's user, as far as /proc shows them to be.
pub(super) fn tasks_of_user() -> u64 {
    let own = rustix::process::geteuid().as_raw();
    let is_own = |process: &PathBuf| fs::metadata(process).is_ok_and(|found| found.uid() == own);
    let tasks = |process: PathBuf| fs::read_dir(process.join("task")).map_or(0, Iterator::count);
    all().into_iter().filter(is_own).map(|process| tasks(process) as u64).sum()
}

/// All processes that /proc shows.
fn all() -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    entries.filter(|entry| is_process(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Every process below this one. Whoever loses its parent becomes a child of this one, so none is missed for
/// longer than a look.
fn below() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting: Vec<String> = vec!["self".into()];
    while let Some(process) = waiting.pop() {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().map(str::to_owned));
        }
        if process != "self" {
            found.push(PathBuf::from(format!("/proc/{process}")));
        }
        // A tree that grows while it is looked at is looked at again soon.
        if found.len() > PROCESSES_MAX {
            break;
        }
    }
    found
}

/// A field of a file of /proc, given in kB there, in bytes.
fn kilobytes(process: &std::path::Path, file: &str, field: &str) -> u64 {
    let text = fs::read_to_string(process.join(file)).unwrap_or_default();
    let value = |line: &str| line.strip_prefix(field)?.split_whitespace().next()?.parse::<u64>().ok();
    text.lines().find_map(value).unwrap_or(0).saturating_mul(1024)
}

fn file_system_used(path: &str) -> u64 {
    rustix::fs::statvfs(path)
        .map_or(0, |stat| (stat.f_blocks.saturating_sub(stat.f_bfree)).saturating_mul(stat.f_bsize))
}

/// `OutNoRoutes` of this network namespace, both families together, since this was opened: ahead, for
/// somebody waits when an order is there, and nothing of the session runs until then. A file that cannot be
/// opened counts nothing.
pub(super) struct NoRoutes {
    files: [Option<File>; 2],
    before: u64,
}

impl NoRoutes {
    pub(super) fn open() -> Self {
        let files = ["/proc/self/net/snmp", "/proc/self/net/snmp6"].map(|path| File::open(path).ok());
        let opened = Self { files, before: 0 };
        Self { before: opened.all(), ..opened }
    }

    pub(super) fn count(&self) -> u64 {
        self.all().saturating_sub(self.before)
    }

    fn all(&self) -> u64 {
        let [old, new] = &self.files;
        out_no_routes_in(&at_once(old.as_ref())).saturating_add(out_no_routes_in_6(&at_once(new.as_ref())))
    }
}

/// A file of the kernel's in one read.
fn at_once(file: Option<&File>) -> String {
    let mut bytes = [0; 16 << 10];
    let read = file.and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
    String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned()
}

/// The file has, for each protocol, a line of names and a line of values.
fn out_no_routes_in(snmp: &str) -> u64 {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let named = names.split_whitespace().zip(values.split_whitespace());
    named.filter(|(name, _)| *name == "OutNoRoutes").find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}

fn out_no_routes_in_6(snmp6: &str) -> u64 {
    let value = |line: &str| line.strip_prefix("Ip6OutNoRoutes")?.trim().parse().ok();
    snmp6.lines().find_map(value).unwrap_or(0)
}

/// The owner's right to look into a directory, where a command took that away and no capability stands in for
/// it: given back as long as this lives, for then the directory is as the command made it.
struct Lent<'a> {
    directory: BorrowedFd<'a>,
    mode: Mode,
}

impl<'a> Lent<'a> {
    fn of(directory: BorrowedFd<'a>) -> Option<Self> {
        if accessat(directory, ".", Access::READ_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok() {
            return None;
        }
        let mode = Mode::from_raw_mode(fstat(directory).ok()?.st_mode);
        let lent = Self { directory, mode };
        lent.change(mode | Mode::RWXU).ok()?;
        Some(lent)
    }

    /// By the descriptor: a name could lead elsewhere by now. One that only names a file takes no fchmod(2).
    fn change(&self, mode: Mode) -> Result<(), Errno> {
        chmod(format!("/proc/self/fd/{}", self.directory.as_raw_fd()), mode)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // Where it fails the owner keeps a right more.
        let _ = self.change(self.mode);
    }
}

/// Bytes that these parts of a session's folder take on disk; counted no further than just above `most`. What
/// a command made unreadable counts as well.
///
/// # Errors
/// When a part cannot be looked at.
pub(super) fn disk_used(folder: BorrowedFd<'_>, parts: [&str; 3], most: u64) -> io::Result<u64> {
    let mut used: u64 = 0;
    // By one descriptor after the other, so that no path is too long; each entry counts, which bounds the
    // walk.
    let mut waiting: Vec<OwnedFd> = Vec::new();
    let lent = Lent::of(folder);
    for part in parts {
        waiting.push(open(folder, part)?);
    }
    drop(lent);
    while let Some(directory) = waiting.pop() {
        let _lent = Lent::of(directory.as_fd());
        let mut entries = Dir::read_from(&directory)?;
        while let Some(Ok(entry)) = entries.read() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            // What has gone meanwhile takes nothing.
            let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let blocks = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
            used += blocks.saturating_add(ENTRY_BYTES);
            if used > most {
                return Ok(used);
            }
            let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if is_directory {
                match open(directory.as_fd(), name) {
                    Ok(inner) => waiting.push(inner),
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Ok(used)
}

fn open(at: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    match rustix::fs::openat(at, name, OFlags::RDONLY | FLAGS, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let locked = rustix::fs::openat(at, name, OFlags::PATH | FLAGS, Mode::empty())?;
            let _lent = Lent::of(locked.as_fd());
            rustix::fs::openat(&locked, ".", OFlags::RDONLY | FLAGS, Mode::empty())
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests;
