//! Search by name and by content.
//!
//! The walk goes by descriptors: each directory and file is opened beneath the root at the moment it is
//! looked at, so a directory swapped for a symlink in between shows nothing of what lies outside (A57).

use super::Unseen;
use super::beneath::{Root, join, names, type_of};
use super::error::Error;
use super::ignores::Ignores;
use bailey_protocol::{FOUND_BYTES_MAX, SearchHit, SearchReport, WsPath};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Hits reported.
const HITS_MAX: usize = 1_000;
/// Files that are named for not being searched to their end.
const PARTLY_MAX: usize = 10;
/// Directory entries looked at.
const VISITS_MAX: usize = 200_000;
/// Bytes of each file searched.
const FILE_MAX: u64 = 16 << 20;
/// Bytes of a line searched; a file with a longer one is left there.
const BUFFER_MAX: usize = 4 << 20;
const TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of a pattern's or a glob's text, and of a compiled pattern.
const PATTERN_MAX: usize = 4 << 10;
const COMPILED_MAX: usize = 2 << 20;

/// Files below `root` whose names match `glob`, or their lines that match `pattern`.
pub(super) fn search(
    from: &Root,
    path: &WsPath,
    pattern: Option<&str>,
    glob: Option<&str>,
    unseen: Unseen<'_>,
) -> Result<SearchReport, Error> {
    let mut search = Search {
        unseen,
        top: path.0.clone(),
        pattern: pattern.map(compile).transpose()?,
        glob: glob.map(Glob::new).transpose()?,
        searcher: searcher(),
        deadline: Instant::now() + TIME_MAX,
        visits: 0,
        report: SearchReport::default(),
    };
    let at = super::read::below(path)?;
    let stat = from.stat(at).map_err(Error::system("search", &path.0))?;
    match stat.map(|stat| type_of(&stat)) {
        Some(FileType::Directory) => search.tree(&Root::open(&path.0)?, Ignores::above(from, at)),
        Some(FileType::RegularFile) => {
            let (parent, name) = at.rsplit_once('/').unwrap_or(("", at));
            search.top = format!("/{parent}");
            search.file(&Root::open(&search.top)?, name);
            search.exhausted();
            // It is what was named: nothing lies beneath it.
            let SearchReport { found, partly, .. } = &mut search.report;
            found.iter_mut().map(|found| &mut found.path).chain(partly).for_each(String::clear);
        }
        Some(_) => return Err(Error::path(&path.0, "is neither a file nor a directory")),
        None => return Err(Error::path(&path.0, "does not exist")),
    }
    search.report.found.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    Ok(search.report)
}

struct Search<'a> {
    unseen: Unseen<'a>,
    /// The directory that is searched, an absolute path.
    top: String,
    pattern: Option<RegexMatcher>,
    glob: Option<Glob>,
    searcher: Searcher,
    deadline: Instant,
    visits: usize,
    report: SearchReport,
}

