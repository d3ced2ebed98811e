//! A command's output while it runs: past a redactor for each stream, because pieces of the other one come
//! between those of a secret, and never more than the command's own limit.

use crate::{Chunk, Kernel, Scope};
use bailey_protocol::{Action, Blob, CallId, Happening, Limits, Stream};
use bailey_secrets::StreamRedactor;
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// The most of a stream's end that is kept for later, once the rest was shown.
const LAST_BYTES_MAX: usize = 64 << 10;

/// A piece of a command's output, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Printed {
    /// Of its standard output.
    Stdout(Vec<u8>),
    /// Of its standard error.
    Stderr(Vec<u8>),
    /// So many bytes were beyond the command's limit of output; the last ones follow.
    LeftOut(u64),
}

/// Who sees an effect's output while it comes.
pub(crate) enum Audience {
    /// The front end, as that of this call.
    Call(CallId),
    /// Whoever has the other end, byte by byte. The command waits for them.
    Bytes(mpsc::Sender<Printed>),
    Nobody,
}

/// The news of a chunk, and where it goes.
pub(crate) enum ChunkNotice {
    Event(Box<Happening>),
    Bytes(mpsc::Sender<Printed>, Printed),
}

impl ChunkNotice {
    /// Passes it on. Whoever is waited for is so no longer than the turn lasts; one that is gone is no error.
    pub(crate) async fn pass(self, kernel: &Kernel, scope: &Scope) {
        match self {
            Self::Event(happening) => drop(kernel.tell(scope, *happening).await),
            Self::Bytes(to, printed) => tokio::select! {
                biased;
                sent = to.send(printed) => drop(sent),
                () = scope.cancel.cancelled() => {}
            },
        }
    }
}

/// Two streams on their way to an audience.
pub(crate) struct LiveOutput {
    audience: Audience,
    out: Channel,
    err: Channel,
}

impl LiveOutput {
    pub(crate) fn new(kernel: &Kernel, action: &Action, audience: Audience) -> Self {
        let bytes = match action {
            Action::Exec(command) => command.limits.output_bytes,
            _ => Limits::default().output_bytes,
        };
        let channel = || Channel::new(kernel, usize::try_from(bytes).unwrap_or(usize::MAX));
        Self { audience, out: channel(), err: channel() }
    }

    pub(crate) fn take(&mut self, chunk: Chunk) -> Vec<ChunkNotice> {
        let (is_out, bytes) = match chunk {
            Chunk::Stdout(bytes) => (true, bytes),
            Chunk::Stderr(bytes) => (false, bytes),
            Chunk::Begun(_) | Chunk::Head(..) | Chunk::Body(_) => return Vec::new(),
        };
        let channel = if is_out { &mut self.out } else { &mut self.err };
        let clean = channel.push(&bytes);
        self.show(is_out, clean).into_iter().collect()
    }

    /// What was held back until the end.
    pub(crate) fn rest(&mut self) -> Vec<ChunkNotice> {
        let mut told = Vec::new();
        for is_out in [true, false] {
            let channel = if is_out { &mut self.out } else { &mut self.err };
            let (more, left_out, last) = channel.finish();
            told.extend(self.show(is_out, more));
            told.extend(self.leave_out(left_out));
            told.extend(self.show(is_out, last));
        }
        told
    }

    fn show(&self, is_out: bool, clean: Vec<u8>) -> Option<ChunkNotice> {
        if clean.is_empty() {
            return None;
        }
        match &self.audience {
            Audience::Call(call) => {
                let text = String::from_utf8_lossy(&clean).into_owned();
                Some(ChunkNotice::Event(Box::new(Happening::Output { call: call.clone(), text })))
            }
            Audience::Bytes(to) => {
                let printed = if is_out { Printed::Stdout(clean) } else { Printed::Stderr(clean) };
                Some(ChunkNotice::Bytes(to.clone(), printed))
            }
            Audience::Nobody => None,
        }
    }

    fn leave_out(&self, bytes: u64) -> Option<ChunkNotice> {
        if bytes == 0 {
            return None;
        }
        match &self.audience {
            Audience::Call(call) => {
                let text = format!("\n… {bytes} bytes left out …\n");
                Some(ChunkNotice::Event(Box::new(Happening::Output { call: call.clone(), text })))
            }
            Audience::Bytes(to) => Some(ChunkNotice::Bytes(to.clone(), Printed::LeftOut(bytes))),
            Audience::Nobody => None,
        }
    }
}

/// One stream.
struct Channel {
    redactor: Option<StreamRedactor>,
    window: Window,
}

