//! The messages between the daemon and a process that listens to the outside for it: packets of JSON over a
//! pair of sockets, with a descriptor when one is handed over.
//!
//! That process, a channel's or the page's, can open no Unix socket. So it reaches only the sessions whose
//! connections the daemon gives it, and speaks there as the person whom the daemon introduced: it can neither
//! come to another session nor call itself the owner.

use crate::wire;
use bailey_gateway::{Delivery, Wish};
use bailey_protocol::Speaker;
use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// The longest packet, in bytes.
const PACKET_BYTES_MAX: usize = 64 << 10;
/// How many bytes of the reason for a refusal are sent: as JSON they become at most six times as long, and
/// still fit in a packet.
const WHY_BYTES_MAX: usize = 8 << 10;

/// A request, or its answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Packet<T> {
    /// The number of the request: answers need not come in order.
    pub(crate) number: u64,
    pub(crate) it: T,
}

/// A request for a person.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The person's id, as the platform vouches, and the name that they call themselves.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The conversation.
    pub(crate) at: String,
    pub(crate) what: What,
}

/// The requests of a channel's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Need {
    /// A request for a person.
    Person(Asked),
    /// Waits for a server's next delivery, for as long as it takes, and reports the outcome of the one
    /// before.
    Delivery(Option<Taken>),
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Taken {
    /// The delivery is noted, and will not be lost.
    Noted,
    /// No holder of the key signed it, or the signature is not recent.
    Unsigned,
    /// Its content is not understood.
    Wrong(String),
}

/// The kinds of requests for a person in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// A connection to the conversation's session, as that person.
    Connection,
    /// The same for a person who tapped a button: by that, an unknown person has not asked to be let in.
    Tap,
    /// The same if a process of the session runs; this begins no process.
    Running,
    /// The conversation goes on as a new session.
    Clear,
    /// The output of a command of this program.
    Told(Page),
    /// Everything stops.
    Estop,
}

/// A page that a person may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Page {
    Status,
    Budget,
    Tools,
    Sandbox,
    /// A copy of the home, made in it.
    Backup,
}

impl Page {
    /// The command that prints it.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Status => &["status"],
            Self::Budget => &["budget"],
            Self::Tools => &["tools", "list"],
            Self::Sandbox => &["sandbox", "doctor"],
            Self::Backup => &["backup"],
        }
    }
}

/// The daemon's answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The connection comes with this answer, and speaks as that person.
    Connected(Speaker),
    /// The request was done; or its output.
    Done(String),
    /// The person is not known. Holds the code to give the owner, unless they were told one already.
    Stranger(Option<String>),
    /// The person may not do this.
    Denied(String),
    /// It cannot be done now.
    Refused(String),
}

/// A request of a process.
pub(super) trait Asking {
    /// Whether the answer comes at once, so that the request takes no place of requests that take time.
    fn is_quick(&self) -> bool {
        false
    }
}

impl Asking for Need {}

impl Asking for bailey_gateway::Ask {
    fn is_quick(&self) -> bool {
        // A program that watches the daemon by this request must not take a busy page for a page that is
        // gone.
        self.wish == Wish::Health
    }
}

/// An answer that may be a refusal.
pub(super) trait Refusable: Sized {
    /// The refusal, with its reason; `None` when this kind of request is never refused.
    fn refused(why: String) -> Option<Self>;

    /// The refusal for an error. The reason often comes from outside, so only as much of it is sent as fits a
    /// packet.
    fn wrong(error: &anyhow::Error) -> Option<Self> {
        Self::refused(wire::cut(&format!("{error:#}"), WHY_BYTES_MAX))
    }
}

impl Refusable for bailey_gateway::Answer {
    fn refused(why: String) -> Option<Self> {
        Some(Self::Refused(why))
    }
}

/// The answer to a [`Need`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Given {
    Person(Answer),
    Delivery(Delivery),
}

impl Refusable for Given {
    fn refused(why: String) -> Option<Self> {
        Some(Self::Person(Answer::Refused(why)))
    }
}

/// Sends one packet.
///
/// # Errors
/// `FileTooLarge` for a packet that is too long to be received whole; and those of sendmsg(2).
pub(crate) fn send(socket: impl AsFd, what: &impl Serialize, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = serde_json::to_vec(what).map_err(io::Error::other)?;
    if bytes.len() > PACKET_BYTES_MAX {
        return Err(too_long());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    match rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL) {
        // The kernel's own limit may be lower.
        Err(Errno::MSGSIZE) => Err(too_long()),
        sent => Ok(sent.map(drop)?),
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "that is too long for a packet")
}

/// Receives one packet; `None` when the other side has closed.
///
/// # Errors
/// Those of recvmsg(2); `InvalidData` for a packet that was cut or is not of this type.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut bytes = vec![0; PACKET_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let into = &mut [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(&socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut fd = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fd = rights.last().or(fd);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(invalid("a packet was cut".into()));
    }
    let value = serde_json::from_slice(bytes.get(..received.bytes).unwrap_or_default());
    Ok(Some((value.map_err(|error| invalid(error.to_string()))?, fd)))
}
