//! Spans as folded stacks, one line for each stack with its own milliseconds: the format that every tool for
//! flame graphs reads.

use super::{Span, SpanId};
use std::collections::{BTreeMap, HashMap};

/// The spans, each with its parent.
#[derive(Default)]
pub struct Folded {
    spans: HashMap<SpanId, Frame>,
}

struct Frame {
    parent: Option<SpanId>,
    /// For a root, the name begins with the session.
    name: String,
    milliseconds: u64,
}

/// How deep a stack may be: a sub-agent's sub-agent's relay is at twelve.
const DEPTH_MAX: usize = 32;

impl Folded {
    /// Adds a span.
    pub fn add(&mut self, span: &Span) {
        let milliseconds = span.ended.as_millisecond().saturating_sub(span.begun.as_millisecond());
        let name = match span.parent {
            Some(_) => span.title(),
            None => format!("{};{}", span.session, span.title()),
        };
        let milliseconds = u64::try_from(milliseconds).unwrap_or(0);
        self.spans.insert(span.id, Frame { parent: span.parent, name, milliseconds });
    }

    /// The lines: a stack, and the milliseconds that were spent in it and in nothing beneath it. Work at the
    /// same time counts once for each span.
    pub fn lines(&self) -> Vec<String> {
        let mut beneath: HashMap<SpanId, u64> = HashMap::new();
        for frame in self.spans.values() {
            let Some(parent) = frame.parent else { continue };
            let sum = beneath.entry(parent).or_default();
            *sum = sum.saturating_add(frame.milliseconds);
        }
        let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
        for (id, frame) in &self.spans {
            let own = frame.milliseconds.saturating_sub(beneath.get(id).copied().unwrap_or(0));
            if own > 0 {
                *stacks.entry(self.stack(frame)).or_default() += own;
            }
        }
        stacks.iter().map(|(stack, own)| format!("{stack} {own}")).collect()
    }

    fn stack(&self, frame: &Frame) -> String {
        let mut names = vec![frame.name.as_str()];
        let mut above = frame.parent;
        while let Some(frame) = above.and_then(|id| self.spans.get(&id)).filter(|_| names.len() < DEPTH_MAX) {
            names.push(&frame.name);
            above = frame.parent;
        }
        names.reverse();
        names.join(";")
    }
}
