//! What enters a context can be read.
use bailey_kernel::{Observation, Reply, Segment, UserMessage};

fn text(segment: &Segment) -> &str {
    match segment {
        Segment::User(message) => UserMessage::text(message),
        Segment::Reply(reply) => &Reply::answer(reply).text,
        Segment::Observation(seen) => Observation::text(seen),
    }
}

fn main() {
    let _ = text;
}
