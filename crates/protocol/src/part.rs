//! A part of a file's change that is taken over: some of its lines, or its mode without the lines.

use crate::digest::Digest;
use alloc::{string::ToString as _, vec::Vec};
use serde::{Deserialize, Serialize};

/// The most splices of one file.
pub const SPLICES_MAX: usize = 10_000;

/// The part of a file's change that is taken over. The result is the old content with the splices made, so
/// all its bytes come from the project or from the layer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// The file's state in the layer, from which the part comes.
    pub of: Digest,
    /// The file's permission bits afterwards: its own from before, or the layer's.
    pub mode: u32,
    /// The pieces of the layer's content that replace pieces of the old content, in order.
    pub splices: Vec<Splice>,
    /// Whether this is the whole change, and the rest of the old content holds newer changes of the project.
    /// The layer then gets the result, too. Otherwise the next comparison would show those newer changes as
    /// changes of the session that go back to the earlier content.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub rebases: bool,
}

/// Bytes of a file that bytes of another one replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Splice {
    /// The position in the old content.
    pub at: u32,
    /// The number of bytes that are removed there.
    pub cut: u32,
    /// The position in the layer's content.
    pub from: u32,
    /// The number of bytes that are inserted from there.
    pub take: u32,
}

impl Part {
    /// The old content with the splices made; `None` when they overlap, are out of order, reach beyond
    /// either content, or are more than [`SPLICES_MAX`].
    #[must_use]
    pub fn compose(&self, old: &[u8], layer: &[u8]) -> Option<Vec<u8>> {
        if self.splices.len() > SPLICES_MAX {
            return None;
        }
        let (mut composed, mut done, mut taken) = (Vec::new(), 0, 0);
        for splice in &self.splices {
            let (at, gone) = range(splice.at, splice.cut)?;
            let (from, end) = range(splice.from, splice.take)?;
            // Each byte of the layer comes at most once, so the result is no longer than both contents
            // together.
            if from < taken {
                return None;
            }
            composed.extend_from_slice(old.get(done..at)?);
            composed.extend_from_slice(layer.get(from..end)?);
            (done, taken) = (gone, end);
        }
        composed.extend_from_slice(old.get(done..)?);
        Some(composed)
    }
}

fn range(start: u32, length: u32) -> Option<(usize, usize)> {
    let start = usize::try_from(start).ok()?;
    Some((start, start.checked_add(usize::try_from(length).ok()?)?))
}

/// The state digest of a regular file. A diff reports it and a merge compares it.
#[must_use]
pub fn file_state(mode: u32, content: &[u8]) -> Digest {
    Digest::of_parts(&[b"file", mode.to_string().as_bytes(), content])
}

#[cfg(test)]
mod tests {
    use super::{Digest, Part, SPLICES_MAX, Splice};
    use alloc::{vec, vec::Vec};

    fn composed(splices: &[(u32, u32, u32, u32)]) -> Option<Vec<u8>> {
        let splices = splices.iter().map(|&(at, cut, from, take)| Splice { at, cut, from, take });
        let part = Part { of: Digest::of(b""), mode: 0o644, splices: splices.collect(), rebases: false };
        part.compose(b"0123456789", b"abcdefghij")
    }

    #[test]
    fn bytes_of_the_layer_replace_bytes_of_the_old_content() {
        for (splices, expected) in [
            (&[][..], &b"0123456789"[..]),
            (&[(0, 10, 0, 10)], b"abcdefghij"),
            (&[(2, 3, 4, 1)], b"01e56789"),
            (&[(0, 0, 0, 2), (10, 0, 8, 2)], b"ab0123456789ij"),
            (&[(1, 1, 1, 0), (2, 2, 1, 3)], b"0bcd456789"),
        ] {
            assert_eq!(composed(splices).as_deref(), Some(expected), "{splices:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_not_composed() {
        for splices in [
            &[(11, 0, 0, 0)][..],
            &[(5, 6, 0, 1)],
            &[(0, 1, 10, 1)],
            &[(0, 1, u32::MAX, u32::MAX)],
            &[(u32::MAX, u32::MAX, 0, 1)],
            &[(5, 2, 0, 1), (6, 1, 1, 1)],
            &[(5, 1, 0, 1), (2, 1, 1, 1)],
            &[(1, 1, 0, 4), (5, 1, 3, 1)],
        ] {
            assert_eq!(composed(splices), None, "{splices:?}");
        }
        assert!(composed(&vec![(0, 0, 0, 0); SPLICES_MAX]).is_some());
        assert_eq!(composed(&vec![(0, 0, 0, 0); SPLICES_MAX + 1]), None);
    }
}
