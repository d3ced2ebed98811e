//! What the host runs later is Red; ignored outputs and git's own files never leave the layer (A21, A52,
//! A53).

use super::{event, same, sessions, work};
use crate::{stage::Stage, terminal::Terminal, tree::Tree};
use std::{fs, path::Path};

/// A52's list, and the files of A21 that a merge could carry.
const RUN_LATER: &[&str] = &[
    "build.rs",
    "sub/build.rs",
    ".cargo/config.toml",
    "rust-toolchain.toml",
    "conftest.py",
    "setup.py",
    "Makefile",
    "package.json",
    ".npmrc",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    ".tool-versions",
    ".devcontainer/devcontainer.json",
    ".github/workflows/ci.yml",
    ".gitattributes",
    ".gitmodules",
    ".vscode/tasks.json",
    ".claude/settings.json",
    ".cursor/rules",
    "AGENTS.md",
    ".bailey/config.toml",
];

/// Names that together make a directory a repository, or name another.
const MARKS: &[&str] = &["config", "HEAD", "commondir", ".git", "objects", "hooks"];

#[test]
fn what_the_host_runs_later_is_red_and_is_not_applied_unasked() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let before = Tree::of(&stage.project());
    for path in RUN_LATER {
        let session =
            work(&stage, &format!("mkdir -p $(dirname {path}) && echo x > {path} && echo b >> a.txt"));
        let diff = stage.ran(&["--json", "sessions", "diff", &session]);
        let red = event(&diff, "diff")["red"].to_string();
        assert!(red.contains(path), "{path} is not Red: {red}");
        let applied = stage.ran(&["sessions", "apply", &session, "--approve", "never"]);
        assert_eq!(applied.code, Some(3), "{path}: {applied:?}");
        assert!(applied.stderr.contains("not approved"), "{path}: {applied:?}");
    }
    assert_eq!(Tree::of(&stage.project()), before, "nothing of it was written");
    // The control: the same change without such a file needs no human.
    let session = work(&stage, "mkdir sub && echo x > sub/plain.txt && echo b >> a.txt");
    let diff = stage.ran(&["--json", "sessions", "diff", &session]);
    assert_eq!(event(&diff, "diff")["red"].to_string(), "[]");
    assert_eq!(stage.ran(&["sessions", "apply", &session, "--approve", "never"]).code, Some(0));
    assert_eq!(stage.read("sub/plain.txt"), "x\n");
}

/// A card that leaves files out could hide one.
#[test]
fn more_red_files_than_a_card_names_are_refused_until_they_are_taken_in_parts() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let before = Tree::of(&stage.project());
    let session = work(
        &stage,
        "for n in $(seq 101 201); do mkdir -p b/$n a/$n; echo x > b/$n/Makefile; echo x > a/$n/plain; done",
    );
    let applied = stage.ran(&["sessions", "apply", &session]);
    assert_eq!(applied.code, Some(3), "{applied:?}");
    assert!(
        applied.stderr.contains("101 of these files are Red, and a card names 100 at most"),
        "{applied:?}"
    );
    assert_eq!(Tree::of(&stage.project()), before, "nothing of it was written");
    let red = stage.ran(&["sessions", "diff", "--red", &session]).stdout;
    for n in 101..=201 {
        assert!(red.contains(&format!("+++ b/b/{n}/Makefile")), "{n}: {red}");
    }
    assert!(!red.contains("plain"), "{red}");
    let nowhere = stage.ran(&["sessions", "apply", &session, "c"]);
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("has no changes at `c`"), "{nowhere:?}");
    // What is not Red needs nobody, and one less is a card, with each of them on it.
    let plain = stage.ran(&["sessions", "apply", &session, "./a/"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(stage.project().join("a/201/plain").exists() && !stage.project().join("b").exists());
    let one = stage.ran(&["sessions", "apply", "--approve", "never", &session, "b/101"]);
    assert!(one.code == Some(3) && one.stderr.contains("not approved"), "{one:?}");
    let hundred: Vec<String> = (102..=201).map(|n| format!("b/{n}")).collect();
    let mut arguments = vec!["sessions", "apply", &session];
    arguments.extend(hundred.iter().map(String::as_str));
    let Some(mut terminal) = Terminal::start(&stage, &arguments) else { return };
    let short = terminal.wait_for("[n]o or [d]etails: ");
    assert!(short.contains("100 Red files") && short.contains("and 96 more"), "{short}");
    terminal.keys("d\n");
    let card = terminal.wait_for("[n]o or [d]etails: ");
    for n in 102..=201 {
        assert!(card.contains(&format!(": {}/b/{n}/Makefile", stage.project().display())), "{n}: {card}");
    }
    terminal.keys("y\n");
    assert_eq!(terminal.end().0, 0);
    assert!(stage.project().join("b/201/Makefile").exists() && !stage.project().join("b/101").exists());
}

#[test]
fn a_deleted_or_linked_build_script_is_red_too() {
    let stage = Stage::new(&[("build.rs", "fn main() {}\n"), ("a.txt", "a\n"), ("Makefile", "all:\n")]);
    for script in ["rm Makefile", "chmod 755 build.rs", "ln -sf a.txt build.rs", "mv build.rs b.txt"] {
        let session = work(&stage, script);
        let diff = event(&stage.ran(&["--json", "sessions", "diff", &session]), "diff");
        assert_ne!(diff["red"].to_string(), "[]", "{script}");
        let applied = stage.ran(&["sessions", "apply", &session, "--approve", "never"]);
        assert_eq!(applied.code, Some(3), "{script}: {applied:?}");
    }
}

#[test]
fn what_cargo_builds_inside_stays_inside() {
    let stage = Stage::new(&[
        (".gitignore", "/target\n"),
        ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        (
            "Cargo.lock",
            "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n\n[[package]]\nname = \"small\"\nversion = \"0.1.0\"\n",
        ),
        ("src/main.rs", "fn main() { println!(\"built\") }\n"),
    ]);
    let before = Tree::of(&stage.project());
    let ran = stage.ran(&["sandbox", "run", "--keep", "--", "cargo", "run", "--quiet", "--offline"]);
    if ran.stderr.contains("cargo") && ran.stderr.contains("not found") {
        println!("SKIPPED: cargo cannot be seen inside the walls");
        return;
    }
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "built\n"), "{ran:?}");
    let session = super::newest(&stage);
    // The control: the layer really holds the program.
    let program = stage.home().join("sessions").join(&session).join("upper/target/debug/small");
    assert!(program.is_file(), "{}", program.display());
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stderr.contains("has no other changes"), "{diff:?}");
    assert_eq!(sessions(&stage, "apply", &session).code, Some(1));
    assert_eq!(Tree::of(&stage.project()), before);
}

