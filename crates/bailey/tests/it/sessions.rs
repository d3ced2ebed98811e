//! Sessions as a whole: forked, exported, removed; and what follows from the chain made anew.

use crate::stage::{Ran, Stage};
use bailey_testkit::Reply;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};

/// A session that changed a file, and its name.
fn worked(stage: &Stage) -> String {
    let write = json!({ "path": "b.txt", "content": "new\n" });
    let (ran, _model) =
        stage.task(vec![Reply::calls([("c1", "fs_write", write)]), Reply::text("it is there")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    stage.ran(&["--json", "sessions", "list"]).lines()[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_fork_goes_on_from_an_entry() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = worked(&stage);
    let trail = stage.ran(&["--json", "audit", "log", "-n", "1000", "--session", &session]).lines();
    let accepted =
        trail.iter().find(|entry| entry["type"] == "accepted").unwrap()["seq"].as_str().unwrap().to_owned();
    for (at, knows_the_answer) in [(Some(&accepted), false), (None, true)] {
        let mut arguments = vec!["--json", "sessions", "fork", &session];
        arguments.extend(at.iter().flat_map(|at| ["--at", at.as_str()]));
        let forked = stage.ran(&arguments);
        assert_eq!(forked.code, Some(0), "{forked:?}");
        assert_eq!(forked.lines()[0]["left_behind"], 1);
        let fork = forked.lines()[0]["session"].as_str().unwrap().to_owned();
        let model = stage.model(vec![Reply::text("another way")]);
        let resumed =
            stage.ran(&["--json", "sessions", "resume", "--model", "test/model", &fork, "try another way"]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        let asked = model.requests()[0].body.clone();
        assert!(asked.contains("do it") && asked.contains("try another way"), "{asked}");
        assert_eq!(asked.contains("it is there"), knows_the_answer, "{asked}");
        let diff = stage.ran(&["sessions", "diff", &fork]);
        assert!(diff.stderr.contains("has no changes"), "{diff:?}");
    }
    // The control: the first is as it was.
    assert!(stage.ran(&["sessions", "diff", &session]).stdout.contains("b.txt"));
    let nowhere = stage.ran(&["sessions", "fork", &session, "--at", "1"]);
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("has no entry 1 to fork at"), "{nowhere:?}");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
}

#[test]
fn an_export_holds_all_that_the_session_said_and_did() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = worked(&stage);
    let printed = stage.ran(&["sessions", "export", &session]);
    let lines = printed.lines();
    assert_eq!((&lines[0]["type"], &lines[0]["v"]), (&json!("session"), &json!(1)));
    assert_eq!(lines[0]["session"]["id"], session.as_str());
    let trail = stage.ran(&["--json", "audit", "log", "-n", "1000", "--session", &session]).lines();
    let entries: Vec<_> = lines[1..].iter().map(|line| line["entry"].clone()).collect();
    assert_eq!(entries, trail);
    let payload = |kind: &str| {
        lines.iter().find(|line| line["entry"]["type"] == kind).map(|line| line["payload"].clone()).unwrap()
    };
    assert_eq!(payload("accepted"), "do it");
    assert!(payload("observation").as_str().unwrap().contains("b.txt"));
    assert!(payload("intent")["action"].is_object() && payload("reply")["calls"].is_array());
    let file = stage.folder().join("export.jsonl");
    let to_file = ["sessions", "export", &session, "--output", file.to_str().unwrap()];
    assert_eq!(stage.ran(&to_file).code, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), printed.stdout);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = stage.ran(&to_file);
    assert!(again.code == Some(1) && again.stderr.contains("exists already"), "{again:?}");
}

#[test]
fn a_removed_session_is_gone_and_the_chain_says_so() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (gone, kept) = (worked(&stage), worked(&stage));
    let folder = |session: &str| stage.home().join("sessions").join(session);
    let mut alone = std::process::Command::new("setsid");
    let command = stage.bailey(&["sessions", "rm", &gone]);
    alone.arg("--wait").arg(command.get_program()).args(command.get_args()).current_dir(stage.project());
    let unasked = crate::stage::Ran::of(alone.stdin(std::process::Stdio::null()).output().unwrap());
    assert!(unasked.code == Some(1) && unasked.stderr.contains("use --yes"), "{unasked:?}");
    assert!(folder(&gone).exists());
    let removed = stage.ran(&["--json", "sessions", "rm", "--yes", &gone]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.lines()[0]["payloads"].as_u64().unwrap() > 3, "{removed:?}");
    assert!(!folder(&gone).exists() && folder(&kept).exists());
    let listed = stage.ran(&["--json", "sessions", "list"]).lines();
    assert_eq!(listed.iter().map(|it| it["id"].as_str().unwrap()).collect::<Vec<_>>(), [kept.as_str()]);
    for command in ["show", "diff", "undo", "export"] {
        let ran = stage.ran(&["sessions", command, &gone]);
        assert!(ran.code == Some(1) && ran.stderr.contains("no session is named"), "{command}: {ran:?}");
    }
    assert_eq!(stage.trail().last().unwrap()["type"], "session_removed");
    let verified = stage.ran(&["--json", "audit", "verify"]);
    assert!(verified.code == Some(0) && verified.lines()[0]["erased"].as_u64().unwrap() > 3, "{verified:?}");
    // The control: the other is whole.
    assert!(stage.ran(&["sessions", "show", &kept]).stdout.contains("it is there"));
    assert_eq!(stage.ran(&["sessions", "apply", &kept]).code, Some(0));
}

