//! What an answer to a question can be and covers: written with the question, and held to in the transaction
//! of the answer and of each beginning on it, whoever answers and begins.

use bailey_policy::Pattern;
use bailey_protocol::{Action, Answer, Digest, Role, SessionId, TokenId};
use bailey_secrets::Redactor;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, ops::Not};

/// The terms of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The digest of the files that the action names, as they were; none where it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<Digest>,
    /// Who asks; older journals lack it, and then a yes stands in for nobody's other effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// The system calls that the walls leave it: the name of a profile, or the digest of a list; older
    /// journals lack it, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<String>,
    /// Whether a yes counts once only.
    #[serde(skip_serializing_if = "Not::not")]
    pub once: bool,
    /// Whether a person's answer needs a reason.
    #[serde(skip_serializing_if = "Not::not")]
    pub reasoned: bool,
    /// What a yes for the pattern covers; none: there is no such yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Wider>,
}

impl Terms {
    /// The terms as the journal may hold them: a pattern in which there is a secret is none.
    #[must_use]
    pub fn kept(self, redactor: &Redactor) -> Self {
        let is_clean = |pattern: &Wider| {
            serde_json::to_string(pattern).is_ok_and(|text| redactor.redact(&text).hits == 0)
        };
        Self { pattern: self.pattern.filter(is_clean), ..self }
    }
}

/// Who asks within a session: what a person said yes to is theirs, and not another's who happens to want the
/// same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// As what.
    pub role: Role,
    /// The conversation, where that is a sub-agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<SessionId>,
    /// The capability token that was used, however far it was narrowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
}

/// What one yes may cover: of a pattern, by this very program where it is a command, asked about by no other
/// rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wider {
    /// The actions.
    pub pattern: Pattern,
    /// The digest of the program's file, and of the shell's.
    pub program: Option<Digest>,
    /// The rules that ask.
    pub rules: BTreeSet<String>,
}

/// Why an answer is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// A yes that would last.
    #[error("a yes to this question counts once only: say it for this once")]
    Once,
    /// A yes for a pattern, where there is none.
    #[error(
        "this question has no pattern that a yes could be for: say yes for this once or for this session"
    )]
    NoPattern,
    /// An answer that says nothing.
    #[error("an answer to this question needs a reason, which the journal keeps: add `--reason \"…\"`")]
    NoReason,
}

impl Terms {
    /// Whether an answer can be given, with this reason.
    pub(crate) fn take(&self, answer: Answer, why: &str) -> Result<(), NoAnswer> {
        match answer {
            Answer::YesForSession | Answer::YesForPattern if self.once => Err(NoAnswer::Once),
            Answer::YesForPattern if self.pattern.is_none() => Err(NoAnswer::NoPattern),
            _ if self.reasoned && why.trim().is_empty() => Err(NoAnswer::NoReason),
            _ => Ok(()),
        }
    }

    /// Whether a yes on these terms may stand in for what is asked now, on those: the same files, asked for
    /// by the same, within the same walls.
    pub(crate) fn stand_for(&self, now: &Self) -> bool {
        let Self { named, asker: _, calls, once: _, reasoned: _, pattern: _ } = self;
        *named == now.named && self.is_of(now.asker) && calls.is_some() && *calls == now.calls
    }

    /// Whether it was they who asked.
    pub(crate) fn is_of(&self, asker: Option<Asker>) -> bool {
        self.asker.is_some() && self.asker == asker
    }

    /// Whether a yes for the pattern covers an action, of which `now` says what it is.
    pub(crate) fn covers(&self, now: &Wider, action: &Action) -> bool {
        self.pattern.as_ref().is_some_and(|then| {
            then.pattern.covers(action) && then.program == now.program && now.rules.is_subset(&then.rules)
        })
    }
}
