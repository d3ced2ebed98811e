//! The scan: finds secrets in a stream of bytes and writes marks in their place.
//!
//! The scan decides position by position, from left to right, whether a match begins there, and waits when
//! that depends on bytes that have not come. A decision looks at most [`CONTEXT`] bytes back, so the result
//! does not depend on how the input is cut. Matches that overlap become one mark, of the name of the first:
//! otherwise the rest of a secret could show beside the mark of another.

use crate::{
    mark,
    patterns::{Match, Patterns},
    pem::Block,
    shape::{Class, Kind, Shape, ShapeMatch},
    view::CONTEXT,
};
use std::sync::Arc;
use zeroize::Zeroizing;

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
        if patterns.is_broken() {
            return self.hide_all(out);
        }
        let (literals, open) = patterns.find(&self.buffer, self.decided, end);
        let limit = if end { self.buffer.len() } else { open };
        let (matches, limit) = self.decide(literals, limit, end);
        self.replace(&patterns, &matches, limit, out);
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
            match self
                .patterns
                .shape(found.pattern)
                .map_or(ShapeMatch::Yes(found.length), |shape| shape.look(&self.buffer, found.start))
            {
                ShapeMatch::Yes(length) => {
                    found.length = length;
                    matches.push(found);
                }
                ShapeMatch::More if !end => return (matches, found.start),
                ShapeMatch::More | ShapeMatch::No => {}
            }
        }
        (matches, limit)
    }

    fn replace(&mut self, patterns: &Patterns, matches: &[Match<'_>], limit: usize, out: &mut Vec<u8>) {
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
                self.cover.add(found, patterns.shape(found.pattern));
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

    fn add(&mut self, found: &Match<'_>, shape: Option<&Shape>) {
        let end = found.start + found.length;
        self.until = self.until.max(end);
        let Some(shape) = shape else { return };
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
