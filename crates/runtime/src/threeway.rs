//! What the session and the user both changed in a text, put together line by line on what the text was
//! before.
//!
//! A change is a run of lines of the base that one side has otherwise. Changes of both sides that share a
//! line or touch each other are an overlap, unless both sides hold the same there; then nothing is put
//! together. The result is the project's text with the session's changes spliced in, so it holds nothing that
//! neither of them holds.

use bailey_protocol::{Digest, FileDiff, FileKind, FileState, Part, SPLICES_MAX, Splice, file_state};
use similar::{Algorithm, DiffTag, capture_diff_slices};
use std::{
    collections::HashMap,
    ops::Range,
    time::{Duration, Instant},
};

/// How long the texts of one comparison may be put together; one more is begun at most. What is left then
/// stays a conflict.
const TIME_MAX: Duration = Duration::from_secs(5);

/// The most lines of a text that is put together: the search for changes takes a time that grows with the
/// square of what differs.
const LINES_MAX: usize = 100_000;

/// What became of a path that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Both {
    /// Nobody can tell: the base is not known, or it is no text on all three sides.
    Unknown,
    /// The project holds all that the session changed.
    Same,
    /// What the project's file becomes, and how that is made.
    Merged(FileState, Part),
    /// Both changed lines that touch, first at this line of the project's.
    Overlapping(usize),
}

/// Puts together the texts of one comparison.
pub(crate) struct Threeway {
    left: Duration,
}

impl Default for Threeway {
    fn default() -> Self {
        Self { left: TIME_MAX }
    }
}

impl Threeway {
    /// Puts the two sides of a path together, where the kept base is the one that was recorded.
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

/// A file of text with the bytes that its state says: those of a key may have been taken out on the way here.
fn text(side: &FileState) -> Option<(&FileState, &[u8])> {
    let bytes = side.content.as_ref().filter(|_| side.kind == FileKind::File)?.0.as_slice();
    let is_text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    (is_text && file_state(side.mode, bytes) == side.state).then_some((side, bytes))
}

fn is_long(text: &[u8]) -> bool {
    text.iter().filter(|byte| **byte == b'\n').count() > LINES_MAX
}

/// What of `new` replaces what of `old`, both made from `base`.
///
/// # Errors
/// The first line of `old` at which both have another change.
fn splices(base: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<Splice>, usize> {
    let mut numbers = HashMap::new();
    let [base, old, new] = [base, old, new].map(|text| Lines::of(text, &mut numbers));
    let of_old = changes(&base, &old);
    let of_new = changes(&base, &new);
    let mut spliced = Vec::new();
    // How far each side's lines are ahead of the base's, behind the changes that are done.
    let (mut ahead_old, mut ahead_new) = (Ahead::default(), Ahead::default());
    let (mut of_old, mut of_new) = (of_old.as_slice(), of_new.as_slice());
    while let Some(first) =
        [of_old.first(), of_new.first()].into_iter().flatten().map(|it| it.base.start).min()
    {
        let mut span = first..first;
        let (mut mine, mut yours) = (0, 0);
        // Grown as long as a change of either side touches it.
        loop {
            let is_near = |change: &&Change| change.base.start <= span.end;
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

/// A run of lines that one side has otherwise than the base.
struct Change {
    base: Range<usize>,
    side: Range<usize>,
}

fn changes(base: &Lines, side: &Lines) -> Vec<Change> {
    let ops = capture_diff_slices(Algorithm::Myers, &base.numbers, &side.numbers);
    let mut changes: Vec<Change> = Vec::new();
    for op in ops.iter().filter(|op| op.tag() != DiffTag::Equal) {
        let (base, side) = (op.old_range(), op.new_range());
        match changes.last_mut() {
            Some(last) if last.base.end == base.start && last.side.end == side.start => {
                (last.base.end, last.side.end) = (base.end, side.end);
            }
            _ => changes.push(Change { base, side }),
        }
    }
    changes
}

/// By how many lines a side is ahead of the base, and by how many behind it.
#[derive(Default)]
struct Ahead {
    more: usize,
    fewer: usize,
}

impl Ahead {
    /// The side's lines in place of the base's in `span`, which holds these changes whole; goes behind them.
    fn take(&mut self, span: &Range<usize>, changes: &[Change]) -> Range<usize> {
        let start = (span.start + self.more).saturating_sub(self.fewer);
        for change in changes {
            self.more += change.side.len();
            self.fewer += change.base.len();
        }
        start..(span.end + self.more).saturating_sub(self.fewer)
    }
}

/// A text as its lines, each of which has a number of its own.
struct Lines {
    numbers: Vec<u32>,
    /// Where each line begins in bytes, and where the last one ends.
    starts: Vec<u32>,
}

impl Lines {
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

    /// These lines give way to those of the other text.
    fn splice(&self, lines: &Range<usize>, other: &Self, its: &Range<usize>) -> Option<Splice> {
        let ((at, cut), (from, take)) = (self.bytes(lines)?, other.bytes(its)?);
        Some(Splice { at, cut, from, take })
    }
}

#[cfg(test)]
mod tests;
