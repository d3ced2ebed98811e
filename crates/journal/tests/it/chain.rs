//! The chain holds, and says where it does not.

use crate::support::{Desk, command, desk, read};
use bailey_journal::{Entry, Fact, JournalError, Payload, Query};
use bailey_protocol::{Labels, Report, TurnId};
use bailey_store::{StoreError, params};

/// Genesis, a policy, a session, a message and two effects.
async fn written() -> Desk {
    let desk = desk().await;
    let session = desk.session().await;
    let turn = TurnId::new(1, [1; 10]);
    desk.journal.accept(session, turn, "hello", Labels::default()).await.unwrap();
    desk.run(session, command("echo one"), Report::Nothing).await;
    desk.run(session, read("/w/a"), Report::Nothing).await;
    desk
}

/// Where the journal says that it is broken, and why.
async fn broken(desk: &Desk) -> (u64, String) {
    match desk.journal.verify().await {
        Err(JournalError::Broken(broken)) => (broken.seq, broken.what),
        other => panic!("nothing was found: {other:?}"),
    }
}

#[tokio::test]
async fn an_untouched_chain_verifies() {
    let desk = written().await;
    let verified = desk.journal.verify().await.unwrap();
    assert_eq!(verified.entries, 8);
    assert_eq!(verified.payloads, 5, "the message, two intents, two outcomes");
    assert_eq!(verified.erased, 0);
    assert_eq!(desk.journal.verify_tail(3).await.unwrap().head, verified.head);
}

#[tokio::test]
async fn every_journal_begins_with_a_genesis_of_its_own() {
    let genesis = async || {
        let entries = desk().await.journal.entries(Query::default()).await.unwrap();
        entries.first().unwrap().entry.fact.clone()
    };
    let (one, other) = (genesis().await, genesis().await);
    assert!(
        matches!(&one, Fact::Genesis { program, nonce } if program.starts_with("bailey ") && nonce.len() == 32)
    );
    assert_ne!(one, other);
}

