//! The client's side of the protocol.

#![expect(deprecated, reason = "roots are deprecated in the newest revision, and servers still ask for them")]

use crate::{
    content,
    lines::{Allowance, CALL_BYTES_MAX, Lines, MESSAGE_BYTES_MAX},
};
use bailey_kernel::BoxFuture;
use bailey_peers::{Conversation, Described, Language, NAME_BYTES_MAX, Shelf, Streams, TOOLS_MAX};
use bailey_protocol::{CallReport, ToolEffect, WsPath};
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ListRootsResult,
        PaginatedRequestParams, ProtocolVersion, Root, Tool,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
    },
    transport::async_rw::AsyncRwTransport,
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The most pages of a list of tools.
const PAGES_MAX: usize = 64;

/// Bailey as a client of MCP servers.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// The workspace, where the server sees it.
    root: Option<WsPath>,
}

impl Client {
    /// A client that tells a server of this workspace; `None` where the server does not see it.
    #[must_use]
    pub fn new(root: Option<WsPath>) -> Self {
        Self { root }
    }
}

impl Language for Client {
    fn begin(
        &self,
        streams: Streams,
        shelf: Arc<Shelf>,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, String>> {
        Box::pin(async move {
            let (allowance, is_changed) = (Arc::<Allowance>::default(), Arc::<AtomicBool>::default());
            allowance.begin();
            let (read, write) = streams.into_parts();
            let transport = AsyncRwTransport::new_client(Lines::new(read, allowance.clone()), write)
                .with_max_line_length(MESSAGE_BYTES_MAX);
            let handler = Handler { root: self.root.clone(), is_changed: is_changed.clone() };
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            };
            let server = handler.serve_with_lifecycle(transport, lifecycle).await;
            let server = server.map_err(|error| told(&allowance, &error.to_string()))?;
            let mut session = Session { server, shelf, names: BTreeMap::new(), is_changed, allowance };
            session.list().await?;
            Ok(Box::new(session) as Box<dyn Conversation>)
        })
    }
}

/// Why a conversation is over.
fn told(allowance: &Allowance, error: &str) -> String {
    match allowance.is_over() {
        true => format!(
            "it wrote a message of more than {} MiB, or more than {} MiB in one call",
            MESSAGE_BYTES_MAX >> 20,
            CALL_BYTES_MAX >> 20
        ),
        false => error.to_owned(),
    }
}

/// Answers a server's own requests and notifications.
struct Handler {
    root: Option<WsPath>,
    is_changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = self.root.is_some().then(Default::default);
        ClientConfig::new(capabilities, Implementation::new("bailey", env!("CARGO_PKG_VERSION")))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let uri = |root: &WsPath| Root::new(format!("file://{}", root.0));
        Ok(ListRootsResult::new(self.root.iter().map(uri).collect()))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.is_changed.store(true, Ordering::Release);
    }
}

/// A conversation with one server.
struct Session {
    server: RunningService<RoleClient, Handler>,
    shelf: Arc<Shelf>,
    /// The server's names of its tools, by the names that models are told.
    names: BTreeMap<String, String>,
    is_changed: Arc<AtomicBool>,
    allowance: Arc<Allowance>,
}

impl Session {
    /// Reads the server's tools. Those that no peer can have are left out.
    async fn list(&mut self) -> Result<(), String> {
        self.is_changed.store(false, Ordering::Release);
        self.allowance.begin();
        self.names.clear();
        let (mut described, mut cursor) = (Vec::new(), None);
        let most = NAME_BYTES_MAX.saturating_sub(self.shelf.peer().len() + 1);
        for _ in 0..PAGES_MAX {
            let mut page = PaginatedRequestParams::default();
            page.cursor = cursor.take();
            let listed = self.server.list_tools(Some(page)).await;
            let listed = listed.map_err(|error| told(&self.allowance, &error.to_string()))?;
            for tool in listed.tools {
                let name = plain(&tool.name, most);
                let own = tool.name.to_string();
                let tool = of(name.clone(), tool);
                // Of two tools with one name the first stays.
                if !self.names.contains_key(&name) && described.len() < TOOLS_MAX && self.shelf.takes(&tool) {
                    self.names.insert(name, own);
                    described.push(tool);
                }
            }
            cursor = listed.next_cursor;
            if cursor.is_none() || described.len() == TOOLS_MAX {
                break;
            }
        }
        self.shelf.offer(described).map_err(|why| format!("its tools are not taken: {why}"))
    }

    /// The tool as the server described it last.
    fn described(&self, tool: &str) -> Option<Described> {
        self.shelf.seen().into_iter().find(|seen| seen.name == tool)
    }
}

impl Conversation for Session {
    fn call<'a>(
        &'a mut self,
        tool: &'a str,
        args: Map<String, Value>,
    ) -> BoxFuture<'a, Result<CallReport, String>> {
        Box::pin(async move {
            // The call was decided by the description of before, with its hint.
            let decided = self.described(tool);
            if self.is_changed.load(Ordering::Acquire) {
                self.list().await?;
            }
            let is_same = self.shelf.offers(tool) && self.described(tool) == decided;
            let Some(name) = self.names.get(tool).filter(|_| is_same) else {
                return Ok(failed(format!(
                    "the tool `{tool}` has changed, so it was not called: look at it again"
                )));
            };
            self.allowance.begin();
            let request = CallToolRequestParams::new(name.clone()).with_arguments(args);
            let called = self.server.call_tool(request).await;
            match called {
                Ok(result) => Ok(content::report(result)),
                Err(ServiceError::McpError(error)) => Ok(failed(error.message.into_owned())),
                Err(error) => Err(told(&self.allowance, &error.to_string())),
            }
        })
    }
}

fn failed(text: String) -> CallReport {
    CallReport { ok: false, text, touched: Vec::new() }
}

/// A name that every provider takes.
pub(crate) fn plain(name: &str, most: usize) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).take(most).collect()
}

pub(crate) fn of(name: String, tool: Tool) -> Described {
    let hint = hint(&tool);
    let description = tool.description.or(tool.title.map(Into::into)).unwrap_or_default().into_owned();
    Described { name, description, schema: Value::Object((*tool.input_schema).clone()), hint }
}

/// The effect that a tool's annotations tell, where it has some. By the protocol a tool that writes destroys,
/// unless it says that it does not.
fn hint(tool: &Tool) -> Option<ToolEffect> {
    let hints = tool.annotations.as_ref()?;
    match (hints.read_only_hint, hints.destructive_hint) {
        (Some(true), _) => Some(ToolEffect::Read),
        (_, Some(false)) => Some(ToolEffect::Write),
        (_, Some(true)) | (Some(false), None) => Some(ToolEffect::Destructive),
        (None, None) => None,
    }
}
