//! What came of an effect: plain data that an executor reports and the journal keeps (redacted).

use crate::{Blob, Branch, Digest, Enforced, Marked, TipResult, WsPath, number::decimal};
use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// How an effect ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Status {
    /// It was done. A command that exits with 1 was done, too.
    Done,
    /// It was not done, and this is why.
    Failed {
        /// The reason, for people and the model.
        reason: String,
    },
    /// It was stopped because its turn was cancelled, or somebody stopped it.
    Cancelled,
    /// Nobody saw its end: it may have happened.
    Unknown,
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// What the walls were; none for effects that need none.
    pub enforced: Option<Enforced>,
    /// How long it took, in milliseconds.
    #[serde(with = "decimal")]
    pub duration_ms: u64,
    /// What it brought.
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

/// What an effect brought, one variant for each kind that brings something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "report")]
pub enum Report {
    /// Nothing to tell.
    Nothing,
    /// Of a command.
    Exec(ExecReport),
    /// Of a process in the background, while it lives or afterwards: what a call sees of it, and no outcome
    /// of an effect.
    Process(ProcessReport),
    /// Of a read.
    File(FileReport),
    /// Of a look at a path.
    Stat(StatReport),
    /// Of a listing.
    List(ListReport),
    /// Of a search.
    Search(SearchReport),
    /// Of a change: what each file held before and holds now.
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
    /// Of a request that was passed on.
    Relayed(RelayReport),
    /// What a server answered to a request of the agent's own.
    Page(PageReport),
}

/// One output stream of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Stream {
    /// Its first bytes, up to half the limit when it was cut.
    pub head: Blob,
    /// Its last bytes when it was cut, else empty.
    pub tail: Blob,
    /// How many bytes it had in all; where it was cut, as it is without secrets.
    #[serde(with = "decimal")]
    pub total: u64,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExecReport {
    /// Its exit code; none when a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit that ended it, such as `memory limit` or `time limit`.
    pub limit: Option<String>,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// Files of the project that this command changed for the first time in this session (ignored ones left
    /// out).
    pub touched: Vec<Touched>,
    /// Requests of it that the network door refused, each once, the first eight of them: method, URL, and
    /// why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// How many more it refused that are none of these, each try counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_more: u32,
    /// Requests of it that were allowed and that the door could not pass on, or not to their end; told alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_passed: Vec<String>,
    /// How many more of these there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_passed_more: u32,
    /// What the host changed in the project while a process of the session lives in the background: the
    /// command may have seen it as it was.
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

/// How a process in the background stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Its number in the session.
    pub number: u32,
    /// How it ended; none while it lives.
    pub ended: Option<Status>,
    /// What is kept of what it printed, and how it ended.
    pub exec: ExecReport,
}

/// A path that a session's layer came to hold, with what the project held there at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Touched {
    /// Absolute path.
    pub path: WsPath,
    /// The project's state digest; none when nothing was there.
    pub base: Option<Digest>,
    /// Whether the project's file changed while the effect ran, so that `base` may be newer than what was
    /// read.
    pub unsure: bool,
}

/// What a path is.
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
    /// The digest of the whole content; none when the limit cut it.
    pub digest: Option<Digest>,
    /// Permission bits.
    pub mode: u32,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StatReport {
    /// What it is; none when nothing is there.
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
    /// What it is.
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
    /// How many more there are.
    #[serde(with = "decimal")]
    pub more: u64,
}

/// The most that a search gives of one line, in bytes.
pub const FOUND_BYTES_MAX: usize = 500;

/// One hit of a search.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Found {
    /// The file, relative to the search's root.
    pub path: String,
    /// The line's number, from 1; 0 when the name was what matched.
    #[serde(with = "decimal")]
    pub line: u64,
    /// The line, at most [`FOUND_BYTES_MAX`] bytes of it.
    pub text: String,
}

