//! The rules of one phase: found by the kind of action and by what it touches, and all of them heard.

use crate::{
    index::Index,
    policy::STEPS_MAX,
    rule::{Answer, Rule},
    subject::{Resource, Subject},
    tally::Tally,
};
use alloc::{format, vec::Vec};
use bailey_protocol::Kind;

/// Rules, ready to be heard.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) rules: Vec<Rule>,
    by_kind: [Concerned; Kind::ALL.len()],
}

/// The rules that concern one kind.
#[derive(Debug)]
struct Concerned {
    rules: Index,
    /// Steps that they take for each thing that an action touches.
    steps: u64,
}

impl Phase {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self { by_kind: Kind::ALL.map(|kind| Concerned::new(kind, &rules)), rules }
    }

    /// Hears every rule that can speak.
    pub(crate) fn run(&self, subject: &Subject<'_>, resources: &[Resource<'_>], tally: &mut Tally) {
        let place = Kind::ALL.iter().position(|kind| *kind == subject.kind);
        let Some(concerned) = place.and_then(|place| self.by_kind.get(place)) else { return };
        let things = u64::try_from(resources.len()).unwrap_or(u64::MAX);
        if concerned.steps.saturating_mul(things) > STEPS_MAX {
            return tally.hear_own("too-much", format!("{things} paths are too many for so many rules"));
        }
        for rule in
            concerned.rules.find(resources, self.rules.len()).filter_map(|place| self.rules.get(place))
        {
            tally.hear(rule, subject, resources);
        }
    }
}

impl Concerned {
    fn new(kind: Kind, rules: &[Rule]) -> Self {
        let mut concerned = Self { rules: Index::default(), steps: 0 };
        for (place, rule) in rules.iter().enumerate() {
            if rule.answer != Answer::Pass && rule.concerns(kind) {
                concerned.rules.insert(place, &rule.matches);
                concerned.steps = concerned.steps.saturating_add(rule.steps());
            }
        }
        concerned
    }
}
