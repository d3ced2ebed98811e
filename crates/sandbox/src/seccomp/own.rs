//! What the process that confined itself may ask of the kernel: a network client with a database, on threads.
//!
//! Not here, on purpose: whatever starts a program or a process, ptrace and its kin, mounts, namespaces,
//! io_uring, bpf, keys, signals to others; and whatever changes files in ways that Landlock does not judge
//! (modes, owners, times, attributes).

use super::table::{ALWAYS, CLONE3, FilterAction, Row, SOCKET, SOCKETPAIR, Test, none_of, one_of, table};
use bailey_protocol::Profile;
use std::sync::OnceLock;

/// All rows of this architecture.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    EVERYWHERE.iter().chain(HERE).chain([&CLONE3]).chain(signals())
}

/// Stopping and ending itself: the process of this number alone, and no other signals.
fn signals() -> &'static [Row] {
    static ROWS: OnceLock<[Row; 2]> = OnceLock::new();
    ROWS.get_or_init(|| {
        // Once in a process, for as long as it lives.
        let own: &'static [u32] = Box::leak(Box::new([std::process::id()]));
        let row = |number: libc::c_long, name, signal, who| Row {
            profile: Profile::Strict,
            number: number as u32,
            name,
            tests: Box::leak(Box::new([one_of(0, u32::MAX, own), signal])),
            answer: FilterAction::Allowed,
            or: None,
            who,
        };
        [
            row(libc::SYS_kill, "SYS_kill", one_of(1, u32::MAX, STOP), "stopping itself, after Ctrl-Z"),
            row(libc::SYS_tgkill, "SYS_tgkill", one_of(2, u32::MAX, ABORT), "ending itself"),
        ]
    })
}

/// `SIGSTOP`.
const STOP: &[u32] = &[19];
/// `SIGABRT`: how a program ends itself.
const ABORT: &[u32] = &[6];

/// Threads alone: with `CLONE_THREAD`, and without a bit that makes a namespace.
const THREAD: &[Test] = &[one_of(0, 0x7e03_0000, &[0x0001_0000])];

/// Its own limits alone.
const OWN: &[Test] = &[one_of(0, u32::MAX, &[0])];

/// Copies of descriptors, their flags, locks and seals. Not whom a file signals, which would be a signal to
/// another process.
const FCNTL: &[Test] = &[one_of(
    1,
    u32::MAX,
    &[
        0, 1, 2, 3, 4, // F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL
        5, 6, 7, // F_GETLK, F_SETLK, F_SETLKW
        36, 37, 38,   // the same for open files
        1030, // F_DUPFD_CLOEXEC
        1033, 1034, // F_ADD_SEALS, F_GET_SEALS
    ],
)];

/// Not what types into a terminal or loads a line discipline, as for commands (`TIOCSTI`, `TIOCLINUX`,
/// `TIOCSETD`); not whom a socket signals (`FIOSETOWN`, `SIOCSPGRP`).
const IOCTL_OWN: &[Test] = &[none_of(1, u32::MAX, &[0x5412, 0x541c, 0x5423, 0x8901, 0x8902])];

/// Without `MSG_FASTOPEN`, which connects a socket, and Landlock is not asked whether it may.
const SEND: &[Test] = &[one_of(3, FASTOPEN, &[0])];
const SEND_MESSAGE: &[Test] = &[one_of(2, FASTOPEN, &[0])];
const FASTOPEN: u32 = 0x2000_0000;

const PRCTL: &[Test] = &[one_of(
    0,
    u32::MAX,
    &[
        3,           // PR_GET_DUMPABLE
        15,          // PR_SET_NAME
        16,          // PR_GET_NAME
        21,          // PR_GET_SECCOMP
        39,          // PR_GET_NO_NEW_PRIVS
        0x5356_4d41, // PR_SET_VMA
    ],
)];

/// A process's own limits, and no other's.
pub(super) static LIMITS: &Row = &Row {
    profile: Profile::Strict,
    number: libc::SYS_prlimit64 as u32,
    name: "SYS_prlimit64",
    tests: OWN,
    answer: FilterAction::Allowed,
    or: None,
    who: "asking for its own limits",
};

