//! A path's change as people and `patch` read it.

use bailey_protocol::{FileKind, FileState, quoted};
use similar::TextDiff;

/// A unified diff of one path, with a line for what is not text.
pub(crate) fn unified(path: &str, old: Option<&FileState>, new: Option<&FileState>) -> String {
    let (from, to) = (quoted(&format!("a/{path}")), quoted(&format!("b/{path}")));
    let modes = mode_lines(&from, &to, old, new);
    let head = match (old, new) {
        // What stays in the layer without being compared is there all the same.
        (None, _) => format!("--- /dev/null\n+++ {to}\n"),
        (Some(_), None) => format!("--- {from}\n+++ /dev/null\n"),
        (Some(_), Some(_)) => format!("--- {from}\n+++ {to}\n"),
    };
    match (text(old), text(new)) {
        (Some(before), Some(after)) if before != after => {
            format!("{modes}{head}{}", TextDiff::from_lines(&before, &after).unified_diff())
        }
        (Some(_), Some(_)) if !modes.is_empty() => modes,
        (Some(_), Some(_)) => head,
        _ => format!("{modes}{head}{} -> {}\n", describe(old), describe(new)),
    }
}

/// The lines in which git says that a mode changes. They name the file first, because they stand before its head.
pub(crate) fn mode_lines(from: &str, to: &str, old: Option<&FileState>, new: Option<&FileState>) -> String {
    let mode = |state: &FileState| {
        let kind = if state.kind == FileKind::Directory { 0o040_000 } else { 0o100_000 };
        kind | state.mode & 0o7777
    };
    match (old, new) {
        (Some(old), Some(new)) if old.kind == new.kind && old.mode != new.mode => {
            format!("diff --git {from} {to}\nold mode {:06o}\nnew mode {:06o}\n", mode(old), mode(new))
        }
        _ => String::new(),
    }
}

fn describe(state: Option<&FileState>) -> String {
    match state {
        None => "nothing".into(),
        Some(FileState { kind: FileKind::Symlink, content: Some(target), .. }) => {
            format!("link to {}", quoted(&target.lossy()))
        }
        Some(FileState { kind: FileKind::Directory, .. }) => "directory".into(),
        Some(state) => format!("binary file of {} bytes", state.size),
    }
}

/// The text of a file, or of nothing; none for what is no text or is not at hand.
pub(crate) fn text(state: Option<&FileState>) -> Option<String> {
    match state {
        None => Some(String::new()),
        Some(FileState { kind: FileKind::File, content: Some(content), .. }) => {
            String::from_utf8(content.0.clone()).ok().filter(|text| !text.contains('\0'))
        }
        Some(_) => None,
    }
}
