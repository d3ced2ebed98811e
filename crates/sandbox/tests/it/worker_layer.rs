//! What leaves a session's layer and what stays, on upper directories as overlayfs lays them out.

use super::{Ground, Request, Response, mode, run};
use bailey_protocol::{FileDiff, FileKind, Touched, WsPath};
use std::collections::BTreeMap;

fn diff(ground: &Ground) -> BTreeMap<String, FileDiff> {
    ground.dir("upper");
    ground.dir("project");
    let files = match run(Request::Diff {
        is_copy: false,
        upper: ground.text("upper"),
        project: ground.text("project"),
        also: Vec::new(),
        bases: None,
    }) {
        Response::Diff(report) => report.files,
        other => panic!("{other:?}"),
    };
    let root = ground.text("project");
    assert!(files.is_sorted_by(|one, other| one.path <= other.path));
    files.into_iter().map(|file| (file.path.relative_to(&root).unwrap().to_owned(), file)).collect()
}

fn scan(ground: &Ground, known: &[WsPath], since: u64) -> Vec<Touched> {
    let (upper, project, known) = (ground.text("upper"), ground.text("project"), known.to_vec());
    match run(Request::Scan { upper, project, known, since, outside: false, bases: None }) {
        Response::Scanned { touched, .. } => touched,
        other => panic!("{other:?}"),
    }
}

/// Paths that leave, each with what it was and what it becomes.
fn leaving(ground: &Ground) -> Vec<(String, Option<FileKind>, Option<FileKind>)> {
    let kind = |side: Option<bailey_protocol::FileState>| side.map(|side| side.kind);
    let leaves = diff(ground).into_iter().filter(|(_, file)| file.refused.is_none());
    leaves.map(|(at, file)| (at, kind(file.old), kind(file.new))).collect()
}

fn names(ground: &Ground) -> Vec<String> {
    leaving(ground).into_iter().map(|(at, ..)| at).collect()
}

/// Paths that stay, each with the reason.
fn held(ground: &Ground) -> Vec<(String, String)> {
    diff(ground).into_iter().filter_map(|(at, file)| Some((at, file.refused?))).collect()
}

#[test]
fn a_diff_tells_both_sides() {
    let ground = Ground::new();
    ground.file("project/a.txt", "old");
    ground.file("project/same.txt", "same");
    mode(&ground.file("upper/a.txt", "new"), 0o755);
    ground.file("upper/same.txt", "same");
    ground.file("upper/bytes", b"\0\xff");
    ground.link("upper/in", "a.txt");
    let files = diff(&ground);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["a.txt", "bytes", "in"]);
    let a = &files["a.txt"];
    let (old, new) = (a.old.as_ref().unwrap(), a.new.as_ref().unwrap());
    assert_eq!((old.mode, new.mode, new.size), (0o644, 0o755, 3));
    assert_eq!(old.content.as_ref().unwrap().0, b"old");
    assert_eq!(new.content.as_ref().unwrap().0, b"new");
    let state = bailey_protocol::Digest::of_parts(&[b"file", b"493", b"new"]);
    assert_eq!(new.state, state, "the documented form of a state digest");
    assert_eq!(files["bytes"].new.as_ref().unwrap().content.as_ref().unwrap().0, b"\0\xff");
    assert_eq!(files["in"].new.as_ref().unwrap().content.as_ref().unwrap().0, b"a.txt");
    assert!(files["in"].remarks.is_empty());
}

#[test]
fn long_files_hide_nothing_of_a_short_one() {
    let ground = Ground::new();
    for n in 0..17 {
        ground.file(&format!("upper/a{n:02}"), vec![b'x'; 1 << 20]);
    }
    ground.file("upper/z", "short");
    let files = diff(&ground);
    let is_shown = |at: &str| files[at].new.as_ref().unwrap().content.is_some();
    assert!(is_shown("z"));
    assert!(!is_shown("a16"), "the control: not all of it fits");
}

