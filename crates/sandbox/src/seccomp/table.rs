//! The allow-lists: every call, with the profile it begins in and who needs it.
//!
//! `Standard` includes `Strict`, `StandardNet` includes both; what stands at `Custom` is in none of them, and
//! may be in a list that the owner wrote. What stands nowhere here is in no list whatever ([`NEVER`] names
//! it). Calls that every architecture has stand in [`EVERYWHERE`]; those that only older ones have, in a
//! table of that architecture. The numbers are the C library's for the target.

use bailey_protocol::Profile;
use std::sync::LazyLock;

/// One system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The smallest profile that has it.
    pub(super) profile: Profile,
    /// Its number here.
    pub(super) number: u32,
    /// Its name.
    pub(super) name: &'static str,
    /// What must hold of its arguments.
    pub(super) tests: &'static [Test],
    /// The answer when they hold (or there are none).
    pub(super) answer: FilterAction,
    /// What else may hold of its arguments, and the answer then.
    pub(super) or: Option<(&'static [Test], FilterAction)>,
    /// Who needs it.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and tests"))]
    pub(super) who: &'static str,
}

/// What a filter does with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterAction {
    Allowed,
    /// `EPERM`.
    Denied,
    /// `ENOSYS`: as if the kernel did not have it.
    Unknown,
    /// `EAFNOSUPPORT`: as if the kernel did not have sockets of this family. Programs print its words and few
    /// other calls end with it, so that a command's output tells which call was refused.
    NoFamily,
    /// The whole process dies.
    Kill,
}

/// Whether an argument's low 32 bits, masked, are (or are not) among some values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) argument: u32,
    pub(super) mask: u32,
    pub(super) values: &'static [u32],
    /// Whether the value must be among them, or must not.
    pub(super) is_wanted: bool,
}

/// What the architecture calls itself in `seccomp_data` (linux/audit.h).
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xc000_00b7;

/// The newest number that was considered (`mseal`). Later ones do not exist as far as the sandbox is
/// concerned.
pub(super) const NEWEST: u32 = 462;

/// The row of a number in a profile; of two the larger profile's, which allows more of its arguments.
pub(super) fn row(profile: Profile, number: u32) -> Option<&'static Row> {
    // Each program asks for each number, and a warden compiles several as it starts.
    static SORTED: LazyLock<Vec<&Row>> = LazyLock::new(|| {
        let mut sorted: Vec<&Row> = rows().collect();
        sorted.sort_by_key(|row| (row.number, row.profile));
        sorted
    });
    let after = SORTED.partition_point(|row| (row.number, row.profile) <= (number, profile));
    SORTED.get(after.checked_sub(1)?).copied().filter(|row| row.number == number)
}

/// The row of a number for the worker.
pub(super) fn of_worker(number: u32) -> Option<&'static Row> {
    OF_THE_WORKER.iter().find(|row| row.number == number).or_else(|| row(Profile::Strict, number))
}

/// The number of a name.
pub(super) fn number(name: &str) -> Option<u32> {
    rows().find(|row| row.name.trim_start_matches("SYS_") == name).map(|row| row.number)
}

/// All rows of this architecture.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    EVERYWHERE.iter().chain(HERE).chain([&CLONE3])
}

pub(super) const fn one_of(argument: u32, mask: u32, values: &'static [u32]) -> Test {
    Test { argument, mask, values, is_wanted: true }
}

pub(super) const fn none_of(argument: u32, mask: u32, values: &'static [u32]) -> Test {
    Test { argument, mask, values, is_wanted: false }
}

pub(super) const ALWAYS: &[Test] = &[];

/// No bit that makes a namespace (`CLONE_NEW*`).
const CLONE: &[Test] = &[one_of(0, 0x7e02_0000, &[0])];

/// Not TIOCSTI (types into a terminal), TIOCLINUX (pastes into a console), TIOCSETD (loads line disciplines).
const IOCTL: &[Test] = &[none_of(1, u32::MAX, &[0x5412, 0x541c, 0x5423])];

