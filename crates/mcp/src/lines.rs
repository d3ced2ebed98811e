//! The limits of a server's messages: each is one line, and all of a call have a limit, too.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes of one message.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// The most bytes of all messages of one call, with those that come until the next.
pub(crate) const CALL_BYTES_MAX: usize = 32 << 20;

/// How much a server may still write.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    left: AtomicUsize,
    is_over: AtomicBool,
}

impl Allowance {
    /// Gives a call its bytes.
    pub(crate) fn begin(&self) {
        self.left.store(CALL_BYTES_MAX, Ordering::Release);
    }

    /// Whether the server wrote too much.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn take(&self, bytes: usize) -> bool {
        let left = self.left.load(Ordering::Acquire);
        self.left.store(left.saturating_sub(bytes), Ordering::Release);
        bytes <= left
    }
}

/// A stream of lines that fails as soon as one is too long, or all of a call are.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: R,
    /// The bytes since the last end of a line.
    length: usize,
    allowance: Arc<Allowance>,
}

impl<R> Lines<R> {
    pub(crate) fn new(from: R, allowance: Arc<Allowance>) -> Self {
        Self { from, length: 0, allowance }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.from).poll_read(cx, into))?;
        let new = into.filled().get(before..).unwrap_or_default();
        let mut is_over = !self.allowance.take(new.len());
        for line in new.split_inclusive(|byte| *byte == b'\n') {
            self.length += line.len();
            is_over |= self.length > MESSAGE_BYTES_MAX;
            if line.ends_with(b"\n") {
                self.length = 0;
            }
        }
        if is_over {
            into.set_filled(before);
            self.allowance.is_over.store(true, Ordering::Release);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "too many bytes")));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowance, CALL_BYTES_MAX, Lines, MESSAGE_BYTES_MAX};
    use std::sync::Arc;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_line_has_a_limit_and_so_have_all_of_a_call() {
        let line = |bytes: usize| [vec![b'x'; bytes - 1], b"\n".to_vec()].concat();
        for (lines, is_whole) in [
            (line(MESSAGE_BYTES_MAX).repeat(2), true),
            (line(MESSAGE_BYTES_MAX + 1), false),
            ([line(10), vec![b'x'; MESSAGE_BYTES_MAX + 1]].concat(), false),
            (line(100).repeat(CALL_BYTES_MAX / 100), true),
            (line(100).repeat(CALL_BYTES_MAX / 100 + 1), false),
        ] {
            let allowance = Arc::new(Allowance::default());
            allowance.begin();
            let mut read = Vec::new();
            let done = Lines::new(&*lines, allowance.clone()).read_to_end(&mut read).await;
            assert_eq!((done.is_ok(), !allowance.is_over()), (is_whole, is_whole), "{}", lines.len());
        }
    }
}
