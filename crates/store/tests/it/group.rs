//! Group commit: many writes, one transaction, each on its own feet.

use crate::{committed, fresh, insert, open};
use bailey_store::{Grade, Store, StoreError};
use std::{
    path::Path,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Holds the writing thread in a write of its own until the returned sender is used, so that what is
/// written meanwhile becomes one group.
fn hold(
    runtime: &Runtime,
    store: &Store,
) -> (std::sync::mpsc::Sender<()>, JoinHandle<Result<(), StoreError>>) {
    let (go, wait): (_, Receiver<()>) = channel();
    let (entered, inside) = channel();
    let store = store.clone();
    let task = runtime.spawn(async move {
        let held = move |_: &mut bailey_store::Tx<'_>| {
            entered.send(()).unwrap();
            wait.recv().unwrap();
            Ok(())
        };
        store.write(Grade::Normal, held).await
    });
    runtime.block_on(runtime.spawn(async {})).unwrap();
    inside.recv().unwrap();
    (go, task)
}

/// Queues one write and waits until it is in the queue.
fn queue<T: Send + 'static>(
    runtime: &Runtime,
    store: &Store,
    closure: impl FnOnce(&mut bailey_store::Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> JoinHandle<Result<T, StoreError>> {
    let store = store.clone();
    let task = runtime.spawn(async move { store.write(Grade::Normal, closure).await });
    // A second task runs only after the first has queued its write.
    runtime.block_on(runtime.spawn(async {})).unwrap();
    task
}

fn add(value: i64) -> impl FnOnce(&mut bailey_store::Tx<'_>) -> Result<i64, StoreError> + Send + 'static {
    move |tx| {
        tx.execute("INSERT INTO number (value) VALUES (?1)", [value])?;
        Ok(value)
    }
}

#[test]
fn waiting_writes_share_one_commit() {
    let (_directory, path) = fresh();
    let (runtime, store) = (runtime(), open(&path));
    let (go, held) = hold(&runtime, &store);
    let adds: Vec<_> = (0..50).map(|value| queue(&runtime, &store, add(value))).collect();
    let seen_from_outside = path.clone();
    let last = queue(&runtime, &store, move |tx| {
        let inside: i64 = tx.query_row("SELECT count(*) FROM number", [], |row| row.get(0))?;
        Ok((inside, committed(&seen_from_outside).len()))
    });
    go.send(()).unwrap();
    runtime.block_on(held).unwrap().unwrap();
    for task in adds {
        runtime.block_on(task).unwrap().unwrap();
    }
    // All fifty are in the open transaction, none is committed: one commit is still to come for all.
    assert_eq!(runtime.block_on(last).unwrap().unwrap(), (50, 0));
    assert_eq!(committed(&path).len(), 50);
}

#[test]
fn an_error_and_a_panic_leave_the_others_of_the_group() {
    let (_directory, path) = fresh();
    let (runtime, store) = (runtime(), open(&path));
    let (go, held) = hold(&runtime, &store);
    let first = queue(&runtime, &store, add(1));
    let failing = queue(&runtime, &store, |tx| {
        tx.execute("INSERT INTO number (value) VALUES (2)", [])?;
        Err::<(), _>(StoreError::custom(std::fmt::Error))
    });
    let panicking = queue(&runtime, &store, |tx| -> Result<(), _> {
        tx.execute("INSERT INTO number (value) VALUES (3)", [])?;
        panic!("on purpose")
    });
    let twice = queue(&runtime, &store, add(1));
    let last = queue(&runtime, &store, add(4));
    go.send(()).unwrap();
    runtime.block_on(held).unwrap().unwrap();
    assert_eq!(runtime.block_on(first).unwrap().unwrap(), 1);
    let error = runtime.block_on(failing).unwrap().unwrap_err();
    assert!(error.as_custom::<std::fmt::Error>().is_some(), "{error}");
    let error = runtime.block_on(panicking).unwrap().unwrap_err();
    assert!(matches!(&error, StoreError::Panicked { message, .. } if message == "on purpose"), "{error}");
    let error = runtime.block_on(twice).unwrap().unwrap_err();
    assert!(matches!(&error, StoreError::Sql { path, .. } if path.ends_with("test.db")), "{error}");
    assert_eq!(runtime.block_on(last).unwrap().unwrap(), 4);
    assert_eq!(committed(&path), [1, 4]);
}

#[test]
fn a_value_comes_only_after_its_commit() {
    let (_directory, path) = fresh();
    let store = open(&path);
    // The closure succeeds, the deferred foreign key fails the commit: no value may come.
    let error = store
        .write_blocking(Grade::Normal, |tx| Ok(tx.execute("INSERT INTO pointer VALUES (99)", [])?))
        .unwrap_err();
    assert!(matches!(error, StoreError::Sql { .. }), "{error}");
    // Control: the same write whose row points somewhere gets its value, and others see the row by then.
    let count = store.write_blocking(Grade::Normal, |tx| {
        tx.execute("INSERT INTO number (value) VALUES (99)", [])?;
        Ok(tx.execute("INSERT INTO pointer VALUES (99)", [])?)
    });
    assert_eq!(count.unwrap(), 1);
    assert_eq!(committed(&path), [99]);
}

#[test]
fn a_failed_commit_fails_its_whole_group() {
    let (_directory, path) = fresh();
    let (runtime, store) = (runtime(), open(&path));
    let (go, held) = hold(&runtime, &store);
    let innocent = queue(&runtime, &store, add(1));
    let guilty = queue(&runtime, &store, |tx| Ok(tx.execute("INSERT INTO pointer VALUES (99)", [])?));
    go.send(()).unwrap();
    runtime.block_on(held).unwrap().unwrap();
    assert!(runtime.block_on(innocent).unwrap().is_err());
    assert!(runtime.block_on(guilty).unwrap().is_err());
    assert_eq!(committed(&path), [0i64; 0]);
    insert(&store, 2).unwrap();
    assert_eq!(committed(&path), [2]);
}

#[test]
fn a_write_that_ends_the_transaction_takes_only_those_before_it_along() {
    let (_directory, path) = fresh();
    let (runtime, store) = (runtime(), open(&path));
    let (go, held) = hold(&runtime, &store);
    let before = queue(&runtime, &store, add(1));
    let guilty = queue(&runtime, &store, |tx| Ok(tx.execute_batch("ROLLBACK")?));
    let after = queue(&runtime, &store, add(2));
    go.send(()).unwrap();
    runtime.block_on(held).unwrap().unwrap();
    let error = runtime.block_on(before).unwrap().unwrap_err();
    assert!(matches!(error, StoreError::RolledBack { .. }), "{error}");
    assert!(runtime.block_on(guilty).unwrap().is_err());
    assert_eq!(runtime.block_on(after).unwrap().unwrap(), 2);
    assert_eq!(committed(&path), [2]);
}

#[test]
fn the_highest_grade_of_a_group_counts() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let synchronous = |grade| {
        store.write_blocking(grade, |tx| {
            Ok(tx.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))?)
        })
    };
    assert_eq!(synchronous(Grade::Normal).unwrap(), 1);
    assert_eq!(synchronous(Grade::Full).unwrap(), 2);
    assert_eq!(synchronous(Grade::Normal).unwrap(), 1);

    let runtime = runtime();
    let (go, held) = hold(&runtime, &store);
    let normal =
        queue(&runtime, &store, |tx| Ok(tx.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))?));
    let full = runtime.spawn({
        let store = store.clone();
        async move { store.write(Grade::Full, |_| Ok(())).await }
    });
    runtime.block_on(runtime.spawn(async {})).unwrap();
    go.send(()).unwrap();
    runtime.block_on(held).unwrap().unwrap();
    assert_eq!(runtime.block_on(normal).unwrap().unwrap(), 2);
    runtime.block_on(full).unwrap().unwrap();
}

