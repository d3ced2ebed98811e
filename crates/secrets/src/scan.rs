//! The scan: finds secrets in a stream of bytes and writes marks in their place.
//!
//! The scan decides position by position, from left to right, whether a match begins there, and waits when that
//! depends on bytes that have not come. A decision looks at most 32 bytes back, so the result does not depend
//! on how the input is cut. Matches that overlap become one mark, of the name of the first: otherwise the
//! rest of a secret could show beside the mark of another.

use crate::{
    known, mark,
    pem::Block,
    shape::{CONTEXT, Class, Found, Kind, SHAPES},
};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, automaton::OverlappingState};
use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};
use zeroize::Zeroizing;

/// What is searched for, as one automaton. It holds copies of the values, which live as long as the redactor
/// and, unlike the vault's, are not zeroised.
pub(crate) struct Patterns {
    /// None when it could not be built; then everything is masked.
    automaton: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
    /// All literals in order, to ask whether the input ends inside one.
    sorted: Vec<Zeroizing<Vec<u8>>>,
    longest: usize,
}

#[derive(Debug, Clone)]
struct Pattern {
    mark: Arc<str>,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// A spelling of a known value.
    Known,
    /// The prefix of the shape of this number.
    Shape(usize),
}

/// A match whose first byte stands at `start`.
struct Match<'a> {
    start: usize,
    length: usize,
    pattern: &'a Pattern,
}

impl Patterns {
    /// Patterns for the spellings of `values`, each with its name, and for every shape.
    pub(crate) fn new<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut spellings: BTreeMap<Vec<u8>, Arc<str>> = BTreeMap::new();
        for (name, value) in values {
            let mark: Arc<str> = mark::mark(name).into();
            for spelling in known::spellings(value) {
                spellings.entry(spelling).or_insert_with(|| Arc::clone(&mark));
            }
        }
        let known = spellings.into_iter().map(|(text, mark)| (text, Pattern { mark, what: What::Known }));
        let shapes = SHAPES.iter().enumerate().map(|(index, shape)| {
            let mark = mark::mark(shape.id).into();
            (shape.prefix.as_bytes().to_vec(), Pattern { mark, what: What::Shape(index) })
        });
        let (mut sorted, patterns): (Vec<_>, Vec<_>) = known.chain(shapes).unzip();
        // A contiguous automaton is built in a fraction of the time of a full table.
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::Standard)
            .build(&sorted)
            .ok();
        sorted.sort_unstable();
        let longest = sorted.iter().map(Vec::len).max().unwrap_or_default();
        let sorted = sorted.into_iter().map(Zeroizing::new).collect();
        Self { automaton, patterns, sorted, longest }
    }

    /// Whether nothing can match, asked without looking closer.
    pub(crate) fn is_clean(&self, bytes: &[u8]) -> bool {
        self.automaton.as_ref().is_some_and(|automaton| !automaton.is_match(bytes))
    }

    /// Every literal that begins at `from` or later, by place; at one place known values first, then by length.
    fn find(&self, bytes: &[u8], from: usize) -> Vec<Match<'_>> {
        let mut matches = Vec::new();
        let haystack = bytes.get(from..).unwrap_or_default();
        let Some(automaton) = &self.automaton else { return matches };
        let mut state = OverlappingState::start();
        loop {
            automaton.find_overlapping(haystack, &mut state);
            let Some(found) = state.get_match() else { break };
            let Some(pattern) = self.patterns.get(found.pattern().as_usize()) else { continue };
            matches.push(Match { start: from + found.start(), length: found.len(), pattern });
        }
        let rank = |found: &Match<'_>| {
            (found.start, matches!(found.pattern.what, What::Shape(_)), Reverse(found.length))
        };
        matches.sort_unstable_by_key(rank);
        matches
    }

    /// The first place, from `from` on, where the rest of the input is the beginning of a literal.
    fn open_end(&self, bytes: &[u8], from: usize) -> usize {
        let first = from.max((bytes.len() + 1).saturating_sub(self.longest));
        (first..bytes.len())
            .find(|at| bytes.get(*at..).is_some_and(|rest| self.begins_with(rest)))
            .unwrap_or(bytes.len())
    }

    /// Whether a literal begins with `rest` and is longer.
    fn begins_with(&self, rest: &[u8]) -> bool {
        let first = self.sorted.partition_point(|text| text.as_slice() <= rest);
        self.sorted.get(first).is_some_and(|text| text.starts_with(rest))
    }
}

/// The state of one scan.
pub(crate) struct Scan {
    patterns: Arc<Patterns>,
    /// Some decided bytes, for looking back, then those not yet decided.
    buffer: Zeroizing<Vec<u8>>,
    decided: usize,
    cover: Cover,
    pub(crate) hits: usize,
    pub(crate) covered: usize,
}

/// What hides the bytes to come; places are indices of the buffer.
#[derive(Default)]
struct Cover {
    /// Everything before this place.
    until: usize,
    /// For each class the place from which a run of it goes on.
    runs: [Option<(usize, Class)>; Class::COUNT],
    /// A private key from this place on.
    block: Option<(usize, Block)>,
}

