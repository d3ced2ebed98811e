//! Retention: what leaves the journal, what stays, and what is found when an archive is not what was written.

use crate::support::{Desk, LASTS, command, desk, done, effect, holder, read, terms};
use bailey_journal::{
    Archive, Fact, Journal, JournalError, Query, RetentionReason, SessionLock, Shelf, Terms,
    archive::{self, Sealed},
    checkpoint::PublicKey,
    proof::Proven,
};
use bailey_policy::{Caveat, Condition};
use bailey_protocol::{Answer, Cost, ExecReport, Kind, Labels, Report, SessionId, Touched, TurnId};
use bailey_store::params;
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SAID: &str = "a sentence that only an archive holds";

async fn said(desk: &Desk, session: SessionId, text: &str) {
    let turn = TurnId::new(1, [1; 10]);
    desk.journal.accept(session, turn, text, Labels::default()).await.unwrap();
}

/// A session of the first day with commands and words, one beside it that is used up to now, and their
/// entries in turn.
async fn two(desk: &Desk) -> (SessionId, SessionId) {
    let (old, new) = (desk.session().await, desk.session().await);
    for n in 0..3 {
        said(desk, old, &format!("{SAID} {n}")).await;
        said(desk, new, "stays").await;
        desk.run(old, command("make"), Report::Exec(ExecReport::default())).await;
    }
    desk.clock.advance(10 * DAY);
    said(desk, new, "later").await;
    (old, new)
}

fn shelf(desk: &Desk) -> Shelf {
    Shelf::take(&desk.path()).unwrap().unwrap()
}

async fn idle(desk: &Desk, before: &str) -> Vec<Vec<SessionId>> {
    let leaving = desk.journal.leaving(before.into(), None).await.unwrap();
    leaving.idle.into_iter().map(|idle| idle.sessions).collect()
}

async fn archived(desk: &Desk, shelf: &Shelf, session: SessionId, day: &str) -> Archive {
    let folder = tempfile::tempdir().unwrap();
    let lock = SessionLock::take(session, folder.path(), &holder()).unwrap();
    desk.journal.archive(shelf, day, &[session], &[lock]).await.unwrap().unwrap()
}

fn file(desk: &Desk, archive: &Archive) -> PathBuf {
    desk.home.path().join("archive").join(&archive.file.name)
}

fn checked(desk: &Desk, archive: &Archive, key: &PublicKey) -> Sealed {
    archive::check(&fs::read(file(desk, archive)).unwrap()[..], key).unwrap()
}

async fn first_key(journal: &Journal) -> PublicKey {
    journal.line().await.unwrap().unwrap().first
}

fn on_disk(desk: &Desk) -> bool {
    ["journal.db", "journal.db-wal"].iter().any(|name| {
        let bytes = fs::read(desk.home.path().join(name)).unwrap_or_default();
        bytes.windows(SAID.len()).any(|window| window == SAID.as_bytes())
    })
}

