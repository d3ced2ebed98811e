//! What each rule came to for one effect: for people who ask why.

use crate::{
    Facts, Policy,
    fit::Fit,
    policy::speaks,
    rule::{Answer, Rule},
    subject::{Resource, Subject},
    unfit,
};
use alloc::{string::String, vec::Vec};
use serde::Serialize;

/// One rule, and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What it came to.
    pub heard: RuleOutcome,
    /// Why an allow does not fit a command that one of its prefixes looks made for.
    pub why: Option<String>,
}

/// The outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleOutcome {
    /// It gave its answer.
    Spoke,
    /// It would have, but for one of its exceptions.
    Excepted,
    /// Its conditions do not fit.
    Silent,
    /// Nobody asked it: a binding rule had denied already, or a token stands in for it, or must.
    NotAsked,
}

impl Policy {
    /// Every rule about this kind of action, with what it came to, in the order of [`Policy::rules`]. The
    /// verdict itself is [`Policy::decide`]'s.
    #[must_use]
    pub fn consider(&self, facts: &Facts<'_>) -> Vec<Considered<'_>> {
        let about = facts.effect.effect().action.describe();
        let (subject, resources) =
            (Subject::new(facts, &about), Resource::all(facts, &about, self.programs()));
        let concerned = self.rules().filter(|rule| rule.concerns(subject.kind));
        let token = facts.token.map(|token| token.check(self.digest(), facts, &subject, &resources));
        let is_settled = token == Some(Ok(())) || facts.caller.is_confined;
        let mut denied = false;
        let mut considered = Vec::new();
        for rule in concerned {
            let heard = match (denied || is_settled) && !rule.tier.binds() {
                true => RuleOutcome::NotAsked,
                false => heard(rule, &subject, &resources),
            };
            denied |= heard == RuleOutcome::Spoke && rule.answer == Answer::Deny && rule.tier.binds();
            let why = match heard {
                RuleOutcome::Silent => unfit::why(rule, facts, &resources, self.programs()),
                RuleOutcome::Spoke | RuleOutcome::Excepted | RuleOutcome::NotAsked => None,
            };
            considered.push(Considered { rule, heard, why });
        }
        considered
    }
}

fn heard(rule: &Rule, subject: &Subject<'_>, resources: &[Resource<'_>]) -> RuleOutcome {
    let enough = if rule.answer == Answer::Allow { Fit::Yes } else { Fit::Maybe };
    let fits = |resource: &&Resource<'_>| rule.matches.fit(subject, resource) >= enough;
    if rule.answer == Answer::Pass {
        RuleOutcome::Silent
    } else if resources.iter().any(|resource| speaks(rule, subject, resource)) {
        RuleOutcome::Spoke
    } else if resources.iter().any(|resource| fits(&resource)) {
        RuleOutcome::Excepted
    } else {
        RuleOutcome::Silent
    }
}
