//! Merges the changes of the session and of the user in a text, line by line, on the text's earlier state
//! (the base).
//!
//! A change is a run of lines in which one side differs from the base. Changes of both sides that share a
//! line or touch each other overlap, unless both sides hold the same lines there. With an overlap, nothing
//! is merged. The result is the project's text with the session's changes spliced in, so every part of it
//! comes from one of the two texts.

use bailey_protocol::{Digest, FileDiff, FileKind, FileState, Part, SPLICES_MAX, Splice, file_state};
use similar::{Algorithm, DiffTag, capture_diff_slices};
use std::{
    collections::HashMap,
    ops::Range,
    time::{Duration, Instant},
};

/// The time to merge the texts of one comparison. A merge that has begun may run past it. Texts that are
/// left then stay conflicts.
const TIME_MAX: Duration = Duration::from_secs(5);

/// The most lines of a text that is merged: the time to find changes grows with the square of the
/// differences.
const LINES_MAX: usize = 100_000;

/// The result for a path that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Both {
    /// A merge is not possible: the base is not known, or one of the three sides is not text.
    Unknown,
    /// The project holds all that the session changed.
    Same,
    /// The new state of the project's file, and how it is made.
    Merged(FileState, Part),
    /// Both sides changed lines that touch. The number is the first such line of the project's file.
    Overlapping(usize),
}

/// Merges the texts of one comparison.
pub(crate) struct Threeway {
    left: Duration,
}

impl Default for Threeway {
    fn default() -> Self {
        Self { left: TIME_MAX }
    }
}

impl Threeway {
    /// Merges the two sides of a path, when the kept base is the recorded one.
    pub(crate) fn merge(&mut self, file: &FileDiff, recorded: Option<Digest>) -> Both {
        let sides = [&file.base, &file.old, &file.new].map(|side| side.as_ref().and_then(text));
        let [Some((base, base_text)), Some((old, old_text)), Some((new, new_text))] = sides else {
            return Both::Unknown;
        };
        if Some(base.state) != recorded
            || old.mode != base.mode
            || new.mode != base.mode
            || self.left.is_zero()
            || [base_text, old_text, new_text].into_iter().any(is_long)
        {
            return Both::Unknown;
        }
        let begin = Instant::now();
        let spliced = splices(base_text, old_text, new_text);
        self.left = self.left.saturating_sub(begin.elapsed());
        let splices = match spliced {
            Ok(splices) if splices.is_empty() => return Both::Same,
            Ok(splices) if splices.len() > SPLICES_MAX => return Both::Unknown,
            Ok(splices) => splices,
            Err(line) => return Both::Overlapping(line + 1),
        };
        let part = Part { of: new.state, mode: new.mode, splices, rebases: true };
        let Some(bytes) = part.compose(old_text, new_text) else { return Both::Unknown };
        let state = file_state(part.mode, &bytes);
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let (kind, mode) = (FileKind::File, part.mode);
        Both::Merged(FileState { state, kind, mode, size, content: Some(bytes.into()) }, part)
    }
}

/// A text file, only when its bytes match its state: a key may have been removed from them on the way here.
fn text(side: &FileState) -> Option<(&FileState, &[u8])> {
    let bytes = side.content.as_ref().filter(|_| side.kind == FileKind::File)?.0.as_slice();
    let is_text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    (is_text && file_state(side.mode, bytes) == side.state).then_some((side, bytes))
}

fn is_long(text: &[u8]) -> bool {
    text.iter().filter(|byte| **byte == b'\n').count() > LINES_MAX
}

