//! The messages over the sockets of a home: lines of JSON, from its owner to its owner.

use anyhow::{Context as _, Result, bail};
use bailey_protocol::{SessionId, Speaker, Timestamp, WsPath};
use rustix::fs::{CWD, Mode, OFlags};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    fs, io,
    os::{
        fd::AsRawFd as _,
        unix::{
            fs::PermissionsExt as _,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

/// The daemon's socket, in the daemon's folder of a home.
pub const SOCKET: &str = "socket";
/// How long the daemon waits for turns that run before it ends, if its caller names no time.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The version of what is said here. Both sides are this program; another version is refused.
pub const VERSION: u32 = 1;
/// The longest line that anybody is listened to for, in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// The longest line that a session is told, which may hold pictures and files, in bytes.
pub const OP_BYTES_MAX: usize = 16 << 20;
/// The longest line of an event, which may hold a whole diff, in bytes.
pub const EVENT_BYTES_MAX: usize = 64 << 20;

/// A request to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The version, [`VERSION`].
    pub v: u32,
    /// The request.
    #[serde(flatten)]
    pub ask: Ask,
}

/// The version and the kind of a request, whatever else it holds.
#[derive(Deserialize)]
struct Of {
    v: u32,
    #[serde(default)]
    ask: Value,
}

/// A request to the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Ask {
    /// How it is, and what it runs.
    Status,
    /// Read the configuration and the rules again.
    Reload,
    /// End, once the turns that run have ended, but after so many seconds in any case.
    Stop {
        /// Seconds.
        patience_seconds: u64,
    },
    /// Begin a session, or find the one that runs.
    Open(Wanted),
    /// End the process of a session that is at rest, so that its changes can be looked at elsewhere.
    Close {
        /// The session.
        session: SessionId,
    },
    /// Have the channels begin anew, whatever the configuration says by now: connections that were made
    /// before are those of before.
    Anew,
    /// A person was let in at a channel: the person is told.
    LetIn,
    /// A question of this session was answered, or asked again: the session goes on.
    Wake {
        /// The session.
        session: SessionId,
    },
    /// Begin a schedule's task now.
    Run {
        /// Its name.
        schedule: String,
    },
    /// A link by which one browser is let in.
    Link,
    /// Let one at the page in no more; without a number, all.
    Revoke {
        /// Its number.
        login: Option<u64>,
    },
}

/// A session that a client wants.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    /// The directory in which the words were said.
    pub directory: PathBuf,
    /// The words after `bailey chat`.
    pub words: Vec<String>,
    /// The words there, besides the session's name, when it is begun again.
    pub again: Vec<String>,
    /// The session, when it was there before.
    pub session: Option<SessionId>,
    /// Whether the client comes back by itself: such a client does not begin a session that ended so often
    /// that the daemon gave it up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub comes_back: bool,
    /// Whether the owner is told of the session's questions at their chat channels: nobody watches the
    /// session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_owner: bool,
}

/// The daemon's answer to an [`Ask`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "told")]
pub enum DaemonAnswer {
    /// The state of the daemon.
    Status(Box<DaemonStatus>),
    /// New sessions obey the new configuration; this many go on with the one that they began with.
    Reloaded {
        /// Sessions that keep the settings they began with.
        older: usize,
    },
    /// The daemon ends; it still waits for this many turns.
    Stopping {
        /// Turns that run.
        working: usize,
    },
    /// The session runs, and listens at the socket of its name.
    Opened {
        /// The session.
        session: SessionId,
        /// Remarks for the user.
        remarks: Vec<String>,
    },
    /// The session has no process any more.
    Closed,
    /// Whether the daemon has that session go on: it runs beneath the daemon, or was at rest there.
    Woken {
        /// See above.
        goes_on: bool,
    },
    /// The channels begin anew.
    Anew,
    /// The link lets one browser in, within five minutes.
    Link {
        /// The link.
        url: String,
    },
    /// This many logins were removed.
    Revoked {
        /// How many.
        count: usize,
    },
    /// The request was not done, for this reason.
    Refused {
        /// Why.
        why: String,
        /// The exit code of the process that failed to do it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<u8>,
    },
}

