//! What the process that confined itself may ask of the kernel: a network client with a database, on threads.
//!
//! Not here, on purpose: whatever starts a program or a process, ptrace and its kin, mounts, namespaces, io_uring, bpf,
//! keys, signals to others; and whatever changes files in ways that Landlock does not judge (modes, owners, times,
//! attributes).

use super::table::{ALWAYS, Answer, CLONE3, IOCTL, Row, SOCKET, SOCKETPAIR, Test, one_of, table};
use bailey_protocol::Profile;
use std::sync::OnceLock;

/// All rows of this architecture.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    EVERYWHERE.iter().chain(HERE).chain([&CLONE3, stop()])
}

/// Stopping itself, after Ctrl-Z: the process of this number alone, and no other signal.
fn stop() -> &'static Row {
    static ROW: OnceLock<Row> = OnceLock::new();
    ROW.get_or_init(|| {
        // Once in a process, for as long as it lives.
        let own: &'static [u32] = Box::leak(Box::new([std::process::id()]));
        let tests = Box::leak(Box::new([one_of(0, u32::MAX, own), one_of(1, u32::MAX, STOP)]));
        Row {
            profile: Profile::Strict,
            number: libc::SYS_kill as u32,
            name: "SYS_kill",
            tests,
            answer: Answer::Allowed,
            who: "stopping itself, after Ctrl-Z",
        }
    })
}

/// `SIGSTOP`.
const STOP: &[u32] = &[19];

/// Threads alone: with `CLONE_THREAD`, and without a bit that makes a namespace.
const THREAD: &[Test] = &[one_of(0, 0x7e03_0000, &[0x0001_0000])];

/// Its own limits alone.
const OWN: &[Test] = &[one_of(0, u32::MAX, &[0])];

/// `SIGABRT`: how a program ends itself.
const ABORT: &[Test] = &[one_of(2, u32::MAX, &[6])];

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
    Strict, SYS_fcntl, ALWAYS, "descriptors";
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
    Strict, SYS_tgkill, ABORT, "ending itself";
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
    Strict, SYS_getsockname, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_getpeername, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_setsockopt, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_getsockopt, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_sendto, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_recvfrom, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_sendmmsg, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_shutdown, ALWAYS, "the network, and the resolver of names";
    Strict, SYS_sendmsg, ALWAYS, "orders to the warden, and the network";
    Strict, SYS_recvmsg, ALWAYS, "orders to the warden, and the network";
    Strict, SYS_socketpair, SOCKETPAIR, "control sockets of sandboxes";
    Strict, SYS_ioctl, IOCTL, "terminals; not what types into one";
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
