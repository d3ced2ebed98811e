//! Putting hunks into a text. All hunks are placed in the old text, in order and without overlap.

use super::{Hunk, PatchError};
use crate::edit::{hint, is_crlf, line_numbers, to_crlf};
use bailey_kernel::meant;

/// Most places of an ambiguous hunk that are looked for.
const PLACES_MAX: usize = 11;

/// The text with all hunks applied.
///
/// # Errors
/// Says which hunk does not fit, and where.
pub(crate) fn apply(path: &str, text: &str, hunks: &[Hunk]) -> Result<String, PatchError> {
    let crlf = is_crlf(text);
    let mut result = String::with_capacity(text.len());
    let mut cursor = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let fail = |problem| PatchError::Hunk { path: path.into(), number: index + 1, problem };
        // What is not seen was shown by a mark.
        let (old, new) = (meant(&hunk.old, text).into_owned(), meant(&hunk.new, text).into_owned());
        let hunk = Hunk { old, new, ..hunk.clone() };
        let hunk = if crlf { with_crlf(&hunk) } else { hunk };
        let (place, hunk) = place(text, cursor, hunk).map_err(fail)?;
        result.push_str(text.get(cursor..place).unwrap_or_default());
        cursor = place + hunk.old.len();
        let open = !hunk.new.is_empty() && !hunk.new.ends_with('\n');
        if open && cursor < text.len() {
            return Err(fail("`\\ No newline at end of file` stands before the file's end".into()));
        }
        result.push_str(&hunk.new);
    }
    result.push_str(text.get(cursor..).unwrap_or_default());
    Ok(result)
}

/// A patch without any CR, for a file whose lines all end with CRLF, means that file's line ends.
fn with_crlf(hunk: &Hunk) -> Hunk {
    if hunk.old.contains('\r') {
        return hunk.clone();
    }
    Hunk { old: to_crlf(&hunk.old), new: to_crlf(&hunk.new), ..hunk.clone() }
}

/// Where a hunk goes, and the hunk as it fits there.
fn place(text: &str, cursor: usize, hunk: Hunk) -> Result<(usize, Hunk), String> {
    if hunk.old.is_empty() {
        return insertion(text, cursor, hunk);
    }
    match find(text, cursor, &hunk)? {
        Some(place) => Ok((place, hunk)),
        None => {
            // The file's last line has no newline and the patch does not say so: then it keeps none.
            let open = Hunk { old: without_end(&hunk.old), new: without_end(&hunk.new), ..hunk.clone() };
            let fits = !text.ends_with('\n') && hunk.old.ends_with('\n');
            let place = if fits { find(text, cursor, &open)? } else { None };
            place.map(|place| (place, open)).ok_or_else(|| missing(text, cursor, &hunk))
        }
    }
}

/// Where the old lines stand; none when nowhere.
fn find(text: &str, cursor: usize, hunk: &Hunk) -> Result<Option<usize>, String> {
    if let Some(place) = hunk.start.and_then(|line| offset(text, line.saturating_sub(1)))
        && place >= cursor
        && stands_at(text, place, &hunk.old)
    {
        return Ok(Some(place));
    }
    let from = anchored(text, cursor, &hunk.anchors)?;
    let mut places = places(text, from, &hunk.old);
    if hunk.at_end {
        places.retain(|place| place + hunk.old.len() == text.len());
    }
    match places.as_slice() {
        [] => Ok(None),
        [place] => Ok(Some(*place)),
        [first, ..] if !hunk.anchors.is_empty() => Ok(Some(*first)),
        several => Err(format!(
            "its old lines stand at several places (lines {}), none of which it names; give more context lines",
            line_numbers(text, several)
        )),
    }
}