/// The daemon's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// RFC 3339, UTC.
    pub since: String,
    /// The version of the program.
    pub version: String,
    /// Whether it ends.
    pub stopping: bool,
    /// The sessions that run.
    pub sessions: Vec<Running>,
    /// The sessions without a process, whose questions wait for answers.
    #[serde(default)]
    pub resting: Vec<RestingState>,
    /// The channels.
    #[serde(default)]
    pub channels: Vec<ChannelState>,
    /// The page, when it is on.
    #[serde(default)]
    pub page: Option<PageState>,
    /// The collector, when one is set.
    #[serde(default)]
    pub telemetry: Option<ChannelState>,
    /// The memory, when it can be measured.
    #[serde(default)]
    pub memory: Option<MemoryState>,
}

/// A session without a process, whose questions wait for answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestingState {
    /// The session.
    pub session: SessionId,
    /// How many questions wait.
    pub questions: usize,
}

/// The state of memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MemoryState {
    /// `free`; `held`, when nothing new begins; `shedding`, when sessions make room.
    pub state: String,
    /// How many percent of the memory that the daemon may use are taken.
    pub percent: u64,
    /// Bytes that are taken.
    #[serde(with = "bailey_protocol::number::decimal")]
    pub used_bytes: u64,
    /// Bytes that may be taken.
    #[serde(with = "bailey_protocol::number::decimal")]
    pub limit_bytes: u64,
    /// Whether the limit is that of a control group, and not the machine's memory.
    pub group: bool,
}

/// The page's state.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct PageState {
    /// Where it is.
    pub url: String,
    /// Whether its process runs.
    pub up: bool,
    /// The last line that its process said before it ended.
    pub note: String,
}

/// A channel's state.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct ChannelState {
    /// Its name.
    pub name: String,
    /// Whether its process runs.
    pub up: bool,
    /// Whether its process runs, and the platform has not answered it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub connecting: bool,
    /// The last line that its process said before it ended; for a collector, why it takes nothing.
    pub note: String,
}

/// A session that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Running {
    /// The session.
    pub session: SessionId,
    /// Its process.
    pub pid: u32,
    /// Its project.
    pub workspace: WsPath,
    /// RFC 3339, UTC.
    pub since: String,
    /// Its state.
    #[serde(flatten)]
    pub state: State,
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct State {
    /// Whether a turn runs.
    pub working: bool,
    /// Questions that wait for a human.
    pub questions: usize,
    /// Front ends that look on.
    pub clients: usize,
    /// Processes in the background.
    #[serde(default)]
    pub processes: usize,
}

impl State {
    /// Whether the session does nothing, and no client waits for it or looks at it.
    pub fn is_at_rest(self) -> bool {
        self == Self::default()
    }
}

/// The first line at a session's socket when the daemon connects for a person at a channel: everything that
/// follows is theirs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Introduced {
    /// The person who speaks.
    pub introduced: Speaker,
}

/// The messages of a session's process to the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "report")]
pub enum Report {
    /// It is open, and listens; where it was cut off, it goes on with that.
    Ready {
        /// The session.
        session: SessionId,
        /// Its project.
        workspace: WsPath,
        /// Its state.
        state: State,
    },
    /// This is what it does now.
    State(State),
    /// It ends while calls wait for answers.
    Waits {
        /// How many questions are open.
        open: usize,
        /// When it is to begin again, unless a question is answered before.
        until: Timestamp,
    },
}

