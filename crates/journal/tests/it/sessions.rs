//! Sessions as the journal lists and finds them.

use crate::support::desk;
use bailey_journal::{JournalError, NewSession};
use bailey_protocol::{Labels, SessionId, TurnId};
use std::time::Duration;

async fn open(desk: &crate::support::Desk, last: u8) -> SessionId {
    let id = SessionId::new(1_767_000_000_000, [0, 0, 0, 0, 0, 0, 0, 0, 0xab, last]);
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: "/w".into(),
        principal: "owner".into(),
        model: "p/m".into(),
    };
    desk.journal.open_session(id, new).await.unwrap();
    id
}

#[tokio::test]
async fn a_session_is_found_by_a_unique_ending() {
    let desk = desk().await;
    let (one, other) = (open(&desk, 0x11).await, open(&desk, 0x21).await);
    let find = async |name: &str| desk.journal.session(name).await;
    assert_eq!(find("ab11").await.unwrap().id, one);
    assert_eq!(find("ab21").await.unwrap().id, other);
    assert_eq!(find(&one.to_string()).await.unwrap().id, one);
    let ending = |id: SessionId, length: usize| id.to_string().split_off(36 - length);
    for name in ["", "1", "b11", "%"] {
        assert!(
            matches!(find(name).await, Err(JournalError::ShortSession(asked)) if asked == name),
            "{name}"
        );
    }
    for name in ["ab99", "_b11", &one.to_string()[..8]] {
        assert!(
            matches!(find(name).await, Err(JournalError::NoSuchSession(asked)) if asked == name),
            "{name}"
        );
    }
    // One that ends several sessions' names finds none.
    let twin = SessionId::new(1_767_000_000_001, [0, 0, 0, 0, 0, 0, 0, 0, 0xab, 0x11]);
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: "/w".into(),
        principal: "owner".into(),
        model: "p/m".into(),
    };
    desk.journal.open_session(twin, new).await.unwrap();
    assert!(find(&ending(one, 4)).await.is_err());
    assert_eq!(find(&twin.to_string()).await.unwrap().id, twin);
}

#[tokio::test]
async fn a_shared_session_begins_once() {
    let desk = desk().await;
    let id = SessionId::new(0, [7; 10]);
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: "/w".into(),
        principal: "owner".into(),
        model: String::new(),
    };
    desk.journal.share_session(id, new.clone()).await.unwrap();
    let newest = desk.journal.newest();
    desk.journal.share_session(id, new.clone()).await.unwrap();
    assert_eq!(desk.journal.newest(), newest);
    // The control: one that is its process's own may not be there.
    assert!(desk.journal.open_session(id, new).await.is_err());
}

#[tokio::test]
async fn sessions_are_listed_newest_first_with_a_title() {
    let desk = desk().await;
    let one = open(&desk, 1).await;
    desk.clock.advance(Duration::from_secs(1));
    let other = open(&desk, 2).await;
    let ids = async || -> Vec<SessionId> {
        desk.journal.sessions().await.unwrap().into_iter().map(|info| info.id).collect()
    };
    assert_eq!(ids().await, [other, one]);
    desk.clock.advance(Duration::from_secs(1));
    let say = async |text: &str| {
        desk.journal.accept(one, TurnId::new(1, [1; 10]), text, Labels::default()).await.unwrap();
    };
    say("fix the bug\nplease").await;
    say("and another").await;
    assert_eq!(ids().await, [one, other]);
    let info = desk.journal.session(&one.to_string()).await.unwrap();
    assert_eq!(info.title, "fix the bug");
    desk.journal.resume_session(one, "p/other".into()).await.unwrap();
    assert_eq!(desk.journal.session(&one.to_string()).await.unwrap().model, "p/other");
}