/// The hits of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SearchReport {
    /// Sorted by path and line, at most the reader's limit (1,000).
    pub found: Vec<Found>,
    /// Whether the limit of hits, files or time cut it.
    pub cut: bool,
    /// Files that were not searched to their end, for they are too large or have too long a line: the first
    /// of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partly: Vec<String>,
}

/// One file that a change wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The file.
    pub path: WsPath,
    /// Its digest before; none when it was not there.
    pub old: Option<Digest>,
    /// Its digest now; none when it is gone.
    pub new: Option<Digest>,
    /// The project's state when this session first touched it; none when it had been touched before.
    pub touched: Option<Touched>,
}

/// What a session's layer would change in the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DiffReport {
    /// Sorted by path.
    pub files: Vec<FileDiff>,
    /// Commits that the project's repository lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// Why no commit can leave the session, where it may have made some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// What the session made, changed or deleted and git ignores, which stays in the session: each as high in
    /// the tree as all of it is ignored, and no more than a thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<WsPath>,
}

/// One path that differs between the project and the session's layer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileDiff {
    /// Absolute path; U+FFFD where the name is not UTF-8 (then it is refused).
    pub path: WsPath,
    /// What the project holds; none when nothing is there.
    pub old: Option<FileState>,
    /// What the layer holds; none when it is gone there.
    pub new: Option<FileState>,
    /// What the project held when the session first changed it, where that is a text that was kept and the
    /// project holds another one now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FileState>,
    /// Why it cannot leave the layer; none when it can.
    pub refused: Option<String>,
    /// What a human should look at, such as a symlink that points outside.
    pub remarks: Vec<String>,
    /// Redaction marks that the layer's file holds more often than the project's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Marked>,
}

/// What stands at a path, with its content where that is small.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileState {
    /// The state digest, over kind, mode and content.
    pub state: Digest,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Its size in bytes.
    #[serde(with = "decimal")]
    pub size: u64,
    /// The content (of a link: its target) when it is at most 1 MiB, else none.
    pub content: Option<Blob>,
}

/// What a merge did with one path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergeResult {
    /// The path.
    pub path: WsPath,
    /// What happened.
    pub state: MergeState,
}

/// What a merge did.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum MergeState {
    /// It is now as the merge wants it.
    Done,
    /// It already was.
    Already,
    /// Somebody changed it meanwhile; it was kept.
    Conflict {
        /// What differs.
        reason: String,
    },
    /// It could not be written, and what was done of it is not known.
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
    /// Why the path is not as the merge wants it; none where it is.
    #[must_use]
    pub fn kept(&self) -> Option<&str> {
        match self {
            Self::Done | Self::Already => None,
            Self::Conflict { reason } | Self::Failed { reason } | Self::Untouched { reason } => Some(reason),
        }
    }
}

/// What passed of a command's request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct RelayReport {
    /// Whom it went to, with the port where the URL names one.
    pub host: String,
    /// Whether the request may have arrived, so that what it asks for may have been done.
    pub sent: bool,
    /// The status code; 0 when no response came.
    pub status: u16,
    /// Bytes of the request's body.
    #[serde(with = "decimal")]
    pub out: u64,
    /// Whether those were counted as sent when it began: it said how many they would be.
    pub counted: bool,
    /// Bytes of the answer's body.
    #[serde(with = "decimal")]
    pub back: u64,
    /// How often the answer showed the key that was put in; none of it came inside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub masked: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An answer to a request of the agent's own: its text, or its bytes where those were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PageReport {
    /// The status code.
    pub status: u16,
    /// What it says that it is (RFC 9110, 8.3), in lower case.
    pub media: String,
    /// Where it says that the asker should go (RFC 9110, 10.2.2); nobody went there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Its text; none where it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why it is not read, where it may be text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Its body, byte for byte, where that was asked for and all of it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Blob>,
    /// Bytes of its body that came.
    #[serde(with = "decimal")]
    pub bytes: u64,
    /// Whether there was more than was taken.
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
