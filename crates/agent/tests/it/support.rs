//! Hands with everything behind them.

use bailey_agent::{
    Brain as _, CallsLeft, Ceiling, Guides, Hands, Loop, Models, News, Patience, PendingCalls, Retry,
    TurnEnd, Warned,
};
use bailey_kernel::{Context, Observation, Refused, Segment};
use bailey_llm::Wire;
use bailey_protocol::{Limits, ToolCall};
use bailey_testkit::{Bench, ModelServer, Reply, Setup, tool_call};
use bailey_tools::{ToolConfig, Toolbox};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// A rule that asks before commands that begin with `deploy`. A shell line hides its program, so tests that
/// mean this rule give `argv`.
pub(crate) const ASK_DEPLOY: &str = r#"
[[rule]]
name = "ask-deploy"
answer = "review"
reason = "deployments are looked at"
match = { action = "exec", command = "deploy" }
"#;

pub(crate) struct Table {
    pub(crate) bench: Bench,
    pub(crate) server: Arc<ModelServer>,
    pub(crate) hands: Hands,
    pub(crate) context: Context,
}

/// A session in which one message was said.
pub(crate) async fn table(script: impl IntoIterator<Item = Reply>) -> Table {
    table_with(script, Setup::default()).await
}

pub(crate) async fn table_with(script: impl IntoIterator<Item = Reply>, setup: Setup) -> Table {
    table_at(ModelServer::start(script), setup).await
}

pub(crate) async fn table_at(server: ModelServer, setup: Setup) -> Table {
    let bench = Bench::new(setup.model(&server)).await;
    let (scope, context) = bench.context("please do it").await;
    let hands = hands(&bench, &server, Wire::Anthropic, scope);
    Table { bench, server: Arc::new(server), hands, context }
}

pub(crate) fn hands(bench: &Bench, server: &ModelServer, wire: Wire, scope: bailey_kernel::Scope) -> Hands {
    Hands {
        kernel: bench.kernel.clone(),
        scope,
        tools: toolbox().into(),
        models: Models::only(bench.provider(server, wire, 1000)),
        retry: Retry {
            attempts: 3,
            first_pause: Duration::from_millis(1),
            longest_pause: Duration::from_secs(60),
        },
        patience: Patience { call: Duration::from_secs(60), at_end: true },
        waiting: PendingCalls::default(),
        news: News::default(),
        guides: Guides::default(),
        ceiling: Ceiling::default(),
        warned: Warned::default(),
        calls_left: CallsLeft::default(),
    }
}

pub(crate) fn toolbox() -> Toolbox {
    Toolbox::built_in(ToolConfig {
        workspace: Bench::WORKSPACE.into(),
        start: Bench::WORKSPACE.into(),
        shell: "/bin/sh".into(),
        limits: Limits::default(),
        max_wall_ms: 3_600_000,
    })
}

impl Table {
    pub(crate) async fn turn(&mut self) -> Result<TurnEnd, Refused> {
        Loop::default().turn(&self.hands, &mut self.context).await
    }

    /// Runs calls as those of one reply.
    pub(crate) async fn calls<const N: usize>(&self, calls: [(&str, &str, Value); N]) -> Vec<Observation> {
        let calls: Vec<ToolCall> =
            calls.iter().map(|(id, name, arguments)| tool_call(id, name, arguments)).collect();
        self.hands.calls(&self.context, &calls, 99).await.unwrap()
    }

    /// The texts of a request's messages, in order.
    pub(crate) fn request(&self, number: usize) -> String {
        self.server.requests()[number].json()["messages"].to_string()
    }
}

/// Says something in the middle of a turn, as the session host does.
pub(crate) async fn interject(bench: &Bench, news: &News, text: &str) {
    let inbound = text.into();
    let (_, message, _) = bench.kernel.accept(&bench.connection, inbound).await.unwrap();
    news.push(message);
}

/// Every call of every reply has exactly one result, before the next reply.
pub(crate) fn assert_every_call_has_its_result(context: &Context) {
    let mut open: Vec<String> = Vec::new();
    for segment in context.segments() {
        match segment {
            Segment::User(_) | Segment::Note(_) | Segment::Guide(_) | Segment::Late(_) => {}
            Segment::Reply(reply) => {
                assert_eq!(open, Vec::<String>::new(), "calls without a result before the next reply");
                open = reply.answer().calls.iter().map(|call| call.id.0.clone()).collect();
            }
            Segment::Observation(seen) => {
                let place = open.iter().position(|id| *id == seen.call().0);
                open.remove(place.unwrap_or_else(|| panic!("a second result of {}", seen.call())));
            }
        }
    }
    assert_eq!(open, Vec::<String>::new(), "calls without a result at the end");
}

/// The observations of a context, by call.
pub(crate) fn observations(context: &Context) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for segment in context.segments() {
        if let Segment::Observation(seen) = segment {
            found.push((seen.call().0.as_str(), seen.text()));
        }
    }
    found
}
