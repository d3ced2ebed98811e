//! The system calls that no safe crate wraps: the only module of Bailey that may say `unsafe`.
//!
//! Every function is one call, or one idiom of several, with plain arguments and an [`io::Result`]. What can
//! be made unsound by its caller is checked here: [`fork`] refuses in a process that was not seen to have one
//! thread.

use rustix::process::Pid;
use std::{
    ffi::{CStr, CString},
    io,
    mem::size_of,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

mod forbidden;
mod sibling;
mod signal;

pub use forbidden::Forbidden;
pub(crate) use sibling::{Lender, go_on_beside};
pub(crate) use signal::{SignalFd, default_signals, process_signals};

/// One instruction of the classic BPF machine (`struct sock_filter`).
pub(crate) use libc::sock_filter as Instruction;

/// How much of its stack a process uses for what it does while somebody waits.
const TOUCHED_BYTES: usize = 16 << 10;

static ONE_THREAD: AtomicBool = AtomicBool::new(false);

/// Namespaces to make with [`fork`], as the kernel's `CLONE_NEW*` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Namespaces(pub(crate) u64);

impl Namespaces {
    pub(crate) const USER: Self = Self(libc::CLONE_NEWUSER as u64);
    pub(crate) const MOUNT: Self = Self(libc::CLONE_NEWNS as u64);
    pub(crate) const PID: Self = Self(libc::CLONE_NEWPID as u64);
    pub(crate) const NET: Self = Self(libc::CLONE_NEWNET as u64);
    pub(crate) const IPC: Self = Self(libc::CLONE_NEWIPC as u64);
    pub(crate) const UTS: Self = Self(libc::CLONE_NEWUTS as u64);
    pub(crate) const CGROUP: Self = Self(libc::CLONE_NEWCGROUP as u64);

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Checks that this process has one thread; only then does [`fork`] work.
///
/// # Errors
/// When /proc/self/task cannot be read or holds more than one entry.
pub(crate) fn assert_one_thread() -> io::Result<()> {
    let threads = threads()?;
    if threads != 1 {
        return Err(io::Error::other(format!("expected one thread, found {threads}")));
    }
    ONE_THREAD.store(true, Ordering::Relaxed);
    Ok(())
}

/// How many threads this process has.
///
/// # Errors
/// When /proc/self/task cannot be read.
pub(crate) fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Makes a child in new namespaces; `None` is the child. Its end raises SIGCHLD in the parent.
///
/// # Errors
/// `ENOSPC`, `EPERM`, `EUSERS`: the kernel's limits of namespaces; see clone(2).
pub(crate) fn fork(namespaces: Namespaces) -> io::Result<Option<Pid>> {
    if !ONE_THREAD.load(Ordering::Relaxed) {
        return Err(io::Error::other("fork needs a process that is known to have one thread"));
    }
    let flags = namespaces.0 | libc::SIGCHLD as u64;
    // SAFETY: there are neither CLONE_VM nor a new stack among the flags, which makes this a fork, and the
    // kernel looks at no other argument. The process has one thread (checked above, and nothing in the warden
    // starts another), so the child inherits no lock that another thread holds. The libc crate offers no fork
    // with namespaces. Not clone3, which containers refuse.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid as i32)),
    }
}

/// Ends this process at once: no destructors, no buffers flushed.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Replaces this process by a program.
///
/// Returns only when that failed, with the reason.
pub(crate) fn execve(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both are arrays of pointers to NUL-terminated strings that outlive the call, ended by a null
    // pointer.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// An array for execve(2), good as long as the strings are.
fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Closes every descriptor but these.
///
/// # Errors
/// `ENOSYS` on a kernel before 5.9.
pub(crate) fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    keep.sort_unstable();
    keep.dedup();
    let mut first = 0;
    for fd in keep {
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX, 0)
}

/// Marks every descriptor from `first` on to be closed by the next `execve`.
///
/// # Errors
/// `ENOSYS` on a kernel before 5.9, `EINVAL` before 5.11.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: u32, last: u32, flags: u32) -> io::Result<()> {
    // SAFETY: it only closes descriptors (or marks them). Callers are forked children that own every
    // descriptor and keep no owner of one that is closed here: they leave by `exit` or `execve`, never by
    // unwinding.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

/// Takes the descriptor that a parent placed at this number.
///
/// # Errors
/// `EBADF` when there is none.
pub(crate) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD only looks.
    check(unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFD) })?;
    // SAFETY: it is open (checked above). It was placed there for the caller alone: the warden's standard
    // input, or a descriptor that came with a packet.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes `fd` also known as `number`, which is closed first when it was open.
