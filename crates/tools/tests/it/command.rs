use crate::world::{
    act, conclude, done, exec, exec_without_routes, need, plan, refusal, stat, stream, with_status,
};
use bailey_kernel::{Output, Plan};
use bailey_protocol::{
    Action, Blob, Command, Enforced, ExecReport, FileKind, Limits, ListReport, Listed, Outcome,
    ProcessReport, Report, Status, Stream, Wall,
};
use serde_json::{Value, json};

fn command(name: &str, arguments: Value, seen: &[Output]) -> Command {
    match act(name, arguments, seen) {
        Action::Exec(command) => command,
        other => panic!("no command: {other:?}"),
    }
}

#[test]
fn a_line_goes_to_the_shell_and_a_list_does_not() {
    let shell = command("command.run", json!({"command": "ls | wc"}), &[]);
    assert_eq!(shell.argv, ["/bin/sh", "-c", "ls | wc"]);
    assert_eq!((shell.cwd.0.as_str(), shell.network, &shell.stdin), ("/w", false, &None));
    assert_eq!(shell.limits, Limits::default());
    let all = json!({
        "argv": ["ls", "-l"], "cwd": "src", "stdin": "in", "env": {"A": "b"}, "timeout_s": 3600, "network": true,
    });
    let list = command("command.run", all, &[]);
    assert_eq!(list.argv, ["ls", "-l"]);
    assert_eq!((list.cwd.0.as_str(), list.network, list.stdin), ("src", true, Some(Blob(b"in".to_vec()))));
    assert_eq!(list.env.into_iter().collect::<Vec<_>>(), [("A".into(), "b".into())]);
    assert_eq!(list.limits, Limits { wall_ms: 3_600_000, ..Limits::default() });
}

#[test]
fn what_execve_cannot_take_is_refused() {
    for (arguments, expected) in [
        (json!({}), "both are empty"),
        (json!({"command": "a", "argv": ["a"]}), "give either `command`"),
        (json!({"command": "  "}), "both are empty"),
        (json!({"argv": []}), "both are empty"),
        (json!({"argv": [""]}), "program's name is empty"),
        (json!({"argv": ["a", "b\0c"]}), "NUL"),
        (json!({"command": "a\0"}), "NUL"),
        (json!({"command": "a", "env": {"A": "\0"}}), "NUL"),
        (json!({"command": "a", "env": {"A=B": "c"}}), "holds no `=`"),
        (json!({"command": "a", "env": {"": "c"}}), "a name is not empty"),
        (json!({"command": "a", "timeout_s": 0}), "`timeout_s` must be from 1 to 3600, got 0"),
        (json!({"command": "a", "timeout_s": 3601}), "`timeout_s` must be from 1 to 3600"),
        (json!({"command": "a", "timeout_s": u64::MAX}), "`timeout_s` must be from 1 to 3600"),
        (json!({"command": "a".repeat(131_072)}), "Linux takes at most 131072"),
        (json!({"argv": vec!["a".repeat(131_000); 20]}), "at most 1048576 fit"),
    ] {
        let reason = refusal("command.run", arguments, &[]);
        assert!(reason.contains(expected), "{reason}");
    }
    // The control: one byte less is taken.
    command("command.run", json!({"command": "a".repeat(131_071)}), &[]);
}

