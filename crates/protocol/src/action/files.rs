//! Look at files: read one, say whether a path exists, list a directory, search, compare.

use super::{Description, PathUse, Portrait};
use crate::WsPath;
use alloc::{format, string::String};

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

/// Of one path, for a person.
pub(super) fn portrait<'a>(verb: &str, path: &'a WsPath) -> Portrait<'a> {
    Portrait::new(format!("{verb} {path}")).with("path", &*path.0)
}

/// Of a search, for a person.
pub(super) fn portrait_search<'a>(
    root: &'a WsPath,
    pattern: Option<&'a str>,
    glob: Option<&'a str>,
) -> Portrait<'a> {
    portrait("Search", root).with_some("pattern", pattern).with_some("glob", glob)
}