#[test]
fn reads_see_one_snapshot_and_cannot_write() {
    let (_directory, path) = fresh();
    let store = open(&path);
    insert(&store, 1).unwrap();
    let writer = store.clone();
    let counts = store.read_blocking(move |tx| {
        let count = || tx.query_row("SELECT count(*) FROM number", [], |row| row.get::<_, i64>(0));
        let before = count()?;
        insert(&writer, 2)?;
        Ok((before, count()?))
    });
    assert_eq!(counts.unwrap(), (1, 1));
    let error = store.read_blocking(|tx| {
        tx.prepare_cached("DELETE FROM number")?.execute([])?;
        Ok(())
    });
    assert!(matches!(error, Err(StoreError::ReadOnly { .. })));
    assert_eq!(committed(&path), [1, 2]);
}

#[test]
fn two_reads_run_at_once_and_a_panic_ends_neither() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let (to_second, from_first) = channel();
    let (to_first, from_second) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| {
            store
                .read_blocking(move |_| {
                    to_second.send(()).unwrap();
                    from_second.recv_timeout(Duration::from_secs(10)).map_err(StoreError::custom)
                })
                .unwrap();
        });
        from_first.recv().unwrap();
        store.read_blocking(move |_| to_first.send(()).map_err(StoreError::custom)).unwrap();
    });
    let error = store.read_blocking(|_| -> Result<(), _> { panic!("on purpose") }).unwrap_err();
    assert!(matches!(error, StoreError::Panicked { .. }), "{error}");
    assert_eq!(count(&store, &path), 0);
}

fn count(store: &Store, path: &Path) -> usize {
    let stored: i64 = store
        .read_blocking(|tx| Ok(tx.query_row("SELECT count(*) FROM number", [], |row| row.get(0))?))
        .unwrap();
    assert_eq!(usize::try_from(stored).unwrap(), committed(path).len());
    committed(path).len()
}

/// A bound process can make no file, and what is sorted or changed in the system's own folder would stay
/// there.
#[test]
fn nothing_is_noted_in_files_of_the_system() {
    let (_dir, path) = fresh();
    let runtime = runtime();
    let store = open(&path);
    let place =
        |db: &bailey_store::Tx<'_>| Ok(db.query_row("PRAGMA temp_store", [], |row| row.get::<_, u32>(0))?);
    const MEMORY: u32 = 2;
    assert_eq!(runtime.block_on(store.read(place)).unwrap(), MEMORY);
    assert_eq!(runtime.block_on(store.glance(place)).unwrap(), MEMORY);
    assert_eq!(runtime.block_on(store.write(Grade::Normal, move |db| place(db))).unwrap(), MEMORY);
}
