//! A context laid open: what the model sees, part by part.

use bailey_kernel::{Context, Segment, tokens};
use bailey_protocol::{Labels, Seq, ToolSpec};
use serde::Serialize;

/// One part of what a model sees.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// `instruction`, `tools`, `guide`, `pinned`, `summary`, `person`, `model` or `result`.
    pub part: &'static str,
    /// Its entry in the journal; none for Bailey's own words.
    pub entry: Option<Seq>,
    /// About how many tokens it comes to.
    pub tokens: u64,
    /// Where it came from; none for Bailey's own words.
    pub labels: Option<Labels>,
    /// What the model sees of it.
    pub text: String,
}

/// The parts of what a model sees, in the order in which it sees them.
#[must_use]
pub fn parts(context: &Context, tools: &[ToolSpec]) -> Vec<Part> {
    let own = |part, text: String| Part { part, entry: None, tokens: tokens(&text), labels: None, text };
    let offered: Vec<String> = tools.iter().map(|tool| format!("{}: {}", tool.name, tool.summary)).collect();
    let schemas: String =
        tools.iter().map(|tool| tool.description.clone() + &tool.schema.to_string()).collect();
    let offered = own("tools", offered.join("\n"));
    let offered = Part { tokens: offered.tokens + tokens(&schemas), ..offered };
    let fixed = [own("instruction", context.instruction().text().into()), offered];
    fixed.into_iter().chain(context.segments().iter().map(part)).collect()
}

fn part(segment: &Segment) -> Part {
    let (part, text) = match segment {
        Segment::User(message) if message.is_pinned() => ("pinned", message.text().to_owned()),
        Segment::User(message) => ("person", message.text().to_owned()),
        Segment::Reply(reply) => {
            let answer = reply.answer();
            let calls = answer.calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
            let said = Some(answer.text.clone()).filter(|text| !text.is_empty());
            ("model", said.into_iter().chain(calls).collect::<Vec<_>>().join("\n"))
        }
        Segment::Observation(seen) => ("result", seen.text().to_owned()),
        Segment::Late(late) => ("result", late.text().to_owned()),
        Segment::Note(note) => ("summary", note.text().to_owned()),
        Segment::Guide(guide) => ("guide", guide.text().to_owned()),
    };
    let (entry, labels) = (Some(segment.entry()), Some(segment.labels().clone()));
    Part { part, entry, tokens: segment.tokens(), labels, text }
}