#[tokio::test]
async fn a_session_leaves_whole_and_chain_tree_and_proofs_go_on() {
    let desk = desk().await;
    let (old, new) = two(&desk).await;
    let entries = |session| desk.journal.entries(Query { session: Some(session), ..Query::default() });
    let before = (entries(old).await.unwrap(), entries(new).await.unwrap());
    let signed = desk.journal.checkpoint().await.unwrap().statement().unwrap();
    assert_eq!(idle(&desk, "2026-01-10").await, [vec![old]]);
    desk.raw().checkpoint().await.unwrap();
    assert!(on_disk(&desk), "the control");
    let archive = archived(&desk, &shelf(&desk), old, "2026-01-02").await;
    assert!(!on_disk(&desk), "what left is overwritten");
    assert_eq!((archive.file.entries, archive.sessions), (before.0.len() as u64, 1));
    assert_eq!(fs::metadata(file(&desk, &archive)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(desk.home.path().join("archive")).unwrap().permissions().mode() & 0o777, 0o700);
    // What stays is as it was; what left is named.
    assert_eq!(entries(new).await.unwrap(), before.1);
    assert_eq!(entries(old).await.unwrap(), []);
    assert_eq!(desk.journal.sessions().await.unwrap().len(), 1);
    let missing = desk.journal.session(&old.to_string()).await.unwrap_err();
    assert!(matches!(&missing, JournalError::Archived { archive: name, .. } if *name == archive.file.name));
    assert!(missing.to_string().contains("can be neither shown nor continued"), "{missing}");
    let verified = desk.journal.verify().await.unwrap();
    assert_eq!((verified.entries, verified.archives.len()), (desk.journal.newest(), 1));
    // A stranger checks the file, an entry of it, and that the journal only grew.
    desk.journal.checkpoint().await.unwrap();
    let key = first_key(&desk.journal).await;
    let sealed = checked(&desk, &archive, &key);
    assert_eq!((sealed.entries, sealed.payloads, sealed.erased), (archive.file.entries, 9, 0));
    let words = before.0.iter().find(|recorded| recorded.text().starts_with(SAID)).unwrap();
    let proof = desk.journal.prove(words.entry.seq, true, None).await.unwrap();
    let Proven::Entry { payload: Some(payload), .. } = proof.check(&key).unwrap() else { panic!() };
    assert_eq!(payload.lossy(), words.text());
    let without = desk.journal.prove(words.entry.seq, false, None).await.unwrap();
    assert!(matches!(without.check(&key).unwrap(), Proven::Entry { payload: None, .. }));
    let growth = desk.journal.prove_growth(signed.epoch, None).await.unwrap();
    assert!(matches!(growth.check(&key).unwrap(), Proven::Growth { .. }));
    // What follows from the chain follows from what is left of it.
    assert_eq!(desk.journal.rebuild().await.unwrap().repaired, Default::default());
    // And it can go on.
    said(&desk, new, "on").await;
    assert!(desk.begin(effect(old, command("make")), 0).await.is_err(), "nothing begins in what left");
    desk.journal.verify().await.unwrap();
}

#[tokio::test]
async fn what_somebody_needs_stays() {
    let desk = desk().await;
    let sessions = [desk.session().await, desk.session().await, desk.session().await, desk.session().await];
    let [asks, holds, changes, unfinished] = sessions;
    let parent = desk.session().await;
    let child = desk.child(parent, 5).await;
    let free = desk.session().await;
    let spent = desk.session().await;
    let lasts = 365 * DAY;
    let sealed = effect(asks, command("deploy"));
    let title = serde_json::json!({ "title": "deploy" });
    desk.mint.ask(&sealed, Terms::default(), title.clone(), lasts).await.unwrap();
    let sealed = effect(spent, command("deploy"));
    desk.mint.ask(&sealed, Terms::default(), title, LASTS).await.unwrap();
    let caveat = |expires: &str| Caveat {
        scope: Some(scope()),
        expires: Some(expires.parse().unwrap()),
        operations: Some(1),
        ..Caveat::default()
    };
    let digest = desk.policy.digest();
    desk.mint.mint_token(holds, digest, caveat("2027-01-01T00:00:00Z")).await.unwrap();
    desk.mint.mint_token(spent, digest, caveat("2026-01-03T00:00:00Z")).await.unwrap();
    let touched = vec![Touched { path: "/w/a".into(), base: None, unsure: false }];
    let report = ExecReport { touched, ..ExecReport::default() };
    desk.run(changes, command("make"), Report::Exec(report)).await;
    let (permit, _receipt) = desk.begin(effect(unfinished, read("/w/a")), 0).await.unwrap();
    drop(permit);
    desk.clock.advance(10 * DAY);
    said(&desk, child, "a child that is used keeps its parent").await;
    let leaving = desk.journal.leaving("2026-01-10".into(), None).await.unwrap();
    let mut found: Vec<_> = leaving.idle.iter().flat_map(|idle| idle.sessions.clone()).collect();
    found.sort();
    let mut wanted = vec![free, spent];
    wanted.sort();
    assert_eq!(found, wanted, "what ran out is no reason");
    let kept = [
        (RetentionReason::Recent, 2),
        (RetentionReason::Changes, 1),
        (RetentionReason::Question, 1),
        (RetentionReason::Token, 1),
        (RetentionReason::Unfinished, 1),
    ];
    assert_eq!(leaving.kept, kept.into_iter().collect());
    // Nothing of today leaves, and changes do where their owner said after how long.
    assert_eq!(idle(&desk, "2999-01-01").await.len(), 2);
    let with_changes = desk.journal.leaving("2026-01-10".into(), Some("2026-01-10".into())).await.unwrap();
    assert!(with_changes.idle.iter().any(|idle| idle.sessions == [changes]));
    // The owner of a lock is not asked twice: what came meanwhile keeps it.
    let shelf = shelf(&desk);
    said(&desk, free, "somebody came back").await;
    let came_back = desk.journal.archive(&shelf, "2026-01-02", &[free], &[]).await.unwrap();
    assert_eq!(came_back, None, "it was used since it was found idle");
    assert_eq!(fs::read_dir(desk.home.path().join("archive")).unwrap().count(), 1, "the lock alone");
    let list = desk.journal.archive(&shelf, "2026-01-02", &[unfinished], &[]).await.unwrap();
    assert_eq!(list, None, "an effect of it is under way");
    assert!(!desk.home.path().join("archive/journal-2026-01-02.jsonl").exists());
    archived(&desk, &shelf, spent, "2026-01-02").await;
    desk.journal.verify().await.unwrap();
}

/// A yes waits for whoever goes on with its session, long after its question would have run out.
#[tokio::test]
async fn an_unused_yes_keeps_its_session() {
    let desk = desk().await;
    let mut kept = Vec::new();
    for answer in [Answer::Yes, Answer::YesForSession] {
        for is_used in [false, true] {
            let session = desk.session().await;
            let sealed = effect(session, command("deploy"));
            let card = serde_json::json!({ "title": "deploy" });
            let id = desk.mint.ask(&sealed, terms(), card, LASTS).await.unwrap();
            desk.mint.answer(session, id, answer, "owner", "").await.unwrap();
            if is_used {
                let grant = desk.mint.grant(id, &sealed).await.unwrap();
                let (_permit, receipt) = desk.begin_approved(sealed, grant).await.unwrap();
                desk.mint.finish(receipt, &done(Report::Nothing), Cost::default(), Vec::new()).await.unwrap();
            } else {
                kept.push((session, id));
            }
        }
    }
    // A yes to a question about no effect is for nothing that could begin.
    let asks = desk.session().await;
    let card = serde_json::json!({ "title": "go on?" });
    let id = desk.mint.ask_of(asks, "go on".into(), Terms::default(), card, LASTS).await.unwrap();
    desk.mint.answer(asks, id, Answer::Yes, "owner", "").await.unwrap();
    desk.clock.advance(10 * DAY);
    let leaving = desk.journal.leaving("2026-01-10".into(), None).await.unwrap();
    assert_eq!(leaving.kept, [(RetentionReason::Question, 2)].into_iter().collect());
    let left: Vec<_> = leaving.idle.into_iter().flat_map(|idle| idle.sessions).collect();
    assert!(left.len() == 3 && kept.iter().all(|(session, _)| !left.contains(session)), "{left:?}");
    // One that was taken back is none.
    for (session, id) in kept {
        desk.mint.revoke(session, id, "owner", "").await.unwrap();
    }
    desk.clock.advance(10 * DAY);
    assert_eq!(idle(&desk, "2026-01-20").await.len(), 5);
}

fn scope() -> Vec<Condition> {
    vec![Condition { action: Some(vec![Kind::Read]), ..Condition::default() }]
}

/// Two archives of one day, and the key.
async fn two_archives() -> (Desk, [Archive; 2]) {
    let desk = desk().await;
    let sessions = [desk.session().await, desk.session().await];
    for session in sessions {
        said(&desk, session, SAID).await;
    }
    desk.clock.advance(10 * DAY);
    desk.session().await;
    let shelf = shelf(&desk);
    let one = archived(&desk, &shelf, sessions[0], "2026-01-02").await;
    let other = archived(&desk, &shelf, sessions[1], "2026-01-02").await;
    (desk, [one, other])
}

async fn damaged(desk: &Desk) -> Vec<String> {
    match desk.journal.verify().await {
        Err(JournalError::Archives(damages)) => damages.iter().map(ToString::to_string).collect(),
        other => panic!("nothing was found: {other:?}"),
    }
}

#[tokio::test]
async fn a_flipped_byte_a_missing_and_a_swapped_archive_are_found_and_named() {
    let (desk, [one, other]) = two_archives().await;
    let names = [&one, &other].map(|archive| archive.file.name.clone());
    assert_eq!(names, ["journal-2026-01-02.jsonl", "journal-2026-01-02.2.jsonl"]);
    desk.journal.verify().await.expect("the control");
    let [first, second] = [&one, &other].map(|archive| file(&desk, archive));
    let (bytes, others) = (fs::read(&first).unwrap(), fs::read(&second).unwrap());
    // Each byte of it counts: here a letter of what was said, of a body, and of the first line.
    for place in ["only an archive", "accepted", "\"signature\":\"", "\"number\":"] {
        let at = bytes.windows(place.len()).position(|window| window == place.as_bytes()).unwrap();
        let mut flipped = bytes.clone();
        flipped[at + place.len() - 1] ^= 1;
        fs::write(&first, flipped).unwrap();
        let found = damaged(&desk).await;
        assert!(found.len() == 1 && found[0].contains(&format!("`{}`", names[0])), "{found:?}");
    }
    fs::write(&first, &others).unwrap();
    fs::write(&second, &bytes).unwrap();
    let found = damaged(&desk).await;
    assert!(found.len() == 2 && found.iter().all(|it| it.contains("another file")), "{found:?}");
    fs::write(&first, &bytes).unwrap();
    fs::remove_file(&second).unwrap();
    let found = damaged(&desk).await;
    assert!(found.len() == 1 && found[0].contains("is missing") && found[0].contains(&names[1]), "{found:?}");
    let lost = desk.journal.prove(other.file.first, false, None).await.unwrap_err();
    assert!(matches!(lost, JournalError::Archives(_)), "{lost}");
    // A link to the very bytes is no archive.
    let elsewhere = desk.home.path().join("elsewhere");
    fs::write(&elsewhere, &others).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &second).unwrap();
    assert!(damaged(&desk).await[0].contains("no plain file"));
    fs::remove_file(&second).unwrap();
    fs::write(&second, &others).unwrap();
    desk.journal.verify().await.expect("put back, all is well again");
    // The journal itself does not need them.
    fs::remove_file(&second).unwrap();
    desk.journal.rebuild().await.unwrap();
}

