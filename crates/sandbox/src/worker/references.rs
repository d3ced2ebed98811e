//! The references of a git repository, read as data: no git, no configuration (attack A53).
//!
//! Format: gitrepository-layout(5) and the files `HEAD`, `packed-refs` and those below `refs/`. Whatever is
//! not plain is left out, and a repository whose references lie elsewhere is told as one that no commit
//! leaves.

use super::beneath::{Root, join, names, type_of};
use super::error::Error;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// References of one repository that are read.
const REFERENCES_MAX: usize = 5_000;
/// Directories within each other below `refs/`.
const DEPTH_MAX: usize = 12;
/// The largest list of packed references, in bytes.
const PACKED_BYTES_MAX: u64 = 16 << 20;
/// The longest file of one reference.
const LOOSE_BYTES_MAX: u64 = 4_096;
const NO_HEAD: &str =
    "its `HEAD` names no branch with a plain name (letters and digits of ASCII, `-_.+=#@,/`)";
/// Of these, one at least is new where a commit was made, or a reference moved.
pub(super) const MOVED: [&str; 6] = ["HEAD", "logs", "packed-refs", "refs", "reftable", "commondir"];
/// The longest configuration that is looked at.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// The longest name of a reference.
const NAME_BYTES_MAX: usize = 200;
/// Hexadecimal digits of an object's name: SHA-1.
const DIGITS: usize = 40;

/// What a repository's references name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct References {
    /// The branch that is checked out, such as `refs/heads/main`; none where no branch is.
    pub head: Option<String>,
    /// The commit that is checked out where no branch is.
    pub detached: Option<String>,
    /// Each reference and the object that it names.
    pub tips: BTreeMap<String, String>,
    /// Branches that somebody is at work on without having them checked out here, each with what they do.
    pub taken: BTreeMap<String, String>,
    /// Why no commit can come from here, or go here.
    pub bound: Option<String>,
}

/// Whether what a session has in its folder may hold commits of its own: references were moved in its layer,
/// or it has a copy of a repository. Told by names alone, of a session in which nothing lives.
#[must_use]
pub fn may_hold_commits(folder: &Path) -> bool {
    let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_dir());
    let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
    let own = folder.join("upper/.git");
    let copies = folder.join("copy").read_dir().into_iter().flatten().flatten();
    (is_dir(&own) && MOVED.iter().any(|name| is_there(own.join(name))))
        || copies.into_iter().any(|copy| is_there(copy.path().join(".git")))
}

/// What a [`super::Request::References`] asks for.
pub(super) fn of(project: &str, upper: Option<&str>) -> Result<Option<References>, Error> {
    let Some(upper) = upper else { return read(&Root::open(project)?).map(Some) };
    let upper = Root::open(upper)?;
    let is = |at: &str, kind| upper.stat(at).ok().flatten().is_some_and(|stat| type_of(&stat) == kind);
    let there = |name: &&str| !matches!(upper.stat(&format!(".git/{name}")), Ok(None));
    // A mere look at a repository renews its index.
    if !upper.stat(".git").is_ok_and(|stat| stat.is_some())
        || (is(".git", FileType::Directory) && !MOVED.iter().any(there))
    {
        return Ok(None);
    }
    read(&Root::of_project(project)?).map(Some)
}

/// The references of the repository at `project`.
fn read(project: &Root) -> Result<References, Error> {
    let mut found = References { bound: unfit(project), ..References::default() };
    if found.bound.is_some() {
        return Ok(found);
    }
    found.tips = packed(project);
    if loose(project, "refs", 0, &mut found.tips).is_none() || found.tips.len() > REFERENCES_MAX {
        found.bound = Some(format!("its repository has more than {REFERENCES_MAX} references"));
    }
    match text(project, ".git/HEAD").as_deref().map(named) {
        Some(Named::Reference(name)) => found.head = Some(name.to_owned()),
        Some(Named::Object(id)) => found.detached = Some(id.to_owned()),
        Some(Named::Nothing) | None => found.bound = Some(NO_HEAD.into()),
    }
    found.taken = taken(project);
    Ok(found)
}

