//! The demo fails when it should, and for no other reason: another bug, no sandbox, another answer of a tool;
//! and it passes with another locale, other colours, on a terminal, and with a compiler that words things
//! differently.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a panic is how a test fails, a line how it is skipped"
)]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

/// The demo's program and its arguments; none where the product is not built beside it.
fn demo() -> Option<Vec<String>> {
    let xtask = PathBuf::from(env!("CARGO_BIN_EXE_xtask"));
    let bailey = xtask.with_file_name("bailey");
    if !bailey.is_file() {
        println!("SKIPPED: `{}` is not built", bailey.display());
        return None;
    }
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    Some(vec![path(xtask), "demo".into(), "--bailey".into(), path(bailey)])
}

/// Runs a command to its end; whether it succeeded, and all that it said.
fn ran(command: &mut Command) -> (bool, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// The demo below a shell script in namespaces of its own. None where there can be none.
fn within(namespaces: &[&str], script: &str, options: &[&str]) -> Option<(bool, String)> {
    let demo = demo()?;
    let files = tempfile::tempdir().unwrap();
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(namespaces).env("TMPDIR", files.path());
        unshare
    };
    if !ran(unshare().arg("true")).0 {
        println!("SKIPPED: no namespaces {namespaces:?} here to change the demo's world in");
        return None;
    }
    let script = format!("set -e\n{script}\n\"$0\" \"$@\"; code=$?; {LOOK}; exit $code");
    Some(ran(unshare().args(["sh", "-c", &script]).args(demo).args(options)))
}

/// What the journal of a demo that left its files holds of the session, with payloads.
const LOOK: &str = r#"home=$(echo $TMPDIR/bailey-demo-*/home)
    if [ -d "$home" ]; then
        id=$("$3" --home $home --json sessions list | sed 's/.*"id":"\([^"]*\)".*/\1/')
        echo "== the journal"; "$3" --home $home --json sessions show $id
    fi"#;

/// The demo where a script stands in the place of a tool of the toolchain.
fn with_tool(tool: &str, script: &str, options: &[&str]) -> Option<(bool, String)> {
    within(&["--mount"], &stand_in(tool, script)?, options)
}

/// Puts a script in the place of a tool of the toolchain, inside the walls too, whose real file the script
/// finds as `REAL`.
fn stand_in(tool: &str, script: &str) -> Option<String> {
    if !ran(Command::new("rustup").args(["which", tool])).0 {
        println!("SKIPPED: no rustup, so `{tool}` is not where this test expects it");
        return None;
    }
    // The walls show the listed files of a toolchain, so the real one takes the name of one that nobody needs
    // here.
    Some(format!(
        "bin=$(dirname $(rustup which {tool})); fake=$(mktemp -p $TMPDIR); real=$bin/rust-gdbgui
        sed \"s@REAL@$real@\" > $fake <<'END'\n#!/bin/bash\nset -o pipefail\n{script}\nEND
        chmod 755 $fake; mount --bind $bin/{tool} $real; mount --bind $fake $bin/{tool}"
    ))
}

/// The demo of a program that is a script around the real one, which the script finds as `REAL`.
fn around(script: &str) -> Option<(bool, String)> {
    let mut demo = demo()?;
    let bailey = demo.pop().unwrap();
    let (xtask, options) = demo.split_first().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bailey");
    fs::write(&file, format!("#!/bin/bash\n{}\n", script.replace("REAL", &bailey))).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    Some(ran(Command::new(xtask).args(options).arg(file)))
}

#[test]
fn it_passes_in_another_locale_and_with_any_colours() {
    let Some(demo) = demo() else { return };
    for (name, value) in [("NO_COLOR", "1"), ("CARGO_TERM_COLOR", "always")] {
        let mut command = Command::new(&demo[0]);
        command.args(&demo[1..]).env("LC_ALL", "de_DE.UTF-8").env("LANG", "de_DE.UTF-8").env(name, value);
        let (passed, text) = ran(&mut command);
        assert!(passed && text.contains("passed  `cargo test` in the project itself"), "{name}: {text}");
    }
    // The locale reaches the commands, and colours do where cargo is told to make some.
    let script = "[ \"$LANG\" = de_DE.UTF-8 ] || exit 99; export CARGO_TERM_COLOR=always; exec REAL \"$@\"";
    let Some(mount) = stand_in("cargo", script) else { return };
    let mount = format!("{mount}\nexport LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8");
    let Some((passed, text)) = within(&["--mount"], &mount, &["--keep"]) else { return };
    assert!(passed, "{text}");
    let (_, journal) = text.split_once("== the journal").unwrap();
    assert!(journal.contains("[1m") && journal.contains("[0m"), "no colours came: {journal}");
}

#[test]
fn it_passes_on_a_terminal() {
    let Some(demo) = demo() else { return };
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &demo.join(" "), "/dev/null"]).env("SHELL", "/bin/sh");
    let (passed, text) = ran(&mut script);
    assert!(passed && text.contains("passed  `cargo test` in the project itself"), "{text}");
    // On a terminal the files are kept for whoever looks; nobody does here.
    let kept = text.split("Everything lies in ").nth(1).and_then(|rest| rest.split_whitespace().next());
    std::fs::remove_dir_all(kept.unwrap()).unwrap();
}

#[test]
fn another_bug_is_noticed() {
    let Some(demo) = demo() else { return };
    let (passed, text) = ran(Command::new(&demo[0]).args(&demo[1..]).arg("--plant-another-bug"));
    assert!(!passed, "{text}");
    assert!(text.contains("differs from the cassette") && text.contains("+ 1) as f64"), "{text}");
}

