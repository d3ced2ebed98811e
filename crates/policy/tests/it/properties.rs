//! What must hold for all rules and actions.

use crate::{
    random::{World, cases, conditions, rules, tokens, worlds},
    support::*,
};
use bailey_policy::{
    Answer::{self, Allow, Deny, Review},
    Caller, Condition, Policy, Rule, RuleOutcome, Source, Tier, built_in_rules,
};
use bailey_protocol::{Kind, Role};
use proptest::{prelude::*, sample::select};

/// How much a decision lets happen.
fn freedom(answer: Answer) -> u8 {
    match answer {
        Allow => 2,
        Review => 1,
        _ => 0,
    }
}

fn decided(rules: Vec<Rule>, case: &crate::random::Case) -> Answer {
    answer(&decide(&Policy::new(vec![], rules), case.role, case.action.clone()))
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn one_more_deny_or_review_never_frees(
        rules in rules(), case in cases(), answer in select(vec![Deny, Review]), tier in select(Tier::ALL.to_vec()),
        matches in conditions(),
    ) {
        let mut more = rules.clone();
        more.push(rule("more", answer).at(tier).on(matches).weighs(-1000));
        let (before, after) = (decided(rules, &case), decided(more, &case));
        // A review of the upper tiers may turn "no rule allows this" into a question.
        prop_assert!(freedom(after) <= freedom(before) || (answer == Review && tier <= Tier::User && before == Deny && after == Review));
    }

    #[test]
    fn one_more_allow_never_restricts(rules in rules(), case in cases(), matches in conditions()) {
        let mut more = rules.clone();
        more.push(rule("more", Allow).on(matches));
        prop_assert!(freedom(decided(more, &case)) >= freedom(decided(rules, &case)));
    }

    #[test]
    fn one_more_except_never_frees_an_allow(rules in rules(), case in cases(), except in conditions()) {
        let narrowed = rules.iter().cloned().map(|mut rule| {
            if rule.answer == Allow {
                rule.except.push(except.clone());
            }
            rule
        });
        prop_assert!(freedom(decided(narrowed.collect(), &case)) <= freedom(decided(rules, &case)));
    }

    #[test]
    fn order_never_matters(rules in rules(), case in cases(), turn in 0_usize..8) {
        let mut turned = rules.clone();
        let length = turned.len().max(1);
        turned.rotate_left((turn % length).min(rules.len()));
        turned.reverse();
        let (one, other) = (Policy::new(vec![], rules), Policy::new(vec![], turned));
        prop_assert_eq!(one.digest(), other.digest());
        let (a, b) = (decide(&one, case.role, case.action.clone()), decide(&other, case.role, case.action.clone()));
        prop_assert_eq!(answer(&a), answer(&b));
        prop_assert_eq!(a.reasons, b.reasons);
    }

    #[test]
    fn removing_a_token_never_turns_deny_into_allow(rules in rules(), case in cases(), world in worlds()) {
        let without = World { token: None, ..world.clone() };
        let (with, without) = (answer(&world.decide(&rules, &case)), answer(&without.decide(&rules, &case)));
        prop_assert!(with != Deny || without == Deny, "{with:?} with it, {without:?} without");
    }

    #[test]
    fn narrowing_a_token_never_widens(rules in rules(), case in cases(), world in worlds(), other in tokens()) {
        // Where nothing but the token allows, so that what it no longer covers is denied.
        let world = World { caller: Caller { is_confined: true, ..world.caller }, ..world };
        let mut narrowed = world.clone();
        if let Some(token) = &mut narrowed.token {
            token.caveats.extend(other.caveats);
            if !world.token.iter().any(|token| token.caveats.iter().any(|it| it.scope.is_some())
                && token.caveats.iter().any(|it| it.expires.is_some())) {
                return Ok(());
            }
        }
        let (before, after) = (answer(&world.decide(&rules, &case)), answer(&narrowed.decide(&rules, &case)));
        prop_assert!(freedom(after) <= freedom(before), "{before:?}, narrowed {after:?}");
    }

    #[test]
    fn an_extension_more_never_frees_what_rules_deny(rules in rules(), case in cases(), world in worlds()) {
        let without = World { says: vec![], ..world.clone() };
        let decided = without.decide(&rules, &case);
        let by_default = decided.reasons.iter().any(|reason| reason.rule == "default");
        let (with, without) = (answer(&world.decide(&rules, &case)), answer(&decided));
        prop_assert!(freedom(with) <= freedom(without) || by_default, "{without:?}, with them {with:?}");
    }

    #[test]
    fn files_never_free_what_built_in_rules_forbid(rules in rules(), case in cases()) {
        // An allow of everything does not mean the agent's own file.
        let adapts = Condition { action: Some([Kind::Adapt].into()), ..Condition::default() };
        let adapts = Rule { matches: adapts, ..rule("adapts", Allow) };
        let open = [rule("everything", Allow).weighs(1000), adapts.weighs(1000)];
        let alone = Policy::new(built_in_rules(), open.clone().into());
        let with = Policy::new(built_in_rules(), [rules, open.into()].concat());
        let (alone, with) =
            (decide(&alone, case.role, case.action.clone()), decide(&with, case.role, case.action.clone()));
        prop_assert!(freedom(answer(&with)) <= freedom(answer(&alone)));
    }

    #[test]
    fn many_are_as_restricted_as_the_most_restricted(rules in rules(), paths in proptest::sample::subsequence(
        vec!["/home/ann/proj/a", "/home/ann/proj/b.rs", "/tmp/a", "/home/ann/a", "/home/ann/.bailey/a"], 1..5)) {
        let policy = Policy::new(vec![], rules);
        let together = answer(&decide(&policy, Role::Agent, change(&paths)));
        let apart = paths.iter().map(|path| answer(&decide(&policy, Role::Agent, change(&[path])))).max();
        prop_assert_eq!(Some(together), apart);
    }

    #[test]
    fn what_is_explained_is_what_is_decided(rules in rules(), case in cases()) {
        let policy = Policy::new(built_in_rules(), rules);
        let effect = sealed(case.role, case.action.clone());
        let places = places();
        let facts = bailey_policy::Facts::new(&effect, bailey_protocol::Timestamp::UNIX_EPOCH, &places);
        let (decided, considered) = (policy.decide(&facts), policy.consider(&facts));
        let spoke: Vec<&Rule> =
            considered.iter().filter(|one| one.heard == RuleOutcome::Spoke).map(|one| one.rule).collect();
        let says = |answer| spoke.iter().any(|rule| rule.answer == answer);
        let is_spoken = |reason: &bailey_policy::Reason| spoke.iter()
            .any(|rule| (&rule.name, Source::Rule(rule.tier), rule.answer) == (&reason.rule, reason.source, reason.answer));
        // The kernel's own word for what no rule allows, or nobody could judge.
        let own = ["default", "malformed-shape", "unknown-action"];
        let is_own = |reason: &bailey_policy::Reason| reason.answer == Deny && own.contains(&reason.rule.as_str());
        for reason in &decided.reasons {
            prop_assert!(is_spoken(reason) || is_own(reason), "{reason:?}");
        }
        let verdict = answer(&decided);
        prop_assert!(verdict == Deny || says(verdict), "{verdict:?} without a rule that says so");
        prop_assert!(verdict == Deny || !says(Deny), "{verdict:?} over a denial");
    }

    #[test]
    fn every_verdict_names_its_effect_its_policy_and_a_reason(rules in rules(), case in cases()) {
        let policy = Policy::new(vec![], rules);
        let effect = sealed(case.role, case.action.clone());
        let places = places();
        let facts = bailey_policy::Facts::new(&effect, bailey_protocol::Timestamp::UNIX_EPOCH, &places);
        let decided = policy.decide(&facts);
        let strongest = decided.reasons.first().map(|reason| reason.answer);
        prop_assert_eq!(strongest, Some(answer(&decided)));
        let digests = match &decided.verdict {
            bailey_policy::Verdict::Allow(proof) => (proof.effect_digest(), proof.policy_digest()),
            bailey_policy::Verdict::Review(proof) => (proof.effect_digest(), proof.policy_digest()),
            bailey_policy::Verdict::Deny(proof) => (proof.effect_digest(), proof.policy_digest()),
        };
        prop_assert_eq!(digests, (effect.digest(), policy.digest()));
    }
}

