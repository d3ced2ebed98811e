//! What is read of pages is what SQLite reads, and more where SQLite reads nothing.

use bailey_store::{Grade, Kind, Migration, Store, Torn, types::Value};
use std::{collections::BTreeMap, fs, os::unix::fs::FileExt as _, path::Path};

const TABLES: &[Migration] = &[Migration {
    version: 1,
    sql: "CREATE TABLE row (id INTEGER PRIMARY KEY, text TEXT NOT NULL, bytes BLOB NOT NULL, number INTEGER);
          CREATE TABLE pair (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;",
}];

/// What the rows are: some go on over several pages.
fn row(id: i64) -> (String, Vec<u8>, Option<i64>) {
    let (length, number) = match id % 5 {
        0 => (3, None),
        1 => (400, Some(0)),
        2 => (4_061, Some(1)),
        3 => (4_062, Some(-300)),
        _ => (9_000, Some(i64::MAX)),
    };
    (format!("row {id}"), vec![u8::try_from(id % 251).unwrap(); length], number)
}

async fn made(path: &Path, rows: std::ops::Range<i64>) -> Store {
    let store = Store::open(path, TABLES).unwrap();
    store
        .write(Grade::Normal, move |tx| {
            for id in rows {
                let (text, bytes, number) = row(id);
                tx.execute("INSERT INTO row VALUES (?1, ?2, ?3, ?4)", (id, text.clone(), &bytes, number))?;
                tx.execute("INSERT INTO pair VALUES (?1, ?2)", (text, bytes))?;
            }
            Ok(())
        })
        .await
        .unwrap();
    store
}

/// Rows of the one table by their numbers, and how many of the other there are.
fn found(path: &Path) -> (BTreeMap<i64, Vec<Value>>, usize) {
    let torn = Torn::open(path).unwrap();
    let (mut rows, mut pairs) = (Vec::new(), Vec::new());
    torn.each(|place, number, kinds| match (number, kinds) {
        (Some(number), [Kind::Null, Kind::Text(_), Kind::Blob(_), Kind::Integer | Kind::Null]) => {
            rows.push((number, place));
        }
        (None, [Kind::Text(_), Kind::Blob(_)]) => pairs.push(place),
        _ => {}
    });
    let read = rows.into_iter().filter_map(|(number, place)| Some((number, torn.row(place)?)));
    (read.collect(), pairs.into_iter().filter(|place| torn.row(*place).is_some()).count())
}

fn is_right(id: i64, values: &[Value]) -> bool {
    let (text, bytes, number) = row(id);
    let number = number.map_or(Value::Null, Value::Integer);
    values == [Value::Null, Value::Text(text), Value::Blob(bytes), number]
}

#[tokio::test]
async fn every_row_of_a_whole_database_is_found_in_its_file_and_in_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(made(&path, 1..200).await);
    let store = made(&path, 200..300).await;
    assert!(fs::metadata(folder.path().join("a.db-wal")).unwrap().len() > 0);
    let (rows, pairs) = found(&path);
    assert_eq!((rows.len(), pairs), (299, 299));
    assert!(rows.iter().all(|(id, values)| is_right(*id, values)));
    // What is removed is found no more: its bytes are overwritten.
    store.write(Grade::Normal, |tx| Ok(tx.execute("DELETE FROM row WHERE id % 2 = 0", ())?)).await.unwrap();
    assert_eq!(found(&path).0.len(), 150);
}

#[tokio::test]
async fn each_page_that_is_gone_takes_what_stood_on_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(made(&path, 1..300).await);
    let whole = fs::read(&path).unwrap();
    let (mut worst, mut inner) = (0, 0);
    for page in 0..whole.len() / 4096 {
        fs::write(&path, &whole).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; 4096], page as u64 * 4096).unwrap();
        let (rows, pairs) = found(&path);
        // Where a row goes on, its bytes may be those of the page that is gone: whoever asks knows by other
        // means.
        let wrong = rows.iter().filter(|(id, values)| !is_right(**id, values)).count();
        assert!(wrong <= 1, "page {page}: {wrong}");
        worst = worst.max(299 - rows.len()).max(299 - pairs);
        // An inner page of the table: SQLite finds nothing below it.
        inner += usize::from(whole[page * 4096] == 5 && rows.len() == 299);
    }
    assert!(worst < 30 && inner > 0, "{worst} {inner}");
}

/// Whatever the bytes are, it ends, and reads no row longer than the file.
#[tokio::test]
async fn hostile_bytes_are_read_as_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(made(&path, 1..120).await);
    let whole = fs::read(&path).unwrap();
    let mut seed = 1_u64;
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(seed >> 33).unwrap() % bytes.len();
            bytes[at] = seed.to_le_bytes()[1];
        }
        fs::write(&path, &bytes).unwrap();
        found(&path);
    }
}
