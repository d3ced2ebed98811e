//! The project and a session's layer: what moves between them, when, and back.

mod closed;
mod hunks;
mod ignored;
pub(crate) mod killed;
mod kinds;
mod masks;
mod mounts;
mod red;
mod sides;
mod stale;
mod stuck;

use crate::{
    stage::{Ran, Stage},
    tree::Tree,
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::Path,
    process::Command,
};

/// A project with everything that real ones have: clean, dirty, untracked, ignored, links, modes, odd bytes.
fn messy() -> Stage {
    let stage = Stage::new(&[
        (".gitignore", "/target\n*.log\n"),
        ("clean.txt", "clean\n"),
        ("edited.txt", "one\ntwo\n"),
        ("deleted.txt", "delete me\n"),
        ("from.txt", "a file that moves\n"),
        ("tool.sh", "#!/bin/sh\n"),
        ("old/a.txt", "a\n"),
        ("old/b/c.txt", "c\n"),
        ("becomes-a-directory", "file\n"),
    ]);
    let project = stage.project();
    stage.write("edited.txt", "one\ntwo\ndirty\n");
    stage.write("untracked.txt", "untracked\n");
    stage.write("target/debug/out", "an output of the host's\n");
    stage.write("host.log", "a log of the host's\n");
    fs::write(project.join("picture.bin"), b"\x89PNG\0\xff").unwrap();
    fs::write(project.join(OsStr::from_bytes(b"bad\xffname")), "odd").unwrap();
    fs::create_dir(project.join("hollow")).unwrap();
    symlink("clean.txt", project.join("link")).unwrap();
    symlink("nowhere", project.join("dangling")).unwrap();
    mode(&project.join("untracked.txt"), 0o640);
    stage
}

/// What an agent may do in there.
const WORK: &str = r#"
set -e
echo more >> edited.txt
echo more >> untracked.txt
rm deleted.txt
git mv from.txt to.txt
chmod 750 tool.sh
ln -sfn edited.txt link
ln -s tool.sh new-link
rm dangling
rm -r old
rm becomes-a-directory && mkdir becomes-a-directory && echo inner > becomes-a-directory/inner
mkdir -p empty/inner
rmdir hollow
printf '\000\001\376' > picture.bin
printf '\000new' > new.bin
printf odd > "$(printf 'new\377name')"
echo built > target/debug/out
echo built > target/debug/new
echo line >> host.log
"#;

