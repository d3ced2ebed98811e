//! What does not come back with what is brought back: a home that goes on though it was stopped, and a yes
//! that may have been used by what is missing.

use crate::support::{Closed, Desk, LASTS, PAGE, RULES, command, desk, effect, policy, terms};
use bailey_journal::{BeginError, Journal, JournalError, QuestionState, Salvage, Terms, Wider, is_stopped};
use bailey_policy::Pattern;
use bailey_protocol::{Answer, ApprovalId, Digest, Labels, Sealed, SessionId, TurnId};
use bailey_secrets::{Redactor, Vault};
use bailey_store::params;
use bailey_testkit::FakeClock;
use std::{fs, os::unix::fs::FileExt as _, path::Path, sync::Arc, time::Duration};

fn redactor() -> Redactor {
    Redactor::new(&Vault::default())
}

/// Words on several pages, each at a time of its own.
async fn talk(desk: &Desk) -> SessionId {
    let session = desk.session().await;
    for number in 0..40 {
        desk.clock.advance(Duration::from_secs(1));
        let text = format!("{number} {}", "words ".repeat(20));
        desk.journal.accept(session, TurnId::new(1, [1; 10]), text, Labels::default()).await.unwrap();
    }
    session
}

/// One message by a clock that is a year ahead; whatever comes after it is older.
async fn talk_ahead(desk: &Desk, session: SessionId) {
    let clock = Arc::new(FakeClock::at("2027-01-02T03:04:05Z"));
    let (journal, _) = Journal::open(&desk.path(), redactor(), clock).await.unwrap();
    let labels = Labels::default();
    journal.accept(session, TurnId::new(1, [2; 10]), "ahead", labels).await.unwrap();
}

/// A question of each kind: open, and answered so.
struct Asked {
    session: SessionId,
    open: ApprovalId,
    yes: (ApprovalId, Sealed),
    wider: Wider,
}

const ANSWERS: [(&str, Answer); 2] = [("deploy once", Answer::Yes), ("deploy on", Answer::YesForSession)];

async fn asked(desk: &Desk, session: SessionId) -> Asked {
    let card = || serde_json::json!({ "title": "deploy" });
    let mut yes = None;
    for (words, answer) in ANSWERS {
        let sealed = effect(session, command(words));
        let id = desk.mint.ask(&sealed, terms(), card(), LASTS).await.unwrap();
        desk.mint.answer(session, id, answer, "owner", "").await.unwrap();
        yes.get_or_insert((id, sealed));
    }
    let pattern = Pattern::around(&command("wc --bytes")).unwrap();
    let wider = Wider { pattern, program: Some(Digest::of(b"wc")), rules: ["asks".to_owned()].into() };
    let asks = Terms { pattern: Some(wider.clone()), ..terms() };
    let shown = effect(session, command("wc --bytes"));
    let id = desk.mint.ask(&shown, asks, card(), LASTS).await.unwrap();
    desk.mint.answer(session, id, Answer::YesForPattern, "owner", "").await.unwrap();
    let waits = effect(session, command("deploy later"));
    let open = desk.mint.ask(&waits, terms(), card(), LASTS).await.unwrap();
    Asked { session, open, yes: yes.unwrap(), wider }
}

impl Asked {
    /// How many of the three yeses still count here.
    async fn count(&self, desk: &Desk) -> usize {
        let mut count = 0;
        for (words, _) in ANSWERS {
            let again = effect(self.session, command(words));
            count += usize::from(desk.mint.standing_grant(&again, &terms(), true).await.unwrap().is_some());
        }
        let (covered, wider) = (command("wc --lines"), self.wider.clone());
        let found = desk.mint.pattern_grant(self.session, &covered, &terms(), wider).await.unwrap();
        count + usize::from(found.is_some())
    }

