//! A real journal, policy and kernel in a temporary folder, with a [`World`] and the network door behind
//! them.

use crate::{FakeClock, ModelServer, World};
use bailey_egress::Egress;
use bailey_journal::{Clock, Fact, Journal, NewSession, OWNER, Query, Recorded};
use bailey_kernel::{
    Bound, Budgets, Config, Connection, Context, Escalation, Holder, Instruction, Kernel, Registrar, Scope,
    Seal, SessionLock, UserMessage,
};
use bailey_llm::{Codec, Endpoint, Wire};
use bailey_policy::{DEFAULT_RULES, Policy, built_in_rules, file};
use bailey_protocol::{
    CallId, Card, CardPart, Digest, Event, Happening, Inbound, Labels, Profile, Seq, SessionId, Timestamp,
    ToolCall,
};
use bailey_secrets::{Redactor, Secret, Vault};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Events that may wait for a test to look at them.
const EVENTS_WAITING_MAX: usize = 100_000;

/// What a bench is made of.
#[derive(Clone)]
pub struct Setup {
    /// The text of a rule file; the built-in rules are always there.
    pub rules: String,
    /// Tokens that the session may use.
    pub limit: u64,
    /// What else may be used up.
    pub budgets: Budgets,
    /// How long a cancelled effect may take to end.
    pub grace: Duration,
    /// Secrets, by name and value: known to the network door, and to the redactor.
    pub secrets: Vec<(String, String)>,
    /// Whether the redactor knows them; without, the same test shows what would leak.
    pub redact: bool,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Base URLs of model servers that the door may reach.
    pub models: Vec<String>,
    /// Whose permits the world and the door take; none: this bench's own.
    pub seal: Option<Seal>,
    /// Whether a human answers each question by itself, with a reason.
    pub compliance: bool,
    /// Rules beside the others, of this session alone.
    pub narrowing: Vec<bailey_policy::Rule>,
    /// The system calls that commands may make, and the digest of a list of the owner's own.
    pub profile: (Profile, Option<Digest>),
    /// Whether no executor is registered.
    pub bare: bool,
}

impl Default for Setup {
    /// Bailey's own default rules, a million tokens, 200 ms of grace, no secrets, a clock that stands still.
    fn default() -> Self {
        Self {
            rules: DEFAULT_RULES.into(),
            limit: 1_000_000,
            budgets: Budgets::default(),
            grace: Duration::from_millis(200),
            secrets: Vec::new(),
            redact: true,
            clock: Arc::new(FakeClock::default()),
            models: Vec::new(),
            seal: None,
            compliance: false,
            narrowing: Vec::new(),
            profile: (Profile::Standard, None),
            bare: false,
        }
    }
}

impl Setup {
    /// The same with more rules, written as in a rule file.
    #[must_use]
    pub fn rule(mut self, text: &str) -> Self {
        self.rules.push('\n');
        self.rules.push_str(text);
        self
    }

    /// The same with a model server that the door may reach.
    #[must_use]
    pub fn model(mut self, server: &ModelServer) -> Self {
        self.models.push(server.base_url());
        self
    }
}

/// A kernel with everything around it.
pub struct Bench {
    /// The journal.
    pub journal: Journal,
    /// The kernel.
    pub kernel: Kernel,
    /// Sets connections up.
    pub registrar: Registrar,
    /// The connection of the session's person.
    pub connection: Connection,
    /// The session.
    pub session: SessionId,
    /// The world that effects happen in.
    pub world: Arc<World>,
    /// What front ends receive.
    pub events: mpsc::Receiver<Event>,
    /// What new connections send to.
    pub sender: mpsc::Sender<Event>,
    /// The folder; dropping it removes it.
    pub home: TempDir,
}

impl Bench {
    /// The project; it exists in the [`World`] only.
    pub const WORKSPACE: &str = "/home/ann/project";

    /// A bench in a new folder.
    ///
    /// # Panics
    /// When it cannot be set up.
    pub async fn new(setup: Setup) -> Self {
        Self::over(tempfile::tempdir().unwrap(), setup).await
    }