///
/// # Errors
/// `EBADF`, `EMFILE`.
pub(crate) fn dup_to(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    if fd.as_raw_fd() == number {
        // SAFETY: F_SETFD only clears the close-on-exec mark, which dup2 onto itself would leave.
        return check(unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_SETFD, 0) }).map(drop);
    }
    // SAFETY: the callers are forked children that place standard streams just before `execve`.
    check(i64::from(unsafe { libc::dup2(fd.as_raw_fd(), number) })).map(drop)
}

/// Attributes of a mount, as the kernel's `MOUNT_ATTR_*` bits.
pub(crate) mod attr {
    pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
    pub(crate) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
    pub(crate) const NO_DEV: u64 = libc::MOUNT_ATTR_NODEV;
}

/// Sets attributes of the mount that `tree` stands for, of those beneath it too when `recursive`; with
/// `map`, a user namespace, also maps the owners of its files (mount_setattr(2)).
///
/// # Errors
/// `EINVAL` when its file system cannot be mapped, `EPERM` without the right to.
pub(crate) fn mount_setattr(
    tree: BorrowedFd<'_>,
    recursive: bool,
    set: u64,
    map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set | if map.is_some() { libc::MOUNT_ATTR_IDMAP } else { 0 },
        attr_clr: 0,
        propagation: 0,
        userns_fd: map.map_or(0, |map| map.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: an open descriptor, an empty path, and a valid mount_attr with its size.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Brings the loopback device of this network namespace up.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN in it.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an ifreq with a name and flags.
    check(i64::from(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) }))
        .map(drop)
}

/// Names this UTS namespace.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN in it.
pub(crate) fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: a pointer and the length of what it points to.
    check(i64::from(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })).map(drop)
}

/// The words that a filter of system calls may ask for before it allows another filter. They stand behind the
/// three arguments of seccomp(2), where the kernel does not look.
pub(crate) type SeccompSecret = [u32; 2];

/// Words that nobody can guess.
///
/// # Errors
/// `ENOSYS` on a kernel before 3.17.
pub(crate) fn random_words() -> io::Result<SeccompSecret> {
    let mut words = SeccompSecret::default();
    // SAFETY: memory of that size, of which any bytes are a value. So few come whole, or not at all.
    check(unsafe { libc::getrandom((&raw mut words).cast(), size_of_val(&words), 0) } as i64)?;
    Ok(words)
}

/// Takes the place of nobody who runs when it is woken (sched(7), SCHED_BATCH). Where that is refused it is
/// only in the way.
pub(crate) fn give_way() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: a parameter that outlives the call; 0 is this process.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
}

/// Calls to no effect what is called when somebody waits, and has some memory ready: in a process that was
/// forked, whatever is used first is a fault of a page.
pub(crate) fn touch() {
    std::hint::black_box((vec![1u8; 2 * TOUCHED_BYTES], [1u8; TOUCHED_BYTES]));
    let myself = rustix::process::getpid();
    // SAFETY: nothing is asked for but what is; a process is no child of its own, and no signal of this
    // number needs a handler.
    unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, ptr::null(), ptr::null_mut());
        libc::sigaction(libc::SIGPIPE, ptr::null(), ptr::null_mut());
        libc::sched_getaffinity(0, 0, ptr::null_mut());
        libc::waitpid(myself.as_raw_pid(), ptr::null_mut(), libc::WNOHANG);
        libc::poll(ptr::null_mut(), 0, 0);
    }
}

/// Binds this thread, and all that it will start, to a filter of system calls. It needs no_new_privs, and
/// behind a filter with a door its words.
///
/// # Errors
/// `EINVAL` for a program that the kernel does not accept, `EACCES` without no_new_privs.
pub(crate) fn set_seccomp_filter(program: &[Instruction], words: SeccompSecret) -> io::Result<()> {
    seccomp(program, 0, words).map(drop)
}

/// The same, with a descriptor that keeps the filter in memory while it is open
/// (`SECCOMP_FILTER_FLAG_NEW_LISTENER`): the kernel takes a filter down where its last process ends, on that
/// one's processor.
///
/// # Errors
/// Those of [`set_seccomp_filter`]; `EBUSY` where an earlier filter has one.
pub(crate) fn set_kept_seccomp_filter(program: &[Instruction]) -> io::Result<OwnedFd> {
    let number = seccomp(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER, SeccompSecret::default())?;
    let number = RawFd::try_from(number).map_err(io::Error::other)?;
    // SAFETY: the kernel just made it, for this process alone.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn seccomp(program: &[Instruction], flags: libc::c_ulong, words: SeccompSecret) -> io::Result<i64> {
    let length = u16::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: a sock_fprog of the right length, which the kernel copies and does not write to.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
            u64::from(words[0]),
            u64::from(words[1]),
        )
    })
}

fn check(result: i64) -> io::Result<i64> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
