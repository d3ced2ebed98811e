//! Which system calls are counted, and what each is about.

use nix::{
    libc::{self, c_long, user_regs_struct},
    sys::ptrace,
    unistd::Pid,
};
use std::{
    fmt,
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::Path,
};

/// One counted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: &'static str,
    /// The file that it writes, syncs, names or executes; empty for a clone.
    pub(super) file: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10} {}", self.name, self.file)
    }
}

impl Call {
    /// The call that a process is about to make, where it is one that counts: files below `folder`, or any
    /// file where `everywhere` says so, since inside the walls names are others; and every clone and exec.
    pub(super) fn at(pid: Pid, folder: &Path, everywhere: bool) -> Option<Self> {
        let registers = ptrace::getregs(pid).ok()?;
        let (name, about) = known(&registers)?;
        let file = match about {
            About::Process => return Some(Self { name, file: String::new() }),
            About::Program(address) => return Some(Self { name, file: text(pid, address)? }),
            About::Descriptor(number) => descriptor(pid, number)?,
            About::Name(directory, address) => named(pid, directory, &text(pid, address)?)?,
        };
        let counts = if everywhere { is_on_disk(&file) } else { Path::new(&file).starts_with(folder) };
        counts.then(|| Self { name, file: lasting(&file, folder) })
    }

    pub(super) fn is_database_write(&self) -> bool {
        matches!(self.name, "write" | "pwrite64") && self.file.contains("journal.db")
    }
}

/// A file's name without what is another in each run: the stage's own path, and the session's name.
fn lasting(file: &str, folder: &Path) -> String {
    let below = file.strip_prefix(&*folder.to_string_lossy()).unwrap_or(file);
    let is_name = |part: &str| part.len() == 36 && part.bytes().filter(|byte| *byte == b'-').count() == 4;
    let parts = below.trim_start_matches('/').split('/').map(|part| if is_name(part) { "ID" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// What the arguments name.
enum About {
    Process,
    Program(u64),
    Descriptor(u64),
    Name(i32, u64),
}

fn known(registers: &user_regs_struct) -> Option<(&'static str, About)> {
    let (number, first, second) = arguments(registers);
    Some(match c_long::try_from(number).ok()? {
        libc::SYS_write => ("write", About::Descriptor(first)),
        libc::SYS_pwrite64 => ("pwrite64", About::Descriptor(first)),
        libc::SYS_writev => ("writev", About::Descriptor(first)),
        libc::SYS_pwritev => ("pwritev", About::Descriptor(first)),
        libc::SYS_pwritev2 => ("pwritev2", About::Descriptor(first)),
        libc::SYS_ftruncate => ("ftruncate", About::Descriptor(first)),
        libc::SYS_fallocate => ("fallocate", About::Descriptor(first)),
        libc::SYS_fsync => ("fsync", About::Descriptor(first)),
        libc::SYS_fdatasync => ("fdatasync", About::Descriptor(first)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => ("rename", About::Name(libc::AT_FDCWD, first)),
        libc::SYS_renameat => ("renameat", About::Name(low(first), second)),
        libc::SYS_renameat2 => ("renameat2", About::Name(low(first), second)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => ("unlink", About::Name(libc::AT_FDCWD, first)),
        libc::SYS_unlinkat => ("unlinkat", About::Name(low(first), second)),
        libc::SYS_linkat => ("linkat", About::Name(low(first), second)),
        libc::SYS_clone => ("clone", About::Process),
        libc::SYS_clone3 => ("clone3", About::Process),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork => ("fork", About::Process),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => ("vfork", About::Process),
        libc::SYS_execve => ("execve", About::Program(first)),
        libc::SYS_execveat => ("execveat", About::Program(second)),
        _ => return None,
    })
}

/// A call's number and its first two arguments.
#[cfg(target_arch = "x86_64")]
fn arguments(registers: &user_regs_struct) -> (u64, u64, u64) {
    (registers.orig_rax, registers.rdi, registers.rsi)
}

/// A call's number and its first two arguments.
#[cfg(target_arch = "aarch64")]
fn arguments(registers: &user_regs_struct) -> (u64, u64, u64) {
    let [first, second, _, _, _, _, _, _, number, ..] = registers.regs;
    (number, first, second)
}

/// An `int` argument: the low half of its register.
fn low(register: u64) -> i32 {
    i32::from_ne_bytes([0, 1, 2, 3].map(|index| register.to_ne_bytes().get(index).copied().unwrap_or(0)))
}

fn descriptor(pid: Pid, number: u64) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{}", low(number))).ok()?;
    Some(link.display().to_string())
}

fn named(pid: Pid, directory: i32, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return Some(name.to_owned());
    }
    let link = match directory {
        libc::AT_FDCWD => format!("/proc/{pid}/cwd"),
        number => format!("/proc/{pid}/fd/{number}"),
    };
    Some(fs::read_link(link).ok()?.join(name).display().to_string())
}

fn is_on_disk(file: &str) -> bool {
    file.starts_with('/')
        && !["/dev/", "/proc/", "/sys/", "/memfd:"].iter().any(|other| file.starts_with(other))
}

/// A string in a process' memory. It may go on behind its page, and the page after may not be there.
fn text(pid: Pid, address: u64) -> Option<String> {
    const PAGE: u64 = 4096;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = vec![0; usize::try_from(PAGE - address % PAGE + PAGE).ok()?];
    let read = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes.iter().take(read).position(|byte| *byte == 0).unwrap_or(read);
    Some(String::from_utf8_lossy(bytes.get(..end)?).into_owned())
}
