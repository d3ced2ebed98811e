//! Starting an extension: an effect like any other, decided, written before it happens, and finished when it
//! ends.
//!
//! It is begun under a token that is minted for it when it is first started in a session: this command, this
//! place, so many starts. That the owner declared it is the authority for that, so no rule of a file is
//! asked, and no extension; the rules that no token skips are heard at each start. The token is over when the
//! rules change, and a program that is not what the policy names any more is not started: then the kinds that
//! it judges are denied.

use crate::{
    BoxFuture, Kernel, Output, Refused, Scope,
    admit::deciding,
    bearer::{Bearer, Ruling},
    cut,
    extension::{Extensions, Heard, Program, Reply},
    launch,
};
use bailey_journal::{
    BadToken, BeginError, Circumstances, JournalError, Macaroon, Permit, Purpose, Receipt, Uses, Warrant,
};
use bailey_policy::{Caveat, Condition, Policy, Verdict};
use bailey_protocol::{
    Action, Cost, Digest, Effect, Integrity, Isolation, Kind, Labels, Role, Sealed, Secrecy,
};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

/// How often one may be started while a session is open: once, and once more when it has ended.
pub const STARTS_MAX: u64 = 2;
/// How long its token holds where nobody ends it: longer than sessions last.
const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often it is tried while other processes put other rules into force.
const ATTEMPTS: usize = 4;

/// Why a program is not started that is not what the policy names.
const CHANGED: &str = "its program or a file of it is not what it was when this session began; a new session takes it as it \
                       is now";
/// Why none is started any more.
const OVER: &str = "the session has ended";

/// What a session knows of one extension's starts.
#[derive(Debug, Default)]
pub(crate) struct Post {
    token: Option<Macaroon>,
    /// Why it is not started any more in this session.
    closed: Option<String>,
    /// Writes how it ended.
    running: Option<JoinHandle<()>>,
}

/// What came of a start.
type Begun = Result<(), Heard>;

/// What was decided about one.
enum Start {
    Begins(Box<Permit>, Receipt),
    Denied(Vec<String>, Option<Uses>),
    /// The rules or the token changed in between.
    Again,
}

