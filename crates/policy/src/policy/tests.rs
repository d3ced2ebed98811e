use super::*;
use crate::{Places, file};
use alloc::string::ToString;
use bailey_protocol::{Cost, Effect, EffectId, Labels, Role, Sealed, SessionId, Timestamp};

/// The rule at which these tests have an evaluation panic: no other rule can.
const PANICS: &str = "panics-in-tests";

/// What an error in the evaluation of a rule would do.
pub(super) fn panic_at(rule: &Rule) {
    assert!(rule.name != PANICS, "an error on purpose");
}

/// A policy of which one rule has this name, in this tier, beside one that allows everything.
fn policy(name: &str, tier: Tier) -> Policy {
    let text = "[[rule]]\nname = \"NAME\"\nanswer = \"allow\"\nmatch = { action = \"read\" }\n";
    let of =
        |name: &str| file::parse("a.toml", &text.replace("NAME", name), file::Format::Toml).unwrap().rules;
    let (mut odd, all) = (of(name), of("all"));
    odd[0].tier = tier;
    Policy::new(Vec::new(), [odd, all].concat())
}

fn decided(policy: &Policy) -> Decided {
    let effect = Effect {
        id: EffectId::new(1, [1; 10]),
        session: SessionId::new(1, [2; 10]),
        parent: None,
        call: None,
        role: Role::Agent,
        action: Action::Read { path: "/home/ann/p/a".into() },
        labels: Labels::default(),
        cost: Cost::default(),
    };
    let (effect, places) = (Sealed::new(effect).unwrap(), Places::default());
    policy.decide(&Facts::new(&effect, Timestamp::UNIX_EPOCH, &places))
}

/// In the phase of the binding rules and in that of the others: the runtime lives on, and what could not be
/// judged is denied.
#[test]
fn a_rule_that_panics_is_a_denial() {
    for tier in [Tier::Organisation, Tier::User] {
        let denied = decided(&policy(PANICS, tier));
        assert!(matches!(denied.verdict, Verdict::Deny(_)), "{denied:?}");
        let reasons: Vec<String> = denied.reasons.iter().map(ToString::to_string).collect();
        assert!(
            matches!(reasons.as_slice(), [own] if own.contains("this is an error in Bailey")),
            "{reasons:?}"
        );
        let control = decided(&policy("another", tier));
        assert!(matches!(control.verdict, Verdict::Allow(_)), "control: {control:?}");
    }
}
