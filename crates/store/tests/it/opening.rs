//! What `open` makes, migrates and refuses.

use crate::{SCHEMA, committed, fresh, insert, open};
use bailey_store::{APPLICATION_ID, Grade, Migration, Store, StoreError};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_are_private_even_when_they_were_not() {
    let (_directory, path) = fresh();
    let store = open(&path);
    insert(&store, 1).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        assert_eq!(mode(Path::new(&format!("{}{suffix}", path.display()))), 0o600, "{suffix}");
    }
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(mode(&path), 0o644);
    let _store = open(&path);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn the_log_is_on_and_foreign_keys_are_held() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let pragma = |name: &'static str| {
        store
            .write_blocking(Grade::Normal, move |tx| {
                Ok(tx.query_row(&format!("PRAGMA {name}"), [], |row| {
                    row.get::<_, rusqlite::types::Value>(0)
                })?)
            })
            .unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma("foreign_keys"), 1.into());
    assert_eq!(pragma("application_id"), APPLICATION_ID.into());
    assert_eq!(pragma("user_version"), 1.into());
}

#[test]
fn an_older_database_is_migrated_and_keeps_its_rows() {
    let (_directory, path) = fresh();
    insert(&open(&path), 7).unwrap();
    let second = Migration { version: 2, sql: "ALTER TABLE number ADD COLUMN extra TEXT DEFAULT 'new'" };
    let store = Store::open(&path, &[SCHEMA[0], second]).unwrap();
    let row = store.read_blocking(|tx| {
        Ok(tx.query_row("SELECT value, extra FROM number", [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    });
    assert_eq!(row.unwrap(), (7, "new".to_owned()));
}

#[test]
fn a_failed_migration_leaves_the_version_before() {
    let (_directory, path) = fresh();
    insert(&open(&path), 7).unwrap();
    let wrong = Migration { version: 2, sql: "CREATE TABLE half (x); INSERT INTO missing VALUES (1)" };
    let error = Store::open(&path, &[SCHEMA[0], wrong]).unwrap_err();
    assert!(matches!(error, StoreError::Sql { .. }), "{error}");
    let store = open(&path);
    let half = "SELECT count(*) FROM sqlite_schema WHERE name = 'half'";
    assert_eq!(store.read_blocking(|tx| Ok(tx.query_row(half, [], |row| row.get::<_, i64>(0))?)).unwrap(), 0);
}

#[test]
fn a_newer_database_is_refused_by_name() {
    let (_directory, path) = fresh();
    let newer = Migration { version: 9, sql: "SELECT 1" };
    drop(Store::open(&path, &[SCHEMA[0], newer]).unwrap());
    let error = open_error(&path);
    assert!(matches!(error, StoreError::TooNew { found: 9, supported: 1, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("test.db") && text.contains("upgrade"), "{text}");
}

/// A program that has the file open while a newer one takes it over writes nothing in a schema that it does
/// not know.
#[test]
fn who_has_a_database_open_that_became_newer_writes_nothing_more() {
    let (_directory, path) = fresh();
    let older = open(&path);
    insert(&older, 7).unwrap();
    // The control: what another program of the same version does is in nobody's way.
    insert(&open(&path), 8).unwrap();
    insert(&older, 9).unwrap();
    let newer = Migration { version: 9, sql: "ALTER TABLE number ADD COLUMN extra TEXT" };
    let newer = Store::open(&path, &[SCHEMA[0], newer]).unwrap();
    for _ in 0..2 {
        let error = insert(&older, 10).unwrap_err();
        assert!(matches!(error, StoreError::TooNew { found: 9, supported: 1, .. }), "{error}");
        assert!(error.to_string().contains("test.db"), "{error}");
    }
    insert(&newer, 11).unwrap();
    assert_eq!(committed(&path), [7, 8, 9, 11]);
}

#[test]
fn garbage_is_refused_and_left_alone() {
    for garbage in [b"x".repeat(10), b"not a database, but a long text\n".repeat(400)] {
        let (_directory, path) = fresh();
        fs::write(&path, &garbage).unwrap();
        let error = open_error(&path);
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
        assert!(error.to_string().contains("test.db"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), garbage);
    }
}

#[test]
fn a_foreign_database_is_refused() {
    let (_directory, path) = fresh();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = open_error(&path);
    assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
}

#[test]
fn a_missing_directory_is_named() {
    let (_directory, path) = fresh();
    let error = open_error(&path.join("below"));
    assert!(matches!(error, StoreError::Access { .. }), "{error}");
}

#[test]
fn many_open_one_new_file_at_once() {
    let (_directory, path) = fresh();
    std::thread::scope(|scope| {
        for value in 0..8 {
            let path = &path;
            scope.spawn(move || insert(&open(path), value).unwrap());
        }
    });
    assert_eq!(committed(&path), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_damaged_page_is_found() {
    let (_directory, path) = fresh();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = open(&path);
    store
        .write_blocking(Grade::Normal, |tx| {
            (0..500).try_for_each(|value| {
                tx.execute("INSERT INTO number VALUES (?1, ?2)", (value, "row ".repeat(20))).map(drop)
            })?;
            Ok(())
        })
        .unwrap();
    runtime.block_on(store.checkpoint()).unwrap();
    assert_eq!(runtime.block_on(store.integrity()).unwrap(), Vec::<String>::new());
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    bytes[3 * 4096..4 * 4096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let found = runtime.block_on(open(&path).integrity());
    assert!(
        matches!(&found, Ok(lines) if !lines.is_empty()) || matches!(found, Err(StoreError::Corrupt { .. }))
    );
}

fn open_error(path: &Path) -> StoreError {
    Store::open(path, SCHEMA).unwrap_err()
}

#[tokio::test]
async fn what_a_file_takes_is_without_its_free_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let sql = "CREATE TABLE t (bytes BLOB NOT NULL) STRICT";
    let store = Store::open(&path, &[Migration { version: 1, sql }]).unwrap();
    let fill = "INSERT INTO t (bytes) VALUES (zeroblob(4000000))";
    store.write(Grade::Full, move |tx| Ok(tx.execute(fill, [])?)).await.unwrap();
    store.checkpoint().await.unwrap();
    let full = bailey_store::used(&path).unwrap();
    assert!(full > 4_000_000, "{full}");
    store.write(Grade::Full, |tx| Ok(tx.execute("DELETE FROM t", [])?)).await.unwrap();
    store.checkpoint().await.unwrap();
    let used = bailey_store::used(&path).unwrap();
    assert!(used < 100_000 && std::fs::metadata(&path).unwrap().len() > 4_000_000, "{used}");
    std::fs::write(folder.path().join("short"), "x").unwrap();
    assert_eq!(bailey_store::used(&folder.path().join("short")).unwrap(), 1);
    assert!(bailey_store::used(&folder.path().join("none")).is_err());
}