    /// That no yes counts and no answer, and that what follows from the chain says the same.
    async fn are_void(&self, desk: &Desk, what: &str) {
        assert_eq!(self.count(desk).await, 0, "{what}");
        let (id, sealed) = &self.yes;
        let granted = desk.mint.grant(*id, sealed).await;
        assert!(matches!(granted, Err(JournalError::NotGranted(_))), "{what}: {granted:?}");
        let given = desk.mint.answer(self.session, self.open, Answer::Yes, "owner", "").await;
        assert!(matches!(given, Err(JournalError::Settled(_))), "{what}: {given:?}");
        let questions = desk.journal.questions(None).await.unwrap();
        assert!(
            questions.iter().all(|question| question.standing == QuestionState::Void),
            "{what}: {questions:?}"
        );
        let settled = desk.journal.settlement(self.open).await.unwrap().unwrap();
        assert!(settled.answer == Answer::No && settled.why.contains("void"), "{what}: {settled:?}");
        assert_eq!(desk.journal.rebuild().await.unwrap().repaired, Default::default(), "{what}");
        // The same may be asked anew, and then counts.
        let anew = effect(self.session, command("deploy anew"));
        let id = desk.mint.ask(&anew, terms(), serde_json::json!({}), LASTS).await.unwrap();
        desk.mint.answer(self.session, id, Answer::Yes, "owner", "").await.unwrap();
        desk.mint.grant(id, &anew).await.unwrap();
    }
}

/// Salvages a journal; the new one, whether the salvage said that it is stopped, and up to which entry it was
/// kept.
async fn salvaged(closed: Closed) -> (Desk, bool, u64) {
    let (path, clock) = (closed.path(), closed.clock.clone());
    let salvage = move || {
        let salvage = Salvage::prepare(&path, &[], &redactor(), &*clock).unwrap();
        let told = (salvage.is_stopped(), salvage.loss().kept.0);
        salvage.finish().unwrap();
        told
    };
    let (is_stopped, kept) = tokio::task::spawn_blocking(salvage).await.unwrap();
    (closed.open().await, is_stopped, kept)
}

/// The last page that has these words.
fn page_of(closed: &Closed, words: &str) -> u64 {
    let bytes = fs::read(closed.path()).unwrap();
    let has = |page: &[u8]| page.windows(words.len()).any(|window| window == words.as_bytes());
    bytes.chunks(PAGE).rposition(has).unwrap() as u64 + 1
}

