//! What the runtime, the warden, its holders and a sandbox's init say to each other.
//!
//! Packets (SOCK_SEQPACKET) are small JSON objects with descriptors. Behind its object a packet may have what
//! is handed on unread, such as what is to be done; where that is large, as a change's new files are, it lies
//! in a sealed memfd among the descriptors.

use crate::{config::Yard, tree::Access, worker};
use bailey_kernel::StandIn;
use bailey_protocol::{Blob, Command, Digest, Enforced, Isolation, Limits, SessionId, Wall};
use rustix::{
    fs::{MemfdFlags, SealFlags},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    cell::RefCell,
    collections::{BTreeSet, VecDeque},
    fs::File,
    io::{self, IoSlice, IoSliceMut, Read as _, Seek as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt as _,
    },
};

/// The longest packet.
const PACKET_BYTES: usize = 64 << 10;
/// The most descriptors in one packet; the kernel's own limit is 253.
const PACKET_FDS: usize = 250;
/// The longest memfd that is read.
const BLOB_BYTES: u64 = 256 << 20;
/// The longest of one that the warden reads itself while it serves.
const SHORT_BLOB_BYTES: u64 = 1 << 20;

/// The longest job that travels in packets: to make and read a memfd takes longer than to copy so much.
const SHORT_JOB_BYTES: usize = 16 << 10;
/// By how much a buffer is larger than what is read into it, so that the end needs no more room.
const PROBE_BYTES: usize = 64;

/// What the runtime asks a sandbox for. Where the session works is not its to say.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Wish {
    /// Names the session.
    pub(crate) session: SessionId,
    /// What the sandbox sees.
    pub(crate) view: View,
    /// Paths outside the workspace to bind read-only.
    pub(crate) extra_reads: Vec<String>,
    /// The limits, for control groups.
    pub(crate) limits: Limits,
}

/// What a holder is made for: a wish, and what the warden knows of its session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Names the session.
    pub(crate) session: SessionId,
    /// Where it works.
    pub(crate) yard: Yard,
    /// What the sandbox sees.
    pub(crate) view: View,
    /// Paths outside the workspace to bind read-only.
    pub(crate) extra_reads: Vec<String>,
    /// The limits, for control groups.
    pub(crate) limits: Limits,
}

/// What a holder gets of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Forward {
    /// How many it was asked for before.
    pub(crate) number: u64,
    pub(crate) header: Header,
    /// After the streams come as many trees, one for each extra read (or none, where the holder opens them
    /// itself), and then what comes with the grant.
    pub(crate) extra: usize,
    pub(crate) grant: Grant,
}

/// What a sandbox's init gets of a request: what the warden did for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// Limits that the effect's control group holds.
    pub(crate) limits: BTreeSet<Wall>,
    /// Why others are absent.
    pub(crate) absent: Vec<String>,
    /// After the streams come as many doors of a control group to join, an eventfd for when nothing but the
    /// sandbox's init is left …
    pub(crate) doors: usize,
    /// … and, if so, the file that counts processes killed for want of memory.
    pub(crate) has_events: bool,
}

/// What a payload's process gets of its init when that has looked at what is to be done, which it got before,
/// with the descriptors of the request. Where something is masked, a memfd with the absolute paths comes with
/// it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Handover {
    /// Limits that the kernel holds.
    pub(crate) limits: BTreeSet<Wall>,
    /// Limits that are watched.
    pub(crate) watched: BTreeSet<Wall>,
    /// Reasons for what is absent.
    pub(crate) absent: Vec<String>,
    /// Where the network door listens on the sandbox's loopback, for a command that has a way to it.
    pub(crate) door: Option<u16>,
}

/// What a sandbox sees of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum View {
    /// The workspace: programs, home, and the project with the session's layer over it.
    Workspace,
    /// The project and the layer side by side, both read-only, and nothing else.
    Layers,
    /// Git's part of a project and the session's layer, both read-only, a folder to hand commits over in, and
    /// programs. Nothing of the session's runs there.
    Commits,
    /// The project, writable, with the folder of backups, and the layer. No other sandbox of the session
    /// lives meanwhile.
    Merge,
    /// The session's folder, writable, and the project, to bring a copy and what differs in it up to date.
    Copy,
    /// The layer, writable, and the project. No other sandbox of the session lives meanwhile.
    Discard,
}

