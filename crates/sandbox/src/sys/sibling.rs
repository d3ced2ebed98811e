//! A program in a process beside this one, that borrows its memory until then.

use super::{exit, pointers};
use std::{
    ffi::{CString, c_char, c_int, c_void},
    os::fd::{AsRawFd as _, BorrowedFd, RawFd},
};

/// For a call of a C library's and the handful that follow.
pub(super) const STACK_BYTES: usize = 16 << 10;

/// What the new process is to become.
struct Errand {
    /// The first that can be executed.
    programs: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    /// Where it says who it is.
    socket: RawFd,
    /// Whether none could.
    has_failed: bool,
    /// The process that stands still.
    before: c_int,
    /// Where that may run.
    processors: libc::cpu_set_t,
}

/// Starts the first of some programs that can be executed, as a child of this process's own parent and, where its system calls
/// allow that, leader of a session. It has this one's limits, streams and walls. Whether it came to that.
///
/// Its number goes to the socket before it is the program, which could keep this process from telling it; and where nothing could be
/// executed, 0 behind that.
///
/// What executes a program itself first takes down all that it has in memory, while whoever ordered it waits. A process that only
/// borrows its memory has nothing to take down: this one does that at its end, beside the program. Until the program runs, this one stands still (vfork(2)).
pub(crate) fn start_sibling(
    programs: &[CString],
    argv: &[CString],
    env: &[CString],
    socket: BorrowedFd<'_>,
) -> bool {
    // SAFETY: all zeroes is a set without members.
    let mut processors = unsafe { std::mem::zeroed() };
    // SAFETY: a set and its size. Where nothing comes of it, it stays without members, which nobody is given.
    unsafe { libc::sched_getaffinity(0, size_of_val(&processors), &raw mut processors) };
    let mut errand = Errand {
        programs: pointers(programs),
        argv: pointers(argv),
        env: pointers(env),
        socket: socket.as_raw_fd(),
        has_failed: false,
        // SAFETY: getpid has no preconditions.
        before: unsafe { libc::getpid() },
        processors,
    };
    // Not filled: what is touched first is a fault of a page.
    let mut stack = Vec::<u128>::with_capacity(STACK_BYTES / size_of::<u128>());
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: the stack grows down from its end, which is aligned, and is used by nobody else; it, the errand and the strings that it
    // points to outlive the call, as this process stands still until the new one has left its memory. `become_it` neither
    // returns into anything of this process's nor unwinds.
    let pid = unsafe {
        libc::clone(
            become_it,
            stack.spare_capacity_mut().as_mut_ptr_range().end.cast(),
            flags,
            (&raw mut errand).cast(),
        )
    };
    if errand.has_failed {
        // This one may become the program yet, and that may run wherever it could.
        // SAFETY: a set and its size.
        unsafe { libc::sched_setaffinity(0, size_of_val(&processors), &raw const processors) };
    }
    pid > 0 && !errand.has_failed
}

/// The new process. It allocates nothing: what it left behind would stay with the process whose memory it is.
extern "C" fn become_it(errand: *mut c_void) -> c_int {
    // SAFETY: it is the errand of `start_sibling`, whose process stands still.
    let errand = unsafe { &mut *errand.cast::<Errand>() };
    // It leads nobody's group, so this fails only where its system calls are so few that it is none of them.
    // SAFETY: setsid has no preconditions.
    unsafe { libc::setsid() };
    // The other goes on once the program runs, to take down its memory: not here, where the program would wait for that. With one
    // processor there is no other place, and where this is refused it is only slower.
    // Asked of the kernel: what the C library knows is where the other one was.
    let mut here: libc::c_uint = 0;
    let nowhere = std::ptr::null_mut::<c_void>();
    // SAFETY: a number to be filled in, the set is one, and CPU_CLR checks its bounds.
    unsafe {
        if libc::syscall(libc::SYS_getcpu, &raw mut here, nowhere, nowhere) == 0 {
            libc::CPU_CLR(here as usize, &mut errand.processors);
            libc::sched_setaffinity(
                errand.before,
                size_of::<libc::cpu_set_t>(),
                &raw const errand.processors,
            );
        }
    }
    // SAFETY: getpid has no preconditions.
    if tell(errand.socket, unsafe { libc::getpid() }) {
        for program in errand.programs.iter().filter(|program| !program.is_null()) {
            // SAFETY: a string ended by NUL and two arrays of such, ended by a null pointer.
            unsafe { libc::execve(*program, errand.argv.as_ptr(), errand.env.as_ptr()) };
        }
    }
    errand.has_failed = true;
    tell(errand.socket, 0);
    exit(127)
}

fn tell(socket: RawFd, number: c_int) -> bool {
    let bytes = number.to_ne_bytes();
    // SAFETY: the bytes of a number, and how many these are.
    let written = unsafe { libc::write(socket, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(written) == Ok(bytes.len())
}
