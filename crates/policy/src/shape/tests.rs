//! Limits too large to be sealed again and again.

use super::{CONTENT_MAX, PATHS_MAX, TIPS_MAX};
use alloc::{format, string::String, vec, vec::Vec};
use bailey_protocol::{Action, Blob, FileChange, HttpRequest, Merge, MergeFile, MergeKind, Tip, WsPath};

fn file(path: &str, size: usize) -> FileChange {
    FileChange { path: path.into(), base: None, new: Some(Blob(vec![b'x'; size])) }
}

fn check(action: &Action) -> Result<(), String> {
    super::check(&action.describe())
}

#[test]
fn content_is_limited_in_total() {
    let half = CONTENT_MAX / 2;
    let change = |more| check(&Action::Change { files: vec![file("/a", half), file("/b", half + more)] });
    assert_eq!(change(0), Ok(()));
    assert_eq!(change(1), Err(format!("{} bytes of content: at most {CONTENT_MAX}", CONTENT_MAX + 1)));
    let request = |size| HttpRequest {
        method: "POST".into(),
        url: "https://example.com/".into(),
        headers: Vec::new(),
        body: Blob(vec![b'x'; size]),
    };
    assert_eq!(check(&Action::Http(request(CONTENT_MAX))), Ok(()));
    assert!(check(&Action::Http(request(CONTENT_MAX + 1))).is_err());
}

#[test]
fn paths_are_limited_in_number() {
    let merge = |count: usize| {
        let file = |i| MergeFile::whole(WsPath(format!("/a/{i}")), None, None);
        check(&Action::Merge(Merge::of_files(MergeKind::Apply, None, (0..count).map(file).collect())))
    };
    assert_eq!(merge(PATHS_MAX), Ok(()));
    assert_eq!(merge(PATHS_MAX + 1), Err(format!("{} paths: at most {PATHS_MAX}", PATHS_MAX + 1)));
}

#[test]
fn only_branches_move_with_a_merge() {
    let tip = |name: &str, new: &str| Tip { name: name.into(), old: None, new: new.into(), aside: None };
    let merge = |tips: Vec<Tip>| {
        check(&Action::Merge(Merge { tips, ..Merge::of_files(MergeKind::Apply, None, Vec::new()) }))
    };
    let id = "a".repeat(40);
    assert_eq!(merge(vec![tip("refs/heads/main", &id)]), Ok(()), "the control");
    assert_eq!(merge(vec![tip("refs/bailey/1/main", &id); TIPS_MAX]), Ok(()));
    assert!(merge(vec![tip("refs/heads/main", &id); TIPS_MAX + 1]).is_err());
    for (name, id) in
        [("HEAD", id.as_str()), ("config", &id), ("refs/tags/v1", &id), ("refs/heads/main", "main")]
    {
        assert!(merge(vec![tip(name, id)]).is_err(), "{name} {id}");
    }
    assert!(merge(Vec::new()).is_err());
}
