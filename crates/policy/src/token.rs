//! Capability tokens, as a decision sees them: read, their signatures found good, and judged by the facts.
//!
//! A token is a list of caveats that must all hold. Whoever has one can add to it, so that it narrows, and
//! nobody can take from it: that is the signatures' business, and they are not in this crate. Nor is the
//! ledger of operations.

use crate::{
    Condition, Facts,
    fit::Fit,
    subject::{Resource, Subject},
};
use alloc::{string::String, vec::Vec};
use bailey_protocol::{Digest, SandboxId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

/// Most caveats: those that it was minted with, and eight that narrowed it.
pub const CAVEATS_MAX: usize = 9;

/// What became of the token that an effect was asked under; none where there was none.
pub type TokenUse = Option<Result<(), InvalidToken>>;

/// A capability token whose chain of signatures was found good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its name in the ledger.
    pub id: TokenId,
    /// The policy that it was minted under, and dies with.
    pub policy: Digest,
    /// What it was minted with, and each narrowing of it. All must hold.
    pub caveats: Vec<Caveat>,
    /// How many operations the ledger leaves it and those that it was made from.
    pub operations_left: u64,
}

/// One narrowing. A field that is `None` narrows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caveat {
    /// What may be done: each thing that the action touches must fit one of these for certain.
    pub scope: Option<Vec<Condition>>,
    /// From when on.
    pub not_before: Option<Timestamp>,
    /// Until when: at this very time not any more.
    pub expires: Option<Timestamp>,
    /// In which walls.
    pub sandbox: Option<SandboxId>,
    /// The very action that it is for, by its digest: one command with all its arguments, in one place, with
    /// its limits.
    pub action: Option<Digest>,
    /// How many operations. The ledger counts them; a decision sees what it leaves,
    /// [`Token::operations_left`].
    pub operations: Option<u64>,
    /// Whose narrowing it is, for people; two that say the same count their operations together unless this
    /// differs.
    pub holder: Option<String>,
}

/// Why a token does not hold. The decision is then made as if there were none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum InvalidToken {
    /// It has more than nine caveats.
    #[error("it has more than {CAVEATS_MAX} caveats")]
    TooLong,
    /// No caveat says what it is for, or none until when.
    #[error("it has no scope or no end: such tokens are not minted")]
    Boundless,
    /// The rules changed after it was minted.
    #[error("the rules changed since it was minted")]
    OtherPolicy,
    /// It was given to somebody in other walls.
    #[error("it belongs to another sandbox")]
    OtherSandbox,
    /// The clock was put back.
    #[error("the clock is behind what is on disk")]
    ClockBehind,
    /// Its time has not come.
    #[error("its time has not come")]
    NotYet,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// All its operations were made.
    #[error("its operations are used up")]
    UsedUp,
    /// The action, or something that it touches, is beyond it.
    #[error("this is beyond its scope")]
    OutOfScope,
}

impl InvalidToken {
    /// Whether it came from the right hands at the right time: then presenting it was a use of it, whatever
    /// the rules say.
    #[must_use]
    pub fn is_spent(self) -> bool {
        matches!(self, Self::OutOfScope)
    }
}

impl Token {
    /// Whether it holds for this action, under the policy of this digest. The time that takes depends on the
    /// token alone, not on the rules.
    pub(crate) fn check(
        &self,
        policy: Digest,
        facts: &Facts<'_>,
        subject: &Subject<'_>,
        resources: &[Resource<'_>],
    ) -> Result<(), InvalidToken> {
        self.stands(policy, facts)?;
        let action = facts.effect.action_digest();
        let is_it = |it: &Caveat| it.action.is_none_or(|only| only == action);
        let covered = self.caveats.iter().all(|it| is_it(it) && it.covers(subject, resources));
        if covered { Ok(()) } else { Err(InvalidToken::OutOfScope) }
    }

    /// Whether it holds for anything at all.
    pub(crate) fn stands(&self, policy: Digest, facts: &Facts<'_>) -> Result<(), InvalidToken> {
        let all = |holds: &dyn Fn(&Caveat) -> bool| self.caveats.iter().all(holds);
        let has = |field: fn(&Caveat) -> bool| self.caveats.iter().any(field);
        let now = facts.now;
        let checks = [
            (self.caveats.len() <= CAVEATS_MAX, InvalidToken::TooLong),
            (has(|it| it.scope.is_some()) && has(|it| it.expires.is_some()), InvalidToken::Boundless),
            (self.policy == policy, InvalidToken::OtherPolicy),
            (
                all(&|it| it.sandbox.is_none() || it.sandbox == facts.caller.sandbox),
                InvalidToken::OtherSandbox,
            ),
            (facts.newest <= now, InvalidToken::ClockBehind),
            (all(&|it| it.not_before.is_none_or(|time| time <= now)), InvalidToken::NotYet),
            (all(&|it| it.expires.is_none_or(|time| now < time)), InvalidToken::Expired),
            (self.operations_left > 0, InvalidToken::UsedUp),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, invalid)| Err(invalid))
    }
}

impl Caveat {
    /// What is not known for certain is not covered.
    fn covers(&self, subject: &Subject<'_>, resources: &[Resource<'_>]) -> bool {
        let Some(scope) = &self.scope else { return true };
        resources.iter().all(|it| scope.iter().any(|condition| condition.fit(subject, it) == Fit::Yes))
    }
}