impl View {
    pub(crate) const ALL: [Self; 6] =
        [Self::Workspace, Self::Layers, Self::Commits, Self::Merge, Self::Copy, Self::Discard];

    /// Whether programs run in it, and not our own worker only.
    pub(crate) fn has_programs(self) -> bool {
        matches!(self, Self::Workspace | Self::Commits)
    }

    /// Whether what it was made of is looked at once and never again.
    pub(crate) fn is_for_once(self) -> bool {
        matches!(self, Self::Commits | Self::Merge | Self::Discard)
    }

    /// How the project is mounted, beneath an overlay or by itself.
    pub(crate) fn project(self) -> Access {
        if self == Self::Merge { Access::ReadWrite } else { Access::ReadOnly }
    }

    /// How its upper layer is, where it is seen by itself.
    pub(crate) fn upper(self) -> Access {
        if matches!(self, Self::Merge | Self::Discard) { Access::ReadWrite } else { Access::ReadOnly }
    }
}

/// One thing to do in a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) task: Task,
    pub(crate) isolation: Isolation,
    pub(crate) limits: Limits,
    /// Whether it is the session's first command here, which is told what of the project it cannot change.
    pub(crate) is_first: bool,
    /// For a command that has a way to the network.
    #[serde(default)]
    pub(crate) way: Option<Shown>,
}

/// What a command with a way to the network shows at the door.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) pass: String,
    /// In the place of keys that it never holds.
    pub(crate) stand_ins: Vec<StandIn>,
    /// Hosts that it asks the door for in any case.
    pub(crate) own_hosts: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Execute a program. Its standard input is a descriptor, not the command's field. What it names must be
    /// this, where that is known.
    Run(Command, Option<Named>),
    /// Execute git, or a shell that does, on a session's commits. Its standard input is a descriptor.
    Git(Command),
    /// Run the worker; its reply goes to standard output as JSON.
    Work(worker::Request),
}

/// What the files must be that a command names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) digest: Digest,
    /// Where its program was looked for.
    pub(crate) path: String,
}

/// A [`Job`] as it was written down: whoever gives it to init has not read it.
#[derive(Debug)]
pub(crate) enum Paper {
    /// It travels behind the object of a packet.
    Short(Vec<u8>),
    /// It lies in a sealed memfd, the first of a packet's descriptors.
    Long(OwnedFd),
}

impl Paper {
    /// # Errors
    /// `ENOMEM`, `EMFILE`.
    pub(crate) fn write(job: &Job) -> io::Result<Self> {
        let bytes = serde_json::to_vec(job).map_err(io::Error::other)?;
        if bytes.len() <= SHORT_JOB_BYTES { Ok(Self::Short(bytes)) } else { sealed(&bytes).map(Self::Long) }
    }

    /// Reads what will be read once more: where that matters, after [`Paper::check`].
    ///
    /// # Errors
    /// `InvalidData` when it is too long or no job.
    pub(crate) fn read(&self) -> io::Result<Job> {
        match self {
            Self::Short(bytes) => parse(bytes),
            Self::Long(fd) => unseal_shared(fd),
        }
    }

    /// Whether all who read it find the same.
    ///
    /// # Errors
    /// `InvalidData` where it lies in what is not sealed.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self {
            Self::Short(_) => Ok(()),
            Self::Long(fd) => check_sealed(fd),
        }
    }
}

/// What comes with a request: what is to be done, and the descriptors, in the order they travel in.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) paper: Paper,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// Where [`Message`]s go to. Its closing ends the sandbox; a byte asks it to end.
    pub(crate) control: OwnedFd,
}

