//! What enters a context can be read.
use bailey_kernel::{Guide, Late, Note, Observation, Reply, Segment, UserMessage};

fn text(segment: &Segment) -> &str {
    match segment {
        Segment::User(message) => UserMessage::text(message),
        Segment::Reply(reply) => &Reply::answer(reply).text,
        Segment::Observation(seen) => Observation::text(seen),
        Segment::Late(late) => Late::text(late),
        Segment::Note(note) => Note::text(note),
        Segment::Guide(guide) => Guide::text(guide),
    }
}

fn main() {
    let _ = text;
}
