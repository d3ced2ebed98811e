//! What of the host a holder mounts once, and whether that is still what stands there.

use crate::{
    plan::{Entry, Plan, What},
    wire::Header,
};
use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

/// A file's device and inode, where it is there.
pub(super) type Identity = Option<(u64, u64)>;

/// What a view shows of the host, each of which its holder mounts once: the project, then programs, files and tools.
pub(super) fn shown<'a>(plan: &'a Plan, header: &'a Header) -> impl Iterator<Item = &'a Path> {
    let is_bound = |entry: &&Entry| matches!(entry.what, What::Bind | What::BindOwn);
    let others = plan.system.iter().chain(&plan.tools).filter(is_bound).map(|entry| entry.at.as_path());
    let others = others.filter(|_| header.view.has_programs());
    [header.yard.project.as_path()].into_iter().chain(others)
}

/// Looks at a path, links followed.
pub(super) fn identity(path: &Path) -> Identity {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
