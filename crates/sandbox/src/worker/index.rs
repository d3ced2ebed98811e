//! Git's index: which paths git tracks, and what it remembers of each file's looks.
//!
//! Format: Documentation/gitformat-index.txt of git, versions 2 to 4, with SHA-1 or SHA-256. A path that is
//! ignored but tracked is part of the project; whatever cannot be read counts as untracked, so that ignored
//! files stay in the layer.

use super::beneath::{Root, type_of};
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

/// The largest index that is read, in bytes.
pub(super) const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Bytes of an entry before its object's name: times, device, inode, mode, owner, size.
const STAT: usize = 40;
/// Bytes of SHA-1 and of SHA-256.
pub(super) const HASHES: [usize; 2] = [20, 32];
const EXTENDED: u16 = 0x4000;

/// What of the ignored paths belongs to the project nevertheless.
pub(super) enum Tracked {
    /// The paths in git's index.
    Index(BTreeSet<Vec<u8>>),
    /// The project is no git repository: whatever file it holds.
    Held,
}

impl Tracked {
    /// Reads the index of the repository at `project`.
    pub(super) fn of(project: &Root) -> Self {
        match project.stat(".git") {
            Ok(None) => Self::Held,
            // A `.git` file names a repository outside the walls.
            Ok(Some(stat)) if type_of(&stat) == FileType::Directory => {
                Self::Index(read(project).and_then(|bytes| parse(&bytes)).unwrap_or_default())
            }
            _ => Self::Index(BTreeSet::new()),
        }
    }

    /// Whether the file at `at` belongs to the project; `held`: the project has one there.
    pub(super) fn file(&self, at: &str, held: bool) -> bool {
        match self {
            Self::Index(paths) => paths.contains(at.as_bytes()),
            Self::Held => held,
        }
    }

    /// Whether something below the directory `at` may belong to the project.
    pub(super) fn below(&self, at: &str, held: bool) -> bool {
        match self {
            Self::Index(paths) => {
                let prefix = format!("{at}/").into_bytes();
                paths.range(prefix.clone()..).next().is_some_and(|path| path.starts_with(&prefix))
            }
            Self::Held => held,
        }
    }
}

fn read(project: &Root) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::from(project.file(".git/index").ok()?).take(INDEX_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn parse(bytes: &[u8]) -> Option<BTreeSet<Vec<u8>>> {
    let entries = HASHES.iter().find_map(|hash| entries(bytes, *hash))?;
    Some(entries.into_iter().map(|entry| entry.path).collect())
}

/// One entry of an index.
pub(super) struct IndexEntry {
    /// Relative to the repository's top.
    pub(super) path: Vec<u8>,
    /// Where it begins in the index.
    pub(super) at: usize,
}

/// The entries of an index whose object names have `hash` bytes; none when it is no such index.
pub(super) fn entries(bytes: &[u8], hash: usize) -> Option<Vec<IndexEntry>> {
    let body = bytes.get(..bytes.len().checked_sub(hash)?)?;
    let mut rest = body.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    let mut entries = Vec::new();
    let mut last = Vec::new();
    for _ in 0..count {
        let start = rest.len();
        let at = body.len() - start;
        rest = rest.get(STAT + hash..)?;
        let flags = u16::from_be_bytes(rest.first_chunk().copied()?);
        rest = rest.get(if flags & EXTENDED == 0 { 2 } else { 4 }..)?;
        if version == 4 {
            let strip = usize::try_from(offset(&mut rest)?).ok()?;
            last.truncate(last.len().checked_sub(strip)?);
        } else {
            last.clear();
        }
        let end = rest.iter().position(|byte| *byte == 0)?;
        last.extend_from_slice(rest.get(..end)?);
        // Before version 4 an entry ends with 1 to 8 NULs, at a multiple of 8 bytes.
        let used = start - rest.len() + end;
        let padding = if version == 4 { 1 } else { 8 - used % 8 };
        if rest.get(end..end + padding)?.iter().any(|byte| *byte != 0) {
            return None;
        }
        rest = rest.get(end + padding..)?;
        entries.push(IndexEntry { path: last.clone(), at });
    }
    ((2..=4).contains(&version) && are_extensions(rest)).then_some(entries)
}

/// Whether what follows the entries is a row of extensions: four bytes of a name, a length, as many bytes.
fn are_extensions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some((_, tail)) = rest.split_first_chunk::<4>() else { return false };
        rest = tail;
        let Some(tail) = number(&mut rest).and_then(|length| rest.get(usize::try_from(length).ok()?..))
        else {
            return false;
        };
        rest = tail;
    }
    true
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (value, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u32::from_be_bytes(*value))
}

/// The variable-width number of version 4 (as in pack files' offsets).
fn offset(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    loop {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        value = value.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}