/// What the daemon says to the process of a session: come to rest, and end; read the rules again; which keys
/// are the owner's by now. That there is no daemon any more, the end of the pipe says.
pub const DRAIN: &[u8] = b"drain\n";
/// See [`DRAIN`].
pub const RULES: &[u8] = b"rules\n";
/// A question of the session was answered, or asked again; see [`DRAIN`].
pub const LOOK: &[u8] = b"look\n";
/// How the line begins that says which keys are still the owner's: a JSON object follows
/// ([`Named`](crate::compose::Named)).
pub const KEYS: &[u8] = b"keys ";

/// Listens at a socket in a directory that is its owner's alone. Removes a socket that was left there.
///
/// # Errors
/// When another process listens there, or the socket cannot be made.
pub fn listen(folder: &Path, name: &str) -> Result<UnixListener> {
    let path = folder.join(name);
    let cannot = || format!("cannot listen at `{}`", path.display());
    if connect(folder, name).is_ok() {
        bail!("another process listens at `{}`", path.display());
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).with_context(cannot),
        _ => {}
    }
    let listener = short(folder, name, UnixListener::bind).with_context(cannot)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).with_context(cannot)?;
    Ok(listener)
}

/// Connects to a socket.
///
/// # Errors
/// When no process listens there.
pub fn connect(folder: &Path, name: &str) -> io::Result<UnixStream> {
    short(folder, name, UnixStream::connect)
}

/// Uses a path that is short for any folder: a socket's address has room for 107 bytes (unix(7)).
fn short<T>(folder: &Path, name: &str, at: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
    at(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// Whether the other side is the same user: the kernel says so (`SO_PEERCRED`, unix(7)), as of the time of
/// the connection.
pub fn is_owner(stream: &tokio::net::UnixStream) -> bool {
    #[cfg(feature = "controls")]
    if crate::controls::is_open_to_all() {
        return true;
    }
    let me = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == me)
}

/// The next line, without its end; `None` when there is no more.
///
/// # Errors
/// When it is longer than `bytes_max`, or cannot be read.
pub async fn line(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    bytes_max: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let bytes_most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(bytes_most).read_until(b'\n', &mut line).await?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(line));
    }
    if line.len() > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long"));
    }
    // A line without an end was cut off.
    Ok(None)
}

/// Reads the message of a line.
///
/// # Errors
/// When it cannot be read, or is none of it.
pub async fn hear<T: DeserializeOwned>(reader: &mut BufReader<impl AsyncRead + Unpin>) -> Result<Option<T>> {
    let Some(line) = line(reader, LINE_BYTES_MAX).await? else { return Ok(None) };
    Ok(Some(serde_json::from_slice(&line)?))
}

/// Says something as a line.
///
/// # Errors
/// When no process listens.
pub async fn say(writer: &mut (impl AsyncWrite + Unpin), what: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    Ok(writer.write_all(&line).await?)
}

/// A text, or at most its first `bytes_max` bytes, with a note that there was more.
pub fn cut(text: &str, bytes_max: usize) -> String {
    match text.get(..text.floor_char_boundary(bytes_max)) {
        Some(head) if head.len() < text.len() => format!("{head} … (cut: it is {} bytes long)", text.len()),
        _ => text.to_owned(),
    }
}

/// The request in a line. A client of another version is told so, and may still ask for the end, which all
/// versions ask for alike.
///
/// # Errors
/// When the two sides have different versions, or the line is no request.
pub fn asked(line: &[u8]) -> Result<Ask> {
    let Of { v, ask } = serde_json::from_slice(line)?;
    match serde_json::from_slice::<Request>(line) {
        Ok(Request { ask: end @ Ask::Stop { .. }, .. }) => Ok(end),
        Err(_) if v != VERSION && ask == "stop" => Ok(Ask::Stop { patience_seconds: PATIENCE.as_secs() }),
        _ if v != VERSION => {
            bail!(
                "the daemon has another version than this program; restart it with `bailey stop`, then \
                 `bailey start`"
            )
        }
        request => Ok(request?.ask),
    }
}