#[test]
fn priority_lifts_a_review_of_its_own_tier_only() {
    let ask = |rules: Vec<Rule>| {
        answer(&decide(&Policy::new(vec![], rules), Role::Agent, read("/home/ann/proj/a")))
    };
    let (allow, review) = (rule("a", Allow), rule("r", Review));
    assert_eq!(ask(vec![allow.clone().weighs(1), review.clone()]), Allow);
    assert_eq!(ask(vec![allow.clone().weighs(1), review.clone().weighs(1)]), Review);
    for (high, low) in [(Tier::Organisation, Tier::User), (Tier::User, Tier::Project)] {
        let lower = vec![allow.clone().weighs(1000).at(low), rule("b", Allow), review.clone().at(high)];
        let lower = if high == Tier::User { vec![lower[0].clone(), lower[2].clone()] } else { lower };
        assert_eq!(ask(lower), Review, "a lower tier cannot lift");
        let higher = vec![allow.clone().weighs(1000).at(high), review.clone().at(low)];
        assert_eq!(ask(higher), Review, "a lower tier may narrow");
    }
    let lifted =
        decide(&Policy::new(vec![], vec![allow.weighs(1), review]), Role::Agent, read("/home/ann/proj/a"));
    assert!(!said(&lifted, "r"), "a lifted review is no reason");
}

