use super::{CopyPaths, settle};
use crate::worker::diff::diff;
use crate::worker::error::Error;
use bailey_protocol::{FileDiff, WsPath};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
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
        self.try_settle(own, anew).unwrap();
    }

    fn try_settle(&self, own: &[&str], anew: bool) -> Result<(), Error> {
        let (project, copy, upper, record) =
            (self.text("project"), self.text("copy"), self.text("upper"), self.text("record"));
        let places = CopyPaths { project: &project, copy: &copy, upper: &upper, record: &record };
        let paths = |all: &[&str]| all.iter().map(|at| WsPath(format!("{project}/{at}"))).collect::<Vec<_>>();
        settle(&places, &[".env".into()], &paths(own), anew)
    }

    fn diff(&self) -> Vec<FileDiff> {
        self.settle();
        diff(&self.text("upper"), &self.text("project"), true, &[], None).unwrap().files
    }

    /// What a diff tells: each path with `+`, `-` or `~`, and with `!` where it stays.
    fn changes(&self) -> Vec<String> {
        let project = self.text("project");
        let line = |file: &FileDiff| {
            let mark = match (&file.old, &file.new) {
                _ if file.refused.is_some() => '!',
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

/// What an undo gave back as deleted came into the copy again, and a directory had the project's mode.
#[test]
fn an_apply_leaves_nothing_to_tell_an_undo_leaves_all_and_a_discard_takes_it() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n"), ("d/x", "x\n"), ("gone/deep/y", "y\n")]);
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(scene.at(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("project/d", 0o755);
    scene.settle();
    let change = |part: &str| {
        let at = |path: &str| format!("{part}/{path}");
        scene.write(&at("a.txt"), "changed\n");
        fs::remove_file(scene.at(&at("b.txt"))).unwrap();
        mode(&at("d"), 0o750);
        fs::remove_dir_all(scene.at(&at("gone"))).unwrap();
        fs::create_dir_all(scene.at(&at("new/empty"))).unwrap();
    };
    change("copy");
    let told = ["~a.txt", "-b.txt", "~d", "-gone", "-gone/deep", "-gone/deep/y", "+new", "+new/empty"];
    assert_eq!(scene.changes(), told);
    change("project");
    assert!(scene.changes().is_empty(), "applied: {:?}", scene.changes());
    let own = told.map(|line| &line[1..]);
    // Also where nobody is left to say it once more when the undo is over.
    for is_cut_off in [false, true] {
        scene.settle_with(&own, false);
        scene.write("project/a.txt", "a\n");
        scene.write("project/b.txt", "b\n");
        mode("project/d", 0o755);
        scene.write("project/gone/deep/y", "y\n");
        fs::remove_dir_all(scene.at("project/new")).unwrap();
        if !is_cut_off {
            scene.settle_with(&own, false);
        }
        for _ in 0..2 {
            assert_eq!(scene.changes(), told, "{is_cut_off}");
        }
        assert!(!scene.at("record.own").exists());
        assert_eq!(scene.read("copy/a.txt").as_deref(), Some("changed\n"));
        change("project");
        assert!(scene.changes().is_empty(), "{:?}", scene.changes());
    }
    // The control: what the host does is no undo.
    scene.write("project/a.txt", "of the host\n");
    scene.write("project/b.txt", "b\n");
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("of the host\n"));
    scene.write("copy/x/y.txt", "y\n");
    scene.settle_with(&["a.txt", "d"], false);
    scene.settle_with(&[], true);
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("of the host\n"));
    assert!(!scene.at("copy/x").exists());
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
}

/// The names of a directory were cut, and what was cut taken for gone.
#[test]
fn a_directory_of_more_files_than_a_copy_holds_is_an_error() {
    let scene = Scene::new(&[("d/x", "x\n"), ("a.txt", "a\n")]);
    fs::remove_dir_all(scene.at("copy/d")).unwrap();
    assert_eq!(scene.changes(), ["-d", "-d/x"], "the control");
    (0..super::PATHS_MAX).for_each(|number| drop(fs::File::create(scene.at(&format!("project/d/{number}")))));
    let said = || scene.try_settle(&[], false).unwrap_err().to_string();
    assert!(said().contains("more than 200000 files"), "{}", said());
    fs::create_dir(scene.at("copy/d")).unwrap();
    assert!(said().contains("more than 200000 files"), "{}", said());
    assert!(fs::read_dir(scene.at("copy/d")).unwrap().next().is_none(), "it was looked at first");
}

/// A file on its way lay beside the copy, under a name that a project may have.
#[test]
fn a_project_may_have_any_name() {
    let scene = Scene::new(&[]);
    for name in ["project-of-mine", "copy.new", "copied.passing", "copied.new", "copy", "home"] {
        fs::create_dir_all(scene.at(&format!("copies/{name}"))).unwrap();
        scene.write(&format!("{name}-of-the-host/a.txt"), "a\n");
        let (project, copy) =
            (scene.text(&format!("{name}-of-the-host")), scene.text(&format!("copies/{name}")));
        let (upper, record) = (scene.text("upper"), scene.text(&format!("{name}-record")));
        settle(
            &CopyPaths { project: &project, copy: &copy, upper: &upper, record: &record },
            &[],
            &[],
            false,
        )
        .unwrap();
        assert_eq!(scene.read(&format!("copies/{name}/a.txt")).as_deref(), Some("a\n"), "{name}");
    }
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
    assert_eq!(scene.changes(), ["!sub"]);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_torn_record_is_an_error_and_loses_nothing() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    scene.write("copy/a.txt", "changed\n");
    scene.write("record", "{\"a.txt\":");
    let (project, copy, upper, record) =
        (scene.text("project"), scene.text("copy"), scene.text("upper"), scene.text("record"));
    let places = CopyPaths { project: &project, copy: &copy, upper: &upper, record: &record };
    assert!(settle(&places, &[], &[], false).unwrap_err().to_string().contains("no record"));
    assert_eq!(scene.read("copy/a.txt").as_deref(), Some("changed\n"));
}

#[test]
fn what_a_session_locks_or_puts_in_the_way_stops_nothing() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("d/b.txt", "b\n")]);
    fs::set_permissions(scene.at("copy/d"), fs::Permissions::from_mode(0o000)).unwrap();
    // What was on its way to `a.txt` when somebody was killed.
    scene.write(super::PASSING, "half\n");
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
    assert_eq!(scene.changes(), ["!.env"], "it stays with the session");
    assert_eq!(scene.read("copy/.env").as_deref(), Some("SECRET=changed\n"));
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

