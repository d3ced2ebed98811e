//! Changes that are applied in part: named, picked on a terminal, cut by a kill.

use super::{newest, sessions, work};
use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
    tree::Tree,
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::fs;

/// Twelve lines, some of which are other ones.
fn lines(others: &[(usize, &str)]) -> String {
    let line = |n: usize| {
        let other = others.iter().find(|(at, _)| *at == n).map(|(_, line)| *line);
        format!("{}\n", other.map_or_else(|| n.to_string(), str::to_owned))
    };
    (1..=12).map(line).collect()
}

/// A project with a file of twelve lines, and a session that changes its first, its third and its last one,
/// and makes another file.
fn stage() -> (Stage, String) {
    let stage = Stage::new(&[("a.txt", &lines(&[])), ("b.txt", "b\n")]);
    let session = work(
        &stage,
        "sed -i -e 's/^1$/one/' -e 's/^3$/three/' -e 's/^12$/twelve/' a.txt; echo new > new.txt; rm b.txt",
    );
    (stage, session)
}

/// What the hunks of a path are named by, all of them together.
fn shown(stage: &Stage, session: &str, path: &str) -> String {
    let all = hunks(stage, session);
    let file = all.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path}: {all:?}"));
    file["shown"].as_str().unwrap().to_owned()
}

fn hunks(stage: &Stage, session: &str) -> Vec<Value> {
    let ran = stage.ran(&["--json", "sessions", "diff", session, "--hunks"]);
    ran.lines().into_iter().filter(|line| line["type"] == "hunks").collect()
}

fn only(stage: &Stage, session: &str, names: &[&str]) -> Ran {
    let names = names.iter().flat_map(|name| ["--only", *name]);
    stage.ran(&["sessions", "apply", session].into_iter().chain(names).collect::<Vec<_>>())
}

#[test]
fn named_hunks_are_applied_the_rest_stays_and_undo_takes_each_apply_back() {
    let (stage, session) = stage();
    let before = Tree::of(&stage.project());
    let diff = stage.ran(&["sessions", "diff", &session, "--hunks"]);
    assert!(
        diff.stdout.contains("--only a.txt:1-2@") && diff.stdout.contains("--only new.txt:1@"),
        "{diff:?}"
    );
    assert_eq!(diff.stdout.matches("@@ ").count(), 4, "{diff:?}");
    let applied = only(
        &stage,
        &session,
        &[
            &format!("a.txt:2@{}", shown(&stage, &session, "a.txt")),
            &format!("new.txt:1@{}", shown(&stage, &session, "new.txt")),
        ],
    );
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(applied.stdout.contains("applied: a.txt, new.txt"), "{applied:?}");
    assert_eq!(stage.read("a.txt"), lines(&[(12, "twelve")]));
    assert!(stage.project().join("b.txt").exists());
    let left = sessions(&stage, "diff", &session).stdout;
    assert!(left.contains("+one") && !left.contains("+twelve") && !left.contains("new.txt"), "{left}");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(stage.read("a.txt"), lines(&[(1, "one"), (3, "three"), (12, "twelve")]));
    assert_eq!(sessions(&stage, "undo", &session).code, Some(0));
    assert_eq!(stage.read("a.txt"), lines(&[(12, "twelve")]));
    assert_eq!(sessions(&stage, "undo", &session).code, Some(0));
    super::same(&before, &Tree::of(&stage.project()), &["a.txt", "b.txt"], super::Scope::Everywhere);
}

