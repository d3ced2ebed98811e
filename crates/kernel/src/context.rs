//! The context: what a model sees, as an instruction and segments in order. It is changed in three ways only,
//! and each is an entry of the journal: something comes in at its end, results are shortened, a note takes
//! the place of others.

use crate::{
    condense::Summary,
    screen,
    segment::{Note, Observation, Segment},
};
use bailey_protocol::{CallId, Integrity, Labels, Secrecy, Seq, ToolCall};

/// A standing instruction: Bailey's own words, with facts that the composition root knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    text: String,
}

impl Instruction {
    /// Bailey's own words.
    #[must_use]
    pub fn fixed(text: &'static str) -> Self {
        Self { text: text.trim().into() }
    }

    /// The same with one more line, `name: value`.
    #[must_use]
    pub fn with_fact(mut self, name: &'static str, value: &str) -> Self {
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.push_str(&format!("\n{name}: {value}"));
        self
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What a model sees: an instruction, then segments in order. Every call of a reply is followed by its
/// observation before the next reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    instruction: Instruction,
    segments: Vec<Segment>,
    labels: Labels,
}

impl Context {
    /// A context that holds only the instruction.
    #[must_use]
    pub fn new(instruction: Instruction) -> Self {
        Self { instruction, segments: Vec::new(), labels: Labels::new(Integrity::Owner, Secrecy::Public) }
    }

    /// The standing instruction.
    #[must_use]
    pub fn instruction(&self) -> &Instruction {
        &self.instruction
    }

    /// The segments in order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The join of everything that ever was in it: what was left out has led to what followed. Its sources
    /// are the last reply, which names those of before, and what came since.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Where it all came from: what an effect that follows from this context carries.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        Provenance { labels: self.labels.clone() }
    }

    /// Adds one segment. A guide takes the place of an older one of the same file.
    pub fn push(&mut self, segment: impl Into<Segment>) {
        let segment = segment.into();
        if let Segment::Guide(new) = &segment {
            self.segments.retain(|old| !matches!(old, Segment::Guide(old) if old.path == new.path));
        }
        let labels = std::mem::take(&mut self.labels);
        self.labels = match &segment {
            Segment::Reply(reply) => labels.into_entry(reply.entry, &reply.labels),
            _ => labels.join(segment.labels()),
        };
        self.segments.push(segment);
    }

    /// Adds the result of one of these calls, which came in any order: results stand in the order of their
    /// calls.
    pub(crate) fn push_result(&mut self, result: Observation, calls: &[ToolCall]) {
        let place = |id: &CallId| calls.iter().position(|call| call.id == *id);
        let own = place(&result.call);
        let is_later =
            |segment: &&Segment| matches!(segment, Segment::Observation(other) if place(&other.call) > own);
        let later = self.segments.iter().rev().take_while(is_later).count();
        self.push(result);
        if let Some(tail) =
            self.segments.len().checked_sub(later + 1).and_then(|at| self.segments.get_mut(at..))
        {
            tail.rotate_right(1);
        }
    }

    /// A pinned message is an ordinary one from now on. What is no pinned message stays as it is.
    pub fn unpin(&mut self, entry: Seq) {
        for segment in &mut self.segments {
            if let Segment::User(message) = segment
                && message.entry == entry
            {
                message.pinned = false;
            }
        }
    }

    /// Puts a note in the place of what it stands for.
    pub fn condense(&mut self, summary: Summary) {
        self.replace(&summary.replaced, summary.note);
    }

    /// Puts a note in the place of the first of these segments, and takes all of them out.
    pub(crate) fn replace(&mut self, replaced: &[Seq], note: Note) {
        let gone = |segment: &Segment| replaced.contains(&segment.entry());
        let place = self.segments.iter().position(gone).unwrap_or(self.segments.len());
        self.segments.retain(|segment| !gone(segment));
        self.labels = std::mem::take(&mut self.labels).into_entry(note.entry, &note.labels);
        self.segments.insert(place.min(self.segments.len()), Segment::Note(note));
    }

    /// Cuts the middle out of these results.
    pub(crate) fn shorten(&mut self, entries: &[Seq], bytes: usize) {
        for segment in &mut self.segments {
            if let Segment::Observation(observation) = segment
                && entries.contains(&observation.entry)
            {
                observation.text = screen::bound(&observation.text, bytes);
                observation.images.clear();
            }
        }
    }
}

/// The labels of a context, for effects that follow from it. Only a context makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    labels: Labels,
}

impl Provenance {
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The same, with what was brought since.
    pub(crate) fn with(&self, brought: &Labels) -> Self {
        Self { labels: self.labels.clone().join(brought) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Context, Instruction, Observation, Segment};
    use bailey_protocol::{CallId, Labels, Seq, ToolCall};

    #[test]
    fn results_stand_in_the_order_of_their_calls_whichever_came_first() {
        let call = |id: &str| ToolCall { id: CallId(id.into()), name: "t".into(), arguments: "{}".into() };
        let result = |id: &str| Observation {
            entry: Seq(1),
            call: CallId(id.into()),
            tool: "t".into(),
            ok: true,
            text: String::new(),
            images: Vec::new(),
            labels: Labels::default(),
        };
        let calls = ["a", "b", "c"].map(call);
        for came in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"], ["c", "a", "b"]] {
            let mut context = Context::new(Instruction::fixed("a test"));
            // Of a reply before, whose calls had the same names.
            context.push_result(result("c"), &calls);
            context.push(crate::Note::warning(Seq(2), "between".into()));
            came.iter().for_each(|id| context.push_result(result(id), &calls));
            let order: Vec<&str> = context
                .segments()
                .iter()
                .filter_map(|segment| match segment {
                    Segment::Observation(seen) => Some(seen.call.0.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(order, ["c", "a", "b", "c"], "{came:?}");
        }
    }
}
