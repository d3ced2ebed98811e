//! Who answers a question.

use bailey_protocol::Speaker;
use serde::{Deserialize, Serialize};

/// A person of this machine, as the system knows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The user's number.
    pub uid: u32,
    /// The user's name.
    pub name: String,
    /// The terminal on which it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
}

/// Who answers: [`OWNER`], or [`BAILEY`] where nobody could be asked; and the person, where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answerer {
    pub(crate) by: String,
    pub(crate) person: Option<Person>,
}

impl Answerer {
    /// Bailey itself: a no in the place of an answer.
    #[must_use]
    pub fn bailey() -> Self {
        Self::from(BAILEY)
    }

    /// The owner of this home, who is this person.
    #[must_use]
    pub fn owner(person: Option<Person>) -> Self {
        Self { by: OWNER.into(), person }
    }

    /// Somebody at a channel.
    #[must_use]
    pub fn speaker(speaker: &Speaker) -> Self {
        Self { by: speaker.line(), person: None }
    }

    /// Whether a human has decided.
    pub(crate) fn is_human(&self) -> bool {
        self.by != BAILEY
    }
}

/// The name of Bailey itself, in an answer.
pub const BAILEY: &str = "bailey";

/// The name of the owner of a home: in an answer, and as the principal of a session.
pub const OWNER: &str = "owner";

impl From<&str> for Answerer {
    fn from(by: &str) -> Self {
        Self { by: by.into(), person: None }
    }
}
