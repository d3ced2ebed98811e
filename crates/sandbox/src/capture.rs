//! A bounded record of one output stream: its first and its last bytes, and how many there were.

use bailey_protocol::{Blob, Stream};
use std::collections::VecDeque;

/// Keeps at most `limit` bytes: the first half from the start, the rest from the end.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_most: usize,
    tail_most: usize,
    total: u64,
}

impl Capture {
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let head_most = limit / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_most, tail_most: limit - head_most, total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = self.head_most - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(self.tail_most)..).unwrap_or_default();
        let too_many = (self.tail.len() + rest.len()).saturating_sub(self.tail_most);
        self.tail.drain(..too_many);
        self.tail.extend(rest);
    }

    /// What was kept. When nothing was dropped, all of it is the head.
    pub(crate) fn finish(mut self) -> Stream {
        let tail: Vec<u8> = self.tail.into();
        let was_cut = self.total > (self.head.len() + tail.len()) as u64;
        if was_cut {
            return Stream { head: Blob(self.head), tail: Blob(tail), total: self.total };
        }
        self.head.extend(tail);
        Stream { head: Blob(self.head), tail: Blob::default(), total: self.total }
    }
}

#[cfg(test)]
mod tests;
