//! The actions on the world: a closed list. Each action holds everything that matters about it.

use crate::{Blob, Digest, EffectId, Integrity, Part, Tip, ToolUse, WsPath, number::decimal};
use alloc::{collections::BTreeMap, format, string::String, vec::Vec};
use core::fmt;
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
    /// Talk with a chat channel's server, from the line's opening to its closing.
    Line(Line),
    /// Change a rule file of the home.
    Amend(Amendment),
    /// Change the agent's own file.
    Adapt(Adaptation),
    /// Use a tool of another program: judged, never performed.
    Tool(ToolUse),
}

/// The kind of an action. Rules are indexed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "each is the kind of the action of the same name; a relay's, a fetch's and a line's is `Http`"
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
            Self::Http(_) | Self::Relay(_) | Self::Fetch { .. } | Self::Line(_) => Kind::Http,
            Self::Amend(_) => Kind::Amend,
            Self::Adapt(_) => Kind::Adapt,
            Self::Tool(_) => Kind::Tool,
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
    /// network and for `Http`, `Relay` and `Fetch`, else `Workspace`.
    #[must_use]
    pub fn brings(&self) -> Integrity {
        match self {
            Self::Exec(command) if !command.network => Integrity::Workspace,
            Self::Exec(_) | Self::Http(_) | Self::Relay(_) | Self::Fetch { .. } => Integrity::External,
            _ => Integrity::Workspace,
        }
    }

    /// Every path it names, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<&WsPath> {
        match self {
            Self::Read { path } | Self::Stat { path } | Self::List { path } => [path].into(),
            Self::Search { root, .. } | Self::Diff { root, .. } => [root].into(),
            Self::Change { files } => files.iter().map(|file| &file.path).collect(),
            Self::Merge(merge) => merge.files.iter().map(|file| &file.path).collect(),
            Self::Exec(command) => [&command.cwd].into(),
            Self::Amend(amendment) => [&amendment.path].into(),
            Self::Adapt(adaptation) => [&adaptation.path].into(),
            Self::Model { .. }
            | Self::Http(_)
            | Self::Relay(_)
            | Self::Fetch { .. }
            | Self::Line(_)
            | Self::Tool(_) => Vec::new(),
        }
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
    pub fn with_paths(&self, mut change: impl FnMut(&mut WsPath)) -> Self {
        let mut action = self.clone();
        match &mut action {
            Self::Read { path } | Self::Stat { path } | Self::List { path } => change(path),
            Self::Search { root, .. } => change(root),
            Self::Diff { root, also } => [root].into_iter().chain(also).for_each(change),
            Self::Change { files } => files.iter_mut().for_each(|file| change(&mut file.path)),
            Self::Merge(merge) => merge.files.iter_mut().for_each(|file| change(&mut file.path)),
            Self::Exec(command) => change(&mut command.cwd),
            Self::Amend(_) | Self::Adapt(_) | Self::Model { .. } | Self::Http(_) | Self::Relay(_) => {}
            Self::Fetch { .. } | Self::Line(_) | Self::Tool(_) => {}
        }
        action
    }

    /// One line for people: the command, the path, the host. The text is not yet safe for a terminal.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Exec(command) => command.line(),
            Self::Read { path } | Self::Stat { path } | Self::List { path } => path.0.clone(),
            Self::Search { root, pattern, glob } => {
                let what = pattern.as_deref().or(glob.as_deref()).unwrap_or("*");
                alloc::format!("{what} in {root}")
            }
            Self::Change { files } => join(files.iter().map(|file| file.path.0.as_str())),
            Self::Diff { root, .. } => root.0.clone(),
            Self::Merge(merge) => join(merge.files.iter().map(|file| file.path.0.as_str())),
            Self::Model { provider, model, .. } => alloc::format!("{provider}/{model}"),
            Self::Http(HttpRequest { method, url, .. })
            | Self::Fetch { request: HttpRequest { method, url, .. }, .. }
            | Self::Relay(Relay { method, url, key: None, .. }) => {
                alloc::format!("{method} {url}")
            }
            Self::Relay(Relay { method, url, key: Some(key), .. }) => {
                alloc::format!("{method} {url} with the key {key}")
            }
            Self::Line(Line { channel, url, .. }) => alloc::format!("the channel {channel} at {url}"),
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

