//! A repository made by hand, a hand-over made by hand, and the world stopped before each operation on the
//! disk.

use super::*;
use crate::worker::Carried;
use std::{collections::BTreeMap, fs, path::Path};

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";
const NONE: &str = "0000000000000000000000000000000000000000";
/// Of `a` and a line's end.
const BLOB: &str = "78981922613b2afb6025042ff6bd878ac1994e85";

struct Yard {
    dir: tempfile::TempDir,
}

/// An index, as git writes one, of this one path.
fn index_of(path: &str) -> Vec<u8> {
    let mut bytes = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &1_u32.to_be_bytes()].concat();
    let start = bytes.len();
    bytes.extend([0; 60]);
    bytes.extend(u16::try_from(path.len()).unwrap().to_be_bytes());
    bytes.extend(path.as_bytes());
    bytes.resize(bytes.len() + 8 - (bytes.len() - start) % 8, 0);
    bytes.extend([0; 20]);
    bytes
}

impl Yard {
    fn new() -> Self {
        let yard = Self { dir: tempfile::tempdir().unwrap() };
        yard.write("project/.git/HEAD", b"ref: refs/heads/main\n");
        yard.write("project/.git/config", b"[core]\n");
        yard.write("project/.git/refs/heads/main", format!("{OLD}\n").as_bytes());
        yard.write("project/.git/index", &index_of("old.txt"));
        yard.write("project/.git/objects/pack/pack-old.pack", b"old");
        yard.write("project/a.txt", b"a\n");
        yard.write("upper/a.txt", b"a\n");
        yard.write("handover/clean/base", &index_of("old.txt"));
        yard.write("handover/clean/index", &index_of("new.txt"));
        yard.write("handover/clean/paths", format!(":000000 100644 {NONE} {BLOB} A\0a.txt\0").as_bytes());
        for end in ["pack", "idx"] {
            yard.write(&format!("handover/clean/objects/pack/pack-{NEW}.{end}"), end.as_bytes());
        }
        yard
    }

    fn write(&self, at: &str, bytes: &[u8]) {
        let path = self.dir.path().join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn read(&self, at: &str) -> Option<Vec<u8>> {
        fs::read(self.dir.path().join(at)).ok()
    }

    fn text(&self, at: &str) -> String {
        self.dir.path().join(at).display().to_string()
    }

    fn run(&self, direction: MergeKind, tip: &Tip, fate: Fate, fuse: Option<u32>) -> (TipResult, bool) {
        let disk = Disk::of_batch(false);
        disk.fuse.set(fuse);
        let layer = Layer::open(&self.text("upper"), &self.text("project")).unwrap();
        let carried = Carried { folder: self.text("handover"), fates: vec![fate] };
        let tips = Tips { disk: &disk, layer: &layer, carried: &carried, tag: "tag", direction };
        let mut results = tips.all(std::slice::from_ref(tip));
        (results.remove(0), disk.fuse.get() == Some(0))
    }

    fn done(&self, direction: MergeKind, tip: &Tip) -> TipResult {
        self.run(direction, tip, Fate::Ready, None).0
    }

    /// Everything in the project.
    fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        fn walk(dir: &Path, tree: &mut BTreeMap<String, Vec<u8>>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, tree);
                } else {
                    tree.insert(path.display().to_string(), fs::read(path).unwrap());
                }
            }
        }
        let mut tree = BTreeMap::new();
        walk(&self.dir.path().join("project"), &mut tree);
        tree
    }
}

fn main_branch() -> Tip {
    let aside = Some("refs/bailey/1/main".into());
    Tip { name: "refs/heads/main".into(), old: Some(OLD.into()), new: NEW.into(), aside }
}

fn is_passing(path: &str) -> bool {
    path.contains(".bailey-merge-") || path.ends_with(".lock")
}