impl Scan {
    pub(crate) fn new(patterns: Arc<Patterns>) -> Self {
        let (buffer, cover) = (Zeroizing::default(), Cover::default());
        Self { patterns, buffer, decided: 0, cover, hits: 0, covered: 0 }
    }

    /// Takes bytes and writes to `out` what is decided; with `end` everything is.
    pub(crate) fn push(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        self.append(bytes);
        let patterns = Arc::clone(&self.patterns);
        if patterns.automaton.is_none() {
            return self.hide_all(out);
        }
        let limit = if end { self.buffer.len() } else { patterns.open_end(&self.buffer, self.decided) };
        let literals = patterns.find(&self.buffer, self.decided);
        let (matches, limit) = self.decide(literals, limit, end);
        self.replace(&matches, limit, out);
        self.forget(limit);
    }

    /// A growing vector leaves its old memory behind unzeroised, so the new one is made by hand.
    fn append(&mut self, bytes: &[u8]) {
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            let mut larger = Zeroizing::new(Vec::with_capacity(2 * (self.buffer.len() + bytes.len())));
            larger.extend_from_slice(&self.buffer);
            self.buffer = larger;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Keeps the literals that are matches, and lowers the limit to the first that cannot be decided yet.
    fn decide<'a>(&self, literals: Vec<Match<'a>>, limit: usize, end: bool) -> (Vec<Match<'a>>, usize) {
        let mut matches = Vec::new();
        for mut found in literals.into_iter().take_while(|found| found.start < limit) {
            let shape = match found.pattern.what {
                What::Known => None,
                What::Shape(index) => SHAPES.get(index),
            };
            match shape.map_or(Found::Yes(found.length), |shape| shape.look(&self.buffer, found.start)) {
                Found::Yes(length) => {
                    found.length = length;
                    matches.push(found);
                }
                Found::More if !end => return (matches, found.start),
                Found::More | Found::No => {}
            }
        }
        (matches, limit)
    }

    fn replace(&mut self, matches: &[Match<'_>], limit: usize, out: &mut Vec<u8>) {
        let mut matches = matches.iter().filter(|found| found.start < limit).peekable();
        let mut at = self.decided;
        while at < limit {
            if self.cover.is_off(at) {
                let next = matches.peek().map_or(limit, |found| found.start);
                out.extend_from_slice(self.buffer.get(at..next).unwrap_or_default());
                at = next;
                if at == limit {
                    break;
                }
            }
            let mut hidden = self.cover.hides(&self.buffer, at);
            while let Some(found) = matches.next_if(|found| found.start == at) {
                if !hidden {
                    out.extend_from_slice(found.pattern.mark.as_bytes());
                    self.hits += 1;
                    hidden = true;
                }
                self.cover.add(found);
            }
            if hidden {
                self.covered += 1;
            } else {
                out.extend(self.buffer.get(at));
            }
            at += 1;
        }
    }

    /// Drops what is decided, but for the context.
    fn forget(&mut self, limit: usize) {
        let gone = limit.saturating_sub(CONTEXT);
        self.buffer.drain(..gone);
        self.decided = limit - gone;
        self.cover.shift(gone);
    }

    /// Without an automaton nothing can be told apart: fail closed.
    fn hide_all(&mut self, out: &mut Vec<u8>) {
        if !self.buffer.is_empty() {
            self.hits += 1;
            self.covered += self.buffer.len();
            out.extend_from_slice(mark::mark("everything").as_bytes());
            self.buffer.clear();
        }
    }
}

impl Cover {
    fn is_off(&self, at: usize) -> bool {
        at >= self.until && self.block.is_none() && self.runs.iter().all(Option::is_none)
    }

    /// Whether the byte at `at` is hidden by what began before it; runs that it ends are over.
    fn hides(&mut self, bytes: &[u8], at: usize) -> bool {
        let byte = bytes.get(at).copied().unwrap_or_default();
        let mut hidden = at < self.until;
        for slot in &mut self.runs {
            match *slot {
                Some((from, class)) if at >= from && !class.has(byte) => *slot = None,
                Some((from, _)) => hidden |= at >= from,
                None => {}
            }
        }
        if let Some((from, block)) = self.block
            && at >= from
        {
            let (inside, next) = block.swallow(bytes.get(..=at).unwrap_or_default());
            hidden |= inside;
            self.block = next.map(|block| (from, block));
        }
        hidden
    }

    fn add(&mut self, found: &Match<'_>) {
        let end = found.start + found.length;
        self.until = self.until.max(end);
        let What::Shape(index) = found.pattern.what else { return };
        let Some(shape) = SHAPES.get(index) else { return };
        if shape.kind == Kind::Pem {
            self.block = Some((end, Block::START));
        } else if let Some(slot) = self.runs.get_mut(shape.class as usize) {
            // A later run of the same class goes at least as far as an earlier one that is still alive there.
            *slot = Some((end, shape.class));
        }
    }

    fn shift(&mut self, gone: usize) {
        self.until = self.until.saturating_sub(gone);
        self.runs.iter_mut().flatten().for_each(|(from, _)| *from = from.saturating_sub(gone));
        if let Some((from, _)) = &mut self.block {
            *from = from.saturating_sub(gone);
        }
    }
}