/// `AF_INET`, `AF_INET6`; `SOCK_STREAM`, `SOCK_DGRAM`; the protocol that follows from these, TCP, UDP.
pub(super) const SOCKET: &[Test] =
    &[one_of(0, u32::MAX, &[2, 10]), one_of(1, 0xf, &[1, 2]), one_of(2, u32::MAX, &[0, 6, 17])];

/// The same, and `AF_NETLINK` with `SOCK_RAW` and `NETLINK_ROUTE`. What else these values combine to, raw
/// sockets among it, takes a capability, which nobody has inside.
pub(super) const SOCKET_NET: &[Test] =
    &[one_of(0, u32::MAX, &[2, 10, 16]), one_of(1, 0xf, &[1, 2, 3]), one_of(2, u32::MAX, &[0, 6, 17])];

/// `AF_UNIX`.
pub(super) const FAMILY_UNIX: &[Test] = &[one_of(0, u32::MAX, &[1])];

/// `AF_UNIX`; `SOCK_STREAM`, `SOCK_DGRAM`, `SOCK_SEQPACKET`; the one protocol that there is, by both of its
/// numbers.
pub(super) const UNIX: &[Test] =
    &[one_of(0, u32::MAX, &[1]), one_of(1, 0xf, &[1, 2, 5]), one_of(2, u32::MAX, &[0, 1])];

/// `AF_UNIX`; `SOCK_STREAM`, `SOCK_SEQPACKET`. One of a pair of datagram sockets can be turned to another
/// socket's name.
pub(super) const SOCKETPAIR: &[Test] = &[one_of(0, u32::MAX, &[1]), one_of(1, 0xf, &[1, 5])];

/// Regular files (also by a mode without type), FIFOs, sockets.
const MKNOD: &[Test] = &[one_of(1, 0o170_000, &[0, 0o100_000, 0o010_000, 0o140_000])];
const MKNODAT: &[Test] = &[one_of(2, 0o170_000, &[0, 0o100_000, 0o010_000, 0o140_000])];

/// `PER_LINUX`, `ADDR_NO_RANDOMIZE`, and the question for the present value.
const PERSONALITY: &[Test] = &[one_of(0, u32::MAX, &[0, 0x0004_0000, 0xffff_ffff])];

const PRCTL: &[Test] = &[one_of(
    0,
    u32::MAX,
    &[
        1,           // PR_SET_PDEATHSIG
        2,           // PR_GET_PDEATHSIG
        3,           // PR_GET_DUMPABLE
        4,           // PR_SET_DUMPABLE
        7,           // PR_GET_KEEPCAPS
        15,          // PR_SET_NAME
        16,          // PR_GET_NAME
        21,          // PR_GET_SECCOMP
        23,          // PR_CAPBSET_READ
        27,          // PR_GET_SECUREBITS
        29,          // PR_SET_TIMERSLACK
        30,          // PR_GET_TIMERSLACK
        36,          // PR_SET_CHILD_SUBREAPER
        37,          // PR_GET_CHILD_SUBREAPER
        38,          // PR_SET_NO_NEW_PRIVS
        39,          // PR_GET_NO_NEW_PRIVS
        41,          // PR_SET_THP_DISABLE
        42,          // PR_GET_THP_DISABLE
        65,          // PR_SET_MDWE
        66,          // PR_GET_MDWE
        0x4155_5856, // PR_GET_AUXV
        0x5356_4d41, // PR_SET_VMA
    ],
)];

/// `clone3` takes its flags from memory, which a filter cannot see: libc must fall back to `clone`.
pub(super) const CLONE3: Row = Row {
    profile: Profile::Strict,
    number: libc::SYS_clone3 as u32,
    name: "clone3",
    tests: ALWAYS,
    answer: FilterAction::Unknown,
    or: None,
    who: "libc, which falls back to clone",
};

