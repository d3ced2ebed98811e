//! What is searched for, as one automaton for every spelling of every known value and for the beginnings of
//! shapes, and how it is led over a text through each view. Each view reads each byte once.

use crate::{
    known, mark,
    shape::Shape,
    view::{CONTEXT, Dull, HEX_MIN, Reading, SPREAD_MAX, View},
};
use aho_corasick::{
    Anchored, MatchKind,
    automaton::{Automaton as _, StateID},
    nfa::contiguous::NFA,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::Arc,
};
use zeroize::Zeroizing;

/// Beside a cut at least so many bytes are left out, and a multiple of the second.
const MARGIN_MIN: usize = 128;
const MARGIN_STEP: usize = 64;

/// What is searched for, as one automaton for every spelling of every value. It holds copies of the values,
/// which live as long as the redactor and, unlike the vault's, are not zeroised.
pub(crate) struct Patterns {
    /// None when it could not be built; then everything is masked.
    automaton: Option<Automaton>,
    patterns: Vec<Pattern>,
    shapes: Vec<Shape>,
    /// Whether there is a value of which loose views leave too much out.
    has_strict: bool,
    /// The length of the longest literal.
    longest: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) mark: Arc<str>,
    pub(crate) what: PatternKind,
    /// Whether it is hexadecimal in lower case, and so found in both cases at once.
    is_hex: bool,
}

/// The kind of a pattern.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PatternKind {
    /// A spelling of a known value.
    Known,
    /// The prefix of the shape of this number.
    Shape(usize),
}

/// A match whose first byte stands at `start`.
pub(crate) struct Match<'a> {
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) pattern: &'a Pattern,
}