/// The object that one reference names now, packed or not.
pub(super) fn tip(project: &Root, name: &str) -> Result<Option<String>, String> {
    if let Some(text) = text(project, &format!(".git/{name}")) {
        return match named(&text) {
            Named::Object(id) => Ok(Some(id.to_owned())),
            Named::Reference(_) | Named::Nothing => Err("it is no plain reference".into()),
        };
    }
    if project
        .stat(&format!(".git/{name}"))
        .ok()
        .flatten()
        .is_some_and(|stat| type_of(&stat) != FileType::Directory)
    {
        return Err("it is no plain reference".into());
    }
    Ok(packed(project).remove(name))
}

/// The branch that is checked out.
pub(super) fn head(project: &Root) -> Option<String> {
    match named(&text(project, ".git/HEAD")?) {
        Named::Reference(name) => Some(name.to_owned()),
        Named::Object(_) | Named::Nothing => None,
    }
}

/// Whether git looks whether files are programs: not where the project's configuration says that its file
/// system does not tell.
pub(super) fn has_modes(project: &Root) -> bool {
    let config =
        text_within(project, ".git/config", CONFIG_BYTES_MAX).unwrap_or_default().to_ascii_lowercase();
    let says_no = |line: &str| {
        line.split_once('=').is_some_and(|(key, value)| {
            key.trim() == "filemode" && matches!(value.trim(), "false" | "no" | "off" | "0")
        })
    };
    !config.lines().any(says_no)
}

/// Whether git would take a name for a reference's, and nobody for anything else: git-check-ref-format(1), in
/// ASCII without what a shell or a terminal reads.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
    };
    name.len() <= NAME_BYTES_MAX
        && name.strip_prefix("refs/").is_some_and(|rest| rest.contains('/'))
        && name.split('/').all(is_part)
        && !name.contains("..")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.+=#@,".contains(&byte))
        && !name.contains("@{")
}

