//! Days on which the project is in trouble: gone, read-only, somebody else's, with git in a strange shape or
//! none, with names and bytes that are no text.

use super::{RUN, edit, edit_then, in_a_namespace, nothing_is_lost, ran, session, tells};
use crate::stage::{Ran, Stage};
use bailey_testkit::Reply;
use serde_json::json;
use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
};

#[test]
fn a_project_that_goes_in_the_middle_is_told_and_its_changes_are_kept() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (here, there) = (stage.project(), stage.folder().join("elsewhere"));
    let (from, to) = (here.clone(), there.clone());
    let _server = edit_then(&stage, move |_| {
        fs::rename(&from, &to).unwrap();
        Reply::text("done")
    });
    let gone = ["is not there: it was deleted, moved or renamed", "put the directory back", "sessions diff"];
    tells(&stage.ran(&RUN), 1, &gone);
    assert_eq!(ran(&stage, &["audit", "verify"]).code, Some(0));
    let id = session(&stage);
    for arguments in [["sessions", "diff", &id], ["sessions", "apply", &id], ["sessions", "resume", &id]] {
        tells(&ran(&stage, &arguments), 1, &gone);
    }
    assert_eq!(ran(&stage, &["sessions", "show", &id]).code, Some(0), "its story can be read all the same");
    fs::rename(&there, &here).unwrap();
    nothing_is_lost(&stage);

    let stage = Stage::new(&[("a.txt", "one\n")]);
    let here = stage.project();
    let _server = edit_then(&stage, move |_| {
        fs::remove_dir_all(&here).unwrap();
        Reply::text("done")
    });
    tells(&stage.ran(&RUN), 1, &gone);
    // Put back from wherever there is a copy.
    fs::create_dir(stage.project()).unwrap();
    stage.write("a.txt", "one\n");
    nothing_is_lost(&stage);
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let stage = Stage::new(&[("a.txt", "one\n"), ("kept/b.txt", "one\n")]);
    let kept = stage.project().join("kept");
    fs::set_permissions(kept.join("b.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o555)).unwrap();
    let both = Reply::calls([
        ("c0", "fs_edit", json!({ "path": "a.txt", "old": "one", "new": "two" })),
        ("c1", "fs_edit", json!({ "path": "kept/b.txt", "old": "one", "new": "two" })),
    ]);
    let (ended, _server) = stage.task(vec![both, Reply::text("done")], &[]);
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told =
        ended.results().into_iter().any(|text| text.contains("b.txt") && text.contains("permission denied"));
    assert!(told, "{ended:?}");
    nothing_is_lost(&stage);
    assert_eq!(stage.read("kept/b.txt"), "one\n");
}

const READ_ONLY: &str = r#"
mount --bind "$P" "$P" && mount -o remount,ro,bind "$P" && cd "$P" || exit 99
exec "$BAILEY" --home "$H" run --model test/model --approve never --apply 'do it'
"#;

#[test]
fn a_project_on_a_read_only_file_system_keeps_its_changes_in_the_session() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _server = edit_then(&stage, |_| Reply::text("done"));
    let Some(ended) = in_a_namespace(&stage, READ_ONLY) else { return };
    tells(&ended, 6, &["resolve the named conflicts", "bailey sessions apply"]);
    assert!(ended.stdout.contains("a.txt: Read-only file system"), "{ended:?}");
    nothing_is_lost(&stage);
}

#[test]
fn files_of_another_user_are_named_before_the_command_starts() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can give a file away");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let write = ["sandbox", "run", "--", "sh", "-c", "echo begun >&2; echo two >> a.txt && cat a.txt"];
    chown(stage.project().join("a.txt"), Some(54_321), Some(54_321)).unwrap();
    let ended = stage.ran(&write);
    tells(&ended, 2, &["`a.txt` belongs to user 54321, not 0", "sudo chown -R 0 /", "/a.txt"]);
    let place = |words: &str| ended.stderr.find(words);
    assert!(place("chown") < place("\nbegun"), "before it starts: {ended:?}");
    assert_eq!(stage.read("a.txt"), "one\n");
    chown(stage.project().join("a.txt"), Some(0), Some(0)).unwrap();
    let mended = stage.ran(&write);
    assert_eq!(
        (mended.code, mended.stdout.as_str()),
        (Some(0), "one\ntwo\n"),
        "the fix mends it: {mended:?}"
    );
    assert!(!mended.stderr.contains("chown"), "{mended:?}");
    assert_eq!(ran(&stage, &["audit", "verify"]).code, Some(0));
}

