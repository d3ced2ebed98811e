//! The actions on the world: a closed list. Each action holds everything that matters about it, and describes
//! itself once, in its own file here ([`Action::describe`]).

mod adapt;
mod amend;
mod change;
mod command;
mod description;
mod files;
mod http;
mod merge;
mod portrait;
mod relay;
mod tool;
mod uplink;

pub use adapt::{AGENT_FILE_BYTES_MAX, Adaptation};
pub use amend::Amendment;
pub use change::FileChange;
pub use command::{Command, Limits, shell_word};
pub use description::{Description, Destination, PathUse, Resource, Value};
pub use http::{HeaderValue, HttpRequest, authority};
pub use merge::{Marked, Merge, MergeFile, MergeKind};
pub use portrait::Portrait;
pub use relay::Relay;
pub use tool::{ToolEffect, ToolUse};
pub use uplink::{Uplink, UplinkServer, WEBSOCKET};

use crate::{Integrity, WsPath};
use alloc::{format, string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// One thing to be done to the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Action {
    /// Run a command inside the walls.
    Exec(Command),
    /// Read one file.
    Read {
        /// The file.
        path: WsPath,
    },
    /// Say whether a path exists, and which kind of file it is.
    Stat {
        /// The path; it need not exist.
        path: WsPath,
    },
    /// List one directory.
    List {
        /// The directory.
        path: WsPath,
    },
    /// Find files by name, lines by content, or both.
    Search {
        /// Where to search, recursively. The search skips files that git ignores.
        root: WsPath,
        /// A regular expression (the `regex` crate's syntax) for lines; `None` searches names only.
        pattern: Option<String>,
        /// A glob (gitignore syntax) that file paths relative to `root` must match.
        glob: Option<String>,
    },
    /// Write, create or delete files in the session's layer.
    Change {
        /// All or nothing: when one base does not match, no file changes.
        files: Vec<FileChange>,
    },
    /// Compare the session's layer with the project.
    Diff {
        /// The project.
        root: WsPath,
        /// Paths to compare although git ignores them, with everything beneath them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<WsPath>,
    },
    /// Move a session's changes to the project, or back.
    Merge(Merge),
    /// Ask a model.
    Model {
        /// The provider's name in the configuration.
        provider: String,
        /// The model's name as the provider knows it.
        model: String,
        /// The request to send.
        request: HttpRequest,
    },
    /// Talk to any other host.
    Http(HttpRequest),
    /// Let a request of a command inside the walls pass to a host.
    Relay(Relay),
    /// Fetch a page of the web, or send a request of the agent's own to a server. Redirects are not followed.
    Fetch {
        /// The request to send.
        #[serde(flatten)]
        request: HttpRequest,
        /// Whether to return the answer's bytes instead of its text.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        raw: bool,
    },
    /// Talk with a chat channel's servers, from the uplink's opening to its closing.
    #[serde(rename = "line")]
    Uplink(Uplink),
    /// Change a rule file of the home.
    Amend(Amendment),
    /// Change the agent's own file.
    Adapt(Adaptation),
    /// Use a tool that is not built in.
    Tool(ToolUse),
}

/// The kind of an action. Rules are indexed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "each is the kind of the action of the same name; a relay's, a fetch's and an uplink's is `Http`"
)]
pub enum Kind {
    Exec,
    Read,
    Stat,
    List,
    Search,
    Change,
    Diff,
    Merge,
    Model,
    Http,
    Amend,
    Adapt,
    Tool,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Self; 13] = [
        Self::Exec,
        Self::Read,
        Self::Stat,
        Self::List,
        Self::Search,
        Self::Change,
        Self::Diff,
        Self::Merge,
        Self::Model,
        Self::Http,
        Self::Amend,
        Self::Adapt,
        Self::Tool,
    ];

    /// Its name in rules and in the journal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Read => "read",
            Self::Stat => "stat",
            Self::List => "list",
            Self::Search => "search",
            Self::Change => "change",
            Self::Diff => "diff",
            Self::Merge => "merge",
            Self::Model => "model",
            Self::Http => "http",
            Self::Amend => "amend",
            Self::Adapt => "adapt",
            Self::Tool => "tool",
        }
    }

    /// Whether it is a step of an agent's task, which an owner may want to see before it is done. Commands
    /// and merges are asked about by levels of their own; the rest is the owner's, or the model's own work.
    #[must_use]
    pub fn is_step(self) -> bool {
        match self {
            Self::Read | Self::Stat | Self::List | Self::Search | Self::Change | Self::Http => true,
            Self::Adapt | Self::Tool => true,
            Self::Exec | Self::Merge | Self::Diff | Self::Model | Self::Amend => false,
        }
    }

    /// Whether its outcome brings content that the model may repeat later.
    #[must_use]
    pub fn brings_content(self) -> bool {
        match self {
            Self::Exec | Self::Read | Self::Stat | Self::List | Self::Search | Self::Diff => true,
            Self::Http | Self::Tool => true,
            Self::Change | Self::Merge | Self::Amend | Self::Adapt | Self::Model => false,
        }
    }

    /// Whether doing it twice does the same as doing it once, so that it may be retried.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Stat | Self::List | Self::Search | Self::Diff)
    }
}

