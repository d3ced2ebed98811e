//! Journals that older programs made. `fixtures/schema-N.db` is what five runs of `bailey sandbox run --
//! true` left, by the last program of that schema.

use crate::support::{desk, effect, model, schema_of};
use bailey_journal::{Entry, Fact, Journal, JournalError, SCHEMA_VERSION, SystemClock, merkle};
use bailey_protocol::{Cost, HttpReport, Outcome, Report, Status, number::Seq};
use bailey_secrets::{Redactor, Vault};
use bailey_store::{Grade, Migration, Store, Tx, params};
use std::{fs, path::Path, sync::Arc};

#[tokio::test]
async fn a_journal_of_every_older_schema_is_taken_over_with_all_it_holds() {
    // The second never left this house; what is other about it is told of below.
    for older in [1] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("journal.db");
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/schema-{older}.db"));
        fs::copy(&made, &path).unwrap();
        assert_eq!(schema_of(&path), older, "the control: it is an old one");
        assert!(older < SCHEMA_VERSION);
        let redactor = Redactor::new(&Vault::default());
        let (journal, _mint) = Journal::open(&path, redactor, Arc::new(SystemClock)).await.unwrap();
        let before = journal.verify().await.unwrap();
        journal.verify_projections().await.unwrap();
        assert!(before.entries >= 20 && before.payloads >= 10, "{before:?}");
        assert_eq!(journal.sessions().await.unwrap().len(), 5);
        // On to where the tree gets its first row, which is over what the older program wrote.
        let fact = || Fact::SessionResumed { model: "p/m".into() };
        while journal.newest() < 300 {
            let entry = Entry { session: None, effect: None, fact: fact(), payload: None };
            journal.append(entry).await.unwrap();
        }
        let after = journal.verify().await.unwrap();
        journal.verify_projections().await.unwrap();
        assert_eq!((after.entries, after.payloads), (300, before.payloads));
        let root = after.root.unwrap();
        assert_eq!(journal.root(300).await.unwrap(), root);
        let old = before.root.unwrap();
        let goes_on = journal.consistency(before.entries, 300).await.unwrap();
        assert_eq!(goes_on.check((before.entries, &old), (300, &root)), Ok(()));
        let chained = journal.chained(Seq(3)).await.unwrap();
        let proof = journal.inclusion(Seq(3), 300).await.unwrap();
        assert_eq!(proof.check(merkle::leaf(&chained), 2, 300, &root), Ok(()));
    }
}

/// The program of before counted what a request was to send also where nothing of it left: none of its
/// journals was changed past Bailey, and each of them was said to be.
#[tokio::test]
async fn what_an_older_program_counted_is_counted_anew_and_no_false_alarm() {
    const INDEXES: &str =
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('entry_of_home', 'entry_of_answers')";
    for version in [2, SCHEMA_VERSION] {
        let desk = desk().await;
        let session = desk.session().await;
        let (_permit, receipt) =
            desk.begin(effect(session, model("https://a.example/v1", 7)), 0).await.unwrap();
        let report = Report::Http(HttpReport { sent: false, ..HttpReport::default() });
        let status = Status::Failed { reason: "nobody listens there".into() };
        let outcome = Outcome { status, enforced: None, duration_ms: 1, report };
        desk.mint.finish(receipt, &outcome, Cost::default(), Vec::new()).await.unwrap();
        desk.journal.verify_projections().await.unwrap();
        let closed = desk.close();
        let raw = Store::open(&closed.path(), &[Migration { version: SCHEMA_VERSION, sql: "" }]).unwrap();
        let older = move |tx: &mut Tx<'_>| {
            let account = format!("sent:{session}");
            tx.execute("INSERT INTO spent VALUES (?1, 'a.example', 27)", params![account])?;
            if version < SCHEMA_VERSION {
                tx.execute_batch(&format!(
                    "DROP INDEX entry_of_home; DROP INDEX entry_of_answers; PRAGMA user_version = {version}"
                ))?;
            }
            Ok(())
        };
        raw.write(Grade::Full, older).await.unwrap();
        raw.checkpoint().await.unwrap();
        drop(raw);
        assert_eq!(schema_of(&closed.path()), version);
        let desk = closed.open().await;
        let verified = desk.journal.verify_projections().await;
        if version == SCHEMA_VERSION {
            let verified = verified.expect_err("the control: this program wrote no such row").to_string();
            assert!(verified.contains("the table `spent`"), "{verified}");
            continue;
        }
        verified.unwrap();
        desk.journal.verify().await.unwrap();
        desk.journal.verify_pages().await.unwrap();
        assert_eq!(desk.journal.totals(session).await.unwrap().sent, []);
        let count = |tx: &mut Tx<'_>| Ok(tx.query_row(INDEXES, params![], |row| row.get::<_, u64>(0))?);
        assert_eq!(desk.raw().write(Grade::Normal, count).await.unwrap(), 2);
        // From now on a row that says something else is one that somebody changed.
        let row = format!("INSERT INTO spent VALUES ('sent:{session}', 'a.example', 27)");
        desk.tamper(move |tx| tx.execute(&row, params![]).unwrap()).await;
        let desk = desk.close().open().await;
        let verified = desk.journal.verify_projections().await.unwrap_err().to_string();
        assert!(
            verified.contains("the table `spent`") && verified.contains(&session.to_string()),
            "{verified}"
        );
    }
}

/// An older journal whose chain does not hold is opened as ever, and is not made to say what its chain does.
#[tokio::test]
async fn an_older_journal_that_is_torn_is_named_and_left_alone() {
    for is_torn in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("journal.db");
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema-1.db"), &path).unwrap();
        let raw = Store::open(&path, &[Migration { version: 1, sql: "" }]).unwrap();
        let change = move |tx: &mut Tx<'_>| {
            tx.execute("UPDATE session SET title = 'forged'", params![])?;
            let tear = "UPDATE entry SET hash = zeroblob(32) WHERE seq = 3 AND ?1";
            Ok(tx.execute(tear, params![is_torn])?)
        };
        assert_eq!(raw.write(Grade::Full, change).await.unwrap(), usize::from(is_torn));
        drop(raw);
        let redactor = Redactor::new(&Vault::default());
        let (journal, _mint) = Journal::open(&path, redactor, Arc::new(SystemClock)).await.unwrap();
        let verified = journal.verify().await;
        assert_eq!(matches!(verified, Err(JournalError::Broken(_))), is_torn, "{verified:?}");
        let sessions = journal.sessions().await.unwrap();
        assert!(sessions.iter().all(|session| (session.title == "forged") == is_torn), "{sessions:?}");
    }
}
