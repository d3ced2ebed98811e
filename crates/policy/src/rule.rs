//! A rule as data: who wrote it, what it matches, what it answers.

use crate::condition::Condition;
use alloc::{string::String, vec::Vec};
use bailey_protocol::Kind;
use serde::Serialize;

/// One rule. It speaks when its `matches` fits and none of its `except` does; else it passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Its name, which reasons carry.
    pub name: String,
    /// Whose rule it is.
    pub tier: Tier,
    /// From -1000 to 1000. Inside one tier, an allow of higher priority than every matching review lifts
    /// them; nothing lifts a deny, and no priority reaches another tier.
    pub priority: i16,
    /// What it says.
    pub answer: Answer,
    /// What it speaks about.
    pub matches: Condition,
    /// What it does not speak about; one that fits is enough.
    pub except: Vec<Condition>,
    /// Why, for people: one line without a full stop.
    pub text: String,
}

impl Rule {
    /// Whether it can speak about actions of this kind. An allow that names no kinds of action is no word
    /// about the agent's own file, whose text speaks in every later session: that is allowed by name, or not
    /// at all.
    pub(crate) fn concerns(&self, kind: Kind) -> bool {
        let is_named = self.answer != Answer::Allow || self.matches.action.is_some();
        self.matches.concerns(kind) && (is_named || kind != Kind::Adapt)
    }

    /// How many values its conditions compare at most, and one for itself.
    pub(crate) fn steps(&self) -> u64 {
        1 + self.except.iter().chain([&self.matches]).map(Condition::steps).sum::<u64>()
    }
}

/// Whose rule it is, from the highest. A lower tier cannot lift a deny or a review of a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Bailey's own.
    BuiltIn,
    /// The organisation's.
    Organisation,
    /// The owner's of this home.
    User,
    /// A project's: it narrows, and opens nothing that no higher tier allows or reviews.
    Project,
    /// A session's: it narrows, and opens nothing that no higher tier allows or reviews.
    Session,
}

impl Tier {
    /// All tiers, from the highest.
    pub const ALL: [Self; 5] = [Self::BuiltIn, Self::Organisation, Self::User, Self::Project, Self::Session];

    /// Its name in rule files and reasons.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Organisation => "organisation",
            Self::User => "user",
            Self::Project => "project",
            Self::Session => "session",
        }
    }

    /// Whether its rules are judged before all others and can never be skipped.
    pub(crate) fn binds(self) -> bool {
        matches!(self, Self::BuiltIn | Self::Organisation)
    }

    /// Whether a rule of this tier can open what would be denied by default.
    pub(crate) fn grants(self) -> bool {
        matches!(self, Self::BuiltIn | Self::Organisation | Self::User)
    }
}

/// What a rule says, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Nothing. In a file it keeps a rule written down but silent.
    Pass,
    /// It may be done.
    Allow,
    /// A human must look at it.
    Review,
    /// It must not be done.
    Deny,
}

impl Answer {
    /// Its name in rule files and reasons.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Allow => "allow",
            Self::Review => "review",
            Self::Deny => "deny",
        }
    }
}