#[test]
fn files_of_another_group_are_named_with_what_mends_it() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can give a file to any group");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let write = ["sandbox", "run", "--", "sh", "-c", "echo two >> a.txt && cat a.txt"];
    chown(stage.project().join("a.txt"), None, Some(54_321)).unwrap();
    let ended = stage.ran(&write);
    assert!(ended.code != Some(0) && ended.stderr.contains("`a.txt`: of another group than 0"), "{ended:?}");
    assert!(ended.stderr.replace('\n', " ").contains("chgrp -R 0 /"), "{ended:?}");
    chown(stage.project().join("a.txt"), None, Some(0)).unwrap();
    let mended = stage.ran(&write);
    assert_eq!((mended.code, mended.stdout.as_str()), (Some(0), "one\ntwo\n"), "{mended:?}");
    assert!(!mended.stderr.contains("chgrp"), "{mended:?}");
}

#[test]
fn directories_of_others_stop_nothing_and_show_nothing() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can give a directory away");
        return;
    }
    // As a database in a container leaves its own: one that nobody else enters, one whose files can be opened
    // by name.
    let stage =
        Stage::new(&[("a.txt", "one\n"), ("shut/.env", "K=swordfish\n"), ("open/.env", "K=swordfish\n")]);
    for (path, mode) in [("shut", 0o700), ("open", 0o711)] {
        let path = stage.project().join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(54_321), Some(54_321)).unwrap();
    }
    let look = "cat a.txt; tr a-z A-Z < shut/.env; tr a-z A-Z < open/.env; ls open shut";
    let ended = stage.ran(&["sandbox", "run", "--", "sh", "-c", look]);
    assert!(ended.stdout.starts_with("one\n") && !ended.stdout.contains("SWORDFISH"), "{ended:?}");
    assert!(!ended.stderr.contains("container"), "{ended:?}");
    // The control: the one of the two opens for whoever knows the name.
    let open = stage.project().join("open/.env");
    let anyone = std::process::Command::new("setpriv")
        .args(["--reuid=54322", "--regid=54322", "--clear-groups", "cat"])
        .arg(&open)
        .output()
        .unwrap();
    let is_reachable =
        stage.project().ancestors().all(|above| fs::metadata(above).unwrap().mode() & 0o1 != 0);
    assert_eq!(anyone.stdout.starts_with(b"K=swordfish"), is_reachable, "{anyone:?}");
}

#[test]
fn root_works_in_a_project_of_somebody_else() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can give a file away");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\n")]);
    for path in ["", "a.txt"] {
        chown(stage.project().join(path), Some(54_321), Some(54_321)).unwrap();
    }
    let command = json!({ "command": "cat a.txt && echo new > b.txt" });
    let script = vec![edit(), Reply::calls([("c1", "command_run", command)]), Reply::text("done")];
    let (ended, _server) = stage.task(script, &["--apply"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!((stage.read("a.txt").as_str(), stage.read("b.txt").as_str()), ("two\n", "new\n"), "{ended:?}");
    for path in ["a.txt", "b.txt"] {
        assert_eq!(fs::metadata(stage.project().join(path)).unwrap().uid(), 54_321, "still theirs: {path}");
    }
}

#[test]
fn files_of_another_user_deep_in_the_tree_are_named_before_the_first_command_starts() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can give a file away");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\n"), ("src/deep/b.txt", "one\n"), ("src/theirs/c.txt", "one\n")]);
    let own = |owner: u32| {
        for path in ["src/deep/b.txt", "src/theirs", "src/theirs/c.txt"] {
            chown(stage.project().join(path), Some(owner), Some(owner)).unwrap();
        }
    };
    own(54_321);
    let command = |text: &str| json!({ "command": text });
    let script = || {
        let write = command("echo begun >&2; echo two >> src/deep/b.txt && cat src/deep/b.txt");
        vec![
            Reply::calls([("c0", "command_run", write)]),
            Reply::calls([("c1", "command_run", command("echo second >&2"))]),
            Reply::text("done"),
        ]
    };
    let (ended, _server) = stage.task(script(), &[]);
    let results = ended.results();
    let place = |words: &str| results[0].find(words).unwrap_or_else(|| panic!("no `{words}` in {results:?}"));
    assert!(place("`src/theirs`, `src/deep/b.txt` belong to another user") < place("\nbegun"), "{results:?}");
    let project = stage.project().display().to_string();
    assert!(place(&format!("sudo chown -R --reference={project} {project}/")) < place("\nbegun"));
    assert!(!results[0].contains("c.txt"), "a directory is named for all that it holds: {results:?}");
    assert!(!results[1].contains("chown"), "said once: {results:?}");
    own(0);
    let (mended, _server) = stage.task(script(), &[]);
    let result = &mended.results()[0];
    assert!(result.contains("one\ntwo\n") && !result.contains("chown"), "the fix mends it: {result}");
}

