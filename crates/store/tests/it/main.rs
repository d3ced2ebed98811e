//! How a store behaves, on real files, with real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how a test fails")]

mod crash;
mod failure;
mod group;
mod opening;
mod process;
mod torn;

use bailey_store::{Grade, Migration, Store, StoreError};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// One table of numbers, and one whose rows must point at a number when the transaction commits.
const SCHEMA: &[Migration] = &[Migration {
    version: 1,
    sql: "CREATE TABLE number (value INTEGER PRIMARY KEY, text TEXT);
          CREATE TABLE pointer (value INTEGER REFERENCES number (value) DEFERRABLE INITIALLY DEFERRED);",
}];

fn fresh() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    (directory, path)
}

fn open(path: &Path) -> Store {
    Store::open(path, SCHEMA).unwrap()
}

fn insert(store: &Store, value: i64) -> Result<usize, StoreError> {
    store.write_blocking(Grade::Normal, move |tx| {
        Ok(tx.execute("INSERT INTO number (value) VALUES (?1)", [value])?)
    })
}

/// The numbers that a connection of its own sees: what is committed.
fn committed(path: &Path) -> Vec<i64> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT value FROM number ORDER BY value").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}
