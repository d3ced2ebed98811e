//! Checkpoints and what they prove; who has the key of today can change nothing of yesterday.

use crate::support::{Desk, command, desk, read};
use bailey_journal::{
    Entry, Fact, Journal, JournalError, Query, Recorded, SystemClock,
    checkpoint::{PublicKey, Statement},
    proof::{PROOF_BYTES_MAX, Proof, ProofError, Proven},
    witness::{WITNESS_BYTES_MAX, WitnessRecord},
};
use bailey_protocol::{Digest, Labels, Report, SessionId, TurnId, number::Seq};
use bailey_secrets::{Redactor, Vault};
use bailey_store::{Grade, Migration, Store, params};
use std::{
    fs,
    future::poll_fn,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    task::Poll,
    time::Duration,
};

/// A session with a message, and three checkpoints with something between them.
async fn signed() -> (Desk, SessionId, PublicKey) {
    let desk = desk().await;
    let session = desk.session().await;
    let turn = TurnId::new(1, [1; 10]);
    desk.journal.accept(session, turn, "hello", Labels::default()).await.unwrap();
    for name in ["one", "two", "three"] {
        desk.run(session, command(&format!("echo {name}")), Report::Nothing).await;
        desk.journal.checkpoint().await.unwrap();
    }
    let first = desk.journal.line().await.unwrap().unwrap().first;
    (desk, session, first)
}

fn key_file(desk: &Desk) -> PathBuf {
    desk.home.path().join("journal.key")
}

async fn reopened(desk: &Desk) -> Journal {
    let redactor = Redactor::new(&Vault::default());
    Journal::open(&desk.path(), redactor, Arc::new(SystemClock)).await.unwrap().0
}

async fn broken(journal: &Journal) -> (u64, String) {
    match journal.verify().await {
        Err(JournalError::Broken(broken)) => (broken.seq, broken.what),
        other => panic!("nothing was found: {other:?}"),
    }
}

fn newest(line: &[bailey_journal::checkpoint::Checkpoint]) -> Statement {
    line.last().unwrap().statement().unwrap()
}

#[tokio::test]
async fn of_many_processes_one_signs_what_all_have_written() {
    const ENTRIES: u64 = 2200;
    let desk = desk().await;
    let session = desk.session().await;
    desk.journal.checkpoint().await.unwrap();
    let mut journals = Vec::new();
    for _ in 0..8 {
        journals.push(reopened(&desk).await);
    }
    let mut turn = 0;
    while desk.journal.newest() < ENTRIES {
        for journal in &journals {
            turn += 1;
            let id = TurnId::new(turn, [1; 10]);
            journal.accept(session, id, "hello", Labels::default()).await.unwrap();
        }
        desk.journal.accept(session, TurnId::new(turn, [2; 10]), "hello", Labels::default()).await.unwrap();
    }
    let line = desk.journal.line().await.unwrap().unwrap();
    assert_eq!(line.checkpoints.len(), 3, "the first, and one for each 1024 entries");
    assert!(newest(&line.checkpoints).entries >= 2048);
}

#[tokio::test]
async fn a_line_of_checkpoints_follows_from_its_first_key() {
    let (desk, _, first) = signed().await;
    let line = desk.journal.line().await.unwrap().unwrap();
    assert_eq!(line.checkpoints.len(), 3);
    let vouched = desk.journal.verify().await.unwrap().signed.unwrap();
    assert_eq!((vouched.key, vouched.checkpoints), (first, 3));
    assert_eq!(vouched.newest, newest(&line.checkpoints));
    assert_eq!(vouched.newest.entries, desk.journal.newest());
    // Nothing came since: the same one again.
    assert_eq!(desk.journal.checkpoint().await.unwrap(), line.checkpoints[2]);
    assert_eq!(reopened(&desk).await.checkpoint().await.unwrap(), line.checkpoints[2]);
}

