//! The real process is killed in the middle of an apply or an undo, again and again, and run again.

use super::{same, sessions, work};
use crate::{stage::Stage, tree::Tree};
use std::{
    fs,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

const FILES: usize = 200;
/// Kills of one test.
const KILLS: usize = 3;
/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A project of many files and a session that changes, deletes or makes each of them.
fn many() -> (Stage, String) {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    for n in 0..FILES {
        if n % 4 != 3 {
            stage.write(&format!("d{}/f{n}", n % 7), &format!("old {n}\n").repeat(40));
        }
    }
    let session = work(
        &stage,
        &format!(
            "n=0; while [ $n -lt {FILES} ]; do
                f=d$((n % 7))/f$n
                case $((n % 4)) in 0) echo new >> $f;; 1) rm $f;; 2) chmod 755 $f;; 3) mkdir -p d$((n % 7)); echo new > $f;; esac
                n=$((n + 1))
             done"
        ),
    );
    (stage, session)
}

/// Starts a command of the real binary and kills it when this path has left the state it has in `from`; with
/// all its children, or alone.
fn killed(stage: &Stage, command: &[&str], path: &Path, from: &Tree, children: bool) {
    let mut command = stage.bailey(&[&["sessions"], command].concat());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let path = stage.project().join(path);
    let deadline = Instant::now() + PATIENCE;
    while from.is_at(&stage.project(), &path) {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "{command:?} did nothing");
        thread::sleep(Duration::from_micros(200));
    }
    let below = descendants(child.id());
    if children {
        kill_below(child.id());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it left alone ends, too, and may do its last work meanwhile.
    while below.iter().any(|process| lives(*process)) {
        assert!(Instant::now() < deadline, "{command:?} left something behind");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process is there and has not ended; who has to reap it may be slow.
fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// Kills all processes below this one.
pub(crate) fn kill_below(process: u32) {
    descendants(process).into_iter().for_each(kill);
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).ok();
}

/// The processes below this one, the deepest last.
fn descendants(process: u32) -> Vec<u32> {
    let mut found = vec![];
    let mut waiting = vec![process];
    while let Some(parent) = waiting.pop() {
        let children =
            fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let children: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
        found.extend(&children);
        waiting.extend(children);
    }
    found
}

/// Every path of the project is as it was before or as the session wants it, whole, and nothing else is
/// there. Tells whether some are so and some so.
fn each_is_old_or_new(stage: &Stage, old: &Tree, new: &Tree, when: &str) -> bool {
    let now = Tree::of(&stage.project());
    let agrees = |path: &&Path| now.agrees(old, path) || now.agrees(new, path);
    let torn: Vec<&Path> =
        now.paths().chain(old.paths()).filter(|path| !is_in_passing(path) && !agrees(path)).collect();
    assert!(torn.is_empty(), "{when}: {torn:?}");
    let differs = |tree: &Tree| !now.differences(tree, &[""], false).is_empty();
    differs(old) && differs(new)
}

/// A name that the merge itself uses for what is on its way.
fn is_in_passing(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".bailey-merge-"))
}

/// Runs a command to its end and gives the tree that it leaves.
fn whole(stage: &Stage, command: &str, session: &str) -> Tree {
    let ran = sessions(stage, command, session);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Tree::of(&stage.project())
}

#[test]
fn an_apply_or_undo_killed_at_any_moment_and_run_again_is_whole_and_nothing_is_lost() {
    let (stage, session) = many();
    let old = Tree::of(&stage.project());
    let new = whole(&stage, "apply", &session);
    whole(&stage, "undo", &session);
    let changed: Vec<&Path> = old.paths().filter(|path| !old.agrees(&new, path)).collect();
    let mut halfway = 0;
    for step in 0..KILLS {
        let path = changed[step * (changed.len() - 1) / (KILLS - 1)];
        let when = format!("killed at {}", path.display());
        killed(&stage, &["apply", &session], path, &old, step % 2 == 0);
        halfway += usize::from(each_is_old_or_new(&stage, &old, &new, &when));
        only_its_own_merge_ends_it(&stage, &session);
        finish(&stage, &session, &when);
        same(&new, &Tree::of(&stage.project()), &[""], super::Scope::Everywhere);
        killed(&stage, &["undo", &session], path, &new, step % 2 == 1);
        halfway += usize::from(each_is_old_or_new(&stage, &old, &new, &when));
        undo_all(&stage, &session, &old, &when);
    }
    assert!(halfway > KILLS, "only {halfway} of {} kills hit the middle", 2 * KILLS);
}

