//! Unified diffs, as POSIX `diff -u` and git write them.

use super::{Change, FilePatch, Hunk, HunkBody, PatchError, Reader, Sign};

/// What git says of a file before its hunks.
#[derive(Default)]
struct Header {
    name: Option<String>,
    created: bool,
    deleted: bool,
    from: Option<String>,
    to: Option<String>,
}

/// Reads all files of a diff.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Vec<FilePatch>, PatchError> {
    let mut files = Vec::new();
    while let Some(line) = reader.peek() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let header = header(reader, names.trim_end())?;
            files.push(file(reader, header)?);
        } else if at_names(reader) {
            files.push(file(reader, Header::default())?);
        } else {
            refuse_stray(reader, line, files.is_empty())?;
            reader.at += 1;
        }
    }
    Ok(files)
}

/// Text between files is passed over, but nothing that looks like a part of a hunk.
fn refuse_stray(reader: &Reader<'_>, line: &str, before_all: bool) -> Result<(), PatchError> {
    if line.starts_with("@@") {
        return Err(reader.error("a hunk without a file; `--- a/PATH` and `+++ b/PATH` must come before it"));
    }
    let stray = line.starts_with([' ', '+', '-']) && !line.trim().is_empty() && !line.starts_with("-- ");
    if stray && !before_all && line.trim_end() != "--" {
        return Err(reader.error(
            "a line outside of any hunk; the `@@ -a,b +c,d @@` before it promises fewer lines than follow",
        ));
    }
    Ok(())
}

fn at_names(reader: &Reader<'_>) -> bool {
    let here = reader.peek().is_some_and(|line| line.starts_with("--- "));
    here && reader.peek_second().is_some_and(|line| line.starts_with("+++ "))
}

fn header(reader: &mut Reader<'_>, names: &str) -> Result<Header, PatchError> {
    let mut header = Header { name: same_name(names), ..Header::default() };
    reader.at += 1;
    while let Some(line) = reader.peek().map(str::trim_end) {
        if let Some(mode) = line.strip_prefix("new file mode ") {
            if mode != "100644" {
                return Err(reader.error(format!(
                    "a new file gets mode 100644, not {mode}; create it so and change it with command.run"
                )));
            }
            header.created = true;
        } else if line.starts_with("deleted file mode ") {
            header.deleted = true;
        } else if let Some(from) = line.strip_prefix("rename from ") {
            header.from = Some(name(reader, from)?);
        } else if let Some(to) = line.strip_prefix("rename to ") {
            header.to = Some(name(reader, to)?);
        } else if ["old mode ", "new mode ", "copy from ", "copy to "]
            .iter()
            .any(|word| line.starts_with(word))
        {
            return Err(reader.error(format!("`{line}` is not supported; use command.run")));
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err(reader.error("binary content cannot be patched"));
        } else if !line.starts_with("index ") && !line.starts_with("similarity index ") {
            break;
        }
        reader.at += 1;
    }
    Ok(header)
}

/// The name in `a/NAME b/NAME`; none when the two differ.
fn same_name(names: &str) -> Option<String> {
    let half = names.len().checked_sub(5)? / 2;
    let (left, right) = (names.get(2..2 + half)?, names.get(half + 5..)?);
    (left == right).then(|| left.to_owned())
}

fn name(reader: &Reader<'_>, text: &str) -> Result<String, PatchError> {
    let name = text.split('\t').next().unwrap_or_default().trim_end_matches(['\r', '\n']);
    if name.starts_with('"') {
        return Err(reader.error("quoted file names are not supported; write the name as it is"));
    }
    if name.is_empty() {
        return Err(reader.error("a file name is missing"));
    }
    Ok(name.into())
}

