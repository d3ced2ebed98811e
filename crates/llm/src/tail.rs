//! A model that says the same words without end: seen in the text as it
//! comes, because nothing else would end it.

/// So much of the text, in bytes, that is one short passage again and again has no end.
const TAIL_BYTES: usize = 16 << 10;
/// The longest passage, in bytes.
const PASSAGE_BYTES_MAX: usize = 512;

/// The newest text of an answer.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    /// Takes up more text, and says whether the newest of it is one passage again and again. How the text is
    /// split into pieces makes no difference.
    pub(crate) fn repeats(&mut self, text: &str) -> bool {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(TAIL_BYTES - self.bytes.len()));
            self.bytes.extend_from_slice(now);
            rest = later;
            if self.bytes.len() == TAIL_BYTES {
                let bytes = std::mem::take(&mut self.bytes);
                if period(&bytes) <= PASSAGE_BYTES_MAX {
                    return true;
                }
            }
        }
        false
    }
}

/// The length of the shortest passage that the bytes are made of, again and again; it may be cut at the end.
/// By the borders of Knuth, Morris and Pratt, so that no bytes take longer than others.
fn period(bytes: &[u8]) -> usize {
    let mut borders: Vec<usize> = Vec::with_capacity(bytes.len());
    for (place, byte) in bytes.iter().enumerate() {
        let mut border = borders.last().copied().unwrap_or_default();
        while border > 0 && bytes.get(border) != Some(byte) {
            border = borders.get(border - 1).copied().unwrap_or_default();
        }
        borders.push(if place > 0 && bytes.get(border) == Some(byte) { border + 1 } else { 0 });
    }
    bytes.len() - borders.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Tail, period};

    #[test]
    fn the_shortest_passage() {
        for (text, length) in [("aaaa", 1), ("ababa", 2), ("abcab", 3), ("abcd", 4), ("aab", 3), ("", 0)] {
            assert_eq!(period(text.as_bytes()), length, "{text}");
        }
    }

    #[test]
    fn one_passage_without_end_is_seen_and_long_texts_are_not() {
        let mut tail = Tail::default();
        let times = (1..10_000).find(|_| tail.repeats("again and again "));
        assert!(times.is_some_and(|times| times * 16 <= 32 << 10), "{times:?}");
        let mut tail = Tail::default();
        assert!((0..20_000).all(|n: u32| !tail.repeats(&format!("line {n}\n"))));
        let mut tail = Tail::default();
        assert!(!tail.repeats(&"-".repeat(8000)), "a ruler");
    }
}