#[test]
fn names_and_bytes_that_are_no_text_harm_nothing() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    fs::write(stage.project().join("data.bin"), [0, 159, 146, 150, 255, 0].repeat(300)).unwrap();
    let strange = r#"printf 'caf\351 \000\377\n'; printf data > "$(printf 'na\377me')"; ls"#;
    let script = vec![
        edit(),
        Reply::calls([
            ("c1", "command_run", json!({ "command": strange })),
            ("c2", "fs_read", json!({ "path": "data.bin" })),
            ("c3", "fs_edit", json!({ "path": "data.bin", "old": "one", "new": "two" })),
        ]),
        Reply::text("done"),
    ];
    let (ended, server) = stage.task(script, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = ended.results().join("\n");
    for words in
        ["caf\u{fffd}", "data.bin is a binary file of 1800 bytes", "it is not UTF-8 text", "use command.run"]
    {
        assert!(told.contains(words), "no `{words}` in {told}");
    }
    assert_eq!(server.requests().len(), 3, "the model could be told");
    let diff = ran(&stage, &["sessions", "diff", &session(&stage)]);
    assert!(diff.stdout.contains("its name is not UTF-8"), "why it stays: {diff:?}");
    nothing_is_lost(&stage);
}

#[test]
fn a_submodule_is_worked_on_and_a_worktree_is_told_what_git_cannot_do() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let other = Stage::new(&[("b.txt", "one\n")]);
    let url = other.project().display().to_string();
    stage.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "part"]);
    stage.git(&["commit", "--quiet", "--message", "a submodule"]);
    let work = || {
        let both = Reply::calls([
            ("c0", "fs_edit", json!({ "path": "part/b.txt", "old": "one", "new": "two" })),
            ("c1", "command_run", json!({ "command": "git submodule status && git -C part log --oneline" })),
        ]);
        vec![both, Reply::text("done")]
    };
    let (ended, _server) = stage.task(work(), &["--apply"]);
    assert_eq!((ended.code, stage.read("part/b.txt").as_str()), (Some(0), "two\n"), "{ended:?}");
    assert!(ended.results()[1].contains("exit code: 0"), "git works inside: {ended:?}");
    assert!(!ended.stderr.contains("worktree"), "{ended:?}");

    let part = ["sandbox", "run", "--", "sh", "-c", "git status; cat b.txt"];
    let alone = Ran::of(stage.bailey(&part).current_dir(stage.project().join("part")).output().unwrap());
    let clear =
        ["is a worktree or a submodule", "git does not work inside the walls", "not a git repository"];
    tells(&alone, 0, &clear);
    assert_eq!(alone.stdout, "two\n", "by itself it is worked on without git: {alone:?}");

    let tree = fs::canonicalize(stage.folder()).unwrap().join("tree");
    stage.git(&["worktree", "add", "--quiet", &tree.display().to_string()]);
    let _server = edit_then(&stage, |_| Reply::text("done"));
    let arguments = [&RUN[..6], &["--apply", "do it"]].concat();
    let ended = Ran::of(stage.bailey(&arguments).current_dir(&tree).output().unwrap());
    tells(&ended, 0, &["is a worktree or a submodule", "git does not work inside the walls", "git clone /"]);
    assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "two\n", "{ended:?}");
    assert_eq!(stage.read("a.txt"), "one\n", "the other tree is as it was");
    assert_eq!(ran(&stage, &["audit", "verify"]).code, Some(0));
}

