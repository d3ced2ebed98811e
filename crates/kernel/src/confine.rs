//! Sessions whose agent acts by a token, as a sub-agent does, because the owner said so when they began.
//!
//! What it may stands behind the session's beginning and holds for good, whoever takes the session up again.
//! The token is minted when the agent's first turn begins and goes on in every process after it, until the
//! rules change, it is about to end, or other models are asked: then there is another one of the same scope.
//! Where the rules do not allow all of that any more there is none, and no turn.

use crate::{Connection, Kernel, Provider, Refused, bearer::Bearer, delegate::of_models};
use bailey_journal::{Confined, Macaroon};
use bailey_policy::{Caveat, scope};
use bailey_protocol::Timestamp;
use std::{sync::Arc, time::Duration};

/// How long a token holds where nobody ends it, and how much of that a turn finds at least.
const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const LEFT_MIN: Duration = Duration::from_secs(24 * 60 * 60);
/// How many operations it is good for.
const OPERATIONS: u64 = 1_000_000;

impl Kernel {
    /// A session's connection as the session's beginning has it: where that confines its agent, with a token
    /// that holds.
    ///
    /// # Errors
    /// [`Refused::Denied`] when the rules do not allow all that it may; others when the journal cannot be
    /// read or written.
    pub async fn confine(
        &self,
        connection: &Connection,
        models: &[Arc<dyn Provider>],
    ) -> Result<Connection, Refused> {
        let Some(confined) = self.journal().confined(connection.session).await? else {
            return Ok(connection.clone());
        };
        let by_the_rules = self.turn_of(&Connection { bearer: None, ..connection.clone() });
        let caveat = by_the_rules.own(caveat(&confined, models, self.journal().clock().now())?);
        let held = match &connection.bearer {
            Some(bearer) => Some(bearer.token.clone()),
            None => self.inner.mint.minted_for(connection.session, &confined.holder).await?,
        };
        let token = match held {
            Some(token) if self.is_good(&token, &caveat).await? => token,
            Some(token) => {
                self.end_token(&by_the_rules, token.id()).await?;
                self.mint_token(&by_the_rules, caveat).await?
            }
            None => self.mint_token(&by_the_rules, caveat).await?,
        };
        let bearer = Bearer { token, sandbox: None, is_confined: true, walls: None };
        Ok(Connection { bearer: Some(bearer), ..connection.clone() })
    }

    /// Whether a session that may so much can begin: its agent would have a token.
    ///
    /// # Errors
    /// [`Refused::Denied`] when the rules do not allow all of it.
    pub async fn can_confine(
        &self,
        connection: &Connection,
        confined: &Confined,
        models: &[Arc<dyn Provider>],
    ) -> Result<(), Refused> {
        let caveat = caveat(confined, models, self.journal().clock().now())?;
        self.vouch(&self.turn_of(connection), &caveat).await.map(drop)
    }

    /// Whether a token holds, for as much as this caveat says and for a turn.
    async fn is_good(&self, token: &Macaroon, caveat: &Caveat) -> Result<bool, Refused> {
        let Ok(presented) = self.inner.mint.present(token).await? else { return Ok(false) };
        let held = presented.token();
        let until = self.journal().clock().now().checked_add(LEFT_MIN).ok();
        let is_it = |own: &Caveat| own.scope == caveat.scope && own.expires > until;
        Ok(matches!(held.caveats.as_slice(), [own] if is_it(own)) && held.operations_left > 0)
    }
}

impl Connection {
    /// How many caveats the token has that the session's agent acts by.
    pub(crate) fn caveats(&self) -> usize {
        self.bearer.as_ref().map_or(0, |bearer| bearer.token.caveats())
    }
}

fn caveat(
    Confined { holder, may }: &Confined,
    models: &[Arc<dyn Provider>],
    now: Timestamp,
) -> Result<Caveat, Refused> {
    let said = scope(may).map_err(|error| Refused::Denied(vec![format!("what {holder} may: {error}")]))?;
    Ok(Caveat {
        scope: Some([of_models(models)].into_iter().chain(said).collect()),
        operations: Some(OPERATIONS),
        expires: now.checked_add(LASTS).ok(),
        holder: Some(holder.clone()),
        ..Caveat::default()
    })
}
