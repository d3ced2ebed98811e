//! Bodies that pass by: counted, never kept, and cut off where nothing comes for too long.

use super::{
    headers::{behind, header_bytes},
    limits::Meter,
    notes::Broken,
};
use crate::connect::BoxError;
use bailey_secrets::{Redactor, StreamRedactor};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    fmt,
    future::Future as _,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};

/// A body of an answer, passed on or our own.
pub(super) type Answered = BoxBody<Bytes, BoxError>;

/// A text of our own.
pub(super) fn text(text: String) -> Answered {
    Full::from(text).map_err(|never| match never {}).boxed()
}

/// A body that passes by.
#[derive(Debug)]
pub(super) struct Passing {
    inner: Incoming,
    meter: Meter,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    /// Hears how it ended: whole, or why not.
    ended: Option<oneshot::Sender<Result<(), Broken>>>,
    look: Option<Look>,
}

pub(super) const SHOWS_STAND_IN: &str = "its body shows the stand-in of a key, which is put in nowhere but in the header that its owner bound it to";

/// What is looked for in a body as it passes. What may be the beginning of it waits for what follows.
pub(super) enum Look {
    /// For what must not pass: then the rest does not pass, either.
    Refuse(StreamRedactor),
    /// For what must not be seen: a mark stands in its place, and the number of marks is counted.
    Mask(Mask),
}

/// What masks a body. When bytes come out of it depends on how many went in and not on what they are: whoever
/// chose them could otherwise tell from the pieces how much of a guess is the beginning of what is masked.
pub(super) struct Mask {
    stream: StreamRedactor,
    /// At least as many bytes as the stream ever holds back.
    lag: usize,
    taken: usize,
    given: usize,
    waiting: Vec<u8>,
    count: Arc<AtomicU32>,
    before: u32,
}

impl Mask {
    /// `count` is how often it masked so far.
    pub(super) fn new(mask: &Redactor, count: &Arc<AtomicU32>) -> Self {
        let before = count.load(Ordering::Relaxed);
        let (stream, lag, count) = (mask.stream(), mask.hold_max(), count.clone());
        Self { stream, lag, taken: 0, given: 0, waiting: Vec::new(), count, before }
    }

    pub(super) fn through(&mut self, bytes: &[u8]) -> Bytes {
        self.waiting.extend(self.stream.push(bytes));
        self.taken += bytes.len();
        let due = self.taken.saturating_sub(self.lag).saturating_sub(self.given).min(self.waiting.len());
        self.given += due;
        self.tell();
        self.waiting.drain(..due).collect()
    }

    pub(super) fn rest(mut self) -> Bytes {
        self.waiting.extend(self.stream.end());
        self.tell();
        self.waiting.into()
    }

    fn tell(&self) {
        let hits = u32::try_from(self.stream.hits()).unwrap_or(u32::MAX);
        self.count.store(self.before.saturating_add(hits), Ordering::Relaxed);
    }
}

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Refuse(_)) { "Refuse" } else { "Mask" })
    }
}

impl Look {
    /// What may pass of these bytes and those that waited.
    fn through(&mut self, bytes: &[u8]) -> Result<Bytes, &'static str> {
        match self {
            Self::Refuse(stream) => {
                let passes = stream.push(bytes);
                if stream.hits() > 0 { Err(SHOWS_STAND_IN) } else { Ok(passes.into()) }
            }
            Self::Mask(mask) => Ok(mask.through(bytes)),
        }
    }

    /// What waited still.
    fn rest(self) -> Result<Bytes, &'static str> {
        match self {
            Self::Refuse(mut stream) => {
                let passes = stream.end();
                if stream.hits() > 0 { Err(SHOWS_STAND_IN) } else { Ok(passes.into()) }
            }
            Self::Mask(mask) => Ok(mask.rest()),
        }
    }
}

