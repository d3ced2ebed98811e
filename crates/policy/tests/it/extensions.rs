//! Extensions, as a decision treats them: when they are asked, and what each way of not answering comes to.

use crate::support::*;
use bailey_policy::{
    Answer::{self, Allow, Deny, Pass, Review},
    Extension, ExtensionReply, Judged, Late, Policy, Rule,
};
use bailey_protocol::{Digest, Kind};

const FILE: &str = "/home/ann/proj/a.rs";

fn policy(rules: Vec<Rule>, extensions: Vec<Extension>) -> Policy {
    Policy::new(vec![], rules).with_extensions(extensions)
}

fn replied(late: Late, reply: Option<ExtensionReply>) -> (Answer, String) {
    let policy = policy(vec![rule("a", Allow)], vec![Extension { late, ..extension("x") }]);
    let (decided, asked) = Asked::new(&policy, read(FILE)).decide(|_| reply.clone());
    assert_eq!(asked, ["x"]);
    let own = decided.reasons.iter().find(|reason| reason.rule == "x").unwrap();
    (answer(&decided), own.to_string())
}

#[test]
fn whatever_is_no_answer_denies() {
    for (reply, why) in [
        (Some(ExtensionReply::Late), "it did not answer in time"),
        (Some(ExtensionReply::Crashed), "it crashed"),
        (Some(ExtensionReply::Garbled), "its answer cannot be read"),
        (Some(ExtensionReply::TooLong), "this is too long for it to be asked about"),
        (Some(ExtensionReply::Disabled), "it is disabled until you enable it again"),
        (Some(ExtensionReply::Barred("no token".into())), "it is not started: no token"),
        (None, "nobody asked it"),
    ] {
        assert_eq!(replied(Late::Deny, reply), (Deny, format!("{why} (extension `x`: deny)")));
    }
    assert_eq!(replied(Late::Deny, says(Pass)).0, Allow, "control");
}

#[test]
fn only_slowness_can_be_made_to_count_for_less() {
    assert_eq!(replied(Late::Review, Some(ExtensionReply::Late)).0, Review);
    let (verdict, told) = replied(Late::Pass, Some(ExtensionReply::Late));
    assert_eq!(
        (verdict, told.as_str()),
        (Allow, "it did not answer in time (extension `x`: pass)"),
        "and is told"
    );
    for reply in [
        Some(ExtensionReply::Crashed),
        Some(ExtensionReply::Garbled),
        Some(ExtensionReply::Disabled),
        Some(ExtensionReply::Barred(String::new())),
        None,
    ] {
        assert_eq!(replied(Late::Pass, reply).0, Deny);
    }
}

#[test]
fn an_extension_opens_asks_and_denies_but_lifts_nothing() {
    let ask = |rules: Vec<Rule>, said| {
        answer(&Asked::new(&policy(rules, vec![extension("x")]), read(FILE)).decide(|_| says(said)).0)
    };
    assert_eq!((ask(vec![], Allow), ask(vec![], Review), ask(vec![], Pass)), (Allow, Review, Deny));
    assert_eq!(ask(vec![rule("r", Review).weighs(-1000)], Allow), Review, "it lifts no review of a rule");
    assert_eq!(ask(vec![rule("a", Allow).weighs(1000)], Review), Review, "and no rule lifts its own");
}

#[test]
fn all_are_asked_and_the_strictest_counts() {
    let two = policy(vec![rule("a", Allow)], vec![extension("y"), extension("x")]);
    for (first, second, verdict) in [(Allow, Deny, Deny), (Deny, Allow, Deny), (Allow, Review, Review)] {
        let reply = |name: &str| says(if name == "x" { first } else { second });
        let (decided, asked) = Asked::new(&two, read(FILE)).decide(reply);
        assert_eq!((answer(&decided), asked), (verdict, vec!["x".to_string(), "y".into()]));
    }
    let (decided, _) =
        Asked::new(&two, read(FILE)).decide(|name| (name == "x").then(|| says(Allow)).flatten());
    assert_eq!(answer(&decided), Deny, "one that has no reply is not forgotten");
}

#[test]
fn it_judges_its_kinds_only_and_is_not_asked_about_what_is_denied() {
    let policy = policy(vec![rule("a", Allow)], vec![extension("x")]);
    let (decided, asked) = Asked::new(&policy, exec(&["make"])).decide(|_| says(Deny));
    assert_eq!((answer(&decided), asked), (Allow, vec![]));
    let (decided, asked) = Asked::new(&policy, read("not absolute")).decide(|_| says(Allow));
    assert_eq!((answer(&decided), asked), (Deny, vec![]));
    assert_eq!(Asked::new(&policy, read(FILE)).decide(|_| says(Deny)).1, ["x"], "control");
}

#[test]
fn deciding_without_asking_denies() {
    let policy = policy(vec![rule("a", Allow)], vec![extension("x")]);
    assert_eq!(answer(&decide(&policy, bailey_protocol::Role::Agent, read(FILE))), Deny);
    assert_eq!(answer(&decide(&policy, bailey_protocol::Role::Agent, exec(&["make"]))), Allow, "control");
}

#[test]
fn an_evaluation_that_panics_is_a_denial() {
    let policy = policy(vec![rule("a", Allow)], vec![extension("x")]);
    let (effect, places) = (sealed(bailey_protocol::Role::Agent, read(FILE)), places());
    let facts = bailey_policy::Facts::new(&effect, at(0), &places);
    let conclude = |reply: fn() -> Option<ExtensionReply>| match policy.judge(&facts) {
        Judged::Asks(inquiry) => inquiry.conclude(|_| reply()),
        Judged::Decided(decided) => decided,
    };
    let decided = conclude(|| panic!("an error on purpose"));
    assert_eq!(answer(&decided), Deny);
    assert!(said(&decided, "evaluation"), "{:?}", decided.reasons);
    assert_eq!(answer(&conclude(|| says(Allow))), Allow, "control");
}

#[test]
fn a_reason_in_foreign_words_is_cut_and_cannot_draw() {
    let reason = format!("\u{1b}[2J\u{202e}{}", "x".repeat(600));
    let (_, told) = replied(Late::Deny, Some(ExtensionReply::Said { answer: Deny, reason }));
    assert!(told.starts_with("\\u{1b}[2J\\u{202e}xxx") && told.len() < 560, "{told}");
}

#[test]
fn which_extensions_there_are_is_part_of_the_policy() {
    let digest = |extensions| policy(vec![rule("a", Allow)], extensions).digest();
    let all = [
        vec![],
        vec![extension("x")],
        vec![extension("y")],
        vec![Extension { late: Late::Pass, ..extension("x") }],
        vec![Extension { kinds: vec![Kind::Exec], ..extension("x") }],
        vec![Extension { program: Digest::of(b"y.py"), ..extension("x") }],
    ];
    let distinct: std::collections::BTreeSet<_> = all.into_iter().map(digest).collect();
    assert_eq!(distinct.len(), 6);
    assert_eq!(digest(vec![extension("x"), extension("y")]), digest(vec![extension("y"), extension("x")]));
}