    /// A bench over a folder that holds a journal already: as after a restart. The world is a new one.
    ///
    /// # Panics
    /// When it cannot be set up.
    pub async fn over(home: TempDir, setup: Setup) -> Self {
        let vault: Vault =
            setup.secrets.iter().map(|(name, value)| (name.clone(), Secret::new(value.clone()))).collect();
        let redactor = Redactor::new(if setup.redact { &vault } else { &NOTHING });
        let file = home.path().join("journal.db");
        let (journal, mint) = Journal::open(&file, redactor, setup.clock.clone()).await.unwrap();
        let rules = file::parse("test.toml", &setup.rules, file::Format::Toml).unwrap().rules;
        let policy = Policy::new(built_in_rules(), rules);
        let policy = if setup.compliance { policy.with_compliance() } else { policy };
        let policy = policy.with_profile(setup.profile.0);
        let (kernel, registrar) = Kernel::new(mint, policy, config(&setup)).await.unwrap();
        let seal = setup.seal.unwrap_or_else(|| journal.seal());
        let world = Arc::new(World::new(seal, Self::WORKSPACE));
        let names: Vec<String> = setup.secrets.iter().map(|(name, _)| name.clone()).collect();
        let endpoint = |url: &String| bailey_egress::Endpoint {
            url: url.clone(),
            secrets: names.clone(),
            first_byte_timeout: None,
        };
        let door = bailey_egress::Config {
            endpoints: setup.models.iter().map(endpoint).collect(),
            ..bailey_egress::Config::default()
        };
        let door = Egress::new(door, Arc::new(vault), seal).unwrap();
        if !setup.bare {
            registrar.register(vec![world.clone(), Arc::new(door)]);
        }
        let session = SessionId::new(1_767_000_000_000, [7; 10]);
        if journal.session(&session.to_string()).await.is_err() {
            let new = NewSession {
                agent: None,
                confined: None,
                workspace: Self::WORKSPACE.into(),
                principal: OWNER.into(),
                model: "test/model".into(),
            };
            journal.open_session(session, new).await.unwrap();
        }
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let connection = registrar.connect(session, Self::WORKSPACE.into(), sender.clone());
        Self { journal, kernel, registrar, connection, session, world, events, sender, home }
    }

    /// Ends everything and gives the folder back, for [`Bench::over`].
    pub fn close(self) -> TempDir {
        let Self { home, .. } = self;
        home
    }

