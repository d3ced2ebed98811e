//! Each kind of file and of change, from a session's layer to the project and back: what the project holds
//! after an apply is what was seen inside, after an undo what was there before, and after a discard the
//! session sees that. Through an overlay, and through a copy.

use crate::{
    copied,
    house::{As, House, everyone},
};
use bailey_protocol::{
    DiffReport, FileDiff, Isolation, Merge, MergeFile, MergeKind, MergeState, Report, WsPath,
};
use bailey_sandbox::{
    Shape,
    worker::{Request, Response},
};
use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Command, Stdio},
};
use tokio_util::sync::CancellationToken;

/// Lists what lies below the working directory: kind, mode, size, content, target and attributes, and with
/// the word `links` how many names a file has and whether it takes less room than it is long.
const LIST: &str = r#"
import hashlib, os, stat, sys
for top, dirs, files in os.walk(b'.'):
    for name in dirs + files:
        path = os.path.join(top, name)
        meta = os.lstat(path)
        line = [os.fsencode(path)[2:], b'%o' % meta.st_mode]
        if stat.S_ISREG(meta.st_mode):
            line += [b'%d' % meta.st_size, hashlib.sha256(open(path, 'rb').read()).hexdigest()[:8].encode()]
            if 'room' in sys.argv: line.append(b'sparse' if meta.st_blocks * 512 < meta.st_size else b'dense')
        if stat.S_ISLNK(meta.st_mode): line.append(os.readlink(path))
        elif 'attributes' in sys.argv:
            line += [os.fsencode(name) + b'=' + os.getxattr(path, name) for name in sorted(os.listxattr(path)) if name.startswith('user.')]
        print(repr(b' '.join(line)))
"#;

/// A session that was worked in.
struct Worked {
    house: House,
    shape: Shape,
    before: Vec<String>,
    files: Vec<FileDiff>,
}

/// Whoever may work, and through what.
fn ways() -> Vec<(As, Shape)> {
    let walled = everyone().into_iter().map(|who| (who, Shape::Walled));
    walled.chain(copied::users().map(|who| (who, Shape::Copied))).collect()
}

impl Worked {
    /// Prepares a project, has a script run inside, and compares.
    async fn new((who, shape): (As, Shape), prepare: impl FnOnce(&Path), script: &str) -> Self {
        let house = copied::house(who, shape);
        prepare(&house.project);
        house.give(&house.project);
        let before = listed(&house.project, "attributes");
        let mut worked = Self { house, shape, before, files: Vec::new() };
        worked.settle(Vec::new(), false).await;
        worked.sh(&format!("set -e\n{script}")).await;
        worked.settle(Vec::new(), false).await;
        assert_eq!(worked.outside("attributes"), worked.before, "nothing changes before an apply");
        worked.files = worked.diff().await;
        worked
    }

    async fn settle(&self, own: Vec<WsPath>, anew: bool) {
        if self.shape == Shape::Copied {
            copied::settle_with(&self.house, own, anew).await;
        }
    }

    async fn sh(&self, line: &str) -> String {
        let cwd = WsPath(text(&copied::place(&self.house, self.shape)));
        let command = bailey_protocol::Command { cwd, ..self.house.command(line) };
        self.house.run(&command, &Isolation::default()).await.ok()
    }

    async fn diff(&self) -> Vec<FileDiff> {
        let (upper, project) = (text(&self.house.folder.join("upper")), text(&self.house.project));
        let is_copy = self.shape == Shape::Copied;
        match work(&self.house, Request::Diff { upper, project, is_copy, also: Vec::new(), bases: None })
            .await
        {
            Response::Diff(DiffReport { files, .. }) => files,
            other => panic!("no diff: {other:?}"),
        }
    }

    /// What is told of a path: why it stays, or what is to be known.
    fn told(&self, name: &str) -> String {
        let path = self.house.project.join(name);
        let file = self.files.iter().find(|file| file.path.0 == text(&path));
        file.map(|file| file.refused.iter().chain(&file.remarks).cloned().collect::<String>())
            .unwrap_or_default()
    }