#[tokio::test]
async fn a_secret_is_gone_once_it_has_signed() {
    let (desk, session, _) = signed().await;
    let file = key_file(&desk);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&file).unwrap();
    // The slot in use: behind its magic, the first key and the epoch lies the secret.
    let slot = before.chunks(2048).find(|slot| slot.starts_with(b"bailey.key.1")).unwrap();
    let secret = slot[56..88].to_vec();
    let holds = |bytes: &[u8]| bytes.windows(32).any(|window| window == secret);
    assert!(holds(&before), "the control: it is there as long as it is needed");
    desk.run(session, read("/w/a"), Report::Nothing).await;
    desk.journal.checkpoint().await.unwrap();
    let after = fs::read(&file).unwrap();
    assert!(!holds(&after) && after.len() == before.len());
    assert_eq!(after.chunks(2048).filter(|slot| slot.iter().any(|byte| *byte != 0)).count(), 1);
}

#[tokio::test]
async fn an_entry_is_proven_with_and_without_its_payload_to_whoever_has_a_key_of_the_line() {
    let (desk, _, first) = signed().await;
    let last = desk.journal.newest();
    for number in 1..=last {
        let text = desk.journal.prove(Seq(number), false, None).await.unwrap().to_json().unwrap();
        match Proof::parse(text.as_bytes()).unwrap().check(&first).unwrap() {
            Proven::Entry { number: found, payload: None, signed, .. } => {
                assert_eq!((found, signed.entries), (number, last));
            }
            other => panic!("{other:?}"),
        }
    }
    let message = desk.journal.prove(Seq(4), true, None).await.unwrap();
    let Proven::Entry { payload: Some(words), .. } = message.check(&first).unwrap() else { panic!() };
    assert_eq!(words.lossy(), "hello");
    let line = desk.journal.line().await.unwrap().unwrap();
    let later = line.checkpoints[1].statement().unwrap().next;
    let short = desk.journal.prove(Seq(4), false, Some(later)).await.unwrap();
    assert!(short.check(&later).is_ok());
    assert!(short.to_json().unwrap().len() < message.to_json().unwrap().len());
    assert!(
        matches!(short.check(&first), Err(ProofError::Forged(_))),
        "it does not reach back to the first key"
    );
    let next = newest(&line.checkpoints).next;
    assert_eq!(message.check(&next), Err(ProofError::NewerKey));
    let stranger = PublicKey::parse(&"7".repeat(64)).unwrap();
    assert!(matches!(message.check(&stranger), Err(ProofError::Forged(_))));
    assert!(matches!(desk.journal.prove(Seq(last + 9), false, None).await, Err(JournalError::Absent(_))));
}

#[tokio::test]
async fn growth_is_proven_from_every_older_checkpoint() {
    let (desk, session, first) = signed().await;
    desk.run(session, read("/w/a"), Report::Nothing).await;
    for since in 0..3 {
        let text = desk.journal.prove_growth(since, None).await.unwrap().to_json().unwrap();
        let proven = Proof::parse(text.as_bytes()).unwrap().check(&first).unwrap();
        let Proven::Growth { from, to } = proven else { panic!("{proven:?}") };
        assert_eq!((from.epoch, to.epoch, to.entries), (since, 3, desk.journal.newest()));
        let path = text.find("\"path\":[\"").unwrap() + 9;
        let other = if &text[path..=path] == "0" { "1" } else { "0" };
        let forged = format!("{}{other}{}", &text[..path], &text[path + 1..]);
        assert!(Proof::parse(forged.as_bytes()).unwrap().check(&first).is_err());
    }
    let newest = desk.journal.prove_growth(3, None).await;
    assert!(matches!(newest, Err(JournalError::NoCheckpoint(3))));
}

#[tokio::test]
async fn a_changed_character_of_a_proof_proves_nothing() {
    let (desk, _, first) = signed().await;
    let text = desk.journal.prove(Seq(4), true, None).await.unwrap().to_json().unwrap().into_bytes();
    let holds = |bytes: &[u8]| Proof::parse(bytes).is_ok_and(|proof| proof.check(&first).is_ok());
    assert!(holds(&text), "the control");
    for at in (0..text.len()).step_by(3) {
        let mut forged = text.clone();
        forged[at] ^= 1;
        assert!(
            !holds(&forged),
            "byte {at}: {}",
            String::from_utf8_lossy(&forged[at.saturating_sub(20)..=at])
        );
    }
    for length in [0, 1, text.len() / 2, text.len() - 1] {
        assert!(!holds(&text[..length]));
    }
}

