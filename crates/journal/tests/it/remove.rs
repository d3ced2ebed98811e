//! Sessions that are removed, and forked.

use crate::support::{Desk, command, desk};
use bailey_journal::{JournalError, Query, SessionLock};
use bailey_protocol::{ExecReport, Labels, Report, SessionId, TurnId};
use bailey_store::{Grade, params};

const SAID: &str = "a sentence that nobody else says";

async fn said(desk: &Desk) -> SessionId {
    let session = desk.session().await;
    for n in 0..20 {
        let text = format!("{SAID} {n} {}", "and more ".repeat(500));
        desk.journal.accept(session, TurnId::new(1, [1; 10]), text, Labels::default()).await.unwrap();
    }
    desk.run(session, command("make"), Report::Exec(ExecReport::default())).await;
    session
}

/// Whether the database's files hold the sentence.
fn on_disk(desk: &Desk) -> bool {
    ["journal.db", "journal.db-wal"].iter().any(|name| {
        let bytes = std::fs::read(desk.home.path().join(name)).unwrap_or_default();
        bytes.windows(SAID.len()).any(|window| window == SAID.as_bytes())
    })
}

#[tokio::test]
async fn a_removed_session_is_erased_and_the_chain_holds() {
    let desk = desk().await;
    let kept = said(&desk).await;
    let lock = SessionLock::take(kept, desk.home.path(), &crate::support::holder()).unwrap();
    desk.raw().checkpoint().await.unwrap();
    assert!(on_disk(&desk), "the control");
    let before = desk.journal.entries(Query { session: Some(kept), ..Query::default() }).await.unwrap();
    let removed = desk.journal.remove_session(&lock).await.unwrap();
    assert_eq!((removed.entries, removed.payloads), (before.len() as u64, 22));
    assert!(!on_disk(&desk), "erased bytes are overwritten");
    let verified = desk.journal.verify().await.unwrap();
    assert_eq!((verified.erased, verified.payloads), (22, 0));
    assert!(matches!(desk.journal.session(&kept.to_string()).await, Err(JournalError::NoSuchSession(_))));
    assert_eq!(desk.journal.sessions().await.unwrap(), []);
    let after = desk.journal.entries(Query { session: Some(kept), ..Query::default() }).await.unwrap();
    assert_eq!(after.last().unwrap().entry.fact.name(), "session_removed");
    assert!(after.iter().all(|recorded| recorded.payload.is_none()));
    // Its name can be nobody's any more: nothing begins in it.
    let begun = desk.begin(crate::support::effect(kept, command("make")), 0).await;
    assert!(begun.is_err());
}

/// A removal accounts for what is gone of its session and of that one's sub-agents, and for nothing else.
#[tokio::test]
async fn what_is_gone_besides_what_was_removed_is_found() {
    for (taken, is_found) in [(0, true), (1, false), (2, false), (3, false)] {
        let desk = desk().await;
        let (kept, removed) = (said(&desk).await, said(&desk).await);
        let child = desk.child(removed, 1_000).await;
        let grandchild = desk.child(child, 1_000).await;
        for (n, id) in [(2, child), (3, grandchild)] {
            desk.journal.accept(id, TurnId::new(n, [2; 10]), SAID, Labels::default()).await.unwrap();
        }
        let left = desk.journal.sources(removed, 1_000_000).await.unwrap().0;
        assert!(left.iter().any(|it| it.entry.session == Some(grandchild)), "it is one family");
        let lock = SessionLock::take(removed, desk.home.path(), &crate::support::holder()).unwrap();
        desk.journal.remove_session(&lock).await.unwrap();
        desk.journal.verify().await.expect("the control");
        for id in [removed, child, grandchild] {
            let left = desk.journal.entries(Query { session: Some(id), ..Query::default() }).await.unwrap();
            assert!(left.iter().all(|it| it.payload.is_none()), "{id}: nothing that was said is left");
        }
        let of = [kept, removed, child, grandchild][taken].to_string();
        let raw = desk.raw();
        let sql = "DELETE FROM payload WHERE seq = (SELECT max(seq) FROM entry WHERE session = ?1 AND type = 'accepted')";
        raw.write(Grade::Full, move |tx| Ok(tx.execute(sql, params![of])?)).await.unwrap();
        let found = desk.journal.verify().await;
        assert_eq!(found.is_err(), is_found, "{taken}: {found:?}");
    }
}

#[tokio::test]
async fn a_fork_holds_what_was_said_up_to_an_entry_and_needs_the_other_no_more() {
    let desk = desk().await;
    let from = said(&desk).await;
    let info = desk.journal.session(&from.to_string()).await.unwrap();
    let entries = desk.journal.entries(Query { session: Some(from), ..Query::default() }).await.unwrap();
    let third = entries[3].entry.seq;
    let fork = SessionId::new(6, [6; 10]);
    assert_eq!(desk.journal.fork_session(fork, &info, Some(third.0)).await.unwrap(), third);
    for nowhere in [1, third.0 + 1000] {
        let refused = desk.journal.fork_session(SessionId::new(7, [7; 10]), &info, Some(nowhere)).await;
        assert!(matches!(refused, Err(JournalError::NoEntry { at, .. }) if at == nowhere));
    }
    let lock = SessionLock::take(from, desk.home.path(), &crate::support::holder()).unwrap();
    desk.journal.remove_session(&lock).await.unwrap();
    let copied = desk.journal.entries(Query { session: Some(fork), ..Query::default() }).await.unwrap();
    let names: Vec<_> = copied.iter().map(|recorded| recorded.entry.fact.name()).collect();
    assert_eq!(names, ["session_forked", "accepted", "accepted", "accepted"]);
    assert!(copied[3].text().starts_with(&format!("{SAID} 2")));
    let [session] = &desk.journal.sessions().await.unwrap()[..] else { panic!() };
    assert!(session.id == fork && session.title.starts_with(SAID) && session.tokens_used == 0);
    desk.journal.verify().await.unwrap();
}
