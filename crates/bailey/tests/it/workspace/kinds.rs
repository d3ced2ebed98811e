//! Kinds of files and of changes that are easily carried wrongly: each applied, undone, applied again and
//! thrown away.

use super::{event, sessions, work};
use crate::{stage::Stage, tree::Tree};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, MetadataExt as _},
    },
    path::Path,
};

struct Kind {
    files: &'static [(&'static str, &'static str)],
    /// What else lies in the project.
    prepare: fn(&Path),
    script: &'static str,
    /// What the diff says of it.
    told: &'static [&'static str],
    /// What holds of the project before, and after an undo or a discard.
    before: fn(&Path),
    /// What holds after an apply.
    after: fn(&Path),
}

fn text(project: &Path, at: &str) -> String {
    fs::read_to_string(project.join(at)).unwrap()
}

fn attribute(project: &Path, at: &str, name: &str) -> Option<String> {
    let mut value = [0; 64];
    let length = getxattr(project.join(at), name, &mut value).ok()?;
    Some(String::from_utf8_lossy(&value[..length]).into_owned())
}

fn odd(project: &Path, name: &[u8]) -> String {
    fs::read_to_string(project.join(OsStr::from_bytes(name))).unwrap()
}

const KINDS: &[Kind] = &[
    // An overlay refuses to rename a directory that lies below (EXDEV); `mv` copies it then.
    Kind {
        files: &[("one/a", "a\n"), ("one/deep/b", "b\n"), ("two/c", "c\n")],
        prepare: |_| {},
        script: "python3 -S -c 'import os; os.rename(\"two\", \"three\")' 2>&1 | grep -c 'Errno 18'; mv one moved; echo x >> moved/deep/b",
        told: &["+++ b/moved/deep/b", "--- a/one/deep/b", "    nothing -> directory"],
        before: |project| assert!(!project.join("moved").exists() && project.join("one/a").exists()),
        after: |project| {
            assert_eq!(
                (text(project, "moved/a"), text(project, "moved/deep/b")),
                ("a\n".into(), "b\nx\n".into())
            );
            assert!(!project.join("one").exists() && project.join("two/c").exists());
        },
    },
    Kind {
        files: &[("one", "shared\n"), ("alone", "alone\n")],
        prepare: |project| fs::hard_link(project.join("one"), project.join("two")).unwrap(),
        script: "echo more >> one; echo more >> alone; echo new > a; ln a b",
        told: &["one of several hard links in the project", "one of several hard links in the session"],
        before: |project| assert_eq!(text(project, "two"), "shared\n"),
        after: |project| {
            let texts = ["one", "two", "a", "b"].map(|name| text(project, name));
            assert_eq!(texts, ["shared\nmore\n", "shared\n", "new\n", "new\n"]);
            let names =
                ["one", "two", "a", "b"].map(|name| fs::metadata(project.join(name)).unwrap().nlink());
            assert_eq!(names, [1; 4]);
        },
    },
    Kind {
        files: &[("edited", "old\n"), ("removed", "old\n"), ("set", "old\n")],
        prepare: |project| {
            for name in ["edited", "removed"] {
                setxattr(project.join(name), "user.origin", b"the project's", XattrFlags::empty()).unwrap();
            }
        },
        script: "echo more >> edited; rm removed; python3 -S -c 'import os; os.setxattr(\"set\", \"user.own\", b\"1\"); os.setxattr(\"edited\", \"user.own\", b\"1\")'",
        told: &[
            "set stays in the session: has extended attributes (user.own)",
            "edited has extended attributes (user.own)",
        ],
        before: |project| {
            let origin = ["edited", "removed"].map(|name| attribute(project, name, "user.origin"));
            assert!(origin.iter().all(|value| value.as_deref() == Some("the project's")), "{origin:?}");
        },
        after: |project| {
            assert_eq!(attribute(project, "edited", "user.origin").as_deref(), Some("the project's"));
            assert!(["set", "edited"].iter().all(|name| attribute(project, name, "user.own").is_none()));
            assert!(!project.join("removed").exists());
        },
    },
    Kind {
        files: &[("d/plain", "plain\n")],
        prepare: |project| {
            for name in [&b"edited\xff"[..], b"deleted\xff", b"d/inner\xff"] {
                fs::write(project.join(OsStr::from_bytes(name)), "old\n").unwrap();
            }
        },
        script: "printf x >> \"$(printf 'edited\\377')\"; rm \"$(printf 'deleted\\377')\"; rm -r d; echo x > \"$(printf 'new\\377')\"; echo x > fine",
        told: &[
            "edited\u{fffd} stays in the session: cannot be applied: its name is not UTF-8",
            "new\u{fffd} stays",
            "deleted\u{fffd} stays",
            "d/inner\u{fffd} stays",
        ],
        before: |project| {
            for name in [&b"edited\xff"[..], b"deleted\xff", b"d/inner\xff"] {
                assert_eq!(odd(project, name), "old\n");
            }
        },
        after: |project| {
            for name in [&b"edited\xff"[..], b"deleted\xff", b"d/inner\xff"] {
                assert_eq!(odd(project, name), "old\n");
            }
            assert!(
                !project.join(OsStr::from_bytes(b"new\xff")).exists() && !project.join("d/plain").exists()
            );
            assert_eq!(text(project, "fine"), "x\n");
        },
    },
    Kind {
        files: &[
            ("file", "a file\n"),
            ("dir/inner", "inner\n"),
            ("empty.txt", ""),
            ("run.sh", "#!/bin/sh\n"),
        ],
        prepare: |project| fs::create_dir_all(project.join("hollow/deep")).unwrap(),
        script: "rm file; mkdir -p file/deep; rm -r dir; echo now > dir; rm -r hollow; ln -s run.sh hollow; chmod 755 run.sh; chmod 600 empty.txt; mkdir -p new/empty",
        told: &[
            "text of 7 bytes -> directory",
            "directory -> text of 4 bytes\n    +now",
            "new mode 100755",
            "nothing -> directory",
        ],
        before: |project| assert!(project.join("hollow/deep").is_dir() && project.join("file").is_file()),
        after: |project| {
            assert!(project.join("file/deep").is_dir() && project.join("new/empty").is_dir());
            assert_eq!(text(project, "dir"), "now\n");
            assert_eq!(fs::read_link(project.join("hollow")).unwrap(), Path::new("run.sh"));
            let mode = |name: &str| fs::metadata(project.join(name)).unwrap().mode() & 0o7777;
            assert_eq!((mode("run.sh"), mode("empty.txt")), (0o755, 0o600));
        },
    },
];

