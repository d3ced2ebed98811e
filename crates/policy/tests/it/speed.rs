//! A decision under a thousand rules is a matter of microseconds. The bound is loose enough for a busy machine
//! and an unoptimised build; the figures are for reading.

use crate::support::*;
use bailey_policy::{
    Answer::{Allow, Deny, Review},
    Facts, Policy, built_in_rules,
};
use bailey_protocol::{Kind, Role::Agent, Timestamp};
use std::time::Instant;

/// The best of many runs, in nanoseconds.
fn best(policy: &Policy, action: bailey_protocol::Action) -> u128 {
    let (effect, places) = (sealed(Agent, action), places());
    let facts = Facts::new(&effect, Timestamp::UNIX_EPOCH, &places);
    let run = || {
        let start = Instant::now();
        assert_eq!(answer(&std::hint::black_box(policy.decide(&facts))), Allow);
        start.elapsed().as_nanos()
    };
    (0..200).map(|_| run()).min().unwrap()
}

#[test]
fn a_thousand_rules() {
    let mut rules = vec![rule("all", Allow)];
    for i in 0..1000 {
        let matches = bailey_policy::Condition {
            action: Some(vec![Kind::Read]),
            ..path(&[["{workspace}/src/{i}/**", "/srv/{i}/*.rs", "*.{i}"][i % 3]
                .replace("{i}", &format!("m{i}"))
                .as_str()])
        };
        rules.push(rule(&format!("r{i}"), if i % 2 == 0 { Deny } else { Review }).on(matches));
    }
    let policy = Policy::new(built_in_rules(), rules);
    let concerned = best(&policy, read("/home/ann/proj/src/some/module/file.rs"));
    let other = best(&policy, exec(&["make"]));
    println!("thousand rules of its kind: {concerned} ns; of another kind: {other} ns");
    assert!(concerned < 5_000_000, "{concerned} ns");
    assert!(
        other * 5 < concerned,
        "the index passes over rules of other kinds: {other} ns against {concerned} ns"
    );
}
