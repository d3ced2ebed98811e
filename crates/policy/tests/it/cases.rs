//! The normative cases, by number.

use crate::support::*;
use bailey_policy::{
    Answer::{Allow, Deny, Pass, Review},
    Decided, ExtensionReply, Health, InvalidToken, Policy, Rule, Tier, Token, built_in_rules,
    file::{Format, parse},
};
use bailey_protocol::{Action, Kind, Role::Agent, ToolEffect, ToolUse};

const FILE: &str = "/home/ann/proj/a.rs";

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
fn case_05_built_in_allow_and_extension_deny() {
    let policy = Policy::new(vec![rule("a", Allow)], vec![]).with_extensions(vec![extension("x")]);
    let ask = |answer| Asked::new(&policy, read(FILE)).decide(|_| says(answer)).0;
    let decided = ask(Deny);
    assert_eq!(answer(&decided), Deny, "an allow does not cut the evaluation short");
    assert_eq!(decided.reasons[0].to_string(), "it says deny (extension `x`: deny)");
    assert_eq!(answer(&ask(Pass)), Allow, "control");
}

#[test]
fn case_06_review_excepted() {
    let review = rule("r", Review);
    assert_eq!(answer(&under([review.clone().unless([path(&["*.rs"])])])), Deny);
    assert_eq!(answer(&under([review])), Review, "control");
}

/// Judges a read under these rules, of which the first are built-in, with a token that a caller may have
/// spoiled.
fn with_token(built_in: Vec<Rule>, rules: Vec<Rule>, spoil: impl FnOnce(&mut Token)) -> Decided {
    let policy = Policy::new(built_in, rules).with_extensions(vec![extension("x")]);
    let mut held = token(&policy);
    spoil(&mut held);
    let asked = Asked { token: Some(held), ..Asked::new(&policy, read(FILE)) };
    let is_valid = |decided: &Decided| decided.token == Some(Ok(()));
    let (decided, extensions) = asked.decide(|_| says(Pass));
    assert!(!is_valid(&decided) || extensions.is_empty(), "a valid token stands in for extensions");
    decided
}

#[test]
fn case_07_valid_token_and_built_in_deny() {
    let decided = with_token(vec![rule("d", Deny)], vec![], |_| {});
    assert_eq!((answer(&decided), decided.token), (Deny, Some(Ok(()))));
    assert!(said(&decided, "d"));
    assert_eq!(answer(&with_token(vec![], vec![], |_| {})), Allow, "control");
    let asked = with_token(vec![rule("r", Review)], vec![], |_| {});
    assert_eq!(answer(&asked), Review, "a review of the binding rules stands");
    let organisation = with_token(vec![], vec![rule("d", Deny).at(Tier::Organisation)], |_| {});
    assert_eq!(answer(&organisation), Deny, "and so does what the organisation says");
}

#[test]
fn case_08_valid_token_and_no_built_in_objection() {
    for rules in [vec![], vec![rule("d", Deny)], vec![rule("r", Review)]] {
        let decided = with_token(vec![], rules.clone(), |_| {});
        assert_eq!(answer(&decided), Allow);
        let [reason] = decided.reasons.as_slice() else { panic!("{:?}", decided.reasons) };
        assert!(
            reason.to_string().starts_with("a capability token covers this (token `07070707-"),
            "{reason}"
        );
        let without = decide(&Policy::new(vec![], rules), Agent, read(FILE));
        assert_ne!(answer(&without), Allow, "control");
    }
}

