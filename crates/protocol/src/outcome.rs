//! The outcome of an effect: plain data that an executor reports and the journal keeps (redacted).

use crate::{Blob, Branch, Digest, Enforced, Marked, TipResult, WsPath, number::decimal};
use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// How an effect ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Status {
    /// It was done. A command that exits with 1 was done, too.
    Done,
    /// It was not done, for this reason.
    Failed {
        /// The reason, for people and the model.
        reason: String,
    },
    /// It was stopped because its turn was cancelled, or somebody stopped it.
    Cancelled,
    /// Its end was not seen: it may have happened.
    Unknown,
}

/// The outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The walls that were in force; `None` for effects that need no walls.
    pub enforced: Option<Enforced>,
    /// How long it took, in milliseconds.
    #[serde(with = "decimal")]
    pub duration_ms: u64,
    /// The data that it brought.
    pub report: Report,
}

impl Outcome {
    /// An effect that was not done.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            status: Status::Failed { reason: reason.into() },
            enforced: None,
            duration_ms: 0,
            report: Report::Nothing,
        }
    }
}

/// The data that an effect brought, with one variant for each kind of effect that brings data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "report")]
pub enum Report {
    /// Nothing to tell.
    Nothing,
    /// Of a command.
    Exec(ExecReport),
    /// Of a process in the background, while it lives or afterwards. A call sees this report; it is not the
    /// outcome of an effect.
    Process(ProcessReport),
    /// Of a read.
    File(FileReport),
    /// Of a look at a path.
    Stat(StatReport),
    /// Of a listing.
    List(ListReport),
    /// Of a search.
    Search(SearchReport),
    /// Of a change: each file before and now.
    Changed {
        /// In the order of the action.
        files: Vec<ChangedFile>,
    },
    /// Of a comparison.
    Diff(DiffReport),
    /// Of a merge.
    Merged {
        /// In the order of the action.
        files: Vec<MergeResult>,
        /// In the order of the action.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tips: Vec<TipResult>,
    },
    /// Of a model call or another request.
    Http(HttpReport),
    /// Of a command's request that was passed on.
    Relayed(RelayReport),
    /// A server's answer to the agent's own request.
    Page(PageReport),
    /// A peer's answer to a call of its tool.
    Called(CallReport),
}

/// A peer's answer to a call of its tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct CallReport {
    /// Whether the tool says that it did what it was asked.
    pub ok: bool,
    /// Its answer, for the model.
    pub text: String,
    /// The paths that came to differ in the session's layer: a peer may see the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<Touched>,
}

/// One output stream of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Stream {
    /// Its first bytes, up to half the limit when it was cut.
    pub head: Blob,
    /// Its last bytes when it was cut, else empty.
    pub tail: Blob,
    /// The number of bytes that it had in all. When the stream was cut, this counts the stream without
    /// secrets.
    #[serde(with = "decimal")]
    pub total: u64,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExecReport {
    /// Its exit code; `None` when a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit that ended it, such as `memory limit` or `time limit`.
    pub limit: Option<String>,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// Files of the project that this command was the first in this session to change (without ignored
    /// files).
    pub touched: Vec<Touched>,
    /// The first eight different requests of the command that the network door refused: method, URL and
    /// reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The number of further refused requests that are not in `refused`. Each attempt counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_more: u32,
    /// Allowed requests of the command that the door could not pass on, or not to their end; in the same
    /// form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_passed: Vec<String>,
    /// The number of further requests of this kind.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_passed_more: u32,
    /// Changes by the host in the project while a process of the session lives in the background. The
    /// command may have seen the earlier state.
    #[serde(default, skip_serializing_if = "Outside::is_empty")]
    pub outside: Outside,
}

/// Paths that changed from outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Outside {
    /// Absolute paths, a few.
    pub paths: Vec<WsPath>,
    /// Whether there may be more.
    pub more: bool,
}

impl Outside {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

/// The state of a process in the background.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Its number in the session.
    pub number: u32,
    /// How it ended; `None` while it lives.
    pub ended: Option<Status>,
    /// The kept part of its output, and how it ended.
    pub exec: ExecReport,
}

/// A path that entered a session's layer, with the project's state there at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Touched {
    /// Absolute path.
    pub path: WsPath,
    /// The project's state digest; `None` when the path did not exist.
    pub base: Option<Digest>,
    /// Whether the project's file changed while the effect ran, so that `base` may be newer than the content
    /// that was read.
    pub unsure: bool,
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileReport {
    /// Its first bytes, up to the reader's limit (8 MiB).
    pub content: Blob,
    /// Its size in bytes.
    #[serde(with = "decimal")]
    pub size: u64,
    /// The digest of the whole content; `None` when the limit cut the content.
    pub digest: Option<Digest>,
    /// Permission bits.
    pub mode: u32,
}

/// The result of a look at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StatReport {
    /// Its kind; `None` when the path does not exist.
    pub found: Option<FileKind>,
    /// Its size in bytes.
    #[serde(with = "decimal")]
    pub size: u64,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Listed {
    /// Its name, with U+FFFD where it is not UTF-8.
    pub name: String,
    /// Its kind.
    pub kind: FileKind,
    /// Its size in bytes.
    #[serde(with = "decimal")]
    pub size: u64,
}

