//! Look at files: read one, say whether a path exists, list a directory, search, compare.

use super::{Description, PathUse};
use crate::WsPath;
use alloc::string::String;

/// Of one path.
pub(super) fn describe(path: &WsPath) -> Description<'_> {
    Description { resources: [PathUse::at(path).into()].into(), ..Description::default() }
}

/// Of a directory with everything beneath it.
pub(super) fn describe_tree(root: &WsPath) -> Description<'_> {
    let tree = PathUse { is_tree: true, ..PathUse::at(root) };
    Description { resources: [tree.into()].into(), ..Description::default() }
}

/// Of a search.
pub(super) fn describe_search<'a>(
    root: &'a WsPath,
    pattern: Option<&String>,
    glob: Option<&String>,
) -> Description<'a> {
    let argument_bytes = [pattern, glob].into_iter().flatten().map(String::len).sum();
    Description { argument_bytes, ..describe_tree(root) }
}