impl Channel {
    fn new(kernel: &Kernel, most: usize) -> Self {
        let redactor = Some(kernel.journal().redactor().stream());
        Self { redactor, window: Window::new(most) }
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let clean = self.redactor.as_mut().map(|redactor| redactor.push(bytes)).unwrap_or_default();
        self.window.push(clean)
    }

    /// What may be shown still, how much was left out, and what came last.
    fn finish(&mut self) -> (Vec<u8>, u64, Vec<u8>) {
        let clean = self.redactor.take().map(StreamRedactor::finish).unwrap_or_default();
        let more = self.window.push(clean);
        let last = std::mem::take(&mut self.window.last).into();
        (more, self.window.left_out, last)
    }
}

/// The first and the last bytes of a stream whose end nobody waits for.
pub(crate) struct StreamExcerpt {
    channel: Channel,
    first: Vec<u8>,
}

impl StreamExcerpt {
    /// Keeps so many bytes at most, without secrets.
    pub(crate) fn new(kernel: &Kernel, most: usize) -> Self {
        Self { channel: Channel::new(kernel, most), first: Vec::new() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let first = self.channel.push(bytes);
        self.first.extend(first);
    }

    /// It ended: what was held back is no secret.
    pub(crate) fn end(&mut self) {
        let clean = self.channel.redactor.take().map(StreamRedactor::finish).unwrap_or_default();
        let first = self.channel.window.push(clean);
        self.first.extend(first);
    }

    /// What is kept now. What may be the beginning of a secret is not in it yet.
    pub(crate) fn stream(&self) -> Stream {
        let Window { last, left_out, .. } = &self.channel.window;
        let last: Vec<u8> = last.iter().copied().collect();
        let total = (self.first.len() + last.len()) as u64 + left_out;
        if *left_out == 0 {
            return Stream {
                head: Blob([self.first.as_slice(), &last].concat()),
                tail: Blob::default(),
                total,
            };
        }
        Stream { head: Blob(self.first.clone()), tail: Blob(last), total }
    }
}

/// How much of a stream is shown: its first bytes as they come, and its last ones at its end.
struct Window {
    first_left: usize,
    last: VecDeque<u8>,
    last_most: usize,
    left_out: u64,
}

impl Window {
    fn new(most: usize) -> Self {
        let last_most = LAST_BYTES_MAX.min(most / 2);
        Self { first_left: most - last_most, last: VecDeque::new(), last_most, left_out: 0 }
    }

    /// What of these bytes may be shown now.
    fn push(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let rest = bytes.split_off(bytes.len().min(self.first_left));
        self.first_left -= bytes.len();
        let keep = rest.get(rest.len().saturating_sub(self.last_most)..).unwrap_or_default();
        let too_many = (self.last.len() + keep.len()).saturating_sub(self.last_most);
        self.left_out += (rest.len() - keep.len() + too_many) as u64;
        self.last.drain(..too_many);
        self.last.extend(keep);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{LAST_BYTES_MAX, Window};

    fn through(most: usize, pieces: &[&[u8]]) -> (Vec<u8>, u64, Vec<u8>) {
        let mut window = Window::new(most);
        let first = pieces.iter().flat_map(|piece| window.push(piece.to_vec())).collect();
        assert!(window.last.len() <= window.last_most);
        (first, window.left_out, window.last.into())
    }

    #[test]
    fn what_is_within_the_limit_is_all_there() {
        for most in [6, 7, 8, 100] {
            let (first, left_out, last) = through(most, &[b"abc", b"", b"def"]);
            assert_eq!([first, last].concat(), b"abcdef");
            assert_eq!(left_out, 0);
        }
    }

    #[test]
    fn beyond_the_limit_are_the_first_bytes_and_the_last_ones() {
        let whole = b"0123456789";
        for size in 1..=whole.len() {
            let pieces: Vec<&[u8]> = whole.chunks(size).collect();
            assert_eq!(through(4, &pieces), (b"01".to_vec(), 6, b"89".to_vec()), "pieces of {size}");
        }
        assert_eq!(through(0, &[whole]), (Vec::new(), 10, Vec::new()));
    }

    #[test]
    fn of_a_long_limit_nearly_all_is_shown_at_once() {
        let most = 1 << 20;
        let (first, left_out, last) = through(most, &[&vec![b'x'; most + 5]]);
        assert_eq!((first.len(), left_out, last.len()), (most - LAST_BYTES_MAX, 5, LAST_BYTES_MAX));
    }
}
