//! What a list of system calls allows less of where no namespace stands beside it: what reaches others than
//! the sandbox, and what makes a program that runs with the rights of whoever made it.

use super::{
    own::LIMITS,
    table::{ALWAYS, FilterAction, Row, Test, one_of, table},
};
use bailey_protocol::Profile;

/// Calls that are not there at all: sockets, objects of the whole machine, and other processes of the same
/// user.
const BEYOND: &[&str] = &[
    "SYS_shmget",
    "SYS_shmat",
    "SYS_shmctl",
    "SYS_shmdt",
    "SYS_semget",
    "SYS_semop",
    "SYS_semctl",
    "SYS_semtimedop",
    "SYS_msgget",
    "SYS_msgsnd",
    "SYS_msgrcv",
    "SYS_msgctl",
    "SYS_mq_open",
    "SYS_mq_unlink",
    "SYS_setpriority",
    "SYS_ioprio_set",
    "SYS_sched_setaffinity",
    "SYS_sched_setscheduler",
    "SYS_sched_setparam",
    "SYS_sched_setattr",
];

/// Neither `S_ISUID` nor `S_ISGID` in the mode, which is the argument of this number.
const SECOND: &[Test] = &[one_of(1, 0o6000, &[0])];
const THIRD: &[Test] = &[one_of(2, 0o6000, &[0])];
const FOURTH: &[Test] = &[one_of(3, 0o6000, &[0])];
/// The same, with the kinds of files that a node may be.
const NODE: &[Test] = &[one_of(1, 0o176_000, &[0, 0o100_000, 0o010_000, 0o140_000])];
const NODE_AT: &[Test] = &[one_of(2, 0o176_000, &[0, 0o100_000, 0o010_000, 0o140_000])];

/// Calls of which less is allowed, on every architecture.
const LESS: &[Row] = table! {
    Strict, SYS_openat, FOURTH, "opening files";
    Strict, SYS_fchmod, SECOND, "changing files";
    Strict, SYS_fchmodat, THIRD, "changing files";
    Standard, SYS_fchmodat2, THIRD, "files: cp, tar, install, package managers";
    Standard, SYS_mknodat, NODE_AT, "mkfifo; no devices";
};

/// The same, of x86-64 alone.
#[cfg(target_arch = "x86_64")]
const HERE: &[Row] = table! {
    Strict, SYS_open, THIRD, "opening files, older programs";
    Strict, SYS_creat, SECOND, "opening files, older programs";
    Strict, SYS_chmod, SECOND, "changing files, older programs";
    Standard, SYS_mknod, NODE, "mkfifo, older programs; no devices";
};
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[Row] = &[];

/// Its mode lies in memory, where no filter sees it; libraries fall back to openat.
const OPENAT2: &[Row] = &[Row {
    profile: Profile::Strict,
    number: libc::SYS_openat2 as u32,
    name: "SYS_openat2",
    tests: ALWAYS,
    answer: FilterAction::Unknown,
    or: None,
    who: "what falls back to openat",
}];

/// Nothing keeps a socket of any family from what else is on this machine.
const SOCKETS: &[Row] = &[Row {
    profile: Profile::Standard,
    number: libc::SYS_socket as u32,
    name: "SYS_socket",
    tests: ALWAYS,
    answer: FilterAction::NoFamily,
    or: None,
    who: "nobody",
}];

/// What of an allowed row is left.
pub(super) fn left(row: &'static Row) -> Option<&'static Row> {
    if row.number == LIMITS.number {
        return Some(LIMITS);
    }
    let less = LESS.iter().chain(HERE).chain(OPENAT2).chain(SOCKETS).find(|less| less.number == row.number);
    Some(less.unwrap_or(row)).filter(|row| !BEYOND.contains(&row.name))
}
