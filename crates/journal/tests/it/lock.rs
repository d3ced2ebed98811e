//! The lock of a session, against a real other process.

use bailey_journal::{FileLocks, GuestLock, InUse, JournalError, SessionLock};
use bailey_protocol::SessionId;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Command, Stdio},
};

const FOLDER: &str = "BAILEY_TEST_LOCK_FOLDER";

fn session() -> SessionId {
    SessionId::new(1, [3; 10])
}

/// Not a test of its own: the other process, which holds the lock until its standard input ends.
#[test]
#[ignore = "started by the test below"]
fn holder() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let _lock = SessionLock::take(session(), &PathBuf::from(folder), &crate::support::holder()).unwrap();
    println!("\nheld");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_lock_that_another_process_holds_says_which() {
    let home = tempfile::tempdir().unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "lock::holder"])
        .env(FOLDER, home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    match SessionLock::take(session(), home.path(), &crate::support::holder()) {
        Err(error @ JournalError::Held { .. }) => {
            let expected = format!(
                "is in use by process {}, since 2026-01-02 03:04:05 UTC (`bailey run 'a test'`): wait for it",
                other.id()
            );
            assert!(error.to_string().contains(&expected), "{error}");
        }
        other => panic!("it was not held: {other:?}"),
    }
    // Whatever the lock says, the kernel knows whose it is.
    for text in ["garbage", "{\"pid\":1,\"since\":\"2026-01-02T03:04:05Z\",\"command\":\"x\"}"] {
        std::fs::write(home.path().join("lock"), text).unwrap();
        let found = InUse::of(home.path(), &FileLocks::now().unwrap()).unwrap().unwrap();
        assert_eq!(found.processes, [other.id()]);
        assert_eq!(found.says.map(|says| says.pid), text.starts_with('{').then_some(1));
    }
    let found = InUse::of(home.path(), &FileLocks::default()).unwrap().unwrap();
    assert_eq!(found.processes, [] as [u32; 0], "held, by nobody that the kernel names");
    // Control: when that process has ended, the lock is free.
    other.stdin.take().unwrap().write_all(b"\n").unwrap();
    other.wait().unwrap();
    assert_eq!(InUse::of(home.path(), &FileLocks::now().unwrap()).unwrap(), None);
    assert_eq!(
        SessionLock::take(session(), home.path(), &crate::support::holder()).unwrap().session(),
        session()
    );
}

#[test]
fn a_lock_is_free_again_when_dropped() {
    let home = tempfile::tempdir().unwrap();
    let first = SessionLock::take(session(), home.path(), &crate::support::holder()).unwrap();
    assert!(SessionLock::take(session(), home.path(), &crate::support::holder()).is_err());
    drop(first);
    SessionLock::take(session(), home.path(), &crate::support::holder()).unwrap();
}

#[test]
fn guests_are_found_beside_each_other_and_keep_nobody_out() {
    let home = tempfile::tempdir().unwrap();
    let found = || InUse::of(home.path(), &FileLocks::now().unwrap()).unwrap();
    assert_eq!(found(), None);
    let guests = [GuestLock::take(home.path()).unwrap(), GuestLock::take(home.path()).unwrap()];
    assert!(found().unwrap().processes.contains(&std::process::id()));
    let runs = SessionLock::take(session(), home.path(), &crate::support::holder()).unwrap();
    assert!(found().unwrap().processes.contains(&std::process::id()));
    drop(guests);
    assert_eq!(found().unwrap().processes, [std::process::id()]);
    drop(runs);
    assert_eq!(found(), None);
}