/// The whole directory was noted as deleted, so an apply would have deleted what the session was not shown,
/// and a diff showed it.
#[test]
fn a_secret_in_a_directory_that_the_session_removes_stays_with_that() {
    let files =
        [("d/x", "x\n"), ("d/.env", "KEY=1\n"), ("d/deep/y", "y\n"), ("e/x", "x\n"), ("f/.env", "KEY=1\n")];
    let scene = Scene::new(&files);
    for dir in ["d", "e", "f"] {
        fs::remove_dir_all(scene.at("copy").join(dir)).unwrap();
    }
    let told = ["-d/deep", "-d/deep/y", "-d/x", "-e", "-e/x"];
    assert_eq!(scene.changes(), told, "the second is the control");
    scene.write("project/e/of-the-host", "h\n");
    assert_eq!(scene.changes(), ["-d/deep", "-d/deep/y", "-d/x", "-e/x"]);
    // Applied, nothing is left to tell.
    fs::remove_dir_all(scene.at("project/d/deep")).unwrap();
    fs::remove_file(scene.at("project/d/x")).unwrap();
    fs::remove_file(scene.at("project/e/x")).unwrap();
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
    assert!(!scene.at("copy/d").exists());
    // What takes its place would delete it, too.
    scene.write("copy/d", "a file\n");
    scene.write("copy/g", "a file\n");
    assert_eq!(scene.changes(), ["!d", "+g"]);
    assert_eq!(scene.read("project/d/.env").as_deref(), Some("KEY=1\n"));
}

#[test]
fn what_a_diff_cannot_carry_is_named_and_stays() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("d/x", "x\n")]);
    let odd = |path: &str| {
        let mut name = scene.at("copy").join(path).into_os_string().into_encoded_bytes();
        name.push(b'\xff');
        PathBuf::from(std::ffi::OsString::from_vec(name))
    };
    fs::write(odd("odd"), "odd\n").unwrap();
    fs::create_dir_all(odd("d/dir").join("inner")).unwrap();
    fs::create_dir(scene.at("copy/new")).unwrap();
    symlink("a.txt", odd("new/link")).unwrap();
    scene.write("copy/.bailey-copy", "its own\n");
    let deep = format!("copy/{}", vec!["n"; 101].join("/"));
    fs::create_dir_all(scene.at(&deep)).unwrap();
    let told: Vec<String> = scene.changes().into_iter().filter(|line| !line.starts_with("+n/n")).collect();
    let expected = ["+.bailey-copy", "!d/dir\u{fffd}", "+n", "+new", "!new/link\u{fffd}", "!odd\u{fffd}"];
    let (stays, goes): (Vec<&String>, _) = told.iter().partition(|line| line.starts_with("!n/"));
    assert_eq!(goes, expected);
    assert_eq!(stays.len(), 1, "{told:?}");
    let diff = scene.diff();
    let why = |end: &str| {
        let file = diff.iter().find(|file| file.refused.is_some() && file.path.0.ends_with(end)).unwrap();
        file.refused.clone().unwrap_or_default()
    };
    assert!(why("odd\u{fffd}").contains("its name is not UTF-8"));
    assert!(why("/n/n").contains("lies too deep"));
    assert_eq!(scene.read("copy/.bailey-copy").as_deref(), Some("its own\n"), "what it made is still there");
}

