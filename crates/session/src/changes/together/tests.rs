use super::*;
use bailey_protocol::{Digest, MergeFile, PathCount, WsPath};

/// For each path: its kinds before and after (`d`, `f`, `-`), and whether it stays: `r`efused, in
/// `c`onflict, or not at all.
fn held(paths: &[(&str, &str, char)]) -> Vec<(String, Option<String>, Option<String>)> {
    let state = |kind| {
        let kind = match kind {
            'd' => FileKind::Directory,
            'f' => FileKind::File,
            _ => return None,
        };
        Some(FileState { state: Digest::of(b"x"), kind, mode: 0o644, size: 0, content: None })
    };
    let (mut files, mut changes) = (Vec::new(), Vec::new());
    for (at, kinds, stays) in paths {
        let path = WsPath(format!("/p/{at}"));
        let (old, new) = (kinds.chars().next().unwrap(), kinds.chars().nth(1).unwrap());
        let (old, new) = (state(old), state(new));
        files.push(FileDiff {
            path: path.clone(),
            old,
            new,
            base: None,
            refused: None,
            remarks: vec![],
            marks: vec![],
        });
        changes.push(Change {
            path: (*at).into(),
            diff: String::new(),
            count: PathCount { path: (*at).into(), more: 0, less: 0, now: None },
            refused: (*stays == 'r').then(|| "no".into()),
            remarks: vec![],
            conflict: (*stays == 'c').then(|| "no".into()),
            file: MergeFile::whole(path, None, None),
        });
    }
    hold(&files, &mut changes);
    changes.into_iter().map(|change| (change.path, change.refused, change.conflict)).collect()
}

fn staying(paths: &[(&str, &str, char)]) -> Vec<String> {
    let stays =
        held(paths).into_iter().filter(|(_, refused, conflict)| refused.is_some() || conflict.is_some());
    stays.map(|(at, ..)| at).collect()
}

#[test]
fn a_directory_in_which_something_stays_stays_and_what_else_goes_from_it_goes() {
    let paths =
        [("d", "d-", '.'), ("d/a", "f-", '.'), ("d/e", "d-", '.'), ("d/e/b", "f-", 'c'), ("f", "f-", '.')];
    assert_eq!(staying(&paths), ["d", "d/e", "d/e/b"]);
    assert!(held(&paths)[0].2.as_ref().unwrap().contains("`d/e/b`"));
    let paths = paths.map(|(at, kinds, _)| (at, kinds, '.'));
    assert!(staying(&paths).is_empty(), "the control");
}

#[test]
fn what_is_removed_for_what_replaces_it_stays_with_that() {
    for (own, inner) in [('r', '.'), ('c', '.'), ('.', 'r'), ('.', 'c')] {
        let paths = [
            ("d", "df", own),
            ("d/a", "f-", '.'),
            ("d/e", "d-", '.'),
            ("d/e/b", "f-", inner),
            ("d2", "f-", '.'),
        ];
        assert_eq!(staying(&paths), ["d", "d/a", "d/e", "d/e/b"], "{own} {inner}");
        assert!(held(&paths)[1].1.as_ref().unwrap().contains("`d`"), "nothing of it is asked for");
    }
}

#[test]
fn what_lies_in_a_directory_that_cannot_take_its_place_stays() {
    assert_eq!(staying(&[("s", "fd", 'r'), ("s/new", "-f", '.'), ("t", "-f", '.')]), ["s", "s/new"]);
    assert!(staying(&[("s", "fd", '.'), ("s/new", "-f", '.')]).is_empty(), "the control");
    assert!(staying(&[("s", "dd", 'c'), ("s/new", "-f", '.')]) == ["s"], "its mode alone");
}
