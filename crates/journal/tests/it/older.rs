//! Journals that older programs made. `old/schema-N.db` is what five runs of `bailey sandbox run -- true` left, by the last
//! program of that schema.

use crate::support::schema_of;
use bailey_journal::{Entry, Fact, Journal, SCHEMA_VERSION, SystemClock, merkle};
use bailey_protocol::number::Seq;
use bailey_secrets::{Redactor, Vault};
use std::{fs, path::Path, sync::Arc};

#[tokio::test]
async fn a_journal_of_every_older_schema_is_taken_over_with_all_it_holds() {
    // The second never left this house.
    for older in [1] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("journal.db");
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/old/schema-{older}.db"));
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
