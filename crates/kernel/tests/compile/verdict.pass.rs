//! A verdict can be read.
use bailey_policy::{Allowed, Review};

fn digests(allowed: &Allowed, review: &Review) -> bool {
    allowed.effect_digest() == review.effect_digest()
}

fn main() {
    let _ = digests;
}
