//! Capability tokens: minted here for a task, and presented with each effect of whoever acts by one.
//!
//! Minting takes from the rules what they allow without a question at that moment; a scope of which they
//! allow only a part is refused. From then on the token stands in for the file rules, and for them alone:
//! binding rules are heard at each use.

use crate::{Kernel, Refused, Scope};
use bailey_journal::{BadToken, JournalError, Macaroon, Presented, Uses};
use bailey_policy::{
    Answer, Caller, Caveat, Decided, ExtensionReply, Facts, InvalidToken, Judged, Reason, Source, Trust,
};
use bailey_protocol::{Digest, Isolation, SandboxId, Sealed, TokenId};
use std::time::Duration;

/// How long a token for a single call lasts.
const SINGLE_CALL: Duration = Duration::from_secs(30);

/// By what somebody acts who may do nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Bearer {
    pub(crate) token: Macaroon,
    pub(crate) sandbox: Option<SandboxId>,
    /// Whether nothing else is its: without a token that holds it does nothing. Else the rules are heard
    /// then.
    pub(crate) is_confined: bool,
    /// The walls of what it starts, where those are not the rules' to choose.
    pub(crate) walls: Option<Isolation>,
}

/// A decision, and the use of a token that it was.
pub(crate) struct Ruling {
    pub(crate) decided: Decided,
    pub(crate) uses: Option<Uses>,
}

impl Scope {
    /// The authority of somebody who acts by a token alone, from the walls of that name, for as long as this
    /// turn lasts: no token, no effect.
    #[must_use]
    pub fn confined(&self, token: Macaroon, sandbox: Option<SandboxId>) -> Self {
        let cancel = self.cancel.child_token();
        Self {
            bearer: Some(Bearer { token, sandbox, is_confined: true, walls: None }),
            cancel,
            ..self.clone()
        }
    }

    /// The same authority, for which a token stands in for the file rules as long as it holds.
    pub(crate) fn bearing(&self, token: Macaroon) -> Self {
        Self {
            bearer: Some(Bearer { token, sandbox: None, is_confined: false, walls: None }),
            ..self.clone()
        }
    }

    /// A caveat for whoever has this scope's role and trust, where it does not say for whom.
    pub(crate) fn own(&self, mut caveat: Caveat) -> Caveat {
        let trust = self.trust().map(|trust| vec![trust]);
        for condition in caveat.scope.iter_mut().flatten() {
            condition.role.get_or_insert_with(|| vec![self.role]);
            condition.trust = condition.trust.take().or_else(|| trust.clone());
        }
        caveat
    }

    /// Who it is that asks, for people, where that is not the session's own agent.
    pub(crate) fn who_asks(&self) -> Option<String> {
        let holder = self.bearer.as_ref()?.token.holder();
        Some(format!("asked by {}", holder.as_deref().unwrap_or("somebody who acts by a token")))
    }

    /// How far whoever has it is trusted, where that is known.
    pub(crate) fn trust(&self) -> Option<Trust> {
        self.trust.or(Caller::of(self.role).trust)
    }

    /// Who asks, besides the role.
    fn caller(&self) -> Caller {
        let known = Caller::of(self.role).clone();
        let known = Caller { trust: self.trust(), ..known };
        match &self.bearer {
            Some(bearer) => Caller { is_confined: bearer.is_confined, sandbox: bearer.sandbox, ..known },
            None => known,
        }
    }
}

impl Kernel {
    /// Mints a token for a task of this scope: what its caveat covers, for whoever has the scope's role,
    /// while the rules stay as they are. One that says neither how often nor until when is for a single call
    /// within 30 seconds.
    ///
    /// # Errors
    /// [`Refused::Denied`] when the rules do not allow all of it, or whoever asks acts by a token: that is
    /// narrowed instead. Others when the caveat is not one to mint, or the journal cannot be written.
    pub async fn mint_token(&self, scope: &Scope, caveat: Caveat) -> Result<Macaroon, Refused> {
        if scope.bearer.is_some() {
            return Err(Refused::Denied(vec!["who acts by a token mints none, but can narrow it".into()]));
        }
        let mut caveat = scope.own(caveat);
        if caveat.operations.is_none() && caveat.expires.is_none() {
            caveat.operations = Some(1);
            caveat.expires = self.journal().clock().now().checked_add(SINGLE_CALL).ok();
        }
        let policy = self.vouch(scope, &caveat).await?;
        Ok(self.inner.mint.mint_token(scope.session(), policy, caveat).await?)
    }