#[test]
fn without_a_sandbox_it_fails_and_says_so() {
    // A user namespace in which no other can be made.
    let Some((passed, text)) =
        within(&["--user", "--map-root-user"], "echo 0 > /proc/sys/user/max_user_namespaces", &[])
    else {
        return;
    };
    assert!(!passed && text.contains("namespace"), "{text}");
    assert!(!text.contains("passed  "), "{text}");
}

#[test]
fn what_is_not_in_the_journal_or_not_in_the_project_is_noticed() {
    let is_run = r#"case " $* " in *" run "*) "#;
    // It takes back what was applied, applies nothing, and forgets.
    let took_back = format!(
        "REAL \"$@\"; code=$?; {is_run} while [ \"$1\" != -C ]; do shift; done; git -C \"$2\" checkout -q src;; esac; exit $code"
    );
    let applies_nothing = format!(
        "{is_run} for a; do shift; [ \"$a\" = --apply ] || set -- \"$@\" \"$a\"; done;; esac; exec REAL \"$@\""
    );
    let forgets = r#"case " $* " in *" --json audit log "*) exit 0;; esac; exec REAL "$@""#.to_owned();
    for (script, told) in [
        (took_back, "the crate's tests fail outside of the agent"),
        (applies_nothing, "no finished apply"),
        (forgets, "the journal holds no refusal of read"),
    ] {
        let Some((passed, text)) = around(&script) else { return };
        assert!(!passed && text.contains(told), "{told}: {text}");
        assert!(!text.contains("passed  "), "{told}: {text}");
    }
    // The control: a script around it that changes nothing.
    let Some((passed, text)) = around("exec REAL \"$@\"") else { return };
    assert!(passed, "{text}");
}

#[test]
fn another_answer_of_a_tool_is_noticed() {
    // A git that finds a way out, or says so.
    let script = "git=$(command -v git); real=$(git --exec-path)/git; fake=$(mktemp -p $TMPDIR)
        printf '#!/bin/sh\\n[ \"$1\" != ls-remote ] || { echo found; exit 0; }\\nexec %s \"$@\"\\n' $real > $fake
        chmod 755 $fake; mount --bind $fake $git";
    let Some((passed, text)) = within(&["--mount"], script, &[]) else { return };
    assert!(!passed, "{text}");
    assert!(text.contains("differs from the cassette") && text.contains("found"), "{text}");
}

/// Other words for warnings, errors, notes and helps, and other line art, in the text that cargo shows; and
/// more of it.
const REWORD: &str = r#"{ REAL "$@" 2>&1 >&3 | sed '/"rendered":"/ {
    :a
    s/\("rendered":".*\)variable does not need to be mutable/\1hier \&ndert sich nichts/; ta
    s/\("rendered":".*\)warning/\1Hinweis/; ta
    s/\("rendered":".*\)error/\1Fehler/; ta
    s/\("rendered":".*\)note/\1Bemerkung/; ta
    s/\("rendered":".*\)help/\1Rat/; ta
    s/\("rendered":".*\)-->/\1==>/; ta
    s/\("rendered":".*\)|/\1!/; ta
    s/\("rendered":".*\)\^/\1~/; ta
    s/\("rendered":".*\)\\n"/\1\\n  = und mehr\\n\\n"/
}' >&2; } 3>&1"#;

#[test]
fn a_compiler_that_words_its_diagnostics_differently_changes_nothing() {
    let Some((passed, text)) = with_tool("rustc", REWORD, &["--keep"]) else { return };
    assert!(passed, "{text}");
    // It was this compiler that ran inside the walls, and nothing of the usual words is left.
    let (_, journal) = text.split_once("== the journal").unwrap();
    for word in
        ["Hinweis: hier &ndert sich nichts", " ==> src/lib.rs", "Rat: ", "Bemerkung: ", "~~~", "und mehr"]
    {
        assert!(journal.contains(word), "`{word}` is not in the journal: {journal}");
    }
    for word in ["does not need to be mutable", "--> src/lib.rs", "help: remove", "= note: "] {
        assert!(!journal.contains(word), "`{word}` is in the journal: {journal}");
    }
}

#[test]
fn tools_that_change_what_is_kept_are_noticed() {
    let name = "REAL \"$@\" | sed 's/median_of_an_even/median_of_any/'";
    let verdict = "REAL \"$@\" | sed 's/\\(nothing_has_no_middle \\.\\.\\. \\)ok/\\1FAILED/'";
    let message = "REAL \"$@\" | sed 's/left: Some(3.0)/left: Some(3.5)/'";
    let code = "REAL \"$@\"; code=$?; [ $code != 101 ] || code=102; exit $code";
    let step = "REAL \"$@\" 2>&1 >&3 3>&- | sed 's/Compiling tally v0.1.0/Compiling tally v0.1.9/' >&2";
    let cases = [
        (name.to_owned(), "median_of_any"),
        (verdict.to_owned(), "nothing_has_no_middle ... FAILED"),
        (message.to_owned(), "left: Some(3.5)"),
        (code.to_owned(), "exit code: 102"),
        (format!("{{ {step}; }} 3>&1"), "Compiling tally v0.1.9"),
    ];
    for (script, told) in cases {
        let Some((passed, text)) = with_tool("cargo", &script, &[]) else { return };
        assert!(!passed, "{told}: {text}");
        assert!(text.contains("differs from the cassette") && text.contains(told), "{told}: {text}");
        assert!(!text.contains("passed  "), "{told}: {text}");
    }
    // The control: the same stand-in that changes nothing.
    let Some((passed, text)) = with_tool("cargo", "exec REAL \"$@\"", &[]) else { return };
    assert!(passed, "{text}");
}
