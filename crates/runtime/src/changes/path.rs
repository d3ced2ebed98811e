//! One path that a session changed: how it is to be applied, and what is said of it.

use super::Change;
use crate::{
    threeway::{Both, Threeway},
    unified::unified,
};
use bailey_protocol::{FileDiff, MergeFile, Touched};
use std::collections::HashMap;

/// What is said of a file in which the session's changes and those of the user since were put together.
const MERGED: &str = "is merged with what you changed since";

/// How a path is to be applied; none where the project has all of the session's changes already.
pub(super) fn change(
    file: &FileDiff,
    touched: &HashMap<&str, &Touched>,
    root: &str,
    threeway: &mut Threeway,
) -> Option<Change> {
    let path = file.path.relative_to(root).unwrap_or(&file.path.0).to_owned();
    let now = file.old.as_ref().map(|state| state.state);
    let wanted = file.new.as_ref().map(|state| state.state);
    let (base, unsure) = match touched.get(file.path.0.as_str()) {
        Some(touched) => (touched.base, touched.unsure),
        // Nobody saw how it came into the layer: where the project holds something, that may not be its base.
        None => (None, now.is_some()),
    };
    let conflict = (unsure && now != wanted)
        .then(|| "the project's file changed while a command ran, or the clock was put back; apply by hand, or discard".to_owned());
    let refused = file.refused.clone().or(conflict);
    let mut remarks = file.remarks.clone();
    let both = if refused.is_none() { threeway.merge(file, base) } else { Both::Unknown };
    let (new, part) = match both {
        Both::Merged(state, part) => {
            remarks.push(MERGED.into());
            (Some(state), Some(part))
        }
        Both::Same => return None,
        Both::Overlapping(line) => {
            remarks.push(format!(
                "has lines that you changed since, too (at line {line}): it would be kept as it is"
            ));
            (file.new.clone(), None)
        }
        Both::Unknown => (file.new.clone(), None),
    };
    let diff = unified(&path, file.old.as_ref(), new.as_ref());
    let base = if part.is_some() { now } else { base };
    let file = MergeFile { path: file.path.clone(), base, new: new.map(|state| state.state), part };
    Some(Change { diff, refused, remarks, file, path })
}
