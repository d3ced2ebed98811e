//! Sessions that are run again from their journal: the same, or where they part from what was recorded.

use super::{NO_READS, Past};
use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
    workspace::newest,
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn replay(stage: &Stage, arguments: &[&str]) -> Ran {
    let session = newest(stage);
    stage.ran(&[&["--json", "replay", session.as_str()], arguments].concat())
}

#[track_caller]
fn same(stage: &Stage) -> Value {
    let ran = replay(stage, &[]);
    let told = ran.lines().pop().unwrap_or_default();
    assert!(ran.code == Some(0) && told["same"] == true, "{ran:?}");
    told
}

/// The entry at which it parts, and what is told of it.
#[track_caller]
fn parts(stage: &Stage) -> (u64, Value) {
    let ran = replay(stage, &[]);
    let told = ran.lines().pop().unwrap_or_default();
    assert!(ran.code == Some(1) && told["same"] == false, "{ran:?}");
    (told["entry"].as_u64().unwrap(), told)
}

/// The place of the first entry of which this is true.
fn place(stage: &Stage, is_it: impl Fn(&Value) -> bool) -> u64 {
    let trail = stage.trail();
    let found = trail.iter().find(|entry| is_it(entry)).unwrap_or_else(|| panic!("{trail:?}"));
    found["seq"].as_str().unwrap().parse().unwrap()
}

/// Every file of a folder, by what it holds.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match fs::symlink_metadata(&path).unwrap() {
                about if about.is_dir() => folders.push(path),
                about if about.is_file() => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn a_session_of_reads_writes_questions_and_denials_is_the_same_again_and_touches_nothing() {
    let past = Past::new();
    let session = newest(&past.stage);
    let before = files(&past.stage.home());
    // A place of its own for what is temporary: others run again beside it.
    let temporary = past.outside.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut replay = past.stage.bailey(&["--json", "replay", &session]);
    let ran = Ran::of(replay.env("TMPDIR", &temporary).output().unwrap());
    let told = ran.lines().pop().unwrap_or_default();
    assert!(ran.code == Some(0) && told["same"] == true, "{ran:?}");
    assert!(told["effects"].as_u64() >= Some(5), "{told}");
    let after = files(&past.stage.home());
    let others = after.iter().filter(|(path, bytes)| before.get(*path) != Some(*bytes)).map(|(path, _)| path);
    assert_eq!(
        others.collect::<Vec<_>>(),
        Vec::<&PathBuf>::new(),
        "the home is what it was to the last byte"
    );
    assert_eq!(before.len(), after.len());
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left behind");
    let shown = past.stage.ran(&["replay", &newest(&past.stage)]);
    assert!(shown.stdout.contains("effects, same decisions"), "{shown:?}");
}

#[test]
fn who_is_asked_to_end_takes_the_copy_of_the_journal_away_first() {
    let past = Past::new();
    let session = newest(&past.stage);
    let temporary = past.outside.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let left = || fs::read_dir(&temporary).unwrap().count();
    // A machine that has much to do may let it come to its end before it is asked: then once more.
    let is_asked = (0..20).any(|_| {
        let mut replay = past.stage.bailey(&["replay", &session]);
        let replay = replay.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null());
        let mut replay = replay.spawn().unwrap();
        let mut ended = None;
        while left() == 0 && ended.is_none() {
            ended = replay.try_wait().unwrap();
        }
        let pid = replay.id().to_string();
        if ended.is_none() {
            Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        }
        let ended = replay.wait().unwrap();
        assert!(matches!(ended.code(), Some(0 | 143)), "{ended:?}");
        assert_eq!(left(), 0, "the copy is gone");
        ended.code() == Some(143)
    });
    assert!(is_asked, "it always came to its end before");
}

#[test]
fn a_changed_rule_parts_at_its_first_decision() {
    let past = Past::new();
    same(&past.stage);
    fs::write(past.stage.home().join("policy/own.toml"), NO_READS).unwrap();
    let file = past.stage.project().join("a.txt").display().to_string();
    let read = place(&past.stage, |entry| entry["type"] == "intent" && entry["target"] == file.as_str());
    let (entry, told) = parts(&past.stage);
    assert_eq!(entry, read, "{told}");
    assert!(told["now"].as_str().unwrap().contains("no-a"), "{told}");
    // Other rules only say what they would have decided.
    fs::remove_file(past.stage.home().join("policy/own.toml")).unwrap();
    let other = replay(&past.stage, &["--policy", &past.draft("own.toml", NO_READS)]);
    let changes = super::changes(&other);
    assert!(
        other.code == Some(0) && changes == [[&file, "allow", "deny", "breaking"].map(String::from)],
        "{other:?}"
    );
}

#[test]
fn another_text_for_the_model_parts_at_the_call_that_had_it() {
    let past = Past::new();
    same(&past.stage);
    // The description of a tool says how long a command may take.
    let config = past.stage.home().join("config.toml");
    let old = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{old}\n[limits]\nreply_tokens = 1234\n")).unwrap();
    let asked = place(&past.stage, |entry| entry["type"] == "intent" && entry["kind"] == "model");
    let (entry, told) = parts(&past.stage);
    assert_eq!(entry, asked, "{told}");
    assert!(told["recorded"].as_str().unwrap().contains("sha256:"), "{told}");
    fs::write(&config, old).unwrap();
    same(&past.stage);
}

