//! Small tools, and short ways to use a bench.

use bailey_kernel::{
    CallOutcome, Claims, Conclusion, Context, Observation, Output, Plan, Redactor, Scope, Tool,
};
use bailey_protocol::{Action, ApprovalId, Command, Limits, Report, Status, ToolCall, ToolSpec};
use bailey_testkit::{Bench, tool_call};
use serde_json::json;
use std::{collections::BTreeMap, sync::Mutex};

/// A rule that asks before commands that begin with `deploy`.
pub(crate) const ASK_DEPLOY: &str = r#"
[[rule]]
name = "ask-deploy"
answer = "review"
reason = "deployments are looked at"
match = { command = "deploy" }
"#;

type MakePlan = Box<dyn Fn(&[Output]) -> Plan + Send + Sync>;

/// A tool that plans what a closure says. It keeps what it concluded from, so that tests can see it.
pub(crate) struct Toy {
    plan: MakePlan,
    says: Option<String>,
    pub(crate) brought: Mutex<Vec<Vec<u8>>>,
}

impl Toy {
    pub(crate) fn new(plan: impl Fn(&[Output]) -> Plan + Send + Sync + 'static) -> Self {
        Self { plan: Box::new(plan), says: None, brought: Mutex::default() }
    }

    /// It answers this, whatever came of it.
    pub(crate) fn saying(self, says: &str) -> Self {
        Self { says: Some(says.into()), ..self }
    }

    /// One action and nothing else.
    pub(crate) fn doing(action: Action) -> Self {
        Self::new(move |_| Plan::Act(action.clone()))
    }

    pub(crate) fn run(line: &str) -> Self {
        Self::doing(command(line))
    }

    pub(crate) fn read(path: &str) -> Self {
        Self::doing(Action::Read { path: path.into() })
    }
}

impl Tool for Toy {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "toy".into(),
            aliases: Vec::new(),
            summary: "A toy.".into(),
            description: String::new(),
            schema: json!({ "type": "object" }),
        }
    }

    fn claims(&self, _: &ToolCall) -> Claims {
        Claims::default()
    }

    fn plan(&self, _: &ToolCall, seen: &[Output]) -> Plan {
        (self.plan)(seen)
    }

    fn conclude(&self, _: &ToolCall, _: &[Output], output: &Output, _: &Redactor) -> Conclusion {
        let bytes = content(output);
        self.brought.lock().unwrap().push(bytes.clone());
        let ok = output.outcome().status == Status::Done;
        let text = match &output.outcome().status {
            Status::Failed { reason } => format!("failed: {reason}"),
            _ => self.says.clone().unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned()),
        };
        Conclusion { ok, summary: "a toy".into(), text }
    }
}

/// The bytes that an output brought.
pub(crate) fn content(output: &Output) -> Vec<u8> {
    match output.report() {
        Report::Exec(report) => report.stdout.head.0.clone(),
        Report::File(file) => file.content.0.clone(),
        _ => Vec::new(),
    }
}

pub(crate) fn command(line: &str) -> Action {
    Action::Exec(Command {
        argv: line.split(' ').map(str::to_owned).collect(),
        cwd: Bench::WORKSPACE.into(),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    })
}

pub(crate) fn call(id: &str) -> ToolCall {
    tool_call(id, "toy", &json!({}))
}

/// Runs a tool to its observation.
pub(crate) async fn done(bench: &Bench, scope: &Scope, context: &Context, tool: &Toy) -> Observation {
    match bench.kernel.call(scope, &context.provenance(), tool, &call("c1")).await.unwrap() {
        CallOutcome::Done(observation) => observation,
        other => panic!("{other:?}"),
    }
}

/// Runs a tool to its question.
pub(crate) async fn asked(bench: &Bench, scope: &Scope, context: &Context, tool: &Toy) -> ApprovalId {
    match bench.kernel.call(scope, &context.provenance(), tool, &call("c1")).await.unwrap() {
        CallOutcome::Waiting(id) => id,
        other => panic!("it was not asked: {other:?}"),
    }
}

/// How many intents have no outcome.
pub(crate) async fn open_intents(bench: &Bench) -> usize {
    // One look at all of it: between two, another effect may begin and end.
    let trail = bench.trail().await;
    let count = |name: &str| trail.iter().filter(|fact| **fact == name).count();
    count("intent") - count("outcome")
}

/// From now on the journal takes no entry of these types, as on a full disk.
pub(crate) async fn refuse_entries(bench: &Bench, when: &str) {
    let sql = format!(
        "CREATE TRIGGER full BEFORE INSERT ON entry WHEN {when} BEGIN SELECT RAISE(ABORT, 'no space left'); END"
    );
    raw(bench).write(bailey_store::Grade::Full, move |tx| Ok(tx.execute_batch(&sql)?)).await.unwrap();
}

/// The journal's file, past the journal.
pub(crate) fn raw(bench: &Bench) -> bailey_store::Store {
    let migrations = [bailey_store::Migration { version: bailey_journal::SCHEMA_VERSION, sql: "" }];
    bailey_store::Store::open(&bench.database(), &migrations).unwrap()
}
