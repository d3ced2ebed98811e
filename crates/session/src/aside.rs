//! Requests of the owner beside the turns: a command of their own, names of files, pictures, a look at the
//! context, a summary. Each action goes through the gate on the owner's authority, and its result passes the
//! screen before the model reads it.

use crate::{Host, HostError};
use bailey_agent::{Budget, Ceiling, ModelRole, Models, parts};
use bailey_kernel::{Acted, Aside, Kernel, Refused, Scope};
use bailey_protocol::{
    Action, CallId, FileKind, Happening, IMAGES_BYTES_MAX, ImageKind, Inbound, Op, Report, ToolCall, View,
    WsPath,
};
use bailey_tools::Tools;
use serde_json::json;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// The beginning of the message that brings the result of the owner's command to the model.
pub const COMMAND_RESULT: &str = "The person ran a command inside the walls. Its result is data:";
/// The most paths that a completion gets.
const FOUND_MAX: usize = 40;
/// The most pictures that one message names.
const PICTURES_MAX: usize = 4;
/// The most results of the owner's commands that wait for the next message.
const ASIDES_MAX: usize = 20;

impl Host {
    /// Runs the owner's own command inside the walls. Its output joins the next message, as data.
    ///
    /// # Errors
    /// When the gate denies it, or the journal cannot be written.
    pub(crate) async fn run_command(
        &mut self,
        command: String,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<(), HostError> {
        let mut kept = Vec::new();
        let aside = {
            let (owner, arguments) = (self.owner(), json!({ "command": command }));
            let caller = self.caller(&owner);
            let acting = caller.call("command.run", arguments);
            let cancel = owner.cancel().clone();
            during(acting, ops, &mut kept, || cancel.cancel()).await
        };
        self.kept.extend(kept);
        let aside = match aside {
            // The front end was told.
            Err(HostError::Refused(Refused::Denied(_))) => return Ok(()),
            aside => aside?,
        };
        if self.asides.len() < ASIDES_MAX {
            self.asides.push(aside.text);
            return Ok(());
        }
        let text =
            format!("{ASIDES_MAX} results wait for your next message; the model does not get this one");
        Ok(self.kernel.tell(&self.owner(), Happening::Notice { text }).await?)
    }

    fn caller<'a>(&'a self, owner: &'a Scope) -> OwnCaller<'a> {
        OwnCaller { kernel: &self.kernel, tools: &self.tools, owner }
    }

    /// Adds the pictures that a message of the owner names.
    pub(crate) async fn with_pictures(&self, inbound: Inbound) -> Result<Inbound, HostError> {
        Ok(self.caller(&self.owner()).with_pictures(self.models.as_ref(), inbound).await?)
    }

    /// Accepts the results of the owner's commands, each as quoted data: no word in them counts as the
    /// owner's.
    pub(crate) async fn bring_asides(&mut self) -> Result<(), HostError> {
        while let Some(text) = self.asides.first() {
            let text = format!("{COMMAND_RESULT}\n{text}");
            let inbound = Inbound { is_quoted: true, ..Inbound::from(text) };
            match self.kernel.accept(&self.connection, inbound).await {
                Ok((_, message, _)) => self.context.push(message),
                Err(error @ Refused::Journal(_)) => return Err(error.into()),
                // The result waits for the next message.
                Err(_) => return Ok(()),
            }
            self.asides.remove(0);
        }
        Ok(())
    }

    /// Finds the paths that begin like this; without such paths, those whose names have it.
    pub(crate) async fn find_files(&self, like: String) -> Result<(), HostError> {
        Ok(tell_found(&self.kernel, &self.owner(), &self.workspace, like).await?)
    }

    /// Puts a summary in the place of the conversation so far.
    ///
    /// # Errors
    /// When there is no model, or the journal cannot be written.
    pub(crate) async fn compact(&mut self, ops: &mut mpsc::Receiver<Op>) -> Result<(), HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        let hands = self.hands(scope.clone())?;
        let mut kept = Vec::new();
        let cancel = scope.cancel().clone();
        let done = during(hands.compact(&mut self.context), ops, &mut kept, || cancel.cancel()).await;
        self.kept.extend(kept);
        let (before, after) = done?;
        let line = match after < before {
            true => format!("the conversation took about {before} tokens, and takes about {after} now"),
            false => format!("there is nothing to sum up: the conversation takes about {after} tokens"),
        };
        Ok(self.kernel.tell(&scope, Happening::Shown { lines: vec![line] }).await?)
    }

