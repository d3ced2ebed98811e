//! The normative cases that need neither tokens nor extensions, by number.

use crate::support::*;
use bailey_policy::{
    Answer::{Allow, Deny, Pass, Review},
    Decided, Policy, Rule, Tier, built_in_rules,
    file::{Format, parse},
};
use bailey_protocol::{Action, Kind, Role::Agent};

/// Judges a read of `/home/ann/proj/a.rs` under these rules alone.
fn under(rules: impl Into<Vec<Rule>>) -> Decided {
    decide(&Policy::new(vec![], rules.into()), Agent, read("/home/ann/proj/a.rs"))
}

#[test]
fn case_01_no_rule_matches() {
    let decided = under([rule("models", Allow).on(kind(Kind::Model))]);
    assert_eq!(answer(&decided), Deny);
    assert_eq!(decided.reasons[0].text, "no rule allows this");
    assert_eq!(answer(&under([rule("reads", Allow).on(kind(Kind::Read))])), Allow, "control");
}

#[test]
fn case_02_only_rules_that_pass() {
    let excepted = rule("a", Allow).unless([path(&["*.rs"])]);
    assert_eq!(answer(&under([rule("b", Pass), excepted.clone()])), Deny);
    assert_eq!(answer(&under([rule("b", Allow), excepted])), Allow, "control");
}

#[test]
fn case_03_allow_and_deny() {
    let decided = under([rule("a", Allow).weighs(1000), rule("d", Deny).weighs(-1000)]);
    assert_eq!(answer(&decided), Deny);
    assert!(said(&decided, "d"));
    assert_eq!(answer(&under([rule("a", Allow)])), Allow, "control");
}

#[test]
fn case_04_allow_and_review() {
    assert_eq!(answer(&under([rule("a", Allow), rule("r", Review)])), Review);
}

#[test]
fn case_06_review_excepted() {
    let review = rule("r", Review);
    assert_eq!(answer(&under([review.clone().unless([path(&["*.rs"])])])), Deny);
    assert_eq!(answer(&under([review])), Review, "control");
}

#[test]
fn case_10_all_reasons_of_reviews() {
    let decided = under([rule("r1", Review), rule("a", Allow), rule("r2", Review).at(Tier::Project)]);
    assert_eq!(answer(&decided), Review);
    let reviews: Vec<_> = decided
        .reasons
        .iter()
        .filter(|reason| reason.answer == Review)
        .map(|reason| reason.text.as_str())
        .collect();
    assert_eq!(reviews, ["because of r1", "because of r2"]);
}

#[test]
fn case_12_kind_matches_path_does_not() {
    let matches = |glob| bailey_policy::Condition { action: Some(vec![Kind::Read]), ..path(&[glob]) };
    let deny = |glob| under([rule("a", Allow), rule("d", Deny).on(matches(glob))]);
    assert_eq!(answer(&deny("{workspace}/src/**")), Allow);
    assert_eq!(answer(&deny("{workspace}/**")), Deny, "control");
}

#[test]
fn case_13_except_does_not_match() {
    assert_eq!(answer(&under([rule("a", Allow), rule("r", Review).unless([path(&["*.md"])])])), Review);
}

#[test]
fn case_14_one_of_several_excepts_matches() {
    let excepts = [path(&["*.md"]), path(&["*.rs"]), kind(Kind::Exec)];
    assert_eq!(answer(&under([rule("a", Allow), rule("r", Review).unless(excepts)])), Allow);
}

#[test]
fn case_15_none_of_several_excepts_matches() {
    let excepts = [path(&["*.md"]), kind(Kind::Exec)];
    assert_eq!(answer(&under([rule("a", Allow), rule("r", Review).unless(excepts)])), Review);
}

#[test]
fn case_16_several_allows() {
    assert_eq!(answer(&under([rule("a", Allow), rule("b", Allow), rule("c", Allow)])), Allow);
}

#[test]
fn case_17_allows_of_different_layers() {
    let policy =
        Policy::new(vec![rule("a", Allow)], vec![rule("b", Allow), rule("c", Allow).at(Tier::Organisation)]);
    let decided = decide(&policy, Agent, read("/home/ann/proj/a.rs"));
    assert_eq!(answer(&decided), Allow);
    assert_eq!(decided.reasons.len(), 3);
}

#[test]
fn case_18_no_built_in_rules() {
    assert_eq!(answer(&under([rule("a", Allow)])), Allow);
    assert_eq!(answer(&under([rule("d", Deny)])), Deny);
    assert_eq!(answer(&under([])), Deny);
}

#[test]
fn case_19_empty_rules_file() {
    for (text, format) in
        [("", Format::Toml), ("# nothing\n", Format::Toml), ("", Format::Yaml), ("# no\n", Format::Yaml)]
    {
        let policy = Policy::new(built_in_rules(), parse("empty", text, format).unwrap().rules);
        let decided = decide(&policy, Agent, read("/home/ann/proj/a.rs"));
        assert_eq!(answer(&decided), Deny);
        assert!(said(&decided, "default"));
        let decided = decide(&policy, Agent, read("/home/ann/.ssh/id_rsa"));
        assert!(said(&decided, "home-secrets"), "built-in rules are active");
    }
}

#[test]
fn case_24_unknown_action_kind() {
    let foreign = Action::Foreign { tool: "launch".into(), args: "{}".into() };
    let decided = decide(&Policy::new(vec![], vec![rule("a", Allow)]), Agent, foreign);
    assert_eq!(answer(&decided), Deny);
    assert!(said(&decided, "unknown-action"));
    assert_eq!(answer(&under([rule("a", Allow)])), Allow, "control");
}

#[test]
fn case_25_empty_path_list() {
    for answer_name in ["allow", "deny"] {
        let text = format!("[[rule]]\nname = \"a\"\nanswer = \"{answer_name}\"\nmatch = {{ path = [] }}\n");
        let parsed = parse("r.toml", &text, Format::Toml).unwrap();
        assert_eq!(
            parsed.warnings[0].to_string(),
            "r.toml:1: rule `a` can never speak: the list `path` of its `match` is empty"
        );
        let mut rules = parsed.rules;
        rules.push(rule("control", Allow));
        let decided = under(rules);
        assert_eq!(answer(&decided), Allow);
        assert!(!said(&decided, "a"));
    }
}

#[test]
fn case_26_except_identical_to_match() {
    let text =
        "rule:\n  - name: a\n    answer: review\n    match: {path: '*.rs'}\n    except: [{path: '*.rs'}]\n";
    let parsed = parse("r.yaml", text, Format::Yaml).unwrap();
    assert_eq!(
        parsed.warnings[0].to_string(),
        "r.yaml:2: rule `a` can never speak: an `except` is the same as its `match`"
    );
    assert_eq!(answer(&under(parsed.rules)), Deny);
}
