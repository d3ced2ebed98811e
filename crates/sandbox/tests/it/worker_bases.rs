//! The texts that a scan keeps, for what both sides change: which, for how long, and that nothing else is
//! taken for one.

use super::{Ground, Request, Response, mode, run};
use bailey_protocol::{FileDiff, Merge, MergeFile, MergeKind};
use bailey_sandbox::worker::Keep;
use std::{collections::BTreeMap, fs};

fn keep(ground: &Ground) -> Option<Keep> {
    ground.dir("bases");
    Some(Keep { folder: ground.text("bases"), masks: vec![".env".into(), "secrets/".into()] })
}

fn scan(ground: &Ground) {
    let (upper, project, known) = (ground.text("upper"), ground.text("project"), Vec::new());
    match run(Request::Scan { upper, project, known, since: 0, outside: false, bases: keep(ground) }) {
        Response::Scanned { .. } => {}
        other => panic!("{other:?}"),
    }
}

/// The differences with the kept text of each, as a diff tells them.
fn bases(ground: &Ground) -> BTreeMap<String, Option<String>> {
    let (upper, project) = (ground.text("upper"), ground.text("project"));
    let Response::Diff(report) = run(Request::Diff {
        upper,
        project: project.clone(),
        is_copy: false,
        also: Vec::new(),
        bases: keep(ground),
    }) else {
        panic!()
    };
    let base = |file: &FileDiff| {
        let content = file.base.as_ref()?.content.as_ref()?;
        Some(String::from_utf8(content.0.clone()).unwrap())
    };
    let name = |file: &FileDiff| file.path.relative_to(&project).unwrap().to_owned();
    report.files.iter().map(|file| (name(file), base(file))).collect()
}

fn merge(ground: &Ground, direction: MergeKind, files: Vec<MergeFile>) {
    let merge = Merge::of_files(direction, None, files);
    let (upper, project, backup) = (ground.text("upper"), ground.text("project"), ground.text("backup"));
    match run(Request::Merge { merge, upper, project, backup, carried: None, bases: keep(ground) }) {
        Response::Report(_) => {}
        other => panic!("{other:?}"),
    }
}

fn kept(ground: &Ground) -> usize {
    fs::read_dir(ground.path.join("bases")).unwrap().count()
}

#[test]
fn the_text_that_the_session_began_with_is_told_once_the_project_has_another() {
    let ground = Ground::new();
    ground.file("project/a.txt", "base\n");
    ground.file("project/same.txt", "base\n");
    ground.file("upper/a.txt", "session\n");
    ground.file("upper/same.txt", "session\n");
    scan(&ground);
    ground.file("project/a.txt", "user\n");
    // Who begins again looks at all of it again: the first look is the one that counts.
    scan(&ground);
    assert_eq!(bases(&ground), [("a.txt".into(), Some("base\n".into())), ("same.txt".into(), None)].into());
}

#[test]
fn only_small_texts_that_no_mask_names_are_kept() {
    let ground = Ground::new();
    for (name, content) in [
        (".env", "KEY=1\n".to_owned()),
        ("deep/.env", "KEY=1\n".into()),
        ("secrets/a", "KEY=1\n".into()),
        ("zero", "a\0b".into()),
        ("large", "x".repeat((1 << 20) + 1)),
        ("largest", "x".repeat(1 << 20)),
        ("mode", "m\n".into()),
        ("empty", String::new()),
    ] {
        ground.file(&format!("project/{name}"), content);
        ground.file(&format!("upper/{name}"), "session\n");
    }
    fs::write(ground.path.join("project/bytes"), b"\xff\xfe").unwrap();
    ground.file("upper/bytes", "session\n");
    mode(&ground.path.join("project/mode"), 0o755);
    ground.link("project/link", "mode");
    ground.file("upper/link", "session\n");
    ground.file("upper/new", "session\n");
    scan(&ground);
    for entry in fs::read_dir(ground.path.join("bases")).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        assert!(!text.windows(3).any(|bytes| bytes == b"KEY"), "a masked text is kept");
    }
    assert_eq!(kept(&ground), 3, "largest, mode and empty: the control is that these are");
}

#[test]
fn more_than_64_mib_of_a_session_is_not_kept() {
    let ground = Ground::new();
    for n in 0..70 {
        ground.file(&format!("project/f{n}"), "x".repeat(1 << 20));
        ground.file(&format!("upper/f{n}"), "session\n");
    }
    scan(&ground);
    let size = |entry: fs::DirEntry| entry.metadata().unwrap().len();
    let all: u64 = fs::read_dir(ground.path.join("bases")).unwrap().map(|entry| size(entry.unwrap())).sum();
    assert!((60 << 20..=64 << 20).contains(&all), "{all}");
    scan(&ground);
    assert_eq!(kept(&ground), 63, "a second look keeps no more");
}

#[test]
fn after_a_merge_the_base_is_what_the_project_holds_and_after_a_discard_there_is_none() {
    let ground = Ground::new();
    ground.file("project/a.txt", "base\n");
    ground.file("upper/a.txt", "session\n");
    scan(&ground);
    let files = super::merge::all(&ground);
    merge(&ground, MergeKind::Apply, files.clone());
    ground.file("project/a.txt", "user\n");
    ground.file("upper/a.txt", "session, again\n");
    assert_eq!(bases(&ground)["a.txt"].as_deref(), Some("session\n"));
    ground.file("project/a.txt", "session\n");
    merge(&ground, MergeKind::Undo, files.clone());
    ground.file("project/a.txt", "user\n");
    assert_eq!(bases(&ground)["a.txt"].as_deref(), Some("base\n"));
    merge(&ground, MergeKind::Discard, Vec::new());
    assert_eq!(kept(&ground), 0);
}

#[test]
fn what_is_torn_is_no_base() {
    let ground = Ground::new();
    ground.file("project/a.txt", "base\n");
    ground.file("upper/a.txt", "session\n");
    scan(&ground);
    ground.file("project/a.txt", "user\n");
    let text = fs::read_dir(ground.path.join("bases")).unwrap().next().unwrap().unwrap().path();
    for torn in ["", "644", "x\nbase\n", "99999999999999999999\n"] {
        fs::write(&text, torn).unwrap();
        assert_eq!(bases(&ground)["a.txt"], None, "{torn:?}");
    }
    fs::write(&text, "644\nbase\n").unwrap();
    assert_eq!(bases(&ground)["a.txt"].as_deref(), Some("base\n"), "the control");
}