/// Beneath a link nothing lies, neither before the session makes a directory of it nor where the user makes
/// one of a directory.
#[test]
fn a_link_becomes_a_directory_and_a_link_again() {
    let stage = Stage::new(&[("real/x", "x\n"), ("d/x", "x\n"), ("f", "f\n")]);
    let project = stage.project();
    std::os::unix::fs::symlink("real", project.join("pkg")).unwrap();
    let session = work(
        &stage,
        "rm pkg; cp -r real pkg; echo agent >> pkg/x; echo new > pkg/new; echo agent >> d/x; echo n > d/n; echo agent >> f",
    );
    let diff = sessions(&stage, "diff", &session);
    assert!(diff.stdout.contains("b/pkg/x") && !diff.stdout.contains("stays in the session"), "{diff:?}");
    fs::rename(project.join("d"), project.join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", project.join("d")).unwrap();
    let applied = sessions(&stage, "apply", &session);
    assert!(applied.stdout.contains("d/x"), "what the user has otherwise is named: {applied:?}");
    assert_eq!((text(&project, "pkg/x"), text(&project, "pkg/new")), ("x\nagent\n".into(), "new\n".into()));
    assert_eq!((text(&project, "real/x"), text(&project, "f")), ("x\n".into(), "f\nagent\n".into()));
    assert_eq!(text(&project, "moved/x"), "x\n", "nothing goes through the user's link");
    assert!(!project.join("moved/n").exists());
    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(fs::read_link(project.join("pkg")).unwrap(), Path::new("real"));
    assert_eq!(text(&project, "f"), "f\n");
}

/// No backup holds one.
#[test]
fn a_fifo_and_a_socket_of_the_project_stay_whatever_the_session_makes_of_them() {
    let stage = Stage::new(&[("f", "f\n"), ("d/x", "x\n")]);
    let project = stage.project();
    for name in ["gone", "file", "dir", "d/inner"] {
        let made = std::process::Command::new("mkfifo").arg(project.join(name)).status().unwrap();
        assert!(made.success());
    }
    drop(std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap());
    let session = work(
        &stage,
        "rm gone file dir socket; rm -r d; echo file > file; mkdir dir; echo x > dir/x; echo agent >> f",
    );
    let diff = sessions(&stage, "diff", &session);
    for at in ["gone", "file", "dir", "socket"] {
        assert!(
            diff.stdout.contains(&format!("{at} stays in the session: takes the place of a ")),
            "{at}: {diff:?}"
        );
    }
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(text(&project, "f"), "f\nagent\n", "the control");
    for name in ["gone", "file", "dir", "d/inner", "socket"] {
        let kind = fs::symlink_metadata(project.join(name)).unwrap().file_type();
        assert!(!kind.is_file() && !kind.is_dir(), "{name}");
    }
    assert!(!project.join("d/x").exists());
    assert_eq!(sessions(&stage, "undo", &session).code, Some(0));
    assert_eq!(text(&project, "d/x"), "x\n");
}

/// An access control list (acl(5)) that lets this user read besides, as the kernel takes it.
fn list(user: u32) -> Vec<u8> {
    let entry = |tag: u16, may: u16, id: u32| {
        [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let all = u32::MAX;
    let entries =
        [entry(1, 6, all), entry(2, 4, user), entry(4, 0, all), entry(16, 6, all), entry(32, 0, all)];
    [2_u32.to_le_bytes().to_vec(), entries.concat()].concat()
}

/// What replaces a file keeps its list, for its mode alone would open it to its group; where that cannot be,
/// it stays.
#[test]
fn an_access_control_list_is_kept_or_the_file_stays() {
    const LIST: &str = "system.posix_acl_access";
    let stage =
        Stage::new(&[("edited", "old\n"), ("removed", "old\n"), ("others", "old\n"), ("e/a", "old\n")]);
    let project = stage.project();
    let own = fs::metadata(&project).unwrap().uid();
    let set = |at: &str, name: &str, user| setxattr(project.join(at), name, &list(user), XattrFlags::empty());
    if let Err(errno) = set("edited", LIST, own) {
        println!("SKIPPED: the file system of {} keeps no access control lists: {errno}", project.display());
        return;
    }
    set("removed", LIST, own).unwrap();
    set("others", LIST, own + 4242).unwrap();
    fs::create_dir(project.join("d")).unwrap();
    set("d", "system.posix_acl_default", own + 4242).unwrap();
    let kept = |at: &str| {
        let mut value = [0; 64];
        let length = getxattr(project.join(at), LIST, &mut value).unwrap_or_default();
        value[..length].to_vec()
    };
    assert_eq!(
        fs::metadata(project.join("edited")).unwrap().mode() & 0o777,
        0o660,
        "the control: what the mode says"
    );
    // An overlay copies none of those up, so they are replaced as a whole.
    let session = work(&stage, "echo more >> edited; rm removed; rm others; echo more >> others; rm -r d e");
    let diff = sessions(&stage, "diff", &session);
    for at in ["others", "d"] {
        let told = format!("{at} stays in the session: has an access control list that names others");
        assert!(diff.stdout.contains(&told), "{diff:?}");
    }
    assert_eq!(sessions(&stage, "apply", &session).code, Some(0));
    assert_eq!(text(&project, "edited"), "old\nmore\n");
    assert_eq!(kept("edited"), list(own));
    assert!(!project.join("removed").exists() && !project.join("e").exists(), "the control");
    assert_eq!((text(&project, "others").as_str(), kept("others")), ("old\n", list(own + 4242)));
    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!((kept("edited"), kept("removed")), (list(own), list(own)));
    assert!(project.join("d").is_dir());
}

#[test]
fn each_kind_goes_to_the_project_and_back_and_away() {
    for Kind { files, prepare, script, told, before, after } in KINDS {
        let stage = Stage::new(files);
        let project = stage.project();
        prepare(&project);
        let all = Tree::of(&project);
        let session = work(&stage, script);
        let diff = sessions(&stage, "diff", &session);
        for line in *told {
            assert!(diff.stdout.contains(line), "`{line}` in {}", diff.stdout);
        }
        let is_as_before = |when: &str| {
            let now = Tree::of(&project);
            let differences: Vec<_> =
                all.paths().chain(now.paths()).filter(|path| !all.agrees(&now, path)).collect();
            assert!(differences.is_empty(), "{script}, {when}: {differences:?}");
            before(&project);
        };
        is_as_before("before an apply");
        for round in ["the first time", "again"] {
            let applied = sessions(&stage, "apply", &session);
            assert_eq!(applied.code, Some(0), "{round}: {applied:?}");
            after(&project);
            let undone = sessions(&stage, "undo", &session);
            assert_eq!(undone.code, Some(0), "{round}: {undone:?}");
            is_as_before(round);
        }
        let discarded = sessions(&stage, "discard", &session);
        assert_eq!(discarded.code, Some(0), "{discarded:?}");
        is_as_before("after a discard");
        let left = sessions(&stage, "diff", &session);
        assert!(left.stdout.is_empty() && left.stderr.contains("has no changes"), "{left:?}");
    }
}

/// A hole of a GiB, in what the session makes and in what it deletes.
#[test]
fn a_file_of_one_gib_that_is_a_hole_takes_no_room_on_its_way() {
    const SIZE: u64 = 1 << 30;
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let project = stage.project();
    let sparse = |at: &Path| {
        let file = fs::File::create(at).unwrap();
        file.write_all_at(&[7; 1024], SIZE - 1024).unwrap();
    };
    sparse(&project.join("old"));
    let is_there = |name: &str| {
        let file = fs::File::open(project.join(name)).unwrap();
        let (meta, mut end) = (file.metadata().unwrap(), [0; 1024]);
        assert!(meta.len() == SIZE && meta.blocks() * 512 < 1 << 20, "{name}: {} blocks", meta.blocks());
        file.read_exact_at(&mut end, SIZE - 1024).unwrap();
        assert_eq!(end, [7; 1024], "{name}");
    };
    let session = work(&stage, "cp --sparse=always old new; rm old");
    let applied = sessions(&stage, "apply", &session);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    is_there("new");
    assert!(!project.join("old").exists());
    let undone = sessions(&stage, "undo", &session);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    is_there("old");
    assert!(!project.join("new").exists());
    // The backups lie there.
    let folder = stage.home().join("sessions").join(&session);
    let used = std::process::Command::new("du").args(["-s", "--block-size=1"]).arg(&folder).output().unwrap();
    let used: u64 =
        String::from_utf8(used.stdout).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(used < 16 << 20, "{used} bytes");
    assert_eq!(sessions(&stage, "discard", &session).code, Some(0));
    is_there("old");
}

/// What has no lines is passed over; the rest is a patch.
#[test]
fn what_scripts_are_told_is_a_patch_that_git_applies() {
    let files = [
        ("a.txt", "1\n2\n3\n"),
        ("b c.txt", "b\n"),
        ("gone.txt", "gone\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("link.txt", "l\n"),
    ];
    let stage = Stage::new(&files);
    let project = stage.project();
    std::os::unix::fs::symlink("a.txt", project.join("old-link")).unwrap();
    fs::write(project.join("bytes"), b"\0\x01").unwrap();
    let session = work(
        &stage,
        "printf '1\\n\\ttwo\\n3' > a.txt; echo more >> 'b c.txt'; rm gone.txt; chmod 755 run.sh; echo true >> run.sh; echo new > new.txt
         ln -sf a.txt link.txt; rm old-link; printf -- '--- x\\n@@ -1 +1 @@\\n' > old-link; printf '\\0\\002' > bytes; mkdir empty",
    );
    let diff = event(&stage.ran(&["--json", "sessions", "diff", &session]), "diff");
    let patch = stage.folder().join("patch");
    fs::write(&patch, diff["diff"].as_str().unwrap()).unwrap();
    stage.git(&["apply", patch.to_str().unwrap()]);
    assert_eq!(text(&project, "a.txt"), "1\n\ttwo\n3");
    assert_eq!((text(&project, "b c.txt"), text(&project, "new.txt")), ("b\nmore\n".into(), "new\n".into()));
    assert_eq!(text(&project, "run.sh"), "#!/bin/sh\ntrue\n");
    assert_eq!(fs::metadata(project.join("run.sh")).unwrap().mode() & 0o111, 0o111);
    assert!(!project.join("gone.txt").exists());
    assert!(fs::symlink_metadata(project.join("old-link")).unwrap().is_symlink(), "no lines of a text");
    assert!(fs::symlink_metadata(project.join("link.txt")).unwrap().is_file(), "no lines of a link");
}
