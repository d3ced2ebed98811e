//! The messages between the daemon and a process that listens to the outside for it: packets of JSON over a
//! pair of sockets, with a descriptor when one is handed over.

use crate::wire;
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
pub struct Packet<T> {
    /// The number of the request: answers need not come in order.
    pub number: u64,
    /// The request, or the answer.
    pub it: T,
}

/// A request of a process.
pub trait Asking {
    /// Whether the answer comes at once, so that the request takes no place of requests that take time.
    fn is_quick(&self) -> bool {
        false
    }
}

/// An answer that may be a refusal.
pub trait Refusable: Sized {
    /// The refusal, with its reason; `None` when this kind of request is never refused.
    fn refused(why: String) -> Option<Self>;

    /// The refusal for an error. The reason often comes from outside, so only as much of it is sent as fits a
    /// packet.
    fn wrong(error: &anyhow::Error) -> Option<Self> {
        Self::refused(wire::cut(&format!("{error:#}"), WHY_BYTES_MAX))
    }
}

/// Sends one packet.
///
/// # Errors
/// `FileTooLarge` for a packet that is too long to be received whole; and those of sendmsg(2).
pub fn send(socket: impl AsFd, what: &impl Serialize, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
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
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Option<OwnedFd>)>> {
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
