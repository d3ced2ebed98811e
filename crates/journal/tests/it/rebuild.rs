//! Projections made anew from the chain.

use crate::support::{Desk, LASTS, command, desk, effect, merge, terms, why};
use bailey_journal::Warrant;
use bailey_protocol::{
    Answer, Digest, ExecReport, Labels, MergeFile, MergeKind, MergeResult, MergeState, Report, Sealed,
    SessionId, Touched, TurnId,
};
use bailey_store::params;

fn touched(path: &str) -> Touched {
    Touched { path: path.into(), base: Some(Digest::of(path.as_bytes())), unsure: true }
}

async fn approved(desk: &Desk, sealed: Sealed, answer: Answer) {
    let id = desk.mint.ask(&sealed, terms(), serde_json::json!({}), LASTS).await.unwrap();
    desk.mint.answer(sealed.effect().session, id, answer, "owner", "").await.unwrap();
    if answer != Answer::No {
        let grant = desk.mint.grant(id, &sealed).await.unwrap();
        drop(desk.begin_approved(sealed, grant).await.unwrap());
    }
}

/// Something of everything that a projection follows from; gives a session that is left.
async fn lived(desk: &Desk) -> SessionId {
    let session = desk.session().await;
    for text in ["the first message\nand more", "another"] {
        desk.journal.accept(session, TurnId::new(1, [1; 10]), text, Labels::default()).await.unwrap();
    }
    desk.journal.resume_session(session, "other/model".into()).await.unwrap();
    let report = ExecReport { touched: vec![touched("/w/a"), touched("/w/b")], ..ExecReport::default() };
    desk.run(session, command("make"), Report::Exec(report)).await;
    let file = MergeFile::whole("/w/a".into(), touched("/w/a").base, Some(Digest::of(b"new")));
    let done = vec![MergeResult { path: file.path.clone(), state: MergeState::Done }];
    desk.run(
        session,
        merge(MergeKind::Apply, None, vec![file]),
        Report::Merged { files: done, tips: Vec::new() },
    )
    .await;
    desk.journal.reveal(session, "/w/.env".into()).await.unwrap();
    let answers = [Answer::Yes, Answer::No, Answer::YesForSession];
    for (n, answer) in answers.into_iter().enumerate() {
        approved(desk, effect(session, command(&format!("deploy {n}"))), answer).await;
    }
    // One is open, one was cut in the middle, one is reserved.
    desk.mint
        .ask(&effect(session, command("deploy open")), terms(), serde_json::json!({}), LASTS)
        .await
        .unwrap();
    crate::tokens::used_once(desk, session).await;
    let costly = crate::support::costing(session, command("model"), 7);
    let warrant = Warrant::Allowed(desk.allowed(&costly));
    drop(desk.mint.begin(costly, warrant, why(), &crate::support::bounded(100)).await.unwrap());
    let paid = crate::support::costing(session, command("model"), 5);
    let (_permit, receipt) = desk.begin(paid, 100).await.unwrap();
    let used = bailey_protocol::Cost::tokens(5);
    desk.mint.finish(receipt, &crate::support::done(Report::Nothing), used, Vec::new()).await.unwrap();
    desk.run(session, crate::support::model("https://api.example.com/v1", 100), Report::Nothing).await;
    let other = desk.session().await;
    let report = ExecReport { touched: vec![touched("/w/c")], ..ExecReport::default() };
    desk.run(other, command("make"), Report::Exec(report)).await;
    let lock = bailey_journal::SessionLock::take(other, desk.home.path(), &crate::support::holder()).unwrap();
    desk.journal.remove_session(&lock).await.unwrap();
    let info = desk.journal.session(&session.to_string()).await.unwrap();
    desk.journal.fork_session(SessionId::new(5, [5; 10]), &info, None).await.unwrap();
    session
}

#[tokio::test]
async fn what_is_rebuilt_is_what_was_there() {
    let desk = desk().await;
    let session = lived(&desk).await;
    let before = (desk.journal.sessions().await.unwrap(), desk.journal.touched(session).await.unwrap());
    let rebuilt = desk.journal.rebuild().await.unwrap();
    assert!(rebuilt.repaired.is_empty(), "{rebuilt:?}");
    assert_eq!(rebuilt.rows["session"], 2);
    assert!(rebuilt.rows.values().all(|rows| *rows > 0), "something of everything: {rebuilt:?}");
    let after = (desk.journal.sessions().await.unwrap(), desk.journal.touched(session).await.unwrap());
    assert_eq!(before, after);
    // A yes for the session is still one, and a used one still used.
    let again = effect(session, command("deploy 2"));
    assert!(desk.mint.standing_grant(&again, &terms(), true).await.unwrap().is_some());
    assert!(
        desk.mint
            .standing_grant(&effect(session, command("deploy 0")), &terms(), true)
            .await
            .unwrap()
            .is_none()
    );
    desk.journal.verify().await.unwrap();
}

#[tokio::test]
async fn what_was_tampered_with_is_put_right_and_named() {
    let changes = [
        ("session", "UPDATE session SET title = 'another' WHERE title <> ''"),
        ("reserved", "DELETE FROM reserved"),
        ("spent", "UPDATE spent SET used = 0 WHERE account LIKE 'day:%'"),
        ("spent", "DELETE FROM spent WHERE account LIKE 'sent:%'"),
        ("effect", "DELETE FROM effect WHERE outcome IS NULL"),
        ("approval", "UPDATE approval SET state = 'yes' WHERE state = 'burnt'"),
        ("touched", "DELETE FROM touched"),
        ("revealed", "INSERT INTO revealed SELECT session, '/w/other' FROM revealed"),
        ("state", "UPDATE state SET value = 'x'"),
    ];
    for (table, change) in changes {
        let desk = desk().await;
        let session = lived(&desk).await;
        let before = desk.journal.sessions().await.unwrap();
        desk.journal.verify_projections().await.expect("the control");
        desk.tamper(move |tx| tx.execute(change, params![]).unwrap()).await;
        let verified = desk.journal.verify_projections().await.unwrap_err().to_string();
        assert!(verified.contains(&format!("the table `{table}`")), "{verified}");
        let rebuilt = desk.journal.rebuild().await.unwrap();
        assert_eq!(rebuilt.repaired.keys().collect::<Vec<_>>(), [table], "{rebuilt:?}");
        assert_eq!(desk.journal.sessions().await.unwrap(), before);
        assert_eq!(desk.journal.touched(session).await.unwrap().len(), 2);
        let again = desk.journal.rebuild().await.unwrap();
        assert!(again.repaired.is_empty(), "{again:?}");
    }
}

#[tokio::test]
async fn a_broken_chain_is_not_rebuilt_from() {
    let desk = desk().await;
    lived(&desk).await;
    let before = desk.journal.sessions().await.unwrap();
    desk.tamper(|tx| tx.execute("UPDATE entry SET hash = zeroblob(32) WHERE seq = 3", params![]).unwrap())
        .await;
    assert!(desk.journal.rebuild().await.is_err());
    assert_eq!(desk.journal.sessions().await.unwrap(), before);
}