#[test]
fn a_removal_is_asked_about() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = worked(&stage);
    for (keys, is_gone) in [("n\n", false), ("y\n", true)] {
        let Some(mut terminal) = crate::terminal::Terminal::start(&stage, &["sessions", "rm", &session])
        else {
            return;
        };
        let question = terminal.wait_for("[y/N] ");
        assert!(question.contains("do it"), "{question}");
        terminal.keys(keys);
        assert_eq!(terminal.end().0, if is_gone { 0 } else { 3 });
        assert_eq!(stage.ran(&["sessions", "show", &session]).code == Some(1), is_gone);
    }
}

#[test]
fn what_follows_from_the_chain_is_made_anew() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = worked(&stage);
    assert_eq!(stage.ran(&["sessions", "apply", &session]).code, Some(0));
    let before = stage.ran(&["--json", "sessions", "list"]).stdout;
    let rebuilt = stage.ran(&["--json", "audit", "rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{rebuilt:?}");
    assert_eq!(rebuilt.lines()[0]["repaired"], json!({}), "{rebuilt:?}");
    assert_eq!(rebuilt.lines()[0]["rows"]["session"], 1);
    assert_eq!(stage.ran(&["--json", "sessions", "list"]).stdout, before);
    assert!(stage.ran(&["audit", "rebuild"]).stdout.contains("rebuilt: from"));
    // What follows from it still serves: an undo reads the bases.
    assert_eq!(stage.ran(&["sessions", "undo", &session]).code, Some(0));
    assert!(!stage.project().join("b.txt").exists());
}

#[test]
fn a_session_without_a_message_is_called_after_its_command() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "grep", "a", "a.txt"]).code, Some(0));
    let all = ["--json", "sessions", "list", "--all"];
    assert_eq!(stage.ran(&all).lines()[0]["title"], "grep a a.txt");
    let listed = stage.ran(&["sessions", "list", "--all"]);
    assert!(
        listed.stdout.contains("$ grep a a.txt") && !listed.stdout.contains("nothing kept"),
        "{listed:?}"
    );
    // Without `--all` there are those of an agent alone, and a word about the others.
    let listed = stage.ran(&["sessions", "list"]);
    assert!(listed.stdout.is_empty() && listed.stderr.contains("add --all"), "{listed:?}");
    // One that is thrown away is told from one that is kept.
    assert_eq!(stage.ran(&["sandbox", "run", "--", "grep", "a", "a.txt"]).code, Some(0));
    let listed = stage.ran(&all).lines();
    assert_eq!(listed.iter().map(|it| &it["kept"]).collect::<Vec<_>>(), [false, true], "{listed:#?}");
    let listed = stage.ran(&["sessions", "list", "--all"]).stdout;
    assert_eq!(listed.matches("nothing kept").count(), 1, "{listed}");
    // The control: where something was said, that is its title.
    let (ran, _model) = stage.task(vec![Reply::text("done")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(stage.ran(&["--json", "sessions", "list"]).lines()[0]["title"], "do it");
}

/// A command of one's own whose session is kept says which one that is, and what it ran stands in it.
#[test]
fn a_command_that_is_kept_names_its_session() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let script = ["--", "sh", "-c", "echo b >> a.txt"];
    let text = stage.ran(&[&["sandbox", "run", "--keep"][..], &script].concat());
    let name = stage.ran(&["sessions", "list", "--all"]).stdout[..8].to_owned();
    let next = format!("kept as session {name}: bailey sessions diff|apply|discard {name}\n");
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), next.as_str()), "{text:?}");
    let json = stage.ran(&[&["--json", "sandbox", "run", "--keep"][..], &script].concat());
    let session = json.lines()[0]["session"].as_str().unwrap().to_owned();
    assert!(stage.ran(&["sessions", "diff", &session]).stdout.contains("+b"));
    let shown = stage.ran(&["sessions", "show", &session]);
    assert!(shown.stdout.contains("$ echo b >> a.txt\n"), "{shown:?}");
    // The control: what is not kept has none.
    let json = stage.ran(&[&["--json", "sandbox", "run"][..], &script].concat());
    assert!(
        json.lines()[0]["status"]["status"] == "done" && json.lines()[0].get("session").is_none(),
        "{json:?}"
    );
    // A program that is not there leaves a session, too.
    let none = stage.ran(&["sandbox", "run", "--keep", "--", "no-such-program"]);
    assert!(none.code == Some(1) && none.stderr.contains("no-such-program"), "{none:?}");
    assert!(none.stderr.contains("kept as session "), "{none:?}");
    // A file that would become too large ends a command by a signal, and by no limit that is counted.
    fs::write(stage.home().join("config.toml"), "[limits]\ncommand_disk_mib = 16\n").unwrap();
    let large =
        stage.ran(&["--json", "sandbox", "run", "--", "sh", "-c", "exec head -c 32M /dev/zero > large"]);
    assert!(
        large.lines()[0]["advice"].as_str().is_some_and(|told| told.contains("command_disk_mib")),
        "{large:?}"
    );
}