#[test]
fn a_changed_byte_of_what_was_recorded_is_found() {
    let past = Past::new();
    let session = newest(&past.stage);
    let seen = place(&past.stage, |entry| entry["type"] == "observation");
    let database = past.stage.home().join("journal.db");
    let sql = format!("UPDATE payload SET bytes = replace(CAST(bytes AS TEXT), 'a', 'b') WHERE seq = {seen}");
    let done = Command::new("sqlite3").arg(&database).arg(&sql).status();
    if !done.is_ok_and(|status| status.success()) {
        println!("SKIPPED: no sqlite3 to change the journal with");
        return;
    }
    let ran = past.stage.ran(&["--json", "replay", &session]);
    assert!(ran.code == Some(5) && ran.stderr.contains(&seen.to_string()), "{ran:?}");
}

#[test]
fn answers_given_at_once_and_late_are_given_again() {
    let outside = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let notes = outside.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&notes, "what the notes say\n").unwrap();
    let read = |id| Reply::calls([(id, "fs_read", json!({ "path": notes }))]);
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = stage.model(vec![read("c1"), Reply::text("done")]);
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    terminal.wait_for("[n]o or [d]etails: ");
    terminal.keys("y\n");
    assert_eq!(terminal.end().0, 0);
    let told = same(&stage);
    assert!(told["effects"].as_u64() >= Some(3), "{told}");

    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = stage.model(vec![
        read("c1"),
        Reply::calls([("c2", "fs_read", json!({ "path": "a.txt" }))]),
        Reply::text("I wait."),
    ]);
    let later = stage.ran(&["run", "--model", "test/model", "--approve", "later", "do it"]);
    assert_eq!(later.code, Some(7), "{later:?}");
    same(&stage);
    // Answered when that process had ended; another one goes on.
    let questions = stage.ran(&["--json", "approvals", "list"]).lines();
    let id = questions[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.ran(&["approvals", "approve", &id]).code, Some(0));
    let script = [("r1", "a.txt"), ("r2", "nothing.txt"), ("r3", "../..")];
    let script = script.map(|(id, path)| (id, "fs_read", json!({ "path": path })));
    let _model = stage.model(vec![Reply::calls(script), Reply::text("done")]);
    let session = newest(&stage);
    let resumed = stage.ran(&["sessions", "resume", &session, "--model", "test/model", "--approve", "never"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let told = same(&stage);
    assert!(told["effects"].as_u64() >= Some(8), "{told}");
    let _model = stage.model(vec![Reply::text("and more")]);
    let more = stage.ran(&["sessions", "resume", &session, "more", "--model", "test/model"]);
    assert_eq!(more.code, Some(0), "{more:?}");
    same(&stage);
}

#[test]
fn an_answer_that_comes_while_the_model_works_on_comes_then_again() {
    let outside = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let notes = outside.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&notes, "what the notes say\n").unwrap();
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![
        Reply::calls([("c1", "fs_read", json!({ "path": notes }))]),
        Reply::Held(gate.clone(), Message::calls([("c2", "fs_read", json!({ "path": "a.txt" }))])),
        Reply::text("done"),
    ]);
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[approvals]\npatience_seconds = 1\n")).unwrap();
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    terminal.wait_for("[n]o or [d]etails: ");
    model.wait_for(2);
    let questions = stage.ran(&["--json", "approvals", "list"]).lines();
    let id = questions[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.ran(&["approvals", "approve", &id]).code, Some(0));
    gate.open();
    assert_eq!(terminal.end().0, 0);
    let told = same(&stage);
    assert!(told["effects"].as_u64() >= Some(5), "{told}");
}

#[test]
fn a_cancelled_turn_is_cancelled_again() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let sleep = Reply::calls([("c1", "command_run", json!({ "command": "echo begun; sleep 60" }))]);
    let _model = stage.model(vec![sleep, Reply::text("done")]);
    let options = ["run", "--verbose", "--model", "test/model", "do it"];
    let Some(mut terminal) = Terminal::start(&stage, &options) else { return };
    terminal.wait_for("begun");
    terminal.keys("\u{3}");
    assert_eq!(terminal.end().0, 130);
    same(&stage);
}

#[test]
fn failures_of_a_model_and_a_used_up_budget_come_again() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let busy =
        Reply::Error { status: 529, headers: vec![("retry-after".into(), "0".into())], body: "{}".into() };
    let read = Reply::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]);
    let script = vec![busy.clone(), read.clone(), Reply::Cut(Message::text("half")), Reply::text("done")];
    let (ran, model) = stage.task(script, &[]);
    assert!(ran.code == Some(0) && model.requests().len() == 4, "{ran:?}");
    same(&stage);

    let stage = Stage::new(&[("a.txt", "a\n")]);
    let dear =
        Message { usage: (90_000, 9_000), ..Message::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]) };
    let _model = stage.model(vec![Reply::Message(dear), Reply::text("done")]);
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[limits]\nsession_tokens = 100000\n")).unwrap();
    let ran = stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    same(&stage);
}