/// A command writes text back into a file as the model was shown it, and the secret is gone.
#[test]
fn a_command_that_holds_a_redaction_mark_is_refused() {
    let mark = "[redacted:github-token]";
    let tests: Vec<Output> = (0..7).map(|_| stat(Some(FileKind::File))).collect();
    for (name, arguments) in [
        ("command.run", json!({"command": format!("cat > a <<'X'\ntoken: {mark}\nX")})),
        ("command.run", json!({"argv": ["sed", "-i", format!("s/x/{mark}/"), "a"]})),
        ("command.run", json!({"command": "tee a", "stdin": mark})),
        ("command.run", json!({"command": "echo $T > a", "env": {"T": mark}})),
        ("command.run", json!({"command": format!("while :; do echo {mark} > a; done"), "background": true})),
        ("git.run", json!({"args": ["commit", "-m", mark]})),
        ("test.run", json!({"filter": mark})),
    ] {
        let seen = if name == "test.run" { tests.as_slice() } else { &[] };
        let reason = refusal(name, arguments.clone(), seen);
        assert!(reason.contains(mark) && reason.contains("refused to run"), "{name}: {reason}");
        // The control: without the mark it is run.
        let without = serde_json::from_str(&arguments.to_string().replace(mark, "[redacted:]")).unwrap();
        assert!(matches!(plan(name, without, seen), Plan::Act(Action::Exec(_))), "{name}");
    }
}

#[test]
fn git_is_run_without_a_shell() {
    let git = command("git.run", json!({"args": ["log", "-1"], "cwd": "sub"}), &[]);
    assert_eq!((git.argv, git.cwd.0.as_str()), (vec!["git".into(), "log".into(), "-1".into()], "sub"));
}

#[test]
fn tests_are_picked_by_what_lies_in_the_root() {
    let names =
        ["Cargo.toml", "go.mod", "package.json", "pyproject.toml", "setup.py", "pytest.ini", "Makefile"];
    let looks = need("test.run", json!({}), &[]);
    assert_eq!(looks, names.map(|name| Action::Stat { path: format!("/w/{name}").as_str().into() }));
    let with = |present: &[&str]| -> Vec<Output> {
        names.iter().map(|name| stat(present.contains(name).then_some(FileKind::File))).collect()
    };
    let argv = |present: &[&str], filter: Value| {
        command("test.run", json!({"filter": filter}), &with(present)).argv.join(" ")
    };
    assert_eq!(argv(&["Cargo.toml", "Makefile"], Value::Null), "cargo test");
    assert_eq!(argv(&["Cargo.toml"], json!("parse")), "cargo test parse");
    assert_eq!(argv(&["go.mod"], json!("TestX")), "go test ./... -run TestX");
    assert_eq!(argv(&["package.json"], json!("x")), "npm test -- x");
    assert_eq!(argv(&["pytest.ini"], json!("x")), "python3 -m pytest -k x");
    assert_eq!(argv(&["Makefile"], Value::Null), "make test");
    assert!(refusal("test.run", json!({"filter": "x"}), &with(&["Makefile"])).contains("takes no `filter`"));
    assert!(
        refusal("test.run", json!({"filter": "--x"}), &with(&["Cargo.toml"])).contains("taken for an option")
    );
    // Without any of them, the names of Python's tests decide.
    assert_eq!(need("test.run", json!({}), &with(&[])), [Action::List { path: "/w".into() }]);
    let listing = |name: &str| {
        let entries = vec![Listed { name: name.into(), kind: FileKind::File, size: 1 }];
        let listed = done(Report::List(ListReport { entries, more: 0 }));
        with(&[]).into_iter().chain([listed]).collect::<Vec<Output>>()
    };
    let python = command("test.run", json!({"filter": "total"}), &listing("test_calc.py"));
    assert_eq!(python.argv.join(" "), "python3 -m unittest -k total");
    assert!(refusal("test.run", json!({}), &listing("calc_test.py")).contains("has none of Cargo.toml"));
}

fn told(report: ExecReport) -> (bool, String) {
    let conclusion = conclude("command.run", json!({"command": "cargo test"}), &[], &exec(report));
    (conclusion.ok, conclusion.text)
}

