//! A connection whose client must take the output: if nothing goes out for too long, the connection has
//! ended.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

pub(crate) struct Patient<S> {
    stream: S,
    most: Duration,
    /// The time limit, while output waits.
    until: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> Patient<S> {
    /// A stream that waits at most `most` for a write to proceed.
    pub(crate) fn new(stream: S, most: Duration) -> Self {
        Self { stream, most, until: Box::pin(sleep(most)), is_waiting: false }
    }

    fn within<T>(&mut self, context: &mut Context<'_>, sent: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            self.is_waiting = false;
            return sent;
        }
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.until.as_mut().reset(Instant::now() + self.most);
        }
        ready!(self.until.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.within(context, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, sent)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(context, sent)
    }
}

#[cfg(test)]
mod tests {
    use super::Patient;
    use std::{io::ErrorKind, time::Duration};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test]
    async fn who_takes_nothing_is_left_and_who_is_slow_is_not() {
        let most = Duration::from_millis(500);
        let (mut slow, ours) = duplex(8);
        let mut ours = Patient::new(ours, most);
        let taking = tokio::spawn(async move {
            let mut taken = 0;
            let mut bytes = [0; 4];
            while let Ok(1..) = slow.read(&mut bytes).await {
                taken += 1;
                tokio::time::sleep(most / 10).await;
            }
            taken
        });
        ours.write_all(&[7; 40]).await.unwrap();
        drop(ours);
        assert_eq!(taking.await.unwrap(), 10);

        let (_silent, ours) = duplex(8);
        let left = Patient::new(ours, most).write_all(&[7; 40]).await;
        assert_eq!(left.unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
