//! A kernel over a journal in a temporary folder, with the door behind it.

use bailey_egress::{Config, Egress, Endpoint};
use bailey_journal::{Journal, NewSession, SystemClock};
use bailey_kernel::{
    Bound, BoxFuture, Budgets, Chunk, Completion, Connection, Context, Decoder, Delta, Encoded, Executor,
    Instruction, Io, Kernel, ModelError, ModelErrorKind, Output, Permit, Provider, Registrar, ResolveError,
    Route, Scope,
};
use bailey_policy::{DEFAULT_RULES, Policy, built_in_rules, file};
use bailey_protocol::{
    Action, Card, HeaderValue, HttpReport, HttpRequest, Outcome, Report, SessionId, Status, ToolSpec, WsPath,
};
use bailey_secrets::{Redactor, Secret, Vault};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::mpsc;

pub(crate) const KEY: &str = "sk-test-7f3a9c51d2e84b60";

pub(crate) struct Bench {
    pub(crate) kernel: Kernel,
    connection: Connection,
    door: Arc<Watched>,
    _home: tempfile::TempDir,
}

/// What the door did with one request.
pub(crate) struct Seen {
    pub(crate) status: Status,
    /// Whether the report says that anything was sent.
    pub(crate) sent: bool,
    pub(crate) report: HttpReport,
    pub(crate) chunks: Vec<Chunk>,
}

impl Seen {
    pub(crate) fn failure(&self) -> &str {
        match &self.status {
            Status::Failed { reason } => reason,
            other => panic!("expected a failure, got {other:?}"),
        }
    }

    /// The body as it was streamed.
    pub(crate) fn streamed(&self) -> Vec<u8> {
        let body = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Body(bytes) => Some(bytes.to_vec()),
            _ => None,
        });
        body.collect::<Vec<_>>().concat()
    }
}

/// Short times, so that tests are quick.
pub(crate) fn config(urls: &[&str]) -> Config {
    let endpoint = |url: &&str| Endpoint {
        url: (*url).into(),
        secrets: vec!["TEST_API_KEY".into()],
        first_byte_timeout: None,
    };
    Config {
        endpoints: urls.iter().map(endpoint).collect(),
        connect_timeout: Duration::from_millis(600),
        first_byte_timeout: Duration::from_millis(400),
        idle_timeout: Duration::from_millis(400),
        ..Config::default()
    }
}

pub(crate) fn get(url: &str) -> HttpRequest {
    HttpRequest { method: "GET".into(), url: url.into(), headers: vec![], body: "".into() }
}

pub(crate) fn with_header(url: &str, name: &str, value: HeaderValue) -> HttpRequest {
    HttpRequest { headers: vec![(name.into(), value)], ..get(url) }
}

pub(crate) fn key(name: &str) -> HeaderValue {
    HeaderValue::Secret { name: name.into(), prefix: "Bearer ".into() }
}

/// A kernel under these rules, in which nothing is registered yet.
pub(crate) struct Yard {
    pub(crate) kernel: Kernel,
    pub(crate) registrar: Registrar,
    pub(crate) journal: Journal,
    pub(crate) connection: Connection,
    pub(crate) home: tempfile::TempDir,
}

pub(crate) async fn yard(rules: &str) -> Yard {
    let home = tempfile::tempdir().unwrap();
    // This journal's redactor knows no key, so that a key in an effect would be seen in it.
    let redactor = Redactor::new(&Vault::default());
    let path = home.path().join("journal.db");
    let (journal, mint) = Journal::open(&path, redactor, Arc::new(SystemClock)).await.unwrap();
    let rules = file::parse("default.toml", rules, file::Format::Toml).unwrap().rules;
    let kernel_config = bailey_kernel::Config {
        user_home: "/home/nobody".into(),
        bailey_home: home.path().to_string_lossy().into_owned(),
        programs: vec![],
        question_lasts: Duration::from_secs(300),
        room_waits: Duration::from_millis(300),
        budgets: Budgets { session: Bound::tokens(1_000_000), ..Budgets::default() },
        grace: Duration::from_secs(5),
        escalation: bailey_kernel::Escalation::default(),
        narrowing: vec![],
        calls: None,
        draw: |_| Card {
            title: String::new(),
            reasons: vec![],
            parts: vec![],
            origins: vec![],
            caveats: vec![],
            once: false,
            pattern: None,
            reasoned: false,
            whole: true,
        },
        project: None,
    };
    let session = SessionId::new(1, [7; 10]);
    let workspace = WsPath::from("/tmp/project");
    let new = NewSession {
        agent: None,
        confined: None,
        workspace: workspace.clone(),
        principal: "owner".into(),
        model: "p/m".into(),
    };
    journal.open_session(session, new).await.unwrap();
    let (kernel, registrar) =
        Kernel::new(mint, Policy::new(built_in_rules(), rules), kernel_config).await.unwrap();
    let (events, _) = mpsc::channel(1);
    let connection = registrar.connect(session, workspace, events);
    Yard { kernel, registrar, journal, connection, home }
}

