//! A model that says the same words without end: seen in the text as it comes, because nothing else would end it.

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
    /// Takes up more text, and says whether the newest of it is one passage again and again. How the text is split into pieces
    /// makes no difference.
    pub(crate) fn repeats(&mut self, text: &str) -> bool {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(TAIL_BYTES - self.bytes.len()));
            self.bytes.extend_from_slice(now);
            rest = later;
            if self.bytes.len() == TAIL_BYTES {
                let bytes = std::mem::take(&mut self.bytes);
                let is_passage =
                    |length: &usize| bytes.iter().zip(bytes.iter().skip(*length)).all(|(a, b)| a == b);
                if (1..=PASSAGE_BYTES_MAX).any(|length| is_passage(&length)) {
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

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
