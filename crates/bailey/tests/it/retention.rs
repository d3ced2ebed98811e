//! Old sessions leave the journal: by hand and by themselves, whatever ends the process meanwhile, and within
//! the room there is.

use crate::{
    attacks::actor::controls,
    stage::{Ran, Stage},
    workspace::newest,
};
use bailey_journal::{Journal, NewSession};
use bailey_protocol::{Labels, SessionId, TurnId};
use bailey_secrets::{Redactor, Vault};
use bailey_testkit::{FakeClock, Reply};
use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const SAID: &str = "words of long ago";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A stage whose journal holds sessions that were used in January 2020, one a day, each with its folder and
/// these words.
fn old(days: u8, said: &str) -> (Stage, Vec<SessionId>) {
    let stage = Stage::new(&[("a", "a\n")]);
    fs::create_dir_all(stage.home()).unwrap();
    let workspace = stage.project().display().to_string();
    let path = stage.home().join("journal.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sessions = runtime.block_on(async {
        let clock = Arc::new(FakeClock::at("2020-01-01T12:00:00Z"));
        let (journal, _mint) =
            Journal::open(&path, Redactor::new(&Vault::default()), clock.clone()).await.unwrap();
        let mut sessions = Vec::new();
        for day in 1..=days {
            let id = SessionId::new(1_577_836_800_000, [day; 10]);
            let new = NewSession {
                agent: None,
                confined: None,
                workspace: workspace.as_str().into(),
                principal: "owner".into(),
                model: "test/model".into(),
            };
            journal.open_session(id, new).await.unwrap();
            let turn = TurnId::new(1, [day; 10]);
            journal.accept(id, turn, format!("{said} {day}"), Labels::default()).await.unwrap();
            fs::create_dir_all(stage.home().join("sessions").join(id.to_string()).join("tmp")).unwrap();
            sessions.push(id);
            clock.advance(DAY);
        }
        journal.checkpoint().await.unwrap();
        sessions
    });
    (stage, sessions)
}

fn archives(stage: &Stage) -> Vec<PathBuf> {
    let found = fs::read_dir(stage.home().join("archive")).into_iter().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("journal-"));
    found.sort();
    found
}

fn python(file: &Path, key: &str) -> Option<(Option<i32>, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit_check.py");
    let output =
        Command::new("python3").args(["-B", script]).arg(file).arg(key).current_dir("/").output().ok()?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Some((output.status.code(), text))
}

