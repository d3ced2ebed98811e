//! What a decision is: one of three proofs, and the reasons for it.
//!
//! INVARIANT: the proofs are made in this crate's `Policy::decide` and nowhere else. Their fields are
//! private, and they are neither `Clone` nor `Serialize`, so that one decision permits one effect once.

use crate::{
    rule::{Answer, Tier},
    token::TokenUse,
};
use alloc::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use bailey_protocol::{Digest, Isolation, WsPath};
use core::fmt;

/// A verdict and everything that was said.
#[derive(Debug)]
#[must_use]
pub struct Decided {
    /// The verdict.
    pub verdict: Verdict,
    /// Every rule that spoke in the phases that ran: the strongest answer first, then by tier and name.
    pub reasons: Vec<Reason>,
    /// All paths that a human must look at, in the action's order; none unless the verdict is a review
    /// of a change or a merge.
    pub red: Vec<WsPath>,
    /// Whether the token that it was asked under holds. One that does, or that was merely beyond its scope,
    /// was used, whatever the verdict.
    pub token: TokenUse,
}

/// How an effect was judged.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    /// It may run.
    Allow(Allowed),
    /// A human must look at it first.
    Review(Review),
    /// It must not run.
    Deny(Denial),
}

/// What one rule said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The rule's name, the extension's, or the token's.
    pub rule: String,
    /// Whose word it is.
    pub source: Source,
    /// What it said.
    pub answer: Answer,
    /// Why, with the paths it spoke of where there can be many. Not yet made safe for a terminal.
    pub text: String,
    /// Whether it is a denial of a command that only may run the rule's program.
    pub in_doubt: bool,
}

/// Whose word a reason is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A rule's of this tier.
    Rule(Tier),
    /// A capability token's.
    Token,
    /// An extension's.
    Extension,
}

impl Reason {
    /// A denial of the decision point itself.
    pub(crate) fn own(name: &str, text: String) -> Self {
        Self {
            rule: name.into(),
            source: Source::Rule(Tier::BuiltIn),
            answer: Answer::Deny,
            text,
            in_doubt: false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, source, answer, text, .. } = self;
        let answer = answer.name();
        match source {
            Source::Rule(tier) => write!(f, "{text} ({} rule `{rule}`: {answer})", tier.name()),
            Source::Token => write!(f, "{text} (token `{rule}`: {answer})"),
            Source::Extension => write!(f, "{text} (extension `{rule}`: {answer})"),
        }
    }
}

/// What denies where no rule says anything.
pub(crate) const DEFAULT: &str = "default";

/// Whether a reason, as it is written, is a denial that no rule lifts: not that none allows it.
#[must_use]
pub fn is_final(reason: &str) -> bool {
    let default = Reason::own(DEFAULT, String::new()).to_string();
    reason.ends_with(&format!(": {})", Answer::Deny.name())) && !reason.ends_with(&default)
}

macro_rules! proof {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use]
        pub struct $name {
            effect: Digest,
            policy: Digest,
            isolation: Isolation,
        }

        impl $name {
            pub(crate) fn new(effect: Digest, policy: Digest, isolation: Isolation) -> Self {
                Self { effect, policy, isolation }
            }

            /// The effect that was judged.
            #[must_use]
            pub fn effect_digest(&self) -> Digest {
                self.effect
            }

            /// The policy that judged it.
            #[must_use]
            pub fn policy_digest(&self) -> Digest {
                self.policy
            }

            /// The isolation below which it must not run.
            #[must_use]
            pub fn isolation(&self) -> &Isolation {
                &self.isolation
            }
        }
    )*};
}

proof! {
    /// Proof that a policy allows one effect.
    Allowed
    /// Proof that a policy allows one effect if a human says yes.
    Review
}

/// Proof that a policy denies one effect.
#[derive(Debug)]
#[must_use]
pub struct Denial {
    effect: Digest,
    policy: Digest,
}

impl Denial {
    pub(crate) fn new(effect: Digest, policy: Digest) -> Self {
        Self { effect, policy }
    }

    /// The effect that was judged.
    #[must_use]
    pub fn effect_digest(&self) -> Digest {
        self.effect
    }

    /// The policy that judged it.
    #[must_use]
    pub fn policy_digest(&self) -> Digest {
        self.policy
    }
}