impl Patterns {
    /// Patterns for the spellings of `values`, each with its name, and for these shapes.
    pub(crate) fn new<'a>(values: impl Iterator<Item = (&'a str, &'a str)>, shapes: Vec<Shape>) -> Self {
        let mut spellings: BTreeMap<Vec<u8>, Arc<str>> = BTreeMap::new();
        let values: Vec<(&str, &str)> = values.collect();
        let names = values.iter().map(|(name, _)| *name).chain(shapes.iter().map(|shape| &*shape.id));
        let marks: Vec<String> = names.map(mark::mark).collect();
        // A value in another case may be its own name, and so stand in its mark.
        let is_in_mark = |spelling: &[u8]| {
            str::from_utf8(spelling).is_ok_and(|text| marks.iter().any(|mark| mark.contains(text)))
        };
        let has_strict = values.iter().any(|(_, value)| known::is_strict(value));
        for (name, value) in values {
            let mark: Arc<str> = mark::mark(name).into();
            for spelling in known::spellings(value).into_iter().filter(|spelling| !is_in_mark(spelling)) {
                spellings.entry(spelling).or_insert_with(|| Arc::clone(&mark));
            }
        }
        let known = spellings.into_iter().map(|(text, mark)| {
            let is_hex = is_hex(&text);
            (text, Pattern { mark, what: PatternKind::Known, is_hex })
        });
        let begins = shapes.iter().enumerate().map(|(index, shape)| {
            let mark = mark::mark(&shape.id).into();
            (
                shape.prefix.as_bytes().to_vec(),
                Pattern { mark, what: PatternKind::Shape(index), is_hex: false },
            )
        });
        let (literals, patterns): (Vec<_>, Vec<Pattern>) =
            known.chain(begins).map(|(text, pattern)| (Zeroizing::new(text), pattern)).unzip();
        let known = patterns.iter().take_while(|pattern| matches!(pattern.what, PatternKind::Known)).count();
        let longest = literals.iter().map(|text| text.len()).max().unwrap_or_default();
        Self { automaton: Automaton::new(&literals, known), patterns, shapes, has_strict, longest }
    }

    /// The shape that a pattern begins; none for a known value.
    pub(crate) fn shape(&self, pattern: &Pattern) -> Option<&Shape> {
        match pattern.what {
            PatternKind::Known => None,
            PatternKind::Shape(index) => self.shapes.get(index),
        }
    }

    /// How many bytes beside a cut may be a part of what is searched for: the longest literal with its line
    /// breaks, or a value with each character escaped in six, which in the longest, UTF-32's, has four, and
    /// what a token of a known shape has. Rounded up, so that the length of a secret does not show.
    pub(crate) fn margin(&self) -> usize {
        (self.longest + self.longest / 2).next_multiple_of(MARGIN_STEP).max(MARGIN_MIN)
    }

    /// The most bytes that may be the beginning of a literal in any view: each of its characters encoded,
    /// behind the widest gap.
    pub(crate) fn hold_max(&self) -> usize {
        (self.longest + 1) * SPREAD_MAX + CONTEXT
    }

    /// Whether there is nothing to search with.
    pub(crate) fn is_broken(&self) -> bool {
        self.automaton.is_none()
    }

    /// Whether nothing can match, asked without looking closer.
    pub(crate) fn is_clean(&self, bytes: &[u8]) -> bool {
        let is_in = |view: View| {
            let mut found = false;
            self.read(view, bytes, 0, true, |_, _, _| {
                found = true;
                ControlFlow::Break(())
            });
            found
        };
        self.automaton.is_some() && !View::of(bytes, 0, self.has_strict).any(is_in)
    }

    /// Every literal that begins at `from` or later, by place; at one place known values first, then by
    /// length. And the first place where the rest of the input is the beginning of a literal.
    pub(crate) fn find(&self, bytes: &[u8], from: usize, end: bool) -> (Vec<Match<'_>>, usize) {
        let (mut matches, mut limit) = (Vec::new(), bytes.len());
        for view in View::of(bytes, from, self.has_strict) {
            let open = self.read(view, bytes, from, end, |start, length, pattern| {
                matches.push(Match { start, length, pattern });
                ControlFlow::Continue(())
            });
            limit = limit.min(open);
        }
        let rank = |found: &Match<'_>| {
            (found.start, matches!(found.pattern.what, PatternKind::Shape(_)), Reverse(found.length))
        };
        matches.sort_unstable_by_key(rank);
        (matches, limit)
    }

    /// Reads through one view and tells each literal, with its place and length in `bytes`. Returns the first
    /// place where the rest is the beginning of a literal.
    fn read<'a>(
        &'a self,
        view: View,
        bytes: &[u8],
        from: usize,
        end: bool,
        mut tell: impl FnMut(usize, usize, &'a Pattern) -> ControlFlow<()>,
    ) -> usize {
        let Some(automaton) = &self.automaton else { return bytes.len() };
        let mut reading = Reading::new(view, bytes, from, end);
        let mut state = automaton.start;
        // Where each byte begins that was seen since nothing of a literal was: in a plain view that is known
        // without being kept.
        let mut places = Vec::new();
        loop {
            if state == automaton.start {
                places.clear();
                reading.pass_over(if view.is_folded() { &automaton.dull_folded } else { &automaton.dull });
            }
            let Some(next) = reading.next() else { break };
            if next.parted {
                places.clear();
            }
            let before = if next.parted { automaton.start } else { state };
            state = automaton.nfa.next_state(Anchored::No, before, next.byte);
            if view != View::Plain {
                places.push(next.place.start);
            }
            if !(automaton.nfa.is_special(state) && automaton.nfa.is_match(state)) {
                continue;
            }
            for index in 0..automaton.nfa.match_len(state) {
                let found = automaton.nfa.match_pattern(state, index);
                let Some(pattern) = self.patterns.get(found.as_usize()) else { continue };
                let length = automaton.nfa.pattern_len(found);
                let first = if view == View::Plain {
                    Some(next.place.end - length)
                } else {
                    places.len().checked_sub(length).and_then(|at| places.get(at)).copied()
                };
                let (Some(first), true) = (first, pattern.is_found_in(view)) else { continue };
                if tell(first, next.place.end - first, pattern).is_break() {
                    return first;
                }
            }
        }
        let open = if reading.is_parted() { 0 } else { automaton.open(view, state) };
        match open {
            0 => reading.stopped(),
            open if view == View::Plain => reading.stopped() - open,
            open => places.len().checked_sub(open).and_then(|at| places.get(at)).copied().unwrap_or(from),
        }
    }
}