impl Passing {
    /// The same body, its bytes counted; `ended` hears when it is over.
    pub(super) fn new(
        inner: Incoming,
        meter: Meter,
        idle: Duration,
        ended: Option<oneshot::Sender<Result<(), Broken>>>,
    ) -> Self {
        Self { inner, meter, idle, timer: Box::pin(sleep(idle)), ended, look: None }
    }

    /// The same, looked through.
    pub(super) fn looking(mut self, look: Option<Look>) -> Self {
        self.look = look;
        self
    }

    fn fail<T>(&mut self, why: String) -> Poll<Option<Result<T, BoxError>>> {
        self.look = None;
        self.end(Err(why.clone().into()));
        Poll::Ready(Some(Err(why.into())))
    }

    fn end(&mut self, how: Result<(), Broken>) {
        if let Some(ended) = self.ended.take() {
            drop(ended.send(how));
        }
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let counted = match frame.trailers_ref() {
                    Some(trailers) => self.meter.pass_head(header_bytes(trailers)),
                    None => self.meter.pass(frame.data_ref().map_or(0, Bytes::len)),
                };
                if let Err(why) = counted {
                    return self.fail(why);
                }
                let next = Instant::now() + self.idle;
                self.timer.as_mut().reset(next);
                // What comes behind the body of a request went past nobody who looks at headers, and may be
                // left away (RFC 9110, 6.5).
                if self.meter.is_out() && frame.is_trailers() {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::new()))));
                }
                let Some(look) = &mut self.look else {
                    let frame = frame.into_trailers().map(|trailers| Frame::trailers(behind(&trailers)));
                    return Poll::Ready(Some(Ok(frame.unwrap_or_else(|frame| frame))));
                };
                match frame.into_data().map(|bytes| look.through(&bytes)) {
                    Ok(Ok(passes)) => Poll::Ready(Some(Ok(Frame::data(passes)))),
                    Ok(Err(why)) => self.fail(why.into()),
                    // What comes after a body is as long as a header, and nobody needs it here.
                    Err(_trailers) => Poll::Ready(Some(Ok(Frame::data(Bytes::new())))),
                }
            }
            Poll::Ready(Some(Err(error))) => {
                self.end(Err(format!("the connection broke: {error}").into()));
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => match self.look.take().map(Look::rest) {
                Some(Ok(rest)) if !rest.is_empty() => Poll::Ready(Some(Ok(Frame::data(rest)))),
                Some(Err(why)) => self.fail(why.into()),
                Some(Ok(_)) | None => {
                    self.end(Ok(()));
                    Poll::Ready(None)
                }
            },
            Poll::Pending => {
                if self.timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                let why = format!("nothing came for {} s", self.idle.as_secs());
                self.fail(why)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.look.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // A mark is not as long as what it stands for.
        if matches!(self.look, Some(Look::Mask(_))) { SizeHint::default() } else { self.inner.size_hint() }
    }
}

/// A connection whose bytes are counted as they pass, so that one that is cut off has its count.
#[derive(Debug)]
pub(super) struct Counted<T> {
    inner: T,
    out: Meter,
    back: Meter,
}

impl<T> Counted<T> {
    pub(super) fn new(inner: T, out: Meter, back: Meter) -> Self {
        Self { inner, out, back }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, into);
        let passed = self.back.pass(into.filled().len() - before).map_err(io::Error::other);
        read.map(|read| read.and(passed))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Before they are gone: each new connection could send so much again beyond what may pass.
        let reserved = self.out.reserve(bytes.len()).map_err(io::Error::other)?;
        let written =
            Pin::new(&mut self.inner).poll_write(context, bytes.get(..reserved).unwrap_or_default());
        let sent = match &written {
            Poll::Ready(Ok(sent)) => *sent,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        self.out.sent(reserved, sent);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Whoever knows that it is over asks no more.
        let is_whole = self.is_end_stream();
        self.end(if is_whole { Ok(()) } else { Err(Broken::Gone(" before it was over")) });
    }
}

#[cfg(test)]
mod tests;