impl Action {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Exec(_) => Kind::Exec,
            Self::Read { .. } => Kind::Read,
            Self::Stat { .. } => Kind::Stat,
            Self::List { .. } => Kind::List,
            Self::Search { .. } => Kind::Search,
            Self::Change { .. } => Kind::Change,
            Self::Diff { .. } => Kind::Diff,
            Self::Merge(_) => Kind::Merge,
            Self::Model { .. } => Kind::Model,
            Self::Http(_) | Self::Relay(_) | Self::Fetch { .. } | Self::Uplink(_) => Kind::Http,
            Self::Amend(_) => Kind::Amend,
            Self::Adapt(_) => Kind::Adapt,
            Self::Tool(_) => Kind::Tool,
        }
    }

    /// Its description.
    #[must_use]
    pub fn describe(&self) -> Description<'_> {
        match self {
            Self::Exec(command) => command.describe(),
            Self::Read { path } | Self::Stat { path } | Self::List { path } => files::describe(path),
            Self::Search { root, pattern, glob } => {
                files::describe_search(root, pattern.as_ref(), glob.as_ref())
            }
            Self::Diff { root, .. } => files::describe_tree(root),
            Self::Change { files } => change::describe(files),
            Self::Merge(merge) => merge.describe(),
            Self::Model { provider, model, request } => request.describe_model(provider, model),
            Self::Http(request) | Self::Fetch { request, .. } => request.describe(),
            Self::Relay(relay) => relay.describe(),
            Self::Uplink(uplink) => uplink.describe(),
            Self::Amend(amendment) => amendment.describe(),
            Self::Adapt(adaptation) => adaptation.describe(),
            Self::Tool(tool) => tool.describe(),
        }
    }

    /// The parts of its card that follow from it alone; `None` when the card shows more than that, such as a
    /// diff.
    #[must_use]
    pub fn portrait(&self) -> Option<Portrait<'_>> {
        match self {
            Self::Stat { path } => Some(files::portrait("Look at", path)),
            Self::List { path } => Some(files::portrait("List", path)),
            Self::Diff { root, .. } => Some(files::portrait("Compare the session's changes with", root)),
            Self::Search { root, pattern, glob } => {
                Some(files::portrait_search(root, pattern.as_deref(), glob.as_deref()))
            }
            Self::Model { provider, model, request } => Some(request.portrait_model(provider, model)),
            Self::Relay(relay) => Some(relay.portrait()),
            Self::Uplink(uplink) => Some(uplink.portrait()),
            Self::Tool(tool) => Some(tool.portrait()),
            Self::Exec(_) | Self::Read { .. } | Self::Change { .. } | Self::Merge(_) => None,
            Self::Http(_) | Self::Fetch { .. } | Self::Amend(_) | Self::Adapt(_) => None,
        }
    }

    /// The values whose origin matters to the human who is asked. The owner's own commands and the
    /// conversation with a model have no such values.
    #[must_use]
    pub fn values(&self) -> Vec<Value<'_>> {
        match self {
            Self::Exec(command) => [Value::Command(command)].into(),
            Self::Read { path } | Self::Stat { path } | Self::List { path } => [Value::Path(path)].into(),
            Self::Search { root, pattern, glob } => {
                let texts = [pattern, glob].into_iter().flatten();
                [Value::Path(root)].into_iter().chain(texts.map(|text| Value::Word(text))).collect()
            }
            Self::Change { files } => files.iter().flat_map(change::values).collect(),
            Self::Http(request) | Self::Fetch { request, .. } => request.values().collect(),
            Self::Relay(Relay { url, .. }) => [Value::Word(url)].into(),
            Self::Uplink(uplink) => uplink.values().collect(),
            Self::Adapt(Adaptation { old, new, .. }) => {
                [Value::Settings { old: old.as_ref(), new: new.as_ref() }].into()
            }
            Self::Tool(tool) => [Value::Text(&tool.args)].into(),
            Self::Diff { .. } | Self::Merge(_) | Self::Amend(_) | Self::Model { .. } => Vec::new(),
        }
    }

    /// Whether it only reads: files, or a page of the web by a safe method (RFC 9110, 9.2.1).
    #[must_use]
    pub fn is_read(&self) -> bool {
        match self {
            Self::Fetch { request, .. } => matches!(request.method.as_str(), "GET" | "HEAD"),
            _ => self.kind().is_read(),
        }
    }

    /// The integrity of the data that the action brings back: `External` for a command that asks for the
    /// network and for `Http`, `Relay`, `Fetch` and `Tool`, else `Workspace`.
    #[must_use]
    pub fn brings(&self) -> Integrity {
        match self {
            Self::Exec(command) if !command.network => Integrity::Workspace,
            Self::Exec(_) | Self::Http(_) | Self::Relay(_) | Self::Fetch { .. } | Self::Tool(_) => {
                Integrity::External
            }
            _ => Integrity::Workspace,
        }
    }

    /// Every path it names, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<&WsPath> {
        self.describe().paths()
    }

    /// The same action with each path made absolute by its text alone: relative to the workspace, or to the
    /// user's home when the path begins with `~`. It drops `.` and empty parts and keeps `..`, because the
    /// meaning of `..` depends on links. It does not check whether the path exists, or where a link leads.
    #[must_use]
    pub fn named_in(&self, workspace: &WsPath, user_home: &str) -> Self {
        self.with_paths(|path| {
            let (from, rest) = match path.0.strip_prefix('~') {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => (user_home, rest),
                _ if path.0.starts_with('/') => ("", path.0.as_str()),
                _ => (workspace.0.as_str(), path.0.as_str()),
            };
            let parts = from.split('/').chain(rest.split('/')).filter(|part| !matches!(*part, "" | "."));
            let named = parts.fold(String::new(), |named, part| named + "/" + part);
            path.0 = if named.is_empty() { "/".into() } else { named };
        })
    }

    /// The same action, with `change` applied to each workspace path that it names.
    #[must_use]
    pub fn with_paths(&self, change: impl FnMut(&mut WsPath)) -> Self {
        let mut action = self.clone();
        action.change_paths(change);
        action
    }

    /// Applies `change` to each workspace path that it names.
    pub fn change_paths(&mut self, mut change: impl FnMut(&mut WsPath)) {
        match self {
            Self::Read { path } | Self::Stat { path } | Self::List { path } => change(path),
            Self::Search { root, .. } => change(root),
            Self::Diff { root, also } => [root].into_iter().chain(also).for_each(change),
            Self::Change { files } => files.iter_mut().for_each(|file| change(&mut file.path)),
            Self::Merge(merge) => merge.files.iter_mut().for_each(|file| change(&mut file.path)),
            Self::Exec(command) => change(&mut command.cwd),
            Self::Amend(_) | Self::Adapt(_) | Self::Model { .. } | Self::Http(_) | Self::Relay(_) => {}
            Self::Fetch { .. } | Self::Uplink(_) | Self::Tool(_) => {}
        }
    }

    /// One line for people: the command, the path, the host. The text is not yet safe for a terminal.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Exec(command) => command.line(),
            Self::Read { path } | Self::Stat { path } | Self::List { path } => path.0.clone(),
            Self::Search { root, pattern, glob } => {
                let what = pattern.as_deref().or(glob.as_deref()).unwrap_or("*");
                format!("{what} in {root}")
            }
            Self::Change { files } => join(files.iter().map(|file| file.path.0.as_str())),
            Self::Diff { root, .. } => root.0.clone(),
            Self::Merge(merge) => join(merge.files.iter().map(|file| file.path.0.as_str())),
            Self::Model { provider, model, .. } => format!("{provider}/{model}"),
            Self::Http(HttpRequest { method, url, .. })
            | Self::Fetch { request: HttpRequest { method, url, .. }, .. }
            | Self::Relay(Relay { method, url, key: None, .. }) => {
                format!("{method} {url}")
            }
            Self::Relay(Relay { method, url, key: Some(key), .. }) => {
                format!("{method} {url} with the key {key}")
            }
            Self::Uplink(uplink) => {
                let urls: Vec<&str> = uplink.servers().map(|(url, ..)| url).collect();
                format!("the channel {} at {}", uplink.channel, urls.join(", "))
            }
            Self::Amend(amendment) => amendment.path.0.clone(),
            Self::Adapt(adaptation) => adaptation.path.0.clone(),
            Self::Tool(tool) => tool.name.clone(),
        }
    }
}

fn join<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for part in parts {
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(part);
    }
    line
}