#[test]
fn a_hole_is_copied_as_one() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let sparse = |path: &str, data: &[(u64, &str)], size: u64| {
        let file = fs::File::create(scene.at(path)).unwrap();
        data.iter().for_each(|(at, text)| file.write_all_at(text.as_bytes(), *at).unwrap());
        file.set_len(size).unwrap();
    };
    sparse("project/end", &[(0, "begin"), ((1 << 30) - 1024, "end")], 1 << 30);
    sparse("project/none", &[], 1 << 30);
    sparse("project/middle", &[(500_000, "middle")], 1 << 20);
    scene.settle();
    for (name, size) in [("end", 1 << 30), ("none", 1 << 30), ("middle", 1 << 20)] {
        let meta = fs::metadata(scene.at("copy").join(name)).unwrap();
        assert_eq!(meta.len(), size, "{name}");
        assert!(meta.blocks() * 512 < 1 << 20, "{name} takes {} bytes", meta.blocks() * 512);
    }
    let read = |path: &str, at: u64| {
        let mut bytes = [0; 6];
        fs::File::open(scene.at(path)).unwrap().read_exact_at(&mut bytes, at).unwrap();
        bytes
    };
    for (path, at) in [("end", 0), ("end", (1 << 30) - 1024), ("middle", 499_998), ("middle", 500_000)] {
        let (ours, theirs) = (format!("copy/{path}"), format!("project/{path}"));
        assert_eq!(read(&ours, at), read(&theirs, at), "{path} at {at}");
        assert_ne!(read(&ours, at), [0; 6], "the control");
    }
    assert!(scene.changes().is_empty(), "{:?}", scene.changes());
}

#[test]
fn an_attribute_that_the_session_sets_is_named_and_stays() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    rustix::fs::setxattr(scene.at("copy/a.txt"), "user.origin", b"x", rustix::fs::XattrFlags::empty())
        .unwrap();
    fs::set_permissions(scene.at("copy/b.txt"), fs::Permissions::from_mode(0o644)).unwrap();
    for _ in 0..2 {
        assert_eq!(scene.changes(), ["!a.txt"], "the other is the control");
    }
    assert!(scene.diff()[0].refused.as_ref().unwrap().contains("user.origin"));
}