#[test]
fn sessions_leave_by_hand_and_what_is_asked_of_them_then_is_answered() {
    let (stage, sessions) = old(3, SAID);
    let [gone, _, stays] = sessions.iter().map(ToString::to_string).collect::<Vec<_>>().try_into().unwrap();
    let dry = stage.ran(&["audit", "archive", "--before", "2020-01-03", "--dry-run"]);
    assert!(
        dry.stdout.contains("2020-01-01  1 session, 2 entries") && archives(&stage).is_empty(),
        "{dry:?}"
    );
    assert_eq!(stage.ran(&["audit", "archive"]).code, Some(2), "nobody said before when");
    assert_eq!(stage.ran(&["audit", "archive", "--before", "2020-13-01"]).code, Some(2));
    let ran = stage.ran(&["--json", "audit", "archive", "--before", "2020-01-03"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = &ran.lines()[0];
    assert_eq!(report["archived"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["kept"]["recent"], 1);
    let files = archives(&stage);
    let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["journal-2020-01-01.jsonl", "journal-2020-01-02.jsonl"]);
    // Their folders went too, and the other one's did not.
    assert!(!stage.home().join("sessions").join(&gone).exists());
    assert!(stage.home().join("sessions").join(&stays).exists());
    let listed = stage.ran(&["sessions", "list"]);
    assert!(
        listed.stdout.lines().count() == 1 && listed.stderr.contains("2 older sessions are in archives"),
        "{listed:?}"
    );
    for asked in [
        &["sessions", "show", &gone][..],
        &["sessions", "resume", &gone, "go"],
        &["sessions", "fork", &gone],
        &["sessions", "export", &gone],
    ] {
        let refused = stage.ran(asked);
        let says = refused.stderr.contains("is in the archive `journal-2020-01-01.jsonl`");
        assert!(refused.code == Some(1) && says, "{refused:?}");
    }
    let exported = stage.ran(&["audit", "export"]);
    assert!(exported.stderr.contains("4 entries are in archives") && !exported.stdout.contains("long ago 1"));
    let verified = stage.ran(&["audit", "verify"]);
    assert!(verified.stdout.contains("4 of them are in 2 archives, each verified there"), "{verified:?}");
    assert!(stage.ran(&["audit", "rebuild"]).stdout.contains("rebuilt:"));
    // A stranger with the key checks the file, and an entry in it.
    let key = stage.ran(&["audit", "key"]).stdout.trim().to_owned();
    let file = files[0].to_str().unwrap();
    let proven = stage.ran(&["audit", "check", file, "--key", &key]);
    assert!(proven.stdout.starts_with("proven: these 2 entries (2 to 3) were among the"), "{proven:?}");
    let proof = stage.folder().join("proof.json");
    let made = stage.ran(&["audit", "prove", "3", "--payload", "-o", proof.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let proven = stage.ran(&["audit", "check", proof.to_str().unwrap(), "--key", &key]);
    assert!(proven.stdout.contains(&format!("{SAID} 1")), "{proven:?}");
    // Flipped, missing, swapped: each is named, and nothing else is.
    let [first, second] = [0, 1].map(|at| fs::read(&files[at]).unwrap());
    let flipped = String::from_utf8(first.clone()).unwrap().replacen("ago", "agp", 1);
    fs::write(&files[0], flipped).unwrap();
    let found = stage.ran(&["audit", "verify"]);
    assert!(
        found.code == Some(5) && found.stderr.contains("journal-2020-01-01.jsonl` was changed: entry 3"),
        "{found:?}"
    );
    assert!(!found.stderr.contains("2020-01-02"), "{found:?}");
    assert_eq!(stage.ran(&["audit", "check", file, "--key", &key]).code, Some(1));
    if let Some(other) = python(&files[0], &key) {
        assert!(other.0 == Some(1) && other.1.contains("this proves nothing"), "{other:?}");
        fs::write(&files[0], &first).unwrap();
        let other = python(&files[0], &key).unwrap();
        assert!(other.0 == Some(0) && other.1.contains("proven: these 2 entries"), "{other:?}");
    } else {
        println!("SKIPPED: there is no python3");
    }
    fs::write(&files[0], &second).unwrap();
    fs::write(&files[1], &first).unwrap();
    let found = stage.ran(&["audit", "verify"]);
    assert!(found.stderr.matches("is another file than the one that was written").count() == 2, "{found:?}");
    fs::write(&files[0], &first).unwrap();
    fs::remove_file(&files[1]).unwrap();
    let found = stage.ran(&["audit", "verify"]);
    assert!(
        found.code == Some(5) && found.stderr.contains("journal-2020-01-02.jsonl` is missing"),
        "{found:?}"
    );
    // Nothing of that stops work: the journal itself holds.
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
    fs::write(&files[1], &second).unwrap();
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0), "the control");
}

#[test]
fn an_end_at_any_step_leaves_the_rows_or_the_archive_and_the_next_run_ends_it() {
    let program = controls();
    for step in ["written", "named", "entered", "emptied", "committed"] {
        let (stage, sessions) = old(2, SAID);
        let mut command = Command::new(program);
        command.arg("--home").arg(stage.home()).args(["audit", "archive", "--before", "2020-01-02"]);
        let ended =
            command.env("BAILEY_CONTROL_ARCHIVE", step).current_dir(stage.project()).output().unwrap();
        assert_eq!(ended.status.code(), None, "{step}: it was to be ended, {}", Ran::of(ended).stderr);
        assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0), "{step}");
        let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines().len();
        let has_left = step == "committed";
        assert_eq!(listed, if has_left { 1 } else { 2 }, "{step}: it left, or it did not");
        let ran = stage.ran(&["audit", "archive", "--before", "2020-01-02"]);
        assert_eq!(ran.code, Some(0), "{step}: {ran:?}");
        let names: Vec<_> =
            archives(&stage).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["journal-2020-01-01.jsonl"], "{step}");
        assert!(!stage.home().join("sessions").join(sessions[0].to_string()).exists(), "{step}");
        assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0), "{step}");
        let archived = stage.trail().into_iter().filter(|entry| entry["type"] == "archived").count();
        assert_eq!(archived, 1, "{step}");
    }
}

