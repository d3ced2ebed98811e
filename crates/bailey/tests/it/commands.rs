//! The commands that set Bailey up and explain it: `init`, `policy`, `tools`, `man`, `version`,
//! `completions`.

use crate::stage::{Ran, Stage};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::fs;

fn explained(stage: &Stage, arguments: &[&str]) -> Value {
    let ran = stage.ran(&[&["--json", "policy", "explain"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.lines().pop().unwrap()
}

fn heard<'a>(explained: &'a Value, rule: &str) -> &'a str {
    let rules = explained["rules"].as_array().unwrap();
    rules.iter().find(|it| it["rule"] == rule).and_then(|it| it["heard"].as_str()).unwrap_or("not considered")
}

#[test]
fn examples_of_rules_are_tried() {
    let stage = Stage::new(&[]);
    let rule = |examples: &str| {
        fs::create_dir_all(stage.home().join("policy")).unwrap();
        let text = format!(
            "[[rule]]\nname = \"reads\"\nanswer = \"allow\"\nmatch = {{ action = \"read\" }}\nexamples = {{ {examples} }}\n"
        );
        fs::write(stage.home().join("policy/own.toml"), text).unwrap();
    };
    let default = stage.ran(&["policy", "test"]);
    assert!(default.code == Some(0) && default.stdout.contains("examples hold"), "{default:?}");
    // A draft in a home without rules is tried without the default ones, which is easily overlooked.
    let first = "[[rule]]\nname = \"a\"\nanswer = \"allow\"\nmatch = { action = \"read\" }\n";
    fs::write(stage.project().join("first.toml"), first).unwrap();
    let alone = stage.ran(&["policy", "test", "first.toml"]);
    assert!(alone.code == Some(0) && alone.stderr.contains("this home has no rule files yet"), "{alone:?}");
    rule(r#"allow = ["read a"], ask = ["read b"]"#);
    let ran = stage.ran(&["policy", "test"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("✓ read a: allow (reads)"), "{ran:?}");
    assert!(
        ran.stdout.contains("✗ read b: allow, not ask (reads)") && ran.stdout.contains("own.toml:5:41"),
        "{ran:?}"
    );
    let lines = stage.ran(&["--json", "policy", "test"]).lines();
    assert_eq!(
        (&lines[0]["ok"], &lines[1]["ok"], &lines[1]["verdict"]),
        (&true.into(), &false.into(), &"allow".into())
    );
    let start = stage.ran(&["policy", "check"]);
    assert!(start.code == Some(2) && start.stderr.contains("example `read b` of rule `reads`"), "{start:?}");
    rule(r#"allow = ["read a"]"#);
    assert_eq!(stage.ran(&["policy", "check"]).code, Some(0), "control");
    fs::write(stage.project().join("draft.toml"), "[[rule]]\nname = \"a\"\nanswer = \"deny\"\nmatch = {}\n")
        .unwrap();
    let draft = stage.ran(&["policy", "test", "draft.toml"]);
    assert!(draft.code == Some(1) && draft.stdout.contains("✗ read a: deny, not allow (reads)"), "{draft:?}");
    assert!(!draft.stderr.contains("no rule files yet"), "{draft:?}");
    fs::copy(stage.project().join("draft.toml"), stage.project().join("own.toml")).unwrap();
    let instead = stage.ran(&["policy", "test", "own.toml"]);
    assert!(instead.code == Some(0) && instead.stdout.contains("no rule has examples"), "{instead:?}");
    assert_eq!(stage.ran(&["policy", "test", "none.toml"]).code, Some(2));
}

#[test]
fn explain_says_what_each_rule_makes_of_an_action() {
    let stage = Stage::new(&[("src/a.txt", "a\n")]);
    let read = explained(&stage, &["read", "src/a.txt"]);
    assert_eq!((&read["verdict"], heard(&read, "workspace-reads")), (&"allow".into(), "spoke"), "{read}");
    assert_eq!((heard(&read, "outside-reads"), heard(&read, "models")), ("excepted", "not considered"));
    assert_eq!(read["target"], stage.project().join("src/a.txt").display().to_string());
    let outside = explained(&stage, &["read", "../outside.txt"]);
    let outside_path = stage.project().parent().unwrap().join("outside.txt");
    assert_eq!(outside["target"], outside_path.display().to_string(), "what the words lead to");
    let home = explained(&stage, &["read", &stage.home().join("config.toml").display().to_string()]);
    assert_eq!(home["verdict"], "deny");
    assert_eq!(
        (heard(&home, "bailey-home"), heard(&home, "workspace-reads")),
        ("spoke", "not_asked"),
        "{home}"
    );
    let run = explained(&stage, &["exec", "--", "cargo", "test", "--workspace"]);
    assert_eq!((&run["verdict"], &run["target"]), (&"allow".into(), &"cargo test --workspace".into()));
    assert_eq!(explained(&stage, &["--network", "exec", "--", "curl", "x"])["verdict"], "review");
    assert_eq!(explained(&stage, &["apply", "src/a.txt"])["verdict"], "allow", "as `sessions apply` asks");
    for wrong in [["fly", "a"].as_slice(), &["read", "a", "b"], &["exec"], &["http"]] {
        let ran = stage.ran(&[&["policy", "explain"], wrong].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    assert_eq!(
        explained(&stage, &["--role", "agent", "apply", "src/a.txt"])["verdict"],
        "deny",
        "the control: an agent never merges"
    );
    // A rule of the human's own is heard at once.
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rule = "[[rule]]\nname = \"no-a\"\nanswer = \"deny\"\nreason = \"not this one\"\nmatch = { path = \"src/a.txt\" }\n";
    fs::write(stage.home().join("policy/own.toml"), rule).unwrap();
    let read = explained(&stage, &["read", "src/a.txt"]);
    assert_eq!((&read["verdict"], heard(&read, "no-a")), (&"deny".into(), "spoke"));
    let rule = "[[rule]]\nname = \"snakes\"\nanswer = \"allow\"\nmatch = { command = \"python3\" }\n";
    fs::write(stage.home().join("policy/snakes.toml"), rule).unwrap();
    let run = stage.ran(&["policy", "explain", "exec", "--", "python3", "-m", "venv", "x"]);
    assert!(run.stdout.contains("has to name it, `python3 -m`"), "{run:?}");
    let run = stage.ran(&["policy", "explain", "exec", "--", "python3", "x.py"]);
    assert!(!run.stdout.contains("has to name it"), "the control: {run:?}");
    let shown = stage.ran(&["policy", "show"]);
    assert!(shown.stdout.contains("no-a") && shown.stdout.contains("home-secrets"), "{shown:?}");
    let shown = stage.ran(&["policy", "show", "no-a"]);
    assert!(shown.stdout.contains("src/a.txt") && !shown.stdout.contains("home-secrets"), "{shown:?}");
    assert_eq!(stage.ran(&["policy", "show", "no-b"]).code, Some(1));
    let ran = stage.ran(&["policy", "explain", "fly"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("unknown action `fly`"), "{ran:?}");
}

#[test]
fn explain_judges_what_the_journal_holds_by_the_rules_of_today() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let rule = |path: &str| {
        let text = format!(
            "[[rule]]\nname = \"no-reads\"\nanswer = \"deny\"\nreason = \"x\"\nmatch = {{ action = \"read\", path = \"{path}\" }}\n"
        );
        fs::write(stage.home().join("policy/own.toml"), text).unwrap();
    };
    rule("b.txt");
    let reply = Reply::calls([
        ("c1", "fs_read", json!({ "path": "a.txt" })),
        ("c2", "fs_read", json!({ "path": "b.txt" })),
    ]);
    let (ran, _) = stage.task(vec![reply, Reply::text("done")], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let seq = |kind: &str| {
        let trail = stage.trail();
        let is_of_the_reply =
            |entry: &&Value| entry["target"].as_str().is_some_and(|target| target.ends_with(".txt"));
        let found = trail.iter().filter(is_of_the_reply).find(|entry| entry["type"] == kind);
        found.unwrap_or_else(|| panic!("{trail:#?}"))["seq"].as_str().unwrap().to_owned()
    };
    let both = |seq: &str| {
        let ran = stage.ran(&["--json", "policy", "explain", "--entry", seq]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let lines = ran.lines();
        (lines[0]["then"].clone(), lines[1]["verdict"].clone())
    };
    let (read, denied) = (seq("intent"), seq("denied"));
    assert_eq!(both(&read), ("let through".into(), "allow".into()));
    assert_eq!(both(&denied), ("denied".into(), "deny".into()));
    rule("a.txt");
    assert_eq!(both(&read), ("let through".into(), "deny".into()), "the rules of today");
    assert_eq!(both(&denied), ("denied".into(), "allow".into()));
    for (seq, words) in [("1", "genesis"), ("999999", "no entry 999999")] {
        let ran = stage.ran(&["policy", "explain", "--entry", seq]);
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn init_finds_what_is_there_asks_nothing_and_overwrites_nothing() {
    let stage = Stage::new(&[]);
    let key = [("ANTHROPIC_API_KEY", "sk-ant-test-4711")];
    let init = |variables: &[(&str, &str)], arguments: &[&str]| {
        Ran::of(stage.bailey(arguments).envs(variables.iter().copied()).output().unwrap())
    };
    let ran = init(&key, &["init"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("ANTHROPIC_API_KEY, the key of anthropic") && !ran.stdout.contains("4711"),
        "{ran:?}"
    );
    assert!(
        ran.stdout.contains("git") && ran.stdout.contains("the repository") && ran.stdout.contains("Next:")
    );
    assert!(!ran.stdout.contains("bailey secrets set"), "what is there is not asked for: {ran:?}");
    assert_eq!(stage.ran(&["config", "check"]).code, Some(0));
    let config = stage.home().join("config.toml");
    // Every setting that the commented file names is one.
    let text = fs::read_to_string(&config).unwrap();
    let uncommented = text.lines().map(|line| {
        let setting = line.strip_prefix("# ").filter(|rest| {
            rest.starts_with('[') || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
        });
        setting.unwrap_or(line)
    });
    let all = stage.folder().join("all.toml");
    fs::write(&all, uncommented.collect::<Vec<_>>().join("\n")).unwrap();
    let ran = stage.ran(&["config", "check", &all.display().to_string()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fs::write(&config, "# mine\n").unwrap();
    let lines = init(&[], &["--json", "init"]).lines();
    assert!(lines[..4].iter().all(|line| line["made"] == false), "{lines:?}");
    assert!(lines[4]["next"][0].as_str().unwrap().contains("secrets set"), "{lines:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), "# mine\n");
}

#[test]
fn tools_say_what_they_read_and_write() {
    let stage = Stage::new(&[]);
    let lines = stage.ran(&["--json", "tools", "list"]).lines();
    let touches = |name: &str| {
        let found =
            lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}: {lines:?}"));
        found["touches"].as_str().unwrap().to_owned()
    };
    assert_eq!(touches("fs.read"), "reads PATH; writes nothing");
    assert!(touches("fs.edit").ends_with("writes PATH"), "{}", touches("fs.edit"));
    assert_eq!(touches("fs.patch"), "reads nothing; writes FILE");
    assert!(touches("command.run").contains("anything"));
    let shown = stage.ran(&["--json", "tools", "show", "apply_patch"]).lines();
    assert_eq!(shown[0]["spec"]["name"], "fs.patch");
    assert!(shown[0]["spec"]["schema"]["properties"]["patch"].is_object());
    assert!(stage.ran(&["tools", "show", "nothing"]).stderr.contains("fs.read"));
}

#[test]
fn man_pages_completions_and_the_version_come_from_the_program() {
    let stage = Stage::new(&[]);
    let folder = stage.folder().join("man");
    assert_eq!(stage.ran(&["man", &folder.display().to_string()]).code, Some(0));
    let page = fs::read_to_string(folder.join("bailey-policy-explain.1")).unwrap();
    assert!(page.starts_with(".ie") && page.contains("\\-\\-entry"), "{page}");
    assert!(stage.ran(&["man"]).stdout.contains("Exit codes"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(stage.ran(&["completions", shell]).stdout.contains("doctor"), "{shell}");
    }
    let version = stage.ran(&["--json", "version"]).lines();
    for field in ["version", "commit", "target", "profile", "rustc"] {
        assert!(version[0][field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {version:?}");
    }
    assert!(version[0]["features"].is_array());
    assert!(!stage.home().exists(), "nothing of this needs a home");
}

/// `bailey completions bash | head -1` panicked; a full disk was silent.
#[test]
fn what_cannot_be_printed_is_told_and_a_reader_that_went_away_is_not() {
    let stage = Stage::new(&[]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let commands: [&[&str]; 8] = [
        &["completions", "bash"],
        &["man"],
        &["version"],
        &["--help"],
        &["--version"],
        &["config", "show"],
        &["--json", "policy", "show"],
        &["tools", "list"],
    ];
    for arguments in commands {
        let full = fs::File::create("/dev/full").unwrap();
        let ran = Ran::of(stage.bailey(arguments).stdout(full).output().unwrap());
        assert!(ran.code == Some(1) && ran.stderr.contains("No space left"), "{arguments:?}: {ran:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = Ran::of(stage.bailey(arguments).stdout(writer).output().unwrap());
        assert!(ran.code == Some(141) && ran.stderr.is_empty(), "{arguments:?}: {ran:?}");
    }
}

/// A48: a journal of a newer Bailey is not touched, and the message says what to do.
#[test]
fn a_newer_database_is_told_and_left_alone() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    assert_eq!(stage.ran(&["sessions", "list"]).code, Some(0), "the control");
    let path = stage.home().join("journal.db");
    let newer = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version = 999'); \
                 c.execute('PRAGMA wal_checkpoint(TRUNCATE)'); c.close()";
    let made = std::process::Command::new("python3").args(["-c", newer]).arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("SKIPPED: no python3 with sqlite3 to make a newer database with");
        return;
    }
    let bytes = fs::read(&path).unwrap();
    for arguments in [&["sessions", "list"][..], &["audit", "verify"], &["run", "--model", "ollama/x", "x"]] {
        let ran = stage.ran(arguments);
        assert!(ran.code == Some(5) && ran.stderr.contains("a newer Bailey wrote it; upgrade"), "{ran:?}");
    }
    let ran = stage.ran(&["doctor"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("schema version 999"), "{ran:?}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was written");
}

/// It said that the provider was wrong, and what to change there.
#[test]
fn a_doctor_of_a_home_that_is_stopped_says_what_releases_it() {
    let stage = Stage::new(&[]);
    let _model = stage.model(Vec::new());
    let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
    fs::write(stage.home().join("config.toml"), format!("model = \"test/model\"\n{config}")).unwrap();
    let found = || {
        let found = stage.ran(&["--json", "doctor"]).lines();
        let of = |check: &str| found.iter().find(|it| it["check"] == check).cloned();
        (of("stop"), of("provider"))
    };
    let (stop, provider) = found();
    assert!(stop.is_none() && provider.is_some(), "the control: {provider:?}");
    assert_eq!(stage.ran(&["estop"]).code, Some(0));
    let (stop, provider) = found();
    let stop = stop.unwrap();
    assert!(stop["grade"] == "fail" && stop["fix"].as_str().unwrap().contains("estop --release"), "{stop}");
    assert!(provider.is_none(), "{provider:?}");
}

#[test]
fn a_profile_of_system_calls_is_chosen_by_name_from_a_file_and_in_the_configuration() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let python = "import socket; socket.socket(); socket.socket(16, 3); print('both')";
    let net = ["sandbox", "run", "--profile", "standard-net", "--", "/usr/bin/python3", "-S", "-c", python];
    let with = |name: &'static str| {
        let mut arguments = net.to_vec();
        arguments[3] = name;
        stage.ran(&arguments)
    };
    assert_eq!(with("standard-net").stdout, "both\n", "{:?}", with("standard-net"));
    for name in ["standard", "advanced", "strict", "basic"] {
        let ran = with(name);
        assert!(ran.code == Some(1) && ran.stderr.contains("Operation not permitted"), "{name}: {ran:?}");
    }
    let ran = with("nonsense");
    assert!(ran.code == Some(2) && ran.stderr.contains("no profile `nonsense`: strict (basic)"), "{ran:?}");
    assert_eq!(with("../config").code, Some(2));

    let write = |text: &str| {
        fs::create_dir_all(stage.home().join("profiles")).unwrap();
        fs::write(stage.home().join("profiles/mine.toml"), text).unwrap();
    };
    write("base = \"standard-net\"\ndeny = [\"mkdirat\", \"mkdir\"]\n");
    assert_eq!(with("mine").stdout, "both\n");
    fs::write(stage.home().join("config.toml"), "[sandbox]\nprofile = \"mine\"\n").unwrap();
    let ran = stage.ran(&["sandbox", "run", "--", "mkdir", "made"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("Operation not permitted"), "{ran:?}");
    assert_eq!(stage.ran(&["sandbox", "run", "--profile", "standard", "--", "mkdir", "made"]).code, Some(0));
    let ran = stage.ran(&["--json", "sandbox", "run", "--", "true"]);
    let enforced = &ran.lines()[0]["enforced"];
    assert_eq!((&enforced["profile"], &enforced["custom"]), (&"custom".into(), &"mine".into()), "{ran:?}");
    let ran = stage.ran(&["sandbox", "doctor"]);
    assert!(ran.stdout.contains("profile mine (your own)"), "{ran:?}");

    for (text, place, says) in [
        (
            "base = \"standard\"\nallow = [\n  \"io_setup\",\n  \"mount\",\n]\n",
            "mine.toml:4",
            "`mount` is in no profile",
        ),
        (
            "base = \"strict\"\nallow = [\"sokcet\"]\n",
            "mine.toml:2",
            "no system call `sokcet` here: `socket` is one",
        ),
        ("base = \"strict\"\nalow = []\n", "mine.toml:2", "unknown field `alow`"),
        ("base = \"none\"\n", "mine.toml:1", "`none` is no profile to begin with"),
        ("allow = []\n", "mine.toml", "base"),
    ] {
        write(text);
        let ran = stage.ran(&["sandbox", "run", "--", "true"]);
        assert!(
            ran.code == Some(2) && ran.stderr.contains(place) && ran.stderr.contains(says),
            "{text}: {ran:?}"
        );
    }
    fs::write(stage.home().join("config.toml"), "\n[sandbox]\nprofile = \"gone\"\n").unwrap();
    let ran = stage.ran(&["sandbox", "run", "--", "true"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("config.toml:3"), "{ran:?}");

    // One of a named one's name is not passed over without a word, also where nothing names it: `standard` is
    // the default.
    fs::remove_file(stage.home().join("config.toml")).unwrap();
    fs::write(stage.home().join("profiles/standard.toml"), "base = \"strict\"\n").unwrap();
    let ran = stage.ran(&["sandbox", "run", "--", "true"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("such as `my-standard.toml`"), "{ran:?}");
    assert_eq!(stage.ran(&["sandbox", "run", "--profile", "strict", "--", "true"]).code, Some(2));
    fs::rename(stage.home().join("profiles/standard.toml"), stage.home().join("profiles/my-standard.toml"))
        .unwrap();
    assert_eq!(stage.ran(&["sandbox", "run", "--profile", "my-standard", "--", "true"]).code, Some(0));
}