#[test]
fn lower_tiers_only_narrow() {
    for (tier, own) in
        [Tier::Project, Tier::Session].into_iter().flat_map(|tier| [(tier, Allow), (tier, Review)])
    {
        let alone = vec![rule("a", own).at(tier)];
        let ask = |rules| answer(&decide(&Policy::new(vec![], rules), Role::Agent, read("/home/ann/proj/a")));
        assert_eq!(ask(alone.clone()), Deny);
        assert_eq!(ask([alone, vec![rule("b", Allow)]].concat()), own, "control");
    }
}

#[test]
fn nobody_claims_the_built_in_tier_from_below() {
    let posing = Policy::new(vec![], vec![rule("a", Allow).at(Tier::BuiltIn)]);
    let decided = decide(&posing, Role::Agent, read("/home/ann/proj/a"));
    assert_eq!(decided.reasons[0].source, Source::Rule(Tier::Organisation));
}

#[test]
fn any_change_of_a_rule_changes_the_digest() {
    let base = rule("a", Allow).on(kind(Kind::Read));
    let digest = |rule: Rule| Policy::new(vec![], vec![rule]).digest();
    let changed = [
        Rule { name: "b".into(), ..base.clone() },
        Rule { text: "other".into(), ..base.clone() },
        base.clone().at(Tier::Project),
        base.clone().weighs(1),
        Rule { answer: Review, ..base.clone() },
        base.clone().on(kind(Kind::Stat)),
        base.clone().on(path(&["*"])),
        base.clone().unless([path(&["*"])]),
    ];
    for other in changed {
        assert_ne!(digest(base.clone()), digest(other));
    }
    assert_eq!(digest(base.clone()), digest(base), "control");
}

#[test]
fn a_deny_in_the_binding_phase_ends_the_work() {
    let policy = Policy::new(vec![rule("first", Deny)], vec![rule("second", Deny)]);
    let decided = decide(&policy, Role::Agent, read("/home/ann/proj/a"));
    assert!(said(&decided, "first") && !said(&decided, "second"));
    let policy = Policy::new(vec![rule("first", Review)], vec![rule("second", Deny)]);
    let decided = decide(&policy, Role::Agent, read("/home/ann/proj/a"));
    assert!(said(&decided, "first") && said(&decided, "second"), "control");
}