impl Kernel {
    /// Has the extensions started, so that the first question need not wait for that. One that cannot be
    /// counts as crashed.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn start_extensions(&self, scope: &Scope) -> Result<(), Refused> {
        let Some(extensions) = self.extensions() else { return Ok(()) };
        let policy = self.policy().await?;
        let mut starts = JoinSet::new();
        for extension in policy.extensions() {
            if !self.journal().extension(&extension.name).await?.is_disabled() {
                let (kernel, extensions) = (self.clone(), extensions.clone());
                let (scope, name) = (scope.clone(), extension.name.clone());
                starts.spawn(async move {
                    match kernel.start_extension(&scope, &extensions, &name).await? {
                        Ok(()) => Ok(()),
                        Err(heard) => kernel.note_failure(&scope, &name, heard).await.map(drop),
                    }
                });
            }
        }
        starts.join_all().await.into_iter().collect()
    }

    /// Ends the extensions and their tokens, at the end of the session that they ran in.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn end_extensions(&self, scope: &Scope) -> Result<(), Refused> {
        let Some(extensions) = self.extensions() else { return Ok(()) };
        let posts = self.inner.posts.lock().unwrap_or_else(PoisonError::into_inner).take();
        for (name, post) in posts.unwrap_or_default() {
            // First, so that one that is just being started holds nobody up.
            extensions.end(&name).await;
            let mut post = post.lock().await;
            post.closed = Some(OVER.into());
            post.ended().await;
            if let Some(token) = post.token.take() {
                self.end_token(scope, token.id()).await?;
            }
        }
        Ok(())
    }

    /// Starts an extension that does not run, where its token lets it.
    pub(crate) async fn start_extension(
        &self,
        scope: &Scope,
        extensions: &Arc<dyn Extensions>,
        name: &str,
    ) -> Result<Begun, Refused> {
        let (kernel, extensions, name) = (self.clone(), extensions.clone(), name.to_owned());
        // The session's, whoever is the first to need it, and for longer than a turn.
        let scope = Scope { cancel: Default::default(), ..scope.clone() };
        // In a task of its own: whoever asked may go away, and no start is left half done then.
        let task = tokio::spawn(async move { kernel.start_alone(&scope, &*extensions, &name).await });
        task.await.map_err(|error| Refused::Failed(format!("an extension's start ended badly: {error}")))?
    }

    /// Boxed, because to decide may be to ask an extension, which this is a part of; a start is decided
    /// without.
    fn start_alone<'a>(
        &'a self,
        scope: &'a Scope,
        extensions: &'a dyn Extensions,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Begun, Refused>> {
        Box::pin(async move {
            let Some(post) = self.post(name) else { return Ok(Err(barred(OVER.into()))) };
            let mut post = post.lock().await;
            if extensions.runs(name) {
                return Ok(Ok(()));
            }
            post.ended().await;
            if let Some(why) = &post.closed {
                return Ok(Err(barred(why.clone())));
            }
            let Some(program) = extensions.program(name).await else {
                return Ok(Err(Heard { reply: Reply::Crashed, told: "nobody here runs it".into() }));
            };
            let (permit, receipt) = match self.engage(scope, &mut post, name, program).await? {
                Ok(begun) => begun,
                Err(why) => return Ok(Err(barred(why))),
            };
            let (ended, told) = oneshot::channel();
            post.running = Some(tokio::spawn(self.clone().see_out(receipt, told)));
            Ok(extensions.start(name, permit, ended).await)
        })
    }

    fn post(&self, name: &str) -> Option<Arc<tokio::sync::Mutex<Post>>> {
        let mut posts = self.inner.posts.lock().unwrap_or_else(PoisonError::into_inner);
        Some(posts.as_mut()?.entry(name.to_owned()).or_default().clone())
    }

    /// Begins a start, or writes down why there is none.
    async fn engage(
        &self,
        scope: &Scope,
        post: &mut Post,
        name: &str,
        program: Program,
    ) -> Result<Result<(Permit, Receipt), String>, Refused> {
        let Program { command, isolation, digest } = program;
        let sealed = self.seal_start(scope, Action::Exec(command))?;
        for _ in 0..ATTEMPTS {
            let policy = self.policy().await?;
            if !is_named(&policy, name, digest) {
                self.refuse(scope, &sealed, vec![CHANGED.into()], None).await?;
                post.closed = Some(CHANGED.into());
                return Ok(Err(CHANGED.into()));
            }
            let is_first = post.token.is_none();
            let token = match post.token.take() {
                Some(token) => token,
                None => match self.mint_start(scope, &policy, name, &sealed).await? {
                    Some(token) => token,
                    None => continue,
                },
            };
            post.token = Some(token.clone());
            match self.admit_start(&scope.starting(token, isolation.clone()), &sealed).await? {
                Start::Begins(permit, receipt) => return Ok(Ok((*permit, receipt))),
                Start::Denied(reasons, uses) if !is_first || self.is_in_force(&policy).await? => {
                    let why = reasons.join("; ");
                    self.refuse(scope, &sealed, reasons, uses).await?;
                    post.closed = Some(why.clone());
                    return Ok(Err(why));
                }
                Start::Denied(..) | Start::Again => {}
            }
            if is_first {
                // It was never good for anything.
                post.token = None;
            }
        }
        // That passes: the next question has it tried again.
        let why = "the rules change all the time";
        self.refuse(scope, &sealed, vec![why.into()], None).await?;
        Ok(Err(why.into()))
    }

    /// Decides about a start, and begins it.
    async fn admit_start(&self, scope: &Scope, sealed: &Sealed) -> Result<Start, Refused> {
        let Ruling { decided, uses } = self.rule(scope, sealed).await?;
        let mut reasons = deciding(&decided.reasons);
        let allowed = match decided.verdict {
            Verdict::Allow(allowed) => allowed,
            Verdict::Deny(_) => return Ok(Start::Denied(reasons, uses)),
            Verdict::Review(_) => {
                reasons.push("nobody is asked before an extension starts".into());
                return Ok(Start::Denied(reasons, uses));
            }
        };
        let circumstances = Circumstances { purpose: Purpose::Own, payer: None, reasons, uses };
        let budgets = &self.inner.config.budgets;
        let begun =
            self.inner.mint.begin(sealed.clone(), Warrant::Allowed(allowed), circumstances, budgets).await;
        match begun {
            Ok((permit, receipt)) => Ok(Start::Begins(Box::new(permit), receipt)),
            Err(BeginError::Stale | BeginError::Spent) => Ok(Start::Again),
            Err(error) => Err(error.into()),
        }
    }

    async fn is_in_force(&self, policy: &Policy) -> Result<bool, Refused> {
        Ok(self.journal().policy().await? == Some(policy.digest()))
    }

    async fn refuse(
        &self,
        scope: &Scope,
        sealed: &Sealed,
        reasons: Vec<String>,
        uses: Option<Uses>,
    ) -> Result<(), Refused> {
        self.deny(scope, sealed, reasons, uses).await.map(drop)
    }

    /// A token for the starts of one program; none where other rules came into force in between.
    async fn mint_start(
        &self,
        scope: &Scope,
        policy: &Policy,
        name: &str,
        sealed: &Sealed,
    ) -> Result<Option<Macaroon>, Refused> {
        let condition = Condition {
            action: Some(vec![Kind::Exec]),
            role: Some(vec![Role::Owner]),
            network: Some(false),
            ..Condition::default()
        };
        let caveat = Caveat {
            scope: Some(vec![condition]),
            action: Some(sealed.action_digest()),
            operations: Some(STARTS_MAX),
            expires: self.journal().clock().now().checked_add(LASTS).ok(),
            holder: Some(format!("the extension `{name}`")),
            ..Caveat::default()
        };
        match self.inner.mint.mint_token(scope.session(), policy.digest(), caveat).await {
            Ok(token) => Ok(Some(token)),
            Err(JournalError::Token(BadToken::Over)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Its paths are canonical: they are the declaration's, as it was read.
    fn seal_start(&self, scope: &Scope, action: Action) -> Result<Sealed, Refused> {
        let effect = Effect {
            id: self.new_effect_id()?,
            session: scope.session(),
            parent: None,
            call: None,
            role: Role::Owner,
            action,
            labels: Labels::new(Integrity::Owner, Secrecy::Private),
            cost: Cost::default(),
        };
        Sealed::new(effect).map_err(Refused::Failed)
    }

    /// Writes how an extension ended. When that cannot be written, recovery finds it unfinished.
    async fn see_out(self, receipt: Receipt, told: oneshot::Receiver<Output>) {
        let output = told.await.unwrap_or_else(|_| launch::unknown());
        let output = cut::tidy(self.journal().redactor(), output);
        self.finish(receipt, output, Cost::default(), Vec::new()).await.ok();
    }
}

impl Post {
    /// Waits until what is known to have ended is written.
    async fn ended(&mut self) {
        if let Some(running) = self.running.take() {
            running.await.ok();
        }
    }
}

impl Scope {
    /// The owner, who declared what is started, and by this token alone.
    fn starting(&self, token: Macaroon, walls: Isolation) -> Self {
        let bearer = Bearer { token, sandbox: None, is_confined: true, walls: Some(walls) };
        Self { role: Role::Owner, trust: None, conversation: None, bearer: Some(bearer), ..self.clone() }
    }
}

fn is_named(policy: &Policy, name: &str, digest: Digest) -> bool {
    policy.extensions().any(|extension| extension.name == name && extension.program == digest)
}

fn barred(why: String) -> Heard {
    Heard { reply: Reply::Barred(why), told: String::new() }
}
