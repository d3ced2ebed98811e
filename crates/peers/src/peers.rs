//! The peers of a session: the executor of their calls, and the source of their tools.

use crate::{
    Described,
    desk::{CANCELLED, Failed},
    runner::Runner,
};
use bailey_kernel::{BoxFuture, Executor, Io, Output, Permit, ResolveError, Route, Seal, program::Programs};
use bailey_protocol::{Action, CallReport, Digest, Isolation, Outcome, Report, SessionId, Status, ToolUse};
use bailey_tools::{PeerTool, ToolSource};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout};

/// How long the first step of a session waits for the tools of peers that are being started.
const START: Duration = Duration::from_secs(15);

/// A peer in this process.
pub trait Peer: Send + Sync + 'static {
    /// The tools that it has now.
    fn tools(&self) -> Vec<PeerTool>;

    /// Whether its tools are offered beside the built-in ones. Those of a built-in tool's executor are not.
    fn is_offered(&self) -> bool {
        true
    }

    /// Performs a call of one of its tools. The arguments are a JSON object.
    ///
    /// # Errors
    /// Why it was not done.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        args: Map<String, Value>,
        io: Io,
    ) -> BoxFuture<'a, Result<CallReport, String>>;
}

/// The peers of a session. They may come and go while it lives.
pub struct Peers {
    seal: Seal,
    runner: Arc<Runner>,
    here: RwLock<BTreeMap<String, Arc<dyn Peer>>>,
    /// Whether the processes have been started, or could not be.
    settled: watch::Sender<bool>,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

impl Peers {
    /// The peers that are processes of this runner, by permits of the journal with this seal.
    #[must_use]
    pub fn new(seal: Seal, runner: Arc<Runner>) -> Self {
        let settled = watch::Sender::new(runner.peers().is_empty());
        Self { seal, runner, here: RwLock::default(), settled }
    }

    /// Whether there is a process peer of this name.
    #[must_use]
    pub fn has(&self, peer: &str) -> bool {
        self.runner.shelf(peer).is_some()
    }

    /// The tools that a process peer described last.
    #[must_use]
    pub fn seen(&self, peer: &str) -> Vec<Described> {
        self.runner.shelf(peer).map(|shelf| shelf.seen()).unwrap_or_default()
    }

    /// Says that every process was started, or could not be.
    pub fn settle(&self) {
        self.settled.send_replace(true);
    }

    /// Adds a peer in this process. One of the same name leaves.
    pub fn add(&self, name: String, peer: Arc<dyn Peer>) {
        self.here.write().unwrap_or_else(PoisonError::into_inner).insert(name, peer);
    }

    /// Removes a peer in this process. Its calls fail from now on.
    pub fn remove(&self, name: &str) {
        self.here.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn here(&self, name: &str) -> Option<Arc<dyn Peer>> {
        self.here.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    async fn call(&self, tool: ToolUse, io: Io) -> Result<CallReport, String> {
        let peer = tool.peer.as_deref().ok_or("the call names no peer")?;
        let args =
            serde_json::from_str::<Map<String, Value>>(&tool.args).map_err(|error| error.to_string())?;
        let gone = || format!("the peer `{peer}` has no tool `{}` any more", tool.name);
        if let Some(here) = self.here(peer) {
            let tools = here.tools();
            unchanged(&tool, tools.iter().find(|now| now.spec.name == tool.name).ok_or_else(gone)?)?;
            return here.call(&tool.name, args, io).await;
        }
        let shelf = self.runner.shelf(peer).ok_or_else(|| format!("there is no peer `{peer}` any more"))?;
        if !self.runner.runs(peer) {
            let started = tokio::select! {
                started = io.door.start(peer) => started,
                () = io.cancel.cancelled() => return Err(CANCELLED.into()),
            };
            started.map_err(|why| format!("the peer `{peer}` did not start: {why}"))?;
        }
        let tools = shelf.tools();
        let now = tools.iter().find(|now| now.spec.name == tool.name);
        let now = now.ok_or_else(|| match shelf.has_changed(&tool.name) {
            true => changed(peer, &tool.name),
            false => gone(),
        })?;
        unchanged(&tool, now)?;
        let name = tool.name.strip_prefix(peer).and_then(|name| name.strip_prefix('.')).ok_or_else(gone)?;
        match self.runner.call(peer, (name, args), io.cancel.clone()).await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(Failed { told, .. })) if told.starts_with(CANCELLED) => Err(told),
            Ok(Err(Failed { told, .. })) => Err(format!(
                "the peer `{peer}` failed: {told}; what it was to do may have been done: look before you do it again"
            )),
            Err(_) => Err(format!("the peer `{peer}` ended before it was called")),
        }
    }
}

/// Why a tool is not called that is another now than the one that the owner agreed to.
fn changed(peer: &str, tool: &str) -> String {
    format!(
        "`{peer}` describes its tool `{tool}` in another way now, or has it no more, so the tool is not \
         called: the owner looks at the difference with `bailey mcp approve {peer}`"
    )
}

/// Checks that the tool is as the model was told.
fn unchanged(tool: &ToolUse, now: &PeerTool) -> Result<(), String> {
    if tool.pinned == Some(now.spec.digest()) && tool.effect == Some(now.effect) {
        return Ok(());
    }
    Err(format!("the tool `{}` has changed since you were told of it: look at it again", tool.name))
}

impl ToolSource for Peers {
    fn tools(&self) -> BoxFuture<'_, Vec<PeerTool>> {
        Box::pin(async {
            // Without an answer in time, their tools come with a later step.
            timeout(START, self.settled.subscribe().wait_for(|settled| *settled)).await.ok();
            let here = self.here.read().unwrap_or_else(PoisonError::into_inner).clone();
            let here = here.values().filter(|peer| peer.is_offered()).flat_map(|peer| peer.tools());
            here.chain(self.runner.shelves().flat_map(|shelf| shelf.tools().to_vec())).collect()
        })
    }
}

impl Executor for Peers {
    fn routes(&self) -> Vec<Route> {
        vec![Route::Peer]
    }

    /// A call names no path of the workspace.
    fn resolve<'a>(&'a self, _: SessionId, action: Action) -> BoxFuture<'a, Result<Action, ResolveError>> {
        Box::pin(async move { Ok(action) })
    }

    /// The program of a process peer: a yes for its call holds as long as it is the same.
    fn named<'a>(
        &'a self,
        _: SessionId,
        action: &'a Action,
        _: &'a Isolation,
    ) -> BoxFuture<'a, Result<Option<Digest>, ResolveError>> {
        let peer = if let Action::Tool(tool) = action { tool.peer.as_deref() } else { None };
        let declared = peer.and_then(|peer| self.runner.declared(peer));
        Box::pin(async move { Ok(declared) })
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let tool = match permit.redeem(&self.seal).map(|redeemed| redeemed.effect.action) {
                Ok(Action::Tool(tool)) => tool,
                Ok(other) => {
                    return Output::failed(format!("`{}` is no call of a peer", other.kind().name()));
                }
                Err(error) => return Output::failed(error.to_string()),
            };
            let (begin, cancel) = (Instant::now(), io.cancel.clone());
            let called = self.call(tool, io).await;
            let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            let (status, report) = match called {
                Ok(report) => (Status::Done, Report::Called(report)),
                Err(_) if cancel.is_cancelled() => (Status::Cancelled, Report::Nothing),
                Err(reason) => (Status::Failed { reason }, Report::Nothing),
            };
            Output::new(Outcome { status, enforced: None, duration_ms, report })
        })
    }
}