/// Waits for what another process does.
fn until(what: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !what() {
        if start.elapsed() > Duration::from_secs(120) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Uses sessions, each by its number, at these times, one after the other.
fn used(stage: &Stage, uses: &[(u8, &str)]) {
    let path = stage.home().join("journal.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for (at, (number, time)) in uses.iter().enumerate() {
            let clock = Arc::new(FakeClock::at(time));
            let (journal, _mint) =
                Journal::open(&path, Redactor::new(&Vault::default()), clock).await.unwrap();
            let id = SessionId::new(1_600_000_000_000, [*number; 10]);
            if !uses[..at].iter().any(|(other, _)| other == number) {
                let new = NewSession {
                    agent: None,
                    confined: None,
                    workspace: stage.project().display().to_string().as_str().into(),
                    principal: "owner".into(),
                    model: "test/model".into(),
                };
                journal.open_session(id, new).await.unwrap();
            }
            let turn = TurnId::new(2, [u8::try_from(at).unwrap(); 10]);
            journal.accept(id, turn, format!("at {time}"), Labels::default()).await.unwrap();
        }
    });
}

fn yesterday() -> String {
    (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24)).to_string()
}

/// A clock that is years ahead for one start would have everything leave.
#[test]
fn what_was_used_on_no_other_day_leaves_with_the_run_of_the_next() {
    let (stage, _) = old(2, SAID);
    fs::write(stage.home().join("config.toml"), "[journal]\nkeep_days = 30\n").unwrap();
    let due = || stage.ran(&["audit", "archive", "--due"]);
    assert_eq!(due().code, Some(0));
    assert!(archives(&stage).is_empty(), "{:?}", archives(&stage));
    let told = stage.ran(&["audit", "archive", "--before", "2019-01-01"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    used(&stage, &[(1, &yesterday())]);
    assert_eq!(due().code, Some(0));
    assert_eq!(archives(&stage).len(), 2, "the control");
}

/// A clock that is put back within a session lets it look older than it is.
#[test]
fn a_session_is_of_its_latest_day_and_holds_up_no_other() {
    let (stage, _) = old(0, SAID);
    used(&stage, &[(2, "2020-01-03T11:00:00Z"), (1, "2020-01-05T12:00:00Z"), (1, "2020-01-03T12:00:00Z")]);
    let ran = stage.ran(&["--json", "audit", "archive", "--before", "2020-02-01"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let names: Vec<_> = archives(&stage).iter().map(|it| it.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["journal-2020-01-03.jsonl", "journal-2020-01-05.jsonl"], "{ran:?}");
}

/// Commits are in a session's layer, and in no entry.
#[test]
fn a_session_with_commits_of_its_own_stays() {
    let (stage, sessions) = old(3, SAID);
    let folder = |n: usize| stage.home().join("sessions").join(sessions[n].to_string());
    fs::create_dir_all(folder(0).join("upper/.git/refs/heads")).unwrap();
    // A mere look at a repository renews its index.
    fs::create_dir_all(folder(1).join("upper/.git")).unwrap();
    fs::write(folder(1).join("upper/.git/index"), "").unwrap();
    let archive = |more: &[&str]| {
        let ran = stage.ran(&[&["--json", "audit", "archive", "--before", "2020-02-01"], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    assert!(archive(&["--dry-run"]).stdout.contains("changes"));
    assert!(archive(&[]).stdout.contains("changes"));
    assert!(folder(0).exists() && !folder(1).exists() && !folder(2).exists());
    // Where its owner lets changes go, too, they go.
    fs::write(stage.home().join("config.toml"), "[journal]\nkeep_days = 30\nkeep_changes_days = 60\n")
        .unwrap();
    archive(&[]);
    assert!(!folder(0).exists());
}

/// What could not be compared, or never leaves, is in a session's layer, and in no entry.
#[test]
fn a_session_whose_changes_no_entry_tells_of_stays() {
    let (stage, sessions) = old(4, SAID);
    stage.write(".gitignore", "/target\n");
    let folder = |n: usize| stage.home().join("sessions").join(sessions[n].to_string());
    let upper = |n: usize| folder(n).join("upper");
    (0..4).for_each(|n| fs::create_dir_all(upper(n)).unwrap());
    fs::write(upper(0).join("precious.txt"), "work\n").unwrap();
    fs::write(upper(1).join(std::ffi::OsStr::from_bytes(b"na\xffme")), "work\n").unwrap();
    fs::create_dir_all(upper(2).join("target")).unwrap();
    fs::write(upper(2).join("target/made.o"), "").unwrap();
    let ran = stage.ran(&["--json", "audit", "archive", "--before", "2020-02-01"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("changes"), "{ran:?}");
    let are_there: Vec<bool> = (0..4).map(|n| folder(n).exists()).collect();
    assert_eq!(are_there, [true, true, false, false], "the last two are the controls");
}

#[test]
fn the_first_session_of_a_day_has_old_ones_archived_and_does_not_wait_for_it() {
    let (stage, _) = old(2, SAID);
    used(&stage, &[(1, &yesterday())]);
    fs::write(stage.home().join("config.toml"), "[journal]\nkeep_days = 30\n").unwrap();
    let server = stage.model_beside(vec![Reply::text("done")]);
    let run = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
    let ran = stage.ran(&run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    drop(server);
    let lock = stage.home().join("archive/lock");
    let is_free = || fs::File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok());
    assert!(until(|| archives(&stage).len() == 2 && is_free()), "{:?}", archives(&stage));
    assert_eq!(
        stage.ran(&["--json", "sessions", "list", "--all"]).lines().len(),
        2,
        "today's and yesterday's stay"
    );
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
    // What hindered a run is said at the next start.
    fs::write(&lock, "no room on the disk").unwrap();
    let shown = stage.ran(&[
        "sessions",
        "diff",
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap(),
    ]);
    assert!(shown.stderr.contains("could not be archived: no room on the disk"), "{shown:?}");
}

#[test]
fn past_its_room_the_oldest_archive_goes_and_an_entry_says_so() {
    let (stage, _) = old(4, &"x".repeat(600 * 1024));
    fs::write(stage.home().join("config.toml"), "[journal]\nmax_size_mib = 2\n").unwrap();
    let checked = stage.ran(&["doctor", "--offline"]);
    assert!(checked.stdout.contains("% of `journal.max_size_mib`"), "{checked:?}");
    let ran = stage.ran(&["--json", "audit", "archive", "--before", "2020-02-01"]);
    let report = &ran.lines()[0];
    let removed = report["removed"].as_array().unwrap();
    assert!((1..4).contains(&removed.len()), "{report}");
    assert_eq!(removed[0]["name"], "journal-2020-01-01.jsonl", "the oldest first");
    assert_eq!(archives(&stage).len(), 4 - removed.len());
    let verified = stage.ran(&["audit", "verify"]);
    assert!(verified.code == Some(0) && verified.stdout.contains("went for room"), "{verified:?}");
    let says = stage.trail().into_iter().find(|entry| entry["type"] == "archive_removed").unwrap();
    let named = format!(
        "journal-2020-01-01.jsonl (entries {} to {}): entry {}, ",
        says["first"].as_str().unwrap(),
        says["last"].as_str().unwrap(),
        says["seq"].as_str().unwrap()
    );
    assert!(verified.stdout.contains(&named), "no `{named}`: {verified:?}");
    for field in ["digest", "first", "last", "entries"] {
        assert_eq!(says[field], removed[0][field], "{says}");
    }
}

#[test]
fn where_the_journal_alone_is_too_large_no_archive_goes() {
    let (stage, _) = old(4, &"x".repeat(600 * 1024));
    assert_eq!(stage.ran(&["audit", "archive", "--before", "2020-01-03"]).code, Some(0));
    fs::write(stage.home().join("config.toml"), "[journal]\nmax_size_mib = 1\n").unwrap();
    let removed = |before: &str| {
        let ran = stage.ran(&["--json", "audit", "archive", "--before", before]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.lines()[0]["removed"].as_array().unwrap().len()
    };
    assert_eq!(removed("2020-01-01"), 0, "it would make no room");
    assert_eq!(archives(&stage).len(), 2);
    let checked = stage.ran(&["doctor", "--offline"]);
    assert!(checked.stdout.contains("so no archive goes"), "{checked:?}");
    assert!(removed("2020-02-01") > 0, "the control: with less in the journal they go");
    assert!(!archives(&stage).is_empty());
}

#[test]
fn a_session_is_run_again_where_others_are_in_archives() {
    let (stage, sessions) = old(1, SAID);
    let (ran, _) = stage.task(vec![Reply::text("done")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = newest(&stage);
    let again = |session: &str| stage.ran(&["--json", "replay", session]);
    assert_eq!(again(&session).lines()[0]["same"], true, "the control");
    assert_eq!(stage.ran(&["audit", "archive", "--before", "2020-02-01"]).code, Some(0));
    assert_eq!(archives(&stage).len(), 1);
    let ran = again(&session);
    assert!(ran.code == Some(0) && ran.lines()[0]["same"] == true, "{ran:?}");
    let gone = again(&sessions[0].to_string());
    assert!(gone.code == Some(1) && gone.stderr.contains("is in the archive"), "{gone:?}");
}

#[test]
fn the_folder_of_archives_is_on_disk_before_rows_are_emptied() {
    let (stage, _) = old(2, SAID);
    let log = stage.folder().join("calls");
    let bailey = stage.bailey(&[]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-e", "trace=mkdir,fsync,rename,renameat,renameat2", "-o"]).arg(&log);
    strace.arg(bailey.get_program()).arg("--home").arg(stage.home());
    strace.args(["audit", "archive", "--before", "2020-01-02"]).current_dir(stage.project());
    let Ok(ran) = strace.output() else {
        println!("SKIPPED: no strace");
        return;
    };
    assert!(ran.status.success(), "{ran:?}");
    let calls = fs::read_to_string(&log).unwrap();
    let home = stage.home().canonicalize().unwrap().display().to_string();
    let made = calls.split_once("/archive\", 0700)").unwrap_or_else(|| panic!("{calls}")).1;
    let synced: Vec<&str> = made.lines().filter(|line| line.contains("fsync(")).collect();
    assert!(synced[0].contains(&format!("<{home}>")), "the folder's own name first: {calls}");
    let named = made.split_once("rename").unwrap().1;
    assert!(named.contains(&format!("<{home}/archive>")), "and those in it: {calls}");
}

#[test]
fn archives_are_out_of_reach_inside_the_walls() {
    let (stage, _) = old(2, SAID);
    assert_eq!(stage.ran(&["audit", "archive", "--before", "2020-01-02"]).code, Some(0));
    let [file] = archives(&stage).try_into().unwrap();
    let text = file.to_str().unwrap();
    assert!(
        Command::new("cat").arg(&file).output().unwrap().status.success(),
        "the control: outside it can be read"
    );
    let inside = stage.ran(&["sandbox", "run", "--", "cat", text]);
    assert!(inside.code == Some(1) && inside.stderr.contains("No such file"), "{inside:?}");
    for kind in ["read", "change"] {
        let explained = stage.ran(&["policy", "explain", kind, text]);
        assert!(explained.stdout.contains("den"), "{explained:?}");
    }
}