    /// What lies in the session's view.
    async fn inside(&self, what: &str) -> Vec<String> {
        let line = format!("/usr/bin/python3 -S -c \"$(cat <<'END'\n{LIST}\nEND\n)\" {what}");
        sorted(&self.sh(&line).await)
    }

    fn outside(&self, what: &str) -> Vec<String> {
        listed(&self.house.project, what)
    }

    /// Does it with all that may leave.
    async fn merge(&self, direction: MergeKind) {
        let state = |side: &Option<bailey_protocol::FileState>| side.as_ref().map(|side| side.state);
        let files = self.files.iter().filter(|file| file.refused.is_none());
        let files = files.map(|file| MergeFile::whole(file.path.clone(), state(&file.old), state(&file.new)));
        let (house, merge) = (&self.house, Merge::of_files(direction, None, files.collect()));
        let request = Request::Merge {
            merge,
            upper: text(&house.folder.join("upper")),
            project: text(&house.project),
            backup: text(&house.folder.join("backups/one")),
            carried: None,
            bases: None,
        };
        let Response::Report(Report::Merged { files, .. }) = work(house, request).await else {
            panic!("no merge")
        };
        assert!(files.iter().all(|file| file.state == MergeState::Done), "{files:?}");
        // As the executor does after each of them.
        match direction {
            MergeKind::Discard => self.settle(Vec::new(), true).await,
            MergeKind::Undo => self.settle(files.into_iter().map(|file| file.path).collect(), false).await,
            MergeKind::Apply => self.settle(Vec::new(), false).await,
        }
    }

    /// Applies, has the view be what the project now holds, takes it back, and throws it away.
    async fn there_and_back(&self, what: &str) -> Vec<String> {
        let inside = self.inside(what).await;
        self.merge(MergeKind::Apply).await;
        let after = self.outside(what);
        assert_eq!(after, inside, "{:?} {:?}", self.house.who, self.shape);
        assert_eq!(self.inside(what).await, inside, "and the session sees the same");
        assert_eq!(self.back(what).await, self.outside(what), "the session sees the project again");
        after
    }

    /// Takes an apply back, throws away what the session has, and gives what it sees then.
    async fn back(&self, what: &str) -> Vec<String> {
        self.merge(MergeKind::Undo).await;
        assert_eq!(self.outside("attributes"), self.before, "{:?} {:?}", self.house.who, self.shape);
        assert_ne!(self.inside(what).await, self.outside(what), "the control: the session keeps its own");
        self.merge(MergeKind::Discard).await;
        assert_eq!(self.outside("attributes"), self.before, "{:?} {:?}", self.house.who, self.shape);
        let left = self.diff().await;
        assert!(left.is_empty(), "{:?} {:?}: {left:?}", self.house.who, self.shape);
        self.inside(what).await
    }
}

async fn work(house: &House, request: Request) -> Response {
    house
        .native
        .work(house.session, request, &Isolation::default(), &CancellationToken::new())
        .await
        .unwrap()
        .0
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn listed(project: &Path, what: &str) -> Vec<String> {
    let mut python = Command::new("/usr/bin/python3");
    let output =
        python.args(["-c", LIST, what]).current_dir(project).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success());
    sorted(&String::from_utf8(output.stdout).unwrap())
}

