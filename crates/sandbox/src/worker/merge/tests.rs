//! A merge is stopped before every single operation on the disk and run again: whatever was half done, the
//! end is the same, and undone it is what was there before, byte for byte.

use super::disk::Disk;
use super::run;
use crate::worker::diff;
use bailey_protocol::{Merge, MergeFile, MergeKind, MergeResult, MergeState, Part, Splice, file_state};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Every kind of change, of what is there to what shall be.
fn before(project: &Path) {
    file(project, "edit.txt", "one\ntwo\n", 0o644);
    file(project, "both.sh", "#!/bin/sh\n", 0o644);
    file(project, "mode.sh", "echo\n", 0o600);
    file(project, "gone.txt", "gone\n", 0o640);
    file(project, "old/a", "a", 0o644);
    file(project, "old/b/c", "c", 0o644);
    file(project, "file-to-dir", "file", 0o644);
    file(project, "dir-to-file/inner", "inner", 0o644);
    file(project, "link-to-file.target", "target", 0o644);
    symlink("link-to-file.target", project.join("link-to-file")).unwrap();
    symlink("edit.txt", project.join("link")).unwrap();
    fs::create_dir(project.join("private")).unwrap();
    file(project, "part.txt", "1\n2\n3\n4\n5\n", 0o644);
    file(project, "part.sh", "echo\n", 0o644);
    file(project, "sides.txt", "one\n2\n3\n", 0o644);
}

fn layer(upper: &Path) {
    file(upper, "edit.txt", "one\nTWO\n", 0o644);
    file(upper, "both.sh", "#!/bin/sh\nexit\n", 0o755);
    file(upper, "mode.sh", "echo\n", 0o700);
    whiteout(upper, "gone.txt");
    whiteout(upper, "old");
    file(upper, "file-to-dir/x/y", "y", 0o644);
    file(upper, "dir-to-file", "now a file", 0o644);
    file(upper, "link-to-file", "now a file, too", 0o644);
    symlink("both.sh", upper.join("link")).unwrap();
    symlink("nowhere", upper.join("new-link")).unwrap();
    file(upper, "new/deep/file.bin", "\0\u{1}", 0o755);
    fs::create_dir(upper.join("private")).unwrap();
    mode(&upper.join("private"), 0o700);
    file(upper, "part.txt", "one\n2\n3\nfour\n5\nsix\n", 0o755);
    file(upper, "part.sh", "exit\n", 0o755);
    file(upper, "sides.txt", "1\n2\nthree\n", 0o644);
}

/// What `sides.txt` comes to, of which the user changed the first line and the session the last one.
const SIDES: &str = "one\n2\nthree\n";

/// Of `part.txt` its first and last line and no mode, of `part.sh` its mode alone, of `sides.txt` what both
/// sides changed.
fn in_part(file: MergeFile) -> MergeFile {
    let splice = |at, cut, from, take| Splice { at, cut, from, take };
    let (mode, splices, text) = match file.path.0.rsplit('/').next() {
        Some("part.txt") => (0o644, vec![splice(0, 2, 0, 4), splice(10, 0, 15, 4)], "one\n2\n3\n4\n5\nsix\n"),
        Some("part.sh") => (0o755, Vec::new(), "echo\n"),
        Some("sides.txt") => (0o644, vec![splice(6, 2, 4, 6)], SIDES),
        _ => return file,
    };
    let rebases = text == SIDES;
    let part = file.new.map(|of| Part { of, mode, splices, rebases });
    MergeFile { new: Some(file_state(mode, text.as_bytes())), part, ..file }
}

struct Yard {
    dir: tempfile::TempDir,
    request: Merge,
    /// Whether its files wait for the disk together.
    is_batch: bool,
}

impl Yard {
    fn new() -> Self {
        let near = Path::new("/dev/shm");
        let dir = if near.is_dir() { tempfile::tempdir_in(near) } else { tempfile::tempdir() }.unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        fs::create_dir(dir.path().join("upper")).unwrap();
        before(&dir.path().join("project"));
        layer(&dir.path().join("upper"));
        let report = diff::diff(&text(&dir, "upper"), &text(&dir, "project"), false, &[], None).unwrap();
        let files = report.files.iter().map(|file| {
            assert_eq!(file.refused, None, "{:?}", file.path);
            let state =
                |side: &Option<bailey_protocol::outcome::FileState>| side.as_ref().map(|side| side.state);
            in_part(MergeFile::whole(file.path.clone(), state(&file.old), state(&file.new)))
        });
        let request = Merge::of_files(MergeKind::Apply, None, files.collect());
        Self { dir, request, is_batch: false }
    }

