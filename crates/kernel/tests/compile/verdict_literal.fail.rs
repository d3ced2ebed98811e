//! A verdict cannot be written down as a literal.
use bailey_policy::{Allowed, Review};
use bailey_protocol::{Digest, Isolation};

fn allow(effect: Digest, policy: Digest) -> Allowed {
    Allowed { effect, policy, isolation: Isolation::default() }
}

fn review(effect: Digest, policy: Digest) -> Review {
    Review { effect, policy, isolation: Isolation::default() }
}

fn main() {
    let _ = (allow, review);
}
