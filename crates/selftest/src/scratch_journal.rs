//! A separate journal, where the prover tries to begin effects that must not begin.

use super::{
    attack::{Attempt, Tried},
    fixture::Fixture,
    gate::{effect, rules, run},
};
use anyhow::{Result, anyhow, bail};
use bailey_journal::{
    BeginError, Bound, Budgets, Circumstances, Grant, Journal, JournalError, Macaroon, Mint, NewSession,
    OWNER, Permit, Purpose, Receipt, SystemClock, Terms, Warrant,
};
use bailey_policy::{Caveat, Condition, Facts, Places, Policy, Verdict, built_in_rules};
use bailey_protocol::{Action, Answer, Digest, HttpRequest, Kind, Sealed, SessionId};
use bailey_secrets::{Redactor, Vault};
use bailey_session::compose;
use std::{sync::Arc, time::Duration};

/// How long a question lasts, and a token.
const LASTS: Duration = Duration::from_secs(60);
/// The cost of a model call, and the rest of the budget, in tokens.
const WANTED: u64 = 1_000;
const LEFT: u64 = 10;

/// A separate journal, with rules in force and a session.
pub(crate) struct TrialJournal {
    mint: Mint,
    policy: Policy,
    session: SessionId,
}

impl TrialJournal {
    pub(crate) async fn open(fixture: &Fixture, name: &str) -> Result<Self> {
        let path = fixture.folder(name)?.join("journal.db");
        let redactor = Redactor::new(&Vault::default());
        let (journal, mint) = Journal::open(&path, redactor, Arc::new(SystemClock)).await?;
        let policy = Policy::new(built_in_rules(), rules()?);
        mint.adopt(policy.digest()).await?;
        let session = compose::new_session()?;
        let new = NewSession {
            agent: None,
            confined: None,
            workspace: "/w".into(),
            principal: OWNER.into(),
            model: String::new(),
        };
        journal.open_session(session, new).await?;
        Ok(Self { mint, policy, session })
    }

    pub(crate) async fn once(&self) -> Result<Tried> {
        let sealed = effect(self.session, run(&["deploy"], "/w"), 0)?;
        let id = self.mint.ask(&sealed, Terms::default(), serde_json::json!({}), LASTS).await?;
        self.mint.answer(self.session, id, Answer::Yes, "prover", "").await?;
        let grant = self.mint.grant(id, &sealed).await?;
        let control = begun(self.begin(sealed, Some(grant.clone()), 0).await)?;
        // The same call once more, as an effect of its own.
        let again = effect(self.session, run(&["deploy"], "/w"), 0)?;
        let attack = begun(self.begin(again, Some(grant), 0).await)?;
        Ok(Tried { attack, control })
    }

    pub(crate) async fn budget(&self) -> Result<Tried> {
        let request = HttpRequest {
            method: "POST".into(),
            url: "https://model.invalid/".into(),
            headers: Vec::new(),
            body: "".into(),
        };
        let call = Action::Model { provider: "nobody".into(), model: "none".into(), request };
        let attack = begun(self.begin(effect(self.session, call.clone(), WANTED)?, None, LEFT).await)?;
        let control = begun(self.begin(effect(self.session, call, WANTED)?, None, WANTED).await)?;
        Ok(Tried { attack, control })
    }

    pub(crate) async fn stop(&self) -> Result<Tried> {
        let begin = async || {
            let sealed = effect(self.session, run(&["echo"], "/w"), 0)?;
            begun(self.begin(sealed, None, 0).await)
        };
        self.mint.stop("bailey prove").await?;
        let attack = begin().await?;
        self.mint.release().await?;
        Ok(Tried { attack, control: begin().await? })
    }

    /// A yes to a question that has run out.
    pub(crate) async fn late(&self) -> Result<Tried> {
        let answered = async |lasts| -> Result<Attempt> {
            let sealed = effect(self.session, run(&["deploy"], "/w"), 0)?;
            let id = self.mint.ask(&sealed, Terms::default(), serde_json::json!({}), lasts).await?;
            match self.mint.answer(self.session, id, Answer::Yes, "prover", "").await {
                Ok(()) => {
                    let grant = self.mint.grant(id, &sealed).await?;
                    begun(self.begin(sealed, Some(grant), 0).await)
                }
                Err(late @ JournalError::RanOut(_)) => Ok(Attempt::Refused(late.to_string())),
                Err(error) => Err(error.into()),
            }
        };
        Ok(Tried { attack: answered(Duration::ZERO).await?, control: answered(LASTS).await? })
    }