/// Where the rules ask and nobody is there, the answer is no.
#[test]
fn a_command_that_nobody_is_asked_about_is_denied() {
    let stage = Stage::new(&[]);
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "true"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("the rules require a person's yes"), "{ran:?}");
    // A first file of one's own takes the place of the default rules: they are to lie beside it.
    assert!(ran.stderr.contains("`bailey init`"), "{ran:?}");
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let ran = stage.ran(&["sandbox", "run", "--network", "--", "true"]);
    assert!(ran.code == Some(3) && !ran.stderr.contains("bailey init"), "the control: {ran:?}");
}

/// A command that finds no name is told how it gets a way out. The control is one that fails otherwise.
#[test]
fn a_command_that_reaches_nothing_is_told_of_the_door() {
    let stage = Stage::new(&[]);
    let failing = |words: &str| {
        let line = format!("echo '{words}' >&2; exit 6");
        let ran = stage.ran(&["sandbox", "run", "--", "sh", "-c", &line]);
        assert_eq!(ran.code, Some(6), "{ran:?}");
        ran.stderr.contains("`--network` asks for a way")
    };
    assert!(failing("curl: (6) Could not resolve host: example.com"));
    assert!(!failing("curl: (6) no such file"));
}

/// Whoever reads the code is not told that what nobody could see was shown.
#[test]
fn a_comparison_that_cannot_be_printed_is_no_success() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "sh", "-c", "echo b >> a.txt"]).code, Some(0));
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let shown = |out: fs::File| {
        let mut bailey = stage.bailey(&["sessions", "diff", &session]);
        bailey.stdout(out).status().unwrap().code()
    };
    assert_eq!(shown(fs::File::create("/dev/full").unwrap()), Some(1));
    assert_eq!(shown(fs::File::create("/dev/null").unwrap()), Some(0), "the control");
}

/// A signal ends a command that is kept, and its session is named all the same.
#[test]
fn a_command_that_is_cut_off_by_a_signal_names_what_is_kept() {
    let stage = Stage::new(&[]);
    let line = "echo a > a.txt; touch begun; sleep 600";
    let cut_off = |options: &[&str]| {
        let mut bailey =
            stage.bailey(&[options, &["sandbox", "run", "--keep", "--", "sh", "-c", line]].concat());
        let running = bailey.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let is_begun = || {
            let sessions = fs::read_dir(stage.home().join("sessions")).into_iter().flatten().flatten();
            sessions.filter(|session| session.path().join("upper/begun").exists()).count()
        };
        let before = is_begun();
        while is_begun() == before {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&running), Signal::INT).unwrap();
        Ran::of(running.wait_with_output().unwrap())
    };
    let text = cut_off(&[]);
    let name = text.stderr.split("kept as session ").nth(1).map(|rest| rest[..8].to_owned());
    let json = cut_off(&["--json"]);
    let named = json.lines()[0]["session"].as_str().map(str::to_owned);
    for (ran, name) in [(text, name), (json, named)] {
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let shown = stage.ran(&["sessions", "diff", &name.unwrap_or_else(|| panic!("{ran:?}"))]);
        assert!(shown.stdout.contains("+a\n"), "{shown:?}");
    }
}

