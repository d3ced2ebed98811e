//! The owner's programs that answer: extensions of the policy, which judge effects, and process peers, which
//! have tools. The seam to the crate that runs them, and the start of one.
//!
//! A start is an effect like any other: decided, written before it happens, and finished when the program
//! ends. The kernel begins it under a token: this command, this place, so many starts. The owner declared the
//! program, which is the authority for the token, so the kernel hears no rule of a file and asks no
//! extension; it hears the rules that no token skips at each start. A program whose files have changed since
//! the session began is not started: the kinds that an extension judges are then denied, and calls of a peer
//! fail.
//!
//! The requests of a peer to the network are effects of their own, each with the start as its parent. A
//! second token covers them: the hosts that the owner named, and no other.

use crate::{
    BoxFuture, Door, Kernel, Output, Refused, Scope,
    admit::deciding,
    bearer::{Bearer, Ruling},
    cut,
    door::Hosts,
    extension::{ExtensionOutcome, ExtensionReply},
    launch,
};
use bailey_journal::{
    BadToken, BeginError, Circumstances, JournalError, Macaroon, Permit, Purpose, Receipt, Uses, Warrant,
};
use bailey_policy::{Caveat, Condition, HostGlob, Policy, Verdict};
use bailey_protocol::{
    Action, Command, Cost, Digest, Effect, Happening, Integrity, Isolation, Kind, Labels, Role, Sealed,
    Secrecy,
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

/// Runs the owner's programs that answer, each by its name.
pub trait Programs: Send + Sync + 'static {
    /// The names of those that are peers.
    fn peers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it runs, and can be asked.
    fn runs(&self, name: &str) -> bool;

    /// The program as it would be started now, its files read anew; `None` for an unknown name.
    fn program<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Program>>;

    /// Starts it, as the permit says. It returns, in bounded time, when the program can be asked, or with the
    /// reason why it cannot. Its requests to the network, where it may make some, pass by the door. `ended`
    /// is told how it ended, also when it never began.
    fn start<'a>(
        &'a self,
        name: &'a str,
        permit: Permit,
        door: Option<Door>,
        ended: oneshot::Sender<Output>,
    ) -> BoxFuture<'a, Result<(), ExtensionOutcome>>;

    /// Has the extension of this name judge the effect of the question, a JSON object. It ends in bounded
    /// time. The question comes back when the extension does not run.
    fn ask<'a>(&'a self, name: &'a str, question: Value) -> BoxFuture<'a, Result<ExtensionOutcome, Value>>;

    /// The names of the peers that see the workspace.
    fn within(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends a program that may be started again. Returns whether it ran.
    fn stop<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// Ends it, and keeps it from being started again.
    fn end<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;
}

/// A program, for its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The command, and its directory.
    pub command: Command,
    /// Its walls.
    pub isolation: Isolation,
    /// The digest of the declaration and of its files, as they are now.
    pub digest: Digest,
    /// Its duty.
    pub duty: Duty,
}

/// The duty of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// It judges effects. The policy in force holds the digest that it must have.
    Judge,
    /// It has tools.
    Peer {
        /// The digest that it must have: that of the session's beginning.
        declared: Digest,
        /// The hosts that it may ask.
        hosts: Vec<HostGlob>,
        /// The names of the owner's keys that its requests may get.
        keys: BTreeSet<String>,
    },
}

/// How often an extension may be started while a session is open: once, and once more when it has ended.
pub const STARTS_MAX: u64 = 2;
/// How often a peer may be started while a session is open, not counting those starts that Bailey ended.
pub const PEER_STARTS_MAX: u64 = 64;
/// How many requests a peer may make with one token.
const REQUESTS_MAX: u64 = 1_000_000;
/// How long its token holds when nothing ends it earlier: longer than sessions last.
const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often it is tried while other processes put other rules into force.
const ATTEMPTS: usize = 4;

/// Why a program is not started whose files have changed.
const CHANGED: &str = "its program or a file of it is not what it was when this session began; a new session takes it as it \
                       is now";
/// Why no program is started any more.
const OVER: &str = "the session has ended";