impl Pattern {
    /// What is no known value has one spelling; and a value that is none of hexadecimal is another one in
    /// another case.
    fn is_found_in(&self, view: View) -> bool {
        match (view, self.what) {
            (View::Plain, _) => true,
            (_, PatternKind::Shape(_)) => false,
            (view, PatternKind::Known) => self.is_hex || !view.is_folded(),
        }
    }
}

/// Whether a literal is hexadecimal in lower case, with whatever stands between bytes.
fn is_hex(text: &[u8]) -> bool {
    text.len() >= HEX_MIN && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b':' | b'-'))
}

/// An Aho-Corasick automaton that knows of each state how much of a literal it has read.
struct Automaton {
    nfa: NFA,
    start: StateID,
    /// Bytes that leave it at the start.
    dull: Dull,
    /// The same of bytes that are read in lower case.
    dull_folded: Dull,
    /// The longest end of what was read that is the beginning of a literal, and of one of a known value.
    open: HashMap<StateID, usize>,
    open_known: HashMap<StateID, usize>,
}

impl Automaton {
    /// The first `known` literals are those of known values. A contiguous automaton is built in a fraction of
    /// the time of a full table.
    fn new(literals: &[Zeroizing<Vec<u8>>], known: usize) -> Option<Self> {
        let nfa =
            NFA::builder().match_kind(MatchKind::Standard).build(literals.iter().map(|text| &**text)).ok()?;
        let start = nfa.start_state(Anchored::No).ok()?;
        let open_known = open(&nfa, start, literals, known);
        let open = open(&nfa, start, literals, literals.len());
        let begins = |byte: u8| nfa.next_state(Anchored::No, start, byte) != start;
        let (dull, dull_folded) = (Dull::new(begins), Dull::new(|byte| begins(byte.to_ascii_lowercase())));
        Some(Self { nfa, start, dull, dull_folded, open, open_known })
    }

    fn open(&self, view: View, state: StateID) -> usize {
        let open = if view == View::Plain { &self.open } else { &self.open_known };
        open.get(&state).copied().unwrap_or_default()
    }
}

/// For each state the longest end of what it has read that is the beginning of one of the first `count`
/// literals, and shorter than it. The state after the first bytes of a literal has read exactly those.
fn open(nfa: &NFA, start: StateID, literals: &[Zeroizing<Vec<u8>>], count: usize) -> HashMap<StateID, usize> {
    let next = |state, byte: &u8| nfa.next_state(Anchored::No, state, *byte);
    let mut open = HashMap::new();
    for literal in literals.iter().take(count) {
        let Some((_, beginning)) = literal.split_last() else { continue };
        let mut state = start;
        for (byte, length) in beginning.iter().zip(1..) {
            state = next(state, byte);
            open.insert(state, length);
        }
    }
    // The rest are whole literals and those that do not count: they are open as far as what they end with is.
    let mut rest: Vec<&[u8]> = Vec::new();
    for (number, literal) in literals.iter().enumerate() {
        let first = if number < count { literal.len() } else { 1 };
        rest.extend((first..=literal.len()).filter_map(|length| literal.get(..length)));
    }
    rest.sort_unstable_by_key(|text| text.len());
    for text in rest {
        let state = text.iter().fold(start, next);
        if !open.contains_key(&state) {
            let end = text.iter().skip(1).fold(start, next);
            let length = open.get(&end).copied().unwrap_or_default();
            open.insert(state, length);
        }
    }
    open
}

#[cfg(test)]
mod tests;
