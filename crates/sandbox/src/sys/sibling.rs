//! A process beside this one, that borrows its memory until it becomes a program.

use super::exit;
use std::{
    convert::Infallible,
    ffi::{c_int, c_void},
    io, ptr,
    sync::atomic::{AtomicI32, Ordering},
};

/// As much as a process's first thread usually has; what is not used takes no memory.
const STACK_BYTES: usize = 8 << 20;
/// Below it, so that whoever needs more ends.
const GUARD_BYTES: usize = 64 << 10;

/// The process whose memory this one borrows.
pub(crate) struct Lender {
    pid: c_int,
    /// Where it may run.
    processors: libc::cpu_set_t,
}

impl Lender {
    /// Sends it to another processor than this: once a program is executed here, it goes on and takes down
    /// its memory, for which the program would wait. With one processor there is no other place, and where
    /// this is refused it is only slower.
    pub(crate) fn make_way(mut self) {
        // Asked of the kernel: what the C library knows is where the other one was.
        let mut here: libc::c_uint = 0;
        let nowhere = ptr::null_mut::<c_void>();
        // SAFETY: a number to be filled in, a set that is one and its size; CPU_CLR checks its bounds.
        unsafe {
            if libc::syscall(libc::SYS_getcpu, &raw mut here, nowhere, nowhere) == 0
                && here < libc::CPU_SETSIZE as libc::c_uint
            {
                libc::CPU_CLR(here as usize, &mut self.processors);
                libc::sched_setaffinity(self.pid, size_of::<libc::cpu_set_t>(), &raw const self.processors);
            }
        }
    }

    /// Ends it: it comes back to nothing more. What this process has in memory is its own then.
    pub(crate) fn end(self) {
        // SAFETY: kill has no preconditions. Where it is gone already, its number is nobody else's so soon.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }
}

/// What the new process begins with.
struct Errand<F> {
    life: Option<F>,
    lender: Option<Lender>,
}

/// Goes on as a child of this process's own parent, with this one's memory, walls and descriptors. This one
/// stands still until that one executes a program or ends, and then ends. Returns what was not begun where
/// there can be no such child.
///
/// What executes a program first takes down all that it has in memory, while whoever ordered it waits. A
/// process that only borrows its memory has nothing to take down: the lender does that at its end, beside the
/// program.
pub(crate) fn go_on_beside<F: FnOnce(Option<Lender>) -> Infallible>(life: F) -> F {
    // SAFETY: all zeroes is a set without members.
    let mut processors = unsafe { std::mem::zeroed() };
    // SAFETY: a set and its size; getpid has no preconditions. Where nothing comes of it, the set stays
    // without members, which the kernel gives nobody.
    let pid = unsafe {
        libc::sched_getaffinity(0, size_of_val(&processors), &raw mut processors);
        libc::getpid()
    };
    let mut errand = Errand { life: Some(life), lender: Some(Lender { pid, processors }) };
    // The kernel changes it to 0, and wakes who waits, when the other lets go of this memory (clone(2),
    // CLONE_CHILD_CLEARTID).
    let borrowed = AtomicI32::new(1);
    if let Ok(top) = stack()
        && begin(&mut errand, top, &borrowed)
    {
        // What the other one has is its own by now, and this one needs none. SAFETY: nothing here uses a
        // descriptor any more. It succeeds, as it did when this process began, so no error is noted in
        // memory.
        unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
        while borrowed.load(Ordering::Acquire) != 0 {
            // Not vfork(2): whoever waits in that counts as one that the machine is busy with.
            // SAFETY: it outlives the call, and the kernel looks at no other argument.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    borrowed.as_ptr(),
                    libc::FUTEX_WAIT,
                    1,
                    ptr::null::<libc::timespec>(),
                );
            }
        }
        exit(0)
    }
    // Nobody took it.
    errand.life.take().unwrap_or_else(|| exit(125))
}

/// The upper end of a new stack.
fn stack() -> io::Result<*mut c_void> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: a mapping of its own, where the kernel chooses; of it only the lowest part is closed.
    unsafe {
        let lowest = libc::mmap(ptr::null_mut(), STACK_BYTES, protection, flags, -1, 0);
        if lowest == libc::MAP_FAILED || libc::mprotect(lowest, GUARD_BYTES, libc::PROT_NONE) != 0 {
            return Err(io::Error::last_os_error());
        }
        // For what it takes is a few pages, and a large one is filled first. Where the kernel knows none, it
        // has none.
        libc::madvise(lowest, STACK_BYTES, libc::MADV_NOHUGEPAGE);
        Ok(lowest.byte_add(STACK_BYTES))
    }
}

fn begin<F: FnOnce(Option<Lender>) -> Infallible>(
    errand: &mut Errand<F>,
    top: *mut c_void,
    borrowed: &AtomicI32,
) -> bool {
    let flags = libc::CLONE_VM | libc::CLONE_PARENT | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    // SAFETY: the stack grows down from its end, which is aligned, and nobody else uses it. The errand and
    // the number outlive the new process, as this one only waits from here on, on its own stack, and touches
    // nothing else while that one has its memory: the only handlers of signals are those that tell of a
    // broken stack, which ends either.
    unsafe {
        libc::clone(
            live::<F>,
            top,
            flags,
            ptr::from_mut(errand).cast(),
            ptr::null_mut::<c_void>(),
            ptr::null_mut::<c_void>(),
            borrowed.as_ptr(),
        ) > 0
    }
}

extern "C" fn live<F: FnOnce(Option<Lender>) -> Infallible>(errand: *mut c_void) -> c_int {
    // SAFETY: it is the errand of `begin`, whose process looks at it no more.
    let errand = unsafe { &mut *errand.cast::<Errand<F>>() };
    let lender = errand.lender.take();
    match errand.life.take().map(|life| life(lender)) {
        Some(never) => match never {},
        None => exit(125),
    }
}
