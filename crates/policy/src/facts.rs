//! What a decision depends on besides the rules: all of it is given, nothing is looked up.

use crate::{Places, Rule, Token};
use alloc::{collections::BTreeSet, string::String};
use bailey_protocol::{Action, Isolation, Role, SandboxId, Sealed, Timestamp, WsPath};
use serde::{Deserialize, Serialize};

/// Everything that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The effect; its paths are canonical.
    pub effect: &'a Sealed,
    /// The one reading of the clock for this decision, taken before it: everything that has a time is judged
    /// by it.
    pub now: Timestamp,
    /// What the globs' variables stand for.
    pub places: &'a Places,
    /// The actions inside which this one was asked for, the nearest first; no rule reads them yet.
    pub parents: &'a [Action],
    /// Masked files of the workspace that the human revealed in this session, and directories of such.
    pub revealed: &'a [WsPath],
    /// Who asks, besides the role that the effect names.
    pub caller: &'a Caller,
    /// The mode that the session is in, by its name, where that is known.
    pub mode: Option<&'a str>,
    /// Where in its mode the session stands, by its name, where that is known.
    pub state: Option<&'a str>,
    /// What it was asked under; its signatures were found good.
    pub token: Option<&'a Token>,
    /// Rules of this session alone: reviews and denials beside the policy's own, which lift nothing and allow
    /// nothing.
    pub narrowing: &'a [Rule],
    /// The walls that it needs, where the owner's declaration says which: those of an extension's program.
    pub walls: Option<&'a Isolation>,
    /// The newest time that is on disk. While `now` lies before it, the clock was put back, and no token
    /// holds.
    pub newest: Timestamp,
}

impl<'a> Facts<'a> {
    /// An effect of a caller of whom nothing is known but the role.
    #[must_use]
    pub fn new(effect: &'a Sealed, now: Timestamp, places: &'a Places) -> Self {
        Self {
            effect,
            now,
            places,
            parents: &[],
            revealed: &[],
            caller: Caller::of(effect.effect().role),
            mode: None,
            state: None,
            token: None,
            narrowing: &[],
            walls: None,
            newest: Timestamp::MIN,
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// How far it is trusted, where that is known.
    pub trust: Option<Trust>,
    /// What the owner granted it the name of.
    pub tags: BTreeSet<String>,
    /// The walls that it lives in, where it was given some of its own.
    pub sandbox: Option<SandboxId>,
    /// Whether it may do nothing but by a token: without a valid one, it is denied.
    pub is_confined: bool,
}

impl Caller {
    /// What a role says by itself: the owner is trusted, what the agent does in its user's workspace is
    /// internal, and other programs are not trusted.
    #[must_use]
    pub fn of(role: Role) -> &'static Self {
        static OWNER: Caller = Caller::trusted(Some(Trust::Trusted));
        static AGENT: Caller = Caller::trusted(Some(Trust::Internal));
        static PLUGIN: Caller = Caller::trusted(Some(Trust::Untrusted));
        static OTHER: Caller = Caller::trusted(None);
        match role {
            Role::Owner => &OWNER,
            Role::Agent => &AGENT,
            Role::Plugin => &PLUGIN,
            Role::Operator | Role::User | Role::Guest => &OTHER,
        }
    }

    const fn trusted(trust: Option<Trust>) -> Self {
        Self { trust, tags: BTreeSet::new(), sandbox: None, is_confined: false }
    }
}

/// How far a caller is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// What the owner wrote or vouched for.
    Trusted,
    /// What works in the owner's own workspace.
    Internal,
    /// Anybody else's.
    Untrusted,
    /// Code that a model made or fetched.
    LlmGenerated,
}

impl Trust {
    /// All tiers of trust.
    pub const ALL: [Self; 4] = [Self::Trusted, Self::Internal, Self::Untrusted, Self::LlmGenerated];

    /// Its name in rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Internal => "internal",
            Self::Untrusted => "untrusted",
            Self::LlmGenerated => "llm-generated",
        }
    }
}
