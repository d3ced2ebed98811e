//! What front ends send to the session host.

use crate::{Answer, ApprovalId, Digest, Inbound, Seq, Speaker};
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A request of a front end to the session it is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub enum Op {
    /// Say something; starts a turn, or is queued for the running one.
    Say(Inbound),
    /// Answer a card.
    Answer {
        /// The question.
        id: ApprovalId,
        /// The answer.
        answer: Answer,
        /// The human's reason; it goes to the model and to the journal.
        why: String,
        /// Who answers, where that is not the owner at a terminal. It comes from the connection.
        #[serde(skip)]
        by: Option<Speaker>,
    },
    /// Ask once more what ran out before anybody answered.
    AskAgain {
        /// The question that ran out.
        id: ApprovalId,
    },
    /// Keep these words in the context whatever is summarised. Starts no turn; a running one sees them at its
    /// next step.
    Pin {
        /// The words.
        text: String,
    },
    /// Let a pinned message be summarised like any other.
    Unpin {
        /// Its entry in the journal.
        entry: Seq,
    },
    /// End the running turn.
    Cancel,
    /// Compare what the session changed with the project.
    Changes,
    /// Move what the session changed to the project.
    Apply {
        /// What names the changes that were shown, from their [`Happening::Diff`](crate::Happening::Diff):
        /// where there are others by now, nothing is moved. None: whatever there is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
    },
    /// Take the last apply back.
    Undo,
    /// Name the sessions of this home.
    Sessions,
    /// Go on with another model.
    Model {
        /// `PROVIDER/NAME`.
        name: String,
    },
}

impl Op {
    /// Its name, as events give it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Say(_) => "say",
            Self::Answer { .. } => "answer",
            Self::AskAgain { .. } => "ask_again",
            Self::Cancel => "cancel",
            Self::Pin { .. } => "pin",
            Self::Unpin { .. } => "unpin",
            Self::Changes => "changes",
            Self::Apply { .. } => "apply",
            Self::Undo => "undo",
            Self::Sessions => "sessions",
            Self::Model { .. } => "model",
        }
    }
}
