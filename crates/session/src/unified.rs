//! A path's change, in the form that people and `patch` read.

use bailey_protocol::{FileKind, FileState, PathCount, quoted};
use similar::{DiffOp, DiffTag, TextDiff, udiff::UnifiedHunkHeader};

/// Lines around a change that belong to its hunk.
pub(crate) const CONTEXT_LINES: usize = 3;

/// A unified diff of one path, with a line for content that is not text; and the same in numbers. The
/// numbers are never read from the diff: a file's text can look like the head of another file.
pub(crate) fn unified(path: &str, old: Option<&FileState>, new: Option<&FileState>) -> (String, PathCount) {
    let count = |more, less, now| PathCount { path: path.to_owned(), more, less, now };
    // A path that stays in the layer without a comparison is shown, too. A head would say that it was made
    // or removed.
    if old.is_none() && new.is_none() {
        return (format!("{}: not compared\n", quoted(path)), count(0, 0, Some("not compared".into())));
    }
    let (from, to) = (quoted(&format!("a/{path}")), quoted(&format!("b/{path}")));
    let modes = mode_lines(&from, &to, old, new);
    let mode = new.filter(|_| !modes.is_empty()).map(|new| format!("mode {:06o}", git_mode(new)));
    let head = match (old, new) {
        (None, _) => format!("--- /dev/null\n+++ {to}\n"),
        (Some(_), None) => format!("--- {from}\n+++ /dev/null\n"),
        (Some(_), Some(_)) => format!("--- {from}\n+++ {to}\n"),
    };
    match (text(old), text(new)) {
        (Some(before), Some(after)) if before != after => {
            let diff = by_lines(&before, &after);
            let (more, less) = lines(&diff);
            let hunks = diff.grouped_ops(CONTEXT_LINES);
            let shown = hunks.iter().fold(modes + &head, |shown, ops| shown + &hunk(&diff, ops));
            (shown, count(more, less, mode))
        }
        (Some(_), Some(_)) => (if modes.is_empty() { head } else { modes }, count(0, 0, mode)),
        (before, after) => {
            let (was, is) = (describe(old), describe(new));
            let shown = format!("{modes}{head}{was} -> {is}\n{}", of_kinds(old, new, before, after));
            (shown, count(0, 0, Some(if new.is_none() { "gone".into() } else { is })))
        }
    }
}

/// How many lines were added and removed.
fn lines(diff: &TextDiff<'_, '_, str>) -> (usize, usize) {
    let changes = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    changes.fold((0, 0), |(more, less), op| (more + op.new_range().len(), less + op.old_range().len()))
}

/// Compares two texts by lines. A line ends where it does for git and `patch`: only at a line feed.
pub(crate) fn by_lines<'a>(before: &'a str, after: &'a str) -> TextDiff<'a, 'a, str> {
    let lines = |text: &'a str| text.split_inclusive('\n').collect::<Vec<_>>();
    TextDiff::configure().diff_slices(&lines(before), &lines(after))
}

/// A hunk's text. `ops` holds at least one operation.
pub(crate) fn hunk(diff: &TextDiff<'_, '_, str>, ops: &[DiffOp]) -> String {
    let mut shown = format!("{}\n", UnifiedHunkHeader::new(ops));
    for change in ops.iter().flat_map(|op| diff.iter_changes(op)) {
        shown += &format!("{}{}", change.tag(), change.value());
        if !change.value().ends_with('\n') {
            shown += "\n\\ No newline at end of file\n";
        }
    }
    shown
}

/// The lines of a text that replaces another kind of file, or that another kind replaces. They have no hunk
/// head: programs that read patches skip such lines, but would refuse the whole patch for a hunk of
/// something that is not text.
fn of_kinds(
    old: Option<&FileState>,
    new: Option<&FileState>,
    before: Option<String>,
    after: Option<String>,
) -> String {
    if old.map(|state| state.kind) == new.map(|state| state.kind) {
        return String::new();
    }
    let lines = |sign: char, text: Option<String>| {
        text.unwrap_or_default().lines().map(|line| format!("{sign}{line}\n")).collect::<String>()
    };
    lines('-', before) + &lines('+', after)
}

/// The lines in which git writes a change of the mode. They name the file, because they stand before its
/// head.
pub(crate) fn mode_lines(from: &str, to: &str, old: Option<&FileState>, new: Option<&FileState>) -> String {
    match (old, new) {
        (Some(old), Some(new)) if old.kind == new.kind && old.mode != new.mode => {
            let (old, new) = (git_mode(old), git_mode(new));
            format!("diff --git {from} {to}\nold mode {old:06o}\nnew mode {new:06o}\n")
        }
        _ => String::new(),
    }
}

fn git_mode(state: &FileState) -> u32 {
    let kind = if state.kind == FileKind::Directory { 0o040_000 } else { 0o100_000 };
    kind | state.mode & 0o7777
}

fn describe(state: Option<&FileState>) -> String {
    match state {
        None => "nothing".into(),
        Some(FileState { kind: FileKind::Symlink, content: Some(target), .. }) => {
            format!("link to {}", quoted(&target.lossy()))
        }
        Some(FileState { kind: FileKind::Directory, .. }) => "directory".into(),
        Some(state) if text(Some(state)).is_some() => format!("text of {} bytes", state.size),
        Some(state) if state.content.is_none() => format!("file of {} bytes, not shown", state.size),
        Some(state) => format!("binary file of {} bytes", state.size),
    }
}

