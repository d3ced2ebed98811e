//! System calls that no program inside the walls may make, with arguments that can do no harm: numbers, and
//! null where the kernel wants a pointer. `bailey prove` tries them on both sides of the walls.

use rustix::io::Errno;
use std::io;

/// A system call that the walls refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// To trace a process (`PTRACE_SEIZE`): its memory and registers. It is let go with the caller's end.
    Trace(i32),
    /// To load a program or a map into the kernel.
    Bpf,
    /// To name the session's keyring.
    Keyring,
    /// To hand calls to the kernel past a filter of system calls.
    IoUring,
    /// To handle page faults: a way to win races against the kernel.
    Userfault,
}

/// What the kernel says when it took the call and had nothing but its harmless arguments against it.
const TAKEN: [Errno; 3] = [Errno::FAULT, Errno::INVAL, Errno::NOKEY];

impl Forbidden {
    /// Makes the call. What it made is gone with the process.
    ///
    /// # Errors
    /// Why the kernel did not take it.
    pub fn attempt(self) -> io::Result<()> {
        // The kernel reads what its type says and no more: a register each.
        let [number, first, second, third]: [i64; 4] = match self {
            Self::Trace(pid) => [libc::SYS_ptrace, i64::from(libc::PTRACE_SEIZE), pid.into(), 0],
            Self::Bpf => [libc::SYS_bpf, 0, 0, 0],
            // KEYCTL_GET_KEYRING_ID of KEY_SPEC_SESSION_KEYRING, which is not to be made.
            Self::Keyring => [libc::SYS_keyctl, 0, -3, 0],
            Self::IoUring => [libc::SYS_io_uring_setup, 1, 0, 0],
            // UFFD_USER_MODE_ONLY
            Self::Userfault => [libc::SYS_userfaultfd, 1, 0, 0],
        };
        // SAFETY: each takes numbers and null pointers here, of which the kernel reads nothing and to which
        // it writes nothing; a descriptor that it makes is nobody's and lives as long as the process.
        let done = unsafe { libc::syscall(number, first, second, third, 0i64) };
        match super::check(done) {
            Err(error) if Errno::from_io_error(&error).is_some_and(|errno| TAKEN.contains(&errno)) => Ok(()),
            done => done.map(drop),
        }
    }
}