#[tokio::test]
async fn an_entry_that_is_made_to_look_archived_is_found() {
    let (desk, [one, _]) = two_archives().await;
    let session = desk.session().await;
    said(&desk, session, "incriminating").await;
    desk.journal.verify().await.expect("the control");
    let named = one.entry.0;
    desk.tamper(move |tx| {
        tx.execute("DELETE FROM payload WHERE seq = (SELECT max(seq) FROM entry)", params![]).unwrap();
        tx.execute(
            "UPDATE entry SET type = '', session = NULL, effect = NULL, body = x'', archive = ?1
             WHERE seq = (SELECT max(seq) FROM entry)",
            params![named],
        )
        .unwrap()
    })
    .await;
    assert!(matches!(desk.journal.verify().await, Err(JournalError::Broken(_))));
    // Behind an entry that names no archive: neither.
    desk.tamper(|tx| {
        tx.execute("UPDATE entry SET archive = 999999 WHERE seq = (SELECT max(seq) FROM entry)", params![])
            .unwrap()
    })
    .await;
    assert!(matches!(desk.journal.verify().await, Err(JournalError::Broken(_))));
}

#[tokio::test]
async fn an_entry_that_is_made_to_look_archived_is_found_at_the_start() {
    let (desk, _) = two_archives().await;
    let session = desk.session().await;
    for _ in 0..300 {
        said(&desk, session, "one of many").await;
    }
    desk.second().await.0.sound().await.expect("the control");
    desk.tamper(|tx| {
        let seq = "(SELECT max(seq) - 9 FROM entry)";
        tx.execute(&format!("DELETE FROM payload WHERE seq = {seq}"), params![]).unwrap();
        let of = "type = '', session = NULL, effect = NULL, body = x'', archive = seq + 1";
        tx.execute(&format!("UPDATE entry SET {of} WHERE seq = {seq}"), params![]).unwrap()
    })
    .await;
    let found = desk.second().await.0.sound().await.unwrap_err();
    assert!(
        matches!(&found, JournalError::Broken(broken) if broken.seq == desk.journal.newest() - 9),
        "{found}"
    );
    assert!(found.to_string().contains("which names none"), "{found}");
}