/// The copy's directory can always be written; in the diff that was a change of its mode.
#[test]
fn a_directory_that_the_session_left_alone_keeps_its_mode() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    scene.write("project/d/e/x", "x\n");
    scene.write("project/d/y", "y\n");
    for dir in ["project/d/e", "project/d"] {
        fs::set_permissions(scene.at(dir), fs::Permissions::from_mode(0o555)).unwrap();
    }
    scene.settle();
    scene.write("copy/d/e/x", "changed\n");
    scene.write("copy/new/z", "z\n");
    for _ in 0..2 {
        assert_eq!(scene.changes(), ["~d/e/x", "+new", "+new/z"]);
    }
    fs::remove_dir_all(scene.at("copy/d/e")).unwrap();
    assert_eq!(scene.changes(), ["-d/e", "-d/e/x", "+new", "+new/z"]);
    // The control, which was told once and then forgotten.
    fs::set_permissions(scene.at("copy/d"), fs::Permissions::from_mode(0o750)).unwrap();
    for _ in 0..2 {
        assert_eq!(scene.changes().first().map(String::as_str), Some("~d"));
    }
    fs::set_permissions(scene.at("project/d"), fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(scene.changes(), ["-d/e", "-d/e/x", "+new", "+new/z"], "applied");
    for dir in ["project/d", "project/d/e"] {
        fs::set_permissions(scene.at(dir), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Neither the umask nor what the kernel leaves out at a directory's making is the session's doing; what the
/// session gives one arrives.
#[test]
fn a_directory_is_laid_out_with_the_whole_of_its_mode() {
    let scene = Scene::new(&[("shared/a", "a\n"), ("open/a", "a\n"), ("sticky/a", "a\n"), ("own/a", "a\n")]);
    let set = |at: &str, mode| fs::set_permissions(scene.at(at), fs::Permissions::from_mode(mode)).unwrap();
    for (at, mode) in [("shared", 0o2775), ("open", 0o777), ("sticky", 0o1777)] {
        set(&format!("project/{at}"), mode);
    }
    scene.settle();
    for at in ["shared", "open", "sticky"] {
        scene.write(&format!("copy/{at}/a"), "changed\n");
    }
    assert_eq!(scene.changes(), ["~open/a", "~shared/a", "~sticky/a"]);
    set("copy/own", 0o777);
    scene.write("copy/new/b", "b\n");
    set("copy/new", 0o2770);
    assert_eq!(scene.changes(), ["+new", "+new/b", "~open/a", "~own", "~shared/a", "~sticky/a"]);
    let mode = |at: &str| fs::metadata(scene.at(at)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("upper/own"), mode("upper/new")), (0o777, 0o2770));
}

/// Where a look of this test runs in a process of its own, which is killed.
const KILLED: &str = "BAILEY_TEST_KILLED_LOOK";

/// A look that is killed while it brings the host's changes leaves none of them as the session's, whatever
/// the host does before the next.
#[test]
fn a_look_that_was_killed_makes_nothing_the_sessions() {
    const FILES: usize = 4_000;
    let name = |number: usize| format!("d{}/f{number}", number % 7);
    if let Some(dir) = std::env::var_os(KILLED) {
        let dir = PathBuf::from(dir);
        let text = |part: &str| dir.join(part).display().to_string();
        let (project, copy, upper, record) = (text("project"), text("copy"), text("upper"), text("record"));
        let places = CopyPaths { project: &project, copy: &copy, upper: &upper, record: &record };
        return settle(&places, &[".env".into()], &[], false).unwrap();
    }
    let files: Vec<(String, String)> =
        (0..FILES).map(|number| (name(number), format!("{number}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let scene = Scene::new(&files);
    scene.write("copy/of-the-session", "own\n");
    scene.write("copy/d1/f1", "own\n");
    let mut rounds = 0;
    for round in 0..3 {
        // Some are other files, some are gone, and some are new.
        for number in (0..FILES).filter(|number| *number != 1) {
            let path = scene.at(&format!("project/{}", name(number)));
            match (number + round) % 3 {
                0 => drop(fs::remove_file(path)),
                1 => fs::write(path, format!("{number} in round {round}\n")).unwrap(),
                _ => fs::write(scene.at(&format!("project/{}-{round}", name(number))), "new\n").unwrap(),
            }
        }
        let mut look = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker::copy::tests::a_look_that_was_killed_makes_nothing_the_sessions"])
            .env(KILLED, scene.dir.path().canonicalize().unwrap())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let underway = scene.at("record.underway");
        while look.try_wait().unwrap().is_none() {
            if fs::metadata(&underway).is_ok_and(|log| log.len() > 5_000 * (round as u64 + 1)) {
                look.kill().unwrap();
                break;
            }
        }
        look.wait().unwrap();
        let log = fs::read(&underway).unwrap_or_default();
        let come_to: Vec<&str> =
            log.split(|byte| *byte == 0).filter_map(|at| std::str::from_utf8(at).ok()).collect();
        rounds += usize::from(come_to.len() > 100);
        // What it came to, the host changes once more: it takes away what came, and brings back what went.
        for (number, at) in come_to.iter().filter(|at| at.contains("/f")).enumerate() {
            let path = scene.at(&format!("project/{at}"));
            match (path.exists(), number % 2) {
                (true, 0) => fs::remove_file(path).unwrap(),
                _ => fs::write(path, "once more\n").unwrap(),
            }
        }
        assert_eq!(scene.changes(), ["~d1/f1", "+of-the-session"], "round {round}");
        assert!(!underway.exists());
        let theirs = |part: &str| -> Vec<(PathBuf, Vec<u8>)> {
            let mut all = Vec::new();
            for dir in (0..7).map(|dir| scene.at(&format!("{part}/d{dir}"))).filter(|dir| dir.exists()) {
                for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                    let path = entry.path().strip_prefix(scene.at(part)).unwrap().to_owned();
                    all.push((path, fs::read(entry.path()).unwrap()));
                }
            }
            all.retain(|(path, _)| path != std::path::Path::new("d1/f1"));
            all.sort();
            all
        };
        assert!(theirs("copy") == theirs("project"), "round {round}: copy and project are one again");
    }
    assert!(rounds > 0, "no look was killed in its middle");
}

/// A link more to a file is no change of it: laid out as another link, each look made it look changed by the
/// session, and an apply took back what the user had written.
#[test]
fn a_file_that_the_session_gave_another_name_is_still_the_projects() {
    let scene = Scene::new(&[("d/x", "x\n"), ("d/z", "z\n")]);
    fs::hard_link(scene.at("copy/d/x"), scene.at("copy/d/y")).unwrap();
    assert_eq!(scene.changes(), ["+d/y"]);
    assert_eq!(scene.read("upper/d/y").as_deref(), Some("x\n"));
    scene.write("project/d/x", "of the host\n");
    assert_eq!(scene.changes(), ["+d/y"], "once more");
    assert_eq!(scene.read("copy/d/x").as_deref(), Some("of the host\n"));
    assert_eq!(scene.read("copy/d/y").as_deref(), Some("x\n"));
    // The control: what it wrote is its own.
    scene.write("copy/d/x", "of the session\n");
    scene.write("project/d/x", "of the host, later\n");
    assert_eq!(scene.changes(), ["~d/x", "+d/y"]);
}

/// A process in the background makes and removes files while the others are looked at.
#[test]
fn what_is_gone_since_it_was_listed_stops_nothing() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let copy = scene.at("copy");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..50).cycle() {
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let file = copy.join(format!("j-{number}"));
                fs::write(&file, "junk\n").unwrap();
                fs::remove_file(&file).unwrap();
                let link = copy.join(format!("l-{number}"));
                symlink("a.txt", &link).unwrap();
                fs::remove_file(&link).unwrap();
                let dir = copy.join(format!("d-{number}"));
                fs::create_dir(&dir).unwrap();
                fs::write(dir.join("inner"), "junk\n").unwrap();
                fs::remove_dir_all(&dir).unwrap();
            }
        });
        let looks: Vec<_> = (0..500).map(|_| scene.try_settle(&[], false).err()).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(looks.iter().all(Option::is_none), "{:?}", looks.iter().flatten().next());
    });
    assert!(scene.changes().is_empty());
}

