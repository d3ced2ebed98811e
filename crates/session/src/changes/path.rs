//! One path that a session changed: how to apply it, and the remarks about it.

use super::Change;
use crate::{
    threeway::{Both, Threeway},
    unified::unified,
};
use bailey_kernel::Marks;
use bailey_protocol::{Digest, FileDiff, FileState, Marked, MergeFile, Touched};
use std::collections::HashMap;

/// The remark on a file that holds the session's changes merged with later changes of the user.
const MERGED: &str = "is merged with your later changes";

/// Why a path stays: its base is one of two states (`UNSURE`), or there is no record that the session met
/// the project's version (`UNSEEN`).
const UNSURE: &str =
    "the project's file changed while a command ran, or the clock was put back; apply by hand, or discard";
const UNSEEN: &str = "the project changed here later, or the session was cut off before it looked here; \
    apply by hand, or discard";

/// How to apply a path; `None` when the project has all of the session's changes already.
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
        Some(touched) => (touched.base, touched.unsure.then_some(UNSURE)),
        // There is no record of how the path came into the layer. If the project holds something there, that
        // may not be its base.
        None => (None, now.is_some().then_some(UNSEEN)),
    };
    let unknown = unsure.filter(|_| now != wanted).map(str::to_owned);
    let refused = file.refused.clone().or(unknown);
    let (mut remarks, mut conflict) = (file.remarks.clone(), None);
    let both = if refused.is_none() { threeway.merge(file, base) } else { Both::Unknown };
    let (new, part) = match both {
        Both::Merged(state, part) => {
            remarks.push(MERGED.into());
            (Some(state), Some(part))
        }
        Both::Same => return None,
        Both::Overlapping(line) => {
            conflict = Some(format!("has lines that you also changed (at line {line})"));
            (file.new.clone(), None)
        }
        Both::Unknown => {
            conflict = kept(base, now).filter(|_| refused.is_none() && now != wanted);
            (file.new.clone(), None)
        }
    };
    let marks = match &part {
        Some(_) => marks(content(file.old.as_ref()), content(new.as_ref())),
        None => file.marks.clone(),
    };
    remarks.extend(marks.iter().map(ToString::to_string));
    let (diff, count) = unified(&path, file.old.as_ref(), new.as_ref());
    let base = if part.is_some() { now } else { base };
    let file = MergeFile { path: file.path.clone(), base, new: new.map(|state| state.state), part, marks };
    Some(Change { diff, count, refused, remarks, conflict, file, path })
}

fn content(state: Option<&FileState>) -> &[u8] {
    state.and_then(|state| state.content.as_ref()).map(|content| content.0.as_slice()).unwrap_or_default()
}

/// The redaction marks that a text adds to a file, for a text that is merged from both sides here.
pub(crate) fn marks(old: &[u8], new: &[u8]) -> Vec<Marked> {
    let beyond = Marks::of(new).beyond(&Marks::of(old));
    beyond.into_iter().map(|(mark, lines)| Marked { mark, lines }).collect()
}

/// Why an apply keeps the project's version; `None` when that version is the one that the session began
/// with.
fn kept(base: Option<Digest>, now: Option<Digest>) -> Option<String> {
    let what = match (base, now) {
        (base, now) if base == now => return None,
        (_, None) => "was removed from the project meanwhile",
        (None, _) => "was also created in the project meanwhile",
        (Some(_), Some(_)) => "was changed in the project after the session began",
    };
    Some(what.into())
}
