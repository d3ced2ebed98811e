//! Patches as models write them: unified diffs (`diff -u`, git) and the `*** Begin Patch` form. Both become
//! the same hunks. A hunk fits where its old lines stand exactly, nowhere else: there is no fuzz.

mod apply;
mod envelope;
mod unified;

pub(crate) use apply::apply;

use std::collections::BTreeSet;

/// Most bytes of a patch.
const BYTES_MAX: usize = 4 << 20;
/// Most files of a patch.
const FILES_MAX: usize = 500;

/// What a patch does with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePatch {
    /// The file.
    pub(crate) path: String,
    /// Its new name, when it moves.
    pub(crate) to: Option<String>,
    /// What becomes of its content.
    pub(crate) change: Change,
}

/// What becomes of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is made with this content.
    Create(String),
    /// It is removed; the hunks, if there are any, must remove every line.
    Delete(Vec<Hunk>),
    /// Its lines change.
    Update(Vec<Hunk>),
}

/// Lines that take the place of lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hunk {
    /// The line, from 1, at which `old` is said to stand; with empty `old` the line after which to insert.
    pub(crate) start: Option<usize>,
    /// Lines that must come before it, one after the other.
    pub(crate) anchors: Vec<String>,
    /// Whether it must reach the end of the file.
    pub(crate) at_end: bool,
    /// Context and removed lines, with their line ends.
    pub(crate) old: String,
    /// Context and added lines, with their line ends.
    pub(crate) new: String,
}

/// Why a patch cannot be used. The words are for the model.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum PatchError {
    #[error("the patch has {0} bytes; at most {BYTES_MAX} fit")]
    TooLarge(usize),
    #[error("the patch changes more than {FILES_MAX} files")]
    TooMany,
    #[error(
        "the patch names no file; write a unified diff (`--- a/x`, `+++ b/x`, `@@ -1,3 +1,4 @@`) or \
         `*** Begin Patch`, `*** Update File: x`, … `*** End Patch`"
    )]
    Empty,
    #[error("`{0}` is in the patch twice; put all its hunks under one header")]
    Twice(String),
    #[error("patch line {line}: {problem}")]
    Line { line: usize, problem: String },
    #[error("hunk {number} of `{path}` does not apply: {problem}")]
    Hunk { path: String, number: usize, problem: String },
    #[error("the patch deletes `{0}`, but its hunks leave some of its lines")]
    Remains(String),
}

/// Reads a patch of either form.
///
/// # Errors
/// When it is none, or is not whole.
pub(crate) fn parse(text: &str) -> Result<Vec<FilePatch>, PatchError> {
    if text.len() > BYTES_MAX {
        return Err(PatchError::TooLarge(text.len()));
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut reader = Reader { lines: text.split_inclusive('\n').collect(), at: 0 };
    let files =
        if first.starts_with("*** ") { envelope::parse(&mut reader)? } else { unified::parse(&mut reader)? };
    if files.is_empty() {
        return Err(PatchError::Empty);
    }
    if files.len() > FILES_MAX {
        return Err(PatchError::TooMany);
    }
    let mut names = BTreeSet::new();
    for name in files.iter().flat_map(|file| [Some(&file.path), file.to.as_ref()]).flatten() {
        if !names.insert(clean(name)) {
            return Err(PatchError::Twice(name.clone()));
        }
    }
    Ok(files)
}

/// A path without empty and `.` segments, to see that two names are one.
fn clean(path: &str) -> String {
    let segments = path.split('/').filter(|segment| !matches!(*segment, "" | "."));
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", segments.collect::<Vec<_>>().join("/"))
}

/// The lines of a patch and a place among them.
struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The line here, with its end; none after the last.
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// The line after this one.
    fn peek_second(&self) -> Option<&'a str> {
        self.lines.get(self.at + 1).copied()
    }

    /// What is wrong with the line here.
    fn error(&self, problem: impl Into<String>) -> PatchError {
        PatchError::Line { line: self.at + 1, problem: problem.into() }
    }
}

/// One line of a hunk's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Same,
    Removed,
    Added,
}

/// A hunk's lines while they are read.
#[derive(Default)]
struct HunkBody {
    lines: Vec<(Sign, String)>,
    /// How many lines at the end were wholly empty, without even the blank of a context line.
    bare: usize,
}

impl HunkBody {
    /// Takes a line if it belongs to a hunk: returns its sign. A wholly empty line is an empty context line,
    /// because editors and models strip the blank.
    fn push(&mut self, line: &str) -> Option<Sign> {
        let (sign, rest) = match line.as_bytes().first() {
            Some(b' ') => (Sign::Same, line.get(1..)?),
            Some(b'-') => (Sign::Removed, line.get(1..)?),
            Some(b'+') => (Sign::Added, line.get(1..)?),
            Some(b'\n' | b'\r') => (Sign::Same, line),
            _ => return None,
        };
        self.bare = if line.trim_end_matches(['\r', '\n']).is_empty() { self.bare + 1 } else { 0 };
        let end = if rest.ends_with('\n') { "" } else { "\n" };
        self.lines.push((sign, format!("{rest}{end}")));
        Some(sign)
    }

    /// The line before has no newline at its end.
    fn strip_newline(&mut self) {
        if let Some((_, line)) = self.lines.last_mut() {
            line.truncate(line.trim_end_matches('\n').len());
        }
    }

    /// Empty lines at the end belong to the patch's layout, not to the file.
    fn drop_bare(&mut self) {
        self.lines.truncate(self.lines.len() - self.bare);
    }

    /// The hunk of these lines.
    fn finish(self, hunk: Hunk) -> Hunk {
        let side = |other: Sign| -> String {
            self.lines.iter().filter(|(sign, _)| *sign != other).map(|(_, line)| line.as_str()).collect()
        };
        Hunk { old: side(Sign::Added), new: side(Sign::Removed), ..hunk }
    }
}

#[cfg(test)]
mod tests;
