use super::{Places, settle};
use crate::worker::diff::diff;
use bailey_protocol::{FileDiff, WsPath};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let scene = Self { dir: tempfile::tempdir().unwrap() };
        for part in ["project", "copy", "upper"] {
            fs::create_dir(scene.at(part)).unwrap();
        }
        files.iter().for_each(|(path, text)| scene.write(&format!("project/{path}"), text));
        scene.settle();
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn text(&self, path: &str) -> String {
        self.at(path).display().to_string()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    fn settle(&self) {
        self.settle_with(&[], false);
    }

    fn settle_with(&self, own: &[&str], anew: bool) {
        let (project, copy, upper, record) =
            (self.text("project"), self.text("copy"), self.text("upper"), self.text("record"));
        let places = Places { project: &project, copy: &copy, upper: &upper, record: &record };
        let paths = |all: &[&str]| all.iter().map(|at| WsPath(format!("{project}/{at}"))).collect::<Vec<_>>();
        settle(&places, &[".env".into()], &paths(own), anew).unwrap();
    }

    fn diff(&self) -> Vec<FileDiff> {
        self.settle();
        diff(&self.text("upper"), &self.text("project"), true, None).unwrap().files
    }

    /// What a diff tells: each path with `+`, `-` or `~`.
    fn changes(&self) -> Vec<String> {
        let project = self.text("project");
        let line = |file: &FileDiff| {
            let mark = match (&file.old, &file.new) {
                (None, _) => '+',
                (_, None) => '-',
                _ => '~',
            };
            format!("{mark}{}", file.path.relative_to(&project).unwrap())
        };
        self.diff().iter().map(line).collect()
    }
}

#[test]
fn what_the_session_changes_is_laid_out_as_a_layer() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b/c.txt", "c\n"), ("b/d.txt", "d\n"), ("e.txt", "e\n")]);
    assert_eq!(scene.read("copy/b/c.txt").as_deref(), Some("c\n"));
    assert!(scene.changes().is_empty(), "the control: {:?}", scene.changes());
    scene.write("copy/a.txt", "changed\n");
    scene.write("copy/new/deep.txt", "new\n");
    fs::remove_file(scene.at("copy/b/d.txt")).unwrap();
    symlink("a.txt", scene.at("copy/link")).unwrap();
    fs::set_permissions(scene.at("copy/e.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    let told = ["~a.txt", "-b/d.txt", "~e.txt", "+link", "+new", "+new/deep.txt"];
    assert!(scene.diff().iter().all(|file| file.remarks.is_empty()), "{:?}", scene.diff());
    assert_eq!(scene.changes(), told);
    assert_eq!(scene.changes(), told, "also when it is looked at again");
    assert_eq!(scene.read("project/a.txt").as_deref(), Some("a\n"));
    // Moved, and another kind of thing in its place.
    let scene = Scene::new(&[("b/c.txt", "c\n"), ("f", "f\n")]);
    fs::rename(scene.at("copy/b"), scene.at("copy/z")).unwrap();
    fs::remove_file(scene.at("copy/f")).unwrap();
    scene.write("copy/f/inside", "i\n");
    assert_eq!(scene.changes(), ["-b", "-b/c.txt", "~f", "+f/inside", "+z", "+z/c.txt"]);
}

#[test]
fn what_the_host_changes_comes_in_where_the_session_left_it_alone() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n"), ("d/c.txt", "c\n"), ("e/f.txt", "f\n")]);
    scene.write("copy/a.txt", "of the session\n");
    scene.write("project/a.txt", "of the host\n");
    scene.write("project/b.txt", "of the host\n");
    scene.write("project/n/new.txt", "of the host\n");
    scene.write("copy/e/own.txt", "own\n");
    fs::remove_dir_all(scene.at("project/d")).unwrap();
    fs::remove_dir_all(scene.at("project/e")).unwrap();
    assert_eq!(scene.changes(), ["~a.txt", "+e", "+e/own.txt"]);
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("of the session\n"), "its own is kept");
    assert_eq!(scene.read("copy/b.txt").as_deref(), Some("of the host\n"));
    assert_eq!(scene.read("copy/n/new.txt").as_deref(), Some("of the host\n"));
    assert!(!scene.at("copy/d").exists() && !scene.at("copy/e/f.txt").exists());
}

#[test]
fn an_apply_leaves_nothing_to_tell_an_undo_leaves_all_and_a_discard_takes_it() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    scene.write("copy/a.txt", "changed\n");
    fs::remove_file(scene.at("copy/b.txt")).unwrap();
    assert_eq!(scene.changes(), ["~a.txt", "-b.txt"]);
    scene.write("project/a.txt", "changed\n");
    fs::remove_file(scene.at("project/b.txt")).unwrap();
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
    scene.write("project/a.txt", "a\n");
    scene.write("project/b.txt", "b\n");
    scene.settle_with(&["a.txt", "b.txt"], false);
    assert!(scene.changes().contains(&"~a.txt".to_owned()), "{:?}", scene.changes());
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("changed\n"));
    scene.write("copy/x/y.txt", "y\n");
    scene.settle_with(&[], true);
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("a\n"));
    assert!(!scene.at("copy/x").exists());
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
}

