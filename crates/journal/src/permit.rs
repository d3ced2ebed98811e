//! Proof that an effect may happen now.

use crate::{JournalError, totals::Sent};
use bailey_protocol::{Digest, Effect, EffectId, Isolation, Merge, SessionId, number::Seq};

/// Which journal instance a permit is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal(pub(crate) u128);

/// Proof that this very effect was allowed, that its intent is durable, and that its cost is reserved. Only
/// `Mint::begin` makes one; it can be used once, and only where its journal's [`Seal`] is.
#[must_use = "a permit that is dropped leaves an intent without an outcome"]
#[derive(Debug)]
pub struct Permit {
    pub(crate) effect: Effect,
    pub(crate) isolation: Isolation,
    pub(crate) named: Option<Digest>,
    pub(crate) seq: Seq,
    pub(crate) seal: Seal,
}

/// What a permit was for: the only way to learn it.
#[derive(Debug)]
pub struct Redeemed {
    /// What shall be done.
    pub effect: Effect,
    /// The walls that must stand.
    pub isolation: Isolation,
    /// What the files must be that the action names: those that a human said yes to. None where nobody was
    /// asked.
    pub named: Option<Digest>,
    /// The entry of its intent.
    pub seq: Seq,
}

impl Permit {
    /// Uses the permit up.
    ///
    /// # Errors
    /// [`JournalError::ForeignPermit`] when another journal instance made it.
    pub fn redeem(self, seal: &Seal) -> Result<Redeemed, JournalError> {
        if self.seal != *seal {
            return Err(JournalError::ForeignPermit);
        }
        Ok(Redeemed { effect: self.effect, isolation: self.isolation, named: self.named, seq: self.seq })
    }
}

/// What the kernel keeps of a begun effect, to write its outcome.
#[must_use = "a receipt that is dropped leaves an intent without an outcome"]
#[derive(Debug)]
pub struct Receipt {
    pub(crate) effect: EffectId,
    pub(crate) session: SessionId,
    pub(crate) seq: Seq,
    pub(crate) merge: Option<Merge>,
    /// The data that was counted as sent when the effect began.
    pub(crate) sent: Option<Sent>,
}

impl Receipt {
    /// The entry of the intent.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The effect.
    #[must_use]
    pub fn effect(&self) -> EffectId {
        self.effect
    }
}