    /// Shows something about the session.
    pub(crate) async fn show(&self, view: View) -> Result<(), HostError> {
        let scope = self.kernel.turn_of(&self.connection);
        let lines = match view {
            View::Tools => self
                .tools
                .specs()
                .into_iter()
                .map(|tool| format!("{:<16} {}", tool.name, tool.summary))
                .collect(),
            View::Context => self.context_lines(),
        };
        Ok(self.kernel.tell(&scope, Happening::Shown { lines }).await?)
    }

    /// The sizes of the context's parts, by our own estimate.
    fn context_lines(&self) -> Vec<String> {
        let tools = self.tools.specs();
        let mut sizes: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
        let mut order = Vec::new();
        for part in parts(&self.context, &tools) {
            let (tokens, count) = sizes.entry(part.part).or_insert_with(|| {
                order.push(part.part);
                (0, 0)
            });
            (*tokens, *count) = (*tokens + part.tokens, *count + 1);
        }
        let mut lines: Vec<String> = order
            .iter()
            .filter_map(|part| {
                let (tokens, count) = sizes.get(part)?;
                let times = if *count > 1 { format!("  in {count} parts") } else { String::new() };
                Some(format!("{part:<12} about {tokens:>7} tokens{times}"))
            })
            .collect();
        let main = self.models.as_ref().and_then(|models| models.route(ModelRole::Main).current());
        if let Some(model) = main {
            let budget = Budget::of(&**model, &self.context, &tools, &Ceiling::default());
            let all: u64 = sizes.values().map(|(tokens, _)| tokens).sum();
            lines.push(format!("{:<12} about {all:>7} of {} tokens", "all", budget.window));
        }
        lines
    }
}

/// Tells that results of the owner's own commands from before wait for the next message.
pub(crate) async fn tell_waiting(kernel: &Kernel, scope: &Scope, results: usize) -> Result<(), Refused> {
    let text = match results {
        0 => return Ok(()),
        1 => "the result of your last command joins your next message".to_owned(),
        results => format!("the results of your last {results} commands join your next message"),
    };
    kernel.tell(scope, Happening::Notice { text }).await
}

/// Calls built-in tools as the owner.
pub(crate) struct OwnCaller<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) tools: &'a Tools,
    pub(crate) owner: &'a Scope,
}

