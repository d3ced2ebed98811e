use super::{Turn, Turns};
use crate::StoreError;
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, chown},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};
use tempfile::TempDir;

const WRITERS: u32 = 40;
const WORK: Duration = Duration::from_millis(20);
/// Far less than the row takes, and far more than one in it.
const PATIENCE: Duration = Duration::from_millis(300);

fn row() -> (TempDir, impl Fn() -> Turns) {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("test.db");
    (directory, move || Turns::open(&database).unwrap())
}

/// All writers at once, each for a turn; how many were told that the lock is busy.
fn busy(open: &(impl Fn() -> Turns + Sync), mark: impl Fn() -> u32 + Sync, done: &AtomicU32) -> usize {
    thread::scope(|scope| {
        let write = || {
            let turn = open().next(PATIENCE, &mark);
            if turn.is_ok() {
                thread::sleep(WORK);
                done.fetch_add(1, Ordering::Relaxed);
            }
            turn.map(drop)
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        let results = writers.into_iter().map(|writer| writer.join().unwrap());
        results.filter(|result| matches!(result, Err(StoreError::Busy { .. }))).count()
    })
}

#[test]
fn a_long_row_that_moves_is_waited_in() {
    let (_directory, open) = row();
    let done = AtomicU32::new(0);
    assert_eq!(busy(&open, || done.load(Ordering::Relaxed), &done), 0);
    assert_eq!(done.load(Ordering::Relaxed), WRITERS);
    // Control: the same row, where nobody sees that it moves.
    assert!(busy(&open, || 0, &done) > 0);
}

#[test]
fn the_lock_is_the_databases_owners_whoever_made_it() {
    let (directory, open) = row();
    let database = directory.path().join("test.db");
    fs::write(&database, "").unwrap();
    if chown(&database, Some(54_321), Some(54_321)).is_err() {
        return println!("SKIPPED: only root can give a file away");
    }
    open();
    let about = fs::metadata(directory.path().join("test.db-turn")).unwrap();
    assert_eq!((about.uid(), about.gid(), about.mode() & 0o777), (54_321, 54_321, 0o600));
}

#[test]
fn a_turn_that_comes_too_late_is_passed_on() {
    let (_directory, open) = row();
    let next = |turns: &mut Turns| turns.next(Duration::from_millis(50), || 0);
    let (mut stuck, mut tired, mut other) = (open(), open(), open());
    let held: Turn = next(&mut stuck).unwrap();
    assert!(matches!(next(&mut tired), Err(StoreError::Busy { .. })));
    assert!(matches!(next(&mut tired), Err(StoreError::Busy { .. })));
    drop(held);
    let patient = |turns: &mut Turns| turns.next(Duration::from_secs(20), || 0);
    drop(patient(&mut other).unwrap());
    let again = patient(&mut tired).unwrap();
    assert!(matches!(next(&mut other), Err(StoreError::Busy { .. })), "the lock holds nobody back");
    drop(again);
    drop(patient(&mut stuck).unwrap());
}
