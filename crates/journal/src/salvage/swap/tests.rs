//! An exchange that was cut off after each of its steps is ended by whoever comes next.

use super::{begin, finish, harden};
use std::{fs, path::Path};

/// A home with a torn journal, and a new one that waits, with a key of its own or without.
fn waiting(home: &Path, keeps_key: bool) {
    for (name, text) in [
        ("journal.db", "torn"),
        ("journal.db-wal", "log"),
        ("journal.db-shm", "index"),
        ("journal.key", "key"),
    ] {
        fs::write(home.join(name), text).unwrap();
    }
    let folder = home.join("journal.salvaging-1");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("journal.db"), "new").unwrap();
    harden(&folder, &home.join("journal.torn-1"), keeps_key).unwrap();
    begin(&home.join("journal.db"), &folder).unwrap();
}

/// That all of it is done.
fn is_done(home: &Path, keeps_key: bool, what: &str) {
    let text = |name: &str| fs::read_to_string(home.join(name)).ok();
    let key = if keeps_key { "key" } else { "" };
    assert_eq!(text("journal.db").as_deref(), Some("new"), "{what}");
    assert_eq!(text("journal.key").as_deref(), Some(key), "{what}");
    assert_eq!(text("journal.torn-1/journal.db").as_deref(), Some("torn"), "{what}");
    assert_eq!(text("journal.torn-1/journal.db-wal").as_deref(), Some("log"), "{what}");
    assert_eq!(text("journal.torn-1/journal.key").is_some(), !keeps_key, "{what}");
    // A log of the torn one beside the new one would take it apart.
    for gone in ["journal.db-wal", "journal.db-shm", "journal.salvaged", "journal.salvaging-1"] {
        assert!(!home.join(gone).exists(), "{what}: {gone}");
    }
}

#[test]
fn each_step_can_be_the_last() {
    let steps: [(&str, &str); 6] = [
        ("journal.db-wal", "journal.salvaged/journal.torn-1/journal.db-wal"),
        ("journal.db-shm", "journal.salvaged/journal.torn-1/journal.db-shm"),
        ("journal.key", "journal.salvaged/journal.torn-1/journal.key"),
        ("journal.salvaged/journal.key", "journal.key"),
        ("journal.db", "journal.salvaged/journal.torn-1/journal.db"),
        ("journal.salvaged/journal.db", "journal.db"),
    ];
    for keeps_key in [true, false] {
        for done in 0..=steps.len() + 1 {
            let home = tempfile::tempdir().unwrap();
            waiting(home.path(), keeps_key);
            let of_key = |(from, _): &&(&str, &str)| !keeps_key || !from.ends_with("journal.key");
            for (from, to) in steps.iter().take(done).filter(of_key) {
                fs::rename(home.path().join(from), home.path().join(to)).unwrap();
            }
            if done > steps.len() {
                let kept = home.path().join("journal.salvaged/journal.torn-1");
                fs::rename(kept, home.path().join("journal.torn-1")).unwrap();
            }
            finish(&home.path().join("journal.db")).unwrap();
            let what = format!("after {done} steps, with the key kept: {keeps_key}");
            is_done(home.path(), keeps_key, &what);
            // Whoever comes later has nothing to do.
            fs::write(home.path().join("journal.db-wal"), "of the new one").unwrap();
            finish(&home.path().join("journal.db")).unwrap();
            assert!(home.path().join("journal.db-wal").exists(), "{what}");
        }
    }
}

#[test]
fn a_new_journal_that_is_not_whole_in_its_file_takes_no_place() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("journal.salvaging-1");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("journal.db"), "new").unwrap();
    fs::write(folder.join("journal.db-wal"), "more").unwrap();
    assert!(harden(&folder, &home.path().join("journal.torn-1"), true).is_err());
    assert!(!home.path().join("journal.salvaged").exists());
}
