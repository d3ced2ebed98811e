//! What goes on working inside the walls: compilers, interpreters, git, and every tool by each of its names.

use super::actor::{Actor, CANARY, SECRETS, Who};
use bailey_testkit::Reply;
use serde_json::{Value, json};

const CARGO: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    ("src/main.rs", "fn main() { println!(\"built\") }\n#[test]\nfn two() { assert_eq!(1 + 1, 2) }\n"),
    ("a.c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n"),
    (".gitignore", "/target\n/Cargo.lock\n"),
];

attack!(compilers_and_interpreters_work);
fn compilers_and_interpreters_work(who: Who) {
    let actor = Actor::new(who, CARGO);
    let work = [
        (
            "python3",
            "python3 -c 'import ssl, sqlite3, subprocess, threading, multiprocessing as m; m.Pool(2).map(abs, [1]); print(42)'",
            "42\n",
        ),
        (
            "node",
            "node -e 'require(\"child_process\").execSync(\"true\"); setTimeout(() => console.log(42), 1)'",
            "42\n",
        ),
        ("cc", "cc -O1 -o a a.c && ./a", "compiled\n"),
        (
            "git",
            "git checkout -q -b x && echo b > b && git add b && git -c user.name=x -c user.email=x@example.invalid commit -qm b && git log -1 --format=%s",
            "b\n",
        ),
        ("cargo", "cargo run --quiet --offline && cargo test --quiet --offline >/dev/null", "built\n"),
        ("make", "printf 'all: b\\nb:\\n\\t@echo made\\n' > Makefile; make -s", "made\n"),
    ];
    for (program, script, expected) in work {
        let probe = format!("{program} --version");
        if actor.outside(&["sh", "-c", &probe]).code != Some(0) {
            println!("SKIPPED: {program} is not here");
            continue;
        }
        let ran = actor.sh(script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{program}: {ran:?}");
    }
}

attack!(a_command_by_itself_leaves_no_session);
fn a_command_by_itself_leaves_no_session(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let sessions = || std::fs::read_dir(actor.stage.home().join("sessions")).unwrap().count();
    let ran = actor.sh("mkdir -p ~/d/e /tmp/d f && echo x > ~/d/e/x && chmod 000 ~/d/e /tmp/d f && rm a.txt");
    assert_eq!((ran.code, ran.stderr.as_str(), sessions()), (Some(0), "", 0), "{ran:?}");
    // The control: a session that is kept is there.
    actor.bailey(&["sandbox", "run", "--keep", "--", "true"]);
    assert_eq!(sessions(), 1);
}

attack!(toolchains_are_bound_by_parts_and_read_only);
fn toolchains_are_bound_by_parts_and_read_only(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    // Of a tool's directory only the listed parts are there; the tokens beside them are not.
    let ran = actor
        .sh("cat ~/.nvm/versions/node/v1/bin/tool; ls -A ~/.cargo ~/.nvm; cat ~/.cargo/credentials.toml ~/.nvm/.npmrc");
    assert!(ran.stdout.contains("a tool") && !ran.stdout.contains(CANARY), "{ran:?}");
    assert!(!ran.stdout.contains("credentials.toml") && !ran.stdout.contains(".npmrc"), "{ran:?}");
    let tokens: Vec<&str> = SECRETS
        .iter()
        .copied()
        .filter(|name| name.starts_with(".cargo") || name.starts_with(".nvm"))
        .collect();
    for token in &tokens {
        assert!(
            actor.outside(&["sh", "-c", &format!("cat ~/{token}")]).stdout.contains(CANARY),
            "the control"
        );
    }
    let write = "for f in ~/.nvm/versions/node/v1/bin/tool ~/.nvm/versions/node/v1/bin/new ~/.cargo/bin/new ~/.rustup/toolchains/new; do
                 if { echo x > $f; } 2>/dev/null; then echo wrote $f; fi; done; rm -f ~/.nvm/versions/node/v1/bin/tool 2>/dev/null; cat ~/.nvm/versions/node/v1/bin/tool";
    let ran = actor.sh(write);
    assert_eq!(ran.stdout, "a tool\n", "{ran:?}");
    // The control: outside the user's own tool can be written.
    let ran = actor.outside(&["sh", "-c", "echo x > ~/.nvm/versions/node/v1/bin/new && echo wrote"]);
    assert_eq!(ran.stdout, "wrote\n", "{ran:?}");
}

/// Every tool: its names, the first one canonical, what it is asked, and what its result says.
fn tools() -> Vec<(Vec<&'static str>, Value, &'static str)> {
    vec![
        (vec!["fs.read", "fs_read", "read_file"], json!({ "path": "a.txt" }), "a needle"),
        (vec!["fs.write", "fs_write", "write_file"], json!({ "path": "NEW", "content": "x\n" }), "NEW"),
        (
            vec!["fs.edit", "fs_edit", "edit_file", "str_replace"],
            json!({ "path": "b.txt", "old": "OLD", "new": "NEXT" }),
            "b.txt",
        ),
        (
            vec!["fs.patch", "fs_patch", "apply_patch"],
            json!({ "patch": "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-OLD\n+NEXT\n" }),
            "c.txt",
        ),
        (vec!["fs.list", "fs_list", "list_dir", "list_files"], json!({ "path": "." }), "a.txt"),
        (vec!["fs.exists", "fs_exists", "file_exists"], json!({ "path": "a.txt" }), "a.txt"),
        (vec!["search.grep", "search_grep", "grep", "search_files"], json!({ "pattern": "needle" }), "a.txt"),
        (vec!["search.glob", "search_glob", "glob", "find_files"], json!({ "pattern": "*.txt" }), "a.txt"),
        (
            vec!["command.run", "command_run", "run_command", "execute_command", "shell", "bash"],
            json!({ "command": "echo ran-$((40+2))" }),
            "ran-42",
        ),
        (vec!["git.run", "git_run", "git"], json!({ "args": ["log", "--format=%s"] }), "start"),
        (vec!["test.run", "test_run", "run_tests"], json!({}), "tested"),
    ]
}

attack!(tl1_every_tool_answers_to_every_name);
fn tl1_every_tool_answers_to_every_name(who: Who) {
    let makefile = ("Makefile", "test:\n\t@echo tested\n");
    let actor = Actor::new(who, &[("a.txt", "a needle\n"), ("b.txt", "v0\n"), ("c.txt", "v0\n"), makefile]);
    let mut script = Vec::new();
    let mut expected = Vec::new();
    for (names, arguments, wanted) in tools() {
        for (number, name) in names.iter().enumerate() {
            // Each name's change builds on the last one's.
            let text = arguments.to_string();
            let text =
                text.replace("OLD", &format!("v{number}")).replace("NEXT", &format!("v{}", number + 1));
            let text = text.replace("NEW", &format!("new{number}"));
            let arguments: Value = serde_json::from_str(&text).unwrap();
            script.push(Reply::calls([("c", name, arguments)]));
            expected.push((*name, wanted.replace("NEW", &format!("new{number}"))));
        }
    }
    script.push(Reply::text("done"));
    let (ran, _model) = actor.task(script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results: Vec<Value> = ran.lines().into_iter().filter(|event| event["type"] == "result").collect();
    assert_eq!(results.len(), expected.len());
    for ((name, wanted), result) in expected.iter().zip(&results) {
        assert_eq!(result["ok"], json!(true), "{name}: {result}");
        assert!(result["text"].as_str().unwrap().contains(wanted.as_str()), "{name}: {result}");
    }
    // The control: a name that no tool has is told so.
    let (ran, _model) =
        actor.task(vec![Reply::calls([("c", "fs_steal", json!({}))]), Reply::text("done")], &[]);
    let result = ran.lines().into_iter().find(|event| event["type"] == "result").unwrap();
    assert_eq!(result["ok"], json!(false), "{result}");
}
