use super::{Changes, FileHunks, Hunk, Piece};
use crate::changes::Change;
use bailey_kernel::Output;
use bailey_protocol::{
    Blob, DiffReport, Digest, FileDiff, FileKind, FileState, MergeFile, Outcome, PathCount, Report, Status,
    file_state,
};

fn file(content: &str, mode: u32) -> Option<FileState> {
    let (state, size) = (file_state(mode, content.as_bytes()), content.len() as u64);
    Some(FileState { state, kind: FileKind::File, mode, size, content: Some(Blob::from(content)) })
}

fn directory() -> Option<FileState> {
    let state = Digest::of(b"directory");
    Some(FileState { state, kind: FileKind::Directory, mode: 0o755, size: 0, content: None })
}

/// A comparison of these paths, each as the session first saw it.
fn changes(files: &[(&str, Option<FileState>, Option<FileState>)]) -> Changes {
    let diff = |(path, old, new): &(&str, Option<FileState>, Option<FileState>)| FileDiff {
        path: format!("/w/{path}").as_str().into(),
        old: old.clone(),
        new: new.clone(),
        base: None,
        refused: None,
        remarks: Vec::new(),
        marks: Vec::new(),
    };
    let files: Vec<FileDiff> = files.iter().map(diff).collect();
    let state = |side: &Option<FileState>| side.as_ref().map(|side| side.state);
    let change = |file: &FileDiff| Change {
        path: file.path.0[3..].into(),
        diff: "whole\n".into(),
        count: PathCount { path: file.path.0[3..].into(), more: 0, less: 0, now: None },
        refused: None,
        remarks: Vec::new(),
        conflict: None,
        file: MergeFile::whole(file.path.clone(), state(&file.old), state(&file.new)),
    };
    let changes = files.iter().map(change).collect();
    let report = Report::Diff(DiffReport { files, ..DiffReport::default() });
    let outcome = Outcome { status: Status::Done, enforced: None, duration_ms: 0, report };
    Changes { changes, compared: Some(Output::new(outcome)), ..Changes::default() }
}

fn hunks(changes: &Changes) -> Vec<Hunk> {
    changes.hunks().remove(0).hunks
}

/// The result of an apply of these hunks to the first file.
fn applied(changes: &Changes, hunks: &[Hunk]) -> (String, u32) {
    let path = changes.changes[0].path.clone();
    let picked = changes.chosen(&[(path, hunks.to_vec())]).unwrap();
    let file = &picked[0].file;
    let Report::Diff(report) = changes.compared.as_ref().unwrap().report() else { panic!() };
    let (old, new) = (report.files[0].old.as_ref().unwrap(), report.files[0].new.as_ref().unwrap());
    let (old_text, new_text) = (old.content.as_ref().unwrap(), new.content.as_ref().unwrap());
    let (text, mode) = match &file.part {
        None => (new_text.0.clone(), new.mode),
        Some(part) => (part.compose(&old_text.0, &new_text.0).unwrap(), part.mode),
    };
    assert_eq!(file.new, Some(file_state(mode, &text)), "the end is what the worker will find");
    (String::from_utf8(text).unwrap(), mode)
}

/// Twelve lines, of which the first, the third and the last change.
fn twelve() -> Changes {
    let old: String = (1..=12).map(|n| format!("{n}\n")).collect();
    let new = old.replacen("1\n", "one\n", 1).replacen("3\n", "three\n", 1).replacen("12\n", "twelve", 1);
    changes(&[("a.txt", file(&old, 0o644), file(&new, 0o755))])
}

#[test]
fn a_file_has_a_hunk_for_its_mode_and_one_for_each_place() {
    let all = hunks(&twelve());
    let texts: Vec<&str> = all.iter().map(|hunk| hunk.diff.as_str()).collect();
    assert_eq!(
        texts,
        [
            "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n",
            "@@ -1,6 +1,6 @@\n-1\n+one\n 2\n-3\n+three\n 4\n 5\n 6\n",
            "@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+twelve\n\\ No newline at end of file\n",
        ]
    );
    let smaller: Vec<&str> = all[1].smaller.iter().map(|hunk| hunk.diff.as_str()).collect();
    assert_eq!(smaller, ["@@ -1,2 +1,2 @@\n-1\n+one\n 2\n", "@@ -2,5 +2,5 @@\n 2\n-3\n+three\n 4\n 5\n 6\n"]);
}

#[test]
fn each_choice_of_hunks_comes_to_what_its_lines_say() {
    let changes = twelve();
    let all = hunks(&changes);
    for choice in 1..1_u32 << all.len() {
        let picked: Vec<Hunk> =
            (0..all.len()).filter(|n| choice >> n & 1 == 1).map(|n| all[n].clone()).collect();
        let (text, mode) = applied(&changes, &picked);
        let has = |n: usize| choice >> n & 1 == 1;
        assert_eq!(mode == 0o755, has(0), "{choice:b}");
        assert_eq!(text.starts_with("one\n2\nthree\n4\n"), has(1), "{choice:b}: {text}");
        assert_eq!(text.ends_with("11\ntwelve"), has(2), "{choice:b}: {text}");
    }
    let (text, mode) = applied(&changes, &all[1].smaller[1..]);
    assert!(text.starts_with("1\n2\nthree\n4\n") && text.ends_with("12\n") && mode == 0o644, "{text}");
}

