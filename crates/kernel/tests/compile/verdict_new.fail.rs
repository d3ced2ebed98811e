//! Nor made by its constructor.
use bailey_policy::{Allowed, Review};
use bailey_protocol::{Digest, Isolation};

fn allow(effect: Digest, policy: Digest) -> Allowed {
    Allowed::new(effect, policy, Isolation::default())
}

fn review(effect: Digest, policy: Digest) -> Review {
    Review::new(effect, policy, Isolation::default())
}

fn main() {
    let _ = (allow, review);
}