async fn flip(desk: &Desk, table: &str, column: &str, seq: u64, at: usize) {
    let sql = format!("UPDATE {table} SET {column} = ?2 WHERE seq = ?1");
    let read = format!("SELECT {column} FROM {table} WHERE seq = ?1");
    desk.tamper(move |tx| {
        let mut bytes: Vec<u8> = tx.query_row(&read, params![seq], |row| row.get(0)).unwrap();
        bytes[at] ^= 1;
        tx.execute(&sql, params![seq, bytes]).unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_flipped_byte_is_found_wherever_it_is() {
    let targets =
        [("entry", "body", 5_u64), ("entry", "hash", 5), ("payload", "bytes", 5), ("payload", "salt", 5)];
    for (table, column, seq) in targets {
        let desk = written().await;
        let query = format!("SELECT {column} FROM {table} WHERE seq = ?1");
        let length = desk
            .raw()
            .read(move |db| Ok(db.query_row(&query, params![seq], |row| row.get::<_, Vec<u8>>(0))?.len()))
            .await
            .unwrap();
        for at in [0, length / 3, length / 2, length - 1] {
            flip(&desk, table, column, seq, at).await;
            let (found, what) = broken(&desk).await;
            assert_eq!(found, seq, "{table}.{column} byte {at}: {what}");
            // Control: with the byte as it was, all is well again.
            flip(&desk, table, column, seq, at).await;
            desk.journal.verify().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_column_that_contradicts_its_entry_is_found() {
    for (column, value) in [("type", "outcome"), ("session", "another"), ("effect", "another")] {
        let desk = written().await;
        let sql = format!("UPDATE entry SET {column} = ?1 WHERE seq = 5");
        desk.tamper(move |tx| tx.execute(&sql, params![value]).unwrap()).await;
        let (seq, what) = broken(&desk).await;
        assert_eq!(seq, 5);
        assert_eq!(what, "its columns say something else than it does", "{column}");
    }
}

#[tokio::test]
async fn a_deleted_entry_is_missing() {
    for seq in [1_u64, 4, 6] {
        let desk = written().await;
        desk.tamper(move |tx| {
            tx.execute("DELETE FROM payload WHERE seq = ?1", params![seq]).unwrap();
            tx.execute("DELETE FROM entry WHERE seq = ?1", params![seq]).unwrap()
        })
        .await;
        let (found, what) = broken(&desk).await;
        assert_eq!((found, what), (seq, format!("it is missing; the next one is {}", seq + 1)));
    }
}

#[tokio::test]
async fn a_cut_end_is_found_while_something_still_points_there() {
    let desk = written().await;
    desk.tamper(|tx| {
        tx.execute("DELETE FROM payload WHERE seq >= 7", params![]).unwrap();
        tx.execute("DELETE FROM entry WHERE seq >= 7", params![]).unwrap()
    })
    .await;
    let (found, what) = broken(&desk).await;
    assert_eq!((found, what.as_str()), (7, "it is missing, though an effect still names entry 8"));
}

#[tokio::test]
async fn entries_that_changed_places_are_found() {
    let desk = written().await;
    desk.tamper(|tx| {
        tx.execute("DELETE FROM payload WHERE seq IN (5, 7)", params![]).unwrap();
        tx.execute("UPDATE entry SET seq = 1000 WHERE seq = 5", params![]).unwrap();
        tx.execute("UPDATE entry SET seq = 5 WHERE seq = 7", params![]).unwrap();
        tx.execute("UPDATE entry SET seq = 7 WHERE seq = 1000", params![]).unwrap()
    })
    .await;
    assert_eq!(broken(&desk).await.0, 5);
}

#[tokio::test]
async fn an_inserted_entry_is_found() {
    let desk = written().await;
    desk.tamper(|tx| {
        let sql = "INSERT INTO entry (seq, type, session, effect, body, hash)
                   SELECT seq + 1, type, session, effect, body, hash FROM entry ORDER BY seq DESC LIMIT 1";
        tx.execute(sql, params![]).unwrap()
    })
    .await;
    assert_eq!(broken(&desk).await.0, 9);
}

#[tokio::test]
async fn a_payload_that_nobody_removed_is_missed() {
    let desk = written().await;
    desk.journal.verify().await.expect("the control");
    desk.tamper(|tx| tx.execute("DELETE FROM payload WHERE seq = 4", params![]).unwrap()).await;
    let found = desk.journal.verify().await.unwrap_err().to_string();
    assert!(found.contains("entry 4") && found.contains("no entry says that it was removed"), "{found}");
}

/// The walk over the chain comes by no index, and by none of what follows from the entries.
#[tokio::test]
async fn a_damaged_page_is_found_where_no_entry_lies_on_it() {
    for name in ["entry_by_session", "approval_by_action", "approval", "spent"] {
        let desk = written().await;
        desk.journal.verify_pages().await.unwrap();
        let root = desk.root(name).await;
        let closed = desk.close();
        closed.tear(root);
        let desk = closed.open().await;
        assert!(desk.journal.verify().await.is_ok(), "{name}: the control: the chain holds");
        let found = desk.journal.verify_pages().await;
        let Err(JournalError::Store(StoreError::Corrupt { path, detail })) = found else {
            panic!("{name}: {found:?}")
        };
        assert_eq!(path, desk.path());
        assert!(!detail.is_empty() && !detail.contains('\n'), "{name}: {detail}");
    }
}

#[tokio::test]
async fn a_broken_journal_is_not_written() {
    let desk = written().await;
    desk.tamper(|tx| tx.execute("UPDATE entry SET hash = zeroblob(32) WHERE seq = 3", params![]).unwrap())
        .await;
    let path = desk.path();
    let redactor = desk.journal.redactor().clone();
    let (again, _mint) = bailey_journal::Journal::open(&path, redactor, desk.clock.clone()).await.unwrap();
    let entry = || {
        let fact = Fact::SessionResumed { model: "m".into() };
        Entry { session: None, effect: None, fact, payload: None }
    };
    let is_broken = |result| matches!(result, Err(JournalError::Broken(broken)) if broken.seq == 3);
    assert!(is_broken(again.append(entry()).await.map(drop)) && is_broken(again.sound().await));
    let before = desk.journal.newest();
    assert_eq!(again.newest(), before, "nothing was written");
    // The control: a handle that was opened while all was well still writes.
    desk.journal.append(entry()).await.unwrap();
    assert_eq!(desk.journal.newest(), before + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_keep_one_chain() {
    let desk = desk().await;
    let session = desk.session().await;
    let (other, _mint) = desk.second().await;
    let write = |journal: bailey_journal::Journal, name: &'static str| async move {
        for number in 0..50 {
            let turn = TurnId::new(1, [2; 10]);
            let fact = Fact::TurnEnded { turn, reason: "answered".into() };
            let entry = Entry::of(session, fact).with(Payload::Text(format!("{name} {number}")));
            journal.append(entry).await.unwrap();
        }
    };
    let one = tokio::spawn(write(desk.journal.clone(), "one"));
    let two = tokio::spawn(write(other.clone(), "other"));
    one.await.unwrap();
    two.await.unwrap();
    assert_eq!(desk.journal.verify().await.unwrap().entries, 103);
    assert_eq!(desk.journal.verify().await.unwrap(), other.verify().await.unwrap());
}

const JOURNAL: &str = "BAILEY_TEST_JOURNAL";

/// Not a test of its own: another process that appends.
#[tokio::test]
#[ignore = "started by the test below"]
async fn appender() {
    let Some(path) = std::env::var_os(JOURNAL) else { return };
    let redactor = bailey_secrets::Redactor::new(&bailey_secrets::Vault::default());
    let clock = std::sync::Arc::new(bailey_journal::SystemClock);
    let (journal, _mint) =
        bailey_journal::Journal::open(std::path::Path::new(&path), redactor, clock).await.unwrap();
    for _ in 0..100 {
        let fact = Fact::SessionResumed { model: std::process::id().to_string() };
        journal.append(Entry { session: None, effect: None, fact, payload: None }).await.unwrap();
    }
}

#[tokio::test]
async fn processes_that_start_at_once_keep_one_chain() {
    // They also race for the file, its schema and the genesis entry.
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("journal.db");
    let start = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "chain::appender"])
            .env(JOURNAL, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let others: Vec<_> = (0..3).map(|_| start()).collect();
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
    let redactor = bailey_secrets::Redactor::new(&bailey_secrets::Vault::default());
    let clock = std::sync::Arc::new(bailey_journal::SystemClock);
    let (journal, _mint) = bailey_journal::Journal::open(&path, redactor, clock).await.unwrap();
    assert_eq!(journal.verify().await.unwrap().entries, 301, "one genesis, and what each of them wrote");
    let entries = journal.entries(Query::default()).await.unwrap();
    let writers: std::collections::BTreeSet<_> = entries
        .iter()
        .filter_map(|recorded| match &recorded.entry.fact {
            Fact::SessionResumed { model } => Some(model.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(writers.len(), 3);
}