/// The paths that WORK may change in the project.
const WORKED: &[&str] = &[
    "edited.txt",
    "untracked.txt",
    "deleted.txt",
    "from.txt",
    "to.txt",
    "tool.sh",
    "link",
    "new-link",
    "dangling",
    "old",
    "becomes-a-directory",
    "empty",
    "hollow",
    "picture.bin",
    "new.bin",
];

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a script inside the walls and keeps the session; gives its name.
fn work(stage: &Stage, script: &str) -> String {
    let ran = stage.ran(&["sandbox", "run", "--keep", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    newest(stage)
}

pub(crate) fn newest(stage: &Stage) -> String {
    stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned()
}

fn sessions(stage: &Stage, command: &str, session: &str) -> Ran {
    stage.ran(&["sessions", command, session])
}

/// The one event of this type.
fn event(ran: &Ran, kind: &str) -> Value {
    let events: Vec<Value> = ran.lines().into_iter().filter(|event| event["type"] == kind).collect();
    assert_eq!(events.len(), 1, "{ran:?}");
    events[0].clone()
}

/// Which paths are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All; the named ones may have another time.
    Everywhere,
    /// All but the named ones.
    Outside,
}

fn same(one: &Tree, other: &Tree, named: &[&str], scope: Scope) {
    let differences = one.differences(other, named, scope == Scope::Outside);
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn nothing_reaches_the_project_before_an_apply_and_an_undo_restores_all_of_it() {
    let stage = messy();
    let project = stage.project();
    let before = Tree::of(&project);
    let session = work(&stage, WORK);
    let apart = messy();
    let untouched = Tree::of(&apart.project());
    Command::new("sh").args(["-c", WORK]).current_dir(apart.project()).output().unwrap();
    assert_ne!(
        Tree::of(&apart.project()),
        untouched,
        "the control: the same work without walls changes a project"
    );
    assert_eq!(Tree::of(&project), before, "a command inside changes nothing outside, not even a time");
    let diff = sessions(&stage, "diff", &session);
    assert_eq!(diff.code, Some(0), "{diff:?}");
    assert_eq!(Tree::of(&project), before, "nor does a look at it");
    for path in WORKED.iter().filter(|path| **path != "old" && **path != "empty") {
        assert!(diff.stdout.contains(path), "{path} in {}", diff.stdout);
    }
    assert!(diff.stdout.contains("old mode 100644\n    new mode 100750\n"), "{}", diff.stdout);
    assert!(diff.stdout.contains("is not UTF-8"), "what cannot be applied is named: {}", diff.stdout);
    assert!(!diff.stdout.contains("target/") && !diff.stdout.contains("+++ b/host.log"), "{}", diff.stdout);
    assert!(diff.stdout.contains("because git ignores it: "), "{}", diff.stdout);

    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let after = Tree::of(&project);
    same(&before, &after, WORKED, Scope::Outside);
    assert_eq!(stage.read("edited.txt"), "one\ntwo\ndirty\nmore\n");
    assert_eq!(stage.read("untracked.txt"), "untracked\nmore\n");
    assert_eq!(stage.read("to.txt"), "a file that moves\n");
    assert_eq!(stage.read("becomes-a-directory/inner"), "inner\n");
    assert_eq!(fs::read(project.join("picture.bin")).unwrap(), [0, 1, 0o376]);
    assert_eq!(fs::read_link(project.join("link")).unwrap(), Path::new("edited.txt"));
    assert_eq!(fs::read_link(project.join("new-link")).unwrap(), Path::new("tool.sh"));
    assert_eq!(fs::metadata(project.join("tool.sh")).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(fs::metadata(project.join("untracked.txt")).unwrap().permissions().mode() & 0o7777, 0o640);
    assert!(after.holds("empty/inner"), "an empty directory moves, too");
    for gone in ["deleted.txt", "from.txt", "dangling", "old", "hollow", "target/debug/new"] {
        assert!(!after.holds(gone), "{gone}");
    }

    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    same(&before, &Tree::of(&project), WORKED, Scope::Everywhere);
    let again = sessions(&stage, "undo", &session);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("applied nothing that could be undone"), "{again:?}");
}

#[test]
fn a_discard_throws_the_layer_away_and_nothing_else() {
    let stage = messy();
    let before = Tree::of(&stage.project());
    let session = work(&stage, WORK);
    let discarded = sessions(&stage, "discard", &session);
    assert_eq!(discarded.code, Some(0), "{discarded:?}");
    assert_eq!(Tree::of(&stage.project()), before);
    let diff = sessions(&stage, "diff", &session);
    assert_eq!((diff.code, diff.stdout.as_str()), (Some(0), ""), "{diff:?}");
    assert!(diff.stderr.contains("has no changes"), "{diff:?}");
    let apply = sessions(&stage, "apply", &session);
    assert_eq!(apply.code, Some(1), "{apply:?}");
    assert!(apply.stderr.contains("no changes that can be applied"), "{apply:?}");
    assert_eq!(Tree::of(&stage.project()), before);
}

#[test]
fn a_discard_after_an_apply_of_a_part_says_what_stays_and_how_it_is_taken_back() {
    let stage = Stage::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let session = work(&stage, "echo two >> a.txt; echo two >> b.txt");
    let applied = stage.ran(&["sessions", "apply", &session, "a.txt"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let discarded = sessions(&stage, "discard", &session);
    assert!(discarded.stderr.contains("stay in the project"), "{discarded:?}");
    assert!(!discarded.stderr.contains("is unchanged"), "{discarded:?}");
    assert_eq!((stage.read("a.txt"), stage.read("b.txt")), ("one\ntwo\n".into(), "one\n".into()));
    // What it says to do does what it says; then there is nothing more that stays.
    let undone = sessions(&stage, "undo", &session);
    assert_eq!((undone.code, stage.read("a.txt").as_str()), (Some(0), "one\n"), "{undone:?}");
    let again = sessions(&stage, "discard", &session);
    assert!(again.stderr.contains("the project is unchanged"), "{again:?}");
}

#[test]
fn scripts_are_told_the_same_as_people() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let session = work(&stage, "echo two >> a.txt; echo new > b.txt");
    let json = |command: &str| stage.ran(&["--json", "sessions", command, &session]);
    let diff = event(&json("diff"), "diff");
    assert_eq!(diff["files"], json!(["a.txt", "b.txt"]));
    assert!(diff["diff"].as_str().unwrap().contains("\n+two\n"), "{diff}");
    assert_eq!(diff["red"], json!([]));
    for (command, direction) in [("apply", "apply"), ("undo", "undo")] {
        let merged = event(&json(command), "merged");
        assert_eq!(merged["direction"], direction);
        assert_eq!(merged["files"], json!(["a.txt", "b.txt"]));
        assert_eq!(merged["conflicts"], json!([]));
    }
    let nothing = json("undo");
    assert_eq!(nothing.code, Some(1));
    assert_eq!(event(&nothing, "error")["type"], "error");
}

#[test]
fn a_file_that_the_user_changed_meanwhile_is_named_and_kept_and_stops_no_other() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n"), ("d.txt", "d\n")]);
    let session = work(&stage, "for f in a b c; do echo agent >> $f.txt; done; rm d.txt; echo new > e.txt");
    stage.write("b.txt", "b\nuser\n");
    stage.write("d.txt", "the user still needs it\n");
    stage.write("e.txt", "the user's own\n");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(6), "{applied:?}");
    for kept in ["b.txt", "d.txt", "e.txt"] {
        assert!(applied.stdout.contains(&format!("kept as it is: {kept}: ")), "{applied:?}");
    }
    assert!(applied.stdout.contains("applied: a.txt, c.txt"), "{applied:?}");
    let now = ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"].map(|path| stage.read(path));
    let user = ["b\nuser\n", "the user still needs it\n", "the user's own\n"];
    assert_eq!(now, ["a\nagent\n", user[0], "c\nagent\n", user[1], user[2]]);
    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let now = ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"].map(|path| stage.read(path));
    assert_eq!(now, ["a\n", user[0], "c\n", user[1], user[2]]);
}

/// What is removed for something that does not come stays with it, and a diff promises nothing that an apply
/// keeps.
#[test]
fn a_directory_whose_replacement_stays_keeps_all_that_lies_in_it() {
    let files = &[
        ("out/a", "old\n"),
        ("mine/a", "old\n"),
        ("mine/b", "old\n"),
        ("gone/a", "old\n"),
        ("gone/b", "old\n"),
        ("good/a", "old\n"),
    ];
    let stage = Stage::new(files);
    let session = work(
        &stage,
        "rm -r out mine gone good; ln -s / out; echo now > mine; echo now > good; mkdir src; echo x > src/new",
    );
    for at in ["mine/b", "gone/b", "src"] {
        fs::write(stage.project().join(at), "mine\n").unwrap();
    }
    let diff = sessions(&stage, "diff", &session);
    let told = [
        "mine stays in the session: replaces a directory that holds `mine/b`",
        "mine/a stays in the session: comes or goes with `mine`",
        "out/a stays in the session",
        "gone holds `gone/b`",
        "src/new stays in the session: comes or goes with `src`",
    ];
    for told in told {
        assert!(diff.stdout.contains(told), "{told}: {diff:?}");
    }
    sessions(&stage, "apply", &session);
    let text = |at: &str| fs::read_to_string(stage.project().join(at)).ok();
    for (at, held) in [
        ("out/a", Some("old\n")),
        ("mine/a", Some("old\n")),
        ("mine/b", Some("mine\n")),
        ("gone/b", Some("mine\n")),
        ("src", Some("mine\n")),
        ("gone/a", None),
        ("good", Some("now\n")),
    ] {
        assert_eq!(text(at).as_deref(), held, "{at}");
    }
}

#[test]
fn an_undo_keeps_what_the_user_wrote_after_the_apply() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let session = work(&stage, "echo agent >> a.txt; echo agent >> b.txt");
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    stage.write("b.txt", "b\nagent\nuser\n");
    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(6), "{undone:?}");
    assert!(undone.stdout.contains("kept as it is: b.txt: "), "{undone:?}");
    assert_eq!((stage.read("a.txt"), stage.read("b.txt")), ("a\n".into(), "b\nagent\nuser\n".into()));
    // What was kept can be taken back once it is as the apply left it.
    stage.write("b.txt", "b\nagent\n");
    let undone = sessions(&stage, "undo", &session);
    assert_eq!((undone.code, stage.read("b.txt").as_str()), (Some(0), "b\n"), "{undone:?}");
    let nothing = sessions(&stage, "undo", &session);
    assert!(nothing.stderr.contains("has applied nothing that could be undone"), "{nothing:?}");
}

