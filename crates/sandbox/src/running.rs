//! A sandbox while it lives: its two streams of output and its control socket.

use crate::{
    capture::Capture,
    wire::{self, Message, PayloadEnd},
};
use bailey_protocol::{Enforced, Stream};
use bytes::{Bytes, BytesMut};
use rustix::net::{SendFlags, send};
use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};
use tokio::{
    io::{AsyncReadExt as _, Interest},
    net::{UnixDatagram, unix::pipe::Receiver},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

/// How much is read of a stream at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The stream to which a piece of live output belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of a command's output while it runs.
pub type Piece = (OutputStream, Bytes);

/// Our ends of a sandbox.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
    /// What comes here is heard through [`packets`].
    pub(crate) control: OwnedFd,
}

/// What was heard of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) enforced: Option<Enforced>,
    pub(crate) refused: Option<String>,
    pub(crate) ended: Option<PayloadEnd>,
    /// The signal that ended the sandbox's first process.
    pub(crate) killed: Option<i32>,
}

impl Story {
    pub(crate) fn take(&mut self, message: Message) {
        match message {
            Message::Started(enforced) => self.enforced = Some(enforced),
            Message::Refused(reason) => self.refused = Some(reason),
            Message::Ended(ended) => self.ended = Some(ended),
            Message::Gone { signal } => self.killed = signal,
            // With what came with it, of use only to whoever waits for that.
            Message::Listening => {}
        }
    }

    /// Why the payload was not started; none when it was.
    pub(crate) fn refusal(&self) -> Option<String> {
        match (&self.refused, &self.enforced, self.killed) {
            (Some(reason), ..) => Some(reason.clone()),
            (None, Some(_), _) => None,
            (None, None, Some(signal)) => {
                Some(format!("signal {signal} ended the sandbox before anything ran in it"))
            }
            (None, None, None) => Some("the sandbox ended before anything ran in it".into()),
        }
    }
}

/// What is waited for while a sandbox lives.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// A listener on its loopback.
    pub(crate) listener: Option<oneshot::Sender<OwnedFd>>,
    /// The walls that its payload starts behind.
    pub(crate) begun: Option<oneshot::Sender<Enforced>>,
}

impl Awaited {
    fn is_nothing(&self) -> bool {
        self.listener.is_none() && self.begun.is_none()
    }
}

/// Hears a program's sandbox while its streams are read, both to the end.
///
/// Where nobody waits for what is told of its beginning, that is heard once the streams have ended: to be
/// told of it this process would run just where the program is about to.
///
/// # Errors
/// When the control socket cannot be waited for.
pub(crate) async fn attend<T>(
    control: OwnedFd,
    streams: impl Future<Output = T>,
    awaited: Awaited,
    cancel: &CancellationToken,
) -> io::Result<(T, Story)> {
    if !awaited.is_nothing() {
        let control = packets(control)?;
        return Ok(tokio::join!(streams, listen(&control, awaited, cancel)));
    }
    tokio::pin!(streams);
    let read = tokio::select! {
        read = &mut streams => read,
        () = cancel.cancelled() => {
            let control = packets(control)?;
            return Ok(tokio::join!(streams, listen(&control, awaited, cancel)));
        }
    };
    Ok((read, listen(&packets(control)?, awaited, cancel).await))
}

/// Hears the sandbox until nothing of what ran in it is left, or out, where it does not say so: its first
/// process may be about to go, for which the warden waits before it makes the next. What is waited for goes
/// to whoever waits.
async fn listen(control: &UnixDatagram, mut awaited: Awaited, cancel: &CancellationToken) -> Story {
    let mut story = Story::default();
    let mut asked = false;
    loop {
        let heard = tokio::select! {
            () = cancel.cancelled(), if !asked => {
                asked = true;
                // When it is gone already, its end is on the way. Past the runtime, which takes a socket that
                // it was given a moment ago for one that cannot be written to.
                send(control, b"t", SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok();
                continue;
            }
            heard = hear(control) => heard,
        };
        match heard {
            Some((Message::Listening, Some(found))) => {
                if let Some(waiting) = awaited.listener.take() {
                    drop(waiting.send(found));
                }
            }
            Some((message, _)) => {
                if let Message::Started(enforced) = &message
                    && let Some(waiting) = awaited.begun.take()
                {
                    drop(waiting.send(enforced.clone()));
                }
                story.take(message);
                if story.ended.is_some() {
                    return story;
                }
            }
            None => return story,
        }
    }
}

/// The next message, and a descriptor that came with it; none when the socket has ended, or what came is no
/// message: nothing after what is not understood can be trusted.
pub(crate) async fn hear(control: &UnixDatagram) -> Option<(Message, Option<OwnedFd>)> {
    let receive = || match wire::receive::<Message>(control.as_fd()) {
        // Whoever ended has not read that it should. The kernel says so once, before what it said itself.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => wire::receive(control.as_fd()),
        received => received,
    };
    let (message, mut fds) = control.async_io(Interest::READABLE, receive).await.ok()??;
    Some((message, fds.pop_front()))
}

/// Records a stream until its end, and hands it on piece by piece.
pub(crate) async fn pump(
    mut stream: Receiver,
    source: OutputStream,
    limit: u64,
    out: mpsc::Sender<Piece>,
    cancel: &CancellationToken,
) -> Stream {
    let mut capture = Capture::new(limit);
    let mut out = Some(out);
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK_BYTES);
        match stream.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return capture.finish(),
            Ok(_) => {}
        }
        let piece = buffer.split().freeze();
        capture.push(&piece);
        if let Some(sender) = &out {
            let is_open = tokio::select! {
                sent = sender.send((source, piece)) => sent.is_ok(),
                () = cancel.cancelled() => false,
            };
            if !is_open {
                out = None;
            }
        }
    }
}

/// A socket of packets for tokio. It knows none of its own, but sends and receives them as it does datagrams.
pub(crate) fn packets(socket: OwnedFd) -> io::Result<UnixDatagram> {
    let socket = std::os::unix::net::UnixDatagram::from(socket);
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel tells of what was never read before it hands on what was said (unix(7)).
    #[tokio::test]
    async fn an_end_is_heard_that_came_before_its_cancel() {
        for is_late in [false, true] {
            let (ours, theirs) = wire::pair().unwrap();
            let ended = PayloadEnd { exit: Some(7), signal: None, limit: None, out_no_routes: 0 };
            wire::tell(theirs.as_fd(), &Message::Ended(ended)).unwrap();
            let control = packets(ours).unwrap();
            if is_late {
                control.send(b"t").await.unwrap();
            }
            drop(theirs);
            let story = listen(&control, Awaited::default(), &CancellationToken::new()).await;
            assert_eq!(story.ended.and_then(|ended| ended.exit), Some(7), "{is_late}");
        }
    }
}
