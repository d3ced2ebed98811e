//! What a decision depends on besides the rules: all of it is given, nothing is looked up.

use crate::{Places, Token};
use bailey_protocol::{Action, SandboxId, Sealed, Timestamp, WsPath};

/// Everything that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The effect; its paths are canonical.
    pub effect: &'a Sealed,
    /// The one reading of the clock for this decision, taken before it: everything that has a time is judged by it.
    pub now: Timestamp,
    /// What the globs' variables stand for.
    pub places: &'a Places,
    /// The actions inside which this one was asked for, the nearest first; no rule reads them yet.
    pub parents: &'a [Action],
    /// Masked files of the workspace that the human revealed in this session.
    pub revealed: &'a [WsPath],
    /// Who asks, besides the role that the effect names.
    pub caller: &'a Caller,
    /// What it was asked under; its signatures were found good.
    pub token: Option<&'a Token>,
    /// The newest time that is on disk. While `now` lies before it, the clock was put back, and no token holds.
    pub newest: Timestamp,
}

impl<'a> Facts<'a> {
    /// An effect of a caller of whom nothing special is known.
    #[must_use]
    pub fn new(effect: &'a Sealed, now: Timestamp, places: &'a Places) -> Self {
        Self {
            effect,
            now,
            places,
            parents: &[],
            revealed: &[],
            caller: &Caller::PLAIN,
            token: None,
            newest: Timestamp::MIN,
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// The walls that it lives in, where it was given some of its own.
    pub sandbox: Option<SandboxId>,
    /// Whether it may do nothing but by a token: without a valid one, it is denied.
    pub is_confined: bool,
}

impl Caller {
    /// A caller of whom nothing special is known.
    pub const PLAIN: Self = Self { sandbox: None, is_confined: false };
}
