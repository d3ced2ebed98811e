//! The `*** Begin Patch` form that several models are trained to write.

use super::{Change, FilePatch, Hunk, HunkBody, PatchError, Reader};

/// Reads all files between `*** Begin Patch` and `*** End Patch`.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Vec<FilePatch>, PatchError> {
    while reader.peek().is_some_and(|line| line.trim().is_empty()) {
        reader.at += 1;
    }
    if reader.peek().map(str::trim_end) != Some("*** Begin Patch") {
        return Err(reader.error("expected `*** Begin Patch`"));
    }
    reader.at += 1;
    let mut files = Vec::new();
    loop {
        let Some(line) = reader.peek().map(str::trim_end) else {
            return Err(reader.error("`*** End Patch` is missing; is the patch whole?"));
        };
        if line == "*** End Patch" {
            return Ok(files);
        }
        if line.is_empty() {
            reader.at += 1;
        } else {
            files.push(file(reader, line)?);
        }
    }
}

fn file(reader: &mut Reader<'_>, line: &str) -> Result<FilePatch, PatchError> {
    let of = |word: &str| {
        line.strip_prefix(word).map(|path| path.trim().to_owned()).filter(|path| !path.is_empty())
    };
    if let Some(path) = of("*** Add File:") {
        reader.at += 1;
        return Ok(FilePatch { path, to: None, change: Change::Create(added(reader)?) });
    }
    if let Some(path) = of("*** Delete File:") {
        reader.at += 1;
        return Ok(FilePatch { path, to: None, change: Change::Delete(Vec::new()) });
    }
    let Some(path) = of("*** Update File:") else {
        return Err(
            reader.error("expected `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`")
        );
    };
    reader.at += 1;
    let to = reader.peek().and_then(|line| line.strip_prefix("*** Move to:")).map(|to| to.trim().to_owned());
    if to.is_some() {
        reader.at += 1;
    }
    let mut hunks = Vec::new();
    while reader.peek().is_some_and(|line| !line.starts_with("*** ")) {
        hunks.extend(hunk(reader)?);
    }
    if hunks.is_empty() && to.is_none() {
        return Err(reader.error(format!("`{path}` is updated without a hunk")));
    }
    Ok(FilePatch { path, to, change: Change::Update(hunks) })
}

fn added(reader: &mut Reader<'_>) -> Result<String, PatchError> {
    let mut content = String::new();
    while let Some(line) = reader.peek().filter(|line| !line.starts_with("*** ")) {
        let Some(rest) = line.strip_prefix('+') else {
            return Err(reader.error("each line of an added file starts with `+`"));
        };
        content.push_str(rest);
        reader.at += 1;
    }
    Ok(content)
}

/// One hunk; none for empty lines between.
fn hunk(reader: &mut Reader<'_>) -> Result<Option<Hunk>, PatchError> {
    let mut hunk = Hunk::default();
    let mut headed = false;
    while let Some(anchor) = reader.peek().and_then(|line| line.strip_prefix("@@")) {
        let anchor = anchor.trim();
        if !anchor.is_empty() {
            hunk.anchors.push(anchor.into());
        }
        headed = true;
        reader.at += 1;
    }
    let mut body = HunkBody::default();
    while let Some(line) = reader.peek().filter(|line| !line.starts_with("@@") && !line.starts_with("*** ")) {
        if body.push(line).is_none() {
            return Err(reader.error("each line of a hunk starts with a blank, `+` or `-`"));
        }
        reader.at += 1;
    }
    if reader.peek().map(str::trim_end) == Some("*** End of File") {
        hunk.at_end = true;
        reader.at += 1;
    }
    body.drop_bare();
    if body.lines.is_empty() {
        return if headed { Err(reader.error("a hunk without lines")) } else { Ok(None) };
    }
    Ok(Some(body.finish(hunk)))
}
