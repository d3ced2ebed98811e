//! Output in pieces: the output of a command, and the events of a session.

use crate::{places::Busy, route::After};
use bailey_protocol::Op;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use serde::Deserialize;
use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    os::{fd::OwnedFd, unix::net},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf, pipe},
    },
    sync::mpsc,
    time::{Interval, interval},
};

/// How many pieces wait for a browser before their producer waits, too.
const WAITING_MAX: usize = 16;
/// How many ops wait for a session.
const OPS_WAITING_MAX: usize = 16;
/// How many streams of sessions there are at once.
const STREAMS_MAX: usize = 64;
/// The message about a stream that is not open, or not this browser's.
pub(crate) const ENDED: &str = "that stream has ended: open it again";
/// The size of a piece, in bytes.
const PIECE_BYTES: usize = 32 << 10;
/// The longest line of an event, which may hold a whole diff, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// How often a browser that gets no other output gets a sign of life.
const BEAT: Duration = Duration::from_secs(15);

/// A body that comes piece by piece, and keeps its connection's place.
pub(crate) struct Relay {
    pieces: mpsc::Receiver<Bytes>,
    _busy: Busy,
}

impl Body for Relay {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The open streams of sessions, by name: the bearer that opened each stream, and the channel for its ops.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<String, OpenStream>>>);

/// An open stream of a session.
struct OpenStream {
    bearer: String,
    ops: mpsc::Sender<Vec<u8>>,
}

impl Streams {
    /// Sends an op to a stream's session, if the same bearer opened the stream.
    pub(crate) fn say(&self, name: &str, bearer: &str, op: &Op) -> Result<(), &'static str> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = open.get(name).filter(|stream| stream.bearer == bearer);
        let stream = stream.ok_or(ENDED)?;
        let mut line = serde_json::to_vec(op).map_err(|_| "that cannot be said")?;
        line.push(b'\n');
        stream.ops.try_send(line).map_err(|_| "the session is too busy: try again")
    }

    /// Whether this bearer opened that stream.
    pub(crate) fn has(&self, name: &str, bearer: &str) -> bool {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(name).is_some_and(|stream| stream.bearer == bearer)
    }

    fn add(&self, bearer: String) -> io::Result<(String, mpsc::Receiver<Vec<u8>>)> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let (ops, said) = mpsc::channel(OPS_WAITING_MAX);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= STREAMS_MAX {
            return Err(io::Error::other("too many pages show sessions; close some of them"));
        }
        open.insert(name.clone(), OpenStream { bearer, ops });
        Ok((name, said))
    }

    fn remove(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// The output of a pipe.
pub(crate) fn read(pipe: OwnedFd, busy: Busy) -> io::Result<Relay> {
    let mut pipe = pipe::Receiver::from_owned_fd(pipe)?;
    let (pieces, relay) = mpsc::channel(WAITING_MAX);
    tokio::spawn(async move {
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            match pipe.read_buf(&mut piece).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            if pieces.send(piece.into()).await.is_err() {
                return;
            }
        }
    });
    Ok(Relay { pieces: relay, _busy: busy })
}

/// The events of a session, and the way for the ops of its browser.
pub(crate) fn join(
    streams: &Streams,
    socket: OwnedFd,
    bearer: String,
    after: Option<After>,
    busy: Busy,
) -> io::Result<Relay> {
    let socket = net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    let (read, write) = UnixStream::from_std(socket)?.into_split();
    let (name, said) = streams.add(bearer)?;
    let (lines, relay) = mpsc::channel(WAITING_MAX);
    let streams = streams.clone();
    tokio::spawn(async move {
        let first = format!("{{\"type\":\"stream\",\"stream\":\"{name}\"}}\n");
        tokio::select! {
            () = tell(read, first, lines, after) => {}
            () = say(write, said) => {}
        }
        streams.remove(&name);
    });
    Ok(Relay { pieces: relay, _busy: busy })
}

/// Sends a browser the lines that it does not have yet.
async fn tell(read: OwnedReadHalf, first: String, lines: mpsc::Sender<Bytes>, after: Option<After>) {
    let mut read = BufReader::new(read);
    let mut beat = interval(BEAT);
    beat.reset();
    if lines.send(first.into()).await.is_err() {
        return;
    }
    while let Some(line) = next(&mut read, &mut beat, &lines).await {
        if !is_known(&line, after.as_ref()) && lines.send(line.into()).await.is_err() {
            return;
        }
    }
}

/// The next line, with its end. Meanwhile the browser gets signs of life. `None` when there are no more
/// lines, or the browser is gone.
async fn next(
    read: &mut BufReader<OwnedReadHalf>,
    beat: &mut Interval,
    lines: &mpsc::Sender<Bytes>,
) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut limited = read.take(LINE_BYTES_MAX);
    loop {
        tokio::select! {
            // If the read is cut short, its bytes stay in `line`.
            read = limited.read_until(b'\n', &mut line) => {
                read.ok()?;
                return (line.last() == Some(&b'\n')).then_some(line);
            }
            _ = beat.tick() => lines.send(Bytes::from_static(b"\n")).await.ok()?,
        }
    }
}

/// Whether the browser has this line: it is of the same run, and not after the browser's last line.
fn is_known(line: &[u8], after: Option<&After>) -> bool {
    #[derive(Deserialize)]
    struct LinePosition {
        run: String,
        line: u64,
    }
    let Some(after) = after else { return false };
    serde_json::from_slice::<LinePosition>(line)
        .is_ok_and(|place| place.run == after.run && place.line <= after.line)
}

async fn say(mut write: OwnedWriteHalf, mut said: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = said.recv().await {
        if write.write_all(&line).await.is_err() {
            return;
        }
    }
}
