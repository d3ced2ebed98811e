//! What fits into a model's window, and what of a context goes first when it does not.

use bailey_kernel::{Context, Provider, Segment};
use bailey_protocol::{Seq, ToolSpec};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The window of a model that nobody knows the window of, in tokens.
const WINDOW_TOKENS: u64 = 128_000;
/// From this share of the room on, in hundredths, room is made.
const FULL: u64 = 65;
/// Shortening results is enough where it brings the conversation down to this share of the room.
const ROOMY: u64 = 50;
/// What stays word for word when the rest is summed up.
const RECENT: u64 = 35;
/// What a summary may take.
const SUMMARY: u64 = 12;

/// How a model's window is divided. All of it in tokens, by our own estimate.
///
/// The *fixed* part holds the instruction, the tools and what is reserved for the reply; the rest is the
/// *room* of the conversation: guides, pinned messages, the summary, and what was said and seen recently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// All of it.
    pub window: u64,
    /// Instruction, tools, and what is reserved for the reply.
    pub fixed: u64,
}

impl Budget {
    /// The division of this model's window, or of a smaller one that it was seen to have.
    #[must_use]
    pub fn of(provider: &dyn Provider, context: &Context, tools: &[ToolSpec], ceiling: &Ceiling) -> Self {
        let window = provider.window_tokens().unwrap_or(WINDOW_TOKENS).min(ceiling.get());
        // What is sent without a conversation, and the longest reply.
        let empty = Context::new(context.instruction().clone());
        let encoded = provider.encode(&empty, tools);
        Self { window, fixed: encoded.reads(&empty).saturating_add(encoded.writes) }
    }

    /// What the conversation may take.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.fixed)
    }

    /// What a summary may take.
    #[must_use]
    pub fn summary(&self) -> u64 {
        self.room() * SUMMARY / 100
    }

    pub(crate) fn is_full(&self, context: &Context) -> bool {
        taken(context) > self.room() * FULL / 100
    }

    pub(crate) fn is_roomy(&self, context: &Context) -> bool {
        taken(context) <= self.room() * ROOMY / 100
    }

    pub(crate) fn is_over(&self, context: &Context) -> bool {
        taken(context) > self.room()
    }

    /// The old results that are longer than so many bytes.
    pub(crate) fn long_results(&self, context: &Context, bytes: usize) -> Vec<Seq> {
        let old = self.old(context);
        results(context.segments().get(..old).unwrap_or_default(), bytes)
    }

    /// The entries of what can be summed up: everything old but pinned messages, guides, and the last thing
    /// that the person said, which is what the agent works at.
    pub(crate) fn summable(&self, context: &Context) -> Vec<Seq> {
        let segments = context.segments();
        let task = segments.iter().rposition(is_said);
        let old = segments.iter().enumerate().take(self.old(context));
        old.filter(|(place, segment)| {
            let is_kept = matches!(segment, Segment::Guide(_)) || is_pinned(segment);
            !is_kept && Some(*place) != task
        })
        .map(|(_, segment)| segment.entry())
        .collect()
    }

    /// Where the recent part begins: before something that was said, so that no call is parted from its
    /// result, and not after the last step.
    fn old(&self, context: &Context) -> usize {
        let segments = context.segments();
        let keep = self.room() * RECENT / 100;
        let mut kept = 0;
        let recent = segments.iter().rev().take_while(|segment| {
            kept += segment.tokens();
            kept <= keep
        });
        let from = segments.len() - recent.count();
        let begins = |segment: &Segment| matches!(segment, Segment::Reply(_)) || is_said(segment);
        let last = segments.iter().rposition(begins).unwrap_or(0);
        let next = segments.iter().skip(from).position(begins).map_or(last, |after| from + after);
        next.min(last)
    }
}

/// The entries of the whole conversation, without pinned messages and guides.
pub(crate) fn all_summable(context: &Context) -> Vec<Seq> {
    let is_kept = |segment: &&Segment| matches!(segment, Segment::Guide(_)) || is_pinned(segment);
    context.segments().iter().filter(|segment| !is_kept(segment)).map(Segment::entry).collect()
}

/// What a conversation takes.
pub(crate) fn taken(context: &Context) -> u64 {
    context.segments().iter().map(Segment::tokens).sum()
}

/// Results that are longer than so many bytes.
pub(crate) fn results(segments: &[Segment], bytes: usize) -> Vec<Seq> {
    let long = |segment: &Segment| match segment {
        Segment::Observation(seen) if seen.text().len() > bytes => Some(segment.entry()),
        _ => None,
    };
    segments.iter().filter_map(long).collect()
}

fn is_pinned(segment: &Segment) -> bool {
    matches!(segment, Segment::User(message) if message.is_pinned())
}

fn is_said(segment: &Segment) -> bool {
    matches!(segment, Segment::User(message) if !message.is_pinned())
}

/// The window that a model was seen to have at most, when its server said that a request was too long. Clones
/// share it.
#[derive(Debug, Clone)]
pub struct Ceiling {
    tokens: Arc<AtomicU64>,
}

impl Default for Ceiling {
    fn default() -> Self {
        Self { tokens: Arc::new(AtomicU64::new(u64::MAX)) }
    }
}

impl Ceiling {
    pub(crate) fn get(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, tokens: u64) {
        self.tokens.store(tokens, Ordering::Relaxed);
    }

    /// A request of this size did not fit.
    pub(crate) fn too_long(&self, tokens: u64) {
        self.tokens.fetch_min(tokens * 3 / 4, Ordering::Relaxed);
    }
}