#[test]
fn ignored_outputs_stay_whatever_hides_them_and_however_they_came() {
    let ignores = "node_modules/\n.venv/\n__pycache__/\n*.so\n!kept.so\n";
    let stage = Stage::new(&[(".gitignore", ignores), ("kept.so", "kept\n")]);
    let before = Tree::of(&stage.project());
    let session = work(
        &stage,
        "for d in node_modules/.bin .venv/bin pkg/__pycache__; do mkdir -p $d; echo x > $d/run; done
         echo x > lib.so; echo more >> kept.so; echo plain > plain.txt",
    );
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    let now = Tree::of(&stage.project());
    same(&before, &now, &["kept.so", "plain.txt", "pkg"], super::Scope::Outside);
    assert_eq!((stage.read("kept.so"), stage.read("plain.txt")), ("kept\nmore\n".into(), "plain\n".into()));
    assert!(!now.holds("pkg/__pycache__"), "an ignored directory");
}

#[test]
fn gits_own_files_stay_however_the_repository_is_dressed_up() {
    let evil = "printf '[core]\\n\\tfsmonitor = touch /tmp/owned\\n' > ";
    let scripts = [
        format!("mv .git .old && mkdir .git && {evil} .git/config"),
        format!(
            "{evil} .git/config; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"
        ),
        "mkdir sub && echo 'gitdir: /tmp/elsewhere' > sub/.git".into(),
        "mkdir sub && cd sub && git init -q --bare".into(),
        "mkdir sub && cd sub && git init -q --bare bare.git".into(),
        "mkdir sub && echo ref: refs/heads/main > sub/HEAD && echo ../.git > sub/commondir".into(),
        "mkdir -p .GIT && echo x > .GIT/config".into(),
    ];
    for script in scripts {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let before = Tree::of(&stage.project());
        let session =
            work(&stage, &format!("{script}\n cd {} && echo b >> a.txt", stage.project().display()));
        let applied = stage.ran(&["sessions", "apply", &session, "--approve", "never"]);
        let now = Tree::of(&stage.project());
        let foreign = |path: &&Path| path.starts_with("sub") || path.starts_with(".GIT");
        let new: Vec<&Path> = now.paths().filter(foreign).collect();
        assert!(!new.iter().any(|path| MARKS.iter().any(|mark| path.ends_with(mark))), "{script}: {new:?}");
        let gits: Vec<String> = before.differences(&now, &["a.txt", "sub", ".GIT", ".old"], true);
        assert!(gits.is_empty(), "{script}: {applied:?} {gits:#?}");
        assert_eq!(
            fs::read_to_string(stage.project().join("a.txt")).unwrap(),
            "a\nb\n",
            "{script}: {applied:?}"
        );
    }
}
