//! Look at files: read one, say whether a path exists, list a directory, search, compare.

use super::{Description, PathUse, Value};
use crate::WsPath;
use alloc::format;

/// Of one path.
pub(super) fn describe(path: &WsPath) -> Description<'_> {
    Description {
        title: path.0.clone(),
        is_read: true,
        resources: [PathUse::at(path).into()].into(),
        values: [Value::Path(path)].into(),
        ..Description::default()
    }
}

/// Of a search.
pub(super) fn describe_search<'a>(
    root: &'a WsPath,
    pattern: Option<&'a str>,
    glob: Option<&'a str>,
) -> Description<'a> {
    let wanted = pattern.or(glob).unwrap_or("*");
    let texts = [pattern, glob].into_iter().flatten();
    Description {
        title: format!("{wanted} in {root}"),
        is_read: true,
        resources: [PathUse { is_tree: true, ..PathUse::at(root) }.into()].into(),
        argument_bytes: texts.clone().map(str::len).sum(),
        values: [Value::Path(root)].into_iter().chain(texts.map(Value::Word)).collect(),
        ..Description::default()
    }
}

/// Of a comparison of the session's layer with the project, which no agent asks for.
pub(super) fn describe_diff(root: &WsPath) -> Description<'_> {
    Description {
        title: root.0.clone(),
        is_read: true,
        resources: [PathUse { is_tree: true, ..PathUse::at(root) }.into()].into(),
        ..Description::default()
    }
}