/// Where lines without any old line go.
fn insertion(text: &str, cursor: usize, hunk: Hunk) -> Result<(usize, Hunk), String> {
    let place = match hunk.start {
        Some(line) => offset(text, line).ok_or_else(|| format!("the file has no line {line}"))?,
        None if hunk.anchors.is_empty() => text.len(),
        None => {
            let anchor = anchored(text, cursor, &hunk.anchors)?;
            text.get(anchor..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| anchor + end + 1)
        }
    };
    if place < cursor {
        return Err("it lies before the end of the hunk before it".into());
    }
    let after_open_line = place == text.len() && !text.is_empty() && !text.ends_with('\n');
    if after_open_line {
        let new = format!("\n{}", without_end(&hunk.new));
        return Ok((place, Hunk { new, ..hunk }));
    }
    Ok((place, hunk))
}

/// The byte at which the line after the first `lines` lines begins; the end of the text counts as such.
fn offset(text: &str, lines: usize) -> Option<usize> {
    if lines == 0 {
        return Some(0);
    }
    let ends = text.match_indices('\n').map(|(end, _)| end + 1);
    let open = (!text.is_empty() && !text.ends_with('\n')).then_some(text.len());
    ends.chain(open).nth(lines - 1)
}

/// The start of the line that the last anchor names.
fn anchored(text: &str, cursor: usize, anchors: &[String]) -> Result<usize, String> {
    let mut from = cursor;
    let mut found = cursor;
    for anchor in anchors {
        let rest = text.get(from..).unwrap_or_default();
        let lines = rest.split_inclusive('\n').scan(from, |next, line| {
            let start = *next;
            *next += line.len();
            Some((start, line))
        });
        let line = lines.clone().find(|(_, line)| line.trim() == anchor.trim());
        let line = line.or_else(|| lines.clone().find(|(_, line)| line.contains(anchor.as_str())));
        let (start, line) =
            line.ok_or_else(|| format!("no line `{anchor}` follows{}", hint(rest, anchor)))?;
        (found, from) = (start, start + line.len());
    }
    Ok(found)
}

/// Every place from `from` on at which these whole lines stand. `from` is the start of a line.
fn places(text: &str, from: usize, lines: &str) -> Vec<usize> {
    let mut places: Vec<usize> = stands_at(text, from, lines).then_some(from).into_iter().collect();
    let after_newline = format!("\n{lines}");
    let mut at = from;
    while places.len() < PLACES_MAX {
        let Some(found) = text.get(at..).and_then(|rest| rest.find(&after_newline)) else { break };
        let place = at + found + 1;
        if stands_at(text, place, lines) {
            places.push(place);
        }
        at = place;
    }
    places
}

/// Whether these whole lines stand at the start of a line; an open last line only at the end of the text.
fn stands_at(text: &str, place: usize, lines: &str) -> bool {
    let rest = text.get(place..).unwrap_or_default();
    rest.starts_with(lines) && (lines.ends_with('\n') || rest.len() == lines.len())
}

fn without_end(lines: &str) -> String {
    let lines = lines.strip_suffix('\n').unwrap_or(lines);
    lines.strip_suffix('\r').unwrap_or(lines).into()
}

/// Says where the text is another than the hunk expects. Lines are named and not quoted, as [`hint`] does.
fn missing(text: &str, cursor: usize, hunk: &Hunk) -> String {
    if text.get(..cursor).is_some_and(|before| before.contains(&hunk.old)) {
        return "its old lines stand above those of the hunk before it: give the hunks in the order of the file".into();
    }
    let there = hunk.start.and_then(|line| {
        let rest = text.get(offset(text, line.saturating_sub(1))?..)?;
        let mut pairs = hunk.old.lines().zip(rest.lines().map(Some).chain(std::iter::repeat(None)));
        let (index, (_, found)) =
            (0..).zip(&mut pairs).find(|(_, (wanted, found))| Some(*wanted) != *found)?;
        Some(match found {
            Some(_) => format!("line {} is not the patch's old line {}", line + index, index + 1),
            None => format!("the file ends before line {}, the patch's old line {}", line + index, index + 1),
        })
    });
    there.unwrap_or_else(|| format!("its old lines are not in the file{}", hint(text, &hunk.old)))
}