impl Search<'_> {
    /// What lies in `root`, where these rules of above hold.
    fn tree(&mut self, root: &Root, above: Rc<Ignores>) {
        let mut pending = vec![(String::new(), above)];
        while let Some((at, rules)) = pending.pop() {
            if self.exhausted() {
                break;
            }
            // A directory that went away, or is a symlink now, is passed over.
            let Ok(dir) = root.dir(&at) else { continue };
            let rules = rules.below(root, &at);
            let Ok((mut names, more)) = names(&dir, VISITS_MAX - self.visits) else { continue };
            self.visits += names.len();
            self.report.cut |= more;
            names.sort_unstable();
            let mut below = Vec::new();
            for (child, stat) in rules.keep(&dir, &at, &names) {
                match type_of(&stat) {
                    FileType::Directory => below.push((child, Rc::clone(&rules))),
                    FileType::RegularFile => self.file(root, &child),
                    _ => {}
                }
                if self.exhausted() {
                    break;
                }
            }
            pending.extend(below.into_iter().rev());
        }
    }

    /// Whether a limit was reached; says so in the report.
    fn exhausted(&mut self) -> bool {
        let over = self.visits >= VISITS_MAX
            || self.report.found.len() >= HITS_MAX
            || Instant::now() >= self.deadline;
        self.report.cut |= over;
        over
    }

    fn file(&mut self, root: &Root, at: &str) {
        if self.glob.as_ref().is_some_and(|glob| !glob.matches(at)) {
            return;
        }
        // Opened even for its name alone: the name counts only if it still lies beneath the root.
        let Ok(fd) = root.file(at) else { return };
        let Ok(stat) = fstat(&fd) else { return };
        if type_of(&stat) != FileType::RegularFile {
            return;
        }
        let Some(pattern) = &self.pattern else {
            self.report.found.push(SearchHit { path: at.into(), line: 0, text: String::new() });
            return;
        };
        if self.unseen.contains(&join(&self.top, at)) {
            return;
        }
        let is_large = super::read::size(&stat) > FILE_MAX;
        let reader = Timed { from: File::from(fd).take(FILE_MAX), deadline: self.deadline };
        let hits = Hits { at, report: &mut self.report };
        // Fails for a line longer than the buffer, or when time is over.
        let is_whole = self.searcher.search_reader(pattern, reader, hits).is_ok() && !is_large;
        if !is_whole && !self.exhausted() && self.report.partly.len() < PARTLY_MAX {
            self.report.partly.push(at.into());
        }
    }
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(BUFFER_MAX))
        .bom_sniffing(false)
        .build()
}

fn compile(pattern: &str) -> Result<RegexMatcher, Error> {
    limit("pattern", pattern)?;
    RegexMatcherBuilder::new()
        // Of CRLF the CR is no part of a line, for `^` and `$`.
        .multi_line(true)
        .crlf(true)
        .line_terminator(Some(b'\n'))
        .size_limit(COMPILED_MAX)
        .dfa_size_limit(COMPILED_MAX)
        .build(pattern)
        .map_err(|error| Error::Pattern { what: "pattern", why: error.to_string() })
}

fn limit(what: &'static str, text: &str) -> Result<(), Error> {
    if text.len() <= PATTERN_MAX {
        return Ok(());
    }
    Err(Error::Pattern { what, why: "it is longer than 4096 bytes".into() })
}

/// A glob with the meaning of a line in `.gitignore`: what it would ignore is what it finds.
struct Glob {
    rule: Gitignore,
    inverted: bool,
}

impl Glob {
    fn new(glob: &str) -> Result<Self, Error> {
        limit("glob", glob)?;
        let wrong = |error: ignore::Error| Error::Pattern { what: "glob", why: error.to_string() };
        let mut builder = GitignoreBuilder::new(".");
        builder.add_line(None, glob).map_err(wrong)?;
        Ok(Self { rule: builder.build().map_err(wrong)?, inverted: glob.starts_with('!') })
    }

    fn matches(&self, at: &str) -> bool {
        match self.rule.matched_path_or_any_parents(Path::new(at), false) {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => self.inverted,
        }
    }
}

struct Hits<'a> {
    at: &'a str,
    report: &'a mut SearchReport,
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> io::Result<bool> {
        let line = hit.bytes();
        let text = String::from_utf8_lossy(line.get(..FOUND_BYTES_MAX).unwrap_or(line));
        let mut text = text.trim_end_matches(['\n', '\r']).to_owned();
        // A character cut in two became U+FFFD, which is longer than what it replaced.
        text.truncate(text.floor_char_boundary(FOUND_BYTES_MAX));
        self.report.found.push(SearchHit {
            path: self.at.into(),
            line: hit.line_number().unwrap_or(0),
            text,
        });
        Ok(self.report.found.len() < HITS_MAX)
    }
}

/// A reader that ends with an error when time is over: one file may hold many slow lines.
struct Timed<R> {
    from: R,
    deadline: Instant,
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.from.read(buffer)
    }
}