/// What is on its way in the project would stay there for ever.
fn only_its_own_merge_ends_it(stage: &Stage, session: &str) {
    let on_its_way = Tree::of(&stage.project()).paths().any(is_in_passing);
    let ran = sessions(stage, "diff", session);
    assert!(
        ran.code == Some(0) && (!on_its_way || ran.stderr.contains("apply of this session was interrupted")),
        "{ran:?}"
    );
    if on_its_way {
        let removed = stage.ran(&["sessions", "rm", "--yes", session]);
        for ran in [sessions(stage, "discard", session), removed] {
            assert!(
                ran.code == Some(1) && ran.stderr.contains("`bailey sessions undo` takes it back"),
                "{ran:?}"
            );
        }
    }
}

/// Runs the apply again until it has nothing left to do.
fn finish(stage: &Stage, session: &str, when: &str) {
    let ran = sessions(stage, "apply", session);
    let all_was_done = ran.code == Some(1) && ran.stderr.contains("no changes that can be applied");
    assert!(ran.code == Some(0) || all_was_done, "{when}: {ran:?}");
}

/// Takes everything back that the session ever applied: the killed apply and the one that finished it.
fn undo_all(stage: &Stage, session: &str, old: &Tree, when: &str) {
    loop {
        let ran = sessions(stage, "undo", session);
        if ran.code == Some(1) && ran.stderr.contains("applied nothing") {
            break;
        }
        assert_eq!(ran.code, Some(0), "{when}: {ran:?}");
    }
    let differences = old.differences(&Tree::of(&stage.project()), &[""], false);
    assert!(differences.is_empty(), "{when}: {differences:#?}");
}

/// Files in which a session changes the first line and the last one, and the names of all their last hunks.
fn in_parts() -> (Stage, String, Vec<String>) {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let text = "first\n".to_owned() + &"between\n".repeat(40) + "last\n";
    (0..FILES).for_each(|n| stage.write(&format!("d{}/f{n}", n % 7), &text));
    let session = work(&stage, "sed -i -e 's/^first$/begin/' -e 's/^last$/end/' d*/f*");
    let ran = stage.ran(&["--json", "sessions", "diff", &session, "--hunks"]);
    let hunks = ran.lines().into_iter().filter(|line| line["type"] == "hunks");
    let name = |file: serde_json::Value| {
        let (path, shown) = (file["path"].as_str().unwrap(), file["shown"].as_str().unwrap());
        format!("--only={path}:2@{shown}")
    };
    (stage, session, hunks.map(name).collect())
}

#[test]
fn an_apply_of_hunks_killed_at_any_moment_is_ended_by_the_next_and_each_file_is_whole() {
    let (stage, session, names) = in_parts();
    assert_eq!(names.len(), FILES);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let apply: Vec<&str> = ["apply", session.as_str()].into_iter().chain(names).collect();
    let command: Vec<&str> = ["sessions"].into_iter().chain(apply.iter().copied()).collect();
    let old = Tree::of(&stage.project());
    let ran = stage.ran(&command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let new = Tree::of(&stage.project());
    assert!(stage.read("d0/f0").starts_with("first\n") && stage.read("d0/f0").ends_with("\nend\n"));
    undo_all(&stage, &session, &old, "first");
    let changed: Vec<&Path> = old.paths().filter(|path| !old.agrees(&new, path)).collect();
    let mut halfway = 0;
    for step in 0..KILLS {
        let path = changed[step * (changed.len() - 1) / (KILLS - 1)];
        let when = format!("killed at {}", path.display());
        killed(&stage, &apply, path, &old, step % 2 == 0);
        halfway += usize::from(each_is_old_or_new(&stage, &old, &new, &when));
        // The one that was cut is ended, and what was shown before is no name any more.
        let ran = stage.ran(&command);
        assert!(
            ran.code == Some(0)
                || ran.stderr.contains("is not what was shown")
                || ran.stderr.contains("hunks, and none"),
            "{when}: {ran:?}"
        );
        same(&new, &Tree::of(&stage.project()), &[""], super::Scope::Everywhere);
        undo_all(&stage, &session, &old, &when);
    }
    assert!(halfway > 0, "no kill of {KILLS} hit the middle");
}