    /// An effect that was allowed before other rules came into force.
    pub(crate) async fn rules(&self) -> Result<Tried> {
        let begin = async || {
            let sealed = effect(self.session, run(&["echo"], "/w"), 0)?;
            begun(self.begin(sealed, None, 0).await)
        };
        let control = begin().await?;
        self.mint.adopt(Digest::of(b"other rules")).await?;
        Ok(Tried { attack: begin().await?, control })
    }

    /// A token of this home with a signature that the home did not make.
    pub(crate) async fn forged(&self) -> Result<Tried> {
        let minted = self.token().await?;
        let attack = self.used(&Macaroon::parse(&changed(&minted.text()))?).await?;
        Ok(Tried { attack, control: self.used(&minted).await? })
    }

    /// A token for one operation, used twice.
    pub(crate) async fn spent(&self) -> Result<Tried> {
        let token = self.token().await?;
        let control = self.used(&token).await?;
        Ok(Tried { attack: self.used(&token).await?, control })
    }

    /// A token for one command of any kind.
    async fn token(&self) -> Result<Macaroon> {
        let scope = vec![Condition { action: Some(vec![Kind::Exec]), ..Condition::default() }];
        let expires = bailey_journal::Clock::now(&SystemClock)
            .checked_add(LASTS)
            .map_err(|error| anyhow!("the clock: {error}"))?;
        let caveat =
            Caveat { scope: Some(scope), expires: Some(expires), operations: Some(1), ..Caveat::default() };
        Ok(self.mint.mint_token(self.session, self.policy.digest(), caveat).await?)
    }

    async fn used(&self, token: &Macaroon) -> Result<Attempt> {
        let presented = match self.mint.present(token).await? {
            Ok(presented) => presented,
            Err(bad) => return Ok(Attempt::Refused(bad.to_string())),
        };
        let sealed = effect(self.session, run(&["echo"], "/w"), 0)?;
        let why = Circumstances { uses: Some(presented.uses().clone()), ..because() };
        begun(self.begin_for(sealed, None, 0, why).await)
    }

    async fn begin(
        &self,
        sealed: Sealed,
        grant: Option<Grant>,
        limit: u64,
    ) -> Result<Result<(Permit, Receipt), BeginError>> {
        self.begin_for(sealed, grant, limit, because()).await
    }

    async fn begin_for(
        &self,
        sealed: Sealed,
        grant: Option<Grant>,
        limit: u64,
        why: Circumstances,
    ) -> Result<Result<(Permit, Receipt), BeginError>> {
        let places = Places { workspace: "/w".into(), ..Places::default() };
        let now = bailey_journal::Clock::now(&SystemClock);
        let decided = self.policy.decide(&Facts::new(&sealed, now, &places));
        let warrant = match (decided.verdict, grant) {
            (Verdict::Allow(allowed), None) => Warrant::Allowed(allowed),
            (Verdict::Review(review), Some(grant)) => Warrant::Approved(review, grant),
            _ => bail!("the rules decided otherwise: {:?}", decided.reasons),
        };
        let budgets = Budgets { session: Bound::tokens(limit), ..Budgets::default() };
        Ok(self.mint.begin(sealed, warrant, why, &budgets).await)
    }
}

fn begun(begun: Result<Result<(Permit, Receipt), BeginError>>) -> Result<Attempt> {
    Ok(match begun? {
        Ok(_) => Attempt::Reached("it began".into()),
        Err(BeginError::Journal(error)) => return Err(error.into()),
        Err(refused) => Attempt::Refused(refused.to_string()),
    })
}

fn because() -> Circumstances {
    Circumstances { purpose: Purpose::Act, payer: None, reasons: Vec::new(), uses: None }
}

/// A token's text with another signature; the signature is the end of the text. The last letter stays as it
/// is, because not all of its bits count.
pub(crate) fn changed(text: &str) -> String {
    let (head, tail) = text.split_at(text.len().saturating_sub(20));
    let mut letters = tail.chars();
    let other = letters.next().map(|letter| if letter == 'A' { 'B' } else { 'A' });
    head.chars().chain(other).chain(letters).collect()
}
