//! Several processes on one file, and `kill -9` in the middle of a write.

use crate::{committed, fresh, insert, open, process};
use bailey_store::Grade;
use std::{collections::BTreeSet, time::Duration};

#[test]
fn two_processes_and_two_stores_write_at_once() {
    let (_directory, path) = fresh();
    let children =
        [process::start("crash::write_500", &path, 0), process::start("crash::write_500", &path, 500)];
    std::thread::scope(|scope| {
        for first in [1000, 1500] {
            let store = open(&path);
            scope.spawn(move || {
                (first..first + 500).for_each(|value| assert_eq!(insert(&store, value).unwrap(), 1))
            });
        }
    });
    for (mut child, lines) in children {
        lines.for_each(drop);
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(committed(&path), (0..2000).collect::<Vec<_>>());
}

#[test]
#[ignore = "run as a child by `two_processes_and_two_stores_write_at_once`"]
fn write_500() {
    let Some((path, first)) = process::order() else { return };
    let store = open(&path);
    (first..first + 500).for_each(|value| assert_eq!(insert(&store, value).unwrap(), 1));
}

#[test]
fn kill_9_keeps_what_was_committed_and_nothing_else() {
    let (_directory, path) = fresh();
    let (mut child, lines) = process::start("crash::write_until_killed", &path, 0);
    let mut told = BTreeSet::new();
    for line in lines {
        let line = line.unwrap();
        if let Some(value) = line.strip_prefix("committed ") {
            told.insert(value.parse::<i64>().unwrap());
        }
        if line == "inside" {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told.len(), 200);
    let store = open(&path);
    assert_eq!(committed(&path), told.into_iter().collect::<Vec<_>>());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(store.integrity()).unwrap(), Vec::<String>::new());
    insert(&store, 999).unwrap();
}

#[test]
#[ignore = "run as a child by `kill_9_keeps_what_was_committed_and_nothing_else`"]
fn write_until_killed() {
    let Some((path, _)) = process::order() else { return };
    let store = open(&path);
    println!();
    for value in 0..200 {
        insert(&store, value).unwrap();
        println!("committed {value}");
    }
    let endless = store.write_blocking(Grade::Full, |tx| {
        tx.execute("INSERT INTO number (value) VALUES (500)", [])?;
        println!("inside");
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    });
    endless.unwrap();
}