/// What an undo keeps back is tried once more by the next, and holds up no other.
#[test]
fn what_stays_of_one_apply_does_not_keep_the_one_before_from_being_taken_back() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let session = work(&stage, "echo agent >> a.txt; echo agent >> b.txt");
    for at in ["a.txt", "b.txt"] {
        let applied = stage.ran(&["sessions", "apply", &session, at]);
        assert_eq!(applied.code, Some(0), "{applied:?}");
    }
    stage.write("b.txt", "b\nagent\nuser\n");
    let undone = sessions(&stage, "undo", &session);
    assert_eq!((undone.code, stage.read("a.txt").as_str()), (Some(6), "a\nagent\n"), "{undone:?}");
    let undone = sessions(&stage, "undo", &session);
    assert!(undone.stdout.contains("kept as it is: b.txt: "), "{undone:?}");
    assert_eq!((stage.read("a.txt"), stage.read("b.txt")), ("a\n".into(), "b\nagent\nuser\n".into()));
}

#[test]
fn an_apply_works_after_the_project_has_moved_on() {
    let stage = Stage::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let session = work(
        &stage,
        "echo agent >> a.txt; git add a.txt; git -c user.name=A -c user.email=a@b.c commit -qm inside",
    );
    stage.write("b.txt", "b\nuser\n");
    stage.git(&["commit", "--quiet", "--all", "--message", "outside"]);
    let head = stage.git(&["rev-parse", "HEAD"]);
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(stage.git(&["rev-parse", "HEAD"]), head, "the project's history is its own");
    assert_eq!(stage.git(&["status", "--porcelain"]), " M a.txt\n");
    assert_eq!(sessions(&stage, "undo", &session).code, Some(0));
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
}

