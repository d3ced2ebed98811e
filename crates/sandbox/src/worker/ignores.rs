//! Which paths git ignores (gitignore(5)), from rule files read through descriptors that were opened safely.
//!
//! Only rules inside the tree count: `.gitignore` files and `.git/info/exclude`. What the user's own git
//! configuration ignores lies outside the walls.

use super::beneath::{Root, ancestors, join, look, type_of};
use super::repository::is_vcs;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

/// Bytes and lines of one rule file: compiled rules are many times larger than their text.
const RULES_BYTES_MAX: u64 = 256 << 10;
const RULES_LINES_MAX: usize = 4_000;

/// Why a list of rules is not followed; it continues a sentence about the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unusable(pub(super) &'static str);

/// The rules that hold in one directory.
pub(super) struct Ignores {
    /// The directory that the rules are relative to; `""` is the root.
    base: String,
    /// What lies between that directory and the root, where it is one above the root.
    lead: String,
    rules: Gitignore,
    /// Whether nobody can tell what they are, and everything counts as ignored.
    is_unknown: bool,
    /// Rules of the directories above, asked when these say nothing.
    above: Option<Rc<Ignores>>,
}

impl Ignores {
    /// The rules of `.git/info/exclude` below `root`, if there is such a file.
    pub(super) fn of_repository(root: &Root) -> Result<Rc<Self>, Unusable> {
        let text = rules_text(root, ".git/info/exclude")?.unwrap_or_default();
        Ok(Rc::new(Self::of("", compile(&text)?, None)))
    }

    /// Ignores everything: for whom an ignored path is one that nothing happens to, where the rules cannot be
    /// known.
    pub(super) fn of_anything() -> Rc<Self> {
        Rc::new(Self { is_unknown: true, ..Self::none() })
    }

    /// Ignores nothing: for whom an ignored path is one that is only looked at less.
    pub(super) fn none() -> Self {
        Self::of("", Gitignore::empty(), None)
    }

    fn of(base: &str, rules: Gitignore, above: Option<Rc<Self>>) -> Self {
        Self { base: base.into(), lead: String::new(), rules, is_unknown: false, above }
    }

    /// The rules for a walk that starts at `start` below `root`: those of the repository that it lies in, and
    /// of each directory from there down to the one above `start`. Outside of a repository, those of each
    /// directory above. A list that is not usable counts as none.
    pub(super) fn above(root: &Root, start: &str) -> Rc<Self> {
        let is_repository = |at: &&str| matches!(root.stat(&join(at, ".git")), Ok(Some(_)));
        let up = || std::iter::once(start).chain(ancestors(start)).chain([""]);
        let top = up().find(is_repository).unwrap_or_default();
        let compiled = |at: &str| {
            let text = rules_text(root, at).ok().flatten()?;
            compile(&text).ok()
        };
        let lead = |at: &str| start.get(at.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
        let exclude = compiled(&join(top, ".git/info/exclude")).unwrap_or_else(Gitignore::empty);
        let mut rules = Self { lead: lead(top), ..Self::of("", exclude, None) };
        let mut down: Vec<&str> = up().filter(|at| at.len() >= top.len() && *at != start).collect();
        down.dedup();
        for at in down.into_iter().rev() {
            if let Some(compiled) = compiled(&join(at, ".gitignore")) {
                rules = Self { lead: lead(at), ..Self::of("", compiled, Some(Rc::new(rules))) };
            }
        }
        Rc::new(rules)
    }

    /// The rules in the directory `at` whose own `.gitignore` holds `text`.
    pub(super) fn within(self: &Rc<Self>, at: &str, text: Option<&str>) -> Result<Rc<Self>, Unusable> {
        match text {
            None => Ok(self.clone()),
            Some(text) => Ok(Rc::new(Self::of(at, compile(text)?, Some(self.clone())))),
        }
    }

    /// The same of what `root` holds there; a list that is not usable counts as none.
    pub(super) fn below(self: &Rc<Self>, root: &Root, at: &str) -> Rc<Self> {
        let text = rules_text(root, &join(at, ".gitignore")).ok().flatten();
        self.within(at, text.as_deref()).unwrap_or_else(|_| self.clone())
    }

    /// Of these names in the directory `dir`, which is `at`, those that git does not ignore and that a report
    /// can name: their paths, and what each is when its turn comes.
    pub(super) fn keep<'a>(
        &'a self,
        dir: &'a OwnedFd,
        at: &'a str,
        names: &'a [OsString],
    ) -> impl Iterator<Item = (String, Stat)> + 'a {
        names.iter().filter_map(move |name| {
            // Names that are not UTF-8 have no path in a report.
            let name = name.to_str().filter(|name| !is_vcs(name))?;
            let child = join(at, name);
            let stat = look(dir, name.as_ref()).ok()??;
            let is_dir = type_of(&stat) == FileType::Directory;
            (!self.ignored(&child, is_dir)).then_some((child, stat))
        })
    }

    /// Whether git ignores `at`, a path below the directory that these rules are for. Whoever walks asks
    /// for each directory first: what lies in an ignored one is ignored, too.
    pub(super) fn ignored(&self, at: &str, is_dir: bool) -> bool {
        if self.is_unknown {
            return true;
        }
        let below = at.strip_prefix(self.base.as_str()).unwrap_or(at).trim_start_matches('/');
        match (self.rules.matched(Path::new(&join(&self.lead, below)), is_dir), &self.above) {
            (Match::Ignore(_), _) => true,
            (Match::None, Some(above)) => above.ignored(at, is_dir),
            _ => false,
        }
    }
}

/// The text of the rule file at `at`; `None` when no regular file is there. Git follows no symlink there,
/// either.
pub(super) fn rules_text(root: &Root, at: &str) -> Result<Option<String>, Unusable> {
    const UNREAD: Unusable = Unusable("cannot be read");
    let is_file = match root.stat(at) {
        Err(Errno::LOOP) => false,
        found => found.map_err(|_| UNREAD)?.is_some_and(|stat| type_of(&stat) == FileType::RegularFile),
    };
    if !is_file {
        return Ok(None);
    }
    let fd = root.file(at).map_err(|_| UNREAD)?;
    if !fstat(&fd).is_ok_and(|stat| type_of(&stat) == FileType::RegularFile) {
        return Err(UNREAD);
    }
    let mut text = Vec::new();
    let read = File::from(fd).take(RULES_BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|_| UNREAD)?;
    if text.len() as u64 > RULES_BYTES_MAX
        || text.iter().filter(|byte| **byte == b'\n').count() > RULES_LINES_MAX
    {
        return Err(Unusable("is too large for a list of ignore rules (256 KiB, 4,000 lines)"));
    }
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Rules relative to the directory itself. Lines that are not rules are passed over, as git does.
fn compile(text: &str) -> Result<Gitignore, Unusable> {
    let mut builder = GitignoreBuilder::new(".");
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        builder.add_line(None, line).ok();
    }
    builder.build().map_err(|_| Unusable("holds ignore rules that are too large together"))
}