/// What was shown is what is applied, whoever writes to the project or to the layer in between. The control:
/// as it was shown, the same name is obeyed.
#[test]
fn a_named_hunk_of_a_file_that_changed_since_is_refused() {
    let (stage, session) = stage();
    let name = format!("a.txt:2@{}", shown(&stage, &session, "a.txt"));
    let layer = stage.home().join("sessions").join(&session).join("upper/a.txt");
    let work = fs::read_to_string(&layer).unwrap();
    for (file, text) in [
        (&layer, work.replace("twelve", "evil")),
        (&stage.project().join("a.txt"), format!("{}mine\n", lines(&[]))),
    ] {
        let old = fs::read_to_string(file).unwrap();
        fs::write(file, text).unwrap();
        let before = Tree::of(&stage.project());
        let refused = only(&stage, &session, &[&name]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("is not what was shown"), "{refused:?}");
        assert_eq!(Tree::of(&stage.project()), before);
        fs::write(file, old).unwrap();
    }
    let applied = only(&stage, &session, &[&name]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(stage.read("a.txt"), lines(&[(12, "twelve")]));
}

#[test]
fn what_names_no_hunk_changes_nothing() {
    let (stage, session) = stage();
    let before = Tree::of(&stage.project());
    let shown = shown(&stage, &session, "a.txt");
    for (names, why) in [
        (vec!["a.txt".to_owned()], "names no hunks"),
        (vec![format!("a.txt:0@{shown}")], "names no hunks"),
        (vec![format!("a.txt:3@{shown}")], "none numbered 3"),
        (vec![format!("c.txt:1@{shown}")], "nothing to be applied at `c.txt`"),
        (vec![format!("a.txt:1@{}", &shown[..31])], "is not what was shown"),
        (vec![format!("a.txt:1@{shown}"), format!("a.txt:2@{shown}")], "named twice"),
    ] {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ran = only(&stage, &session, &names);
        assert_eq!(ran.code, Some(1), "{names:?} {ran:?}");
        assert!(ran.stderr.contains(why), "{names:?} {ran:?}");
    }
    let ran = stage.ran(&["sessions", "apply", &session, "--hunks"]);
    assert!(ran.code == Some(1) || ran.stderr.contains("there is no terminal here"), "{ran:?}");
    assert_eq!(Tree::of(&stage.project()), before);
}

/// The keys of `git add -p`, each at the hunk for which it is typed.
#[test]
fn hunks_are_picked_on_a_terminal() {
    // Asked are: the two hunks of a.txt, the deletion of b.txt, and new.txt.
    for (keys, text, is_there, is_new) in [
        ("n y y y", lines(&[(12, "twelve")]), false, true),
        ("? y n n n", lines(&[(1, "one"), (3, "three")]), true, false),
        ("s n y y n y", lines(&[(3, "three"), (12, "twelve")]), true, true),
        ("a d y", lines(&[(1, "one"), (3, "three"), (12, "twelve")]), true, true),
        ("d y q", lines(&[]), false, false),
        ("y q", lines(&[(1, "one"), (3, "three")]), true, false),
    ] {
        let (stage, session) = stage();
        let Some(mut terminal) = Terminal::start(&stage, &["sessions", "apply", &session, "--hunks"]) else {
            return;
        };
        for key in keys.split(' ') {
            terminal.wait_for_in_turn(&["Apply this hunk", "] "]);
            terminal.keys(&format!("{key}\r"));
        }
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{keys}: {screen}");
        assert_eq!(stage.read("a.txt"), text, "{keys}: {screen}");
        let project = stage.project();
        assert_eq!(
            (project.join("b.txt").exists(), project.join("new.txt").exists()),
            (is_there, is_new),
            "{keys}"
        );
        assert_eq!(sessions(&stage, "undo", &session).code, Some(0), "{keys}");
        assert_eq!((stage.read("a.txt"), stage.read("b.txt")), (lines(&[]), "b\n".into()), "{keys}");
    }
}

#[test]
fn ctrl_c_between_two_hunks_applies_nothing() {
    let (stage, session) = stage();
    let before = Tree::of(&stage.project());
    let Some(mut terminal) = Terminal::start(&stage, &["sessions", "apply", &session, "--hunks"]) else {
        return;
    };
    terminal.wait_for("Apply this hunk");
    terminal.keys("y\r");
    terminal.wait_for("Apply this hunk");
    terminal.keys("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert_eq!(Tree::of(&stage.project()), before);
}

#[test]
fn hunks_are_picked_at_the_end_of_a_run() {
    let stage = Stage::new(&[("a.txt", &lines(&[]))]);
    let edit = |old: &str, new: &str| json!({ "path": "a.txt", "old": old, "new": new });
    let calls = [("c1", "fs_edit", edit("1\n2\n", "one\n2\n")), ("c2", "fs_edit", edit("12\n", "twelve\n"))];
    let _model = stage.model(vec![Reply::calls(calls), Reply::text("done")]);
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    terminal.wait_for("Apply these changes? [y/N/pick] ");
    terminal.keys("p\r");
    for key in ["n", "y"] {
        terminal.wait_for_in_turn(&["Apply this hunk", "] "]);
        terminal.keys(&format!("{key}\r"));
    }
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(stage.read("a.txt"), lines(&[(12, "twelve")]), "{screen}");
    let left = sessions(&stage, "diff", &newest(&stage)).stdout;
    assert!(left.contains("+one") && !left.contains("twelve"), "{left}");
}

/// A part is decided like a whole: what is Red is asked about, on a card that shows what was picked and
/// nothing else.
#[test]
fn a_hunk_of_a_red_file_is_asked_about() {
    let stage = Stage::new(&[("Makefile", &lines(&[]))]);
    let session = work(&stage, "sed -i -e 's/^1$/one/' -e 's/^12$/twelve/' Makefile");
    let name = format!("Makefile:2@{}", shown(&stage, &session, "Makefile"));
    let before = Tree::of(&stage.project());
    let ran = stage.ran(&["sessions", "apply", &session, "--only", &name, "--approve", "never"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(Tree::of(&stage.project()), before);
    for (answer, applied) in [("n", lines(&[])), ("y", lines(&[(12, "twelve")]))] {
        let command = ["sessions", "apply", &session, "--only", &name];
        let Some(mut terminal) = Terminal::start(&stage, &command) else { return };
        let card = terminal.wait_for("[n]o or");
        assert!(card.contains("Apply parts of 1 file to the project"), "{card}");
        assert!(
            card.contains("change in part") && card.contains("+twelve") && !card.contains("+one"),
            "{card}"
        );
        terminal.keys(&format!("{answer}\r"));
        terminal.end();
        assert_eq!(stage.read("Makefile"), applied, "{answer}");
    }
}