macro_rules! table {
    (@or) => { None };
    (@or $other:ident $answer:ident) => { Some(($other, FilterAction::$answer)) };
    ($($profile:ident, $call:ident, $tests:ident $(or $other:ident = $answer:ident)?, $who:literal;)*) => {
        &[$(Row {
            profile: Profile::$profile,
            number: libc::$call as u32,
            name: stringify!($call),
            tests: $tests,
            answer: FilterAction::Allowed,
            or: table!(@or $($other $answer)?),
            who: $who,
        },)*]
    };
}
pub(super) use table;

/// What the worker needs besides the strict profile, for merges.
const OF_THE_WORKER: &[Row] = table! {
    Strict, SYS_flistxattr, ALWAYS, "extended attributes of what a merge replaces";
    Strict, SYS_fsetxattr, ALWAYS, "extended attributes of what a merge replaces";
    Strict, SYS_syncfs, ALWAYS, "one wait for the disk in a merge of many files";
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
    Strict, SYS_openat, ALWAYS, "opening files";
    Strict, SYS_openat2, ALWAYS, "opening files";
    Strict, SYS_fstat, ALWAYS, "looking at files";
    Strict, SYS_newfstatat, ALWAYS, "looking at files";
    Strict, SYS_statx, ALWAYS, "looking at files";
    Standard, SYS_statfs, ALWAYS, "files: df, package managers";
    Standard, SYS_fstatfs, ALWAYS, "files: df, package managers";
    Strict, SYS_getdents64, ALWAYS, "looking at files";
    Strict, SYS_readlinkat, ALWAYS, "looking at files";
    Strict, SYS_faccessat, ALWAYS, "looking at files";
    Strict, SYS_faccessat2, ALWAYS, "looking at files";
    Strict, SYS_getxattr, ALWAYS, "overlay marks and attributes of files";
    Strict, SYS_lgetxattr, ALWAYS, "overlay marks and attributes of files";
    Strict, SYS_fgetxattr, ALWAYS, "overlay marks and attributes of files";
    Standard, SYS_listxattr, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_llistxattr, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_flistxattr, ALWAYS, "files: cp, tar, install, package managers";
    Strict, SYS_mkdirat, ALWAYS, "changing files";
    Strict, SYS_unlinkat, ALWAYS, "changing files";
    Strict, SYS_renameat, ALWAYS, "changing files";
    Strict, SYS_renameat2, ALWAYS, "changing files";
    Strict, SYS_linkat, ALWAYS, "changing files";
    Strict, SYS_symlinkat, ALWAYS, "changing files";
    Strict, SYS_fchmod, ALWAYS, "changing files";
    Strict, SYS_fchmodat, ALWAYS, "changing files";
    Strict, SYS_utimensat, ALWAYS, "changing files";
    Strict, SYS_ftruncate, ALWAYS, "changing files";
    Strict, SYS_fsync, ALWAYS, "changing files";
    Strict, SYS_fdatasync, ALWAYS, "changing files";
    Strict, SYS_copy_file_range, ALWAYS, "changing files";
    Standard, SYS_setxattr, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_lsetxattr, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_fsetxattr, ALWAYS, "files: cp, tar, install, package managers";
    Strict, SYS_getcwd, ALWAYS, "directories of a process";
    Strict, SYS_chdir, ALWAYS, "directories of a process";
    Strict, SYS_fchdir, ALWAYS, "directories of a process";
    Strict, SYS_umask, ALWAYS, "directories of a process";
    Strict, SYS_dup, ALWAYS, "descriptors";
    Strict, SYS_dup3, ALWAYS, "descriptors";
    Strict, SYS_fcntl, ALWAYS, "descriptors";
    Strict, SYS_flock, ALWAYS, "descriptors";
    Strict, SYS_close_range, ALWAYS, "descriptors";
    Strict, SYS_pipe2, ALWAYS, "descriptors";
    Strict, SYS_ppoll, ALWAYS, "descriptors";
    Strict, SYS_mmap, ALWAYS, "memory";
    Strict, SYS_munmap, ALWAYS, "memory";
    Strict, SYS_mprotect, ALWAYS, "memory";
    Strict, SYS_mremap, ALWAYS, "memory";
    Strict, SYS_madvise, ALWAYS, "memory";
    Strict, SYS_brk, ALWAYS, "memory";
    Strict, SYS_futex, ALWAYS, "threads and libc's start";
    Strict, SYS_set_tid_address, ALWAYS, "threads and libc's start";
    Strict, SYS_set_robust_list, ALWAYS, "threads and libc's start";
    Strict, SYS_rseq, ALWAYS, "threads and libc's start";
    Strict, SYS_prlimit64, ALWAYS, "threads and libc's start";
    Standard, SYS_sched_getaffinity, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_yield, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Strict, SYS_rt_sigaction, ALWAYS, "signals";
    Strict, SYS_rt_sigprocmask, ALWAYS, "signals";
    Strict, SYS_rt_sigreturn, ALWAYS, "signals";
    Strict, SYS_sigaltstack, ALWAYS, "signals";
    Strict, SYS_restart_syscall, ALWAYS, "signals";
    Strict, SYS_tgkill, ALWAYS, "signals";
    Strict, SYS_clock_gettime, ALWAYS, "time";
    Strict, SYS_clock_nanosleep, ALWAYS, "time";
    Strict, SYS_getpid, ALWAYS, "who it is";
    Strict, SYS_gettid, ALWAYS, "who it is";
    Strict, SYS_getppid, ALWAYS, "who it is";
    Strict, SYS_getuid, ALWAYS, "who it is";
    Strict, SYS_geteuid, ALWAYS, "who it is";
    Strict, SYS_getgid, ALWAYS, "who it is";
    Strict, SYS_getegid, ALWAYS, "who it is";
    Strict, SYS_uname, ALWAYS, "who it is";
    Strict, SYS_getrandom, ALWAYS, "randomness";
    Strict, SYS_exit, ALWAYS, "the end";
    Strict, SYS_exit_group, ALWAYS, "the end";
    Strict, SYS_execve, ALWAYS, "starting the payload itself";
    Strict, SYS_wait4, ALWAYS, "a shell and its pipelines";
    Standard, SYS_waitid, ALWAYS, "starting programs";
    Standard, SYS_execveat, ALWAYS, "starting programs";
    Strict, SYS_fchown, ALWAYS, "changing files; to another owner it takes a capability that nobody has";
    Standard, SYS_fchownat, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_truncate, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_fallocate, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_fadvise64, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_readahead, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_sync, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_syncfs, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_sync_file_range, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_fchmodat2, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_sendfile, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_splice, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_tee, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_preadv, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_pwritev, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_preadv2, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_pwritev2, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_removexattr, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_lremovexattr, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_fremovexattr, ALWAYS, "files: cp, tar, install, package managers";
    Standard, SYS_inotify_init1, ALWAYS, "watching files: development servers";
    Standard, SYS_inotify_add_watch, ALWAYS, "watching files: development servers";
    Standard, SYS_inotify_rm_watch, ALWAYS, "watching files: development servers";
    Standard, SYS_pselect6, ALWAYS, "waiting: event loops";
    Standard, SYS_epoll_create1, ALWAYS, "waiting: event loops";
    Standard, SYS_epoll_ctl, ALWAYS, "waiting: event loops";
    Standard, SYS_epoll_pwait, ALWAYS, "waiting: event loops";
    Standard, SYS_epoll_pwait2, ALWAYS, "waiting: event loops";
    Standard, SYS_eventfd2, ALWAYS, "waiting: event loops";
    Standard, SYS_signalfd4, ALWAYS, "waiting: event loops";
    Standard, SYS_timerfd_create, ALWAYS, "waiting: event loops";
    Standard, SYS_timerfd_settime, ALWAYS, "waiting: event loops";
    Standard, SYS_timerfd_gettime, ALWAYS, "waiting: event loops";
    Standard, SYS_bind, ALWAYS, "local servers and their clients";
    Standard, SYS_connect, ALWAYS, "local servers and their clients";
    Standard, SYS_listen, ALWAYS, "local servers and their clients";
    Standard, SYS_accept, ALWAYS, "local servers and their clients";
    Standard, SYS_accept4, ALWAYS, "local servers and their clients";
    Standard, SYS_getsockname, ALWAYS, "local servers and their clients";
    Standard, SYS_getpeername, ALWAYS, "local servers and their clients";
    Standard, SYS_setsockopt, ALWAYS, "local servers and their clients";
    Standard, SYS_getsockopt, ALWAYS, "local servers and their clients";
    Standard, SYS_sendto, ALWAYS, "local servers and their clients";
    Standard, SYS_recvfrom, ALWAYS, "local servers and their clients";
    Standard, SYS_sendmsg, ALWAYS, "local servers and their clients";
    Standard, SYS_recvmsg, ALWAYS, "local servers and their clients";
    Standard, SYS_sendmmsg, ALWAYS, "local servers and their clients";
    Standard, SYS_recvmmsg, ALWAYS, "local servers and their clients";
    Standard, SYS_shutdown, ALWAYS, "local servers and their clients";
    Standard, SYS_setpgid, ALWAYS, "job control and shells";
    Standard, SYS_getpgid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_getsid, ALWAYS, "job control and shells";
    Standard, SYS_setsid, ALWAYS, "job control and shells";
    Standard, SYS_kill, ALWAYS, "job control and shells";
    Standard, SYS_tkill, ALWAYS, "job control and shells";
    Standard, SYS_rt_sigpending, ALWAYS, "job control and shells";
    Standard, SYS_rt_sigtimedwait, ALWAYS, "job control and shells";
    Standard, SYS_rt_sigqueueinfo, ALWAYS, "job control and shells";
    Standard, SYS_rt_tgsigqueueinfo, ALWAYS, "job control and shells";
    Standard, SYS_rt_sigsuspend, ALWAYS, "job control and shells";
    Standard, SYS_pidfd_open, ALWAYS, "job control and shells";
    Standard, SYS_pidfd_send_signal, ALWAYS, "job control and shells";
    Standard, SYS_getitimer, ALWAYS, "timers";
    Standard, SYS_setitimer, ALWAYS, "timers";
    Standard, SYS_timer_create, ALWAYS, "timers";
    Standard, SYS_timer_settime, ALWAYS, "timers";
    Standard, SYS_timer_gettime, ALWAYS, "timers";
    Standard, SYS_timer_getoverrun, ALWAYS, "timers";
    Standard, SYS_timer_delete, ALWAYS, "timers";
    Standard, SYS_nanosleep, ALWAYS, "timers";
    Standard, SYS_clock_getres, ALWAYS, "timers";
    Standard, SYS_gettimeofday, ALWAYS, "timers";
    Standard, SYS_times, ALWAYS, "timers";
    Standard, SYS_getrusage, ALWAYS, "usage and limits";
    Standard, SYS_sysinfo, ALWAYS, "usage and limits";
    Standard, SYS_getrlimit, ALWAYS, "usage and limits";
    Standard, SYS_setrlimit, ALWAYS, "usage and limits";
    Standard, SYS_getpriority, ALWAYS, "usage and limits";
    Standard, SYS_setpriority, ALWAYS, "usage and limits";
    Standard, SYS_ioprio_get, ALWAYS, "usage and limits";
    Standard, SYS_ioprio_set, ALWAYS, "usage and limits";
    Standard, SYS_getcpu, ALWAYS, "usage and limits";
    Standard, SYS_sched_setaffinity, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_getscheduler, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_setscheduler, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_getparam, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_setparam, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_get_priority_max, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_get_priority_min, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_rr_get_interval, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_getattr, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_sched_setattr, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_get_robust_list, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_get_mempolicy, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_membarrier, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_futex_waitv, ALWAYS, "schedulers of runtimes: JVM, Go, Node.js";
    Standard, SYS_mincore, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_msync, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_mlock, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_mlock2, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_munlock, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_mlockall, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_munlockall, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_memfd_create, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_pkey_alloc, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_pkey_free, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_pkey_mprotect, ALWAYS, "memory of runtimes and databases";
    Standard, SYS_shmget, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_shmat, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_shmctl, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_shmdt, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_semget, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_semop, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_semctl, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_semtimedop, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_msgget, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_msgsnd, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_msgrcv, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_msgctl, ALWAYS, "System V objects in the sandbox's own ipc namespace: databases";
    Standard, SYS_getgroups, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_getresuid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_getresgid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_setuid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_setgid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_setreuid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_setregid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Strict, SYS_setresuid, ALWAYS, "what make starts; changes need capabilities that nobody has";
    Strict, SYS_setresgid, ALWAYS, "what make starts; changes need capabilities that nobody has";
    Standard, SYS_setfsuid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_setfsgid, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_capget, ALWAYS, "who it is; changes need capabilities that nobody has";
    Standard, SYS_landlock_create_ruleset, ALWAYS, "narrowing itself further: xz, browsers' test runners";
    Standard, SYS_landlock_add_rule, ALWAYS, "narrowing itself further: xz, browsers' test runners";
    Standard, SYS_landlock_restrict_self, ALWAYS, "narrowing itself further: xz, browsers' test runners";
    Strict, SYS_ioctl, IOCTL, "terminals and sizes; not what types into a terminal or loads a line discipline";
    Strict, SYS_prctl, PRCTL, "names, and asking what the walls are";
    Strict, SYS_clone, CLONE, "threads and processes, in the namespaces that are there";
    Standard, SYS_socket, SOCKET or FAMILY_UNIX = NoFamily, "TCP and UDP, on a loopback of its own; no netlink, packet, vsock, alg or raw socket";
    Standard, SYS_socketpair, SOCKETPAIR, "pipes that go both ways: Node.js, Python";
    Standard, SYS_mknodat, MKNODAT, "mkfifo; no devices";
    Standard, SYS_personality, PERSONALITY, "asking, and switching off one's own address randomisation: debuggers, sanitizers";
    StandardNet, SYS_socket, SOCKET_NET or FAMILY_UNIX = NoFamily, "the same, and which interfaces and routes there are: Node.js, Go, psutil";
    Custom, SYS_io_setup, ALWAYS, "asynchronous files: databases";
    Custom, SYS_io_destroy, ALWAYS, "asynchronous files: databases";
    Custom, SYS_io_submit, ALWAYS, "asynchronous files: databases";
    Custom, SYS_io_cancel, ALWAYS, "asynchronous files: databases";
    Custom, SYS_io_getevents, ALWAYS, "asynchronous files: databases";
    Custom, SYS_mq_open, ALWAYS, "queues of messages, in the ipc namespace that is there";
    Custom, SYS_mq_unlink, ALWAYS, "queues of messages, in the ipc namespace that is there";
    Custom, SYS_mq_timedsend, ALWAYS, "queues of messages, in the ipc namespace that is there";
    Custom, SYS_mq_timedreceive, ALWAYS, "queues of messages, in the ipc namespace that is there";
    Custom, SYS_mq_notify, ALWAYS, "queues of messages, in the ipc namespace that is there";
    Custom, SYS_mq_getsetattr, ALWAYS, "queues of messages, in the ipc namespace that is there";
    Custom, SYS_mbind, ALWAYS, "which memory: numerics on large machines";
    Custom, SYS_set_mempolicy, ALWAYS, "which memory: numerics on large machines";
    Custom, SYS_set_mempolicy_home_node, ALWAYS, "which memory: numerics on large machines";
    Custom, SYS_vmsplice, ALWAYS, "pipes without copies";
    Custom, SYS_seccomp, ALWAYS, "narrowing itself further: browsers, sandboxes of their own";
};

