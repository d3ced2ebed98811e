//! An action with its circumstances, and its one serialisation.

use crate::{Action, CallId, Digest, EffectId, Labels, Money, SessionId, number::decimal};
use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// Who asks for an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The human who owns this home, at a command of their own.
    Owner,
    /// A person who looks after the home for the owner.
    Operator,
    /// A person whom the owner let in.
    User,
    /// A person of whom Bailey knows only where they wrote.
    Guest,
    /// The agent, on behalf of its session's principal.
    Agent,
    /// A plugin, an extension or another program, on its own account.
    Plugin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 6] =
        [Self::Owner, Self::Operator, Self::User, Self::Guest, Self::Agent, Self::Plugin];

    /// Its name in rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Operator => "operator",
            Self::User => "user",
            Self::Guest => "guest",
            Self::Agent => "agent",
            Self::Plugin => "plugin",
        }
    }
}

/// The resources that an effect may use, or has used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Tokens of a model, in and out together.
    #[serde(with = "decimal")]
    pub tokens: u64,
    /// The price of the tokens. `None` means an unknown price, not a price of zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
}

impl Cost {
    /// This number of tokens, at an unknown price.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self { tokens, money: None }
    }
}

/// One action with everything that a decision, a card, the journal and an executor need.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Effect {
    /// Its name.
    pub id: EffectId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// The effect during which it was requested.
    pub parent: Option<EffectId>,
    /// The tool call that it answers.
    pub call: Option<CallId>,
    /// Who asks.
    pub role: Role,
    /// The action itself.
    pub action: Action,
    /// The join of the labels of everything that led to it.
    pub labels: Labels,
    /// The cost that is reserved for it.
    pub cost: Cost,
}

/// An effect, serialised once. Bailey decides, shows, approves, journals and performs these bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    effect: Effect,
    bytes: Vec<u8>,
    digest: Digest,
    action_digest: Digest,
}

impl Sealed {
    /// Serialises the effect.
    ///
    /// # Errors
    /// When it cannot be written as JSON; the text says why.
    pub fn new(effect: Effect) -> Result<Self, String> {
        let json = |error: serde_json::Error| alloc::format!("effect cannot be serialised: {error}");
        let bytes = serde_json::to_vec(&effect).map_err(json)?;
        let action = serde_json::to_vec(&effect.action).map_err(json)?;
        Ok(Self { digest: Digest::of(&bytes), action_digest: Digest::of(&action), effect, bytes })
    }

    /// The effect.
    #[must_use]
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// Gives the effect back.
    #[must_use]
    pub fn into_effect(self) -> Effect {
        self.effect
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest of its bytes. A verdict, a grant and the journal name an effect by this digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of its action alone. The answer "yes for this exact effect in this session" names this
    /// digest.
    #[must_use]
    pub fn action_digest(&self) -> Digest {
        self.action_digest
    }
}