impl Streams {
    /// Takes what came behind a packet's object, and its first descriptors; none when there are fewer.
    pub(crate) fn take(tail: Vec<u8>, fds: &mut VecDeque<OwnedFd>) -> Option<Self> {
        Some(Self {
            paper: if tail.is_empty() { Paper::Long(fds.pop_front()?) } else { Paper::Short(tail) },
            stdin: fds.pop_front()?,
            stdout: fds.pop_front()?,
            stderr: fds.pop_front()?,
            control: fds.pop_front()?,
        })
    }

    /// What goes behind a packet's object, and its first descriptors.
    pub(crate) fn borrow(&self) -> (&[u8], Vec<BorrowedFd<'_>>) {
        let (tail, long): (&[u8], _) = match &self.paper {
            Paper::Short(bytes) => (bytes, None),
            Paper::Long(fd) => (&[], Some(fd)),
        };
        let all = long.into_iter().chain([&self.stdin, &self.stdout, &self.stderr, &self.control]);
        (tail, all.map(AsFd::as_fd).collect())
    }
}

/// What the runtime hears of a sandbox, in this order; then the socket closes, when its first process is gone
/// and the warden knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Message {
    /// With it comes a listener on the sandbox's loopback, for the requests of a command that has a way to
    /// the network.
    Listening,
    /// The walls stand, the payload starts now.
    Started(Enforced),
    /// It was not started (or could not be executed), and this is why.
    Refused(String),
    /// The payload ended and nothing of it is left but the sandbox's first process, which ends.
    Ended(PayloadEnd),
    /// The sandbox's first process is gone: its wait status, when a signal ended it.
    Gone {
        /// The signal.
        signal: Option<i32>,
    },
}

/// How a payload ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PayloadEnd {
    pub(crate) exit: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) limit: Option<String>,
    pub(crate) out_no_routes: u64,
}

/// A change of the agent's own file. None: no file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Swap {
    /// What it must hold.
    pub(crate) old: Option<Blob>,
    /// What it shall hold; where that is the same, it is only looked at.
    pub(crate) new: Option<Blob>,
}

/// What came of a change of the agent's own file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Swapped {
    /// It holds the new text.
    Done,
    /// It held something else than the old text, and still does.
    Differs,
    /// Nothing was done, and why.
    Refused(String),
}

/// What can be said of a session's layer without looking through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Layer {
    /// It holds nothing.
    Bare,
    /// It may hold something.
    Unknown,
}

/// Sends one packet.
///
/// # Errors
/// Of sendmsg(2); `EMSGSIZE` above the limit of a packet.
pub(crate) fn send<T: Serialize>(
    socket: BorrowedFd<'_>,
    value: &T,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    send_with(socket, value, &[], fds)
}

/// Sends one packet with something behind its object.
///
/// # Errors
/// Those of [`send`].
pub(crate) fn send_with<T: Serialize>(
    socket: BorrowedFd<'_>,
    value: &T,
    tail: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(value).map_err(io::Error::other)?;
    if bytes.len() + tail.len() > PACKET_BYTES || fds.len() > PACKET_FDS {
        return Err(rustix::io::Errno::MSGSIZE.into());
    }
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(rustix::io::Errno::MSGSIZE.into());
    }
    let parts = [IoSlice::new(&bytes), IoSlice::new(tail)];
    rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Sends one packet to whatever a stranger gave, and waits for nobody.
///
/// # Errors
/// Of send(2): `EAGAIN` where it would wait, `ENOTSOCK`.
pub(crate) fn tell<T: Serialize>(socket: BorrowedFd<'_>, value: &T) -> io::Result<()> {
    let bytes = serde_json::to_vec(value).map_err(io::Error::other)?;
    rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// Receives one packet; none when the other side has closed.
///
/// # Errors
/// Of recvmsg(2); `InvalidData` for a packet that is too long or is not what was expected.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<(T, VecDeque<OwnedFd>)>> {
    Ok(match receive_with(socket)? {
        Some((value, tail, fds)) if tail.is_empty() => Some((value, fds)),
        Some(_) => {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet with more than was expected"));
        }
        None => None,
    })
}

