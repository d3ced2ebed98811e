//! Review policies: rules put in front of the others, which lift nothing and which nothing of their tier
//! lifts.

use crate::support::*;
use bailey_policy::{
    Answer::{self, Allow, Deny, Review},
    Facts, Policy, Reviewing, Tier, Trust, file,
};
use bailey_protocol::{
    Action, MergeKind,
    Role::{self, Agent, Owner},
    Timestamp,
};
use std::slice;

const LEVELS: [Reviewing; 4] =
    [Reviewing::Auto, Reviewing::BeforeMerge, Reviewing::BeforeExecute, Reviewing::EveryStep];

fn allow_all() -> Policy {
    Policy::new(vec![], vec![rule("all", Allow)])
}

fn judged(policy: &Policy, role: Role, action: Action) -> Answer {
    answer(&decide(policy, role, action))
}

#[test]
fn each_review_policy_asks_about_what_its_name_says() {
    let asked = |level: Reviewing, role, action: Action| {
        judged(&allow_all().with_rules(level.rules(Tier::User, None)), role, action) == Review
    };
    let of = |role, action: &Action| LEVELS.map(|level| asked(level, role, action.clone()));
    assert_eq!(of(Owner, &merge(MergeKind::Apply, &["/home/ann/proj/a"])), [false, true, true, true]);
    assert_eq!(of(Owner, &merge(MergeKind::Undo, &["/home/ann/proj/a"])), [false, true, true, true]);
    assert_eq!(
        of(Owner, &merge(MergeKind::Discard, &["/home/ann/proj/a"])),
        [false; 4],
        "it reaches no project"
    );
    assert_eq!(of(Agent, &exec(&["ls"])), [false, false, true, true]);
    assert_eq!(of(Agent, &read("/home/ann/proj/a")), [false, false, false, true]);
    assert_eq!(of(Owner, &read("/home/ann/proj/a")), [false; 4], "what the owner reads is a step of no task");
    assert_eq!(of(Agent, &model()), [false; 4], "a thought is no step");
}

#[test]
fn nothing_of_a_home_lifts_a_review_policy_and_it_lifts_nothing() {
    let mut best = rule("best", Allow);
    best.priority = 1000;
    let rules = Reviewing::BeforeExecute.rules(Tier::User, None);
    let policy = Policy::new(vec![], vec![best.clone()]).with_rules(rules.clone());
    assert_eq!(judged(&policy, Agent, exec(&["ls"])), Review);
    // The control: an ordinary review is lifted by it.
    assert_eq!(judged(&Policy::new(vec![], vec![best, rule("r", Review)]), Agent, exec(&["ls"])), Allow);
    // A deny stays one, and so does a review of the organisation under `auto`.
    let denied = Policy::new(vec![], vec![rule("all", Allow), rule("no", Deny)]).with_rules(rules);
    assert_eq!(judged(&denied, Agent, exec(&["ls"])), Deny);
    let mut organisations = rule("look", Review);
    organisations.tier = Tier::Organisation;
    let policy = Policy::new(vec![], vec![rule("all", Allow), organisations]);
    let auto = policy.with_rules(Reviewing::Auto.rules(Tier::User, None));
    assert_eq!(judged(&auto, Agent, exec(&["ls"])), Review);
}

#[test]
fn a_review_policy_may_be_for_one_tier_of_trust() {
    let of = |trust| allow_all().with_rules(Reviewing::BeforeExecute.rules(Tier::User, Some(trust)));
    // The agent is internal, its owner trusted.
    assert_eq!(judged(&of(Trust::Internal), Agent, exec(&["ls"])), Review);
    assert_eq!(judged(&of(Trust::Untrusted), Agent, exec(&["ls"])), Allow);
    assert_eq!(judged(&of(Trust::Trusted), Owner, exec(&["ls"])), Review);
}

#[test]
fn what_narrows_a_session_opens_and_lifts_nothing() {
    let judged = |policy: &Policy, narrowing: &[bailey_policy::Rule]| {
        let (effect, places) = (sealed(Agent, exec(&["ls"])), places());
        let facts = Facts { narrowing, ..Facts::new(&effect, Timestamp::UNIX_EPOCH, &places) };
        answer(&policy.decide(&facts))
    };
    let mut allow = rule("a", Allow);
    allow.priority = 1000;
    let review = rule("r", Review);
    assert_eq!(judged(&allow_all(), &[]), Allow, "control");
    assert_eq!(judged(&allow_all(), slice::from_ref(&review)), Review);
    assert_eq!(judged(&allow_all(), &[rule("d", Deny)]), Deny);
    assert_eq!(judged(&Policy::new(vec![], vec![]), slice::from_ref(&allow)), Deny, "it opens nothing");
    assert_eq!(
        judged(&Policy::new(vec![], vec![]), slice::from_ref(&review)),
        Deny,
        "not to a question either"
    );
    assert_eq!(
        judged(&Policy::new(vec![], vec![review, rule("b", Allow)]), &[allow]),
        Review,
        "it lifts nothing"
    );
}

#[test]
fn compliance_is_part_of_the_policy_and_the_organisations_files_alone_say_it() {
    let policy = allow_all();
    let before = policy.digest();
    assert!(!policy.is_compliance());
    let policy = policy.with_compliance();
    assert!(policy.is_compliance() && policy.digest() != before);
    assert_eq!(policy.with_extensions(vec![]).digest(), allow_all().with_compliance().digest());
    let error = file::parse("own.toml", "compliance = true\n", file::Format::Toml).unwrap_err();
    assert!(error.to_string().contains("[approvals]"), "{error}");
    let none = file::parse("own.yaml", "compliance: false\n", file::Format::Yaml).unwrap();
    assert!(!none.compliance);
}
