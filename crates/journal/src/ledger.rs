//! The ledger of capability tokens: which were minted here, which are over, and how often each was used. Its
//! rows are written in the transaction of the entry that they follow from: a use in that of the effect's
//! intent or refusal.

use crate::{
    Journal, JournalError, Mint,
    begin::state,
    chain::{self, random},
    checkpoint::Secret,
    fact::{Entry, Fact, Payload, Recorded, Under},
    project,
    read::{recorded, stored_row},
    token::{BadToken, Macaroon},
};
use bailey_policy::{Caveat, Token};
use bailey_protocol::{Digest, SessionId, Timestamp, TokenId};
use bailey_store::{Grade, OptionalExtension as _, StoreError, Tx, params};

/// A token whose chain was found good, with what the ledger says of it: made by [`Mint::present`] only.
#[derive(Debug, Clone)]
pub struct Presented {
    token: Token,
    session: SessionId,
    newest: Timestamp,
    uses: Uses,
}

/// A use of a token that is to be written: of its own count, and of those of all that it was narrowed from.
#[derive(Debug, Clone)]
pub struct Uses {
    token: TokenId,
    counts: Vec<UseCount>,
}

/// A count of uses, and the most that it may reach.
#[derive(Debug, Clone)]
struct UseCount {
    name: Digest,
    most: Option<u64>,
}

impl Presented {
    /// The token as a decision sees it.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The session that it was minted in, and is good in: what its scope is relative to is that session's.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The newest time that was on disk before: a clock behind it was put back. Read the clock after this.
    #[must_use]
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// The use that an effect under it is.
    #[must_use]
    pub fn uses(&self) -> &Uses {
        &self.uses
    }
}

impl Uses {
    /// What an entry says of it.
    #[must_use]
    pub fn under(&self) -> Under {
        Under { token: self.token, counts: self.counts.iter().map(|count| count.name).collect() }
    }

    /// The token, however far it was narrowed.
    pub(crate) fn token(&self) -> TokenId {
        self.token
    }

    /// Whether it is not over and each count leaves one more.
    pub(crate) fn is_left(&self, tx: &Tx<'_>) -> Result<bool, StoreError> {
        if standing(tx, self.token)? != Some(true) {
            return Ok(false);
        }
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("token_ledger") {
            return Ok(true);
        }
        for count in &self.counts {
            if let Some(most) = count.most
                && used(tx, count.name)? >= most
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Mint {
    /// Mints a token of this caveat, which has a scope, an end and a number of operations. Whether the rules
    /// of `policy` allow all of it is for whoever asks to have found out; it is over when they change.
    ///
    /// # Errors
    /// [`JournalError::Token`] when the caveat lacks one of these or is too long, or `policy` is not in force
    /// any more; others when it cannot be written.
    pub async fn mint_token(
        &self,
        session: SessionId,
        policy: Digest,
        caveat: Caveat,
    ) -> Result<Macaroon, JournalError> {
        let (Some(operations), Some(expires), Some(_)) = (caveat.operations, caveat.expires, &caveat.scope)
        else {
            let lacks = "a token has a scope, an end and a number of operations";
            return Err(BadToken::Caveat(lacks.into()).into());
        };
        let (redactor, now) = self.journal().pen();
        let secret = self.journal().token_secret().await?;
        let token = Macaroon::mint(secret, TokenId::new(random()?), policy, &caveat)?;
        let id = token.id();
        let holder = caveat.holder.clone().unwrap_or_default();
        let fact = Fact::TokenMinted { token: id, policy, operations, expires, holder };
        let payload = serde_json::to_value(&caveat).map_err(|error| JournalError::Json(error.to_string()))?;
        let entry = Entry::of(session, fact).with(Payload::Json(payload));
        let written = self.journal().write(Grade::Full, move |tx| {
            if state(tx, "policy")?.as_deref() != Some(policy.to_string().as_str()) {
                return Ok(false);
            }
            chain::append(tx, &redactor, now, &entry)?;
            project::token_minted(tx, id, session)?;
            Ok(true)
        });
        if written.await? { Ok(token) } else { Err(BadToken::Over.into()) }
    }

    /// The token that was minted last in a session for this holder, made again by its entry: whoever acts by
    /// it goes on with it in another process. None where there was none; whether it still holds is for
    /// [`Mint::present`] to say.
    ///
    /// # Errors
    /// When the journal or its key cannot be read.
    pub async fn minted_for(
        &self,
        session: SessionId,
        holder: &str,
    ) -> Result<Option<Macaroon>, JournalError> {
        let holder = holder.to_owned();
        let found = self.journal().store().glance(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT body, bytes FROM entry JOIN payload USING (seq)
                 WHERE session = ?1 AND type = 'token_minted' AND archive IS NULL
                 AND json_extract(CAST(body AS TEXT), '$.holder') = ?2 ORDER BY seq DESC LIMIT 1",
            )?;
            let mut rows = statement.query_map(params![session.to_string(), holder], stored_row)?;
            rows.next().map(|row| recorded(row?)).transpose()
        });
        let Some(Recorded { entry, payload: Some(caveat) }) = found.await? else { return Ok(None) };
        let Fact::TokenMinted { token, policy, .. } = entry.fact else { return Ok(None) };
        let unreadable = |error: serde_json::Error| JournalError::Json(error.to_string());
        let caveat: Caveat = serde_json::from_slice(&caveat).map_err(unreadable)?;
        Ok(Some(Macaroon::mint(self.journal().token_secret().await?, token, policy, &caveat)?))
    }

    /// Narrows a token for somebody, and says so in an entry. Whoever has one can do so without; this is for
    /// whom the record is to tell what was given.
    ///
    /// # Errors
    /// [`JournalError::Token`] when it has been narrowed as often as a token can be, or the caveat is too
    /// long; others when it cannot be written.
    pub async fn narrow_token(
        &self,
        session: SessionId,
        token: Macaroon,
        caveat: Caveat,
    ) -> Result<Macaroon, JournalError> {
        let token = token.narrow(&caveat)?;
        let count = token.counts().pop().ok_or(BadToken::Malformed)?;
        let holder = caveat.holder.clone().unwrap_or_default();
        let fact = Fact::TokenNarrowed { token: token.id(), count, holder };
        let payload = serde_json::to_value(&caveat).map_err(|error| JournalError::Json(error.to_string()))?;
        self.journal().append(Entry::of(session, fact).with(Payload::Json(payload))).await?;
        Ok(token)
    }

    /// Ends a token, and with it all that were narrowed from it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn end_token(&self, session: SessionId, token: TokenId) -> Result<(), JournalError> {
        let (redactor, now) = self.journal().pen();
        self.journal()
            .write(Grade::Full, move |tx| {
                if standing(tx, token)? == Some(true) {
                    chain::append(tx, &redactor, now, &Entry::of(session, Fact::TokenEnded { token }))?;
                    project::token_ended(tx, token)?;
                }
                Ok(())
            })
            .await
    }