/// A script that asks for JSON is told by JSON that a rule said no, as it is told that nobody was asked.
#[test]
fn a_denied_command_is_told_to_scripts_as_an_object() {
    let stage = Stage::new(&[]);
    let rule = "[[rule]]\nname = \"none\"\nanswer = \"deny\"\nmatch = { action = \"exec\" }\n";
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/default.toml"), crate::web::DEFAULT).unwrap();
    fs::write(stage.home().join("policy/own.toml"), rule).unwrap();
    let json = stage.ran(&["--json", "sandbox", "run", "--", "true"]);
    assert_eq!((json.code, json.lines().len()), (Some(3), 1), "{json:?}");
    let told = &json.lines()[0];
    let error = told["error"].as_str().unwrap();
    assert!(told["v"] == 1 && told["type"] == "error" && error.starts_with("denied: "), "{told}");
    let text = stage.ran(&["sandbox", "run", "--", "true"]);
    assert_eq!((text.code, text.stdout.as_str()), (Some(3), ""), "{text:?}");
    assert!(text.stderr.contains(error), "{text:?}");
}

/// What kept nothing has no folder, and a look at it makes none that stays.
#[test]
fn a_look_at_a_session_that_was_thrown_away_leaves_no_folder() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["sandbox", "run", "--", "sh", "-c", "echo b >> a.txt"]).code, Some(0));
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let left = || fs::read_dir(stage.home().join("sessions")).unwrap().count();
    let before = left();
    for command in ["diff", "discard"] {
        let ran = stage.ran(&["sessions", command, &session]);
        assert_eq!((ran.code, left()), (Some(0), before), "{command}: {ran:?}");
    }
    // The control: one that was kept has it, and keeps it.
    assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "true"]).code, Some(0));
    let kept =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.ran(&["sessions", "diff", &kept]).code, Some(0));
    assert_eq!(left(), before + 1);
}

