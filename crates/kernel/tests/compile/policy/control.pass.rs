use bailey_policy::{Allowed, Denial, Review};

fn read(allowed: &Allowed, review: &Review, denial: &Denial) {
    let _ = (allowed.isolation().clone(), review.isolation().clone());
    let _ = serde_json::to_string(&(allowed.effect_digest(), review.policy_digest(), denial.effect_digest()));
}

fn main() {
    let _ = read;
}
