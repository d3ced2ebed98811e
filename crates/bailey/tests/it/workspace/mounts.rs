//! What is mounted within a project: a volume, a file system in memory, a single file bound over another.
//! Sessions are not shown it.

use super::newest;
use crate::{
    stage::{Ran, Stage},
    tree::Tree,
};
use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

/// What is mounted where: a volume on two directories, and a file on another.
const MOUNTS: &str = "mount --bind ../volume m && mount --bind ../volume cache && mount --bind ../volume deep/v && \
    mount --bind ../volume kept/build && mount --bind ../bound f";

/// Changes each of them as the session sees it.
const WORK: &str = "set -e
cat m/under f >> seen; ! test -e m/theirs
echo agent >> m/under; echo new > m/new
rm -r cache; mkdir cache
rm -r deep; echo file > deep
rm -r gone
rm -r kept; mkdir kept
echo agent >> f
echo agent >> plain.txt";

fn stage() -> Stage {
    let stage = Stage::new(&[
        ("m/under", "under\n"),
        ("cache/.keep", ""),
        ("deep/v/under", "under\n"),
        ("deep/beside", "beside\n"),
        ("gone/x", "x\n"),
        ("kept/build/under", "under\n"),
        ("kept/beside", "beside\n"),
        ("f", "f\n"),
        ("plain.txt", "plain\n"),
    ]);
    let volume = stage.folder().join("volume");
    fs::create_dir_all(volume.join("sub")).unwrap();
    for (name, text) in [
        ("theirs", "TOKEN=canary\n"),
        (".env", "TOKEN=canary\n"),
        ("under", "canary\n"),
        ("sub/x", "canary\n"),
    ] {
        fs::write(volume.join(name), text).unwrap();
    }
    fs::write(stage.folder().join("bound"), "canary\n").unwrap();
    stage
}

/// Runs the binary where this is mounted; none, which is said, where nothing can be.
fn beside(stage: &Stage, mounts: &str, arguments: &[&str]) -> Option<Ran> {
    let bailey = stage.bailey(arguments);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        command.arg("--map-root-user");
    }
    let line = format!("{{ {mounts}; }} || exit 98; exec \"$@\"");
    command.args(["sh", "-c", &line, "sh"]).arg(bailey.get_program()).args(bailey.get_args());
    let ran = Ran::of(command.current_dir(stage.project()).output().unwrap());
    if ran.code == Some(98) || ran.stderr.contains("unshare failed") {
        println!("SKIPPED: nothing can be mounted here: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

fn session(stage: &Stage, mounts: &str, work: &str) -> Option<String> {
    let ran = beside(stage, mounts, &["sandbox", "run", "--keep", "--", "sh", "-c", work])?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Some(newest(stage))
}

/// The paths at which two trees differ, but for git's own.
fn differing(one: &Tree, other: &Tree) -> Vec<String> {
    let all: BTreeSet<&Path> = one.paths().chain(other.paths()).collect();
    let differ = |path: &&Path| !path.starts_with(".git") && !one.agrees(other, path);
    all.into_iter().filter(differ).map(|path| path.display().to_string()).collect()
}

/// Where something else is mounted than the session saw, an apply would write over it, or delete it.
#[test]
fn what_is_mounted_in_a_project_is_neither_shown_nor_changed() {
    let stage = stage();
    let (project, volume) = (stage.project(), stage.folder().join("volume"));
    let (before, mounted) = (Tree::of(&project), Tree::of(&volume));
    let Some(session) = session(&stage, MOUNTS, WORK) else { return };
    let run = |command: &str| beside(&stage, MOUNTS, &["sessions", command, &session]).unwrap();
    let is_as_it_was = |but: &[&str]| {
        assert_eq!(differing(&before, &Tree::of(&project)), but);
        assert_eq!(Tree::of(&volume), mounted);
        assert_eq!(fs::read_to_string(stage.folder().join("bound")).unwrap(), "canary\n");
    };
    let diff = run("diff");
    for at in ["m", "cache", "deep/v", "kept/build", "f"] {
        let told =
            format!("{at} stays in the session: is, or lies on, something that is mounted in the project");
        assert!(diff.stdout.contains(&told), "`{told}` in {diff:?}");
    }
    assert!(!diff.stdout.contains("canary") && !diff.stdout.contains("theirs"), "{diff:?}");
    let applied = run("apply");
    assert_eq!(applied.code, Some(0), "{applied:?}");
    is_as_it_was(&["gone", "gone/x", "kept/beside", "plain.txt", "seen"]);
    assert_eq!(stage.read("plain.txt"), "plain\nagent\n");
    assert_eq!(stage.read("seen"), "under\nf\n", "what lies beneath is what the session was shown");
    let undone = run("undo");
    assert_eq!(undone.code, Some(0), "{undone:?}");
    is_as_it_was(&[]);
    let discarded = run("discard");
    assert_eq!(discarded.code, Some(0), "{discarded:?}");
    is_as_it_was(&[]);
}

/// The same work without a mount, which is applied; mounted afterwards, it stays, and so does what an undo
/// would take back there.
#[test]
fn what_is_mounted_after_the_work_is_changed_by_no_apply_and_by_no_undo() {
    let stage = stage();
    let (project, volume) = (stage.project(), stage.folder().join("volume"));
    let mounted = Tree::of(&volume);
    let before = Tree::of(&project);
    let Some(session) = session(&stage, "true", WORK) else { return };
    let run = |mounts: &str, command: &str| beside(&stage, mounts, &["sessions", command, &session]).unwrap();
    let over = MOUNTS;
    let applied = run(over, "apply");
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(Tree::of(&volume), mounted);
    assert_eq!((stage.read("m/under"), stage.read("f")), ("under\n".into(), "f\n".into()));
    let applied = run("true", "apply");
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(
        (stage.read("m/under"), stage.read("f")),
        ("under\nagent\n".into(), "f\nagent\n".into()),
        "the control"
    );
    assert_eq!((stage.read("deep"), project.join("kept/build").exists()), ("file\n".into(), false));
    let undone = run("mount --bind ../volume m && mount --bind ../bound f", "undo");
    assert!(undone.stdout.contains("something is mounted there"), "{undone:?}");
    assert_eq!(Tree::of(&volume), mounted);
    assert_eq!(fs::read_to_string(stage.folder().join("bound")).unwrap(), "canary\n");
    assert_eq!(stage.read("m/under"), "under\nagent\n");
    for _ in 0..2 {
        let undone = run("true", "undo");
        assert_eq!(undone.code, Some(0), "{undone:?}");
    }
    assert_eq!(differing(&before, &Tree::of(&project)), [""; 0]);
}