    /// The rules in force, which allow all that a caveat covers.
    ///
    /// # Errors
    /// [`Refused::Denied`] when they do not.
    pub(crate) async fn vouch(&self, scope: &Scope, caveat: &Caveat) -> Result<Digest, Refused> {
        let policy = self.policy().await?;
        let places = self.places(scope.workspace());
        policy.vouch(caveat, &places).map_err(|why| Refused::Denied(vec![why.to_string()]))?;
        Ok(policy.digest())
    }

    /// Ends a token, and all that were narrowed from it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn end_token(&self, scope: &Scope, token: TokenId) -> Result<(), Refused> {
        Ok(self.inner.mint.end_token(scope.session(), token).await?)
    }

    /// Decides about an effect, under the token of whoever acts by one.
    pub(crate) async fn rule(&self, scope: &Scope, sealed: &Sealed) -> Result<Ruling, Refused> {
        self.ruling(scope, sealed, true).await
    }

    /// The same about an effect that is only supposed: no extension is asked, and each is taken to allow it.
    pub(crate) async fn suppose(&self, scope: &Scope, sealed: &Sealed) -> Result<Ruling, Refused> {
        self.ruling(scope, sealed, false).await
    }

    async fn ruling(&self, scope: &Scope, sealed: &Sealed, asks: bool) -> Result<Ruling, Refused> {
        let presented = self.presented(scope).await?;
        let held = presented.as_ref().and_then(|presented| presented.as_ref().ok());
        let places = self.places(scope.workspace());
        let revealed = self.journal().revealed(scope.session()).await?;
        let policy = self.policy().await?;
        // After what is on disk was read: a clock behind that was put back.
        let now = self.journal().clock().now();
        let caller = scope.caller();
        let mut facts = Facts {
            revealed: &revealed,
            caller: &caller,
            narrowing: &self.inner.config.narrowing,
            walls: scope.bearer.as_ref().and_then(|bearer| bearer.walls.as_ref()),
            ..Facts::new(sealed, now, &places)
        };
        if let Some(held) = held {
            (facts.token, facts.newest) = (Some(held.token()), held.newest());
        }
        let mut decided = match policy.judge(&facts) {
            Judged::Decided(decided) => decided,
            Judged::Asks(inquiry) if asks => self.inquire(scope, sealed, inquiry).await?,
            Judged::Asks(inquiry) => {
                let best = || ExtensionReply::Said { answer: Answer::Allow, reason: String::new() };
                inquiry.conclude(|_| Some(best()))
            }
        };
        if let Some(Err(bad)) = &presented
            && caller.is_confined
        {
            decided.reasons.insert(0, told(bad));
        }
        let is_use = decided.token.is_some_and(|it| it.map_or_else(InvalidToken::is_spent, |()| true));
        let uses = held.filter(|_| is_use).map(|held| held.uses().clone());
        Ok(Ruling { decided, uses })
    }

    async fn presented(&self, scope: &Scope) -> Result<Option<Result<Presented, BadToken>>, JournalError> {
        let Some(bearer) = &scope.bearer else { return Ok(None) };
        let presented = self.inner.mint.present(&bearer.token).await?;
        Ok(Some(presented.and_then(|held| match held.session() == scope.session() {
            true => Ok(held),
            false => Err(BadToken::Elsewhere),
        })))
    }
}

fn told(bad: &BadToken) -> Reason {
    let text = format!("its token does not hold: {bad}");
    Reason { rule: "token".into(), source: Source::Token, answer: Answer::Deny, text, in_doubt: false }
}