fn sorted(lines: &str) -> Vec<String> {
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn attribute(path: &Path, name: &str, value: &str) {
    rustix::fs::setxattr(path, name, value.as_bytes(), rustix::fs::XattrFlags::empty()).unwrap();
}

#[tokio::test]
async fn files_links_modes_and_directories_go_to_the_project_and_back() {
    for way in ways() {
        let worked = Worked::new(
            way,
            |project| {
                for name in ["edited", "deleted", "renamed", "mode", "to-directory", "d/one", "d/deep/two", "gone/three", "moded/x"] {
                    fs::create_dir_all(project.join(name).parent().unwrap()).unwrap();
                    fs::write(project.join(name), format!("{name}\n")).unwrap();
                }
                fs::write(project.join("binary"), b"\0\xff\x01").unwrap();
                std::os::unix::fs::symlink("edited", project.join("link")).unwrap();
                fs::create_dir(project.join("hollow")).unwrap();
            },
            r#"
            echo more >> edited; rm deleted; mv renamed other; chmod 750 mode moded; printf '\000\001\376' > binary
            ln -sfn mode link; ln -s d/one new-link; rm -r gone; rmdir hollow; mkdir -p empty/inner; chmod 700 empty
            rm to-directory; mkdir to-directory; echo x > to-directory/x; printf '\377' > new-binary"#,
        )
        .await;
        let after = worked.there_and_back("attributes").await;
        for line in ["empty/inner 40755", "empty 40700", "mode 100750 5", "moded 40750", "link 120777 mode"] {
            assert!(after.iter().any(|found| found.contains(&format!("'{line}"))), "{line}: {after:#?}");
        }
    }
}

/// An overlay refuses to rename a directory of the project (EXDEV). `mv` copies it, and so does Python's
/// `shutil.move`; who does not sees the error.
#[tokio::test]
async fn a_directory_that_is_renamed_is_copied_by_who_does_it() {
    for way in ways() {
        let worked = Worked::new(
            way,
            |project| {
                for name in ["one/a", "one/deep/b", "two/c"] {
                    fs::create_dir_all(project.join(name).parent().unwrap()).unwrap();
                    fs::write(project.join(name), format!("{name}\n")).unwrap();
                }
            },
            "/usr/bin/python3 -c 'import os\ntry: os.rename(\"one\", \"moved\")\nexcept OSError as e: print(e.errno)' > error
             test -d moved || mv one moved; mv two three; mv three four; mkdir new; mv new newer; echo x >> moved/deep/b",
        )
        .await;
        // A copy is a directory like any other.
        let error = if worked.shape == Shape::Walled { "18" } else { "" };
        assert_eq!(worked.sh("cat error").await, error, "EXDEV");
        let after = worked.there_and_back("attributes").await;
        let names: Vec<&str> = after.iter().filter_map(|line| line[2..].split(' ').next()).collect();
        assert_eq!(
            names,
            ["error", "four", "four/c", "moved", "moved/a", "moved/deep", "moved/deep/b", "newer"]
        );
    }
}

#[tokio::test]
async fn a_sparse_file_stays_sparse() {
    for way in ways() {
        let worked = Worked::new(
            way,
            |project| {
                let file = fs::File::create(project.join("old")).unwrap();
                file.set_len(64 << 20).unwrap();
                fs::write(project.join("dense"), "x".repeat(100_000)).unwrap();
            },
            "truncate -s 32M new; printf end >> new; truncate -s 8M new2; rm old
             printf middle | dd of=dense conv=notrunc bs=1 seek=40000 2>/dev/null; truncate -s 1M dense",
        )
        .await;
        let after = worked.there_and_back("room").await;
        for name in ["new ", "new2 ", "dense "] {
            let found = after.iter().find(|line| line.contains(&format!("'{name}"))).unwrap();
            assert!(found.ends_with(" sparse'"), "{found}");
        }
        let old = worked.outside("room").into_iter().find(|line| line.contains("'old ")).unwrap();
        assert!(old.ends_with(" sparse'"), "the backup and what is made of it: {old}");
    }
}

#[tokio::test]
async fn hard_links_become_files_of_their_own_and_that_is_said() {
    for way in ways() {
        let worked = Worked::new(
            way,
            |project| {
                fs::write(project.join("one"), "shared\n").unwrap();
                fs::hard_link(project.join("one"), project.join("two")).unwrap();
                fs::write(project.join("alone"), "alone\n").unwrap();
            },
            "echo more >> one; echo more >> alone; echo new > a; ln a b",
        )
        .await;
        assert!(
            worked.told("one").contains("one of several hard links in the project"),
            "{}",
            worked.told("one")
        );
        assert!(worked.told("a").contains("hard links in the session"), "{}", worked.told("a"));
        assert_eq!((worked.told("two"), worked.told("alone")), (String::new(), String::new()));
        worked.there_and_back("attributes").await;
        assert_eq!(fs::read_to_string(worked.house.project.join("two")).unwrap(), "shared\n");
    }
}

/// What the project's files have stays with their paths, whatever becomes of them; what the session sets
/// stays with it.
#[tokio::test]
async fn extended_attributes_of_the_project_are_kept_and_no_others_come() {
    for way in ways() {
        let worked = Worked::new(
            way,
            |project| {
                for name in ["edited", "rewritten", "removed", "to-directory", "d/inner", "set"] {
                    fs::create_dir_all(project.join(name).parent().unwrap()).unwrap();
                    fs::write(project.join(name), "old\n").unwrap();
                    attribute(&project.join(name), "user.origin", name);
                }
                attribute(&project.join("d"), "user.origin", "a directory");
                attribute(&project.join("edited"), "user.second", "\u{1}");
            },
            r#"
            echo more >> edited; rm rewritten; echo new > rewritten; rm removed; rm to-directory; mkdir to-directory; rm -r d; echo x > new
            /usr/bin/python3 -c 'import os
os.setxattr("set", "user.evil", b"1"); os.setxattr("new", "user.evil", b"1"); os.setxattr("edited", "user.origin", b"other")'"#,
        )
        .await;
        for (name, what) in [("set", "(user.evil)"), ("new", "(user.evil)"), ("edited", "(user.origin)")] {
            assert!(
                worked.told(name).contains(what) && worked.told(name).contains("stay there"),
                "{name}: {}",
                worked.told(name)
            );
        }
        worked.merge(MergeKind::Apply).await;
        let after = worked.outside("attributes");
        let line =
            |name: &str| after.iter().find(|line| line.contains(&format!("'{name} "))).unwrap().clone();
        assert!(line("edited").ends_with("user.origin=edited user.second=\\x01'"), "{}", line("edited"));
        assert!(line("rewritten").ends_with("user.origin=rewritten'"), "{}", line("rewritten"));
        assert!(!after.iter().any(|line| line.contains("evil")), "{after:#?}");
        assert!(!line("to-directory").contains("user."), "{after:#?}");
        worked.back("attributes").await;
    }
}

#[tokio::test]
async fn a_name_that_is_not_utf8_stays_as_it_is_and_is_told() {
    for way in ways() {
        let odd = |name: &[u8]| Path::new(OsStr::from_bytes(name)).to_owned();
        let worked = Worked::new(
            way,
            |project| {
                fs::create_dir(project.join("d")).unwrap();
                for name in [&b"edited\xff"[..], b"deleted\xff", b"d/inner\xff", b"d/plain"] {
                    fs::write(project.join(odd(name)), "old\n").unwrap();
                }
            },
            "printf x >> \"$(printf 'edited\\377')\"; rm -f \"$(printf 'deleted\\377')\"; rm -r d; touch \"$(printf 'new\\377')\"; echo x > fine",
        )
        .await;
        let refused: Vec<&FileDiff> = worked.files.iter().filter(|file| file.refused.is_some()).collect();
        // A copy is without those of the project, so that what has such a name there is the session's.
        let stays = if worked.shape == Shape::Walled { 4 } else { 2 };
        assert_eq!(refused.len(), stays, "{:?}: {refused:?}", worked.shape);
        let names: Vec<&str> = worked
            .files
            .iter()
            .filter(|file| file.refused.is_none())
            .filter_map(|file| file.path.0.rsplit('/').next())
            .collect();
        assert_eq!(names, ["plain", "fine"]);
        worked.merge(MergeKind::Apply).await;
        let after = worked.outside("attributes");
        for name in [r"edited\xff", r"deleted\xff", r"d/inner\xff", "fine"] {
            assert!(after.iter().any(|line| line.contains(name)), "{name}: {after:#?}");
        }
        assert!(!after.iter().any(|line| line.contains(r"new\xff") || line.contains("plain")), "{after:#?}");
        worked.back("attributes").await;
    }
}