impl Bench {
    pub(crate) async fn new(config: Config) -> Self {
        let mut vault = Vault::default();
        vault.insert("TEST_API_KEY".into(), Secret::new(KEY.into()));
        vault.insert("BROKEN_API_KEY".into(), Secret::new(format!("{KEY}\r\nx-evil: 1")));
        let Yard { kernel, registrar, journal, connection, home } = yard(DEFAULT_RULES).await;
        let egress = Egress::new(config, Arc::new(vault), journal.seal()).unwrap();
        let door = Arc::new(Watched { egress, seen: Mutex::default(), gate: Mutex::new(None) });
        registrar.register(vec![door.clone()]);
        Self { kernel, connection, door, _home: home }
    }

    pub(crate) fn scope(&self) -> Scope {
        self.kernel.turn_of(&self.connection)
    }

    pub(crate) async fn send(&self, request: HttpRequest) -> Seen {
        self.send_in(&self.scope(), request).await
    }

    pub(crate) async fn send_in(&self, scope: &Scope, request: HttpRequest) -> Seen {
        let context = Context::new(Instruction::fixed("test"));
        let reply = self.kernel.converse(scope, &context, &Sender(request), &[]).await;
        let refused = reply.map(|_| ()).unwrap_err();
        self.door.seen.lock().unwrap().pop().unwrap_or_else(|| panic!("the door was not reached: {refused}"))
    }

    /// Lets the door's chunks wait until something is sent to the channel.
    pub(crate) fn hold(&self) -> mpsc::Sender<()> {
        let (open, gate) = mpsc::channel(1);
        *self.door.gate.lock().unwrap() = Some(gate);
        open
    }

    pub(crate) async fn journal_text(&self) -> String {
        let lines = self.kernel.journal().export(0, 1000).await.unwrap();
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// The door, with an eye on what it streams and reports.
struct Watched {
    egress: Egress,
    seen: Mutex<Vec<Seen>>,
    gate: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Executor for Watched {
    fn routes(&self) -> Vec<Route> {
        self.egress.routes()
    }

    fn resolve<'a>(
        &'a self,
        session: SessionId,
        action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        self.egress.resolve(session, action)
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let (out, mut chunks) = mpsc::channel(1);
            let gate = self.gate.lock().unwrap().take();
            let collecting = tokio::spawn(async move {
                if let Some(mut gate) = gate {
                    gate.recv().await;
                }
                let mut all = Vec::new();
                while let Some(chunk) = chunks.recv().await {
                    all.push(chunk);
                }
                all
            });
            let output = self.egress.perform(permit, Io { out, cancel: io.cancel, door: io.door }).await;
            let Outcome { status, report, .. } = output.outcome().clone();
            let sent = report != Report::Nothing;
            let report = match report {
                Report::Http(report) => report,
                _ => HttpReport { sent: false, status: 0, headers: vec![], body: "".into() },
            };
            let chunks = collecting.await.unwrap();
            self.seen.lock().unwrap().push(Seen { status, report, sent, chunks });
            output
        })
    }
}

/// A provider that sends one given request and takes no answer.
struct Sender(HttpRequest);

impl Provider for Sender {
    fn name(&self) -> &str {
        "p"
    }

    fn model(&self) -> &str {
        "m"
    }

    fn encode(&self, _: &Context, _: &[ToolSpec]) -> Encoded {
        Encoded { request: self.0.clone(), writes: 0 }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(NoAnswer)
    }
}

struct NoAnswer;

impl Decoder for NoAnswer {
    fn head(&mut self, _: u16, _: &[(String, String)]) {}

    fn push(&mut self, _: &[u8]) -> Vec<Delta> {
        Vec::new()
    }

    fn is_over(&self) -> bool {
        false
    }

    fn end(self: Box<Self>) -> Result<Completion, ModelError> {
        Err(ModelError { kind: ModelErrorKind::Cut, message: "not read".into() })
    }
}