/// Calls of every architecture.
const EVERYWHERE: &[Row] = table! {
    Strict, SYS_read, ALWAYS, "reading and writing";
    Strict, SYS_write, ALWAYS, "reading and writing";
    Strict, SYS_pread64, ALWAYS, "reading and writing";
    Strict, SYS_pwrite64, ALWAYS, "reading and writing";
    Strict, SYS_readv, ALWAYS, "reading and writing";
    Strict, SYS_writev, ALWAYS, "reading and writing";
    Strict, SYS_lseek, ALWAYS, "reading and writing";
    Strict, SYS_close, ALWAYS, "reading and writing";
    Strict, SYS_openat, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_ftruncate, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_fsync, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_fdatasync, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_fallocate, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_unlinkat, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_renameat2, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_flock, ALWAYS, "files that Landlock leaves it";
    Strict, SYS_fstat, ALWAYS, "looking at files";
    Strict, SYS_newfstatat, ALWAYS, "looking at files";
    Strict, SYS_statx, ALWAYS, "looking at files";
    Strict, SYS_fstatfs, ALWAYS, "looking at files";
    Strict, SYS_getdents64, ALWAYS, "looking at files";
    Strict, SYS_readlinkat, ALWAYS, "looking at files";
    Strict, SYS_faccessat, ALWAYS, "looking at files";
    Strict, SYS_faccessat2, ALWAYS, "looking at files";
    Strict, SYS_getcwd, ALWAYS, "looking at files";
    Strict, SYS_dup, ALWAYS, "descriptors";
    Strict, SYS_dup3, ALWAYS, "descriptors";
    Strict, SYS_fcntl, FCNTL, "descriptors";
    Strict, SYS_pipe2, ALWAYS, "descriptors";
    Strict, SYS_memfd_create, ALWAYS, "descriptors";
    Strict, SYS_epoll_create1, ALWAYS, "the asynchronous runtime";
    Strict, SYS_epoll_ctl, ALWAYS, "the asynchronous runtime";
    Strict, SYS_epoll_pwait, ALWAYS, "the asynchronous runtime";
    Strict, SYS_eventfd2, ALWAYS, "the asynchronous runtime";
    Strict, SYS_ppoll, ALWAYS, "the asynchronous runtime";
    Strict, SYS_mmap, ALWAYS, "memory";
    Strict, SYS_munmap, ALWAYS, "memory";
    Strict, SYS_mprotect, ALWAYS, "memory";
    Strict, SYS_mremap, ALWAYS, "memory";
    Strict, SYS_madvise, ALWAYS, "memory";
    Strict, SYS_brk, ALWAYS, "memory";
    Strict, SYS_futex, ALWAYS, "threads";
    Strict, SYS_set_robust_list, ALWAYS, "threads";
    Strict, SYS_rseq, ALWAYS, "threads";
    Strict, SYS_sched_getaffinity, ALWAYS, "threads";
    Strict, SYS_sched_yield, ALWAYS, "threads";
    Strict, SYS_membarrier, ALWAYS, "threads";
    Strict, SYS_clone, THREAD, "threads, and no processes";
    Strict, SYS_prlimit64, OWN, "asking for its own limits";
    Strict, SYS_rt_sigaction, ALWAYS, "signals";
    Strict, SYS_rt_sigprocmask, ALWAYS, "signals";
    Strict, SYS_rt_sigreturn, ALWAYS, "signals";
    Strict, SYS_sigaltstack, ALWAYS, "signals";
    Strict, SYS_restart_syscall, ALWAYS, "signals";
    Strict, SYS_clock_gettime, ALWAYS, "time";
    Strict, SYS_clock_getres, ALWAYS, "time";
    Strict, SYS_clock_nanosleep, ALWAYS, "time";
    Strict, SYS_nanosleep, ALWAYS, "time";
    Strict, SYS_gettimeofday, ALWAYS, "time";
    Strict, SYS_getpid, ALWAYS, "who it is";
    Strict, SYS_gettid, ALWAYS, "who it is";
    Strict, SYS_getuid, ALWAYS, "who it is";
    Strict, SYS_geteuid, ALWAYS, "who it is";
    Strict, SYS_getgid, ALWAYS, "who it is";
    Strict, SYS_getegid, ALWAYS, "who it is";
    Strict, SYS_uname, ALWAYS, "who it is";
    Strict, SYS_sysinfo, ALWAYS, "who it is";
    Strict, SYS_getrusage, ALWAYS, "who it is";
    Strict, SYS_getrandom, ALWAYS, "randomness";
    Strict, SYS_prctl, PRCTL, "names of threads and mappings";
    Strict, SYS_socket, SOCKET, "the network, and the resolver of names";
    Strict, SYS_connect, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_accept4, ALWAYS, "requests of commands, at listeners that came out of the walls";
    Strict, SYS_getsockname, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_getpeername, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_setsockopt, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_getsockopt, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_sendto, SEND, "the network, and the resolver of names";
    Strict, SYS_recvfrom, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_sendmmsg, SEND, "the network, and the resolver of names";
    Strict, SYS_shutdown, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_sendmsg, SEND_MESSAGE, "orders to the warden, and the network";
    Strict, SYS_recvmsg, ALWAYS, "orders to the warden, and the network";
    Strict, SYS_socketpair, SOCKETPAIR, "control sockets of sandboxes";
    Strict, SYS_ioctl, IOCTL_OWN, "terminals; not what types into one";
    Strict, SYS_wait4, ALWAYS, "the warden's end";
    Strict, SYS_waitid, ALWAYS, "the warden's end";
    Strict, SYS_exit, ALWAYS, "the end";
    Strict, SYS_exit_group, ALWAYS, "the end";
};

/// Calls of x86-64 alone.
#[cfg(target_arch = "x86_64")]
const HERE: &[Row] = table! {
    Strict, SYS_open, ALWAYS, "the same, older names";
    Strict, SYS_stat, ALWAYS, "the same, older names";
    Strict, SYS_lstat, ALWAYS, "the same, older names";
    Strict, SYS_access, ALWAYS, "the same, older names";
    Strict, SYS_readlink, ALWAYS, "the same, older names";
    Strict, SYS_unlink, ALWAYS, "the same, older names";
    Strict, SYS_rename, ALWAYS, "the same, older names";
    Strict, SYS_poll, ALWAYS, "the same, older names";
    Strict, SYS_epoll_wait, ALWAYS, "the same, older names";
    Strict, SYS_pipe, ALWAYS, "the same, older names";
    Strict, SYS_dup2, ALWAYS, "the same, older names";
    Strict, SYS_arch_prctl, ALWAYS, "threads";
};

/// What began without ancestors needs no older names.
#[cfg(target_arch = "aarch64")]
const HERE: &[Row] = &[];