/// Calls of x86-64 alone.
#[cfg(target_arch = "x86_64")]
const HERE: &[Row] = table! {
    Strict, SYS_open, ALWAYS, "opening files, older programs";
    Strict, SYS_stat, ALWAYS, "looking at files, older programs";
    Strict, SYS_lstat, ALWAYS, "looking at files, older programs";
    Strict, SYS_access, ALWAYS, "looking at files, older programs";
    Strict, SYS_readlink, ALWAYS, "looking at files, older programs";
    Strict, SYS_dup2, ALWAYS, "descriptors, older programs";
    Strict, SYS_poll, ALWAYS, "descriptors, older programs";
    Strict, SYS_arch_prctl, ALWAYS, "libc's start";
    Standard, SYS_fork, ALWAYS, "starting programs, older programs";
    Strict, SYS_vfork, ALWAYS, "a shell and its pipelines";
    Strict, SYS_creat, ALWAYS, "opening files, older programs";
    Strict, SYS_mkdir, ALWAYS, "changing files, older programs";
    Strict, SYS_rmdir, ALWAYS, "changing files, older programs";
    Strict, SYS_unlink, ALWAYS, "changing files, older programs";
    Strict, SYS_rename, ALWAYS, "changing files, older programs";
    Strict, SYS_link, ALWAYS, "changing files, older programs";
    Strict, SYS_symlink, ALWAYS, "changing files, older programs";
    Strict, SYS_chmod, ALWAYS, "changing files, older programs";
    Standard, SYS_chown, ALWAYS, "files, older programs";
    Standard, SYS_lchown, ALWAYS, "files, older programs";
    Standard, SYS_utime, ALWAYS, "files, older programs";
    Standard, SYS_utimes, ALWAYS, "files, older programs";
    Standard, SYS_futimesat, ALWAYS, "files, older programs";
    Standard, SYS_getdents, ALWAYS, "files, older programs";
    Standard, SYS_inotify_init, ALWAYS, "watching files, older programs";
    Standard, SYS_select, ALWAYS, "waiting, older programs";
    Strict, SYS_pipe, ALWAYS, "a shell and its pipelines";
    Standard, SYS_epoll_create, ALWAYS, "waiting, older programs";
    Standard, SYS_epoll_wait, ALWAYS, "waiting, older programs";
    Standard, SYS_epoll_ctl_old, ALWAYS, "waiting, older programs";
    Standard, SYS_epoll_wait_old, ALWAYS, "waiting, older programs";
    Standard, SYS_eventfd, ALWAYS, "waiting, older programs";
    Standard, SYS_signalfd, ALWAYS, "waiting, older programs";
    Standard, SYS_pause, ALWAYS, "waiting, older programs";
    Standard, SYS_alarm, ALWAYS, "waiting, older programs";
    Strict, SYS_getpgrp, ALWAYS, "the start of bash";
    Standard, SYS_time, ALWAYS, "timers, older programs";
    Standard, SYS_mknod, MKNOD, "mkfifo, older programs; no devices";
};

