use crate::world::{act, call, claims, done, plan, refusal, toolbox, with_status};
use bailey_kernel::{Claims, Output, Plan, Redactor};
use bailey_protocol::{Report, Status, ToolSpec};
use serde_json::{Value, json};

/// Every name by which designs call a tool.
const NAMES: [(&str, &[&str]); 18] = [
    ("fs.read", &["read_file", "fs_read", "FS.Read", " fs.read ", "Read", "view"]),
    ("fs.write", &["write_file", "fs_write", "Write", "write_to_file", "create_file"]),
    ("fs.edit", &["edit_file", "str_replace", "Edit", "replace"]),
    ("fs.patch", &["apply_patch"]),
    ("fs.list", &["list_dir", "list_files", "LS", "list_directory"]),
    ("fs.exists", &["file_exists", "file.exists"]),
    ("search.grep", &["grep", "search_files", "search_grep", "Grep", "search_file_content"]),
    ("search.glob", &["glob", "find_files", "Glob", "file_search"]),
    (
        "command.run",
        &["run_command", "execute_command", "shell", "bash", "Bash", "run_shell_command", "container.exec"],
    ),
    ("git.run", &["git"]),
    ("test.run", &["run_tests"]),
    ("web.fetch", &["web_fetch", "fetch", "WebFetch"]),
    ("web.request", &["web_request", "http_request"]),
    ("process.log", &["process_log"]),
    ("process.stop", &["Process.Stop"]),
    ("message.send", &["send_message", "Message.Send"]),
    ("agent.run", &["task", "Task"]),
    ("agent.adapt", &["agent_adapt"]),
];

#[test]
fn every_name_finds_its_tool() {
    let toolbox = toolbox();
    for (name, aliases) in NAMES {
        for alias in aliases.iter().chain([&name]) {
            let found = toolbox.find(alias).map(|tool| tool.spec().name);
            assert_eq!(found.as_deref(), Some(name), "{alias}");
        }
    }
    for unknown in [
        "",
        ".",
        "fs",
        "fs..read",
        "read-file",
        "browser",
        "functions",
        "functions.",
        "<|x|>",
        ":0",
        "my.fs.read",
    ] {
        assert!(toolbox.find(unknown).is_none(), "{unknown}");
    }
}

/// Marks that templates of models leave on a name.
#[test]
fn a_decorated_name_finds_its_tool() {
    let toolbox = toolbox();
    for (name, aliases) in NAMES {
        for plain in aliases.iter().map(|alias| alias.trim()).chain([name]) {
            for written in [
                format!("functions.{plain}"),
                format!("functions_{plain}"),
                format!("default_api.{plain}"),
                format!("default_api:{plain}"),
                format!("Functions.default_api:{plain}"),
                format!("{plain}<|channel|>commentary"),
                format!("{plain}:0"),
                format!("functions.{plain}:12"),
                format!("{plain}</name>"),
                format!("\"{plain}\""),
                format!("{plain}\n"),
            ] {
                let found = toolbox.find(&written).map(|tool| tool.spec().name);
                assert_eq!(found.as_deref(), Some(name), "{written:?}");
            }
        }
    }
}

/// For every name and every form of arguments that a model uses, the action is
/// the one that the gate decides and shows.
#[test]
fn one_call_has_one_action() {
    let plain = act("command.run", json!({"command": "ls -l", "timeout_s": 30}), &[]);
    for (name, arguments) in [
        ("Bash", json!({"cmd": "ls -l", "timeout_s": "30"})),
        ("functions.execute_command", json!({"command": "ls -l", "argv": [], "timeout_s": 30.0})),
        ("shell<|channel|>json", json!({"command": "ls -l", "argv": null, "cwd": "", "timeout_seconds": 30})),
    ] {
        assert_eq!(act(name, arguments.clone(), &[]), plain, "{name} {arguments}");
        assert_eq!(claims(name, arguments.clone()), claims("command.run", json!({"command": "x"})), "{name}");
    }
    // The control: another command is another action.
    assert_ne!(act("Bash", json!({"cmd": "ls"}), &[]), plain);
}

#[test]
fn no_name_means_two_tools() {
    let mut names = std::collections::BTreeMap::new();
    for spec in toolbox().specs() {
        for name in spec.aliases.iter().chain([&spec.name]) {
            let plain = ToolSpec::plain_name(name);
            assert_eq!(names.insert(plain, spec.name.clone()), None, "{name}");
        }
    }
}

#[test]
fn the_tool_context_stays_under_3000_tokens() {
    let bytes: usize = toolbox()
        .specs()
        .iter()
        .map(|spec| {
            spec.name.len() + spec.summary.len() + spec.description.len() + spec.schema.to_string().len()
        })
        .sum();
    assert!(bytes / 4 < 3_000, "{} tokens", bytes / 4);
    // The control: the sum sees more than the names.
    assert!(bytes / 4 > 500, "{} tokens", bytes / 4);
}

