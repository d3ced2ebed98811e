//! Makes a thread of another process call the kernel, by ptrace(2).

use nix::{
    errno::Errno,
    libc::{self, c_long, user_regs_struct},
    sys::{
        ptrace,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use std::{fs, os::unix::fs::FileExt as _, thread, time::Duration};

/// A thread that is held in a system call of its own.
pub(crate) struct Taken {
    thread: Pid,
    saved: user_regs_struct,
    memory: fs::File,
    /// Where the next bytes go to: the stack, far below what is in use.
    free: u64,
    is_gone: bool,
}

/// The threads of a process. The kernel's list is cut short where a thread ends while it is read, so it is
/// read until it stays the same.
pub(crate) fn threads(process: u32) -> Vec<i32> {
    let list = || -> Vec<i32> {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
        tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
    };
    let mut threads = list();
    loop {
        thread::sleep(Duration::from_millis(50));
        let again = list();
        if again == threads {
            return threads;
        }
        threads = again;
    }
}

impl Taken {
    /// Stops a thread while it waits in the kernel; `ESRCH` where it ended, another error where ptrace is not
    /// allowed.
    pub(crate) fn seize(thread: i32) -> nix::Result<Self> {
        let pid = Pid::from_raw(thread);
        for _ in 0..50 {
            ptrace::attach(pid)?;
            if !is_held(pid) {
                return Err(Errno::ESRCH);
            }
            let saved = ptrace::getregs(pid).unwrap();
            let memory =
                fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{thread}/mem")).unwrap();
            let mut instruction = [0; 2];
            memory.read_exact_at(&mut instruction, saved.rip - 2).unwrap();
            if instruction == [0x0f, 0x05] {
                let free = (saved.rsp - 3000) & !0xf;
                return Ok(Self { thread: pid, saved, memory, free, is_gone: false });
            }
            ptrace::detach(pid, None).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
        panic!("thread {thread} never waits in the kernel");
    }

    /// Puts bytes, and a NUL behind them, where the thread can name them.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> u64 {
        self.free = (self.free - bytes.len() as u64 - 1) & !0xf;
        self.memory.write_all_at(&[bytes, b"\0"].concat(), self.free).unwrap();
        self.free
    }

    /// Has the thread make a call; what it returned.
    pub(crate) fn call(&mut self, number: c_long, [rdi, rsi, rdx, r10, r8, r9]: [u64; 6]) -> i64 {
        let registers = user_regs_struct {
            rax: number as u64,
            // No call that could be made again.
            orig_rax: u64::MAX,
            rip: self.saved.rip - 2,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.saved
        };
        ptrace::setregs(self.thread, registers).unwrap();
        ptrace::step(self.thread, None).unwrap();
        assert!(is_held(self.thread), "it ended in the call");
        let result = ptrace::getregs(self.thread).unwrap().rax as i64;
        self.is_gone = number == libc::SYS_execve && result == 0;
        result
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.is_gone {
            let _ = ptrace::setregs(self.thread, self.saved);
        }
        let _ = ptrace::detach(self.thread, None);
    }
}

/// Waits until a thread stops; false where it ended instead.
fn is_held(thread: Pid) -> bool {
    match waitpid(thread, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::Stopped(..)) => true,
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(Errno::ECHILD) => false,
        other => panic!("{other:?}"),
    }
}