/// What began without ancestors needs no older names.
#[cfg(target_arch = "aarch64")]
const HERE: &[Row] = &[];

/// What no list has, whoever writes it: with these a program looks at or changes other processes, the
/// machine, its clock or its mounts, makes namespaces, loads code into the kernel, or asks it in ways that no
/// filter sees. (`io_pgetevents` is here because libc does not name it.)
pub(super) const NEVER: &[&str] = &[
    "_sysctl",
    "acct",
    "add_key",
    "adjtimex",
    "afs_syscall",
    "bpf",
    "capset",
    "chroot",
    "clock_adjtime",
    "clock_settime",
    "create_module",
    "delete_module",
    "fanotify_init",
    "fanotify_mark",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_kernel_syms",
    "get_thread_area",
    "getpmsg",
    "init_module",
    "io_pgetevents",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "listmount",
    "lookup_dcookie",
    "lsm_get_self_attr",
    "lsm_list_modules",
    "lsm_set_self_attr",
    "map_shadow_stack",
    "memfd_secret",
    "migrate_pages",
    "modify_ldt",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "name_to_handle_at",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "process_mrelease",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "putpmsg",
    "query_module",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "remap_file_pages",
    "request_key",
    "security",
    "set_thread_area",
    "setdomainname",
    "setgroups",
    "sethostname",
    "setns",
    "settimeofday",
    "statmount",
    "swapoff",
    "swapon",
    "sysfs",
    "syslog",
    "tuxcall",
    "umount2",
    "unshare",
    "uselib",
    "userfaultfd",
    "ustat",
    "vhangup",
    "vserver",
];
