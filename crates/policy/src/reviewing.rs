//! Review policies: how much a human looks at, whatever the owner's other rules allow. Each is a few rules,
//! put in front of the others, so that there is one mechanism: what stands above them is not lifted, and what
//! denies still denies.

use crate::{
    Trust,
    condition::Condition,
    rule::{Answer, Rule, Tier},
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use bailey_protocol::{Kind, MergeKind, Role};
use serde::{Deserialize, Serialize};

/// No allow of the same tier has a higher one, so that none lifts such a review.
const PRIORITY: i16 = 1000;

/// What a human looks at before it is done, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reviewing {
    /// What the rules ask about, and nothing else.
    #[default]
    Auto,
    /// Also each merge into the project, and each that is taken back.
    BeforeMerge,
    /// Also each command.
    BeforeExecute,
    /// Also each read, search, change and request. Thoughts of a model are no steps.
    EveryStep,
}

impl Reviewing {
    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::BeforeMerge => "before-merge",
            Self::BeforeExecute => "before-execute",
            Self::EveryStep => "every-step",
        }
    }

    /// Its rules, of this tier; about callers of this trust, where one is given.
    #[must_use]
    pub fn rules(self, tier: Tier, trust: Option<Trust>) -> Vec<Rule> {
        let merges = Condition {
            action: Some([Kind::Merge].into()),
            direction: Some([MergeKind::Apply, MergeKind::Undo].into()),
            ..Condition::default()
        };
        // What the owner does is a step of no task: a command of their own, the start of an extension that
        // they declared. Only who names the owner's own trust means the owner's commands.
        let others: Vec<Role> = Role::ALL.into_iter().filter(|role| *role != Role::Owner).collect();
        let commands = Condition {
            action: Some([Kind::Exec].into()),
            role: Some(others.clone()).filter(|_| trust.is_none()),
            ..Condition::default()
        };
        let steps = Kind::ALL.into_iter().filter(|kind| kind.is_step()).collect();
        let steps = Condition { action: Some(steps), role: Some(others), ..Condition::default() };
        let all = [
            (Self::BeforeMerge, merges, "what reaches the project is looked at first"),
            (Self::BeforeExecute, commands, "commands are looked at before they run"),
            (Self::EveryStep, steps, "each step is looked at first"),
        ];
        let wanted = all.into_iter().filter(|(from, ..)| *from <= self);
        wanted.map(|(from, matches, text)| from.rule(tier, trust, matches, text)).collect()
    }

    fn rule(self, tier: Tier, trust: Option<Trust>, matches: Condition, text: &str) -> Rule {
        let of: String = trust.map_or_else(String::new, |trust| format!("-{}", trust.name()));
        Rule {
            name: format!("review-{}{of}", self.name()),
            tier,
            priority: PRIORITY,
            answer: Answer::Review,
            matches: Condition { trust: trust.map(|trust| [trust].into()), ..matches },
            except: Vec::new(),
            text: text.to_string(),
        }
    }
}
