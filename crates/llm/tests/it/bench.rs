//! A conversation through a real kernel and journal, with one small tool behind it.

use bailey_egress::{Config, Egress, Endpoint as Allowed};
use bailey_journal::{Journal, NewSession, SystemClock};
use bailey_kernel::{
    Bound, BoxFuture, Budgets, CallOutcome, Claims, Completion, Conclusion, Connection, Context, Executor,
    Instruction, Io, Kernel, ModelError, Output, Permit, Plan, Refused, ResolveError, Route, Seal, Segment,
    Tool,
};
use bailey_llm::{Codec, Endpoint, Wire, provider};
use bailey_policy::{DEFAULT_RULES, Policy, built_in_rules, file};
use bailey_protocol::{
    Action, Blob, Card, FileReport, Outcome, Report, SessionId, Status, ToolCall, ToolSpec, WsPath,
};
use bailey_secrets::{Redactor, Secret, Vault};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

pub(crate) const KEY: &str = "sk-test-7f3a9c51d2e84b60";

pub(crate) struct Bench {
    pub(crate) kernel: Kernel,
    pub(crate) context: Context,
    connection: Connection,
    _home: tempfile::TempDir,
}

/// A codec for a server on loopback.
pub(crate) fn codec(name: &str, wire: Wire, base_url: &str) -> Arc<Codec> {
    provider(Endpoint {
        provider: name.into(),
        wire,
        base_url: base_url.into(),
        model: format!("{name}-1"),
        key: Some("TEST_API_KEY".into()),
        max_tokens: 256,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    })
}

/// The real network door to this server.
pub(crate) fn door(url: &str, seal: Seal) -> Arc<dyn Executor> {
    let mut vault = Vault::default();
    vault.insert("TEST_API_KEY".into(), Secret::new(KEY.into()));
    let endpoints =
        vec![Allowed { url: url.into(), secrets: vec!["TEST_API_KEY".into()], first_byte_timeout: None }];
    Arc::new(Egress::new(Config { endpoints, ..Config::default() }, Arc::new(vault), seal).unwrap())
}

impl Bench {
    pub(crate) async fn new(network: impl FnOnce(Seal) -> Arc<dyn Executor>, workspace: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let redactor = Redactor::new(&Vault::default());
        let path = home.path().join("journal.db");
        let (journal, mint) = Journal::open(&path, redactor, Arc::new(SystemClock)).await.unwrap();
        let rules = file::parse("default.toml", DEFAULT_RULES, file::Format::Toml).unwrap().rules;
        let config = bailey_kernel::Config {
            user_home: "/home/nobody".into(),
            bailey_home: home.path().to_string_lossy().into_owned(),
            programs: vec![],
            question_lasts: Duration::from_secs(300),
            room_waits: Duration::from_millis(300),
            budgets: Budgets { session: Bound::tokens(100_000_000), ..Budgets::default() },
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
        let new = NewSession {
            agent: None,
            confined: None,
            workspace: workspace.into(),
            principal: "owner".into(),
            model: "p/m".into(),
        };
        journal.open_session(session, new).await.unwrap();
        let (kernel, registrar) =
            Kernel::new(mint, Policy::new(built_in_rules(), rules), config).await.unwrap();
        let seal = journal.seal();
        registrar.register(vec![network(seal), Arc::new(OneFile { seal })]);
        let (events, _) = mpsc::channel(1);
        let connection = registrar.connect(session, WsPath::from(workspace), events);
        let instruction = Instruction::fixed("be brief").with_fact("workspace", workspace);
        Self { kernel, context: Context::new(instruction), connection, _home: home }
    }

    pub(crate) async fn say(&mut self, text: &str) {
        let inbound = text.into();
        let (_, message, _) = self.kernel.accept(&self.connection, inbound).await.unwrap();
        self.context.push(message);
    }

    /// One model call, and all tool calls of its reply.
    pub(crate) async fn ask(&mut self, provider: &Codec) -> Result<Completion, ModelError> {
        let scope = self.kernel.turn_of(&self.connection);
        let tool = ReadFile { workspace: self.connection_workspace() };
        let reply = match self.kernel.converse(&scope, &self.context, provider, &[tool.spec()]).await {
            Ok(reply) => reply,
            Err(Refused::Model(error)) => return Err(error),
            Err(other) => panic!("{other}"),
        };
        let answer = reply.answer().clone();
        self.context.push(reply);
        for call in &answer.calls {
            let step = self.kernel.call(&scope, &self.context.provenance(), &tool, call).await.unwrap();
            let CallOutcome::Done(observation) = step else { panic!("nobody is asked here") };
            self.context.push(Segment::Observation(observation));
        }
        Ok(answer)
    }

    fn connection_workspace(&self) -> String {
        self.kernel.turn_of(&self.connection).workspace().0.clone()
    }
}

/// A tool that reads `a.txt`, and refuses anything else.
struct ReadFile {
    workspace: String,
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fs.read".into(),
            aliases: vec!["fs_read".into()],
            summary: "Reads a file.".into(),
            description: "Give its path.".into(),
            schema: serde_json::json!({
                "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"],
            }),
        }
    }

    fn claims(&self, _: &ToolCall) -> Claims {
        Claims::default()
    }

    fn plan(&self, call: &ToolCall, _: &[Output]) -> Plan {
        let path = format!("{}/a.txt", self.workspace);
        if call.arguments.contains("a.txt") {
            Plan::Act(Action::Read { path: WsPath(path) })
        } else {
            Plan::Refuse(format!("there is only `{path}`"))
        }
    }

    fn conclude(&self, _: &ToolCall, _: &[Output], output: &Output, _: &Redactor) -> Conclusion {
        let text = match output.report() {
            Report::File(file) => file.content.lossy().into_owned(),
            _ => "nothing".into(),
        };
        Conclusion { ok: true, summary: "read".into(), text: format!("{}/a.txt:\n{text}", self.workspace) }
    }
}

/// Walls with one file inside.
struct OneFile {
    seal: Seal,
}

impl Executor for OneFile {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Walls]
    }

    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    fn perform<'a>(&'a self, permit: Permit, _: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            permit.redeem(&self.seal).unwrap();
            let content = Blob::from("the answer is 42");
            let report = Report::File(FileReport { size: 16, content, digest: None, mode: 0o644 });
            Output::new(Outcome { status: Status::Done, enforced: None, duration_ms: 0, report })
        })
    }
}
