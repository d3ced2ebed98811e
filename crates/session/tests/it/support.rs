//! An open session.

use bailey_agent::{Loop, Models, Patience, Retry};
use bailey_journal::Journal;
use bailey_kernel::{Instruction, Standpoint};
use bailey_llm::Wire;
use bailey_protocol::{Answer, Event, Happening, Inbound, Limits, Op, SessionId};
use bailey_session::{Host, HostError, Opening, Parts};
use bailey_testkit::{Bench, ModelServer, Setup, World};
use bailey_tools::{ToolConfig, Toolbox};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::sync::mpsc;

pub(crate) const ASK_DEPLOY: &str = r#"
[[rule]]
name = "ask-deploy"
answer = "review"
reason = "deployments are looked at"
match = { action = "exec", command = "deploy" }
"#;

/// The front end's side, and what stands behind the host.
pub(crate) struct Front {
    pub(crate) ops: mpsc::Sender<Op>,
    pub(crate) heard: mpsc::Receiver<Op>,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) world: Arc<World>,
    pub(crate) journal: Journal,
}

/// Opens the bench's session; its folder is `folder`.
pub(crate) async fn open(
    bench: Bench,
    server: &ModelServer,
    opening: fn(SessionId) -> Opening,
    folder: PathBuf,
) -> Result<(Host, Front, TempDir), HostError> {
    let provider = bench.provider(server, Wire::Anthropic, 1000);
    let Bench { journal, kernel, registrar, session, world, events, sender, home, .. } = bench;
    let tools = Toolbox::built_in(ToolConfig {
        workspace: Bench::WORKSPACE.into(),
        start: Bench::WORKSPACE.into(),
        shell: "/bin/sh".into(),
        limits: Limits::default(),
        max_wall_ms: 3_600_000,
    });
    let parts = Parts {
        agent: None,
        confined: None,
        kernel,
        registrar,
        tools: tools.into(),
        models: Some(Models::only(provider)),
        choose: None,
        brain: Arc::new(Loop::default()),
        retry: Retry { attempts: 1, first_pause: Duration::ZERO, longest_pause: Duration::ZERO },
        instruction: Instruction::fixed("You are a test."),
        own: None,
        events: sender,
        workspace: Bench::WORKSPACE.into(),
        standpoint: Standpoint::default(),
        folder,
        backend: None,
        command: "bailey-test".into(),
        unattended: false,
        person: None,
        commits_differ: None,
        patience: Patience { call: Duration::from_secs(60), at_end: true },
    };
    let host = Host::open(parts, opening(session)).await?;
    let (ops, heard) = mpsc::channel(100);
    Ok((host, Front { ops, heard, events, world, journal }, home))
}

/// A session with one bench behind it, opened.
pub(crate) async fn session(server: &ModelServer) -> (Host, Front, TempDir) {
    let bench = Bench::new(Setup::default().rule(ASK_DEPLOY).model(server)).await;
    let folder = bench.home().to_owned();
    // The bench has put the session into the journal.
    open(bench, server, Opening::Resume, folder).await.unwrap()
}

pub(crate) fn say(text: &str) -> Inbound {
    text.into()
}

impl Front {
    /// Waits for an event of a kind.
    pub(crate) async fn wait<T>(
        events: &mut mpsc::Receiver<Event>,
        wanted: impl Fn(&Happening) -> Option<T>,
    ) -> T {
        loop {
            let event = events.recv().await.unwrap();
            if let Some(found) = wanted(&event.happening) {
                return found;
            }
        }
    }

    /// Answers the next card.
    pub(crate) async fn answer_next(
        events: &mut mpsc::Receiver<Event>,
        ops: &mpsc::Sender<Op>,
        answer: Answer,
    ) {
        let asked = |happening: &Happening| match happening {
            Happening::Ask { id, .. } => Some(*id),
            _ => None,
        };
        let id = Self::wait(events, asked).await;
        ops.send(Op::Answer { id, answer, why: "a test".into(), by: None }).await.unwrap();
    }
}
