//! Which system calls a sandbox may make: allow-lists as data ([`table`]), compiled to one classic BPF
//! program.
//!
//! The program checks the architecture first, refuses x32, finds the number by binary search and looks at
//! arguments where the table says so. What is not listed fails with `EPERM`; what is newer than the table
//! fails with `ENOSYS`, so that libc falls back to what it did before. Only the low 32 bits of an argument
//! are looked at: every argument tested here is 32 bits wide in the kernel or has its dangerous bits there.

mod alone;
mod calls;
mod compile;
mod inside;
mod own;
mod table;
#[cfg(test)]
mod tests;

pub use calls::{CallError, Calls};

use crate::sys::{Instruction, SeccompSecret};
use bailey_protocol::Profile;
use std::sync::OnceLock;

/// Which sockets a list has, where it has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Those of the network.
    Network,
    /// Unix sockets as well: where no socket of the host can be reached.
    Unix,
}

/// The compiled program of a named profile; none for [`Profile::Custom`], whose list is the owner's. Compiled
/// at the first call, which the warden makes before it forks.
pub(crate) fn program(profile: Profile, sockets: Sockets) -> Option<&'static [Instruction]> {
    static CELLS: [[OnceLock<Vec<Instruction>>; 2]; 3] = [const { [const { OnceLock::new() }; 2] }; 3];
    let place = Profile::NAMED.iter().position(|named| *named == profile)?;
    let cell = CELLS.get(place)?.get(usize::from(sockets == Sockets::Unix))?;
    Some(cell.get_or_init(|| {
        compile::compile(|number| table::row(profile, number).map(|row| inside::with(row, sockets)))
    }))
}

/// The same program for a process that may bind itself to a smaller one later: to that it needs words that
/// nobody else knows, and what it starts does not.
pub(crate) fn with_door(program: &[Instruction], words: SeccompSecret) -> Vec<Instruction> {
    compile::with_door(program, words)
}

/// The program of the worker: the strict one, and what merges take. Compiled at the first call, like the
/// others.
pub(crate) fn worker() -> &'static [Instruction] {
    static WORKER: OnceLock<Vec<Instruction>> = OnceLock::new();
    WORKER.get_or_init(|| compile::compile(table::of_worker))
}

/// The program of the process that confines itself.
pub(crate) fn own() -> Vec<Instruction> {
    compile::compile(|number| own::rows().find(|row| row.number == number))
}