/// A command: the arguments for `execve`, the directory, the environment, the input and the limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments. A program name without a slash is looked up in the PATH inside the
    /// walls.
    pub argv: Vec<String>,
    /// The directory in which it starts.
    pub cwd: WsPath,
    /// Variables on top of the few that every command gets (PATH, HOME, USER, TMPDIR, locale).
    pub env: BTreeMap<String, String>,
    /// Its standard input; `None` means an empty input.
    pub stdin: Option<Blob>,
    /// Whether it asks for a way to the network.
    pub network: bool,
    /// The limits on the resources that it uses.
    pub limits: Limits,
    /// Whether it keeps running after the call that started it, until it is stopped or its session ends.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub background: bool,
}

impl Command {
    /// The arguments in one line, each quoted for a POSIX shell where it needs to be. `sh -c LINE` is shown
    /// as the line.
    #[must_use]
    pub fn line(&self) -> String {
        if let [shell, dash_c, line] = self.argv.as_slice()
            && dash_c == "-c"
            && matches!(shell.as_str(), "sh" | "bash" | "/bin/sh" | "/bin/bash")
        {
            return line.clone();
        }
        self.argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

/// One word of a POSIX shell's line. The word is put in quotes when it is empty or holds a character that
/// the shell may treat as special.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The resources that one command may use. The sandbox reports for each limit whether it was enforced or
/// watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time in milliseconds, then SIGTERM and, after a grace time, SIGKILL.
    #[serde(with = "decimal")]
    pub wall_ms: u64,
    /// Memory of the whole process tree in bytes.
    #[serde(with = "decimal")]
    pub memory_bytes: u64,
    /// Bytes that the session's layer, home and temporary files may take together.
    #[serde(with = "decimal")]
    pub disk_bytes: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Bytes kept of each of standard output and standard error; the rest is counted and dropped.
    #[serde(with = "decimal")]
    pub output_bytes: u64,
}

impl Default for Limits {
    /// 10 minutes, 4 GiB of memory, 8 GiB of disk, 512 processes, 1 MiB of output.
    fn default() -> Self {
        Self {
            wall_ms: 600_000,
            memory_bytes: 4 << 30,
            disk_bytes: 8 << 30,
            pids: 512,
            output_bytes: 1 << 20,
        }
    }
}

/// The new content of one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileChange {
    /// The file; its parent directories are made as needed.
    pub path: WsPath,
    /// The digest of the content that it must have now; `None` when it must not exist.
    pub base: Option<Digest>,
    /// The new content; `None` deletes the file.
    pub new: Option<Blob>,
}

/// Files that move between a session's layer and the project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Merge {
    /// The direction.
    pub direction: MergeKind,
    /// The apply that an undo takes back, or the apply that this one continues because it was killed in the
    /// middle.
    pub of: Option<EffectId>,
    /// The files that change, sorted by path.
    pub files: Vec<MergeFile>,
    /// References of the project's repository that move along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tips: Vec<Tip>,
    /// Paths that a person named. Their files leave the layer even when git ignores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<WsPath>,
}

impl Merge {
    /// A merge of files that moves no reference.
    #[must_use]
    pub fn of_files(direction: MergeKind, of: Option<EffectId>, files: Vec<MergeFile>) -> Self {
        Self { direction, of, files, tips: Vec::new(), also: Vec::new() }
    }
}

/// Which way a merge goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeKind {
    /// From the session's layer to the project.
    Apply,
    /// Back to what the project held before an apply.
    Undo,
    /// Throw the session's layer away.
    Discard,
}