#[test]
fn whiteouts_of_both_kinds_and_opaque_directories_are_deletions() {
    let ground = Ground::new();
    ground.file("project/one", "");
    ground.file("project/two", "");
    ground.file("project/dir/a", "");
    ground.file("project/dir/b/c", "");
    ground.file("project/opaque/gone", "");
    ground.file("project/opaque/sub/gone", "");
    ground.file("project/marked/stays", "");
    ground.whiteout("upper/one");
    ground.file_whiteout("upper/two");
    ground.whiteout("upper/dir");
    ground.whiteout("upper/was-never-there");
    ground.opaque("upper/opaque", b"y");
    ground.file("upper/opaque/sub/new", "");
    ground.opaque("upper/marked", b"x");
    let (file, dir) = (Some(FileKind::File), Some(FileKind::Directory));
    let expected = [
        ("dir", dir, None),
        ("dir/a", file, None),
        ("dir/b", dir, None),
        ("dir/b/c", file, None),
        ("one", file, None),
        ("opaque/gone", file, None),
        ("opaque/sub/gone", file, None),
        ("opaque/sub/new", None, file),
        ("two", file, None),
    ];
    assert_eq!(leaving(&ground), expected.map(|(at, old, new)| (at.to_owned(), old, new)));
}

/// The control: without the rules, all of it would leave.
#[test]
fn what_git_ignores_stays() {
    let ground = Ground::new();
    ground.dir("project");
    for at in ["target/debug/app", "x.log", "sub/y.log", "sub/cache/z", "excluded", "src/main.rs"] {
        ground.file(&format!("upper/{at}"), "x");
    }
    for at in ["target/debug/app", "x.log", "sub/cache/z", "excluded"] {
        assert!(names(&ground).contains(&at.to_owned()), "the control: {at}");
    }
    ground.file("project/.gitignore", "target/\n*.log\n");
    ground.file("project/.git/info/exclude", "excluded\n");
    ground.file("upper/sub/.gitignore", "cache\n!y.log\n");
    assert_eq!(names(&ground), ["src", "src/main.rs", "sub", "sub/.gitignore", "sub/y.log"]);
    let touched = scan(&ground, &[], 0);
    assert!(touched.iter().all(|touched| !touched.path.0.contains("target")), "{touched:?}");
}

#[test]
fn the_rules_are_those_of_the_merged_view() {
    let ground = Ground::new();
    ground.file("project/.gitignore", "*.log\n");
    ground.file("upper/a.log", "");
    assert!(names(&ground).is_empty());
    ground.file("upper/.gitignore", "*.tmp\n");
    ground.file("upper/b.tmp", "");
    assert_eq!(names(&ground), [".gitignore", "a.log"]);
}

#[test]
fn an_ignored_file_that_git_tracks_leaves() {
    for version in ["2", "4"] {
        let ground = Ground::new();
        let project = ground.dir("project");
        let git = |arguments: &[&str]| {
            let status = std::process::Command::new("git")
                .args(["-c", "core.hooksPath=/dev/null", "-C"])
                .arg(&project)
                .args(arguments)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .status();
            assert!(status.unwrap().success());
        };
        git(&["init", "-q"]);
        for at in [".gitignore", "dist/tracked", "dist/a-longer-name-in-there", "dist/untracked", "zzz"] {
            ground.file(&format!("project/{at}"), if at == ".gitignore" { "dist/\n" } else { "old" });
        }
        git(&["add", "-f", ".gitignore", "dist/tracked", "dist/a-longer-name-in-there", "zzz"]);
        git(&["update-index", "--index-version", version]);
        for at in ["dist/tracked", "dist/untracked", "dist/new", "dist/a-longer-name-in-there"] {
            ground.file(&format!("upper/{at}"), "new");
        }
        assert_eq!(
            names(&ground),
            ["dist/a-longer-name-in-there", "dist/tracked"],
            "index version {version}"
        );
    }
}

#[test]
fn without_a_repository_an_ignored_file_that_the_project_holds_leaves() {
    let ground = Ground::new();
    ground.file("project/.gitignore", "*.log\n");
    ground.file("project/kept.log", "old");
    ground.file("upper/kept.log", "new");
    ground.file("upper/fresh.log", "new");
    assert_eq!(names(&ground), ["kept.log"]);
}

#[test]
fn a_removed_directory_in_which_ignored_files_stay_stays() {
    let ground = Ground::new();
    ground.file("project/.git/index", "");
    ground.file("project/pkg/.gitignore", "build/\n");
    ground.file("project/pkg/build/out", "");
    ground.file("project/pkg/code", "");
    ground.whiteout("upper/pkg");
    assert_eq!(names(&ground), ["pkg/.gitignore", "pkg/code"]);
}