/// Between the end of the one and the beginning of the other nothing else is recorded.
#[test]
fn a_turn_after_one_that_used_its_budget_up_comes_again() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let dear =
        Message { usage: (90_000, 9_000), ..Message::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]) };
    let model = stage.model(vec![Reply::Message(dear), Reply::text("done")]);
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[limits]\nturn_tokens = 100000\n")).unwrap();
    let mut chat = stage.bailey(&["--json", "chat", "--model", "test/model"]);
    let mut chat = chat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"do it\ngo on\n").unwrap();
    let said = String::from_utf8(chat.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains(r#""reason":"budget""#) && said.contains(r#""reason":"answered""#), "{said}");
    assert_eq!(model.requests().len(), 2);
    same(&stage);
}

#[test]
fn no_process_and_no_socket_is_started() {
    let past = Past::new();
    let log = past.outside.path().join("calls");
    let bailey = past.stage.bailey(&["replay", &newest(&past.stage)]);
    let traced = |arguments: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=execve,fork,vfork,socket,connect", "-o"]).arg(&log);
        strace.arg(bailey.get_program()).arg("--home").arg(past.stage.home()).args(arguments);
        let ran = strace.current_dir(past.stage.project()).output().ok()?;
        assert!(ran.status.success(), "{ran:?}");
        let calls = fs::read_to_string(&log).unwrap();
        Some(calls.lines().filter(|line| !line.contains("+++")).count())
    };
    let Some(calls) = traced(&["replay", &newest(&past.stage)]) else {
        println!("SKIPPED: no strace");
        return;
    };
    assert_eq!(calls, 1, "its own start: {}", fs::read_to_string(&log).unwrap());
    let control = traced(&["sandbox", "run", "--", "true"]).unwrap();
    assert!(control > 2, "the control starts processes");
}

/// A sub-agent's replies lie in its own conversation: the recording of its parent ends where it begins, and
/// says so.
#[test]
fn the_recording_ends_where_a_sub_agent_worked_and_no_difference_is_told() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (ran, _) = stage.task(vec![Reply::text("hello")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    same(&stage);
    let errand = json!({ "task": "read it", "tools": ["fs.read"], "paths": ["."] });
    let _model = stage.model(vec![
        Reply::calls([("p1", "agent_run", errand)]),
        Reply::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]),
        Reply::text("an a"),
        Reply::text("all done"),
    ]);
    let session = newest(&stage);
    let resumed =
        stage.ran(&["sessions", "resume", &session, "--model", "test/model", "--approve", "never", "more"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let ran = replay(&stage, &[]);
    assert!(ran.code == Some(0) && ran.lines().pop().unwrap()["same"] == true, "{ran:?}");
    let began = place(&stage, |entry| entry["type"] == "intent" && entry["payer"].is_string());
    assert!(ran.stderr.contains(&format!("before entry {began}: a sub-agent worked in it")), "{ran:?}");
}

/// What settings have looked at, and how it was answered, comes again; what the owner does at the end is not
/// done again.
#[test]
fn a_session_under_compliance_is_the_same_again() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), "[approvals]\ncompliance = true\n").unwrap();
    let call = json!({ "command": "echo ran > a.txt" });
    let _model = stage.model_beside(vec![Reply::calls([("c1", "command_run", call)]), Reply::text("done")]);
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    terminal.wait_for("[n]o or [d]etails: ");
    terminal.keys("y\n");
    terminal.wait_for("Why? The journal keeps it: ");
    terminal.keys("it is only a test\n");
    assert!(terminal.wait_for("[n]o or [d]etails: ").contains("Apply 1 file"));
    terminal.keys("n not today\n");
    terminal.end();
    let told = same(&stage);
    assert!(told["effects"].as_u64() >= Some(3), "{told}");
    // The settings have a say beside a draft, too.
    let outside = tempfile::tempdir().unwrap();
    let draft = outside.path().join("own.toml");
    fs::write(&draft, super::NO_READS).unwrap();
    let other = replay(&stage, &["--policy", draft.to_str().unwrap()]);
    let changed = super::changes(&other).into_iter().filter(|[target, ..]| target.contains("echo ran"));
    assert_eq!(changed.count(), 0, "{other:?}");
}

#[test]
fn a_draft_that_breaks_its_own_examples_is_told() {
    let past = Past::new();
    for (examples, code) in
        [("examples.deny = [\"read a.txt\"]\n", 0), ("examples.allow = [\"read a.txt\"]\n", 2)]
    {
        let draft = past.draft("own.toml", &(NO_READS.to_owned() + examples));
        let other = replay(&past.stage, &["--policy", &draft]);
        assert_eq!(other.code, Some(code), "{other:?}");
        assert_eq!(other.stderr.contains("no-a"), code == 2, "{other:?}");
        assert_eq!(super::changes(&other).len(), 1, "what it would decide is told all the same: {other:?}");
    }
}
