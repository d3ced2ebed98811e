//! The part of a home that a copy holds: the home's files, and the targets of its links. A copy leaves out
//! the state of running processes, files that Bailey makes anew, and files that are on their way to another
//! name.

use super::{ENV, JOURNAL, POOL};
use anyhow::{Context as _, Result, bail};
use bailey_home::home::{Home, SCRATCH, reserve, swap};
use std::{
    ffi::OsStr,
    fs::{self, DirEntry},
    io,
    path::{Path, PathBuf},
};

/// Entries of a home that no copy holds: the state of running processes, files that are made anew, the list
/// of layers that are not used yet, and other copies.
const LEFT_OUT: [&str; 12] = [
    "guests",
    "lock",
    "schedules.lock",
    "daemon",
    "health.json",
    "health.json.new",
    reserve::NAME,
    "sessions",
    SCRATCH,
    POOL,
    "backups",
    swap::MARK,
];
/// The entries of `LEFT_OUT` that older copies still hold. A restore leaves them out: an older copy may list
/// workspaces as ready that were used since.
const OF_BEFORE: [&str; 5] = [POOL, "schedules.lock", "health.json", "health.json.new", reserve::NAME];
/// The prefix of the journal's own files. The journal is copied in its own way. Its key signs one line of
/// checkpoints, and two journals with the same key could sign two. The rest are files that a salvage kept or
/// left half done.
const OF_JOURNAL: &str = "journal.";
/// Separates the name of a file that is being written from the id of the process that writes it.
const NEW: &str = ".new-";
/// How many links may lead to one file, and how many files and bytes all links together may bring. A home's
/// own files are few and small.
const LINKS_MAX: usize = 8;
const LINKED_MAX: usize = 10_000;
const LINKED_BYTES_MAX: u64 = 64 << 20;

/// Which keys a copy holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenKeys<'a> {
    /// Whether the copy holds the keys of `.env`, and the key that opens the sealed store.
    pub(super) all: bool,
    /// Where the key of the sealed store lies, if it is a file.
    pub(super) file: Option<&'a Path>,
}