/// The text of a file, empty when there is no file; `None` when it is not text or not available.
pub(crate) fn text(state: Option<&FileState>) -> Option<String> {
    match state {
        None => Some(String::new()),
        Some(FileState { kind: FileKind::File, content: Some(content), .. }) => {
            String::from_utf8(content.0.clone()).ok().filter(|text| !text.contains('\0'))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::unified;
    use bailey_protocol::{Blob, Digest, FileKind, FileState};
    use proptest::prelude::*;

    fn state(kind: FileKind, content: Option<&[u8]>) -> FileState {
        let content = content.map(|bytes| Blob(bytes.to_vec()));
        FileState { state: Digest::of(b""), kind, mode: 0o644, size: 3, content }
    }

    /// Lines that ended at a carriage return made a diff that `patch` refused.
    #[test]
    fn lines_end_where_they_do_for_patch() {
        let text = |content: &str| state(FileKind::File, Some(content.as_bytes()));
        let body = |old: &str, new: &str| {
            unified("x", Some(&text(old)), Some(&text(new))).0.replace("--- a/x\n+++ b/x\n", "")
        };
        assert_eq!(body("a\rb\nc\n", "a\rb\nd\n"), "@@ -1,2 +1,2 @@\n a\rb\n-c\n+d\n");
        let none = "\n\\ No newline at end of file\n";
        assert_eq!(body("a\n", "a\nb\r"), format!("@@ -1 +1,2 @@\n a\n+b\r{none}"));
        assert_eq!(body("a", "b"), format!("@@ -1 +1 @@\n-a{none}+b{none}"));
        assert_eq!(body("a\r\n", "b\r\n"), "@@ -1 +1 @@\n-a\r\n+b\r\n", "the control");
    }

    /// With a head, it looked like a file that is made, even when the file existed.
    #[test]
    fn what_was_not_compared_has_no_head() {
        assert_eq!(unified("x", None, None).0, "x: not compared\n");
    }

    /// Such a text was called a binary file, so people did not see the content that an apply would put
    /// there.
    #[test]
    fn a_text_that_takes_the_place_of_something_else_is_shown() {
        let text = state(FileKind::File, Some(b"a\nb\n"));
        let directory = state(FileKind::Directory, None);
        let link = state(FileKind::Symlink, Some(b"to"));
        let body = |old, new| unified("x", Some(old), Some(new)).0.replace("--- a/x\n+++ b/x\n", "");
        assert_eq!(body(&directory, &text), "directory -> text of 3 bytes\n+a\n+b\n");
        assert_eq!(body(&link, &text), "link to to -> text of 3 bytes\n+a\n+b\n");
        assert_eq!(body(&text, &link), "text of 3 bytes -> link to to\n-a\n-b\n");
        let (binary, large) = (state(FileKind::File, Some(b"a\0")), state(FileKind::File, None));
        assert_eq!(body(&binary, &link), "binary file of 3 bytes -> link to to\n");
        assert_eq!(body(&binary, &text), "binary file of 3 bytes -> text of 3 bytes\n");
        assert_eq!(body(&large, &text), "file of 3 bytes, not shown -> text of 3 bytes\n");
    }

    fn side() -> impl Strategy<Value = Option<FileState>> {
        let line = "(\\+\\+ b/src/main.rs|-- a/x|@@ -1 \\+1,900 @@|diff --git a/x b/x|new mode 100755|a|b)";
        let text = prop::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n").into_bytes());
        let bytes = prop_oneof![4 => text, 1 => Just(b"\0\xff".to_vec())];
        let kind = prop_oneof![Just(FileKind::File), Just(FileKind::Symlink), Just(FileKind::Directory)];
        let mode = prop_oneof![Just(0o644), Just(0o755)];
        prop::option::of(
            (kind, prop::option::of(bytes), mode)
                .prop_map(|(kind, bytes, mode)| FileState { mode, ..state(kind, bytes.as_deref()) }),
        )
    }

    proptest! {
        /// For every name and every text, the numbers of a path are those of its own text.
        #[test]
        fn numbers_are_those_of_the_path(
            name in "(aaa|src/main.rs|a -> b|x\n\\+\\+\\+ b/src/main.rs|\\.git|\"q\\\\|\u{202e}z)",
            old in side(),
            new in side(),
        ) {
            let (shown, count) = unified(&name, old.as_ref(), new.as_ref());
            let (_, plain) = unified("x", old.as_ref(), new.as_ref());
            prop_assert_eq!(&count.path, &name);
            prop_assert_eq!((count.more, count.less, &count.now), (plain.more, plain.less, &plain.now));
            if let (Some(before), Some(after)) = (super::text(old.as_ref()), super::text(new.as_ref())) {
                let lines = |text: &str| text.split_inclusive('\n').count();
                prop_assert_eq!(lines(&before) + count.more, lines(&after) + count.less);
            } else {
                prop_assert!(count.now.is_some(), "{}", shown);
            }
        }
    }
}