#[test]
fn what_is_unavailable_is_said_with_what_is_available() {
    let answer = |name: &str| -> Value { serde_json::from_str(&toolbox().unavailable(name)).unwrap() };
    let web = answer("browser");
    assert_eq!(web["unavailable"], "browser");
    assert_eq!(web["why"], "this session has no tool of that name");
    let available: Vec<_> =
        web["available"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(available, NAMES.map(|(name, _)| name.replace('.', "_")));
    assert_eq!(web["did_you_mean"], Value::Null);
    for (name, meant) in [("fs.raed", "fs_read"), ("comand_run", "command_run"), ("apply_ptach", "fs_patch")]
    {
        assert_eq!(answer(name)["did_you_mean"], meant);
    }
    assert!(toolbox().unavailable(&"x\"\u{7}".repeat(100_000)).len() < 2_000);
}

#[test]
fn bad_arguments_are_refused_and_claim_everything() {
    let everything = Claims { everything: true, ..Claims::default() };
    for spec in toolbox().specs() {
        for arguments in ["null", "{", "[1]", "\"text\"", &"[".repeat(100_000)] {
            let tool = toolbox().find(&spec.name).unwrap().clone();
            let call = call(&spec.name, arguments);
            assert!(matches!(tool.plan(&call, &[]), Plan::Refuse(_)), "{}: {arguments:.20}", spec.name);
            assert_eq!(tool.claims(&call), everything, "{}", spec.name);
        }
    }
}

#[test]
fn a_path_with_nul_is_refused_everywhere() {
    for (name, arguments) in [
        ("fs.read", json!({"path": "a\0b"})),
        ("fs.write", json!({"path": "a\0b", "content": ""})),
        ("fs.edit", json!({"path": "a\0b", "old": "a", "new": "b"})),
        ("fs.patch", json!({"patch": "--- a/a\0b\n+++ b/a\0b\n@@ -1 +1 @@\n-a\n+b\n"})),
        ("fs.list", json!({"path": "a\0b"})),
        ("fs.exists", json!({"path": "a\0b"})),
        ("search.grep", json!({"pattern": "x", "path": "a\0b"})),
        ("search.glob", json!({"pattern": "x", "path": "a\0b"})),
        ("command.run", json!({"command": "x", "cwd": "a\0b"})),
        ("command.run", json!({"command": "x", "writes": ["a\0b"]})),
        ("git.run", json!({"args": [], "cwd": "a\0b"})),
    ] {
        assert!(refusal(name, arguments.clone(), &[]).contains("NUL"), "{name}");
        // The control: the same arguments without the NUL are planned.
        let clean = serde_json::from_str(&arguments.to_string().replace("\\u0000", "")).unwrap();
        assert!(!matches!(plan(name, clean, &[]), Plan::Refuse(_)), "{name}");
    }
}

#[test]
fn claims_follow_the_paths() {
    let reads = |path: &str| Claims { reads: vec![path.into()], ..Claims::default() };
    let writes = |path: &str| Claims { writes: vec![path.into()], ..Claims::default() };
    let everything = || Claims { everything: true, ..Claims::default() };
    for (name, arguments, expected) in [
        ("fs.read", json!({"path": "a"}), reads("a")),
        ("fs.exists", json!({"path": "a"}), reads("a")),
        ("fs.list", json!({}), reads("/w")),
        ("fs.list", json!({"path": "src"}), reads("src")),
        ("search.grep", json!({"pattern": "x"}), reads("/w")),
        ("search.glob", json!({"pattern": "x", "path": "src"}), reads("src")),
        ("fs.write", json!({"path": "a", "content": ""}), Claims { whole: true, ..writes("a") }),
        ("fs.edit", json!({"path": "a", "old": "x", "new": "y"}), writes("a")),
        ("fs.patch", json!({"patch": "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"}), writes("new")),
        ("fs.patch", json!({"patch": "nonsense"}), everything()),
        ("command.run", json!({"command": "make"}), everything()),
        ("command.run", json!({"command": "make", "reads": ["src"]}), everything()),
        ("command.run", json!({"command": "wc -l *", "writes": []}), reads("/w")),
        (
            "command.run",
            json!({"command": "cp a b", "reads": ["a"], "writes": ["b"]}),
            Claims { reads: vec!["a".into()], writes: vec!["b".into()], ..Claims::default() },
        ),
        ("git.run", json!({"args": ["status", "--short"]}), reads("/w")),
        ("git.run", json!({"args": ["log", "--oneline", "-3"]}), reads("/w")),
        ("git.run", json!({"args": ["diff", "--output=x"]}), everything()),
        ("git.run", json!({"args": ["diff", "--ext-diff"]}), everything()),
        ("git.run", json!({"args": ["-c", "a=b", "status"]}), everything()),
        ("git.run", json!({"args": ["commit", "-m", "x"]}), everything()),
        ("test.run", json!({}), everything()),
        ("process.log", json!({"process": 1}), everything()),
        ("process.stop", json!({"process": 1}), everything()),
    ] {
        assert_eq!(claims(name, arguments.clone()), expected, "{name} {arguments}");
    }
    let moved = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch";
    assert_eq!(claims("fs.patch", json!({"patch": moved})).writes, vec!["a".into(), "b".into()]);
}

#[test]
fn what_did_not_happen_is_no_success() {
    let seen: &[Output] = &[];
    let cases = [
        (Output::failed("`a` is masked"), "not done: `a` is masked"),
        (
            with_status(Status::Unknown, Report::Nothing),
            "not done: nobody saw how it ended; it may have happened",
        ),
        (with_status(Status::Cancelled, Report::Nothing), "not done: it was cancelled"),
        (
            done(Report::Nothing),
            "not done: the executor's report does not answer this call; the effect itself may have happened",
        ),
    ];
    for (name, arguments) in [
        ("fs.read", json!({"path": "a"})),
        ("fs.write", json!({"path": "a", "content": ""})),
        ("fs.list", json!({})),
        ("fs.exists", json!({"path": "a"})),
        ("search.grep", json!({"pattern": "x"})),
        ("search.glob", json!({"pattern": "x"})),
        ("command.run", json!({"command": "x"})),
        ("git.run", json!({"args": ["status"]})),
    ] {
        for (output, expected) in &cases {
            let tool = toolbox().find(name).unwrap().clone();
            let conclusion =
                tool.conclude(&call(name, arguments.clone()), seen, output, &Redactor::default());
            assert_eq!((conclusion.ok, conclusion.text.as_str()), (false, *expected), "{name}");
        }
    }
}