    fn batch(is_batch: bool) -> Self {
        Self { is_batch, ..Self::new() }
    }

    fn run(&self, direction: MergeKind, fuse: Option<u32>) -> (Option<Vec<MergeResult>>, bool) {
        let disk = Disk::of_batch(self.is_batch);
        disk.fuse.set(fuse);
        let request = Merge { direction, ..self.request.clone() };
        let (upper, project) = (text(&self.dir, "upper"), text(&self.dir, "project"));
        let result = run(&disk, &request, &upper, &project, &text(&self.dir, "backup"));
        (result.ok(), disk.fuse.get() == Some(0))
    }

    fn whole(&self, direction: MergeKind) {
        let (results, _) = self.run(direction, None);
        for result in results.unwrap() {
            assert!(matches!(result.state, MergeState::Done | MergeState::Already), "{result:?}");
        }
    }

    /// The layer has what both sides came to, and nothing on its way.
    fn is_rebased(&self, n: u32) {
        let upper = snapshot(&self.dir.path().join("upper"));
        assert_eq!(upper["sides.txt"], format!("file 644 {SIDES}"), "stopped before operation {n}");
        let passing = upper.keys().find(|path| path.contains(".bailey-merge-"));
        assert_eq!(passing, None, "stopped before operation {n}");
    }

    fn snapshot(&self) -> BTreeMap<String, String> {
        snapshot(&self.dir.path().join("project"))
    }
}

#[test]
fn an_apply_gives_what_the_layer_shows_and_an_undo_gives_it_back() {
    let yard = Yard::new();
    let old = yard.snapshot();
    yard.whole(MergeKind::Apply);
    let new = yard.snapshot();
    assert_eq!(new, expected());
    yard.whole(MergeKind::Undo);
    assert_eq!(yard.snapshot(), old);
}

#[test]
fn an_apply_stopped_anywhere_and_run_again_ends_the_same() {
    for is_batch in [false, true] {
        let old = Yard::new().snapshot();
        let stops = every_stop(|n| {
            let yard = Yard::batch(is_batch);
            let (_, stopped) = yard.run(MergeKind::Apply, Some(n));
            each_is_old_or_new(&yard.snapshot(), &old, n);
            yard.whole(MergeKind::Apply);
            assert_eq!(yard.snapshot(), expected(), "stopped before operation {n}");
            yard.is_rebased(n);
            yard.whole(MergeKind::Undo);
            assert_eq!(yard.snapshot(), old, "stopped before operation {n}, then undone");
            stopped
        });
        assert!(stops > 60, "only {stops} operations");
    }
}

#[test]
fn an_apply_stopped_anywhere_can_be_undone_at_once() {
    for is_batch in [false, true] {
        let old = Yard::new().snapshot();
        every_stop(|n| {
            let yard = Yard::batch(is_batch);
            let (_, stopped) = yard.run(MergeKind::Apply, Some(n));
            yard.whole(MergeKind::Undo);
            assert_eq!(yard.snapshot(), old, "stopped before operation {n}");
            stopped
        });
    }
}

#[test]
fn an_undo_without_the_backup_says_so_and_touches_nothing() {
    let yard = Yard::new();
    yard.whole(MergeKind::Apply);
    fs::remove_dir_all(yard.dir.path().join("backup")).unwrap();
    let (results, _) = yard.run(MergeKind::Undo, None);
    for result in results.unwrap() {
        assert!(
            matches!(&result.state, MergeState::Failed { reason } if reason.contains("missing")),
            "{result:?}"
        );
    }
    assert_eq!(yard.snapshot(), expected());
}

