use bailey_policy::Review;
use bailey_protocol::{Digest, Isolation};

fn main() {
    let _ = Review::new(Digest::of(b""), Digest::of(b""), Isolation::default());
}