#[tokio::test]
async fn a_crash_between_a_checkpoint_and_the_next_key_loses_nothing() {
    let (desk, session, first) = signed().await;
    let before = fs::read(key_file(&desk)).unwrap();
    desk.run(session, read("/w/a"), Report::Nothing).await;
    desk.journal.checkpoint().await.unwrap();
    // As if the program had ended before it stepped: the checkpoint is in the journal, its secret not yet
    // overwritten.
    fs::write(key_file(&desk), &before).unwrap();
    let again = reopened(&desk).await;
    assert_eq!(again.line().await.unwrap().unwrap().checkpoints.len(), 3, "it was handed to nobody");
    again.checkpoint().await.unwrap();
    desk.run(session, read("/w/b"), Report::Nothing).await;
    let last = again.checkpoint().await.unwrap().statement().unwrap();
    assert_eq!((last.epoch, last.entries), (4, again.verify().await.unwrap().entries));
    let proof = again.prove(Seq(5), false, None).await.unwrap();
    assert!(proof.check(&first).is_ok());
    // A key that is older still would sign once more what somebody may have.
    fs::write(key_file(&desk), &before).unwrap();
    desk.run(session, read("/w/c"), Report::Nothing).await;
    let refused = reopened(&desk).await.checkpoint().await.unwrap_err().to_string();
    assert!(refused.contains("`journal.key` is older than the journal"), "{refused}");
}

#[tokio::test]
async fn nobody_who_stops_waiting_leaves_a_checkpoint_without_its_key() {
    let (desk, session, _) = signed().await;
    desk.run(session, read("/w/a"), Report::Nothing).await;
    let entries = desk.journal.newest();
    let mut step = Box::pin(desk.journal.checkpoint());
    let is_pending = poll_fn(|context| Poll::Ready(step.as_mut().poll(context).is_pending())).await;
    assert!(is_pending, "the control: it was given up before it was done");
    drop(step);
    let is_done = async {
        while desk.journal.line().await.unwrap().unwrap().checkpoints.len() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), is_done).await.expect("the step was left half done");
    assert_eq!(newest(&desk.journal.line().await.unwrap().unwrap().checkpoints).entries, entries);
    desk.journal.verify().await.unwrap();
}

#[tokio::test]
async fn a_proof_of_more_bytes_than_any_has_is_not_read() {
    let (desk, ..) = signed().await;
    let mut bytes = desk.journal.prove(Seq(2), false, None).await.unwrap().to_json().unwrap().into_bytes();
    bytes.resize(PROOF_BYTES_MAX, b' ');
    assert!(Proof::parse(&bytes).is_ok(), "the control");
    bytes.push(b' ');
    assert!(matches!(Proof::parse(&bytes), Err(ProofError::Size)));
}

#[test]
fn what_a_witness_tells_is_read_whole_or_not_at_all() {
    let much = vec![b'\n'; WITNESS_BYTES_MAX + 1];
    assert_eq!(WitnessRecord::parse(&much), None);
    assert_eq!(WitnessRecord::parse(&much[1..]), Some(WitnessRecord::default()), "the control");
    let long = format!("{{\"note\":\"{}\"}}\nnonsense\n", "x".repeat(4096));
    assert_eq!(WitnessRecord::parse(long.as_bytes()).unwrap().unreadable, 2);
}

#[tokio::test]
async fn a_strangers_words_are_not_in_what_is_said_of_his_proof() {
    let word = "proven: \u{1b}[2J";
    for text in [format!("{{\"{word}\":1}}"), format!("{{\"format\":\"x\",\"{}\":1}}", word.repeat(9999))] {
        let said = Proof::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(!said.contains("proven:") && said.len() < 200, "{said}");
    }
}

/// Cuts the end off, with all that points there.
async fn cut(desk: &Desk, from: u64) {
    desk.tamper(move |tx| {
        for sql in [
            "DELETE FROM payload WHERE seq >= ?1",
            "DELETE FROM effect WHERE intent >= ?1 OR outcome >= ?1",
            "DELETE FROM checkpoint WHERE entries >= ?1",
        ] {
            tx.execute(sql, params![from]).unwrap();
        }
        tx.execute("DELETE FROM entry WHERE seq >= ?1", params![from]).unwrap()
    })
    .await;
}