    /// The folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.home().join("journal.db")
    }

    /// Who holds a lock that a test takes.
    #[must_use]
    pub fn holder() -> Holder {
        Holder { pid: std::process::id(), since: Timestamp::default(), command: "a test".into() }
    }

    /// The session's lock.
    ///
    /// # Panics
    /// When somebody else holds it.
    #[must_use]
    pub fn lock(&self) -> SessionLock {
        SessionLock::take(self.session, self.home(), &Self::holder()).unwrap()
    }

    /// The authority of a new turn.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.kernel.turn_of(&self.connection)
    }

    /// Accepts a message.
    ///
    /// # Panics
    /// When it is not accepted.
    pub async fn say(&self, said: impl Into<Inbound>) -> (Scope, UserMessage) {
        let accepted = self.kernel.accept(&self.connection, said.into()).await.unwrap();
        (accepted.0, accepted.1)
    }

    /// A context that holds one accepted message.
    ///
    /// # Panics
    /// When it is not accepted.
    pub async fn context(&self, text: &str) -> (Scope, Context) {
        let (scope, message) = self.say(text).await;
        let mut context = Context::new(Instruction::fixed("You are a test."));
        context.push(message);
        (scope, context)
    }

    /// The codec for a model server; replies have at most `max_tokens`.
    #[must_use]
    pub fn provider(&self, server: &ModelServer, wire: Wire, max_tokens: u32) -> Arc<Codec> {
        bailey_llm::provider(Endpoint {
            provider: "test".into(),
            wire,
            base_url: server.base_url(),
            model: "model".into(),
            key: None,
            max_tokens,
            window_tokens: None,
            prices: Vec::new(),
            takes_images: false,
            parameters: std::collections::BTreeMap::new(),
        })
    }

    /// Every entry of the journal.
    ///
    /// # Panics
    /// When it cannot be read.
    pub async fn entries(&self) -> Vec<Recorded> {
        self.journal.entries(Query::default()).await.unwrap()
    }

    /// The type names of the session's entries.
    ///
    /// # Panics
    /// When the journal cannot be read.
    pub async fn trail(&self) -> Vec<&'static str> {
        let query = Query { session: Some(self.session), ..Query::default() };
        let entries = self.journal.entries(query).await.unwrap();
        entries.iter().map(|recorded| recorded.entry.fact.name()).collect()
    }

    /// The facts of this type name.
    ///
    /// # Panics
    /// When the journal cannot be read.
    pub async fn facts(&self, name: &str) -> Vec<Fact> {
        let entries = self.entries().await;
        entries.into_iter().map(|recorded| recorded.entry.fact).filter(|fact| fact.name() == name).collect()
    }

    /// All entries that led to what has these labels: its sources, and theirs.
    ///
    /// # Panics
    /// When the journal cannot be read.
    pub async fn led_to(&self, labels: &Labels) -> BTreeSet<Seq> {
        let entries = self.entries().await;
        let of = |seq: Seq| entries.iter().find(|recorded| recorded.entry.seq == seq);
        let mut found = BTreeSet::new();
        let mut next = Vec::from_iter(labels.sources.clone());
        while let Some(seq) = next.pop() {
            if found.insert(seq) {
                let labels = of(seq).and_then(|recorded| labels_of(&recorded.entry.fact));
                next.extend(labels.into_iter().flat_map(|labels| &labels.sources));
            }
        }
        found
    }

    /// What front ends were told since the last look.
    pub fn happened(&mut self) -> Vec<Happening> {
        let mut all = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            all.push(event.happening);
        }
        all
    }
}

static NOTHING: std::sync::LazyLock<Vault> = std::sync::LazyLock::new(Vault::default);

fn config(setup: &Setup) -> Config {
    Config {
        user_home: "/home/ann".into(),
        bailey_home: "/home/ann/.bailey".into(),
        programs: vec!["/usr/bin/bailey".into()],
        question_lasts: Duration::from_secs(300),
        room_waits: Duration::from_millis(300),
        budgets: Budgets { session: Bound::tokens(setup.limit), ..setup.budgets.clone() },
        grace: setup.grace,
        escalation: Escalation::default(),
        narrowing: setup.narrowing.clone(),
        calls: setup.profile.1,
        draw: |question| Card {
            title: question.action.kind().name().into(),
            reasons: question.reasons.to_vec(),
            parts: vec![CardPart::Field {
                name: "target".into(),
                value: question.action.target(),
                brief: true,
            }],
            caveats: vec![format!("{} outputs were seen", question.seen.len())],
            once: false,
            origins: Vec::new(),
            pattern: None,
            reasoned: false,
            whole: true,
        },
        project: None,
    }
}

/// A call of the tool of this name.
#[must_use]
pub fn tool_call(id: &str, name: &str, arguments: &serde_json::Value) -> ToolCall {
    ToolCall { id: CallId(id.into()), name: name.into(), arguments: arguments.to_string() }
}

/// The labels of what an entry brought in.
fn labels_of(fact: &Fact) -> Option<&Labels> {
    match fact {
        Fact::Accepted { labels, .. }
        | Fact::Pinned { labels }
        | Fact::Guide { labels, .. }
        | Fact::Delegated { labels, .. }
        | Fact::Reply { labels, .. }
        | Fact::Observation { labels, .. }
        | Fact::Summary { labels, .. } => Some(labels),
        _ => None,
    }
}
