//! Unified diffs for people and models: the same for both, and the same every time (no clock decides how hard
//! to try).

use bailey_kernel::{Output, Redactor};
use bailey_protocol::{Digest, FileChange, FileReport, Report, quoted};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Above this many changed lines no smallest diff is looked for: the whole middle is shown as replaced.
const MYERS_LINES_MAX: usize = 4_000;
/// Above this many bytes, old and new together, there is no diff.
const BYTES_MAX: usize = 4 << 20;
/// Most characters shown of one line.
const LINE_CHARS_MAX: usize = 500;
/// Stands for a change of which nothing can be shown.
const HIDDEN: &str = "(what changes is part of a secret)";

/// A diff to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diff {
    /// The text, no newline at its end.
    pub(crate) text: String,
    /// Whether all of it is there.
    pub(crate) whole: bool,
    /// Bytes that were taken for secrets.
    pub(crate) hidden: usize,
}

/// The diff of one planned change. What a file holds now is looked up by digest in what was read; the second
/// value says whether it was found.
pub(crate) fn of_change(
    file: &FileChange,
    seen: &[Output],
    lines_max: usize,
    redactor: &Redactor,
) -> (Diff, bool) {
    let old = file.base.map(|digest| content_of(digest, seen));
    let known = !matches!(old, Some(None));
    let new = file.new.as_ref().map(|blob| blob.0.as_slice());
    (between(&file.path.0, old.flatten(), new, lines_max, redactor), known)
}

/// The file with this content among what was read.
fn content_of(digest: Digest, seen: &[Output]) -> Option<&[u8]> {
    seen.iter().find_map(|output| match output.report() {
        Report::File(FileReport { content, digest: Some(found), .. }) if *found == digest => {
            Some(content.0.as_slice())
        }
        _ => None,
    })
}

/// The unified diff of a file's texts, none where there is no such file, without secrets, cut to `lines_max`
/// lines.
#[must_use]
pub fn difference(
    path: &str,
    old: Option<&str>,
    new: Option<&str>,
    lines_max: usize,
    redactor: &Redactor,
) -> String {
    between(path, old.map(str::as_bytes), new.map(str::as_bytes), lines_max, redactor).text
}

/// The diff from `old` to `new`, where none means that there is no file, without secrets, then cut to
/// `lines_max` lines.
pub(crate) fn between(
    path: &str,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    lines_max: usize,
    redactor: &Redactor,
) -> Diff {
    let size =
        |bytes: Option<&[u8]>| bytes.map_or("nothing".into(), |bytes| format!("{} bytes", bytes.len()));
    let (from, to) = (old.unwrap_or_default(), new.unwrap_or_default());
    let header = header(path, old.is_some(), new.is_some());
    if from.len() + to.len() > BYTES_MAX {
        let text = format!("{header}(too large to show: {} become {})", size(old), size(new));
        return Diff { text, whole: false, hidden: 0 };
    }
    let texts = (std::str::from_utf8(from), std::str::from_utf8(to));
    let (Ok(from), Ok(to)) = texts else {
        return Diff {
            text: format!("{header}(not text: {} become {})", size(old), size(new)),
            whole: false,
            hidden: 0,
        };
    };
    let (hunks, hidden) = clean_hunks(from, to, redactor);
    let text = format!("{header}{hunks}");
    let clean = redactor.redact(&text);
    let hidden = hidden + clean.covered;
    let (text, whole) = cut(&clean.text, lines_max);
    Diff { text, whole: whole && hidden == 0, hidden }
}

/// The hunks, where secrets can still be taken out of them, and how many bytes have gone already. Of a secret
/// of several lines a hunk may hold a part, which nobody would know for one: where there is such a secret the
/// texts are compared without it.
fn clean_hunks(old: &str, new: &str, redactor: &Redactor) -> (String, usize) {
    let clean = [old, new].map(|text| redactor.redact(text));
    let has_lines = |text: &str, clean: &str| text.lines().count() != clean.lines().count();
    let [old_clean, new_clean] = &clean;
    if !has_lines(old, &old_clean.text) && !has_lines(new, &new_clean.text) {
        return (hunks(old, new), 0);
    }
    let hunks = hunks(&old_clean.text, &new_clean.text);
    let hidden = old_clean.covered.max(new_clean.covered);
    (if hunks.is_empty() && old != new { HIDDEN.into() } else { hunks }, hidden)
}

/// The two lines with the names.
fn header(path: &str, old: bool, new: bool) -> String {
    let name = |there: bool, side: &str| match (there, path.starts_with('/')) {
        (false, _) => "/dev/null".into(),
        (true, true) => quoted(path),
        (true, false) => quoted(&format!("{side}/{path}")),
    };
    format!("--- {}\n+++ {}\n", name(old, "a"), name(new, "b"))
}

/// The hunks, whole. Lines end with `\n` alone; anything else is part of the line.
pub(crate) fn hunks(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut text = String::new();
    for group in group_diff_ops(operations(&old, &new), CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let removed = range(first.old_range().start, last.old_range().end);
        let added = range(first.new_range().start, last.new_range().end);
        text.push_str(&format!("@@ -{removed} +{added} @@\n"));
        for op in &group {
            if op.tag() == DiffTag::Equal {
                lines(&mut text, ' ', &old, op.old_range());
                continue;
            }
            lines(&mut text, '-', &old, op.old_range());
            lines(&mut text, '+', &new, op.new_range());
        }
    }
    text
}

fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.iter().skip(same).rev().zip(new.iter().skip(same).rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (old.len() - same - tail, new.len() - same - tail);
    if old_middle + new_middle <= MYERS_LINES_MAX {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let middle =
        DiffOp::Replace { old_index: same, old_len: old_middle, new_index: same, new_len: new_middle };
    let after = (same + old_middle, same + new_middle);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: same },
        middle,
        DiffOp::Equal { old_index: after.0, new_index: after.1, len: tail },
    ]
}

/// `first,count` from 1, or `line before,0` for no lines, as POSIX `diff -u` has it.
fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        len => format!("{},{len}", start + 1),
    }
}

fn lines(text: &mut String, sign: char, lines: &[&str], range: std::ops::Range<usize>) {
    for line in lines.get(range).unwrap_or_default() {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// What of a text fits a screen, and whether that is all of it.
fn cut(text: &str, lines_max: usize) -> (String, bool) {
    // Not `lines`, which takes a carriage return away that is part of the change.
    let lines: Vec<&str> = text.split_terminator('\n').collect();
    let total = lines.len();
    let mut shown: Vec<String> =
        lines.iter().take(lines_max).map(|line| line_ends(line, LINE_CHARS_MAX)).collect();
    let whole = total <= lines_max && lines.iter().all(|line| line.chars().count() <= LINE_CHARS_MAX);
    if total > lines_max {
        shown.push(format!("… {} lines left out …", total - lines_max));
    }
    (shown.join("\n"), whole)
}

/// A line by its beginning and its end, where it has more than `most` characters: what matters may stand in
/// either.
pub(crate) fn line_ends(line: &str, most: usize) -> String {
    let count = line.chars().count();
    if count <= most {
        return line.into();
    }
    let half = most / 2;
    let head: String = line.chars().take(half).collect();
    let tail: String = line.chars().skip(count - half).collect();
    format!("{head}… {} characters left out …{tail}", count - 2 * half)
}

#[cfg(test)]
mod tests;