#[test]
fn case_09_expired_token() {
    let expired = |rules| with_token(vec![], rules, |held| held.caveats[0].expires = Some(at(20)));
    let decided = expired(vec![rule("a", Allow), rule("r", Review)]);
    assert_eq!((answer(&decided), decided.token), (Review, Some(Err(InvalidToken::Expired))));
    assert!(said(&decided, "r"));
    assert_eq!(answer(&expired(vec![])), Deny, "as if there were none");
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
fn case_11_file_rule_deny_and_extension_allow() {
    let ask = |rules| {
        let policy = Policy::new(vec![], rules).with_extensions(vec![extension("x")]);
        let (decided, asked) = Asked::new(&policy, read(FILE)).decide(|_| says(Allow));
        (answer(&decided), asked)
    };
    assert_eq!(ask(vec![rule("d", Deny)]), (Deny, vec![]), "the extension is not even asked");
    assert_eq!(ask(vec![]), (Allow, vec!["x".to_string()]), "control");
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
fn case_20_extension_crashes() {
    let policy = Policy::new(vec![], vec![rule("a", Allow)]).with_extensions(vec![extension("x")]);
    let ask = |reply: ExtensionReply| Asked::new(&policy, read(FILE)).decide(|_| Some(reply.clone())).0;
    let decided = ask(ExtensionReply::Crashed);
    assert_eq!(answer(&decided), Deny);
    assert_eq!(decided.reasons[0].to_string(), "it crashed (extension `x`: deny)");
    let once = Health::default().crashed(at(100));
    assert_eq!(once, Health::Restarted(at(100)), "one restart is attempted");
    for second in [100, 101, 130, 99] {
        assert!(once.crashed(at(second)).is_disabled(), "a second crash {second}");
    }
    assert_eq!(once.crashed(at(131)), Health::Restarted(at(131)), "after 30 s it counts as the first");
    let disabled = once.crashed(at(101));
    assert!(disabled.crashed(at(1000)).is_disabled(), "until a human enables it again");
    assert_eq!(disabled.enabled(), Health::Well);
    assert_eq!(answer(&ask(ExtensionReply::Disabled)), Deny);
    assert_eq!(answer(&ask(ExtensionReply::Said { answer: Pass, reason: String::new() })), Allow, "control");
}

#[test]
fn case_21_token_whose_operations_are_used_up() {
    let left = |left| with_token(vec![], vec![rule("r", Review)], |held| held.operations_left = left);
    assert_eq!((answer(&left(0)), left(0).token), (Review, Some(Err(InvalidToken::UsedUp))));
    assert_eq!(answer(&left(1)), Allow, "control");
}

#[test]
fn case_22_token_that_expires_while_the_evaluation_runs() {
    // The one reading of the clock says that it is the last nanosecond of the token's life. Nothing in the
    // evaluation asks what time it is, however long that takes.
    let last = at(20) + std::time::Duration::from_nanos(1);
    let decided = with_token(vec![], vec![], |held| held.caveats[0].expires = Some(last));
    assert_eq!((answer(&decided), decided.token), (Allow, Some(Ok(()))));
    let decided = with_token(vec![], vec![], |held| held.caveats[0].expires = Some(at(20)));
    assert_eq!((answer(&decided), decided.token), (Deny, Some(Err(InvalidToken::Expired))), "control");
    // One whose time comes while an extension is thought about was not valid at the start.
    let decided = with_token(vec![], vec![], |held| held.caveats[0].not_before = Some(last));
    assert_eq!((answer(&decided), decided.token), (Deny, Some(Err(InvalidToken::NotYet))));
}

#[test]
fn case_23_token_bound_to_another_sandbox() {
    let bound = |number| with_token(vec![], vec![], |held| held.caveats[0].sandbox = Some(sandbox(number)));
    assert_eq!((answer(&bound(2)), bound(2).token), (Deny, Some(Err(InvalidToken::OtherSandbox))));
    assert_eq!(answer(&bound(1)), Allow, "control");
}

#[test]
fn case_24_unknown_action_kind() {
    let all = || Policy::new(vec![], vec![rule("a", Allow)]);
    let undeclared = Action::Tool(ToolUse::judged("launch".into(), None, "{}".into()));
    let decided = decide(&all(), Agent, undeclared);
    assert_eq!(answer(&decided), Deny);
    assert!(said(&decided, "unknown-action"));
    assert_eq!(answer(&decide(&all(), Agent, tool("launch", ToolEffect::Read))), Allow, "control");
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
