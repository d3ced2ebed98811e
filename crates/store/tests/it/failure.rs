//! Full disks, closures that overstep, and the end of the threads.

use crate::{committed, fresh, insert, open, process};
use bailey_store::{Grade, Store, StoreError};
use std::{fs, time::Duration};

fn limit_pages(store: &Store, pages: i64) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    store.write_blocking(Grade::Normal, move |tx| Ok(tx.query_row(&sql, [], |_| Ok(()))?)).unwrap();
}

fn fill(store: &Store, value: i64) -> Result<usize, StoreError> {
    store.write_blocking(Grade::Normal, move |tx| {
        Ok(tx.execute("INSERT INTO number VALUES (?1, ?2)", (value, "x".repeat(200_000)))?)
    })
}

#[test]
fn a_full_disk_fails_the_write_and_nothing_else() {
    let (_directory, path) = fresh();
    let store = open(&path);
    insert(&store, 1).unwrap();
    limit_pages(&store, 10);
    let error = fill(&store, 2).unwrap_err();
    assert!(matches!(&error, StoreError::Full { path } if path.ends_with("test.db")), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    insert(&store, 3).unwrap();
    // Control: the very same write succeeds when there is room.
    limit_pages(&store, 1_000_000);
    fill(&store, 2).unwrap();
    assert_eq!(committed(&path), [1, 2, 3]);
}

#[test]
fn a_closure_that_rolls_back_by_hand_is_told_and_harms_no_later_write() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let result = store.write_blocking(Grade::Normal, |tx| Ok(tx.execute_batch("ROLLBACK")?));
    assert!(matches!(result, Err(StoreError::Custom(_))));
    insert(&store, 1).unwrap();
    assert_eq!(committed(&path), [1]);
}

#[test]
fn the_last_handle_closes_the_file() {
    let (_directory, path) = fresh();
    let log = path.with_file_name("test.db-wal");
    let store = open(&path);
    insert(&store, 1).unwrap();
    store.read_blocking(|_| Ok(())).unwrap();
    let clone = store.clone();
    drop(store);
    // Control: one handle keeps the file open. SQLite removes the log when the last connection closes.
    assert!(fs::exists(&log).unwrap());
    drop(clone);
    assert!(!fs::exists(&log).unwrap());
}

#[test]
fn a_closure_may_hold_the_last_handle() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    let last = store.clone();
    let write = async move {
        store
            .write(Grade::Normal, move |tx| {
                tx.execute("INSERT INTO number (value) VALUES (1)", [])?;
                drop(last);
                done.send(()).map_err(StoreError::custom)
            })
            .await
    };
    runtime.block_on(write).unwrap();
    wait.recv().unwrap();
    assert_eq!(committed(&path), [1]);
}

#[test]
fn the_threads_end_with_the_last_handle() {
    let (_directory, path) = fresh();
    let (mut child, lines) = process::start("failure::count_threads", &path, 0);
    let counts: Vec<String> = lines.map_while(Result::ok).filter(|line| line.ends_with(" threads")).collect();
    assert!(child.wait().unwrap().success());
    assert_eq!(counts, ["open: 2 threads", "dropped: 0 threads"]);
}

#[test]
#[ignore = "run as a child, where no other test has threads"]
fn count_threads() {
    let Some((path, _)) = process::order() else { return };
    let count = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.filter(|name| name.starts_with("store-")).count()
    };
    let store = open(&path);
    // Used once each: a thread that has not yet run has not yet taken its name.
    insert(&store, 1).unwrap();
    store.read_blocking(|_| Ok(())).unwrap();
    println!("\nopen: {} threads", count());
    drop(store);
    // The kernel wakes whoever joins a thread a moment before it takes the thread off this list.
    (0..100).take_while(|_| count() > 0).for_each(|_| std::thread::sleep(Duration::from_millis(10)));
    println!("dropped: {} threads", count());
}

#[test]
fn a_write_waits_for_whoever_has_the_turn() {
    let (_directory, path) = fresh();
    let store = open(&path);
    insert(&store, 1).unwrap();
    let turn = fs::File::options().write(true).open(path.with_file_name("test.db-turn")).unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        turn.lock().unwrap();
        scope.spawn(|| {
            insert(&store, 2).unwrap();
            done.send(()).unwrap();
        });
        assert!(wait.recv_timeout(Duration::from_millis(300)).is_err(), "it is somebody else's");
        turn.unlock().unwrap();
        // Control: nothing else held it back.
        wait.recv_timeout(Duration::from_secs(20)).unwrap();
    });
    assert_eq!(committed(&path), [1, 2]);
}