/// Of an entry that went into an archive nothing but its hash stays, and the archive came after it.
#[tokio::test]
async fn a_row_that_went_into_an_archive_says_nothing_more() {
    let row = "(SELECT max(seq) FROM entry WHERE archive IS NOT NULL)";
    let of_row = |change: &str| format!("UPDATE entry SET {change} WHERE seq = {row}");
    let changes = [
        of_row("body = x'7b7d'"),
        of_row("type = 'accepted'"),
        of_row("session = 'another'"),
        of_row("effect = 'another'"),
        of_row("hash = x'00'"),
        of_row("archive = 1"),
        format!("INSERT INTO payload (seq, salt, bytes) VALUES ({row}, x'00', x'00')"),
    ];
    for change in changes {
        let (desk, _) = two_archives().await;
        desk.journal.verify().await.expect("the control");
        let sql = change.clone();
        desk.tamper(move |tx| tx.execute(&sql, params![]).unwrap()).await;
        let found = desk.journal.verify().await.unwrap_err().to_string();
        assert!(found.contains("is not as such an entry is"), "{change}: {found}");
    }
}

#[tokio::test]
async fn an_entry_put_between_an_archive_s_own_is_found() {
    let (desk, [one, other]) = two_archives().await;
    let (from, to) = (one.entry.0, other.entry.0);
    desk.tamper(move |tx| {
        tx.execute("UPDATE entry SET archive = ?2 WHERE archive = ?1", params![from, to]).unwrap()
    })
    .await;
    let found = desk.journal.verify().await.unwrap_err();
    assert!(found.to_string().contains("are not those that went into it"), "{found}");
}

