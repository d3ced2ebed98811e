//! What a session changed, its way to the project and back.

use crate::support::{Front, say, session};
use bailey_protocol::Answer;
use bailey_session::{Host, HostError};
use bailey_testkit::{ModelServer, Reply};
use serde_json::json;

/// A session that changed `a.txt` and made `b.txt`.
async fn changed(extra: &str) -> (Host, Front, tempfile::TempDir) {
    let server = ModelServer::start([
        Reply::calls([
            ("1", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" })),
            ("2", "fs_write", json!({ "path": "b.txt", "content": "new\n" })),
            ("3", "fs_write", json!({ "path": extra, "content": "x\n" })),
        ]),
        Reply::text("done"),
    ]);
    let (mut host, mut front, home) = session(&server).await;
    front.world.put("a.txt", "one\n");
    host.say(say("change it"), &mut front.heard).await.unwrap();
    (host, front, home)
}

#[tokio::test]
async fn changes_are_applied_and_undone() {
    let (host, mut front, _home) = changed("c.txt").await;
    let changes = host.changes().await.unwrap();
    assert_eq!(changes.paths(), ["a.txt", "b.txt", "c.txt"]);
    assert!(changes.diff().contains("-one\n+two\n") && changes.red.is_empty(), "{changes:?}");
    assert_eq!(front.world.project("a.txt").as_deref(), Some("one\n"));
    let merged = host.apply(&changes, &mut front.heard).await.unwrap();
    assert_eq!((merged.files.len(), merged.conflicts.len()), (3, 0));
    assert_eq!(front.world.project("a.txt").as_deref(), Some("two\n"));
    assert_eq!(front.world.project("b.txt").as_deref(), Some("new\n"));
    let undone = host.undo(&mut front.heard).await.unwrap();
    assert_eq!(undone.conflicts, Vec::<String>::new());
    assert_eq!(front.world.project("a.txt").as_deref(), Some("one\n"));
    assert_eq!(front.world.project("b.txt"), None);
    assert!(
        matches!(host.undo(&mut front.heard).await, Err(HostError::Merge(why)) if why.contains("nothing"))
    );
}

/// A session that changed the first and the last of ten lines.
async fn two_places() -> (Host, Front, tempfile::TempDir) {
    let server = ModelServer::start([
        Reply::calls([("1", "fs_write", json!({ "path": "a.txt", "content": lines("one", "ten") }))]),
        Reply::text("done"),
    ]);
    let (mut host, mut front, home) = session(&server).await;
    front.world.put("a.txt", lines("1", "10"));
    host.say(say("change it"), &mut front.heard).await.unwrap();
    (host, front, home)
}

fn lines(first: &str, last: &str) -> String {
    format!("{first}\n2\n3\n4\n5\n6\n7\n8\n9\n{last}\n")
}

#[tokio::test]
async fn hunks_are_applied_one_by_one_and_undone_one_by_one() {
    let (host, mut front, _home) = two_places().await;
    let mut states = vec![lines("1", "10")];
    for left in [2, 1] {
        let changes = host.changes().await.unwrap();
        let file = changes.hunks().remove(0);
        assert_eq!(file.hunks.len(), left);
        let last = file.hunks.last().unwrap().clone();
        let picked = changes.pick(&[(file.path, vec![last])]).unwrap();
        let merged = host.apply(&picked, &mut front.heard).await.unwrap();
        assert_eq!((merged.files.len(), merged.conflicts.len()), (1, 0), "{merged:?}");
        states.push(front.world.project("a.txt").unwrap());
    }
    assert_eq!(states[1..], [lines("1", "ten"), lines("one", "ten")]);
    assert!(host.changes().await.unwrap().is_empty());
    for state in states.iter().rev().skip(1) {
        host.undo(&mut front.heard).await.unwrap();
        assert_eq!(front.world.project("a.txt").as_ref(), Some(state));
    }
    assert_eq!(host.changes().await.unwrap().hunks().remove(0).hunks.len(), 2);
}

#[tokio::test]
async fn a_hunk_of_a_file_that_somebody_changed_meanwhile_is_kept() {
    let (host, mut front, _home) = two_places().await;
    let changes = host.changes().await.unwrap();
    let file = changes.hunks().remove(0);
    let picked = changes.pick(&[(file.path, file.hunks[..1].to_vec())]).unwrap();
    front.world.put("a.txt", "mine\n");
    let merged = host.apply(&picked, &mut front.heard).await.unwrap();
    assert_eq!(merged.conflicts.len(), 1, "{merged:?}");
    assert_eq!(front.world.project("a.txt").as_deref(), Some("mine\n"));
    // Nor is there a hunk to be picked from then on.
    let file = host.changes().await.unwrap().hunks().remove(0);
    assert!(file.hunks.len() == 1 && file.remarks[0].contains("would be kept"));
}

#[tokio::test]
async fn what_somebody_changed_meanwhile_is_kept() {
    let (host, mut front, _home) = changed("c.txt").await;
    let changes = host.changes().await.unwrap();
    front.world.put("a.txt", "mine\n");
    let merged = host.apply(&changes, &mut front.heard).await.unwrap();
    assert_eq!(merged.files, ["b.txt", "c.txt"]);
    assert!(merged.conflicts.first().unwrap().starts_with("a.txt: "), "{merged:?}");
    assert_eq!(front.world.project("a.txt").as_deref(), Some("mine\n"));
}

#[tokio::test]
async fn a_red_change_is_asked_and_a_no_changes_nothing() {
    for (answer, applied) in [(Answer::No, false), (Answer::Yes, true)] {
        let (host, front, _home) = changed(".vscode/tasks.json").await;
        let changes = host.changes().await.unwrap();
        assert!(!changes.red.is_empty(), "{changes:?}");
        let Front { ops, mut heard, mut events, world, .. } = front;
        let answering = Front::answer_next(&mut events, &ops, answer);
        let (merged, ()) = tokio::join!(host.apply(&changes, &mut heard), answering);
        assert_eq!(merged.is_ok(), applied);
        assert_eq!(world.project("b.txt").is_some(), applied);
    }
}

#[tokio::test]
async fn a_discard_leaves_the_project_alone() {
    let (host, mut front, _home) = changed("c.txt").await;
    host.discard(&mut front.heard).await.unwrap();
    assert!(host.changes().await.unwrap().is_empty());
    assert_eq!(front.world.project("a.txt").as_deref(), Some("one\n"));
    assert_eq!(front.world.seen("b.txt"), None);
}
