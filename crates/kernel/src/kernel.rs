//! The kernel itself, and the registrar through which the composition root sets it up.

use crate::{
    Escalation, Executor, Note, Question, Refused, Route, Scope, UserMessage,
    background::Processes,
    call::Pending,
    program::{Post, Programs},
    scope::{Connection, Outlet, Standpoint},
};
use bailey_journal::{Budgets, Entry, Fact, Gauge, Journal, Mint, Payload};
use bailey_policy::{Places, Policy, Rule, Trust};
use bailey_protocol::{
    Action, ApprovalId, Card, Digest, EffectId, Event, Happening, IMAGES_BYTES_MAX, Inbound, Integrity,
    Labels, Role, Secrecy, Seq, SessionId, TurnId, WsPath,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
    time::Duration,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// Draws the card of a question.
pub type DrawCard = fn(&Question<'_>) -> Card;

/// Reads the rules again; the error is for people.
pub type Rules = Box<dyn Fn() -> Result<Policy, String> + Send + Sync>;

/// What the composition root tells the kernel.
#[derive(Debug, Clone)]
pub struct Config {
    /// The user's home, canonical.
    pub user_home: String,
    /// Bailey's own home, canonical.
    pub bailey_home: String,
    /// Bailey's own binaries, canonical.
    pub programs: Vec<String>,
    /// How long a question waits for its answer; then it counts as a no.
    pub question_lasts: Duration,
    /// How long a call waits for room to be asked about, where its session
    /// has as many open questions as it may.
    pub room_waits: Duration,
    /// What may be used up.
    pub budgets: Budgets,
    /// How long a cancelled effect may take to end before it counts as `unknown`, and a front end to take an
    /// event before it is cut off.
    pub grace: Duration,
    /// Draws cards.
    pub draw: DrawCard,
    /// The steps of a question that nobody answers.
    pub escalation: Escalation,
    /// Rules of this process's session alone: reviews and denials beside the policy's, such as its project's.
    pub narrowing: Vec<Rule>,
    /// The digest of the owner's own list of system calls, where commands go by one.
    pub calls: Option<Digest>,
    /// The project that a session's workspace is a private copy of, where it is one.
    pub project: Option<String>,
}

impl Config {
    /// Where a rule's variables lead in a project.
    #[must_use]
    pub fn places(&self, workspace: &WsPath) -> Places {
        Places {
            workspace: workspace.0.clone(),
            user_home: self.user_home.clone(),
            bailey_home: self.bailey_home.clone(),
            programs: self.programs.clone(),
            project: self.project.clone(),
        }
    }
}

/// The reference monitor: the only way to an effect. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) mint: Mint,
    pub(crate) policy: RwLock<Arc<Policy>>,
    pub(crate) rules: OnceLock<Rules>,
    pub(crate) config: Config,
    pub(crate) executors: OnceLock<BTreeMap<Route, Arc<dyn Executor>>>,
    pub(crate) programs: OnceLock<Arc<dyn Programs>>,
    /// What is known of each program's starts, by its name; `None` after the last start.
    pub(crate) posts: Mutex<Option<BTreeMap<String, Arc<tokio::sync::Mutex<Post>>>>>,
    /// Held while a merge runs; no peer starts meanwhile.
    pub(crate) merging: tokio::sync::RwLock<()>,
    pub(crate) pending: Mutex<HashMap<ApprovalId, Pending>>,
    pub(crate) processes: Processes,
    /// Wakes whoever waits for an answer that was given here.
    pub(crate) answered: Notify,
    /// The sessions of which a call waited for room to be asked about in vain: the next one does not wait
    /// once more for the same.
    pub(crate) without_room: Mutex<HashSet<SessionId>>,
    /// Held from counting what the screen took out until that is written, so that results that come together
    /// count each other.
    pub(crate) hits: tokio::sync::Mutex<()>,
    /// The questions whose answer front ends know.
    pub(crate) told: Mutex<HashSet<ApprovalId>>,
    /// What each conversation last saw or wrote of files, by the names that it used.
    pub(crate) last_seen: Mutex<HashMap<(SessionId, WsPath), Digest>>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").finish_non_exhaustive()
    }
}

/// Sets a kernel up: executors and connections. Only the composition root holds it.
#[derive(Debug)]
pub struct Registrar {
    kernel: Kernel,
}

impl Kernel {
    /// A kernel over a journal's mint and a policy, which is put into force.
    ///
    /// # Errors
    /// When the policy's adoption cannot be written.
    pub async fn new(mint: Mint, policy: Policy, config: Config) -> Result<(Self, Registrar), Refused> {
        mint.adopt(policy.digest()).await?;
        let inner = Inner {
            mint,
            policy: RwLock::new(Arc::new(policy)),
            rules: OnceLock::new(),
            config,
            executors: OnceLock::new(),
            programs: OnceLock::new(),
            posts: Mutex::new(Some(BTreeMap::new())),
            merging: tokio::sync::RwLock::default(),
            pending: Mutex::default(),
            processes: Processes::default(),
            answered: Notify::new(),
            without_room: Mutex::default(),
            hits: tokio::sync::Mutex::default(),
            told: Mutex::default(),
            last_seen: Mutex::default(),
        };
        let kernel = Self { inner: Arc::new(inner) };
        Ok((kernel.clone(), Registrar { kernel }))
    }