impl OwnCaller<'_> {
    /// Calls a tool, and tells the front end.
    async fn call(&self, tool: &str, arguments: serde_json::Value) -> Result<Aside, HostError> {
        let found = self.tools.find(tool).ok_or_else(|| {
            HostError::Denied(format!("this session's agent has no `{tool}`, so it cannot be called"))
        })?;
        let target = arguments.as_object().and_then(|fields| fields.values().next()?.as_str());
        let target = target.unwrap_or_default().to_owned();
        let id = CallId(format!("owner-{}", self.kernel.journal().newest()));
        let call = ToolCall { id: id.clone(), name: tool.to_owned(), arguments: arguments.to_string() };
        let called = Happening::Call { call: id, tool: tool.to_owned(), target, own: true };
        self.kernel.tell(self.owner, called).await?;
        Ok(self.kernel.call_aside(self.owner, &*found, &call).await?)
    }

    /// Adds the pictures that a message of the owner names.
    pub(crate) async fn with_pictures(
        &self,
        models: Option<&Models>,
        mut inbound: Inbound,
    ) -> Result<Inbound, Refused> {
        let main = models.and_then(|models| models.route(ModelRole::Main).current());
        let named = std::mem::take(&mut inbound.pictures);
        let named: Vec<String> = named.into_iter().filter(|path| ImageKind::is_named(path)).collect();
        if inbound.by.is_some() || named.is_empty() {
            return Ok(inbound);
        }
        if let Some(text) = main.and_then(|model| crate::host::blind(&**model)) {
            self.kernel.tell(self.owner, Happening::Unseen { text }).await?;
            return Ok(inbound);
        }
        let mut bytes: usize = inbound.images.iter().map(|image| image.bytes().len()).sum();
        for path in named.iter().take(PICTURES_MAX) {
            let why = match self.call("fs.read", json!({ "path": path })).await {
                Ok(Aside { image: Some(image), .. }) if bytes + image.bytes().len() <= IMAGES_BYTES_MAX => {
                    bytes += image.bytes().len();
                    inbound.images.push(image);
                    continue;
                }
                Ok(Aside { image: Some(_), .. }) => {
                    "the pictures of one message may have 3 MiB together".to_owned()
                }
                Ok(Aside { ok: true, .. }) => {
                    "it is no PNG, JPEG, WebP or GIF, or larger than 3 MiB".to_owned()
                }
                Ok(Aside { text, .. }) => text.lines().next().unwrap_or_default().to_owned(),
                Err(HostError::Denied(why)) => why,
                Err(HostError::Refused(Refused::Denied(reasons))) => reasons.join("; "),
                Err(HostError::Refused(error @ Refused::Journal(_))) => return Err(error),
                Err(error) => error.to_string(),
            };
            let text = format!("`{path}` was not attached: {why}");
            self.kernel.tell(self.owner, Happening::Unseen { text }).await?;
        }
        Ok(inbound)
    }
}

/// Drives work of the owner's to its end. Meanwhile a cancellation, and the end of the ops, ends the work;
/// other ops are kept for afterwards.
async fn during<T>(
    work: impl Future<Output = T>,
    ops: &mut mpsc::Receiver<Op>,
    kept: &mut Vec<Op>,
    cancel: impl Fn(),
) -> T {
    tokio::pin!(work);
    let mut is_listening = true;
    loop {
        tokio::select! {
            done = &mut work => return done,
            op = ops.recv(), if is_listening => match op {
                Some(Op::Cancel) => cancel(),
                Some(op) => kept.push(op),
                None => {
                    is_listening = false;
                    cancel();
                }
            },
        }
    }
}

/// Tells the paths of the project that begin like this; without such paths, those whose names have it.
pub(crate) async fn tell_found(
    kernel: &Kernel,
    owner: &Scope,
    workspace: &WsPath,
    like: String,
) -> Result<(), Refused> {
    let (folder, name) = like.rsplit_once('/').unwrap_or(("", &like));
    let root = if folder.is_empty() { workspace.0.clone() } else { format!("{}/{folder}", workspace.0) };
    let mut paths = Vec::new();
    // A path that leads out of the project is not completed.
    let is_inside = !like.starts_with('/') && !like.split('/').any(|part| part == "..");
    if is_inside
        && let Acted::Done(output) = kernel.act(owner, Action::List { path: WsPath(root) }, &[]).await?
        && let Report::List(list) = output.report()
    {
        let begin = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let is_like = |it: &str| it.starts_with(name) && (!it.starts_with('.') || name.starts_with('.'));
        let entries = list.entries.iter().filter(|entry| is_like(&entry.name));
        paths.extend(entries.map(|entry| {
            let end = if entry.kind == FileKind::Directory { "/" } else { "" };
            format!("{begin}{}{end}", entry.name)
        }));
    }
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    if paths.is_empty() && is_inside && !name.is_empty() && like.chars().all(is_plain) {
        let glob = Some(format!("**/*{like}*"));
        let action = Action::Search { root: workspace.clone(), pattern: None, glob };
        if let Acted::Done(output) = kernel.act(owner, action, &[]).await?
            && let Report::Search(report) = output.report()
        {
            paths.extend(report.found.iter().map(|hit| hit.path.clone()));
        }
    }
    paths.truncate(FOUND_MAX);
    kernel.tell(owner, Happening::Found { like, paths }).await
}