/// Whether this is an object's name.
pub(crate) fn is_object(id: &str) -> bool {
    id.len() == DIGITS && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Why commits can neither come from this repository nor go there.
fn unfit(project: &Root) -> Option<String> {
    let is = |at: &str, kind| project.stat(at).ok().flatten().is_some_and(|stat| type_of(&stat) == kind);
    let there = |at: &str| !matches!(project.stat(at), Ok(None));
    if !there(".git") {
        return Some("the project is no git repository".into());
    }
    if is(".git", FileType::RegularFile) {
        return Some("the project is a worktree or a submodule: its repository lies elsewhere".into());
    }
    if !is(".git", FileType::Directory)
        || !is(".git/objects", FileType::Directory)
        || !is(".git/refs", FileType::Directory)
    {
        return Some("the project's repository is not a plain directory".into());
    }
    if there(".git/commondir") {
        return Some("the project's repository lies elsewhere".into());
    }
    // Its own word is enough: it can only keep commits back.
    let config =
        text_within(project, ".git/config", CONFIG_BYTES_MAX).unwrap_or_default().to_ascii_lowercase();
    if config.contains("objectformat") && config.contains("sha256") {
        return Some("its objects are named by SHA-256, which is not carried here".into());
    }
    if there(".git/reftable") {
        return Some("its references are in tables (`reftable`), which are not written here".into());
    }
    None
}

enum Named<'a> {
    Reference(&'a str),
    Object(&'a str),
    Nothing,
}

fn named(text: &str) -> Named<'_> {
    let text = text.trim_end();
    match text.strip_prefix("ref:").map(str::trim_start) {
        Some(name) if is_plain(name) => Named::Reference(name),
        None if is_object(text) => Named::Object(text),
        _ => Named::Nothing,
    }
}

fn text(project: &Root, at: &str) -> Option<String> {
    text_within(project, at, LOOSE_BYTES_MAX)
}

fn text_within(project: &Root, at: &str, bytes_max: u64) -> Option<String> {
    let file = File::from(project.file(at).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

fn packed(project: &Root) -> BTreeMap<String, String> {
    let text = text_within(project, ".git/packed-refs", PACKED_BYTES_MAX).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let plain = lines.filter(|(id, name)| is_object(id) && is_plain(name));
    plain.map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
}

/// The references that are files of their own; none when there are too many.
fn loose(project: &Root, at: &str, depth: usize, tips: &mut BTreeMap<String, String>) -> Option<()> {
    let Ok(dir) = project.dir(&format!(".git/{at}")) else { return Some(()) };
    let (found, more) = names(&dir, REFERENCES_MAX).ok()?;
    if more || depth > DEPTH_MAX || tips.len() > REFERENCES_MAX {
        return None;
    }
    for name in found.iter().filter_map(|name| name.to_str()) {
        let at = join(at, name);
        match project.stat(&format!(".git/{at}")).ok().flatten().map(|stat| type_of(&stat)) {
            Some(FileType::Directory) => loose(project, &at, depth + 1, tips)?,
            Some(FileType::RegularFile) if is_plain(&at) => {
                if let Some(Named::Object(id)) = text(project, &format!(".git/{at}")).as_deref().map(named) {
                    tips.insert(at, id.to_owned());
                }
            }
            _ => {}
        }
    }
    Some(())
}

/// Branches that linked worktrees have checked out, and those that something under way in any worktree will
/// move, or go back to.
fn taken(project: &Root) -> BTreeMap<String, String> {
    let all = project.dir(".git/worktrees").and_then(|dir| names(&dir, REFERENCES_MAX));
    let all = all.unwrap_or_default().0.into_iter();
    let linked = all.filter_map(|name| Some(format!(".git/worktrees/{}", name.to_str()?)));
    let mut taken = BTreeMap::new();
    let mut take = |name: &str, what: &str| {
        if is_plain(name) {
            taken.entry(name.to_owned()).or_insert_with(|| what.to_owned());
        }
    };
    for git in linked.chain([".git".to_owned()]) {
        let says = |file: &str| text(project, &format!("{git}/{file}")).unwrap_or_default();
        if let (true, Named::Reference(name)) = (git != ".git", named(&says("HEAD"))) {
            take(name, "a linked worktree has it checked out");
        }
        for file in ["rebase-merge/head-name", "rebase-apply/head-name"] {
            take(says(file).trim_end(), "a rebase of it is under way");
        }
        // Of each branch its name, and the commits before and after.
        for name in says("rebase-merge/update-refs").lines().step_by(3) {
            take(name, "a rebase is under way that moves it, too");
        }
        take(&format!("refs/heads/{}", says("BISECT_START").trim_end()), "a bisection began on it");
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_names_a_reference_and_nothing_else() {
        for name in ["refs/heads/main", "refs/heads/fix/a-1", "refs/bailey/0b1c/main", "refs/tags/v1.2.3"] {
            assert!(is_plain(name), "{name}");
        }
        let long = format!("refs/heads/{}", "a".repeat(NAME_BYTES_MAX));
        let hostile = [
            "HEAD",
            "config",
            "refs",
            "refs/",
            "refs/heads",
            "refs/heads/",
            "refs//a",
            "/refs/heads/a",
            "refs/heads/../../config",
            "refs/../config",
            "refs/heads/.a",
            "refs/heads/a.",
            "refs/heads/a.lock",
            "refs/heads/a.LOCK",
            "refs/heads/a.lock/b",
            "refs/heads/-a",
            "refs/heads/a b",
            "refs/heads/a\n",
            "refs/heads/a~1",
            "refs/heads/a^",
            "refs/heads/a:b",
            "refs/heads/a?",
            "refs/heads/a*",
            "refs/heads/a[",
            "refs/heads/a\\b",
            "refs/heads/a@{1}",
            "refs/heads/\u{e9}",
            "refs/heads/\u{202e}a",
            "refs/heads/$(x)",
            &long,
        ];
        for name in hostile {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn references_are_read_packed_and_loose_and_none_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = ("1".repeat(DIGITS), "2".repeat(DIGITS));
        let write = |at: &str, text: &str| {
            let path = dir.path().join(at);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".git/HEAD", "ref: refs/heads/main\n");
        write(".git/objects/x", "");
        write(
            ".git/packed-refs",
            &format!("# pack-refs\n{one} refs/heads/main\n{one} refs/tags/v1\n^{two}\n{one} refs/../x\n"),
        );
        write(".git/refs/heads/main", &format!("{two}\n"));
        write(".git/refs/heads/symbolic", "ref: refs/heads/main\n");
        write(".git/refs/heads/HEAD.lock", &one);
        write(".git/worktrees/w/HEAD", "ref: refs/heads/elsewhere\n");
        write(".git/worktrees/w/rebase-apply/head-name", "refs/heads/far\n");
        write(".git/rebase-merge/head-name", "refs/heads/moving\n");
        write(
            ".git/rebase-merge/update-refs",
            &format!("refs/heads/also\n{one}\n{two}\nrefs/../x\n{one}\n{two}\n"),
        );
        write(".git/BISECT_START", "begun\n");
        write("outside", &one);
        std::os::unix::fs::symlink("../../../outside", dir.path().join(".git/refs/heads/link")).unwrap();
        let root = Root::open(dir.path().to_str().unwrap()).unwrap();
        let found = read(&root).unwrap();
        let tips = [("refs/heads/main", &two), ("refs/tags/v1", &one)];
        assert_eq!(found.tips, tips.map(|(name, id)| (name.to_owned(), id.clone())).into());
        assert_eq!(found.head.as_deref(), Some("refs/heads/main"));
        let taken: Vec<_> = found.taken.iter().map(|(name, what)| (name.as_str(), what.as_str())).collect();
        let expected = [
            ("refs/heads/also", "a rebase is under way that moves it, too"),
            ("refs/heads/begun", "a bisection began on it"),
            ("refs/heads/elsewhere", "a linked worktree has it checked out"),
            ("refs/heads/far", "a rebase of it is under way"),
            ("refs/heads/moving", "a rebase of it is under way"),
        ];
        assert_eq!(taken, expected);
        assert_eq!(found.bound, None, "the control");
        assert_eq!(tip(&root, "refs/tags/v1"), Ok(Some(one)));
        assert!(has_modes(&root));
        write(".git/config", "[core]\n\tbare = false\n\tfileMode = false\n");
        assert!(!has_modes(&root));
        assert!(tip(&root, "refs/heads/link").is_err());

        write(".git/config", "[extensions]\n\tobjectFormat = sha256\n");
        assert!(read(&root).unwrap().bound.unwrap().contains("SHA-256"));
        write(".git/config", "[extensions]\n\tworktreeConfig = true\n");
        write(".git/reftable/tables.list", "");
        assert!(read(&root).unwrap().bound.unwrap().contains("reftable"));
        std::fs::rename(dir.path().join(".git"), dir.path().join("git")).unwrap();
        assert!(read(&root).unwrap().bound.unwrap().contains("no git repository"));
        std::os::unix::fs::symlink("git", dir.path().join(".git")).unwrap();
        assert!(read(&root).unwrap().bound.unwrap().contains("not a plain directory"));
        std::fs::remove_file(dir.path().join(".git")).unwrap();
        write(".git", "gitdir: git\n");
        assert!(read(&root).unwrap().bound.unwrap().contains("worktree or a submodule"));
    }
}