/// A session's knowledge of one program's starts.
#[derive(Debug, Default)]
pub(crate) struct Post {
    token: Option<Macaroon>,
    /// The starts of a peer so far.
    starts: u64,
    /// The hosts that its requests may go to.
    hosts: Option<Arc<Hosts>>,
    /// Why it is not started any more in this session.
    closed: Option<String>,
    /// Writes how it ended.
    running: Option<JoinHandle<()>>,
}

/// The outcome of a start.
type StartResult = Result<(), ExtensionOutcome>;

/// The decision about a start.
enum Start {
    Begins(Box<Permit>, Receipt),
    Denied(Vec<String>, Option<Uses>),
    /// The rules or the token changed in between.
    Again,
}

impl Kernel {
    /// Starts extensions and peers, so that the first question need not wait for that. An extension that
    /// cannot be started counts as crashed; of a peer the front end is told.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub async fn start_programs(&self, scope: &Scope) -> Result<(), Refused> {
        let Some(programs) = self.programs() else { return Ok(()) };
        let policy = self.policy().await?;
        let mut starts: JoinSet<Result<(), Refused>> = JoinSet::new();
        for extension in policy.extensions() {
            if !self.journal().extension(&extension.name).await?.is_disabled() {
                let (kernel, programs) = (self.clone(), programs.clone());
                let (scope, name) = (scope.clone(), extension.name.clone());
                starts.spawn(async move {
                    match kernel.start_program(&scope, &programs, &name).await? {
                        Ok(()) => Ok(()),
                        Err(heard) => kernel.note_failure(&scope, &name, heard).await.map(drop),
                    }
                });
            }
        }
        for name in programs.peers() {
            let (kernel, programs, scope) = (self.clone(), programs.clone(), scope.clone());
            starts.spawn(async move {
                if let Err(heard) = kernel.start_program(&scope, &programs, &name).await? {
                    let text = format!("the peer `{name}` did not start: {}", heard.why());
                    kernel.tell(&scope, Happening::Notice { text }).await?;
                }
                Ok(())
            });
        }
        starts.join_all().await.into_iter().collect()
    }

    /// Starts a peer, when it does not run.
    ///
    /// # Errors
    /// Why it cannot be called.
    pub async fn start_peer(&self, scope: &Scope, name: &str) -> Result<(), String> {
        let programs = self.programs().ok_or("nothing here runs peers")?;
        match self.start_program(scope, programs, name).await {
            Ok(begun) => begun.map_err(|heard| heard.why().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Ends the peers that see the workspace: before a merge, and after a turn, so that the next one sees the
    /// project as it is then.
    pub async fn rest_programs(&self) {
        let Some(programs) = self.programs() else { return };
        for name in programs.within() {
            let Some(post) = self.post(&name) else { return };
            // A start that is under way comes to its end first, and none begins meanwhile.
            let mut post = post.lock().await;
            if programs.stop(&name).await {
                // It did not end by itself.
                post.starts = post.starts.saturating_sub(1);
            }
            // Its outcome tells what it changed last, which a merge needs to know.
            post.ended().await;
        }
    }

    /// Ends the programs and their tokens, at the end of the session that they ran in.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn end_programs(&self, scope: &Scope) -> Result<(), Refused> {
        let Some(programs) = self.programs() else { return Ok(()) };
        let posts = self.inner.posts.lock().unwrap_or_else(PoisonError::into_inner).take();
        for (name, post) in posts.unwrap_or_default() {
            // First, so that a start that is under way delays no other program's end.
            programs.end(&name).await;
            let mut post = post.lock().await;
            post.closed = Some(OVER.into());
            post.ended().await;
            if let Some(token) = post.token.take() {
                self.end_token(scope, token.id()).await?;
            }
            self.end_requests(scope, &mut post).await?;
        }
        Ok(())
    }

    /// Ends the token of a peer's requests.
    async fn end_requests(&self, scope: &Scope, post: &mut Post) -> Result<(), Refused> {
        let Some(hosts) = post.hosts.take() else { return Ok(()) };
        match hosts.token.lock().await.take() {
            Some((_, token)) => self.end_token(scope, token.id()).await,
            None => Ok(()),
        }
    }

    /// Starts a program that does not run, where its token lets it.
    pub(crate) async fn start_program(
        &self,
        scope: &Scope,
        programs: &Arc<dyn Programs>,
        name: &str,
    ) -> Result<StartResult, Refused> {
        let (kernel, programs, name) = (self.clone(), programs.clone(), name.to_owned());
        // It is the session's, and lives longer than the turn that first needs it.
        let scope = Scope { cancel: Default::default(), ..scope.clone() };
        // In a task of its own: when the asker goes away, no start is left half done.
        let task = tokio::spawn(async move { kernel.start_alone(&scope, &*programs, &name).await });
        task.await.map_err(|error| Refused::Failed(format!("a program's start ended badly: {error}")))?
    }

    /// Boxed, because to decide may be to ask an extension, which this is a part of; a start is decided
    /// without.
    fn start_alone<'a>(
        &'a self,
        scope: &'a Scope,
        programs: &'a dyn Programs,
        name: &'a str,
    ) -> BoxFuture<'a, Result<StartResult, Refused>> {
        Box::pin(async move {
            // A merge writes beneath the workspace that the peer would see. A merge waits for the posts while
            // it holds this, so it is taken first.
            let _merging = match programs.within().iter().any(|within| within == name) {
                true => Some(self.inner.merging.read().await),
                false => None,
            };
            let Some(post) = self.post(name) else { return Ok(Err(barred(OVER.into()))) };
            let mut post = post.lock().await;
            if programs.runs(name) {
                return Ok(Ok(()));
            }
            post.ended().await;
            if let Some(why) = &post.closed {
                return Ok(Err(barred(why.clone())));
            }
            let Some(program) = programs.program(name).await else {
                return Ok(Err(ExtensionOutcome {
                    reply: ExtensionReply::Crashed,
                    told: "nobody here runs it".into(),
                }));
            };
            let (hosts, keys) = match &program.duty {
                Duty::Judge => (Vec::new(), BTreeSet::new()),
                Duty::Peer { hosts, keys, .. } => (hosts.clone(), keys.clone()),
            };
            self.end_requests(scope, &mut post).await?;
            let (permit, receipt) = match self.engage(scope, &mut post, name, program).await? {
                Ok(begun) => begun,
                Err(why) => return Ok(Err(barred(why))),
            };
            // Its requests are the peer's own, also when a sub-agent's call has it started.
            let own = Scope { trust: None, bearer: None, conversation: None, ..scope.inside() };
            let door = match hosts.is_empty() {
                true => None,
                false => {
                    let hosts = Arc::new(Hosts::new(name, hosts, keys));
                    post.hosts = Some(hosts.clone());
                    Some(Door { hosts: Some(hosts), ..self.io(&own, &receipt, labels()).io.door })
                }
            };
            let (ended, told) = oneshot::channel();
            post.running = Some(tokio::spawn(self.clone().see_out(receipt, told)));
            Ok(programs.start(name, permit, door, ended).await)
        })
    }

    fn post(&self, name: &str) -> Option<Arc<tokio::sync::Mutex<Post>>> {
        let mut posts = self.inner.posts.lock().unwrap_or_else(PoisonError::into_inner);
        Some(posts.as_mut()?.entry(name.to_owned()).or_default().clone())
    }

    /// Begins a start, or writes down the reason against it.
    async fn engage(
        &self,
        scope: &Scope,
        post: &mut Post,
        name: &str,
        program: Program,
    ) -> Result<Result<(Permit, Receipt), String>, Refused> {
        let Program { command, isolation, digest, duty } = program;
        let sealed = self.seal_start(scope, Action::Exec(command))?;
        if let Duty::Peer { .. } = duty {
            // Rules may change while the session lives, and a peer's starts are counted here.
            post.token = None;
            post.starts += 1;
            if post.starts > PEER_STARTS_MAX {
                let why =
                    format!("it was started {PEER_STARTS_MAX} times in this session, and ended each time");
                self.refuse(scope, &sealed, vec![why.clone()], None).await?;
                return Ok(Err(why));
            }
        }
        for _ in 0..ATTEMPTS {
            let policy = self.policy().await?;
            let is_declared = match &duty {
                Duty::Judge => is_named(&policy, name, digest),
                Duty::Peer { declared, .. } => *declared == digest,
            };
            if !is_declared {
                self.refuse(scope, &sealed, vec![CHANGED.into()], None).await?;
                post.closed = Some(CHANGED.into());
                return Ok(Err(CHANGED.into()));
            }
            let is_first = post.token.is_none();
            let token = match post.token.take() {
                Some(token) => token,
                None => match self.mint_start(scope, &policy, (name, &duty), &sealed).await? {
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
                    // Other rules may let a peer start again.
                    post.closed = Some(why.clone()).filter(|_| duty == Duty::Judge);
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
                reasons.push("nobody is asked before a declared program starts".into());
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

    /// A token for the starts of one program; `None` when other rules came into force in between.
    async fn mint_start(
        &self,
        scope: &Scope,
        policy: &Policy,
        (name, duty): (&str, &Duty),
        sealed: &Sealed,
    ) -> Result<Option<Macaroon>, Refused> {
        let (what, starts, network) = match duty {
            Duty::Judge => ("extension", STARTS_MAX, false),
            Duty::Peer { hosts, .. } => ("peer", 1, !hosts.is_empty()),
        };
        let condition = Condition {
            action: Some(vec![Kind::Exec]),
            role: Some(vec![Role::Owner]),
            network: Some(network),
            ..Condition::default()
        };
        let caveat = Caveat {
            scope: Some(vec![condition]),
            action: Some(sealed.action_digest()),
            operations: Some(starts),
            expires: self.journal().clock().now().checked_add(LASTS).ok(),
            holder: Some(format!("the {what} `{name}`")),
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

    /// Mints a token for a peer's requests to the hosts of its declaration, and to no other. `None` when
    /// other rules came into force in between.
    pub(crate) async fn mint_requests(
        &self,
        scope: &Scope,
        policy: &Policy,
        name: &str,
        hosts: &[HostGlob],
    ) -> Result<Option<Macaroon>, Refused> {
        let condition = Condition {
            action: Some(vec![Kind::Http]),
            role: Some(vec![scope.role]),
            host: Some(hosts.to_vec()),
            ..Condition::default()
        };
        let caveat = Caveat {
            scope: Some(vec![condition]),
            operations: Some(REQUESTS_MAX),
            expires: self.journal().clock().now().checked_add(LASTS).ok(),
            holder: Some(format!("the peer `{name}`")),
            ..Caveat::default()
        };
        match self.inner.mint.mint_token(scope.session(), policy.digest(), caveat).await {
            Ok(token) => Ok(Some(token)),
            Err(JournalError::Token(BadToken::Over)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes how a program ended. When that cannot be written, recovery finds it unfinished.
    async fn see_out(self, receipt: Receipt, told: oneshot::Receiver<Output>) {
        let output = told.await.unwrap_or_else(|_| launch::unknown());
        let output = cut::tidy(self.journal().redactor(), output);
        self.finish(receipt, output, Cost::default(), Vec::new()).await.ok();
    }
}

impl Post {
    /// Waits until the end of the last start is written.
    async fn ended(&mut self) {
        if let Some(running) = self.running.take() {
            running.await.ok();
        }
    }
}

impl Scope {
    /// The owner, who declared the program, and by this token alone.
    fn starting(&self, token: Macaroon, walls: Isolation) -> Self {
        let bearer = Bearer { token, sandbox: None, is_confined: true, walls: Some(walls) };
        Self { role: Role::Owner, trust: None, conversation: None, bearer: Some(bearer), ..self.clone() }
    }
}

/// The labels of a peer's requests: its code is not the owner's, and it may have been told private things.
fn labels() -> Labels {
    Labels::new(Integrity::External, Secrecy::Private)
}

fn is_named(policy: &Policy, name: &str, digest: Digest) -> bool {
    policy.extensions().any(|extension| extension.name == name && extension.program == digest)
}

fn barred(why: String) -> ExtensionOutcome {
    ExtensionOutcome { reply: ExtensionReply::Barred(why), told: String::new() }
}