#[tokio::test]
async fn an_archive_that_went_for_room_is_named_and_the_chain_holds() {
    let (desk, [one, _]) = two_archives().await;
    desk.journal.remove_archive(&shelf(&desk), &one).await.unwrap();
    assert!(!file(&desk, &one).exists());
    let verified = desk.journal.verify().await.unwrap();
    let removed = verified.archives[0].removed.unwrap();
    let recorded = desk.journal.entries(Query { last: Some(1), ..Query::default() }).await.unwrap();
    let Fact::ArchiveRemoved { archive, file: said } = &recorded[0].entry.fact else { panic!() };
    assert_eq!((recorded[0].entry.seq, *archive, said), (removed, one.entry, &one.file));
    let gone = desk.journal.prove(one.file.first, false, None).await.unwrap_err();
    assert!(gone.to_string().contains("no room"), "{gone}");
    assert_eq!(desk.journal.rebuild().await.unwrap().repaired, Default::default());
}

/// Another name in the entry of an archive, and all that goes by its body left as it was: whoever can write
/// the journal can do that, and what acts on the name does not ask the chain.
async fn renamed(desk: &Desk, archive: &Archive, name: &str) {
    let (seq, name) = (archive.entry.0, name.to_owned());
    desk.tamper(move |tx| {
        let sql =
            "UPDATE entry SET body = CAST(json_set(CAST(body AS TEXT), '$.name', ?2) AS BLOB) WHERE seq = ?1";
        tx.execute(sql, params![seq, name]).unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_name_that_leads_out_of_the_folder_of_archives_is_refused() {
    let (desk, [one, other]) = two_archives().await;
    let shelf = shelf(&desk);
    let victim = desk.home.path().join("victim");
    fs::write(&victim, "of the user").unwrap();
    let absolute = victim.display().to_string();
    for name in ["../victim", "journal-/../../victim", "journal-../victim", "lock", "", &absolute] {
        renamed(&desk, &one, name).await;
        let archive = desk.journal.archives().await.unwrap().remove(0);
        assert_eq!(archive.file.name, name);
        let before = desk.journal.newest();
        let refused = desk.journal.remove_archive(&shelf, &archive).await.unwrap_err();
        assert!(matches!(&refused, JournalError::NotAnArchive(of) if of == name), "{refused}");
        assert_eq!(desk.journal.newest(), before, "nothing says that it went");
        let unread = desk.journal.prove(one.file.first, false, None).await.unwrap_err();
        assert!(matches!(&unread, JournalError::NotAnArchive(of) if of == name), "{unread}");
    }
    assert!(victim.exists() && desk.home.path().join("archive/lock").exists());
    desk.journal.remove_archive(&shelf, &other).await.unwrap();
    assert!(!file(&desk, &other).exists(), "the control");
}

#[tokio::test]
async fn a_session_that_never_left_is_not_among_those_in_archives() {
    let (desk, _) = two_archives().await;
    let here = desk.session().await;
    assert_eq!(desk.journal.archived_sessions().await.unwrap().len(), 2, "the control");
    // As an entry would name it that somebody else wrote.
    desk.tamper(move |tx| {
        let payload = serde_json::json!([here]).to_string().into_bytes();
        let sql =
            "UPDATE payload SET bytes = ?1 WHERE seq = (SELECT max(seq) FROM entry WHERE type = 'archived')";
        tx.execute(sql, params![payload]).unwrap()
    })
    .await;
    assert_eq!(desk.journal.archived_sessions().await.unwrap().len(), 1);
    // Nor when its row is gone too: its entries are here.
    desk.tamper(move |tx| {
        tx.execute("DELETE FROM session WHERE id = ?1", params![here.to_string()]).unwrap()
    })
    .await;
    assert_eq!(desk.journal.archived_sessions().await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_process_at_a_time_is_at_it_and_sweeps_what_a_crash_left() {
    let (desk, [one, other]) = two_archives().await;
    let held = shelf(&desk);
    assert!(Shelf::take(&desk.path()).unwrap().is_none());
    let folder = desk.home.path().join("archive");
    let (part, foreign) =
        (folder.join("journal-2026-01-02.3.jsonl.part"), folder.join("journal-2026-01-01.jsonl"));
    fs::write(&part, "half").unwrap();
    // An archive of a journal that was lost, or newer than one that was put back, is somebody's last copy.
    let (lost, [whose, _]) = two_archives().await;
    fs::copy(file(&lost, &whose), &foreign).unwrap();
    desk.journal.sweep(&held).await.unwrap();
    assert!(!part.exists() && foreign.exists());
    assert!(file(&desk, &one).exists() && file(&desk, &other).exists());
    desk.journal.verify().await.unwrap();
    drop(held);
    // A link in the place of the folder is refused.
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(desk.home.path(), home.path().join("archive")).unwrap();
    assert!(Shelf::take(&home.path().join("journal.db")).is_err());
}

#[tokio::test]
async fn the_budget_of_today_is_not_given_back() {
    let desk = desk().await;
    let session = desk.session().await;
    let sealed = crate::support::costing(session, command("make"), 7);
    let (_permit, receipt) = desk.begin(sealed, 100).await.unwrap();
    let used = bailey_protocol::Cost::tokens(7);
    desk.mint.finish(receipt, &crate::support::done(Report::Nothing), used, Vec::new()).await.unwrap();
    assert_eq!(desk.journal.today().await.unwrap(), [("tokens".to_owned(), 7)]);
    assert_eq!(idle(&desk, "2999-01-01").await, Vec::<Vec<SessionId>>::new());
    // What it used yesterday does not count any more, and what is used today does.
    desk.clock.advance(DAY);
    let other = desk.session().await;
    let (_permit, receipt) =
        desk.begin(crate::support::costing(other, command("make"), 5), 100).await.unwrap();
    let used = bailey_protocol::Cost::tokens(5);
    desk.mint.finish(receipt, &crate::support::done(Report::Nothing), used, Vec::new()).await.unwrap();
    archived(&desk, &shelf(&desk), session, "2026-01-02").await;
    assert_eq!(desk.journal.today().await.unwrap(), [("tokens".to_owned(), 5)]);
    assert_eq!(desk.journal.rebuild().await.unwrap().repaired, Default::default());
}