#[test]
fn what_a_command_said_is_told() {
    let report = ExecReport { exit: Some(0), stdout: stream("ok\n\n"), ..ExecReport::default() };
    insta::assert_snapshot!(format!("{}|", told(report).1), @r"
    $ cargo test
    exit code: 0
    --- stdout ---
    ok
    |
    ");
    let report = ExecReport {
        exit: Some(101),
        stdout: stream("a"),
        stderr: stream("failed\n"),
        ..ExecReport::default()
    };
    let (ok, text) = told(report);
    assert!(!ok);
    insta::assert_snapshot!(text, @r"
    $ cargo test
    exit code: 101
    --- stdout ---
    a
    --- stderr ---
    failed
    ");
    assert_eq!(
        told(ExecReport { exit: Some(0), ..ExecReport::default() }),
        (true, "$ cargo test\nexit code: 0".into())
    );
}

#[test]
fn how_a_command_ended_is_told() {
    let ended = |report: ExecReport| {
        let (ok, text) = told(report);
        assert!(!ok, "{text}");
        text.lines().nth(1).unwrap().to_owned()
    };
    let by = |limit: &str| ExecReport { limit: Some(limit.into()), signal: Some(9), ..ExecReport::default() };
    let signal = |signal| ExecReport { signal: Some(signal), ..ExecReport::default() };
    assert_eq!(ended(signal(11)), "killed by signal 11 (SIGSEGV)");
    assert_eq!(ended(signal(31)), "killed by signal 31 (SIGSYS)");
    assert_eq!(ended(signal(40)), "killed by signal 40");
    assert_eq!(ended(signal(0)), "killed by signal 0");
    assert_eq!(ended(by("memory limit")), "ended by the memory limit of 4096 MiB");
    insta::assert_snapshot!(ended(by("time limit")), @"ended by the time limit of 600 s; if it needs more, call again with a larger `timeout_s` (at most 3600)");
    // A command that exits with 0 after a limit ended it was still ended.
    assert_eq!(
        ended(ExecReport { exit: Some(0), ..by("disk limit") }),
        "ended by the disk limit of 8192 MiB"
    );
    let most = json!({"command": "x", "timeout_s": 3600});
    let text = conclude("command.run", most, &[], &exec(by("time limit"))).text;
    assert_eq!(text, "$ x\nended by the time limit of 3600 s; there is no more than that");
}

#[test]
fn requests_that_did_not_pass_are_told_and_those_beyond_the_first_counted() {
    let report = |more| ExecReport {
        exit: Some(0),
        refused: vec!["GET a: no rule allows it".into(), "GET b: no rule allows it".into()],
        refused_more: more,
        not_passed: vec!["GET c: no answer".into()],
        not_passed_more: more,
        ..ExecReport::default()
    };
    let text = told(report(6)).1;
    assert!(
        text.contains("refused GET a: no rule allows it; GET b: no rule allows it; and 6 more; ask"),
        "{text}"
    );
    assert!(text.contains("could not pass on GET c: no answer; and 6 more)"), "{text}");
    let text = told(report(0)).1;
    assert!(text.contains("GET b: no rule allows it; ask") && !text.contains("more"), "{text}");
}

#[test]
fn a_commit_without_a_name_is_told_where_names_come_from() {
    let text = "Author identity unknown\n\n*** Please tell me who you are.\n";
    let told = |exit| told(ExecReport { exit: Some(exit), stderr: stream(text), ..ExecReport::default() }).1;
    assert!(told(128).contains("git config --global user.name NAME"), "{}", told(128));
    assert!(!told(0).contains("git config"), "the control");
}

/// What is only watched may have been passed for a moment; what the kernel held was not.
#[test]
fn a_limit_that_was_only_watched_is_told_as_such() {
    let by = |limit: &str, wall| {
        let report = ExecReport { limit: Some(limit.into()), signal: Some(9), ..ExecReport::default() };
        let enforced = Some(Enforced { watched: [wall].into(), ..Enforced::default() });
        let output = Output::new(Outcome { enforced, ..exec(report).outcome().clone() });
        conclude("command.run", json!({ "command": "x" }), &[], &output)
            .text
            .lines()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let told = ", which is watched here and not held: for a moment it may have been more";
    assert_eq!(by("memory limit", Wall::MemoryLimit), format!("ended by the memory limit of 4096 MiB{told}"));
    assert_eq!(by("disk limit", Wall::DiskLimit), format!("ended by the disk limit of 8192 MiB{told}"));
    assert_eq!(by("memory limit", Wall::DiskLimit), "ended by the memory limit of 4096 MiB", "the control");
}

#[test]
fn a_limit_is_told_with_the_setting_that_raises_it() {
    let note = |report: ExecReport| {
        let (_, text) = told(report);
        text.lines().last().filter(|line| line.contains("config.toml")).map(str::to_owned)
    };
    let by = |limit: &str| ExecReport { limit: Some(limit.into()), signal: Some(9), ..ExecReport::default() };
    let says = |text: &str| ExecReport { exit: Some(2), stderr: stream(text), ..ExecReport::default() };
    for (report, setting) in [
        (by("memory limit"), "command_memory_mib"),
        (by("disk limit"), "command_disk_mib"),
        (
            ExecReport { signal: Some(25), ..ExecReport::default() },
            "disk limit of 8192 MiB; the human can raise `command_disk_mib`",
        ),
        (ExecReport { exit: Some(153), ..ExecReport::default() }, "command_disk_mib"),
        (says("dd: x: File too large\n"), "command_disk_mib"),
        (
            says("sh: 1: Cannot fork\n"),
            "512 processes and threads at most; the human can raise `command_processes`",
        ),
        (says("fork: retry: Resource temporarily unavailable\n"), "command_processes"),
    ] {
        let note = note(report.clone()).unwrap_or_else(|| panic!("{report:?}"));
        assert!(note.contains(setting), "{note}");
    }
    // The controls: no limit, or one of which the model is told what to do itself.
    let fine = ExecReport { exit: Some(0), ..says("Cannot fork\n") };
    for report in [says("No such file\n"), fine, by("time limit"), by("another limit")] {
        assert_eq!(note(report.clone()), None, "{report:?}");
    }
}

#[test]
fn a_cut_stream_shows_both_ends() {
    let stdout = Stream { head: "first\nsec".into(), tail: "nd\nlast\n".into(), total: 1_000_017 };
    insta::assert_snapshot!(told(ExecReport { exit: Some(0), stdout, ..ExecReport::default() }).1, @r"
    $ cargo test
    exit code: 0
    --- stdout ---
    first
    sec
    … 1000000 bytes left out …
    nd
    last
    ");
    // Both halves of one character are joined before they are read as text.
    let stdout = Stream { head: Blob(vec![0xc3]), tail: Blob(vec![0xa4, b'\n']), total: 3 };
    assert!(told(ExecReport { exit: Some(0), stdout, ..ExecReport::default() }).1.ends_with("---\nä"));
}

#[test]
fn a_refused_connection_is_explained() {
    let report = ExecReport { exit: Some(6), stderr: stream("no route\n"), ..ExecReport::default() };
    let text = |routes| {
        let output = exec_without_routes(report.clone(), routes);
        conclude("command.run", json!({"argv": ["curl", "http://x/?a b"]}), &[], &output).text
    };
    insta::assert_snapshot!(text(2), @r"
    $ curl 'http://x/?a b'
    exit code: 6
    --- stderr ---
    no route
    (the sandbox has no network but what `network` asks for; a connection was refused)
    ");
    assert!(!text(0).contains("no network"));
}

#[test]
fn a_refused_socket_is_explained() {
    let text = |words: &str, exit, has_unix_sockets| {
        let report = ExecReport { exit: Some(exit), stderr: stream(words), ..ExecReport::default() };
        let enforced = Some(Enforced { has_unix_sockets, ..Enforced::default() });
        let outcome =
            Outcome { status: Status::Done, enforced, duration_ms: 1, report: Report::Exec(report) };
        conclude("command.run", json!({ "command": "x" }), &[], &Output::new(outcome)).text
    };
    for words in [
        "OSError: [Errno 97] Address family not supported by protocol\n",
        "socket: address family not supported by protocol\n",
        "Error: listen EAFNOSUPPORT: address family not supported /tmp/x.sock\n",
    ] {
        assert!(text(words, 1, false).contains("(the call `socket` was refused"), "{words}");
        assert!(!text(words, 1, true).contains("was refused"), "another family: {words}");
        assert!(!text(words, 0, false).contains("was refused"), "it went well: {words}");
    }
    let interfaces = "A system error occurred: uv_interface_addresses returned Unknown system error 1\n";
    assert!(text(interfaces, 1, true).contains("`profile = \"standard-net\"`"));
    assert!(!text(interfaces, 0, true).contains("standard-net"));
}

/// A name that is not found is no packet without a route: the door finds names, for programs that ask it.
#[test]
fn a_name_that_is_not_found_is_explained() {
    let text = |words: &str, exit, network| {
        let report = ExecReport { exit: Some(exit), stderr: stream(words), ..ExecReport::default() };
        let output = exec_without_routes(report, 0);
        conclude("command.run", json!({ "command": "x", "network": network }), &[], &output).text
    };
    let words = "curl: (6) Could not resolve host: example.com\n";
    assert!(text(words, 6, false).contains("no network but what `network` asks for"));
    assert!(text(words, 6, true).ends_with("has to use the proxy that `HTTPS_PROXY` names)"));
    assert!(text("java.net.UnknownHostException: h\n", 1, true).contains("`HTTPS_PROXY`"));
    for (words, exit) in [(words, 0), ("no such file\n", 1)] {
        assert_eq!(text(words, exit, false), text(words, exit, true), "the control: {words}");
    }
}

#[test]
fn a_missing_dependency_is_told_in_one_sentence() {
    let told = |stderr: &str, exit| {
        let report = ExecReport { exit: Some(exit), stderr: stream(stderr), ..ExecReport::default() };
        conclude("command.run", json!({"command": "x"}), &[], &exec_without_routes(report, 1))
    };
    for (stderr, fetch) in [
        ("  [6] Could not resolve hostname (Could not resolve host: index.crates.io)", "cargo fetch"),
        ("you may wish to retry without `--offline`.", "cargo fetch"),
        ("npm error code ENOTCACHED", "npm install"),
        ("npm error code EAI_AGAIN", "npm install"),
        ("Error: Cannot find module 'left-pad'", "npm install"),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /w/x.js", "npm install"),
        ("dial tcp: lookup proxy.golang.org: no such host", "go mod download"),
        ("Cannot access central in offline mode and the artifact a:b:1 has not", "mvn dependency:go-offline"),
        ("ERROR: No matching distribution found for x", "python3 -m pip install -r requirements.txt"),
        ("/usr/bin/python3: No module named pytest", "python3 -m pip install -r requirements.txt"),
    ] {
        let conclusion = told(stderr, 1);
        let end = format!("ask the human to run `{fetch}` in the project, outside)");
        assert!(conclusion.text.ends_with(&end), "{}", conclusion.text);
        assert!(!conclusion.text.contains("a connection was refused"), "one sentence: {}", conclusion.text);
        assert!(conclusion.summary.ends_with(&format!("with `{fetch}`")), "{}", conclusion.summary);
    }
    // What is no package is not fetched; nor is anything after a command that did well.
    assert!(!told("Error: Cannot find module './left-pad'", 1).text.contains("human"));
    assert!(!told("npm error code ENOTCACHED", 0).text.contains("human"));
}

#[test]
fn the_same_run_is_told_the_same_whatever_its_duration() {
    let report = ExecReport { exit: Some(0), stdout: stream("x"), ..ExecReport::default() };
    let (slow, fast) = (exec(report.clone()), exec_without_routes(report, 0));
    assert_ne!(slow.outcome().duration_ms, fast.outcome().duration_ms);
    let text = |output| conclude("command.run", json!({"command": "x"}), &[], output).text;
    assert_eq!(text(&slow), text(&fast));
}

#[test]
fn a_cancelled_command_shows_what_it_said() {
    // It may end well all the same, but then nobody waits for what comes next.
    let report = ExecReport { exit: Some(0), stdout: stream("half\n"), ..ExecReport::default() };
    let output = with_status(Status::Cancelled, Report::Exec(report));
    let conclusion = conclude("command.run", json!({"command": "x"}), &[], &output);
    assert!(!conclusion.ok);
    assert_eq!(conclusion.text, "$ x\ncancelled before it ended\n--- stdout ---\nhalf");
}

#[test]
fn tests_and_git_are_told_alike() {
    let seen: Vec<Output> = (0..7).map(|i| stat((i == 0).then_some(FileKind::File))).collect();
    let output = exec(ExecReport { exit: Some(0), ..ExecReport::default() });
    assert_eq!(conclude("test.run", json!({}), &seen, &output).text, "$ cargo test\nexit code: 0");
    assert_eq!(
        conclude("git.run", json!({"args": ["status"]}), &[], &output).text,
        "$ git status\nexit code: 0"
    );
    assert!(!conclude("git.run", json!({"args": ["status"]}), &[], &done(Report::Nothing)).ok);
}

#[test]
fn a_command_in_the_background_has_a_day_and_is_told_by_its_number() {
    let arguments = json!({"argv": ["serve"], "background": true});
    let server = command("command.run", arguments.clone(), &[]);
    assert!(server.background);
    assert_eq!(server.limits, Limits { wall_ms: 24 * 3_600_000, ..Limits::default() });
    let bound = json!({"argv": ["serve"], "background": true, "timeout_s": 5});
    assert_eq!(command("command.run", bound, &[]).limits.wall_ms, 5000);
    let control = command("command.run", json!({"argv": ["serve"], "background": false}), &[]);
    assert_eq!((control.background, control.limits), (false, Limits::default()));
    let log = stream("a\nb\nc\nd\n");
    let report = |ended: Option<Status>, exec: ExecReport| {
        done(Report::Process(ProcessReport {
            number: 3,
            ended,
            exec: ExecReport { stdout: log.clone(), ..exec },
        }))
    };
    let runs = report(None, ExecReport::default());
    let begun = conclude("command.run", arguments, &[], &runs);
    assert!(
        begun.ok && begun.text.starts_with("$ serve\nruns in the background as process 3: "),
        "{begun:?}"
    );
    let seen = |lines: u32, output: &Output| {
        conclude("process.log", json!({"process": 3, "lines": lines}), &[], output).text
    };
    assert_eq!(seen(2, &runs), "process 3 runs\n--- stdout ---\n… 2 lines before …\nc\nd");
    assert_eq!(seen(4, &runs), "process 3 runs\n--- stdout ---\na\nb\nc\nd");
    let stop = |output: &Output| {
        let said = conclude("process.stop", json!({"process": 3}), &[], output);
        (said.ok, said.summary)
    };
    let failed = ExecReport { exit: Some(1), ..ExecReport::default() };
    assert_eq!(
        stop(&report(Some(Status::Done), failed)),
        (false, "process 3 has ended; exit code: 1".into())
    );
    let stopped = report(Some(Status::Cancelled), ExecReport::default());
    assert_eq!(stop(&stopped), (true, "process 3 was stopped".into()));
    let limit = ExecReport { limit: Some("time limit".into()), ..ExecReport::default() };
    let late = report(Some(Status::Done), limit);
    assert_eq!(stop(&late), (false, "process 3 was ended by the time limit".into()));
}