/// The entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListReport {
    /// Sorted by name, at most the reader's limit (2,000).
    pub entries: Vec<Listed>,
    /// The number of further entries.
    #[serde(with = "decimal")]
    pub more: u64,
}

/// The most bytes of one line that a search gives.
pub const FOUND_BYTES_MAX: usize = 500;

/// One hit of a search.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SearchHit {
    /// The file, relative to the search's root.
    pub path: String,
    /// The line's number, from 1; 0 when the name matched.
    #[serde(with = "decimal")]
    pub line: u64,
    /// The line, at most [`FOUND_BYTES_MAX`] bytes of it.
    pub text: String,
}

/// The hits of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SearchReport {
    /// Sorted by path and line, at most the reader's limit (1,000).
    pub found: Vec<SearchHit>,
    /// Whether the limit of hits, files or time cut it.
    pub cut: bool,
    /// The first of the files that were not searched to their end because they are too large or have too
    /// long a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partly: Vec<String>,
}

/// One file that a change wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The file.
    pub path: WsPath,
    /// Its digest before; `None` when it did not exist.
    pub old: Option<Digest>,
    /// Its digest now; `None` when it is gone.
    pub new: Option<Digest>,
    /// The project's state when this session first touched the file; `None` when the session touched it
    /// earlier.
    pub touched: Option<Touched>,
}

/// The changes that a session's layer would make in the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DiffReport {
    /// Sorted by path.
    pub files: Vec<FileDiff>,
    /// Commits that the project's repository lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// Why no commit can leave the session, when the session may have made commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// At most a thousand paths that the session made, changed or deleted and that git ignores. They stay in
    /// the session. Each is the highest path below which git ignores everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<WsPath>,
}

/// One path that differs between the project and the session's layer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileDiff {
    /// Absolute path, with U+FFFD where the name is not UTF-8 (then the path is refused).
    pub path: WsPath,
    /// The project's state; `None` when the path does not exist there.
    pub old: Option<FileState>,
    /// The layer's state; `None` when the path is gone there.
    pub new: Option<FileState>,
    /// The project's state when the session first changed the path. It is given when that state is a text
    /// that was kept and the project holds another text now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FileState>,
    /// Why it cannot leave the layer; `None` when it can.
    pub refused: Option<String>,
    /// Points that a human should look at, such as a symlink that points outside.
    pub remarks: Vec<String>,
    /// Redaction marks that the layer's file holds more often than the project's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Marked>,
}

/// The state of a path, with its content when that is small.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileState {
    /// The state digest, over kind, mode and content.
    pub state: Digest,
    /// Its kind.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Its size in bytes.
    #[serde(with = "decimal")]
    pub size: u64,
    /// The content (of a link: its target) when it is at most 1 MiB, else `None`.
    pub content: Option<Blob>,
}

/// The result of a merge for one path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergeResult {
    /// The path.
    pub path: WsPath,
    /// The result.
    pub state: MergeState,
}

/// The result of a merge for one path or reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum MergeState {
    /// It is now as the merge wants it.
    Done,
    /// It already was as the merge wants it.
    Already,
    /// Somebody changed it meanwhile, so the merge left it as it was.
    Conflict {
        /// The difference.
        reason: String,
    },
    /// It could not be written, and its state is not known.
    Failed {
        /// Why.
        reason: String,
    },
    /// It could not be written, and is as it was.
    Untouched {
        /// Why.
        reason: String,
    },
}

impl MergeState {
    /// Why the path is not as the merge wants it; `None` when it is.
    #[must_use]
    pub fn kept(&self) -> Option<&str> {
        match self {
            Self::Done | Self::Already => None,
            Self::Conflict { reason } | Self::Failed { reason } | Self::Untouched { reason } => Some(reason),
        }
    }
}

/// How much of a command's request and its answer passed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct RelayReport {
    /// The host that it went to, with the port when the URL names one.
    pub host: String,
    /// Whether the request may have arrived, so that what it asks for may have been done.
    pub sent: bool,
    /// The status code; 0 when no response came.
    pub status: u16,
    /// Bytes of the request's body.
    #[serde(with = "decimal")]
    pub out: u64,
    /// Whether these bytes were counted as sent when the request began, because it declared their number.
    pub counted: bool,
    /// Bytes of the answer's body.
    #[serde(with = "decimal")]
    pub back: u64,
    /// How often the answer showed the key that was put in. No part of the key came inside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub masked: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An answer to the agent's own request: its text, or its bytes when the request asked for bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PageReport {
    /// The status code.
    pub status: u16,
    /// The content type that it states (RFC 9110, 8.3), in lower case.
    pub media: String,
    /// The location that it names (RFC 9110, 10.2.2). Bailey does not follow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Its text; `None` when the answer is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why Bailey does not read it, although it may be text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Its body, byte for byte, when the request asked for it and the whole body came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Blob>,
    /// Bytes of its body that came.
    #[serde(with = "decimal")]
    pub bytes: u64,
    /// Whether the body is longer than the part that was taken.
    pub cut: bool,
}

/// An HTTP response.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct HttpReport {
    /// Whether the request may have arrived, so that what it asks for may have been done.
    #[serde(default)]
    pub sent: bool,
    /// The status code; 0 when no response came.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as received.
    pub body: Blob,
}