#[test]
fn an_undo_stopped_anywhere_and_run_again_ends_the_same() {
    for is_batch in [false, true] {
        let old = Yard::new().snapshot();
        let stops = every_stop(|n| {
            let yard = Yard::batch(is_batch);
            yard.whole(MergeKind::Apply);
            let (_, stopped) = yard.run(MergeKind::Undo, Some(n));
            yard.whole(MergeKind::Undo);
            assert_eq!(yard.snapshot(), old, "stopped before operation {n}");
            stopped
        });
        assert!(stops > 40, "only {stops} operations");
    }
}

/// What was applied in part is no longer different, and the rest is, at the same place of the file.
#[test]
fn the_rest_of_a_file_is_left_to_another_apply() {
    let yard = Yard::new();
    let old = yard.snapshot();
    yard.whole(MergeKind::Apply);
    let left = |yard: &Yard| {
        let report =
            diff::diff(&text(&yard.dir, "upper"), &text(&yard.dir, "project"), false, &[], None).unwrap();
        report.files
    };
    let files = left(&yard);
    let names: Vec<&str> = files.iter().map(|file| file.path.0.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["part.sh", "part.txt"]);
    let state = |side: &Option<bailey_protocol::outcome::FileState>| side.as_ref().map(|side| side.state);
    let rest =
        files.iter().map(|file| MergeFile::whole(file.path.clone(), state(&file.old), state(&file.new)));
    let rest = Merge::of_files(MergeKind::Apply, None, rest.collect());
    let (upper, project) = (text(&yard.dir, "upper"), text(&yard.dir, "project"));
    let second = text(&yard.dir, "second");
    let results = run(&Disk::default(), &rest, &upper, &project, &second).unwrap();
    assert!(results.iter().all(|result| result.state == MergeState::Done), "{results:?}");
    assert_eq!(left(&yard), []);
    // The last one first, as an undo after an undo does it.
    let back = Merge { direction: MergeKind::Undo, ..rest };
    run(&Disk::default(), &back, &upper, &project, &second).unwrap();
    assert_eq!(yard.snapshot(), expected());
    yard.whole(MergeKind::Undo);
    assert_eq!(yard.snapshot(), old);
}

/// The user writes to every file while the merge lies dead: nothing of that is ever lost.
#[test]
fn what_the_user_writes_between_a_stop_and_the_next_run_is_kept() {
    for is_batch in [false, true] {
        every_stop(|n| {
            let yard = Yard::batch(is_batch);
            let project = yard.dir.path().join("project");
            let (_, stopped) = yard.run(MergeKind::Apply, Some(n));
            for name in ["edit.txt", "both.sh", "gone.txt"] {
                fs::write(project.join(name), format!("the user's {name}")).unwrap();
            }
            yard.run(MergeKind::Apply, None).0.unwrap();
            yard.run(MergeKind::Undo, None).0.unwrap();
            for name in ["edit.txt", "both.sh", "gone.txt"] {
                let kept = fs::read_to_string(project.join(name)).unwrap();
                assert_eq!(kept, format!("the user's {name}"), "stopped before operation {n}");
            }
            stopped
        });
    }
}

#[test]
fn a_second_run_never_replaces_a_backup() {
    let yard = Yard::new();
    yard.whole(MergeKind::Apply);
    let backups = snapshot(&yard.dir.path().join("backup"));
    fs::write(yard.dir.path().join("project/edit.txt"), "later").unwrap();
    yard.run(MergeKind::Apply, None);
    assert_eq!(snapshot(&yard.dir.path().join("backup")), backups);
}

#[test]
fn a_displaced_write_of_the_user_is_put_back() {
    // As if the merge had died right after the exchange, and the user had written in the instant before it.
    let yard = Yard::new();
    let project = yard.dir.path().join("project");
    let n = yard.request.files.iter().position(|file| file.path.0.ends_with("/edit.txt")).unwrap();
    yard.whole(MergeKind::Apply);
    let passing = project.join(format!(".bailey-merge-backup-{n}"));
    fs::write(&passing, "the user's last words").unwrap();
    let (results, _) = yard.run(MergeKind::Apply, None);
    assert!(matches!(results.unwrap()[n].state, MergeState::Conflict { .. }));
    assert_eq!(fs::read_to_string(project.join("edit.txt")).unwrap(), "the user's last words");
    assert!(!passing.exists());
}

