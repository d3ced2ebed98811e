//! The one place where a change of files is made, so that no tool can write a redaction mark over a secret,
//! and the one place that tells the model of it.

use crate::{
    diff,
    typed::{PerformedCall, count, unexpected},
};
use bailey_kernel::{Conclusion, Marks, Output, Plan};
use bailey_protocol::{Action, Blob, FileChange, FileKind, FileReport, Report, Status, WsPath};

/// Most lines of the diff of one file.
const DIFF_LINES_MAX: usize = 200;
/// Most lines of the diffs of one call.
const CALL_LINES_MAX: usize = 600;

/// What one file shall hold.
pub(crate) struct NewContent<'a> {
    /// The file.
    pub(crate) path: WsPath,
    /// What it holds now; none: it must not exist.
    pub(crate) base: Option<&'a FileReport>,
    /// Where its text comes from when it is moved here.
    pub(crate) source: Option<&'a [u8]>,
    /// What it shall hold; none: it shall be gone.
    pub(crate) new: Option<Vec<u8>>,
}

/// What a plan knows of a path whose content it replaces as a whole.
pub(crate) enum PathKnowledge<'a> {
    /// Nothing yet: this is to be looked at next.
    Unknown(Action),
    /// What stands there, if anything does, and what else was brought after that.
    Known(Option<&'a FileReport>, &'a [Output]),
}

/// What stands at a path, as far as it was looked at.
///
/// # Errors
/// When no regular file can be put there, or the one that is there cannot be read.
pub(crate) fn standing<'a>(path: &WsPath, seen: &'a [Output]) -> Result<PathKnowledge<'a>, String> {
    let [stat, rest @ ..] = seen else {
        return Ok(PathKnowledge::Unknown(Action::Stat { path: path.clone() }));
    };
    if !exists(path, stat)? {
        return Ok(PathKnowledge::Known(None, rest));
    }
    let [read, rest @ ..] = rest else {
        return Ok(PathKnowledge::Unknown(Action::Read { path: path.clone() }));
    };
    Ok(PathKnowledge::Known(Some(base(path, read)?), rest))
}

fn exists(path: &WsPath, stat: &Output) -> Result<bool, String> {
    if let Status::Failed { reason } = &stat.outcome().status {
        return Err(format!("cannot write `{path}`: {reason}"));
    }
    let Report::Stat(stat) = stat.report() else {
        return Err(format!("cannot write `{path}`: nobody could say what stands there"));
    };
    match stat.found {
        None => Ok(false),
        Some(FileKind::File | FileKind::Symlink) => Ok(true),
        Some(FileKind::Directory) => Err(format!("cannot write `{path}`: it is a directory")),
        Some(FileKind::Other) => Err(format!("cannot write `{path}`: it is no regular file")),
    }
}

/// The content of a file that a plan asked for.
///
/// # Errors
/// Why it could not be read, or is not whole.
pub(crate) fn base<'a>(path: &WsPath, output: &'a Output) -> Result<&'a FileReport, String> {
    if let Status::Failed { reason } = &output.outcome().status {
        return Err(format!("cannot change `{path}`, because reading it failed: {reason}"));
    }
    let Report::File(file) = output.report() else {
        return Err(format!("cannot change `{path}`: it was not read"));
    };
    if file.digest.is_none() {
        return Err(format!(
            "cannot change `{path}`: it has {} bytes, more than can be read at once; use command.run",
            file.size
        ));
    }
    Ok(file)
}

/// A file's content as text.
///
/// # Errors
/// When it is none.
pub(crate) fn text<'a>(path: &WsPath, file: &'a FileReport) -> Result<&'a str, String> {
    std::str::from_utf8(&file.content.0).map_err(|_| {
        format!("cannot edit `{path}`: it is not UTF-8 text ({} bytes); use command.run", file.size)
    })
}

/// The change of these files.
///
/// # Errors
/// When new content holds a redaction mark that the old content lacks: the model copied what the screen put
/// in a secret's place, and writing it would destroy the user's secret.
pub(crate) fn plan(files: Vec<NewContent<'_>>) -> Result<Plan, String> {
    for file in &files {
        let old = file.source.or(file.base.map(|base| base.content.0.as_slice())).unwrap_or_default();
        let Some(mark) = foreign_mark(old, file.new.as_deref().unwrap_or_default()) else { continue };
        return Err(format!(
            "refused to write `{mark}` to `{}`: that text is a mark which stands for a secret that you are not \
             shown, and writing it would destroy the secret; leave the secret's line alone with fs.edit, or \
             change it with a command",
            file.path
        ));
    }
    let change = |file: NewContent<'_>| FileChange {
        path: file.path,
        base: file.base.and_then(|base| base.digest),
        new: file.new.map(Blob),
    };
    Ok(Plan::Act(Action::Change { files: files.into_iter().map(change).collect() }))
}

/// What the model is told of a change.
pub(crate) fn conclude<A>(done: &PerformedCall<'_, A>) -> Conclusion {
    let Report::Changed { files: changed } = &done.outcome.report else { return unexpected() };
    let Some(Action::Change { files }) = done.action else {
        let lines: Vec<String> = changed.iter().map(|file| format!("changed {}", file.path)).collect();
        return Conclusion { ok: true, summary: count(changed.len(), "file"), text: lines.join("\n") };
    };
    let mut room = CALL_LINES_MAX;
    let mut parts = Vec::new();
    for file in files {
        parts.push(verb(file));
        if is_silent(file) {
            continue;
        }
        let (diff, _) = diff::of_change(file, done.seen, DIFF_LINES_MAX.min(room), done.redactor);
        room = room.saturating_sub(diff.text.lines().count());
        parts.push(diff.text);
    }
    let summary = match files.as_slice() {
        [file] => verb(file),
        _ => format!("changed {}", count(files.len(), "file")),
    };
    Conclusion { ok: true, summary, text: parts.join("\n") }
}

/// A deleted file needs no diff: nothing of it is left to check. An unchanged one has none.
fn is_silent(file: &FileChange) -> bool {
    file.new.is_none() || file.base == file.new.as_ref().map(|new| bailey_protocol::Digest::of(&new.0))
}

fn verb(file: &FileChange) -> String {
    let verb = match (&file.base, &file.new) {
        (_, None) => "deleted",
        (None, Some(_)) => "created",
        (Some(_), Some(_)) if is_silent(file) => "unchanged",
        (Some(_), Some(_)) => "changed",
    };
    format!("{verb} {}", file.path)
}

/// The first mark `[redacted:NAME]` that `new` holds more often than `old`.
pub(crate) fn foreign_mark(old: &[u8], new: &[u8]) -> Option<String> {
    Marks::of(new).beyond(&Marks::of(old)).into_iter().next().map(|(mark, _)| mark)
}

#[cfg(test)]
mod tests;