    /// The journal, to read and to append.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        self.inner.mint.journal()
    }

    /// Accepts a person's message, whose authority is that of its connection, after the files that came with
    /// it. When this returns, the message will not be lost, and the turn's authority exists.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn accept(
        &self,
        connection: &Connection,
        mut inbound: Inbound,
    ) -> Result<(Scope, UserMessage, TurnId), Refused> {
        let bytes: usize = inbound.images.iter().map(|image| image.bytes().len()).sum();
        if bytes > IMAGES_BYTES_MAX {
            let why = "the pictures of one message may have 3 MiB together: send them one by one";
            return Err(Refused::Failed(why.into()));
        }
        let is_guest = inbound.by.as_ref().is_some_and(|by| by.role == Role::Guest);
        let is_foreign = is_guest || inbound.is_quoted;
        let integrity = if is_foreign { Integrity::External } else { Integrity::User };
        let labels = Labels::new(integrity, Secrecy::Private);
        let turn = TurnId::new(self.unix_ms(), random()?);
        let files = std::mem::take(&mut inbound.files);
        if !files.is_empty() {
            let role = inbound.by.as_ref().map_or(Role::Owner, |by| by.role);
            for line in self.receive(connection, files, role, &labels).await? {
                inbound.text.push_str(&format!("\n{line}"));
            }
        }
        let text = self.journal().redactor().redact(&inbound.text).text.into_owned();
        let (key, images) = (inbound.key.clone(), inbound.images.clone());
        let seq = self.journal().accept(connection.session, turn, inbound, labels.clone()).await?;
        let scope = self.turn_of(connection);
        scope.tell(self.journal(), seq, Happening::Accepted { key }).await;
        let labels = labels.from_entry(seq);
        Ok((scope, UserMessage { entry: seq, text, images, labels, pinned: false }, turn))
    }

    /// Ends a turn. What went on without one (`None`), because a human let something happen when it had
    /// ended, gets an end of its own: by that, whoever comes back knows that it was not cut off.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn end_turn(
        &self,
        session: SessionId,
        turn: Option<TurnId>,
        reason: &str,
    ) -> Result<(), Refused> {
        let turn = turn.map_or_else(|| Ok(TurnId::new(self.unix_ms(), random()?)), Ok::<_, Refused>)?;
        self.journal().end_turn(session, turn, reason.to_owned()).await?;
        Ok(())
    }

    /// The authority to go on with a turn that another process began; its message was accepted then.
    #[must_use]
    pub fn turn_of(&self, connection: &Connection) -> Scope {
        Scope {
            connection: connection.clone(),
            role: Role::Agent,
            cancel: CancellationToken::new(),
            trust: None,
            bearer: connection.bearer.clone(),
            conversation: None,
        }
    }

    /// How far the budgets that this session draws on are used up, the fullest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn gauges(&self, scope: &Scope) -> Result<Vec<Gauge>, Refused> {
        Ok(self.journal().gauges(scope.conversation(), self.inner.config.budgets.clone()).await?)
    }

    /// Tells the model, and the front end, that a budget runs low.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn warn(&self, scope: &Scope, gauge: &Gauge, text: &str) -> Result<Note, Refused> {
        let fact = Fact::Warned {
            span: gauge.span,
            unit: gauge.unit.clone(),
            percent: u32::try_from(gauge.percent()).unwrap_or(u32::MAX),
        };
        self.told(scope, fact, text).await
    }

    /// Tells the model something in Bailey's own words, such as that the same call failed again. Tells the
    /// front end that the model was told.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn remind(&self, scope: &Scope, text: &str) -> Result<Note, Refused> {
        self.told(scope, Fact::Reminded {}, text).await
    }

    async fn told(&self, scope: &Scope, fact: Fact, text: &str) -> Result<Note, Refused> {
        let entry = Entry::of(scope.conversation(), fact).with(Payload::Text(text.to_owned()));
        let seq = self.journal().append(entry).await?;
        scope
            .tell(self.journal(), seq, Happening::Notice { text: format!("the model is told: {text}") })
            .await;
        Ok(Note::warning(seq, text.to_owned()))
    }

    /// Says something to the session's front end.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn tell(&self, scope: &Scope, happening: Happening) -> Result<(), Refused> {
        scope.tell(self.journal(), self.newest(), happening).await;
        Ok(())
    }

    pub(crate) fn newest(&self) -> Seq {
        Seq(self.journal().newest())
    }

    /// The policy in force. Where another process put other rules into force, they are read as that one did:
    /// a decision by yesterday's rules could begin nothing.
    pub(crate) async fn policy(&self) -> Result<Arc<Policy>, Refused> {
        let in_force = self.journal().policy().await?;
        let held = self.inner.policy.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (false, Some(rules)) = (in_force == Some(held.digest()), self.inner.rules.get()) else {
            return Ok(held);
        };
        let read = Arc::new(rules().map_err(Refused::Failed)?);
        if in_force != Some(read.digest()) {
            self.inner.mint.adopt(read.digest()).await?;
        }
        *self.inner.policy.write().unwrap_or_else(PoisonError::into_inner) = read.clone();
        Ok(read)
    }

    /// Reads the rules again, as its owner asks for who changed them by hand, and puts them into force.
    ///
    /// # Errors
    /// When they have mistakes, or that cannot be written: the old ones stay in force.
    pub async fn reread_rules(&self) -> Result<(), Refused> {
        let Some(rules) = self.inner.rules.get() else { return Ok(()) };
        let read = Arc::new(rules().map_err(Refused::Failed)?);
        self.inner.mint.adopt(read.digest()).await?;
        *self.inner.policy.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    pub(crate) fn executor(&self, action: &Action) -> Option<Arc<dyn Executor>> {
        let route = Route::of(action)?;
        self.inner.executors.get()?.get(&route).cloned()
    }

    /// The runner of extensions and peers, where there is one.
    pub(crate) fn programs(&self) -> Option<&Arc<dyn Programs>> {
        self.inner.programs.get()
    }

    /// Tells every executor that effects of a session may follow soon.
    pub(crate) fn expect(&self, session: SessionId) {
        let executors = self.inner.executors.get().into_iter().flat_map(BTreeMap::values);
        executors.for_each(|executor| executor.expect(session));
    }

    /// Who performs this action.
    pub(crate) fn performer(&self, action: &Action) -> Result<Arc<dyn Executor>, Refused> {
        let nobody = || Refused::Failed(format!("nobody here performs `{}`", action.kind().name()));
        self.executor(action).ok_or_else(nobody)
    }

    pub(crate) fn places(&self, workspace: &WsPath) -> Places {
        self.inner.config.places(workspace)
    }

    pub(crate) fn pend(&self, id: ApprovalId, pending: Pending) {
        self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(id, pending);
    }

    pub(crate) fn unpend(&self, id: ApprovalId) -> Option<Pending> {
        self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    pub(crate) fn new_effect_id(&self) -> Result<EffectId, Refused> {
        Ok(EffectId::new(self.unix_ms(), random()?))
    }

    pub(crate) fn unix_ms(&self) -> u64 {
        u64::try_from(self.journal().clock().now().as_millisecond()).unwrap_or(0)
    }
}

impl Registrar {
    /// Registers the executors, once. A later call changes nothing.
    pub fn register(&self, executors: Vec<Arc<dyn Executor>>) {
        let mut routes: BTreeMap<Route, Arc<dyn Executor>> = BTreeMap::new();
        for executor in executors {
            for route in executor.routes() {
                routes.insert(route, executor.clone());
            }
        }
        self.kernel.inner.executors.set(routes).ok();
    }

    /// Registers the runner of extensions and peers, once. Without it, what extensions are to judge is
    /// denied.
    pub fn programs(&self, programs: Arc<dyn Programs>) {
        self.kernel.inner.programs.set(programs).ok();
    }

    /// Says where the rules are read again when another process puts others into force, once. Without it a
    /// kernel keeps the policy it was made with, and begins nothing any more when that is not in force.
    pub fn reread_rules(&self, rules: Rules) {
        self.kernel.inner.rules.set(rules).ok();
    }

    /// Puts other rules into force, at once: whoever decides from now on decides by them.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn adopt(&self, policy: Policy) -> Result<(), Refused> {
        self.kernel.inner.mint.adopt(policy.digest()).await?;
        let policy = Arc::new(policy);
        *self.kernel.inner.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
        Ok(())
    }

    /// The connection of a person, whom the composition root authenticated, to a session.
    #[must_use]
    pub fn connect(&self, session: SessionId, workspace: WsPath, events: mpsc::Sender<Event>) -> Connection {
        let outlet = Outlet::new(events, self.kernel.inner.config.grace);
        Connection { session, workspace, standpoint: Standpoint::default(), outlet, bearer: None }
    }

    /// The authority of another program, which asks about tools of its own.
    #[must_use]
    pub fn client(&self, connection: &Connection, trust: Option<Trust>) -> Scope {
        Scope { role: Role::Plugin, trust, ..self.owner(connection) }
    }

    /// The authority of the owner's own command in a session.
    #[must_use]
    pub fn owner(&self, connection: &Connection) -> Scope {
        Scope {
            connection: connection.clone(),
            role: Role::Owner,
            cancel: CancellationToken::new(),
            trust: None,
            bearer: None,
            conversation: None,
        }
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], Refused> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Refused::Failed(format!("no random numbers: {error}")))?;
    Ok(bytes)
}