/// One path of a merge. A *state* digest covers type, mode and content, so that a mode or a symlink is
/// restored as exactly as text; `None` means that nothing exists at the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergeFile {
    /// Absolute path in the project.
    pub path: WsPath,
    /// The state that the merge starts from. Any other state is a conflict, and the merge keeps that state.
    pub base: Option<Digest>,
    /// The state that it ends with.
    pub new: Option<Digest>,
    /// The part of the file's change that an apply takes over; `None` means the whole change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Redaction marks that an apply would bring into the project. The secrets that they stand for would be
    /// lost there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Marked>,
}

/// A redaction mark that a change brings into a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Marked {
    /// The mark, such as `[redacted:NAME]`.
    pub mark: String,
    /// The first lines of the new text that hold it, from 1.
    pub lines: Vec<u64>,
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mark, lines } = self;
        f.write_str(if lines.len() == 1 { "line " } else { "lines " })?;
        for (place, line) in lines.iter().enumerate() {
            write!(f, "{}{line}", if place == 0 { "" } else { ", " })?;
        }
        let hold = if lines.len() == 1 { "holds" } else { "hold" };
        write!(
            f,
            " {hold} the mark {mark} in place of a secret: applied, the file has the mark and not the secret"
        )
    }
}

impl MergeFile {
    /// A path that goes from one state to another as a whole.
    #[must_use]
    pub fn whole(path: WsPath, base: Option<Digest>, new: Option<Digest>) -> Self {
        Self { path, base, new, part: None, marks: Vec::new() }
    }
}

/// A change of a rule file of the home.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Amendment {
    /// The file, absolute.
    pub path: WsPath,
    /// Its present content; `None` when it does not exist.
    pub old: Option<Blob>,
    /// The new content; `None` deletes the file.
    pub new: Option<Blob>,
    /// Names all rule files of the home as they are. When the files are different, the amendment changes
    /// nothing.
    pub files: Digest,
    /// The policy that these files make; `None` when they cannot be read.
    pub from: Option<Digest>,
    /// The policy that they make after the change.
    pub to: Digest,
}

/// The maximum length of the agent's own file, in bytes.
pub const AGENT_FILE_BYTES_MAX: usize = 16 << 10;

/// A change of the agent's own file of the home, `agent.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Adaptation {
    /// The file, absolute. The code that plans the change need not know its place, because there is only
    /// one.
    pub path: WsPath,
    /// The content that it must have now; `None` when it must not exist. Known once the action is resolved.
    pub old: Option<Blob>,
    /// The new content; `None` deletes the file.
    pub new: Option<Blob>,
}

/// An HTTP request, except that secrets in its headers are names; the network door puts the values in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The method in upper case.
    pub method: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, HeaderValue)>,
    /// The body.
    pub body: Blob,
}

/// Host and port of a URL as they are written, without a user.
#[must_use]
pub fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// A request that a command inside the walls makes. Its headers and its body are the command's own: they
/// pass through, and Bailey does not keep them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Relay {
    /// The method in upper case.
    pub method: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// The length of its body that it declares, in bytes; `None` when it does not declare one.
    pub length: Option<u64>,
    /// The request's number among those that wait at the door, from 1.
    #[serde(with = "decimal")]
    pub number: u64,
    /// The name of the secret that the door puts in, if any. The command has a stand-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The way to a chat channel's server, or to a collector of telemetry. Bailey does not keep the traffic:
/// messages of a channel stand in the sessions where they are said, and the data for a collector is made
/// from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The channel's name in the configuration.
    pub channel: String,
    /// The URL of its server; requests go to paths beneath it.
    pub url: String,
    /// The name of the secret that the door puts in; empty when the server needs no secret.
    pub key: String,
    /// The header whose whole value is the secret, when the secret belongs in a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderValue {
    /// Sent as it is.
    Text(String),
    /// `prefix` followed by the value of the secret of this name.
    Secret {
        /// The secret's name, such as `ANTHROPIC_API_KEY`.
        name: String,
        /// The text before the secret, such as `Bearer `.
        prefix: String,
    },
}