/// Whether an effect begins.
async fn begins(desk: &Desk, session: SessionId) -> bool {
    match desk.begin(effect(session, command("echo hi")), 0).await {
        Ok(_) => true,
        Err(BeginError::Stopped { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_salvage_lifts_no_stop_and_stops_what_nobody_can_tell_of() {
    // Whether it was stopped, what is torn besides the header, and whether it is stopped then.
    let cases: [(bool, &[&str], bool); 8] = [
        (true, &[], true),
        (true, &["the end"], true),
        (true, &["state"], true),
        (true, &["the end", "state"], true),
        (false, &["the end", "state"], true),
        (false, &["state"], true),
        // The controls.
        (false, &["the end"], false),
        (false, &[], false),
    ];
    for (was_stopped, torn, is_stopped_then) in cases {
        let what = format!("stopped: {was_stopped}, torn: {torn:?}");
        let desk = desk().await;
        let session = talk(&desk).await;
        if was_stopped {
            desk.mint.stop("a test").await.unwrap();
        }
        let (entries, state) = (desk.journal.newest(), desk.root("state").await);
        let closed = desk.close();
        let last = format!("\"seq\":\"{entries}\"");
        let end = page_of(&closed, &last);
        for part in torn {
            closed.tear(if *part == "state" { state } else { end });
        }
        closed.tear(1);
        assert_eq!(is_stopped(&closed.path()), is_stopped_then, "{what}");
        let (desk, said, kept) = salvaged(closed).await;
        assert_eq!(kept < entries, torn.contains(&"the end"), "{what}: {kept} of {entries}");
        assert_eq!(said, is_stopped_then, "{what}");
        assert_eq!(desk.journal.stopped().await.unwrap().is_some(), is_stopped_then, "{what}");
        assert_eq!(begins(&desk, session).await, !is_stopped_then, "{what}");
        desk.journal.verify().await.unwrap();
        desk.journal.verify_pages().await.unwrap();
        assert_eq!(desk.journal.rebuild().await.unwrap().repaired, Default::default(), "{what}");
        // It is the owner's to release.
        assert_eq!(desk.mint.release().await.unwrap(), is_stopped_then, "{what}");
        assert!(begins(&desk, session).await, "{what}");
    }
}

/// A file whose log is gone looks whole, and is of a time before the stop; only the key beside it knows that
/// there was more.
#[tokio::test]
async fn states_that_are_older_than_what_was_signed_say_nothing() {
    for signs in [true, false] {
        let desk = desk().await;
        let session = talk(&desk).await;
        desk.raw().checkpoint().await.unwrap();
        let older = fs::read(desk.path()).unwrap();
        desk.clock.advance(Duration::from_secs(1));
        desk.mint.stop("a test").await.unwrap();
        if signs {
            desk.journal.checkpoint().await.unwrap();
        }
        let closed = desk.close();
        fs::write(closed.path(), older).unwrap();
        closed.tear(1);
        assert_eq!(is_stopped(&closed.path()), signs);
        let (desk, said, _) = salvaged(closed).await;
        assert_eq!(
            (said, begins(&desk, session).await),
            (signs, !signs),
            "the control is that nothing else knows"
        );
    }
}

/// By times, all that comes after a clock was ahead is older than what the states know.
#[tokio::test]
async fn a_log_that_is_lost_lifts_no_stop_where_a_clock_was_ahead() {
    for signs in [true, false] {
        let desk = desk().await;
        let session = talk(&desk).await;
        talk_ahead(&desk, session).await;
        desk.raw().checkpoint().await.unwrap();
        let older = fs::read(desk.path()).unwrap();
        desk.mint.stop("a test").await.unwrap();
        if signs {
            desk.journal.checkpoint().await.unwrap();
        }
        let closed = desk.close();
        fs::write(closed.path(), older).unwrap();
        closed.tear(1);
        assert_eq!(is_stopped(&closed.path()), signs);
        let (desk, said, _) = salvaged(closed).await;
        assert_eq!((said, begins(&desk, session).await), (signs, !signs), "the control: nothing else knows");
    }
}

/// The page of the states is as it was before the stop, and the stop's own page is gone.
#[tokio::test]
async fn states_of_before_a_stop_say_nothing_where_a_clock_was_ahead() {
    for stops in [true, false] {
        let desk = desk().await;
        let session = talk(&desk).await;
        talk_ahead(&desk, session).await;
        desk.raw().checkpoint().await.unwrap();
        let at = (desk.root("state").await - 1) * PAGE as u64;
        let mut older = [0; PAGE];
        fs::File::open(desk.path()).unwrap().read_exact_at(&mut older, at).unwrap();
        if stops {
            desk.mint.stop("a test").await.unwrap();
        }
        let number = desk.journal.newest();
        talk(&desk).await;
        let closed = desk.close();
        fs::OpenOptions::new().write(true).open(closed.path()).unwrap().write_all_at(&older, at).unwrap();
        if stops {
            closed.tear(page_of(&closed, &format!("\"seq\":\"{number}\"")));
        }
        closed.tear(1);
        assert_eq!(is_stopped(&closed.path()), stops);
        let (desk, said, kept) = salvaged(closed).await;
        assert_eq!(kept < number, stops);
        assert_eq!((said, begins(&desk, session).await), (stops, !stops), "the control: nothing is lost");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_is_written_while_a_salvage_works_is_not_put_away_with_the_torn_journal() {
    for writes in [true, false] {
        let desk = desk().await;
        let session = talk(&desk).await;
        // Nobody who writes comes by that table.
        let page = desk.root("revealed").await;
        let mut closed = desk.close();
        closed.tear(page);
        let (path, clock) = (closed.path(), closed.clock.clone());
        let prepare = move || Salvage::prepare(&path, &[], &redactor(), &*clock).unwrap();
        let salvage = tokio::task::spawn_blocking(prepare).await.unwrap();
        assert!(!salvage.is_stopped());
        if writes {
            let desk = closed.open().await;
            desk.mint.stop("a test").await.unwrap();
            closed = desk.close();
        }
        let torn = fs::read(closed.path()).unwrap();
        let finished = tokio::task::spawn_blocking(|| salvage.finish()).await.unwrap();
        assert_eq!(finished.is_err(), writes, "{finished:?}");
        assert_eq!(fs::read(closed.path()).unwrap() == torn, writes);
        if let Err(error) = finished {
            assert!(error.to_string().contains("somebody wrote into it meanwhile"), "{error}");
            let left = names(closed.home.path());
            assert!(!left.iter().any(|name| name.contains("salvag") || name.contains("torn-")), "{left:?}");
            // Once more, and it is in the new one.
            let (desk, said, _) = salvaged(closed).await;
            assert!(said && !begins(&desk, session).await);
        }
    }
}

#[tokio::test]
async fn a_copy_is_verified_from_its_first_entry_on_and_stays_as_it_was_written() {
    let desk = desk().await;
    let (early, _) = desk.second().await;
    for _ in 0..8 {
        talk(&desk).await;
    }
    let there = tempfile::tempdir().unwrap();
    let copy = |name: &str| there.path().join(name);
    // What it says of the copy is what is in it, and not what this process knows of.
    let verified = early.copy_to(&copy("whole.db")).await.unwrap();
    assert_eq!(verified.entries, desk.journal.newest());
    assert_ne!(verified.entries, early.newest());
    assert!(verified.entries > 256, "more than are looked at when a journal is opened");
    // No log is beside it, and none is asked for: byte 18 of a header (SQLite's file format, 1.3).
    assert_eq!(names(there.path()), ["whole.db"]);
    assert_eq!(fs::read(copy("whole.db")).unwrap()[18], 1);
    desk.tamper(|tx| {
        let sql = "UPDATE entry SET body = CAST(body || ' ' AS BLOB) WHERE seq = 3";
        tx.execute(sql, params![]).unwrap()
    })
    .await;
    let broken = desk.journal.copy_to(&copy("broken.db")).await;
    assert!(matches!(&broken, Err(JournalError::Broken(broken)) if broken.seq == 3), "{broken:?}");
    // What is just being written goes on meanwhile.
    desk.journal.verify_tail(256).await.unwrap();
}

#[tokio::test]
async fn whether_a_journal_is_stopped_can_be_asked_without_opening_it() {
    let desk = desk().await;
    let path = desk.path();
    talk(&desk).await;
    // While it is open, and most of it in its log.
    assert!(!is_stopped(&path));
    desk.mint.stop("a test").await.unwrap();
    assert!(is_stopped(&path));
    desk.journal.checkpoint().await.unwrap();
    assert!(desk.mint.release().await.unwrap());
    assert!(!is_stopped(&path));
    let state = desk.root("state").await;
    let closed = desk.close();
    assert!(!is_stopped(&path));
    let whole = fs::read(&path).unwrap();
    assert!(!is_stopped(&closed.home.path().join("none.db")), "there is none");
    closed.tear(state);
    assert!(is_stopped(&path), "nobody can tell");
    fs::write(&path, "").unwrap();
    assert!(is_stopped(&path), "nobody can tell");
    assert_eq!(fs::read(&path).unwrap(), b"", "and nothing is written");
    fs::write(&path, whole).unwrap();
    assert!(!is_stopped(&path), "the control");
    // One that is gone from beside what it signed; and where nothing was signed, there never was one.
    fs::remove_file(&path).unwrap();
    assert!(is_stopped(&path), "nobody can tell");
    drop(Journal::open(&path, redactor(), Arc::new(FakeClock::default())).await.unwrap());
    assert!(is_stopped(&path), "one that begins anew beside an old key");
    fs::remove_file(&path).unwrap();
    fs::remove_file(path.with_extension("key")).unwrap();
    assert!(!is_stopped(&path), "the control");
}

/// Whoever takes the journal away takes no stop away with it: the next one is stopped, until a human releases
/// it.
#[tokio::test]
async fn a_stop_outlives_the_journal_that_says_so() {
    let begin = async |path: &Path| {
        let (journal, mint) = Journal::open(path, redactor(), Arc::new(FakeClock::default())).await.unwrap();
        (journal.stopped().await.unwrap().is_some(), journal, mint)
    };
    for emptied in [false, true] {
        let desk = desk().await;
        talk(&desk).await;
        desk.mint.stop("a test").await.unwrap();
        desk.journal.checkpoint().await.unwrap();
        let path = desk.path();
        let closed = desk.close();
        fs::remove_file(path.with_extension("db-wal")).ok();
        match emptied {
            true => fs::write(&path, "").unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        let (is_stopped, journal, mint) = begin(&path).await;
        assert!(is_stopped, "nobody can tell that it was not, emptied: {emptied}");
        assert!(mint.release().await.unwrap());
        drop((journal, mint));
        assert!(!begin(&path).await.0, "a human released it");
        fs::remove_file(&path).unwrap();
        fs::remove_file(path.with_extension("key")).unwrap();
        assert!(!begin(&path).await.0, "the control: where nothing was ever signed, nothing was stopped");
        drop(closed);
    }
}

#[tokio::test]
async fn what_was_asked_before_a_salvage_is_void() {
    let desk = desk().await;
    let session = talk(&desk).await;
    let asked = asked(&desk, session).await;
    assert_eq!(asked.count(&desk).await, 3, "the control");
    let closed = desk.close();
    closed.tear(1);
    let (desk, _, _) = salvaged(closed).await;
    asked.are_void(&desk, "salvaged").await;
}

/// Whatever went wrong, it may have been let happen before.
#[tokio::test]
async fn no_yes_outlives_a_stop() {
    let desk = desk().await;
    let session = talk(&desk).await;
    let asked = asked(&desk, session).await;
    assert_eq!(asked.count(&desk).await, 3, "the control");
    desk.mint.stop("a test").await.unwrap();
    assert!(desk.mint.release().await.unwrap());
    asked.are_void(&desk, "stopped").await;
    assert!(begins(&desk, session).await, "what the rules allow");
}

#[tokio::test]
async fn a_copy_that_is_brought_back_lifts_no_stop_and_has_no_yes() {
    for was_stopped in [false, true] {
        let desk = desk().await;
        let session = talk(&desk).await;
        let asked = asked(&desk, session).await;
        let there = tempfile::tempdir().unwrap();
        desk.journal.copy_to(&there.path().join("journal.db")).await.unwrap();
        // What comes after the copy: the yes is used, and the home may be stopped.
        let (id, sealed) = &asked.yes;
        let grant = desk.mint.grant(*id, sealed).await.unwrap();
        drop(desk.begin_approved(sealed.clone(), grant).await.unwrap());
        if was_stopped {
            desk.mint.stop("a test").await.unwrap();
        }
        let (policy, clock) = (policy(RULES), desk.clock.clone());
        let path = there.path().join("journal.db");
        let (journal, mint) = Journal::open(&path, redactor(), clock.clone()).await.unwrap();
        let copy = Desk { journal, mint, policy, clock, home: there };
        assert_eq!(asked.count(&copy).await, 3, "the control: it would be good once more");
        assert_eq!(copy.journal.stopped().await.unwrap(), None, "the control");
        copy.journal.note_restored("from a test".into(), is_stopped(&desk.path())).await.unwrap();
        assert_eq!(copy.journal.stopped().await.unwrap().is_some(), was_stopped);
        assert_eq!(begins(&copy, session).await, !was_stopped);
        asked.are_void(&copy, "restored").await;
        assert_eq!(copy.mint.release().await.unwrap(), was_stopped);
        assert!(begins(&copy, session).await);
        copy.journal.verify().await.unwrap();
    }
}

/// A newer program writes what this one has no word for: that is nothing broken, and a salvage would cut it
/// off.
#[tokio::test]
async fn what_a_newer_program_wrote_is_told_as_such_and_not_salvaged() {
    for (name, newer) in [("from_the_future", true), ("", false)] {
        let desk = desk().await;
        let _session = desk.session().await;
        desk.tamper(move |tx| {
            let last = "SELECT seq, body, hash FROM entry ORDER BY seq DESC LIMIT 1";
            let (seq, body, hash): (u64, Vec<u8>, Vec<u8>) =
                tx.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
            let mut body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            (body["seq"], body["type"]) = ((seq + 1).into(), name.into());
            let body = body.to_string().into_bytes();
            let hash = Digest::of_parts(&[b"bailey.journal.1", &hash, &body]);
            let sql = "INSERT INTO entry (seq, body, hash, type) VALUES (?1, ?2, ?3, ?4)";
            tx.execute(sql, params![seq + 1, body, hash.0.to_vec(), name]).unwrap()
        })
        .await;
        let error = desk.journal.verify().await.unwrap_err().to_string();
        assert_eq!(error.contains("a newer Bailey wrote it"), newer, "{error}");
        assert_eq!(error.contains("audit recover"), !newer, "{error}");
        let closed = desk.close();
        let (path, clock) = (closed.path(), closed.clock.clone());
        let salvage = move || {
            Salvage::prepare(&path, &[], &redactor(), &*clock).map(|it| (it.loss().kept.0, it.loss().known.0))
        };
        let salvaged = tokio::task::spawn_blocking(salvage).await.unwrap();
        match (newer, salvaged) {
            (true, Err(error)) => assert!(error.to_string().contains("nothing was changed"), "{error}"),
            // The control: what cannot be read is left out, and counts as lost.
            (false, Ok((kept, known))) => assert_eq!(known, kept + 1),
            other => panic!("{other:?}"),
        }
    }
}