#[test]
fn without_git_all_of_it_works() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    fs::remove_dir_all(stage.project().join(".git")).unwrap();
    let empty = stage.folder().join("empty");
    fs::create_dir(&empty).unwrap();
    let _server = edit_then(&stage, |_| Reply::text("done"));
    let without = |arguments: &[&str]| Ran::of(stage.bailey(arguments).env("PATH", &empty).output().unwrap());
    let ended = without(&RUN);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(without(&["doctor"]).code, Some(0));
    nothing_is_lost(&stage);
}

/// The program as an ordinary user, with the stage's folder as the home directory, which is given to that
/// user.
fn as_somebody(stage: &Stage, arguments: &[&str]) -> Ran {
    const USER: u32 = 54_321;
    fs::create_dir_all(stage.home()).unwrap();
    for path in [stage.folder(), &stage.home()] {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
    let mut command = stage.bailey(arguments);
    command.uid(USER).gid(USER).env("HOME", stage.folder());
    Ran::of(command.output().unwrap())
}

#[test]
fn what_is_the_systems_or_somebody_elses_home_is_no_workspace() {
    let stage = Stage::new(&[]);
    fs::write(stage.project().join("Makefile"), "").unwrap();
    for place in [
        "/etc",
        "/etc/ssl",
        "/usr",
        "/usr/bin",
        "/usr/local",
        "/usr/lib",
        "/var",
        "/var/lib",
        "/home",
        "/root",
        "/opt",
    ] {
        if !Path::new(place).is_dir() {
            println!("SKIPPED: no {place} here");
            continue;
        }
        let mut command = stage.bailey(&["sandbox", "run", "-C", place, "--", "true"]);
        command.env("HOME", stage.folder());
        let ended = Ran::of(command.output().unwrap());
        tells(&ended, 1, &["cannot be a workspace", "-C DIR"]);
        assert!(!ended.stderr.contains("chown"), "{ended:?}");
    }
    // The control: a project in such a place is one.
    assert_eq!(stage.ran(&["sandbox", "run", "--", "true"]).code, Some(0));
}

#[test]
fn a_project_of_somebody_else_is_told_without_a_command_that_takes_it() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can be another user");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let ended = as_somebody(&stage, &["sandbox", "run", "--", "sh", "-c", "cat a.txt"]);
    assert!(
        ended.stderr.contains("belongs to user 0, not 54321") && !ended.stderr.contains("chown"),
        "{ended:?}"
    );
    // The control: in a project of one's own, what is another's is named with the command that mends it, and
    // never the project.
    chown(stage.project(), Some(54_321), Some(54_321)).unwrap();
    let ended = as_somebody(&stage, &["sandbox", "run", "--", "sh", "-c", "cat a.txt"]);
    let project = stage.project().display().to_string();
    assert!(ended.stderr.contains(&format!("sudo chown -R 54321 {project}/")), "{ended:?}");
    assert!(!ended.stderr.contains(&format!(" {project} ")), "{ended:?}");
}

#[test]
fn a_project_that_may_not_be_read_is_told_as_such() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("SKIPPED: only root can be another user");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\n")]);
    fs::set_permissions(stage.project(), fs::Permissions::from_mode(0o700)).unwrap();
    let project = stage.project().display().to_string();
    let other = stage.folder().join("other");
    fs::create_dir(&other).unwrap();
    fs::set_permissions(stage.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = stage.bailey(&["sandbox", "run", "-C", &project, "--", "true"]);
    fs::create_dir_all(stage.home()).unwrap();
    chown(stage.home(), Some(54_321), Some(54_321)).unwrap();
    command.current_dir(&other).uid(54_321).gid(54_321).env("HOME", stage.folder().join("other"));
    let ended = Ran::of(command.output().unwrap());
    tells(&ended, 1, &["cannot read the project", "permission denied", "chmod"]);
    assert!(!ended.stderr.contains("docker") && !ended.stderr.contains("chown -R"), "{ended:?}");
}