/// A file of a copy.
#[derive(Debug)]
pub(super) struct CopiedFile {
    /// Where the file is read; this path is not a link.
    pub(super) from: PathBuf,
    /// Where the file lies in the copy.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// A folder that is still to be read, and the number of links that led to it.
struct Folder {
    from: PathBuf,
    path: PathBuf,
    links: usize,
}

/// How much the links have brought so far.
#[derive(Default)]
struct Linked {
    entries: usize,
    bytes: u64,
}

impl Linked {
    fn add(&mut self, path: &Path, bytes: u64) -> Result<()> {
        (self.entries, self.bytes) = (self.entries + 1, self.bytes.saturating_add(bytes));
        if self.entries > LINKED_MAX || self.bytes > LINKED_BYTES_MAX {
            bail!(
                "links of the home lead to more than {LINKED_MAX} files, or {} MiB, at `{}`: lead them to what belongs to a home",
                LINKED_BYTES_MAX >> 20,
                path.display()
            );
        }
        Ok(())
    }
}

/// All files of a home that a copy holds, except its journal.
///
/// # Errors
/// When a folder cannot be read, or a link leads to a target that no copy can hold.
pub(super) fn all(home: &Home, keys: &TakenKeys<'_>) -> Result<Vec<CopiedFile>> {
    let with_keys = keys.all;
    // Without `with_keys`, a copy of the sealed store does not hold the key that opens it.
    let key_file = keys.file.filter(|_| !with_keys).and_then(|file| fs::canonicalize(file).ok());
    let is_key =
        |path: &Path| key_file.as_ref().is_some_and(|key| fs::canonicalize(path).is_ok_and(|it| it == *key));
    let (mut found, mut linked) = (Vec::new(), Linked::default());
    let mut waiting = vec![Folder { from: home.root.clone(), path: PathBuf::new(), links: 0 }];
    while let Some(folder) = waiting.pop() {
        for entry in entries(&folder.from)? {
            let (path, kind) = (folder.path.join(entry.file_name()), entry.file_type()?);
            if is_left_out(&path, with_keys) || kind.is_file() && is_passing(&path) || is_key(&entry.path()) {
                continue;
            }
            let (from, links) = match kind.is_symlink() {
                true => (target(home, &entry.path(), folder.links, with_keys)?, folder.links + 1),
                false => (entry.path(), folder.links),
            };
            let about = match fs::symlink_metadata(&from) {
                // The file was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                about => about.with_context(|| format!("cannot look at `{}`", from.display()))?,
            };
            if links > 0 {
                linked.add(&path, about.len())?;
            }
            if about.is_dir() {
                waiting.push(Folder { from, path, links });
            } else if about.is_file() {
                found.push(CopiedFile { from, path, bytes: about.len() });
            } else if kind.is_symlink() {
                bail!("`{}` is a link to what is neither a file nor a folder", entry.path().display());
            }
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>> {
    let cannot = || format!("cannot read `{}`", folder.display());
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let mut entries = entries.with_context(cannot)?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// The target of a link, if a copy can hold it.
fn target(home: &Home, link: &Path, links: usize, with_keys: bool) -> Result<PathBuf> {
    let shown = link.display();
    if links >= LINKS_MAX {
        bail!("`{shown}` is a link behind {LINKS_MAX} others: lead them to the folder itself");
    }
    let target = fs::canonicalize(link)
        .with_context(|| format!("`{shown}` is a link that leads nowhere: correct it, or remove it"))?;
    // A path that is left out is left out under each of its names, and a copy does not hold the home twice.
    let is_out = match target.strip_prefix(&home.root) {
        Ok(within) => within.as_os_str().is_empty() || is_within_left_out(within, with_keys),
        Err(_) => home.root.starts_with(&target),
    };
    if is_out {
        bail!("`{shown}` is a link to `{}`, which no copy holds: remove it", target.display());
    }
    Ok(target)
}

/// Whether no copy has this path, with or without keys, so that the maker of the copy did not put it there.
pub(super) fn is_foreign(path: &Path) -> bool {
    path != Path::new(JOURNAL) && is_within_left_out(path, true)
}

/// Whether older copies have this path, and those of today do not.
pub(super) fn is_of_before(path: &Path) -> bool {
    parts(path).first().is_some_and(|top| OF_BEFORE.contains(top))
}

fn is_within_left_out(path: &Path, with_keys: bool) -> bool {
    path.ancestors().any(|part| is_left_out(part, with_keys))
}

/// Whether no copy holds this path of a home. Lock files are matched with their folders, because an agent or
/// a channel may also be called `lock`.
fn is_left_out(path: &Path, with_keys: bool) -> bool {
    match parts(path).as_slice() {
        [ENV] => !with_keys,
        [top] => LEFT_OUT.contains(top) || top.starts_with(OF_JOURNAL),
        ["archive", "lock"] | ["channels", _, "lock"] => true,
        // Programs of others write there, also links: nothing outside of the walls goes into it.
        ["mcp", _, name] => *name != "approved.json",
        _ => false,
    }
}

/// Whether a file is on its way to another name, or was left there by a kill: a file that is written whole or
/// not at all has another name first.
fn is_passing(path: &Path) -> bool {
    match parts(path).as_slice() {
        ["policy", name] if name.starts_with('.') && name.ends_with(".new") => true,
        ["archive", name] if name.ends_with(".part") => true,
        [.., ".agent.toml.new"] => true,
        [.., name] => is_new(name),
        [] => false,
    }
}

/// Whether this is the name of a file that a process was writing.
pub(super) fn is_new(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once(NEW).is_some_and(|(of, process)| !of.is_empty() && is_number(process))
}

/// The components of a path. Empty if one of them is not text; Bailey makes no such name.
fn parts(path: &Path) -> Vec<&str> {
    path.iter().map(OsStr::to_str).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{is_foreign, is_left_out, is_of_before, is_passing};
    use std::path::Path;

    #[test]
    fn what_runs_and_what_is_on_its_way_is_left_out_by_its_place() {
        let is_in = |path: &str| !is_left_out(Path::new(path), false) && !is_passing(Path::new(path));
        for path in [
            "config.toml",
            "secrets.sealed",
            "agents/lock",
            "agents/lock/settings.toml",
            "channels/lock",
            "channels/lock/people.json",
            "channels/sessions/people.json",
            "profiles/lock",
            "policy/mine.new-2.toml",
            "policy/.new-7",
            "archive/0001.jsonl",
            "mcp/memory/approved.json",
        ] {
            assert!(is_in(path), "{path}");
        }
        for path in [
            ".env",
            "journal.db",
            "journal.key",
            "journal.torn-20350310T110000Z",
            "sessions",
            "scratch",
            "backups",
            "daemon",
            "pool",
            "guests",
            "schedules.lock",
            "health.json.new",
            "archive/lock",
            "archive/0001.part",
            "mcp/memory/state",
            "mcp/memory/program",
            "channels/lock/lock",
            "config.toml.new-4711",
            "agents/mine/settings.toml.new-1",
            "agents/mine/.agent.toml.new",
            ".agent.toml.new",
            "policy/.mine.toml.new",
        ] {
            assert!(!is_in(path), "{path}");
        }
        assert!(!is_left_out(Path::new(".env"), true));
    }

    #[test]
    fn what_no_copy_has_is_foreign_to_each_with_all_that_lies_in_it() {
        let is_foreign = |path: &str| is_foreign(Path::new(path));
        for path in [
            "daemon",
            "daemon/socket",
            "sessions/019/upper/a.txt",
            "backups/20350310T110000Z/journal.db",
            "journal.key",
            "journal.db-wal",
            "journal.db/x",
            "lock",
            "archive/lock",
            "channels/phone/lock",
            "restoring.json",
        ] {
            assert!(is_foreign(path) && !is_of_before(Path::new(path)), "{path}");
        }
        for path in
            ["journal.db", ".env", "config.toml", "agents/daemon/settings.toml", "channels/lock/people.json"]
        {
            assert!(!is_foreign(path), "{path}");
        }
        for path in ["pool/0.json", "schedules.lock", "health.json"] {
            assert!(is_of_before(Path::new(path)), "{path}");
        }
        assert!(!is_of_before(Path::new("agents/pool")));
    }
}