/// A packet's object, what is behind it, and its descriptors.
type Received<T> = (T, Vec<u8>, VecDeque<OwnedFd>);

/// Receives one packet with what is behind its object; none when the other side has closed.
///
/// # Errors
/// Those of [`receive`].
pub(crate) fn receive_with<T: DeserializeOwned>(socket: BorrowedFd<'_>) -> io::Result<Option<Received<T>>> {
    thread_local! {
        // Kept: in a process that was just forked each page of a new one would be a fault while somebody
        // waits.
        static PACKET: RefCell<Vec<u8>> = RefCell::new(vec![0; PACKET_BYTES]);
    }
    PACKET.with_borrow_mut(|bytes| receive_into(bytes, socket))
}

fn receive_into<T: DeserializeOwned>(
    bytes: &mut [u8],
    socket: BorrowedFd<'_>,
) -> io::Result<Option<Received<T>>> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut fds = VecDeque::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "packet was cut"));
    }
    let bytes = bytes.get(..received.bytes).unwrap_or_default();
    let (value, tail) = split(bytes)?;
    Ok(Some((value, tail.to_vec(), fds)))
}

/// A packet's object, and what is behind it.
///
/// # Errors
/// `InvalidData` where it does not begin with what was expected.
pub(crate) fn split<T: DeserializeOwned>(packet: &[u8]) -> io::Result<(T, &[u8])> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut values = serde_json::Deserializer::from_slice(packet).into_iter();
    let value = values.next().transpose().map_err(invalid)?;
    let value =
        value.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a packet without an object"))?;
    Ok((value, packet.get(values.byte_offset()..).unwrap_or_default()))
}

/// Bytes in a sealed file of memory, to be read from its start.
///
/// # Errors
/// `ENOMEM`, `EMFILE`.
pub(crate) fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("bailey", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    file.rewind()?;
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file.into())
}

/// Reads what [`sealed`] wrote as JSON.
///
/// # Errors
/// `InvalidData` when it is too long or not what was expected.
pub(crate) fn unseal<T: DeserializeOwned>(fd: OwnedFd) -> io::Result<T> {
    unseal_within(fd, BLOB_BYTES)
}

/// The same of what is short, for whoever serves others meanwhile: of anything but memory that nobody changes
/// any more, such as a pipe, a read could wait for ever.
///
/// # Errors
/// Those of [`unseal`]; `InvalidData` where it is not sealed.
pub(crate) fn unseal_short<T: DeserializeOwned>(fd: OwnedFd) -> io::Result<T> {
    check_sealed(&fd)?;
    unseal_within(fd, SHORT_BLOB_BYTES)
}

/// Reads what somebody else may be reading: the place where a read begins is theirs, too.
fn unseal_shared<T: DeserializeOwned>(fd: &OwnedFd) -> io::Result<T> {
    let size = u64::try_from(rustix::fs::fstat(fd)?.st_size).unwrap_or(0).min(BLOB_BYTES);
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    File::from(fd.try_clone()?).read_exact_at(&mut bytes, 0)?;
    parse(&bytes)
}

/// Whether nobody can change any more what is to be read; zeroes that somebody adds make it none of our
/// documents.
///
/// # Errors
/// `InvalidData` where it is not sealed.
fn check_sealed(fd: &OwnedFd) -> io::Result<()> {
    let seals = rustix::fs::fcntl_get_seals(fd).unwrap_or(SealFlags::empty());
    if seals.contains(SealFlags::WRITE | SealFlags::SHRINK) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "what was to be read is not sealed"))
}

fn unseal_within<T: DeserializeOwned>(fd: OwnedFd, bytes_max: u64) -> io::Result<T> {
    // With room for all, it is one read and one that finds the end.
    let size = rustix::fs::fstat(&fd).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(bytes_max)).unwrap_or(0) + PROBE_BYTES);
    File::from(fd).take(bytes_max).read_to_end(&mut bytes)?;
    parse(&bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A pair of connected packet sockets.
///
/// # Errors
/// `EMFILE`.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}