/// A rule for directories alone is one about what the project holds, whatever takes its place.
#[test]
fn what_git_ignores_is_not_replaced_by_what_it_does_not() {
    let ground = Ground::new();
    ground.file("project/.git/index", "");
    ground.file("project/node_modules/a/b", "");
    ground.file("project/linked/c", "");
    ground.file("project/conf", "");
    ground.file("upper/node_modules", "");
    ground.link("upper/linked", "src");
    ground.opaque("upper/conf", b"y");
    ground.file("upper/conf/new", "");
    for at in ["node_modules", "node_modules/a/b", "linked", "linked/c", "conf"] {
        assert!(names(&ground).contains(&at.to_owned()), "the control: {at}");
    }
    ground.file("project/.gitignore", "node_modules/\nlinked/\nconf\n!conf/\n");
    assert!(names(&ground).is_empty(), "{:?}", names(&ground));
    let held: Vec<_> = held(&ground).into_iter().map(|(at, _)| at).collect();
    assert_eq!(held, ["conf", "linked", "node_modules"]);
}

/// What is removed for what replaces it stays with that.
#[test]
fn a_replacement_that_stays_removes_nothing() {
    let ground = Ground::new();
    ground.file("project/.git/index", "");
    ground.file("project/pkg/.gitignore", "build/\n");
    ground.file("project/pkg/build/out", "");
    ground.file("project/pkg/deep/code", "");
    ground.file("project/pkg-other/code", "");
    for at in ["pkg", "pkg-other"] {
        ground.file(&format!("upper/{at}"), "");
    }
    assert_eq!(names(&ground), ["pkg-other", "pkg-other/code"]);
    assert_eq!(held(&ground)[0].0, "pkg");
    std::fs::remove_dir_all(ground.text("project/pkg/build")).unwrap();
    assert!(names(&ground).contains(&"pkg/deep/code".to_owned()), "the control: nothing stays there");
}

/// `mv .git .old && mkdir .git`, a gitfile, other cases of the name, a bare repository (A53).
#[test]
fn nothing_of_gits_leaves() {
    let ground = Ground::new();
    ground.file("project/.git/config", "[core]");
    ground.file("upper/.git/config", "[core] fsmonitor = evil");
    ground.file("upper/.git/hooks/post-checkout", "evil");
    ground.file("upper/sub/.git", "gitdir: /tmp/evil");
    ground.file("upper/.GIT/config", "evil");
    ground.file("upper/code", "");
    assert_eq!(names(&ground), ["code", "sub"]);
    let held = held(&ground);
    assert_eq!(held.len(), 3, "{held:?}");
    assert!(held.iter().all(|(_, why)| why.contains("never leaves")));
}

#[test]
fn a_bare_repository_stays_as_a_whole() {
    let ground = Ground::new();
    ground.dir("project");
    for dir in ["bare", "deep/er/bare.git"] {
        ground.file(&format!("upper/{dir}/HEAD"), "ref: refs/heads/main\n");
        ground.file(&format!("upper/{dir}/config"), "[core]\nfsmonitor = evil\n");
        ground.dir(&format!("upper/{dir}/objects"));
        ground.dir(&format!("upper/{dir}/refs"));
    }
    ground.file("upper/linked/HEAD", "ref: refs/heads/main\n");
    ground.file("upper/linked/commondir", "../bare\n");
    ground.file("upper/control/HEAD", "an innocent file");
    assert_eq!(names(&ground), ["control", "control/HEAD", "deep", "deep/er"]);
    let held = held(&ground);
    assert_eq!(held.len(), 3, "{held:?}");
    assert!(held.iter().all(|(_, why)| why.contains("bare git repository")));
}

#[test]
fn a_directory_of_the_project_does_not_become_a_bare_repository() {
    let ground = Ground::new();
    ground.file("project/dir/HEAD", "innocent");
    ground.file("project/dir/refs/readme", "");
    ground.file("upper/dir/objects/x", "");
    ground.file("upper/dir/code", "");
    assert_eq!(names(&ground), ["dir/code"]);
    assert_eq!(held(&ground)[0].0, "dir/objects");
}

#[test]
fn a_bare_repository_that_the_project_holds_keeps_its_configuration_and_hooks() {
    let ground = Ground::new();
    for at in ["config", "config.worktree", "HEAD", "hooks/post-checkout", "info/attributes"] {
        ground.file(&format!("upper/fixture.git/{at}"), "evil");
    }
    ground.file("upper/fixture.git/README", "");
    ground.file("upper/fixture.git/objects/x", "");
    ground.dir("project/fixture.git");
    assert!(held(&ground).is_empty(), "the control: a directory like any other");
    for mark in ["HEAD", "objects/y", "refs/heads/main"] {
        ground.file(&format!("project/fixture.git/{mark}"), "");
    }
    assert_eq!(names(&ground), ["fixture.git/README"]);
    let held: Vec<String> = held(&ground).into_iter().map(|(at, _)| at).collect();
    let all = ["HEAD", "config", "config.worktree", "hooks", "info", "objects"];
    assert_eq!(held, all.map(|at| format!("fixture.git/{at}")));
}

