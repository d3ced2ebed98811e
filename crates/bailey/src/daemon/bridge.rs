//! What the daemon and a process that hears the world for it say to each other: packets of JSON over a pair
//! of sockets, with a descriptor where one is handed over.
//!
//! That process, a channel's or the page's, can open no Unix socket. So it reaches the sessions whose
//! connections the daemon gives it, and speaks there as whom the daemon introduced: it can neither come to
//! another session nor call itself the owner.

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
/// How much of why something is refused is told, in bytes: written as JSON it becomes six times as long at
/// most, and is a packet still.
const WHY_BYTES_MAX: usize = 8 << 10;

/// A question, or its answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Packet<T> {
    /// Which question it is: answers need not come in order.
    pub(crate) number: u64,
    pub(crate) it: T,
}

/// Something for somebody.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Who it is for, as the platform vouches, and what they call themselves.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The conversation.
    pub(crate) at: String,
    pub(crate) what: What,
}

/// What the process of a channel asks for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Need {
    /// Something for somebody.
    Person(Asked),
    /// What a server delivers next, for as long as it takes; and what became of the one before.
    Delivery(Option<Taken>),
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Taken {
    /// It is noted, and will not be lost.
    Noted,
    /// Nobody who has the key signed it, or not lately.
    Unsigned,
    /// It says nothing that is understood.
    Wrong(String),
}

/// What is wanted for somebody in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// A connection to the conversation's session, as them.
    Connection,
    /// The same for whoever tapped a button: who is not known has not asked to be let in.
    Tap,
    /// The same where a process of it runs; it begins none.
    Running,
    /// The conversation is to go on as a new session.
    Clear,
    /// What a command of this program prints.
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

/// What the daemon answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The connection comes with this, and speaks as them.
    Connected(Speaker),
    /// It was done, or is what was asked for.
    Done(String),
    /// They are not known. The code to give the owner, where they were not told one yet.
    Stranger(Option<String>),
    /// They may not.
    Denied(String),
    /// It cannot be done now.
    Refused(String),
}

/// What is asked.
pub(super) trait Asking {
    /// Whether it is answered at once, and so takes no place of what takes time.
    fn is_quick(&self) -> bool {
        false
    }
}

impl Asking for Need {}

impl Asking for bailey_gateway::Ask {
    fn is_quick(&self) -> bool {
        // Whoever looks after the daemon by it must not take a page that is busy for one that is gone.
        self.wish == Wish::Health
    }
}

/// What is answered, and may be that it cannot be done.
pub(super) trait Refusable: Sized {
    /// That it cannot be done, and why; none where nothing is ever refused.
    fn refused(why: String) -> Option<Self>;

    /// The same of what went wrong. Why that is, is often the world's to say: as much of it is told as fits a
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

/// What a [`Need`] is met with.
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
/// `FileTooLarge` for what nobody would receive whole; and those of sendmsg(2).
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
        // Where the kernel's own bound is less.
        Err(Errno::MSGSIZE) => Err(too_long()),
        sent => Ok(sent.map(drop)?),
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "that is too long for a packet")
}

/// Receives one packet; none when the other side has closed.
///
/// # Errors
/// Of recvmsg(2); `InvalidData` for what was cut or is none of these.
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
