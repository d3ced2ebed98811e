//! What a decision tells besides its answer.

use crate::support::*;
use bailey_policy::{Answer::Allow, Policy};
use bailey_protocol::{Profile, Role};

const WORKSPACE: &str = "/home/ann/proj";

/// Changes beneath `src` are allowed, and nothing else.
fn policy() -> Policy {
    Policy::new(vec![], vec![rule("src", Allow).on(path(&["src/**"]))])
}

fn told(paths: &[&str]) -> String {
    let decided = decide(&policy(), Role::Agent, change(paths));
    decided.reasons.first().map(|reason| reason.text.clone()).unwrap_or_default()
}

#[test]
fn what_no_rule_allows_is_named_where_there_are_several() {
    let at = |name: &str| format!("{WORKSPACE}/{name}");
    assert_eq!(told(&[&at("a")]), "no rule allows this");
    assert_eq!(told(&[&at("src/a"), &at("b")]), "no rule allows this: `b`");
    assert_eq!(told(&[&at("a"), &at("src/a"), &at("b")]), "no rule allows this: `a`, `b`");
    let many: Vec<String> = (0..203).map(|number| at(&format!("{number:03}"))).collect();
    let line = told(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(line.ends_with("`199` and 3 more"), "{line}");
    let line = told(&many.iter().take(200).map(String::as_str).collect::<Vec<_>>());
    assert!(line.ends_with("`199`"), "{line}");
}

#[test]
fn a_policy_knows_its_extensions_and_its_profile() {
    let policy = policy().with_extensions(vec![extension("x"), extension("y")]);
    let names: Vec<&str> = policy.extensions().map(|extension| extension.name.as_str()).collect();
    assert_eq!(names, ["x", "y"]);
    let profile_of = |policy: &Policy| {
        let path = format!("{WORKSPACE}/src/a");
        isolation(&decide(policy, Role::Agent, change(&[&path]))).profile
    };
    let policy = Policy::new(vec![], vec![rule("all", Allow)]);
    assert_eq!(profile_of(&policy), Profile::default());
    assert_eq!(profile_of(&policy.with_profile(Profile::Strict)), Profile::Strict);
}