#[tokio::test]
async fn an_end_that_was_cut_off_is_found_by_what_lies_beside_the_key() {
    let (desk, ..) = signed().await;
    let entries = desk.journal.newest();
    cut(&desk, entries - 1).await;
    let journal = reopened(&desk).await;
    let Err(JournalError::Broken(found)) = journal.sound().await else { panic!() };
    assert_eq!(found.seq, entries - 1);
    assert!(
        found.what.starts_with(&format!("it is missing: {entries} entries were there when checkpoint 2")),
        "{found}"
    );
    // The control: without that file nobody can tell.
    fs::remove_file(key_file(&desk)).unwrap();
    let journal = reopened(&desk).await;
    journal.sound().await.unwrap();
    journal.verify().await.unwrap();
}

/// Writes the whole chain anew, with another word in one entry: what only a signature can tell.
async fn rewrite(desk: &Desk) {
    desk.tamper(|tx| {
        let rows = tx
            .query_all("SELECT seq, body FROM entry ORDER BY seq", params![], |row| {
                Ok((row.get::<_, u64>(0)?, row.get::<_, Vec<u8>>(1)?))
            })
            .unwrap();
        let mut previous = Digest([0; 32]);
        for (seq, body) in rows {
            let body = String::from_utf8(body).unwrap().replace("echo two", "echo too");
            previous = Digest::of_parts(&[b"bailey.journal.1", &previous.0, body.as_bytes()]);
            let sql = "UPDATE entry SET body = ?2, hash = ?3 WHERE seq = ?1";
            tx.execute(sql, params![seq, body.as_bytes(), previous.0]).unwrap();
        }
        1
    })
    .await;
}

#[tokio::test]
async fn a_chain_that_was_written_anew_is_not_what_was_signed() {
    let (desk, ..) = signed().await;
    rewrite(&desk).await;
    let (seq, what) = broken(&desk.journal).await;
    let second = desk.journal.line().await.unwrap().unwrap().checkpoints[1].statement().unwrap();
    assert_eq!(seq, second.entries);
    assert!(what.contains("are not those of checkpoint 1, which was signed at"), "{what}");
    let Err(JournalError::Broken(found)) = reopened(&desk).await.sound().await else { panic!() };
    assert!(found.what.contains("are not those of checkpoint"), "{found}");
    // The control: where nothing was signed the new chain holds as well as the old one.
    let unsigned = self::desk().await;
    let session = unsigned.session().await;
    unsigned.run(session, command("echo two"), Report::Nothing).await;
    let before = unsigned.journal.verify().await.unwrap().head;
    rewrite(&unsigned).await;
    assert_ne!(unsigned.journal.verify().await.unwrap().head, before);
}

#[tokio::test]
async fn a_forged_or_missing_checkpoint_is_found() {
    for (sql, expected) in [
        (
            "UPDATE checkpoint SET signature = zeroblob(64) WHERE epoch = 1",
            "checkpoint 1 is not signed by the key",
        ),
        ("DELETE FROM checkpoint WHERE epoch = 0", "none of these checkpoints is signed by the key"),
        ("DELETE FROM checkpoint WHERE epoch = 1", "checkpoint 2 is not signed by the key"),
        ("UPDATE checkpoint SET line = 'other'", "that the key"),
        ("DELETE FROM checkpoint", "that the key"),
        (
            "INSERT INTO checkpoint SELECT 'other', epoch, entries, note, signature FROM checkpoint",
            "no entry names the key `other`",
        ),
    ] {
        let (desk, ..) = signed().await;
        desk.journal.verify().await.unwrap();
        desk.tamper(move |tx| tx.execute(sql, params![]).unwrap()).await;
        let (_, what) = broken(&desk.journal).await;
        assert!(what.contains(expected), "{sql}: {what}");
    }
}

