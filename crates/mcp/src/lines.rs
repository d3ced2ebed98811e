//! The limit of a server's messages: each is one line.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes of one message.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// A stream of lines that fails as soon as one is too long.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: R,
    /// The bytes since the last end of a line.
    length: usize,
    is_over: Arc<AtomicBool>,
}

impl<R> Lines<R> {
    /// `is_over` is set when a line was too long.
    pub(crate) fn new(from: R, is_over: Arc<AtomicBool>) -> Self {
        Self { from, length: 0, is_over }
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
        let mut is_over = false;
        for line in new.split_inclusive(|byte| *byte == b'\n') {
            self.length += line.len();
            is_over |= self.length > MESSAGE_BYTES_MAX;
            if line.ends_with(b"\n") {
                self.length = 0;
            }
        }
        if is_over {
            into.set_filled(before);
            self.is_over.store(true, Ordering::Release);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long")));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, MESSAGE_BYTES_MAX};
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_line_has_a_limit_and_many_lines_have_none() {
        let line = |bytes: usize| [vec![b'x'; bytes - 1], b"\n".to_vec()].concat();
        for (lines, is_whole) in [
            (line(MESSAGE_BYTES_MAX).repeat(2), true),
            (line(MESSAGE_BYTES_MAX + 1), false),
            ([line(10), vec![b'x'; MESSAGE_BYTES_MAX + 1]].concat(), false),
        ] {
            let is_over = std::sync::Arc::default();
            let mut read = Vec::new();
            let done = Lines::new(&*lines, std::sync::Arc::clone(&is_over)).read_to_end(&mut read).await;
            assert_eq!(
                (done.is_ok(), !is_over.load(std::sync::atomic::Ordering::Acquire)),
                (is_whole, is_whole)
            );
        }
    }
}