#[test]
fn what_is_still_written_when_it_is_displaced_is_put_back() {
    let mut yard = Yard::new();
    yard.request.files.retain(|file| file.path.0.ends_with("/edit.txt"));
    let project = yard.dir.path().join("project");
    // Whoever writes has it open, and makes it so large that it cannot be read.
    let writer = fs::File::options().write(true).open(project.join("edit.txt")).unwrap();
    let disk = Disk::of_batch(false);
    *disk.then.borrow_mut() = Some(Box::new(move || writer.set_len(1 << 36).unwrap()));
    let (upper, to) = (text(&yard.dir, "upper"), text(&yard.dir, "project"));
    let results = run(&disk, &yard.request, &upper, &to, &text(&yard.dir, "backup")).unwrap();
    assert!(disk.then.borrow().is_none(), "there was an exchange");
    assert!(!matches!(results[0].state, MergeState::Done | MergeState::Already), "{results:?}");
    assert_eq!(fs::metadata(project.join("edit.txt")).unwrap().len(), 1 << 36);
    let left: Vec<_> = fs::read_dir(&project).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".bailey")), "{left:?}");
}

#[test]
fn a_discard_stopped_anywhere_and_run_again_empties_the_layer() {
    every_stop(|n| {
        let yard = Yard::new();
        let old = yard.snapshot();
        let (_, stopped) = yard.run(MergeKind::Discard, Some(n));
        yard.whole(MergeKind::Discard);
        assert_eq!(fs::read_dir(yard.dir.path().join("upper")).unwrap().count(), 0);
        assert_eq!(yard.snapshot(), old);
        stopped
    });
}

/// What the project holds after the apply: the layer's view, written down by hand.
fn expected() -> BTreeMap<String, String> {
    let lines = [
        ("both.sh", "file 755 #!/bin/sh\nexit\n"),
        ("dir-to-file", "file 644 now a file"),
        ("edit.txt", "file 644 one\nTWO\n"),
        ("file-to-dir", "dir 755"),
        ("file-to-dir/x", "dir 755"),
        ("file-to-dir/x/y", "file 644 y"),
        ("link", "link both.sh"),
        ("link-to-file", "file 644 now a file, too"),
        ("link-to-file.target", "file 644 target"),
        ("mode.sh", "file 700 echo\n"),
        ("new", "dir 755"),
        ("new-link", "link nowhere"),
        ("new/deep", "dir 755"),
        ("new/deep/file.bin", "file 755 \0\u{1}"),
        ("part.sh", "file 755 echo\n"),
        ("part.txt", "file 644 one\n2\n3\n4\n5\nsix\n"),
        ("private", "dir 700"),
        ("sides.txt", "file 644 one\n2\nthree\n"),
    ];
    lines.into_iter().map(|(path, what)| (path.into(), what.into())).collect()
}

/// Runs with a stop before operation 0, 1, 2 and so on until nothing is stopped any more.
fn every_stop(one: impl Fn(u32) -> bool) -> u32 {
    (0..2_000).find(|n| !one(*n)).unwrap()
}

/// No torn file, ever, under a name of the project.
fn each_is_old_or_new(now: &BTreeMap<String, String>, old: &BTreeMap<String, String>, n: u32) {
    let new = expected();
    for (path, what) in now.iter().filter(|(path, _)| !path.contains(".bailey-merge-")) {
        let whole = old.get(path) == Some(what) || new.get(path) == Some(what);
        assert!(whole, "stopped before operation {n}: {path} is {what:?}");
    }
}

fn text(dir: &tempfile::TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().into()
}

fn file(root: &Path, at: &str, content: &str, bits: u32) {
    let path = root.join(at);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    mode(&path, bits);
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

fn whiteout(root: &Path, at: &str) {
    file(root, at, "", 0o644);
    rustix::fs::setxattr(root.join(at), "user.overlay.whiteout", b"y", rustix::fs::XattrFlags::empty())
        .unwrap();
}

fn snapshot(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let bits = meta.permissions().mode() & 0o7777;
            let what = if meta.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else if meta.is_dir() {
                pending.push(path.clone());
                format!("dir {bits:o}")
            } else {
                format!("file {bits:o} {}", String::from_utf8_lossy(&fs::read(&path).unwrap()))
            };
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), what);
        }
    }
    found
}