    /// Looks whether a token is this home's and not over, and how many operations the ledger leaves it.
    ///
    /// # Errors
    /// When the journal or its key cannot be read.
    pub async fn present(&self, token: &Macaroon) -> Result<Result<Presented, BadToken>, JournalError> {
        let is_own = token.is_of(self.journal().token_secret().await?);
        #[cfg(feature = "controls")]
        let is_own = match bailey_protocol::broken::broken("token_chain") {
            true => true,
            false => is_own,
        };
        if !is_own {
            return Ok(Err(BadToken::Forged));
        }
        self.look_up(token).await
    }

    /// The same of one whose chain nobody looked at.
    pub(crate) async fn look_up(
        &self,
        token: &Macaroon,
    ) -> Result<Result<Presented, BadToken>, JournalError> {
        let caveats = match token.read_caveats() {
            Ok(caveats) => caveats,
            Err(error) => return Ok(Err(error)),
        };
        let named = token.counts().into_iter().zip(&caveats);
        let counts: Vec<_> = named.map(|(name, caveat)| UseCount { name, most: caveat.operations }).collect();
        let (id, policy) = (token.id(), token.policy());
        let uses = Uses { token: id, counts };
        let presented = self.journal().store().glance(move |db| {
            match standing(db, id)? {
                None => return Ok(Err(BadToken::Unknown)),
                Some(false) => return Ok(Err(BadToken::Over)),
                Some(true) => {}
            }
            let mut operations_left = u64::MAX;
            for count in &uses.counts {
                if let Some(most) = count.most {
                    operations_left = operations_left.min(most.saturating_sub(used(db, count.name)?));
                }
            }
            let newest = state(db, project::NEWEST)?.and_then(|time| time.parse().ok());
            let token = Token { id, policy, caveats, operations_left };
            let Some(session) = session_of(db, id)? else { return Ok(Err(BadToken::Unknown)) };
            Ok(Ok(Presented { token, session, newest: newest.unwrap_or(Timestamp::MIN), uses }))
        });
        Ok(presented.await?)
    }

    /// Writes that an effect was refused. What it was asked under was used by it all the same.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn deny(&self, entry: Entry) -> Result<(), JournalError> {
        let (redactor, now) = self.journal().pen();
        self.journal()
            .write(Grade::Full, move |tx| {
                chain::append(tx, &redactor, now, &entry)?;
                match &entry.fact {
                    Fact::Denied { under: Some(under), .. } => project::used(tx, under),
                    _ => Ok(()),
                }
            })
            .await
    }
}

impl Journal {
    /// What the chains of this home's tokens begin with.
    async fn token_secret(&self) -> Result<&Secret, JournalError> {
        let read = async || {
            let keys = self.inner.keys.lock().await;
            let held = keys.lock().await?;
            keys.tokens(&held)
        };
        self.inner.tokens.get_or_try_init(read).await
    }
}

/// Whether a token is not over; none when it was not minted here.
fn standing(db: &Tx<'_>, token: TokenId) -> Result<Option<bool>, StoreError> {
    let read =
        db.query_row("SELECT live FROM token WHERE id = ?1", params![token.to_string()], |row| row.get(0));
    Ok(read.optional()?)
}

/// Where a token was minted.
fn session_of(db: &Tx<'_>, token: TokenId) -> Result<Option<SessionId>, StoreError> {
    let read = db.query_row("SELECT session FROM token WHERE id = ?1", params![token.to_string()], |row| {
        row.get::<_, String>(0)
    });
    Ok(read.optional()?.and_then(|session| SessionId::parse(&session)))
}

fn used(db: &Tx<'_>, count: Digest) -> Result<u64, StoreError> {
    let read =
        db.query_row("SELECT used FROM token_use WHERE count = ?1", params![count.to_string()], |row| {
            row.get(0)
        });
    Ok(read.optional()?.unwrap_or(0))
}

#[cfg(test)]
mod tests;
