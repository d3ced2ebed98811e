//! Replacing exact text, and help for a model whose text is not there.

mod look_alike;

use bailey_kernel::meant;

/// Most occurrences that a message lists.
const LISTED_MAX: usize = 10;
/// Most lines that are looked at for something similar.
const COMPARED_LINES_MAX: usize = 20_000;
/// Most bytes of a line that are compared.
const COMPARED_BYTES_MAX: usize = 200;

/// Why text was not replaced. The words are for the model.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum EditError {
    #[error("`old` is empty; name the text to replace, or use fs.write for a whole file")]
    Empty,
    #[error("`old` and `new` are the same")]
    Same,
    #[error(
        "`old` occurs {count} times, at lines {lines}; add neighbouring lines to it or set `replace_all`"
    )]
    Ambiguous { count: usize, lines: String },
    #[error("`old` is not in the file{hint}")]
    Missing { hint: String },
}

/// `text` with `old` replaced by `new`: the one place, or all with `all`. Where every line of `text` ends
/// with CRLF, line ends of `old` and `new` count as CRLF.
///
/// # Errors
/// When there is nothing to replace or it is not clear what.
pub(crate) fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<String, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    // What is not seen was shown by a mark.
    let (old, new) = (meant(old, text), meant(new, text));
    let (old, new) =
        if is_crlf(text) { (to_crlf(&old), to_crlf(&new)) } else { (old.into_owned(), new.into_owned()) };
    if old == new {
        return Err(EditError::Same);
    }
    let places = places(text, &old, if all { 1 } else { usize::MAX });
    match places.as_slice() {
        [] => Err(EditError::Missing { hint: hint(text, &old) }),
        [_] | [_, ..] if all => Ok(text.replace(&old, &new)),
        [place] => {
            let (before, rest) = text.split_at(*place);
            Ok([before, &new, rest.get(old.len()..).unwrap_or_default()].concat())
        }
        [..] => Err(EditError::Ambiguous { count: places.len(), lines: line_numbers(text, &places) }),
    }
}

/// Whether every line end is CRLF, and there is one.
pub(crate) fn is_crlf(text: &str) -> bool {
    let newlines = text.matches('\n').count();
    newlines > 0 && newlines == text.matches("\r\n").count()
}

/// The text with CRLF for every line end.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Byte positions of `part`, overlapping ones too, at most `most` and never more than 10,000.
fn places(text: &str, part: &str, most: usize) -> Vec<usize> {
    let step = part.chars().next().map_or(1, char::len_utf8);
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() < most.min(10_000) {
        let Some(found) = text.get(from..).and_then(|rest| rest.find(part)) else { break };
        places.push(from + found);
        from += found + step;
    }
    places
}

/// The lines of these positions, the first few of them.
pub(crate) fn line_numbers(text: &str, places: &[usize]) -> String {
    let number = |place: &usize| text.get(..*place).map_or(0, |before| before.matches('\n').count()) + 1;
    let mut lines: Vec<String> =
        places.iter().take(LISTED_MAX).map(|place| number(place).to_string()).collect();
    if places.len() > LISTED_MAX {
        lines.push("…".into());
    }
    lines.join(", ")
}

/// Where in the text stands what is most like `old`. Lines are named and not quoted: what reads them takes
/// secrets out of the whole file, and one line of a key, or half of a secret beside a cut, is known to
/// nobody.
pub(crate) fn hint(text: &str, old: &str) -> String {
    if old.contains("[redacted:") {
        return "; it holds a mark that stands for a secret you are not shown, so choose text without it"
            .into();
    }
    let Some(line) = old.lines().map(str::trim).find(|line| !line.is_empty()) else { return String::new() };
    let near = [old, line].into_iter().find_map(|part| look_alike::difference(text, part));
    if let Some(difference) = near {
        return format!(
            "; something that looks the same is: {difference}. Write these letters as the file has them"
        );
    }
    let line = head(line);
    let candidates = text.lines().take(COMPARED_LINES_MAX).enumerate();
    let mut scored: Vec<(usize, usize)> =
        candidates.map(|(index, other)| (likeness(line, head(other.trim())), index + 1)).collect();
    scored.sort_by_key(|(score, number)| (std::cmp::Reverse(*score), *number));
    let close: Vec<_> = scored.into_iter().take(3).filter(|(score, _)| *score >= 50).collect();
    let Some((best, _)) = close.first() else { return String::new() };
    let numbers: Vec<String> = close.iter().map(|(_, number)| number.to_string()).collect();
    let numbers = numbers.join(", ");
    if *best == 100 && old.trim().lines().count() == 1 {
        return format!("; it differs in white space only from what stands there (line {numbers})");
    }
    format!("; most like its first line are these lines, which you can read: {numbers}")
}

/// How alike two lines are, from 0 to 100: the share of neighbouring pairs of bytes that both have (Dice).
fn likeness(a: &str, b: &str) -> usize {
    if a == b {
        return 100;
    }
    let pairs = |text: &str| -> Vec<[u8; 2]> {
        let mut pairs: Vec<[u8; 2]> =
            text.as_bytes().windows(2).filter_map(|pair| pair.try_into().ok()).collect();
        pairs.sort_unstable();
        pairs
    };
    let (left, right) = (pairs(a), pairs(b));
    let total = left.len() + right.len();
    let mut right = right.into_iter().peekable();
    let mut common = 0;
    for pair in left {
        while right.next_if(|other| *other < pair).is_some() {}
        common += usize::from(right.next_if_eq(&pair).is_some());
    }
    (200 * common).checked_div(total).unwrap_or(0).min(99)
}

fn head(line: &str) -> &str {
    line.get(..line.floor_char_boundary(COMPARED_BYTES_MAX)).unwrap_or(line)
}

#[cfg(test)]
mod tests;
