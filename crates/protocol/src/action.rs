//! What can be done to the world: a closed list, each with everything that matters in it.

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
    /// Say whether a path exists and what it is.
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
        /// Where to look, recursively; files that git ignores are passed over.
        root: WsPath,
        /// A regular expression (the `regex` crate's syntax) for lines; none means names only.
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
        /// Paths that are compared although git ignores them, and what lies beneath them.
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
        /// What is sent.
        request: HttpRequest,
    },
    /// Talk to any other host.
    Http(HttpRequest),
    /// Let a request of a command inside the walls pass to a host.
    Relay(Relay),
    /// Fetch a page of the web, or send a request of the agent's own to a server. Redirects are not followed.
    Fetch {
        /// What is sent.
        #[serde(flatten)]
        request: HttpRequest,
        /// Whether the answer's bytes are wanted, and not its text.
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

/// The kind of an action: what rules are indexed by.
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

    /// Whether it only looks, at files or at a page of the web (a safe method, RFC 9110, 9.2.1).
    #[must_use]
    pub fn is_read(&self) -> bool {
        match self {
            Self::Fetch { request, .. } => matches!(request.method.as_str(), "GET" | "HEAD"),
            _ => self.kind().is_read(),
        }
    }

    /// Where what it brings back comes from: the world, where it asked that, and else the workspace.
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

    /// The same with each path as it is named, from the workspace on, or from the user's home where it begins
    /// with `~`: absolute, without `.` and empty parts. Nobody looked whether it is there, or where a link
    /// leads; `..` stays, for that is a matter of links.
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

    /// The same with each path of a workspace that it names changed by `change`.
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

    /// One line for people: the command, the path, the host. Not yet made safe for a terminal.
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

/// A command: what `execve` gets, where, and under which limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments; the program is looked up in the inside's PATH when it holds no slash.
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: WsPath,
    /// Variables on top of the few that every command gets (PATH, HOME, USER, TMPDIR, locale).
    pub env: BTreeMap<String, String>,
    /// What it reads on standard input; none means an empty input.
    pub stdin: Option<Blob>,
    /// Whether it asks for a way to the network.
    pub network: bool,
    /// What it may use up.
    pub limits: Limits,
    /// Whether it goes on after the call that began it, until it is stopped or its session ends.
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

/// One word of a POSIX shell's line: as it stands, or in quotes where a character of it would mean something.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What one command may use up. The sandbox says of each whether it was enforced or watched.
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
    /// What it must hold now; none: it must not exist.
    pub base: Option<Digest>,
    /// What it shall hold; none: it shall be gone.
    pub new: Option<Blob>,
}

/// Files that move between a session's layer and the project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Merge {
    /// Which way.
    pub direction: MergeKind,
    /// The apply that an undo takes back, or that an apply goes on with because it was killed in the middle.
    pub of: Option<EffectId>,
    /// What changes, sorted by path.
    pub files: Vec<MergeFile>,
    /// References of the project's repository that move along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tips: Vec<Tip>,
    /// Paths that a person named, so that what git ignores of them leaves the layer, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<WsPath>,
}

impl Merge {
    /// A merge of files, with which no reference moves.
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
/// restored as exactly as text; none means that nothing is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergeFile {
    /// Absolute path in the project.
    pub path: WsPath,
    /// The state that the merge starts from: any other is a conflict, and is kept.
    pub base: Option<Digest>,
    /// The state that it ends with.
    pub new: Option<Digest>,
    /// What of the file's change an apply takes over; none: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Redaction marks that an apply would bring into the project: the
    /// secrets that they stand for would be gone.
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

/// A rule file of the home that changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Amendment {
    /// The file, absolute.
    pub path: WsPath,
    /// What it holds; none: it is not there.
    pub old: Option<Blob>,
    /// What it shall hold; none: it shall be gone.
    pub new: Option<Blob>,
    /// Names all rule files of the home as they are: with any others nothing is changed.
    pub files: Digest,
    /// The policy that they are; none where they cannot be read.
    pub from: Option<Digest>,
    /// The policy that they become.
    pub to: Digest,
}

/// The longest that the agent's own file may be, in bytes.
pub const AGENT_FILE_BYTES_MAX: usize = 16 << 10;

/// The agent's own file of the home, `agent.toml`, changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Adaptation {
    /// The file, absolute. Whoever plans the change need not know where it lies: there is one.
    pub path: WsPath,
    /// What it must hold now; none: it must not be there. Known once the action is resolved.
    pub old: Option<Blob>,
    /// What it shall hold; none: it shall be gone.
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

/// A request that a command inside the walls makes. Its headers and its body are the command's own: they pass
/// by, and are not kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Relay {
    /// The method in upper case.
    pub method: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// How many bytes it says that its body has; none where it does not say.
    pub length: Option<u64>,
    /// Which of those that wait at the door it is, counted from 1.
    #[serde(with = "decimal")]
    pub number: u64,
    /// The name of the secret that the door puts in, where it does: the command has a stand-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The way to a chat channel's server, or to a collector of telemetry. What passes over it is not kept: what
/// is said there stands in the sessions where it is said, and what a collector is told is made from the
/// journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The channel's name in the configuration.
    pub channel: String,
    /// The URL of its server; requests go to paths beneath it.
    pub url: String,
    /// The name of the secret that the door puts in; empty where the server asks for none.
    pub key: String,
    /// The header that the secret is the whole value of, where it has its place in one.
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
        /// What stands before it, such as `Bearer `.
        prefix: String,
    },
}