fn file(reader: &mut Reader<'_>, header: Header) -> Result<FilePatch, PatchError> {
    if !at_names(reader) {
        return without_hunks(reader, header);
    }
    let old = name(reader, reader.peek().and_then(|line| line.get(4..)).unwrap_or_default())?;
    reader.at += 1;
    let new = name(reader, reader.peek().and_then(|line| line.get(4..)).unwrap_or_default())?;
    reader.at += 1;
    let mut hunks = Vec::new();
    while reader.peek().is_some_and(|line| line.starts_with("@@")) {
        hunks.push(hunk(reader)?);
    }
    if let (Some(from), Some(to)) = (header.from, header.to) {
        return Ok(FilePatch { path: from, to: Some(to), change: Change::Update(hunks) });
    }
    match (old.as_str(), new.as_str()) {
        ("/dev/null", "/dev/null") => Err(reader.error("both names are /dev/null")),
        ("/dev/null", _) => {
            let created = |hunk: Hunk| hunk.old.is_empty().then_some(hunk.new);
            let content = hunks.into_iter().map(created).collect::<Option<String>>();
            let content = content.ok_or_else(|| reader.error("a new file has no old lines"))?;
            Ok(plain(new.strip_prefix("b/").unwrap_or(&new), Change::Create(content)))
        }
        (_, "/dev/null") => Ok(plain(old.strip_prefix("a/").unwrap_or(&old), Change::Delete(hunks))),
        (old, new) => {
            let both = old.strip_prefix("a/").zip(new.strip_prefix("b/"));
            let (old, new) = both.unwrap_or((old, new));
            if old != new {
                return Err(reader.error(format!(
                    "`{old}` and `{new}` are two files; to rename, write git's `rename from` and `rename to`"
                )));
            }
            if hunks.is_empty() {
                return Err(reader.error(format!("`{old}` has no hunk (`@@ -a,b +c,d @@`)")));
            }
            Ok(plain(old, Change::Update(hunks)))
        }
    }
}

fn without_hunks(reader: &Reader<'_>, header: Header) -> Result<FilePatch, PatchError> {
    match header {
        Header { from: Some(path), to: Some(to), .. } => {
            Ok(FilePatch { path, to: Some(to), change: Change::Update(Vec::new()) })
        }
        Header { name: Some(name), created: true, .. } => Ok(plain(&name, Change::Create(String::new()))),
        Header { name: Some(name), deleted: true, .. } => Ok(plain(&name, Change::Delete(Vec::new()))),
        _ => Err(reader.error("`diff --git` is not followed by `--- a/PATH` and `+++ b/PATH`")),
    }
}

fn plain(path: &str, change: Change) -> FilePatch {
    FilePatch { path: path.into(), to: None, change }
}

fn hunk(reader: &mut Reader<'_>) -> Result<Hunk, PatchError> {
    let line = reader.peek().unwrap_or_default().trim_end();
    let inner = line.trim_start_matches('@').split("@@").next().unwrap_or_default().trim();
    if !inner.starts_with('-') {
        reader.at += 1;
        let anchors = (!matches!(inner, "" | "..." | "…")).then(|| inner.to_owned());
        return Ok(uncounted(reader, Hunk { anchors: anchors.into_iter().collect(), ..Hunk::default() }));
    }
    let ranges = inner.split_once(' ').and_then(|(old, new)| {
        Some((range(old.strip_prefix('-')?)?, range(new.trim_start().strip_prefix('+')?)?))
    });
    let Some(((start, old), (_, new))) = ranges else {
        return Err(reader.error(format!("`{line}` is no hunk header such as `@@ -1,3 +1,4 @@`")));
    };
    reader.at += 1;
    counted(reader, Hunk { start: Some(start), ..Hunk::default() }, old, new)
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// A body of exactly so many old and new lines.
fn counted(reader: &mut Reader<'_>, hunk: Hunk, old: usize, new: usize) -> Result<Hunk, PatchError> {
    let (mut old_left, mut new_left) = (old, new);
    let mut body = HunkBody::default();
    while old_left > 0 || new_left > 0 {
        if take_marker(reader, &mut body) {
            continue;
        }
        let sign = reader.peek().and_then(|line| body.push(line)).ok_or_else(|| {
            reader.error(format!(
                "the hunk ends too early: its header promises {old_left} more old and {new_left} more new lines"
            ))
        })?;
        let step = |left: usize, counts: bool| left.checked_sub(usize::from(counts));
        let (old_next, new_next) =
            (step(old_left, sign != Sign::Added), step(new_left, sign != Sign::Removed));
        (old_left, new_left) = old_next.zip(new_next).ok_or_else(|| {
            reader.error(format!("the hunk has more lines than its header promises ({old} old, {new} new)"))
        })?;
        reader.at += 1;
    }
    take_marker(reader, &mut body);
    Ok(body.finish(hunk))
}

/// A body that ends where the next header, or anything else, begins.
fn uncounted(reader: &mut Reader<'_>, hunk: Hunk) -> Hunk {
    let mut body = HunkBody::default();
    while let Some(line) = reader.peek() {
        if take_marker(reader, &mut body) {
            continue;
        }
        if at_names(reader) || body.push(line).is_none() {
            break;
        }
        reader.at += 1;
    }
    body.drop_bare();
    body.finish(hunk)
}

/// `\ No newline at end of file` speaks of the line before it.
fn take_marker(reader: &mut Reader<'_>, body: &mut HunkBody) -> bool {
    let marker = reader.peek().is_some_and(|line| line.starts_with('\\'));
    if marker {
        body.strip_newline();
        reader.at += 1;
    }
    marker
}