/// The journal that begins where the one of `home` is gone.
async fn anew(home: &Path) -> Journal {
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        fs::remove_file(home.join(name)).ok();
    }
    let redactor = Redactor::new(&Vault::default());
    Journal::open(&home.join("journal.db"), redactor, Arc::new(SystemClock)).await.unwrap().0
}

#[tokio::test]
async fn a_journal_that_begins_anew_beside_an_old_key_gets_a_key_of_its_own() {
    let (desk, _, first) = signed().await;
    let Desk { journal, mint, home, .. } = desk;
    drop((journal, mint));
    let journal = anew(home.path()).await;
    journal.checkpoint().await.unwrap();
    let vouched = journal.verify().await.unwrap().signed.unwrap();
    assert_ne!(vouched.key, first);
    // Behind its beginning, and that it is stopped: nobody can tell that the old one was not.
    assert_eq!((vouched.since, vouched.checkpoints), (3, 1));
}

/// What an old key says of its journal, that something was signed there, is what a stop outlives it by.
#[tokio::test]
async fn an_old_key_stays_until_the_new_journal_is_signed() {
    let (desk, ..) = signed().await;
    let Desk { journal, mint, home, .. } = desk;
    drop((journal, mint));
    let journal = anew(home.path()).await;
    let migrations = [Migration { version: bailey_journal::SCHEMA_VERSION, sql: "" }];
    let raw = Store::open(&home.path().join("journal.db"), &migrations).unwrap();
    let no_room =
        "CREATE TRIGGER no_room BEFORE INSERT ON checkpoint BEGIN SELECT RAISE(ABORT, 'no room'); END";
    raw.write(Grade::Full, move |tx| Ok(tx.execute(no_room, params![])?)).await.unwrap();
    journal.checkpoint().await.unwrap_err();
    drop((journal, raw));
    let journal = anew(home.path()).await;
    assert!(journal.stopped().await.unwrap().is_some(), "the key forgot that another one was signed");
    // A crash between the journal and the key: another line of keys begins, and both hold.
    let file = home.path().join("journal.key");
    let before = fs::read(&file).unwrap();
    journal.checkpoint().await.unwrap();
    let first = journal.line().await.unwrap().unwrap().first;
    drop(journal);
    fs::write(&file, before).unwrap();
    let redactor = Redactor::new(&Vault::default());
    let (journal, _mint) =
        Journal::open(&home.path().join("journal.db"), redactor, Arc::new(SystemClock)).await.unwrap();
    journal.checkpoint().await.unwrap();
    let vouched = journal.verify().await.unwrap().signed.unwrap();
    assert!(vouched.key != first && vouched.newest.entries == journal.newest(), "{vouched:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_sign_one_line_and_many_entries_are_signed_unasked() {
    let desk = desk().await;
    let session = desk.session().await;
    let (other, _mint) = desk.second().await;
    let write = |journal: Journal| async move {
        for number in 0..600 {
            let fact = Fact::TurnEnded { turn: TurnId::new(1, [2; 10]), reason: "answered".into() };
            journal.append(Entry::of(session, fact)).await.unwrap();
            if number % 100 == 7 {
                journal.checkpoint().await.unwrap();
            }
        }
    };
    let one = tokio::spawn(write(desk.journal.clone()));
    let two = tokio::spawn(write(other.clone()));
    one.await.unwrap();
    two.await.unwrap();
    let vouched = desk.journal.verify().await.unwrap().signed.unwrap();
    let entries = desk.journal.entries(Query::default()).await.unwrap();
    let begun = |recorded: &&Recorded| matches!(recorded.entry.fact, Fact::SigningBegun { .. });
    assert_eq!(entries.iter().filter(begun).count(), 1, "one line");
    assert!(vouched.checkpoints >= 7, "{}", vouched.checkpoints);
    let before = vouched.newest.entries;
    let fact = || Fact::TurnEnded { turn: TurnId::new(1, [2; 10]), reason: "answered".into() };
    while other.newest() < before + 1100 {
        other.append(Entry::of(session, fact())).await.unwrap();
    }
    let after = other.verify().await.unwrap().signed.unwrap();
    assert!(after.newest.entries > before, "{} of {}", after.newest.entries, other.newest());
}