#[test]
fn undo_takes_back_the_last_of_two_applies_then_the_first() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let say = |text: &str| {
        let script =
            vec![Reply::calls([("c1", "command_run", json!({ "command": text }))]), Reply::text("done")];
        script
    };
    let (ran, _model) = stage.task(say("echo one >> a.txt; echo one > new.txt"), &["--apply"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = newest(&stage);
    let _model = stage.model(say("echo two >> a.txt; rm new.txt"));
    let options = ["--model", "test/model", "--approve", "never", "--apply", "more"];
    let ran = stage.ran(&[&["--json", "sessions", "resume", &session], options.as_slice()].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(stage.read("a.txt"), "a\none\ntwo\n");
    assert!(!stage.project().join("new.txt").exists());
    assert_eq!(sessions(&stage, "undo", &session).code, Some(0));
    assert_eq!((stage.read("a.txt"), stage.read("new.txt")), ("a\none\n".into(), "one\n".into()));
    assert_eq!(sessions(&stage, "undo", &session).code, Some(0));
    assert_eq!(stage.read("a.txt"), "a\n");
    assert!(!stage.project().join("new.txt").exists());
    // What was undone can be applied again: the layer still holds it.
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    assert_eq!(stage.read("a.txt"), "a\none\ntwo\n");
}

#[test]
fn a_line_feed_in_a_name_draws_no_line_of_its_own() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let forged = "error: your account is locked";
    let session = work(
        &stage,
        &format!("echo b >> a.txt; nl=$(printf 'zz\\n{forged}'); echo x > \"$nl\"; ln -s \"$nl\" l"),
    );
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains(&format!("+++ \"b/zz\\n{forged}\"")), "{diff:?}");
    assert!(diff.stdout.contains(&format!("nothing -> link to \"zz\\n{forged}\"")), "{diff:?}");
    for ran in [&diff, &sessions(&stage, "apply", &session)] {
        assert!(!ran.stdout.lines().chain(ran.stderr.lines()).any(|line| line.trim() == forged), "{ran:?}");
    }
}