/// Of many sessions the newest can be listed alone; and what is typed wrong is told to scripts, too.
#[test]
fn a_list_can_be_cut_and_a_wrong_word_is_an_object() {
    let stage = Stage::new(&[]);
    for _ in 0..3 {
        assert_eq!(stage.ran(&["sandbox", "run", "--keep", "--", "true"]).code, Some(0));
    }
    let all = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    assert_eq!(stage.ran(&["--json", "sessions", "list", "--all", "-n", "2"]).lines(), all[..2]);
    let cut = stage.ran(&["sessions", "list", "--all", "-n", "1"]);
    assert!(cut.stdout.lines().count() == 1 && cut.stderr.contains("and 2 older sessions"), "{cut:?}");
    assert!(!stage.ran(&["sessions", "list", "--all", "-n", "3"]).stderr.contains("older"), "the control");
    let wrong = stage.ran(&["--json", "nosuch"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let told = &wrong.lines()[0];
    assert_eq!((&told["v"], &told["type"]), (&json!(1), &json!("error")), "{told}");
    assert!(told["error"].as_str().unwrap().contains("nosuch"), "{told}");
    // The control: without `--json`, and of a word that is the command's own, there is none.
    assert_eq!(stage.ran(&["nosuch"]).stdout, "");
    assert_eq!(stage.ran(&["sandbox", "nosuch", "--", "--json"]).stdout, "");
}

/// What a list says of the newest session: its state, and that of its changes.
fn newest(stage: &Stage) -> (String, Value) {
    let listed = stage.ran(&["--json", "sessions", "list"]).lines();
    let changes = json!([listed[0]["changes"], listed[0]["files"]]);
    (listed[0]["state"].as_str().unwrap().to_owned(), changes)
}

/// A list says of each session whether something of it waits, from its beginning to its end.
#[test]
fn a_list_says_what_waits() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = worked(&stage);
    assert_eq!(newest(&stage), ("done".into(), json!(["waiting", 1])));
    let text = stage.ran(&["sessions", "list"]).stdout;
    assert!(text.contains("1 change not applied  do it"), "{text}");
    for (command, then) in [("apply", json!(["applied", null])), ("undo", json!(["waiting", 1]))] {
        assert_eq!(stage.ran(&["sessions", command, &session]).code, Some(0));
        assert_eq!(newest(&stage), ("done".into(), then), "{command}");
    }
    assert_eq!(stage.ran(&["sessions", "discard", &session]).code, Some(0));
    assert_eq!(newest(&stage), ("done".into(), json!(["none", null])));
    // One that changed nothing, and one that no model answered.
    let (ran, _model) = stage.task(vec![Reply::text("there is nothing to do")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(newest(&stage), ("done".into(), json!(["none", null])));
    let (ran, _model) = stage.task(vec![Reply::error(400, "invalid_request_error", "no")], &[]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(newest(&stage).0, "failed");
    let text = stage.ran(&["sessions", "list"]).stdout;
    assert!(text.lines().next().is_some_and(|line| line.contains("  failed ")), "{text}");
}

/// A part that was applied waits no more, and the rest does.
#[test]
fn a_part_that_is_applied_leaves_the_rest_waiting() {
    let stage = Stage::new(&[]);
    let write = |path: &str| json!({ "path": path, "content": "new\n" });
    let calls = Reply::calls([("c1", "fs_write", write("b.txt")), ("c2", "fs_write", write("c.txt"))]);
    let (ran, _model) = stage.task(vec![calls, Reply::text("done")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = stage.ran(&["--json", "sessions", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(newest(&stage).1, json!(["waiting", 2]));
    assert_eq!(stage.ran(&["sessions", "apply", &session, "b.txt"]).code, Some(0));
    assert_eq!(newest(&stage).1, json!(["waiting", 1]));
    assert_eq!(stage.ran(&["sessions", "apply", &session]).code, Some(0));
    assert_eq!(newest(&stage).1, json!(["applied", null]));
}

/// Times are those of the clock on the wall, with the name of their zone.
#[test]
fn times_are_local_and_say_so() {
    let stage = Stage::new(&[]);
    worked(&stage);
    let listed = |zone: &str| {
        let mut command = stage.bailey(&["sessions", "list"]);
        Ran::of(command.env("TZ", zone).output().unwrap()).stdout
    };
    let (there, here) = (listed("Asia/Kolkata"), listed("UTC"));
    if !Path::new("/usr/share/zoneinfo/Asia/Kolkata").exists() {
        println!("SKIPPED: there are no time zones here");
        return;
    }
    assert!(there.contains(" IST ") && here.contains(" UTC "), "{there}{here}");
    assert_ne!(there.replace("IST", ""), here.replace("UTC", ""));
}

/// Messages and answers are searched, in the sessions of one project or of all; keys stay out, and what is
/// found does not act on the terminal.
#[test]
fn what_was_said_is_found_again() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let answer = "The flaky test waits for \u{1b}[2J a socket.";
    let said = |task: &str, answer: &str| {
        let _model = stage.model(vec![Reply::text(answer)]);
        let run = ["run", "--model", "test/model", "--approve", "never", task];
        assert_eq!(stage.ran(&run).code, Some(0));
    };
    said("why does it fail?", answer);
    said("write a poem about sockets", "Roses are red");
    let found = stage.ran(&["sessions", "search", "FLAKY", "socket"]);
    assert!(
        found.stdout.contains("why does it fail?") && found.stdout.contains("agent: The flaky"),
        "{found:?}"
    );
    assert!(!found.stdout.contains("poem") && !found.stdout.contains('\u{1b}'), "{found:?}");
    let lines = stage.ran(&["--json", "sessions", "search", "sockets"]).lines();
    assert_eq!((lines.len(), &lines[0]["by"]), (1, &json!("person")), "{lines:?}");
    let project = stage.project();
    for (directory, count) in [(project, 1), (stage.folder().join("other"), 0)] {
        let directory = directory.to_str().unwrap();
        let found = stage.ran(&["--json", "sessions", "search", "--project", directory, "flaky"]);
        assert_eq!(found.lines().len(), count, "{directory}: {found:?}");
        let listed = stage.ran(&["--json", "sessions", "list", "--project", directory]);
        assert_eq!(listed.lines().len(), 2 * count, "{directory}: {listed:?}");
    }
    let none = stage.ran(&["sessions", "search", "nobody said this"]);
    assert!(
        none.code == Some(0) && none.stdout.is_empty() && none.stderr.contains("nobody said"),
        "{none:?}"
    );
}

/// A tool has one name, whichever name the model wrote, and the target that the live view has.
#[test]
fn a_call_is_shown_as_in_the_live_view() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let calls = [
        ("c1", "command_run", json!({ "command": "ls -a" })),
        ("c2", "read_file", json!({ "path": "a.txt" })),
    ];
    let _model = stage.model(vec![Reply::calls(calls), Reply::text("done")]);
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "look"]);
    assert!(ran.stdout.contains("command.run ls -a") && ran.stdout.contains("fs.read a.txt"), "{ran:?}");
    let session = stage.ran(&["--json", "sessions", "list"]).lines()[0]["id"].clone();
    let shown = stage.ran(&["sessions", "show", session.as_str().unwrap()]).stdout;
    assert!(shown.contains("  command.run ls -a\n") && shown.contains("  fs.read a.txt\n"), "{shown}");
}
