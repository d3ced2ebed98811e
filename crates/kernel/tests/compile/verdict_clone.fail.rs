//! A verdict cannot be cloned: one decision permits one effect once.
use bailey_policy::{Allowed, Review};

fn allow(allowed: &Allowed) -> Allowed {
    allowed.clone()
}

fn review(review: &Review) -> Review {
    review.clone()
}

fn main() {
    let _ = (allow, review);
}