#[test]
fn whoever_is_killed_at_any_step_leaves_a_whole_repository_and_the_next_run_ends_the_work() {
    let tip = main_branch();
    for direction in [MergeKind::Apply, MergeKind::Undo] {
        let start = || {
            let yard = Yard::new();
            if direction == MergeKind::Undo {
                yard.done(MergeKind::Apply, &tip);
                yard.write("handover/clean/base", &index_of("new.txt"));
                yard.write("handover/clean/index", &index_of("old.txt"));
            }
            yard
        };
        let (from, to) = if direction == MergeKind::Undo { (NEW, OLD) } else { (OLD, NEW) };
        let mut steps = 0;
        loop {
            let yard = start();
            let base = yard.read("project/.git/index");
            let (_, died) = yard.run(direction, &tip, Fate::Ready, Some(steps));
            let reference = String::from_utf8(yard.read("project/.git/refs/heads/main").unwrap()).unwrap();
            let index = yard.read("project/.git/index");
            assert!([from, to].contains(&reference.trim_end()), "step {steps}: {reference}");
            assert!(index == base || index == yard.read("handover/clean/index"), "step {steps}");
            if reference.trim_end() == to {
                assert_eq!(index, yard.read("handover/clean/index"), "step {steps}: the index comes first");
            }
            for (end, bytes) in [("pack", b"pack".as_slice()), ("idx", b"idx")] {
                let found = yard.read(&format!("project/.git/objects/pack/pack-{NEW}.{end}"));
                assert!(found.is_none_or(|found| found == bytes), "step {steps}: a torn pack");
            }
            // Whoever makes ready again starts from the index that is there now.
            yard.write("handover/clean/base", &index.unwrap());
            let result = yard.done(direction, &tip);
            assert!(
                matches!(result.state, MergeState::Done | MergeState::Already),
                "step {steps}: {result:?}"
            );
            assert_eq!(result.at.as_deref(), Some("refs/heads/main"), "step {steps}: {result:?}");
            let tree = yard.tree();
            assert!(!tree.keys().any(|path| is_passing(path)), "step {steps}: {:?}", tree.keys());
            assert_eq!(yard.read("project/.git/refs/heads/main"), Some(format!("{to}\n").into_bytes()));
            assert_eq!(yard.read("project/.git/index"), yard.read("handover/clean/index"), "step {steps}");
            if !died {
                break;
            }
            steps += 1;
        }
        assert!(steps > 8, "only {steps} steps");
    }
}

#[test]
fn what_is_not_as_it_was_is_kept_and_the_commits_go_aside() {
    let cases: [(&str, &str, &[u8]); 6] = [
        (
            "has moved meanwhile",
            "project/.git/refs/heads/main",
            b"3333333333333333333333333333333333333333\n",
        ),
        ("no plain reference", "project/.git/refs/heads/main", b"ref: refs/heads/other\n"),
        ("`.lock` file is in the way", "project/.git/refs/heads/main.lock", b""),
        ("`.lock` file is in the way", "project/.git/index.lock", b""),
        ("index has changed", "project/.git/index", b"DIRC"),
        ("does not hold what its last commit holds at `a.txt`", "project/a.txt", b"other\n"),
    ];
    for (why, at, bytes) in cases {
        let yard = Yard::new();
        yard.write(at, bytes);
        let before = yard.tree();
        let result = yard.done(MergeKind::Apply, &main_branch());
        assert_eq!(result.at.as_deref(), Some("refs/bailey/1/main"), "{at}: {result:?}");
        assert!(result.why.as_ref().is_some_and(|told| told.contains(why)), "{at}: {result:?}");
        for (path, bytes) in before {
            assert_eq!(fs::read(&path).unwrap(), bytes, "{at}: {path}");
        }
    }
    // The control.
    let yard = Yard::new();
    assert_eq!(yard.done(MergeKind::Apply, &main_branch()).at.as_deref(), Some("refs/heads/main"));
    // And what moved on since is no undo's to take back.
    yard.write("project/.git/refs/heads/main", b"3333333333333333333333333333333333333333\n");
    let result = yard.done(MergeKind::Undo, &Tip { aside: None, ..main_branch() });
    assert!(matches!(result.state, MergeState::Conflict { .. }) && result.at.is_none(), "{result:?}");
}

