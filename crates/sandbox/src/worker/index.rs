//! Which paths git tracks: a path that is ignored but tracked is part of the project.
//!
//! Format: Documentation/gitformat-index.txt of git, versions 2 to 4 with SHA-1. Whatever cannot be read
//! counts as untracked, so that ignored files stay in the layer.

use super::beneath::{Root, type_of};
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Bytes of an entry before its flags: times, device, inode, mode, owner, size (40) and SHA-1 (20).
const FIXED: usize = 60;
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
    let mut rest = bytes.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    let mut paths = BTreeSet::new();
    let mut last = Vec::new();
    for _ in 0..count {
        let start = rest.len();
        rest = rest.get(FIXED..)?;
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
        rest = rest.get(end + padding..)?;
        paths.insert(last.clone());
    }
    (2..=4).contains(&version).then_some(paths)
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