/// Split or not, all hunks together give the layer's file, which then needs no part.
#[test]
fn all_hunks_of_a_file_are_the_file() {
    let changes = twelve();
    let all = hunks(&changes);
    let split: Vec<Hunk> = all
        .iter()
        .flat_map(|hunk| if hunk.smaller.is_empty() { vec![hunk.clone()] } else { hunk.smaller.clone() })
        .collect();
    for picked in [all, split] {
        let picked = changes.chosen(&[("a.txt".into(), picked)]).unwrap();
        assert_eq!(picked, changes.changes);
    }
}

/// The last line of the old file, of the new file, or of neither lacks its line feed. Some lines repeat, and
/// some stand alone.
#[test]
fn the_hunks_of_any_two_texts_come_to_the_new_one() {
    let texts =
        ["", "a", "a\n", "a\nb", "a\nb\n", "b\na\n", "\n\n\n", "a\n\na\n\na", "x\r\ny\r\n", "ü\n\u{2028}ü"];
    let long: String = (0..40).map(|n| format!("{}\n", n % 3)).collect();
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).chain([long]).collect();
    for old in &texts {
        for new in texts.iter().filter(|new| *new != old) {
            let changes = changes(&[("a.txt", file(old, 0o644), file(new, 0o644))]);
            let all = hunks(&changes);
            assert_eq!(applied(&changes, &all).0, *new, "{old:?} -> {new:?}");
            for hunk in all.iter().filter(|hunk| hunk.piece != Piece::Whole) {
                applied(&changes, std::slice::from_ref(hunk));
            }
        }
    }
}

#[test]
fn what_has_no_lines_goes_as_a_whole() {
    let binary = |bytes: &[u8]| {
        let state = file_state(0o644, bytes);
        let content = Some(Blob(bytes.to_vec()));
        Some(FileState { state, kind: FileKind::File, mode: 0o644, size: bytes.len() as u64, content })
    };
    let large = file("x\n", 0o644).map(|state| FileState { content: None, ..state });
    let cases = [
        ("made", None, file("a\n", 0o644)),
        ("gone", file("a\n", 0o644), None),
        ("zero", binary(b"a\0"), binary(b"b\0")),
        ("latin", binary(b"\xe9\n"), binary(b"\xe8\n")),
        ("large", file("a\nb\n", 0o644), large),
        ("kind", file("a\n", 0o644), directory()),
        ("one", file("a\n", 0o644), file("b\n", 0o644)),
    ];
    for (path, old, new) in cases {
        let changes = changes(&[(path, old, new)]);
        let all = hunks(&changes);
        assert!(matches!(all.as_slice(), [hunk] if hunk.piece == Piece::Whole), "{path}: {all:?}");
        let picked = changes.chosen(&[(path.into(), all)]).unwrap();
        assert_eq!(picked, changes.changes, "{path}");
    }
}

/// The user's later changes are the user's own: no hunk of such a file can be picked, and the apply of all
/// names it.
#[test]
fn a_file_that_is_not_what_the_session_began_with_has_no_hunks() {
    let mut changes = twelve();
    changes.changes[0].file.base = Some(Digest::of(b"before"));
    changes.changes[0].conflict = Some("is gone".into());
    let FileHunks { hunks, remarks, .. } = changes.hunks().remove(0);
    assert!(matches!(hunks.as_slice(), [hunk] if hunk.piece == Piece::Whole));
    assert!(remarks[0].contains("would be kept"));
}

#[test]
fn a_directory_comes_with_the_first_and_goes_with_the_last_of_its_files() {
    let text = || file("a\n", 0o644);
    let changes = changes(&[
        ("new", None, directory()),
        ("new/a", None, text()),
        ("old", directory(), None),
        ("old/a", text(), None),
        ("old/b", text(), None),
        ("solo", None, directory()),
    ]);
    let all = changes.hunks();
    let paths: Vec<&str> = all.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["new/a", "old/a", "old/b", "solo"]);
    let pick = |paths: &[&str]| {
        let picked = all.iter().filter(|file| paths.contains(&file.path.as_str()));
        let picked: Vec<_> = picked.map(|file| (file.path.clone(), file.hunks.clone())).collect();
        changes.chosen(&picked).unwrap().into_iter().map(|change| change.path).collect::<Vec<_>>()
    };
    assert_eq!(pick(&["new/a"]), ["new/a"]);
    assert_eq!(pick(&["old/a"]), ["old/a"]);
    assert_eq!(pick(&["old/a", "old/b", "solo"]), ["old", "old/a", "old/b", "solo"]);
}

#[test]
fn what_is_shown_names_both_states() {
    let shown = |old: &str, new: &str| {
        let changes = changes(&[("a", file(old, 0o644), file(new, 0o644))]);
        changes.hunks().remove(0).shown
    };
    let one = shown("a\n", "b\n");
    assert_eq!(one.len(), 32);
    assert!(one != shown("a\n", "c\n") && one != shown("c\n", "b\n") && one == shown("a\n", "b\n"));
}

#[test]
fn what_is_no_hunk_of_the_path_is_refused() {
    let changes = twelve();
    let all = hunks(&changes);
    for picked in [vec![], vec![("b.txt".into(), all.clone())], vec![("a.txt".into(), Vec::new())]] {
        assert!(changes.chosen(&picked).is_err(), "{picked:?}");
    }
}
