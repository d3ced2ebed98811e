//! The requests that front ends send to the session host.

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
        /// The person who answers, if not the owner at a terminal. It comes from the connection.
        #[serde(skip)]
        by: Option<Speaker>,
    },
    /// Ask a question again that ran out before anybody answered it.
    AskAgain {
        /// The question that ran out.
        id: ApprovalId,
    },
    /// Keep these words in the context when other messages are summarised. This starts no turn; a running
    /// turn sees the words at its next step.
    Pin {
        /// The words.
        text: String,
    },
    /// Let a pinned message be summarised like any other.
    Unpin {
        /// Its entry in the journal.
        entry: Seq,
    },
    /// Be told of a message that was said before, and of its turn. This says nothing and starts nothing.
    Follow {
        /// The name that the message's source gave it ([`Inbound::key`]).
        key: String,
    },
    /// End the running turn.
    Cancel,
    /// Give the owner's messages back that were accepted during the turn and that the model has not seen.
    TakeBack,
    /// Compare the session's changes with the project.
    Changes,
    /// Move the session's changes to the project.
    Apply {
        /// The digest of the changes that were shown, from their
        /// [`Happening::Diff`](crate::Happening::Diff). When the changes are different by now, the apply
        /// moves nothing. With `None` it takes the changes as they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
    },
    /// Take the last apply back.
    Undo,
    /// Throw the session's changes away.
    Discard {
        /// The digest of the changes that were shown. When the changes are different by now, nothing is
        /// thrown away. With `None` it takes the changes as they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
    },
    /// List the sessions of this home.
    Sessions,
    /// Go on with another model.
    Model {
        /// `PROVIDER/NAME`.
        name: String,
    },
    /// Run the owner's own command inside the walls. The model reads its output with the next message.
    Run {
        /// A line for the shell.
        command: String,
    },
    /// Find paths of the project.
    Files {
        /// The beginning of a path, relative to the workspace.
        like: String,
    },
    /// Put a summary in the place of the conversation so far.
    Compact,
    /// Show something about the session.
    Show {
        /// The subject.
        view: View,
    },
}

/// A subject of [`Op::Show`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The parts that the model reads, with their sizes.
    Context,
    /// The tools that the model may call.
    Tools,
}

impl Op {
    /// Its name, as events give it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Say(_) => "say",
            Self::Answer { .. } => "answer",
            Self::AskAgain { .. } => "ask_again",
            Self::Follow { .. } => "follow",
            Self::Cancel => "cancel",
            Self::TakeBack => "take_back",
            Self::Pin { .. } => "pin",
            Self::Unpin { .. } => "unpin",
            Self::Changes => "changes",
            Self::Apply { .. } => "apply",
            Self::Undo => "undo",
            Self::Discard { .. } => "discard",
            Self::Sessions => "sessions",
            Self::Model { .. } => "model",
            Self::Run { .. } => "run",
            Self::Files { .. } => "files",
            Self::Compact => "compact",
            Self::Show { .. } => "show",
        }
    }
}
