//! What of the host a holder mounts once, and whether that is still what stands there.

use crate::plan::{EntryKind, Plan, PlanEntry};
use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

/// A file's device and inode, where it is there.
pub(super) type Identity = Option<(u64, u64)>;

/// Programs, files and tools of the host, each of which a holder mounts once.
pub(super) fn programs(plan: &Plan) -> Vec<Identity> {
    let is_bound = |entry: &&PlanEntry| matches!(entry.what, EntryKind::Bind | EntryKind::BindOwn);
    plan.system.iter().chain(&plan.tools).filter(is_bound).map(|entry| identity(&entry.at)).collect()
}

/// Looks at a path, links followed.
pub(super) fn identity(path: &Path) -> Identity {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