#[test]
fn a_hostile_request_or_hand_over_writes_nothing_but_packs_and_references() {
    let link = |yard: &Yard, at: &str| {
        let path = yard.dir.path().join(at);
        fs::remove_dir_all(&path).unwrap();
        std::os::unix::fs::symlink(yard.dir.path(), path).unwrap();
    };
    let names = [
        "HEAD",
        "refs/heads/../../config",
        "refs/heads/main.lock",
        "refs/tags/v1",
        "refs/remotes/origin/main",
        "refs/heads/a\nb",
        "refs/replace/x",
        "../outside",
        "refs/heads/",
        "config",
        "hooks/pre-commit",
        "refs/stash",
    ];
    for name in names {
        let yard = Yard::new();
        let before = yard.tree();
        let tip = Tip { name: name.into(), old: None, new: NEW.into(), aside: Some(name.into()) };
        let result = yard.done(MergeKind::Apply, &tip);
        assert!(matches!(result.state, MergeState::Failed { .. }), "{name}: {result:?}");
        let mut after = yard.tree();
        after.retain(|path, _| !path.contains(NEW));
        assert_eq!(after, before, "{name}");
    }
    // What is not a pack's is not taken for one.
    let yard = Yard::new();
    for name in
        ["pack-x.pack", "config", &format!("pack-{OLD}.keep"), &format!("pack-{OLD}.promisor"), "info"]
    {
        yard.write(&format!("handover/clean/objects/pack/{name}"), b"own");
    }
    assert_eq!(yard.done(MergeKind::Apply, &main_branch()).state, MergeState::Done);
    assert!(!yard.tree().values().any(|bytes| bytes == b"own"));
    let yard = Yard::new();
    link(&yard, "handover/clean/objects/pack");
    let failed = yard.done(MergeKind::Apply, &main_branch());
    assert!(matches!(failed.state, MergeState::Failed { .. }), "{failed:?}");
    // An index that would have git write into the repository, or out of the project.
    for path in [".git/hooks/pre-commit", "sub/.GIT/config", "../a", "/a"] {
        let yard = Yard::new();
        yard.write("handover/clean/index", &index_of(path));
        let result = yard.done(MergeKind::Apply, &main_branch());
        assert!(matches!(result.state, MergeState::Failed { .. }), "{path}: {result:?}");
        assert_eq!(yard.read("project/.git/index"), Some(index_of("old.txt")), "{path}");
        assert!(!yard.tree().keys().any(|path| is_passing(path)));
    }
    // Links in the repository's own folders lead nowhere.
    for at in ["project/.git/objects", "project/.git/refs"] {
        let yard = Yard::new();
        link(&yard, at);
        let result = yard.done(MergeKind::Apply, &main_branch());
        assert!(matches!(result.state, MergeState::Failed { .. }), "{at}: {result:?}");
    }
}

#[test]
fn a_branch_of_another_name_in_the_way_is_left_there() {
    let yard = Yard::new();
    yard.write("project/.git/refs/heads/fix", format!("{OLD}\n").as_bytes());
    let tip = Tip { name: "refs/heads/fix/one".into(), old: None, ..main_branch() };
    let result = yard.done(MergeKind::Apply, &tip);
    assert_eq!(result.at.as_deref(), Some("refs/bailey/1/main"), "{result:?}");
    assert_eq!(yard.read("project/.git/refs/heads/fix"), Some(format!("{OLD}\n").into_bytes()));
}

/// Git leaves directories of branches that are gone.
#[test]
fn an_empty_directory_is_in_no_branchs_way_and_another_is() {
    let yard = Yard::new();
    yard.write("project/.git/HEAD", b"ref: refs/heads/fix\n");
    fs::create_dir_all(yard.dir.path().join("project/.git/refs/heads/fix/old/deep")).unwrap();
    let tip = Tip {
        name: "refs/heads/fix".into(),
        old: None,
        new: NEW.into(),
        aside: Some("refs/bailey/1/fix".into()),
    };
    let moved = yard.done(MergeKind::Apply, &tip);
    assert_eq!(moved.at.as_deref(), Some("refs/heads/fix"), "{moved:?}");
    assert_eq!(yard.read("project/.git/refs/heads/fix").unwrap(), format!("{NEW}\n").into_bytes());
    // The control: one in which a branch lies.
    let yard = Yard::new();
    yard.write("project/.git/refs/heads/fix/old", format!("{OLD}\n").as_bytes());
    let moved = yard.done(MergeKind::Apply, &tip);
    assert_eq!(moved.at.as_deref(), Some("refs/bailey/1/fix"), "{moved:?}");
    assert!(yard.read("project/.git/refs/heads/fix/old").is_some());
}