/// To bring a large file takes its time, in which a process in the background may write it.
#[test]
fn what_the_session_writes_while_the_hosts_is_brought_is_kept() {
    let scene = Scene::new(&[("big", "old\n")]);
    fs::write(scene.at("project/big"), vec![b'h'; 256 << 20]).unwrap();
    let passing = scene.at(super::PASSING);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !passing.exists() {
                std::hint::spin_loop();
            }
            scene.write("copy/big", "of the session\n");
        });
        scene.settle();
    });
    assert!(scene.read("copy/big").as_deref() == Some("of the session\n"));
    assert_eq!(scene.changes(), ["~big"]);
}

/// Beneath a link nothing lies: neither side's link is gone through, and neither ends a session.
#[test]
fn a_link_that_becomes_a_directory_on_either_side_is_a_change_like_any_other() {
    let scene = Scene::new(&[("real/x", "x\n"), ("f", "f\n")]);
    for name in ["pkg", "lib"] {
        symlink("real", scene.at(&format!("project/{name}"))).unwrap();
    }
    scene.settle();
    fs::remove_file(scene.at("copy/pkg")).unwrap();
    scene.write("copy/pkg/x", "of the session\n");
    assert_eq!(scene.changes(), ["~pkg", "+pkg/x"]);
    // The user does the same to another one, and back.
    fs::remove_file(scene.at("project/lib")).unwrap();
    scene.write("project/lib/y", "of the host\n");
    assert_eq!(scene.changes(), ["~pkg", "+pkg/x"]);
    assert_eq!(scene.read("copy/lib/y").as_deref(), Some("of the host\n"));
    fs::remove_dir_all(scene.at("project/lib")).unwrap();
    symlink("real", scene.at("project/lib")).unwrap();
    assert_eq!(scene.changes(), ["~pkg", "+pkg/x"]);
    assert_eq!(fs::read_link(scene.at("copy/lib")).unwrap().to_str(), Some("real"));
    // And where the session works in a directory that the user makes a link of.
    scene.write("copy/real/new", "of the session\n");
    fs::rename(scene.at("project/real"), scene.at("project/moved")).unwrap();
    symlink("moved", scene.at("project/real")).unwrap();
    assert!(scene.changes().contains(&"+real/new".to_owned()), "{:?}", scene.changes());
    assert_eq!(scene.read("project/moved/x").as_deref(), Some("x\n"));
}
