//! The demo fails when it should, and for no other reason: another bug, no sandbox, another answer of a tool; and it
//! passes with another locale, other colours, on a terminal, and with a compiler that words things differently.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a panic is how a test fails, a line how it is skipped"
)]

use std::{
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
fn within(namespaces: &[&str], script: &str) -> Option<(bool, String)> {
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
    Some(ran(unshare().args(["sh", "-c", &format!("set -e\n{script}\nexec \"$0\" \"$@\"")]).args(demo)))
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
        within(&["--user", "--map-root-user"], "echo 0 > /proc/sys/user/max_user_namespaces")
    else {
        return;
    };
    assert!(!passed && text.contains("namespace"), "{text}");
    assert!(!text.contains("passed  "), "{text}");
}

#[test]
fn another_answer_of_a_tool_is_noticed() {
    // A git that finds a way out, or says so.
    let script = "git=$(command -v git); real=$(git --exec-path)/git; fake=$(mktemp -p $TMPDIR)
        printf '#!/bin/sh\\n[ \"$1\" != ls-remote ] || { echo found; exit 0; }\\nexec %s \"$@\"\\n' $real > $fake
        chmod 755 $fake; mount --bind $fake $git";
    let Some((passed, text)) = within(&["--mount"], script) else { return };
    assert!(!passed, "{text}");
    assert!(text.contains("differs from the cassette") && text.contains("found"), "{text}");
}

#[test]
fn a_compiler_that_words_things_differently_changes_nothing() {
    let script = "bin=$(dirname $(rustup which rustc)); fake=$(mktemp -p $TMPDIR)
        printf '#!/bin/sh\\necho \"Hinweis: anders gesagt\" >&2\\nexec %s/rust-gdbgui \"$@\"\\n' $bin > $fake
        chmod 755 $fake; mount --bind $bin/rustc $bin/rust-gdbgui; mount --bind $fake $bin/rustc
        rustc --version 2>&1 | grep -q anders";
    if !ran(Command::new("rustup").args(["which", "rustc"])).0 {
        println!("SKIPPED: no rustup, so the compiler is not where this test expects it");
        return;
    }
    let Some((passed, text)) = within(&["--mount"], script) else { return };
    assert!(passed, "{text}");
}
