//! Changes: all bases first, then all files.

use super::{Ground, mode, mode_of, perform};
use bailey_protocol::{Action, ChangedFile, Digest, FileChange, Report, WsPath};

fn change(files: Vec<FileChange>) -> Result<Vec<ChangedFile>, String> {
    perform(Action::Change { files }).map(|report| match report {
        Report::Changed { files } => files,
        other => panic!("{other:?}"),
    })
}

fn to(path: WsPath, base: Option<&str>, new: Option<&str>) -> FileChange {
    FileChange { path, base: base.map(|base| Digest::of(base.as_bytes())), new: new.map(Into::into) }
}

#[test]
fn files_are_created_edited_and_deleted_together() {
    let ground = Ground::new();
    mode(&ground.file("run.sh", "old"), 0o755);
    ground.file("gone", "gone");
    let changed = change(vec![
        to(ground.ws("run.sh"), Some("old"), Some("new")),
        to(ground.ws("a/b/fresh"), None, Some("fresh")),
        to(ground.ws("gone"), Some("gone"), None),
    ])
    .unwrap();
    assert_eq!((ground.read("run.sh"), mode_of(&ground.path.join("run.sh"))), ("new".into(), 0o755));
    assert_eq!((ground.read("a/b/fresh"), mode_of(&ground.path.join("a/b/fresh"))), ("fresh".into(), 0o644));
    assert!(!ground.has("gone"));
    assert_eq!(changed[0].old, Some(Digest::of(b"old")));
    assert_eq!((changed[1].old, changed[1].new), (None, Some(Digest::of(b"fresh"))));
    assert_eq!((changed[2].old, changed[2].new), (Some(Digest::of(b"gone")), None));
    let names = std::fs::read_dir(&ground.path).unwrap().count();
    assert_eq!(names, 2, "something was left behind");
}

/// The control is the first test: with right bases the same changes are made.
#[test]
fn one_wrong_base_and_nothing_changes() {
    let ground = Ground::new();
    ground.file("one", "one");
    ground.file("two", "two");
    ground.dir("dir");
    ground.link("link", "one");
    ground.fifo("fifo");
    let wrong = [
        (to(ground.ws("two"), Some("stale"), Some("x")), "read it again"),
        (to(ground.ws("two"), None, Some("x")), "exists already"),
        (to(ground.ws("absent"), Some("x"), Some("y")), "does not exist any more"),
        (to(ground.ws("absent"), None, None), "cannot be deleted"),
        (to(ground.ws("dir"), None, Some("x")), "is a directory"),
        (to(ground.ws("link"), Some("one"), Some("x")), "is a symbolic link"),
        (to(ground.ws("fifo"), None, Some("x")), "is a FIFO"),
        (to(ground.ws("one"), Some("one"), None), "named twice"),
        (to(ground.ws("one/below"), None, Some("x")), "makes a file"),
        (to(ground.ws("two/below"), None, Some("x")), "not a directory"),
        (to(WsPath("relative".into()), None, Some("x")), "is not canonical"),
    ];
    for (wrong, reason) in wrong {
        let right = to(ground.ws("one"), Some("one"), Some("changed"));
        let fresh = to(ground.ws("new/dir/file"), None, Some("x"));
        let refused = change(vec![fresh, right, wrong]).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
        assert_eq!(ground.read("one"), "one");
        assert!(!ground.has("new"), "{reason}");
    }
}

#[test]
fn what_a_killed_worker_left_is_in_nobodys_way() {
    let ground = Ground::new();
    ground.file(".bailey-change-0", "torn");
    change(vec![to(ground.ws("file"), None, Some("whole"))]).unwrap();
    assert_eq!(ground.read("file"), "whole");
    assert_eq!(ground.read(".bailey-change-0"), "torn", "it may be another's, who still writes");
}

/// The control: `std::fs::write` does write through the link.
#[test]
fn a_change_never_writes_through_a_symlink() {
    let ground = Ground::new();
    ground.dir("outside");
    ground.link("ws/dir", "../outside");
    std::fs::write(ground.path.join("ws/dir/control"), "").unwrap();
    assert!(ground.has("outside/control"));
    assert!(change(vec![to(ground.ws("ws/dir/file"), None, Some("x"))]).is_err());
    assert!(!ground.has("outside/file"));
}

#[test]
fn parallel_changes_in_one_directory_do_not_delete_each_others_unfinished_writes() {
    let ground = Ground::new();
    // As a worker that was killed, or one that still writes, leaves it.
    ground.file(".bailey-change-0", "unfinished");
    std::thread::scope(|scope| {
        let writers = (0..8).map(|writer| {
            let ground = &ground;
            scope.spawn(move || {
                (0..50).try_for_each(|n| {
                    change(vec![to(ground.ws(&format!("{writer}-{n}")), None, Some("x"))]).map(drop)
                })
            })
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap().unwrap());
    });
    assert_eq!(ground.read(".bailey-change-0"), "unfinished");
    assert_eq!(std::fs::read_dir(&ground.path).unwrap().count(), 401);
}