#[test]
fn a_bare_repository_is_not_replaced_by_another_of_its_name() {
    let ground = Ground::new();
    for mark in ["HEAD", "objects/y", "refs/heads/main", "config", "README"] {
        ground.file(&format!("project/fixture.git/{mark}"), "");
    }
    ground.opaque("upper/fixture.git", b"y");
    ground.file("upper/fixture.git/config", "evil");
    assert_eq!(names(&ground), ["fixture.git/README"], "the rest is deleted, as it was in the layer");
    // Its removal as a whole makes nothing that git would obey.
    std::fs::remove_dir_all(ground.path.join("upper/fixture.git")).unwrap();
    ground.whiteout("upper/fixture.git");
    assert!(held(&ground).is_empty());
}

#[test]
fn other_version_control_is_held_like_git() {
    let ground = Ground::new();
    ground.dir("project");
    for own in [".hg", ".svn", "sub/.jj", ".HG"] {
        ground.file(&format!("upper/{own}/config"), "evil");
    }
    ground.file("upper/.hgignore", "");
    assert_eq!(names(&ground), [".hgignore", "sub"]);
    assert_eq!(held(&ground).len(), 4);
}

#[test]
fn what_no_merge_can_carry_is_told_not_lost() {
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new();
    ground.dir("upper");
    ground.fifo("upper/fifo");
    ground.socket("upper/socket");
    mode(&ground.file("upper/setuid", ""), 0o4755);
    ground.file("upper/.bailey-merge-3", "");
    std::fs::write(ground.path.join("upper").join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    let huge = ground.file("upper/huge", "");
    std::fs::OpenOptions::new().write(true).open(huge).unwrap().set_len(10 << 30).unwrap();
    let held: BTreeMap<_, _> = held(&ground).into_iter().collect();
    assert!(held["fifo"].contains("is a FIFO"));
    assert!(held["socket"].contains("is a socket"));
    assert!(held["setuid"].contains("set-user-id"));
    assert!(held["huge"].contains("larger than 1 GiB"));
    assert!(held[".bailey-merge-3"].contains("unfinished writes"));
    assert!(held["caf\u{fffd}"].contains("cannot be applied: its name is not UTF-8"));
    assert!(names(&ground).is_empty());
}

#[test]
fn a_link_that_may_lead_out_of_the_project_stays() {
    let ground = Ground::new();
    ground.link("upper/sub/in", "../code");
    ground.link("upper/sub/in-absolute", &ground.text("project/code"));
    let outs = ["../..", "../../x", "/etc/passwd", "a/../../code", "./../../x"];
    for (n, target) in outs.iter().enumerate() {
        ground.link(&format!("upper/sub/out-{n}"), target);
    }
    for (at, file) in diff(&ground).iter().filter(|(at, _)| at.starts_with("sub/")) {
        assert_eq!(file.refused.is_none(), at.starts_with("sub/in"), "{at}: {:?}", file.refused);
    }
    // A link that the project holds already may be deleted.
    ground.link("project/old", "/etc/passwd");
    ground.whiteout("upper/old");
    assert!(names(&ground).contains(&"old".to_owned()));
}

#[test]
fn a_scan_tells_what_is_new_with_the_projects_state() {
    let ground = Ground::new();
    ground.file("project/a", "old");
    let b = ground.file("project/b", "old");
    await_a_tick(&b);
    ground.file("upper/a", "new");
    ground.file("upper/fresh", "new");
    ground.whiteout("upper/b");
    let touched = scan(&ground, &[ground.ws("project/b")], u64::MAX >> 1);
    let state = bailey_protocol::Digest::of_parts(&[b"file", b"420", b"old"]);
    let expected = [
        Touched { path: ground.ws("project/a"), base: Some(state), unsure: false },
        Touched { path: ground.ws("project/fresh"), base: None, unsure: false },
    ];
    assert_eq!(touched, expected);
    let since = scan(&ground, &[], 0);
    assert_eq!(since.iter().map(|touched| touched.unsure).collect::<Vec<_>>(), [true, true, false]);
}

/// What a session deleted or replaced hides what somebody puts there later: that is nothing which the session
/// saw, and deleted.
#[test]
fn what_comes_behind_what_is_hidden_is_no_sure_base() {
    let ground = Ground::new();
    for at in ["gone/a", "made-anew/a", "removed", "replaced", "shown/a"] {
        ground.file(&format!("project/{at}"), "old");
    }
    // Beside the project, whose own time tells of what was moved in it.
    await_a_tick(&ground.file("clock", ""));
    ground.whiteout("upper/gone");
    ground.whiteout("upper/removed");
    ground.file("upper/replaced", "new");
    ground.opaque("upper/made-anew", b"y");
    ground.whiteout("upper/shown/a");
    await_a_tick(&ground.file("clock", ""));
    ground.file("project/gone/mine", "mine");
    ground.file("project/made-anew/deep/mine", "mine");
    ground.file("project/shown/b", "mine");
    std::fs::write(ground.text("project/removed"), "mine").unwrap();
    std::fs::write(ground.text("project/replaced"), "mine").unwrap();
    // A directory that the session makes there is younger, and hides nothing by itself.
    ground.file("upper/made-anew/deep/new", "new");
    // The next command begins only after that.
    let unsure: Vec<_> = scan(&ground, &[], u64::MAX >> 1)
        .into_iter()
        .filter_map(|touched| {
            Some((touched.path.relative_to(&ground.text("project"))?.to_owned(), touched.unsure))
        })
        .collect();
    let expected = [
        // Directories whose content changed are changed themselves.
        ("gone", true),
        ("gone/a", false),
        ("gone/mine", true),
        ("made-anew/a", false),
        ("made-anew/deep/mine", true),
        ("made-anew/deep/new", false),
        ("removed", true),
        ("replaced", true),
        ("shown/a", false),
    ];
    let expected: Vec<_> = expected.map(|(at, unsure)| (at.to_owned(), unsure)).into();
    assert_eq!(unsure, expected);
}

/// A directory that somebody moves takes along what was written long before: its age tells nothing of whether
/// the session saw it there.
#[test]
fn what_lies_in_a_directory_that_was_moved_is_no_sure_base() {
    let ground = Ground::new();
    for at in ["src/deep/a", "mine/deep/a", "mine/b", "still/a", "busy/a", "gone/a", "far/mine/b"] {
        ground.file(&format!("project/{at}"), "old");
    }
    await_a_tick(&ground.file("clock", ""));
    let last = ground.file("upper/still/a", "new");
    ground.file("upper/src/deep/a", "new");
    ground.file("upper/busy/a", "new");
    ground.whiteout("upper/gone");
    await_a_tick(&last);
    let since = changed_at(&ground.file("clock", ""));
    let unsure = || {
        let root = ground.text("project");
        let touched = scan(&ground, &[], since).into_iter().filter(|touched| touched.unsure);
        touched.map(|touched| touched.path.relative_to(&root).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(unsure().is_empty(), "the control: {:?}", unsure());
    let moved = |from: &str, to: &str| {
        std::fs::rename(ground.text("project") + "/" + from, ground.text("project") + "/" + to).unwrap();
    };
    // What lies beside a file that is written anew did not move.
    ground.file("project/busy/b", "mine");
    assert!(unsure().is_empty(), "{:?}", unsure());
    moved("src", "was");
    moved("mine", "src");
    moved("far/mine", "gone/mine");
    // Whether one that was written in was moved before cannot be told where something was moved beside it.
    assert_eq!(unsure(), ["busy/a", "gone", "gone/a", "gone/mine", "gone/mine/b", "src/deep/a"]);
}

fn outside(ground: &Ground, since: u64) -> (Vec<String>, bool) {
    ground.dir("upper");
    let (upper, project) = (ground.text("upper"), ground.text("project"));
    match run(Request::Scan {
        upper,
        project: project.clone(),
        known: Vec::new(),
        since,
        outside: true,
        bases: None,
    }) {
        Response::Scanned { outside, .. } => {
            let at = |path: &WsPath| path.relative_to(&project).unwrap_or("?").to_owned();
            (outside.paths.iter().map(at).collect(), outside.more)
        }
        other => panic!("{other:?}"),
    }
}

/// Until the clock of the file system has gone on.
fn await_a_tick(before: &std::path::Path) {
    let (was, beside) = (changed_at(before), before.with_extension("tick"));
    loop {
        std::fs::write(&beside, "").unwrap();
        let now = changed_at(&beside);
        std::fs::remove_file(&beside).unwrap();
        if now > was {
            return;
        }
    }
}

/// When anything about a file changed last, in nanoseconds.
fn changed_at(path: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let stat = std::fs::metadata(path).unwrap();
    u64::try_from(stat.ctime() * 1_000_000_000 + stat.ctime_nsec()).unwrap()
}

#[test]
fn what_the_host_changed_since_a_moment_is_named_and_nothing_else() {
    let ground = Ground::new();
    ground.file("project/.gitignore", "ignored\n");
    ground.file("project/ignored", "x");
    ground.file("project/.git/index", "x");
    ground.file("project/old.txt", "x");
    ground.file("project/sub/gone.txt", "x");
    let last = ground.file("project/a.txt", "x");
    let since = changed_at(&last) + 1;
    assert_eq!(outside(&ground, u64::MAX), (Vec::new(), false));
    // Once the clock of the file system has gone on.
    while changed_at(&last) < since {
        ground.file("project/a.txt", "y");
    }
    ground.file("project/ignored", "y");
    ground.file("project/.git/index", "y");
    std::fs::remove_file(ground.text("project/sub/gone.txt")).unwrap();
    assert_eq!(outside(&ground, since), (vec!["a.txt".into(), "sub".into()], false));
    (0..20).for_each(|n| drop(ground.file(&format!("project/many/{n:02}.txt"), "x")));
    let (named, more) = outside(&ground, since);
    assert_eq!((named.len(), more), (10, true), "{named:?}");
}

/// Only a target's own `..` were counted: a link through one of the owner's led out, and was applied.
#[test]
fn a_link_that_leads_out_through_another_stays() {
    let ground = Ground::new();
    ground.dir("outside");
    ground.link("project/vendor", "../outside");
    ground.link("project/deep/up", "../vendor");
    ground.link("project/inside", "real");
    ground.link("project/round", "round");
    ground.link("project/host", "/etc");
    ground.file("project/real/x", "");
    ground.link("upper/own", "/etc");
    ground.link("upper/own-real", "real");
    let project = ground.text("project");
    let absolute = format!("{project}/vendor/keep");
    for (at, target) in [
        ("v1", "vendor"),
        ("v2", "./vendor/"),
        ("v3", "vendor/keep"),
        ("v4", absolute.as_str()),
        ("v5", "deep/up/keep"),
        ("v6", "v3"),
        ("v7", "round"),
        ("v8", "host/passwd"),
        ("v9", "own/passwd"),
        ("sub/v", "../vendor/keep"),
        ("in1", "inside/x"),
        ("in2", "own-real/x"),
        ("in3", "real/x"),
        ("in4", "nothing/there"),
    ] {
        ground.link(&format!("upper/{at}"), target);
    }
    for (at, file) in diff(&ground) {
        let is_inside = at.starts_with("in") || at == "own-real" || at == "sub";
        assert_eq!(file.refused.is_none(), is_inside, "{at}: {:?}", file.refused);
    }
    // The control: with the owner's link away, the same ones lead nowhere but into the project.
    std::fs::remove_file(ground.path.join("project/vendor")).unwrap();
    let files = diff(&ground);
    for at in ["v1", "v2", "v3", "v4", "v5", "v6", "sub/v"] {
        assert_eq!(files[at].refused, None, "{at}");
    }
}

/// A set-group-id directory was applied with that bit: all that is made
/// in it on the host belongs to that group.
#[test]
fn a_directory_that_gives_what_is_in_it_away_is_applied_without_that() {
    let ground = Ground::new();
    mode(&ground.dir("project/own"), 0o2775);
    mode(&ground.dir("upper/new"), 0o6755);
    mode(&ground.dir("upper/new/below"), 0o2755);
    mode(&ground.dir("upper/own"), 0o2775);
    mode(&ground.dir("upper/own/inherits"), 0o2755);
    mode(&ground.dir("project/plain"), 0o755);
    mode(&ground.dir("upper/plain"), 0o2755);
    mode(&ground.dir("project/changed"), 0o2755);
    mode(&ground.dir("upper/changed"), 0o700);
    let files = diff(&ground);
    let modes: Vec<_> =
        files.iter().map(|(at, file)| (at.as_str(), file.new.as_ref().unwrap().mode)).collect();
    assert_eq!(
        modes,
        [("changed", 0o2700), ("new", 0o755), ("new/below", 0o755), ("own/inherits", 0o2755)],
        "the owner's own bits stay, and what the host would make in such a directory is made so"
    );
    let told = |at: &str| files[at].remarks.iter().any(|remark| remark.contains("set-group-id"));
    assert!(told("new") && told("new/below") && !told("own/inherits"));
}