#[test]
fn secrets_devices_and_links_out_are_no_way_in_or_out() {
    let scene = Scene::new(&[("a.txt", "a\n"), (".env", "KEY=1\n"), ("sub/.env", "KEY=2\n")]);
    assert!(!scene.at("copy/.env").exists() && !scene.at("copy/sub/.env").exists());
    assert!(scene.at("copy/sub").exists(), "the control");
    // A directory of the session's that leads elsewhere: nothing is written through it.
    let outside = scene.at("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir_all(scene.at("copy/sub")).unwrap();
    symlink(&outside, scene.at("copy/sub")).unwrap();
    scene.write("project/sub/new.txt", "new\n");
    assert_eq!(scene.changes().first().map(String::as_str), Some("~sub"));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_torn_record_is_an_error_and_loses_nothing() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    scene.write("copy/a.txt", "changed\n");
    scene.write("record", "{\"a.txt\":");
    let (project, copy, upper, record) =
        (scene.text("project"), scene.text("copy"), scene.text("upper"), scene.text("record"));
    let places = Places { project: &project, copy: &copy, upper: &upper, record: &record };
    assert!(settle(&places, &[], &[], false).unwrap_err().to_string().contains("no record"));
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("changed\n"));
}

#[test]
fn what_a_session_locks_or_puts_in_the_way_stops_nothing() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("d/b.txt", "b\n")]);
    fs::set_permissions(scene.at("copy/d"), fs::Permissions::from_mode(0o000)).unwrap();
    // What was on its way to `a.txt` when somebody was killed, or what the session put there.
    symlink(scene.at("project/d/b.txt"), scene.at("copy/.bailey-copy")).unwrap();
    scene.write("project/a.txt", "of the host\n");
    scene.write("project/d/c.txt", "of the host\n");
    assert_eq!(scene.changes(), ["~d"]);
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("of the host\n"));
    assert_eq!(scene.read("copy/d/c.txt").as_deref(), Some("of the host\n"));
    assert_eq!(scene.read("project/d/b.txt").as_deref(), Some("b\n"), "nothing was written through the link");
}

#[test]
fn what_was_deleted_stays_deleted_when_something_else_comes_in_its_place() {
    let scene = Scene::new(&[("d/x", "x\n"), ("e/y", "y\n")]);
    fs::remove_dir_all(scene.at("copy/d")).unwrap();
    scene.write("copy/d", "a file\n");
    fs::remove_dir_all(scene.at("copy/e")).unwrap();
    assert_eq!(scene.changes(), ["~d", "-d/x", "-e", "-e/y"]);
    fs::remove_file(scene.at("copy/d")).unwrap();
    fs::create_dir(scene.at("copy/d")).unwrap();
    fs::create_dir(scene.at("copy/e")).unwrap();
    assert_eq!(scene.changes(), ["-d/x", "-e/y"]);
    assert!(!scene.at("copy/d/x").exists() && !scene.at("copy/e/y").exists());
}

#[test]
fn another_kind_of_thing_of_the_hosts_comes_in_too() {
    let scene = Scene::new(&[("a", "a\n"), ("d/x", "x\n"), ("k/x", "x\n")]);
    fs::remove_file(scene.at("project/a")).unwrap();
    scene.write("project/a/b", "b\n");
    for dir in ["d", "k"] {
        fs::remove_dir_all(scene.at(&format!("project/{dir}"))).unwrap();
        scene.write(&format!("project/{dir}"), "a file\n");
    }
    scene.write("copy/k/own", "own\n");
    assert_eq!(scene.changes(), ["~k", "+k/own"]);
    assert_eq!(scene.read("copy/a/b").as_deref(), Some("b\n"));
    assert_eq!(scene.read("copy/d").as_deref(), Some("a file\n"));
}

#[test]
fn a_secret_of_the_projects_is_neither_shown_nor_replaced() {
    let scene = Scene::new(&[(".env", "SECRET=canary\n"), ("b.txt", "b\n")]);
    scene.write("copy/.env", "SECRET=changed\n");
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
    assert_eq!(scene.read("copy/.env").as_deref(), Some("SECRET=changed\n"), "it stays with the session");
    // The control: where the project has none, what the session makes is its own to give.
    fs::remove_file(scene.at("project/.env")).unwrap();
    assert_eq!(scene.changes(), ["+.env"]);
}

#[test]
fn an_empty_file_that_says_it_is_deleted_is_an_empty_file() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    scene.write("copy/a.txt", "");
    let file = fs::File::options().write(true).open(scene.at("copy/a.txt")).unwrap();
    rustix::fs::fsetxattr(&file, "user.overlay.whiteout", b"y", rustix::fs::XattrFlags::empty()).unwrap();
    assert_eq!(scene.changes(), ["~a.txt"]);
}

#[test]
fn what_is_too_deep_too_long_or_unreadable_stops_nothing_and_is_thrown_away_with_the_rest() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let mut deep = fs::File::open(scene.at("copy")).unwrap();
    for _ in 0..2_000 {
        rustix::fs::mkdirat(&deep, "deeper", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        deep = rustix::fs::openat(&deep, "deeper", flags, rustix::fs::Mode::empty()).unwrap().into();
    }
    fs::set_permissions(scene.at("copy/a.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::File::options().write(true).open(scene.at("copy/b.txt")).unwrap().set_len(1_100 << 20).unwrap();
    fs::set_permissions(scene.at("copy"), fs::Permissions::from_mode(0o000)).unwrap();
    scene.settle();
    scene.settle_with(&[], true);
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
    assert!(!scene.at("copy/deeper").exists());
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("a\n"));
}