/// The parts of `new` that replace parts of `old`. Both texts were made from `base`.
///
/// # Errors
/// The first line of `old` at which the two have different changes.
fn splices(base: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<Splice>, usize> {
    let mut numbers = HashMap::new();
    let [base, old, new] = [base, old, new].map(|text| NumberedLines::of(text, &mut numbers));
    let of_old = changes(&base, &old);
    let of_new = changes(&base, &new);
    let mut spliced = Vec::new();
    // How many lines each side is ahead of the base, after the changes that are done.
    let (mut ahead_old, mut ahead_new) = (Ahead::default(), Ahead::default());
    let (mut of_old, mut of_new) = (of_old.as_slice(), of_new.as_slice());
    while let Some(first) =
        [of_old.first(), of_new.first()].into_iter().flatten().map(|it| it.base.start).min()
    {
        let mut span = first..first;
        let (mut mine, mut yours) = (0, 0);
        // The span grows as long as a change of either side touches it.
        loop {
            let is_near = |change: &&LineChange| change.base.start <= span.end;
            if let Some(change) = of_old.get(yours).filter(is_near) {
                (span.end, yours) = (span.end.max(change.base.end), yours + 1);
            } else if let Some(change) = of_new.get(mine).filter(is_near) {
                (span.end, mine) = (span.end.max(change.base.end), mine + 1);
            } else {
                break;
            }
        }
        let (theirs, rest_old) = of_old.split_at(yours);
        let (ours, rest_new) = of_new.split_at(mine);
        (of_old, of_new) = (rest_old, rest_new);
        let in_old = ahead_old.take(&span, theirs);
        let in_new = ahead_new.take(&span, ours);
        if ours.is_empty() || old.numbers(&in_old) == new.numbers(&in_new) {
            continue;
        }
        if !theirs.is_empty() {
            return Err(in_old.start);
        }
        spliced.push(old.splice(&in_old, &new, &in_new).ok_or(in_old.start)?);
    }
    Ok(spliced)
}

/// A run of lines in which one side differs from the base.
struct LineChange {
    base: Range<usize>,
    side: Range<usize>,
}

fn changes(base: &NumberedLines, side: &NumberedLines) -> Vec<LineChange> {
    let ops = capture_diff_slices(Algorithm::Myers, &base.numbers, &side.numbers);
    let mut changes: Vec<LineChange> = Vec::new();
    for op in ops.iter().filter(|op| op.tag() != DiffTag::Equal) {
        let (base, side) = (op.old_range(), op.new_range());
        match changes.last_mut() {
            Some(last) if last.base.end == base.start && last.side.end == side.start => {
                (last.base.end, last.side.end) = (base.end, side.end);
            }
            _ => changes.push(LineChange { base, side }),
        }
    }
    changes
}

/// How many lines a side has added to the base, and how many it has removed.
#[derive(Default)]
struct Ahead {
    more: usize,
    fewer: usize,
}

impl Ahead {
    /// The side's lines for the base's lines in `span`, which holds these changes whole. Moves on behind the
    /// changes.
    fn take(&mut self, span: &Range<usize>, changes: &[LineChange]) -> Range<usize> {
        let start = (span.start + self.more).saturating_sub(self.fewer);
        for change in changes {
            self.more += change.side.len();
            self.fewer += change.base.len();
        }
        start..(span.end + self.more).saturating_sub(self.fewer)
    }
}

/// A text as its lines. Equal lines have the same number.
struct NumberedLines {
    numbers: Vec<u32>,
    /// The byte offset of each line's beginning, and of the last line's end.
    starts: Vec<u32>,
}

impl NumberedLines {
    fn of<'a>(text: &'a [u8], known: &mut HashMap<&'a [u8], u32>) -> Self {
        let (mut numbers, mut starts, mut end) = (Vec::new(), vec![0], 0_usize);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            numbers.push(*known.entry(line).or_insert(next));
            end += line.len();
            // A comparison holds contents of 1 MiB at most.
            starts.push(u32::try_from(end).unwrap_or(u32::MAX));
        }
        Self { numbers, starts }
    }

    fn numbers(&self, lines: &Range<usize>) -> &[u32] {
        self.numbers.get(lines.clone()).unwrap_or_default()
    }

    fn bytes(&self, lines: &Range<usize>) -> Option<(u32, u32)> {
        let (from, to) = (*self.starts.get(lines.start)?, *self.starts.get(lines.end)?);
        Some((from, to.checked_sub(from)?))
    }

    /// Replaces these lines with the lines of the other text.
    fn splice(&self, lines: &Range<usize>, other: &Self, its: &Range<usize>) -> Option<Splice> {
        let ((at, cut), (from, take)) = (self.bytes(lines)?, other.bytes(its)?);
        Some(Splice { at, cut, from, take })
    }
}

#[cfg(test)]
mod tests;