#[test]
fn a_name_that_no_merge_may_carry_does_not_hold_up_the_rest() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let session = work(&stage, "echo b >> a.txt; echo x > \"$(printf 'bell\\007')\"; echo c > c.txt");
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains("bell␇ stays in the session: control"), "{diff:?}");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(applied.stdout.contains("applied: a.txt, c.txt"), "{applied:?}");
    assert!(applied.stdout.contains("bell␇ stays in the session: control"), "{applied:?}");
    let left = sessions(&stage, "diff", &session);
    assert!(
        left.stdout.contains("stays in the session: control") && !left.stdout.contains("Red:"),
        "{left:?}"
    );
    assert_eq!((stage.read("a.txt"), stage.read("c.txt")), ("a\nb\n".into(), "c\n".into()));
    assert!(!Tree::of(&stage.project()).holds("bell\u{7}"));
}

/// The model saw a mark in place of a secret, a command wrote it back, and an apply destroyed the secret. The
/// diff showed two lines that looked the same.
#[test]
fn a_mark_takes_the_place_of_no_secret_unasked() {
    let secret = format!("ghp_{}", "R4nd0mLooking9Token8ForTests7xYzAbCd");
    let conf = format!("services:\n  url: \"x\"\n  token: \"{secret}\"\n");
    // A file that is too large to be shown is looked through all the same.
    let large = "x\n".repeat(1 << 20) + &secret + "\n";
    let stage = Stage::new(&[("conf.yaml", &conf), ("large.txt", &large), ("a.txt", "a\n")]);
    let lines = [("conf.yaml", 3), ("large.txt", (1 << 20) + 1)];
    let mark = "sed -i \"s/$(printf 'ghp_')[A-Za-z0-9]*/[redacted:github-token]/\" ";
    for (file, line) in lines {
        let session = work(&stage, &format!("{mark}{file}; echo b >> a.txt"));
        let diff = sessions(&stage, "diff", &session);
        let told = format!("{file} line {line} holds the mark [redacted:github-token] in place of a secret");
        assert!(diff.stdout.replace("\n", " ").contains(&told), "{diff:?}");
        assert!(diff.stdout.contains("Red: ") && diff.stdout.contains("redaction-marks"), "{diff:?}");
        let json = event(&stage.ran(&["--json", "sessions", "diff", &session]), "diff");
        assert_eq!(json["red"], json!([file]), "{json}");
        let before = stage.read(file);
        for arguments in [&["sessions", "apply", &session][..], &["sessions", "apply", "--yes", &session]] {
            let applied = stage.ran(arguments);
            assert_ne!(applied.code, Some(0), "{applied:?}");
            assert_eq!(
                (stage.read(file), stage.read("a.txt")),
                (before.clone(), "a\n".into()),
                "{applied:?}"
            );
        }
        assert_eq!(sessions(&stage, "discard", &session).code, Some(0));
    }
    // The control: the same change without the mark goes through unasked.
    let session = work(&stage, "sed -i 's/\"x\"/\"y\"/' conf.yaml");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(
        (applied.code, stage.read("conf.yaml")),
        (Some(0), conf.replace("\"x\"", "\"y\"")),
        "{applied:?}"
    );
}

/// A run whose command committed ended with "changed nothing", without a word of the commits.
#[test]
fn commits_made_inside_are_mentioned() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let commit =
        "git -c user.name=T -c user.email=t@example.invalid commit --quiet --allow-empty --message inside";
    let script =
        vec![Reply::calls([("c1", "command_run", json!({ "command": commit }))]), Reply::text("done")];
    let _model = stage.model(script);
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "commit"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("1 commit on"), "{ran:?}");
    // The control: who only looks at a repository has changed nothing.
    let session = work(&stage, "git status; git diff --stat");
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stderr.contains("has no changes"), "{diff:?}");
}
