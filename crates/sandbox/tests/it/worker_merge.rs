//! Apply, undo and discard as the runtime asks for them. That they survive being stopped anywhere is tested
//! beside the code.

use super::{Ground, Request, Response, mode, mode_of, run};
use bailey_protocol::{Digest, Merge, MergeFile, MergeKind, MergeState, Part, Report, Splice, file_state};

pub(super) fn merge(
    ground: &Ground,
    direction: MergeKind,
    files: &[MergeFile],
) -> Result<Vec<MergeState>, String> {
    let merge = Merge::of_files(direction, None, files.to_vec());
    let (upper, project, backup) = (ground.text("upper"), ground.text("project"), ground.text("backup"));
    match run(Request::Merge { merge, upper, project, backup, carried: None, bases: None }) {
        Response::Report(Report::Merged { files, .. }) => {
            Ok(files.into_iter().map(|file| file.state).collect())
        }
        Response::Refused { reason } => Err(reason),
        other => panic!("{other:?}"),
    }
}

/// What a diff tells, as a merge of all of it.
pub(super) fn all(ground: &Ground) -> Vec<MergeFile> {
    ground.dir("project");
    let Response::Diff(report) = run(Request::Diff {
        upper: ground.text("upper"),
        project: ground.text("project"),
        is_copy: false,
        also: Vec::new(),
        bases: None,
    }) else {
        panic!()
    };
    let leaves = report.files.into_iter().filter(|file| file.refused.is_none());
    leaves
        .map(|file| {
            MergeFile::whole(file.path, file.old.map(|side| side.state), file.new.map(|side| side.state))
        })
        .collect()
}

fn conflicts(state: &MergeState) -> bool {
    matches!(state, MergeState::Conflict { .. })
}

fn untouched(state: &MergeState) -> bool {
    matches!(state, MergeState::Untouched { .. })
}

#[test]
fn only_what_was_chosen_is_applied_and_its_directories_go_with_an_undo() {
    let ground = Ground::new();
    ground.file("upper/a/b/wanted", "w");
    ground.file("upper/a/b/unwanted", "u");
    mode(&ground.dir("upper/a/b"), 0o750);
    let chosen: Vec<_> = all(&ground).into_iter().filter(|file| file.path.0.ends_with("/wanted")).collect();
    assert_eq!(merge(&ground, MergeKind::Apply, &chosen), Ok(vec![MergeState::Done]));
    assert_eq!(ground.read("project/a/b/wanted"), "w");
    assert_eq!(mode_of(&ground.path.join("project/a/b")), 0o750);
    assert!(!ground.has("project/a/b/unwanted"));
    assert_eq!(merge(&ground, MergeKind::Apply, &chosen), Ok(vec![MergeState::Already]));
    assert_eq!(merge(&ground, MergeKind::Undo, &chosen), Ok(vec![MergeState::Done]));
    assert!(!ground.has("project/a"));
    assert_eq!(merge(&ground, MergeKind::Undo, &chosen), Ok(vec![MergeState::Already]));
}

#[test]
fn what_the_user_changed_is_a_conflict_and_kept() {
    let ground = Ground::new();
    for at in ["edited", "deleted", "chmodded", "removed", "fine"] {
        ground.file(&format!("project/{at}"), "base");
        ground.file(&format!("upper/{at}"), "session");
    }
    std::fs::remove_file(ground.path.join("upper/removed")).unwrap();
    ground.whiteout("upper/removed");
    ground.file("upper/created", "session");
    let files = all(&ground);
    ground.file("project/edited", "user");
    std::fs::remove_file(ground.path.join("project/deleted")).unwrap();
    mode(&ground.path.join("project/chmodded"), 0o600);
    ground.file("project/removed", "user");
    ground.link("project/created", "somewhere");
    let states = merge(&ground, MergeKind::Apply, &files).unwrap();
    for (file, state) in files.iter().zip(&states) {
        assert_eq!(conflicts(state), !file.path.0.ends_with("/fine"), "{:?}: {state:?}", file.path);
    }
    assert_eq!(ground.read("project/edited"), "user");
    assert!(!ground.has("project/deleted"));
    assert_eq!(mode_of(&ground.path.join("project/chmodded")), 0o600);
    assert_eq!(ground.read("project/removed"), "user");
    assert_eq!(std::fs::read_link(ground.path.join("project/created")).unwrap().to_str(), Some("somewhere"));
    assert_eq!(ground.read("project/fine"), "session");
    // An undo takes back what was done, and only that.
    let states = merge(&ground, MergeKind::Undo, &files).unwrap();
    assert!(!states.iter().any(conflicts), "{states:?}");
    assert_eq!((ground.read("project/fine"), ground.read("project/edited")), ("base".into(), "user".into()));
}

#[test]
fn an_undo_keeps_what_the_user_changed_after_the_apply() {
    let ground = Ground::new();
    ground.file("project/edit", "base");
    ground.file("upper/edit", "session");
    ground.file("upper/new/file", "session");
    let files = all(&ground);
    merge(&ground, MergeKind::Apply, &files).unwrap();
    ground.file("project/edit", "user");
    ground.file("project/new/users", "user");
    let states = merge(&ground, MergeKind::Undo, &files).unwrap();
    let expected = [("edit", true), ("new", true), ("new/file", false)];
    for ((at, conflict), state) in expected.into_iter().zip(&states) {
        assert_eq!(conflicts(state), conflict, "{at}: {state:?}");
    }
    assert_eq!(
        (ground.read("project/edit"), ground.read("project/new/users")),
        ("user".into(), "user".into())
    );
    assert!(!ground.has("project/new/file"));
}

#[test]
fn an_undo_accepts_the_merge_in_either_direction_and_no_other() {
    let ground = Ground::new();
    ground.file("project/edit", "base");
    ground.file("upper/edit", "session");
    let files = all(&ground);
    let turned = |file: &MergeFile| MergeFile::whole(file.path.clone(), file.new, file.base);
    let turned: Vec<_> = files.iter().map(turned).collect();
    assert_eq!(
        merge(&ground, MergeKind::Undo, &files),
        Ok(vec![MergeState::Already]),
        "nothing was applied yet"
    );
    merge(&ground, MergeKind::Apply, &files).unwrap();
    let other = [MergeFile { new: Some(Digest::of(b"other")), ..files[0].clone() }];
    assert!(merge(&ground, MergeKind::Undo, &other).unwrap_err().contains("nothing was undone"));
    assert_eq!(merge(&ground, MergeKind::Undo, &turned), Ok(vec![MergeState::Done]));
    assert_eq!(ground.read("project/edit"), "base");
}

#[test]
fn a_layer_that_changed_since_the_diff_is_not_applied() {
    let ground = Ground::new();
    ground.file("project/edit", "base");
    ground.file("upper/edit", "shown");
    let files = all(&ground);
    ground.file("upper/edit", "slipped in");
    let states = merge(&ground, MergeKind::Apply, &files).unwrap();
    assert!(untouched(&states[0]), "{states:?}");
    assert_eq!(ground.read("project/edit"), "base");
    assert_eq!(std::fs::read_dir(ground.path.join("project")).unwrap().count(), 1);
}

/// A file of two lines, of which the layer changes both, with its first line picked.
fn picked(ground: &Ground) -> MergeFile {
    ground.file("project/edit", "one\ntwo\n");
    ground.file("upper/edit", "ONE\nTWO\n");
    let whole = all(ground).remove(0);
    let splices = vec![Splice { at: 0, cut: 4, from: 0, take: 4 }];
    let part = whole.new.map(|of| Part { of, mode: 0o644, splices, rebases: false });
    MergeFile { new: Some(file_state(0o644, b"ONE\ntwo\n")), part, ..whole }
}

/// The control: as it was picked, it is applied.
#[test]
fn a_forged_part_is_not_applied() {
    type Forge = fn(&Ground, &mut MergeFile, &mut Part);
    let forged: [(&str, Forge); 8] = [
        ("the layer changed", |ground, _, _| {
            ground.file("upper/edit", "ONE\nevil\n");
        }),
        ("another state of the layer", |_, file, part| part.of = file.base.unwrap()),
        ("another end", |_, file, _| file.new = Some(file_state(0o644, b"ONE\nevil\n"))),
        ("other lines", |_, _, part| part.splices[0].from = 4),
        ("beyond the end", |_, _, part| part.splices[0].take = 400),
        ("a mode of nobody's", |_, file, part| {
            part.mode = 0o4755;
            file.new = Some(file_state(0o4755, b"ONE\ntwo\n"));
        }),
        ("nothing to be changed", |ground, file, _| {
            std::fs::remove_file(ground.path.join("project/edit")).unwrap();
            file.base = None;
        }),
        ("a directory in the layer", |ground, _, _| {
            std::fs::remove_file(ground.path.join("upper/edit")).unwrap();
            ground.dir("upper/edit");
        }),
    ];
    for (what, forge) in forged {
        let ground = Ground::new();
        let mut file = picked(&ground);
        let mut part = file.part.take().unwrap();
        forge(&ground, &mut file, &mut part);
        let states = merge(&ground, MergeKind::Apply, &[MergeFile { part: Some(part), ..file }]).unwrap();
        assert!(untouched(&states[0]), "{what}: {states:?}");
        if ground.has("project/edit") {
            assert_eq!(ground.read("project/edit"), "one\ntwo\n", "{what}");
        }
    }
    let ground = Ground::new();
    let file = picked(&ground);
    assert_eq!(merge(&ground, MergeKind::Apply, &[file]), Ok(vec![MergeState::Done]));
    assert_eq!(ground.read("project/edit"), "ONE\ntwo\n");
}

#[test]
fn a_part_of_a_file_that_the_user_changed_is_a_conflict() {
    let ground = Ground::new();
    let file = picked(&ground);
    ground.file("project/edit", "one\ntwo\nthree\n");
    let states = merge(&ground, MergeKind::Apply, &[file]).unwrap();
    assert!(conflicts(&states[0]), "{states:?}");
    assert_eq!(ground.read("project/edit"), "one\ntwo\nthree\n");
}

#[test]
fn a_backup_folder_serves_one_merge() {
    let ground = Ground::new();
    ground.file("upper/one", "1");
    let first = all(&ground);
    merge(&ground, MergeKind::Apply, &first).unwrap();
    ground.file("upper/two", "2");
    let second = all(&ground);
    assert!(merge(&ground, MergeKind::Apply, &second).unwrap_err().contains("backup folder is another's"));
    assert!(!ground.has("project/two"));
}

/// The control: the same state under an innocent name is applied.
#[test]
fn a_forged_request_reaches_nothing_outside_the_project_and_nothing_of_gits() {
    let ground = Ground::new();
    ground.file("upper/fine", "x");
    let fine = all(&ground).remove(0);
    ground.dir("project/real");
    ground.dir("outside");
    ground.link("project/link", "../outside");
    for at in
        ["outside/x", "project/../outside/x", "project", "project//x", "project/.git/hooks/x", "project/.GIT"]
    {
        let file = MergeFile { path: ground.ws(at), ..fine.clone() };
        assert!(merge(&ground, MergeKind::Apply, &[file]).is_err(), "{at}");
    }
    for at in ["link/x", "real"] {
        ground.file(&format!("upper/{}", at.replace("link/x", "link")), "x");
        let file = MergeFile { path: ground.ws(&format!("project/{at}")), ..fine.clone() };
        std::fs::remove_dir_all(ground.path.join("backup")).ok();
        let states = merge(&ground, MergeKind::Apply, &[file]).unwrap();
        assert!(states[0].kept().is_some(), "{at}: {states:?}");
    }
    assert_eq!(std::fs::read_dir(ground.path.join("outside")).unwrap().count(), 0);
    std::fs::remove_dir_all(ground.path.join("backup")).ok();
    assert_eq!(merge(&ground, MergeKind::Apply, &[fine]), Ok(vec![MergeState::Done]));
}

/// First `HEAD` and `refs`, then `objects`, each innocent alone.
#[test]
fn a_bare_repository_cannot_be_applied_piece_by_piece() {
    let ground = Ground::new();
    ground.file("upper/dir/HEAD", "ref: refs/heads/main\n");
    ground.file("upper/dir/refs/x", "");
    let files = all(&ground);
    assert!(merge(&ground, MergeKind::Apply, &files).unwrap().iter().all(|state| *state == MergeState::Done));
    ground.whiteout("upper/dir/HEAD.tmp");
    std::fs::rename(ground.path.join("upper/dir/HEAD.tmp"), ground.path.join("upper/dir/HEAD")).unwrap();
    ground.file("upper/dir/objects", "");
    let objects: Vec<_> = all(&ground).into_iter().filter(|file| file.path.0.ends_with("objects")).collect();
    assert_eq!(objects.len(), 1, "in the layer's view there is no repository");
    std::fs::remove_dir_all(ground.path.join("backup")).unwrap();
    let states = merge(&ground, MergeKind::Apply, &objects).unwrap();
    assert!(matches!(&states[0], MergeState::Untouched { reason } if reason.contains("bare git repository")));
    assert!(!ground.has("project/dir/objects"));
}

#[test]
fn a_discard_empties_the_layer_and_follows_no_symlink() {
    let ground = Ground::new();
    ground.file("outside/kept", "");
    ground.file("project/edit", "base");
    ground.file("upper/edit", "session");
    ground.file("upper/locked/deep/file", "");
    ground.link("upper/out", "../outside");
    ground.whiteout("upper/gone");
    mode(&ground.path.join("upper/locked"), 0o000);
    mode(&ground.path.join("upper"), 0o000);
    let file = MergeFile::whole(ground.ws("project/edit"), None, None);
    assert_eq!(merge(&ground, MergeKind::Discard, &[file]), Ok(vec![MergeState::Done]));
    assert_eq!(std::fs::read_dir(ground.path.join("upper")).unwrap().count(), 0);
    assert_eq!(ground.read("project/edit"), "base");
    assert!(ground.has("outside/kept"));
}

/// The control: with the rule gone, the same request applies it.
#[test]
fn what_must_stay_in_the_layer_is_not_applied_even_when_asked_for() {
    let ground = Ground::new();
    ground.file("upper/target/app", "x");
    let files = all(&ground);
    assert_eq!(files.len(), 2);
    let rules = ground.file("project/.gitignore", "target/\n");
    let states = merge(&ground, MergeKind::Apply, &files).unwrap();
    assert!(states.iter().all(untouched), "{states:?}");
    assert!(!ground.has("project/target"));
    std::fs::remove_file(rules).unwrap();
    std::fs::remove_dir_all(ground.path.join("backup")).unwrap();
    assert_eq!(merge(&ground, MergeKind::Apply, &files), Ok(vec![MergeState::Done; 2]));
}

/// A directory cannot be exchanged like a file, so its state is compared before it is touched.
#[test]
fn a_directory_whose_mode_the_user_changed_is_kept() {
    let ground = Ground::new();
    ground.dir("project/narrowed");
    mode(&ground.dir("upper/narrowed"), 0o700);
    ground.dir("upper/made");
    let files = all(&ground);
    assert_eq!(merge(&ground, MergeKind::Apply, &files), Ok(vec![MergeState::Done; 2]));
    for at in ["project/narrowed", "project/made"] {
        mode(&ground.path.join(at), 0o711);
    }
    let states = merge(&ground, MergeKind::Undo, &files).unwrap();
    assert!(states.iter().all(conflicts), "{states:?}");
    assert_eq!(mode_of(&ground.path.join("project/narrowed")), 0o711);
    assert!(ground.has("project/made"));
}

/// A file of which the user changed the first line since and the session the last one, put together.
fn of_both_sides(ground: &Ground) -> MergeFile {
    ground.file("project/edit", "one\n2\n3\n");
    ground.file("upper/edit", "1\n2\nthree\n");
    let whole = all(ground).remove(0);
    let splices = vec![Splice { at: 6, cut: 2, from: 4, take: 6 }];
    let part = whole.new.map(|of| Part { of, mode: 0o644, splices, rebases: true });
    MergeFile { new: Some(file_state(0o644, b"one\n2\nthree\n")), part, ..whole }
}

#[test]
fn what_both_sides_changed_comes_to_the_project_and_to_the_layer() {
    let ground = Ground::new();
    let file = of_both_sides(&ground);
    let files = [file];
    assert_eq!(merge(&ground, MergeKind::Apply, &files), Ok(vec![MergeState::Done]));
    for side in ["project/edit", "upper/edit"] {
        assert_eq!(ground.read(side), "one\n2\nthree\n", "{side}");
    }
    assert_eq!(all(&ground), [], "the user's line is no change of the session's, back to what was");
    assert_eq!(merge(&ground, MergeKind::Apply, &files), Ok(vec![MergeState::Already]), "once more");
    assert_eq!(merge(&ground, MergeKind::Undo, &files), Ok(vec![MergeState::Done]));
    assert_eq!(ground.read("project/edit"), "one\n2\n3\n");
    let left = all(&ground).remove(0);
    assert_eq!((left.base, left.new), (files[0].base, files[0].new), "what is undone can be applied again");
}

/// The control is above: without a write in between it is applied.
#[test]
fn what_both_sides_changed_stays_on_both_where_the_user_writes_again() {
    let ground = Ground::new();
    let file = of_both_sides(&ground);
    ground.file("project/edit", "one more\n2\n3\n");
    let states = merge(&ground, MergeKind::Apply, &[file]).unwrap();
    assert!(conflicts(&states[0]), "{states:?}");
    assert_eq!(ground.read("project/edit"), "one more\n2\n3\n");
    assert_eq!(ground.read("upper/edit"), "1\n2\nthree\n");

    let ground = Ground::new();
    let file = of_both_sides(&ground);
    ground.file("upper/edit", "1\n2\nevil\n");
    let states = merge(&ground, MergeKind::Apply, &[file]).unwrap();
    assert!(untouched(&states[0]), "{states:?}");
    assert_eq!(
        (ground.read("project/edit"), ground.read("upper/edit")),
        ("one\n2\n3\n".into(), "1\n2\nevil\n".into())
    );

    let ground = Ground::new();
    let mut file = of_both_sides(&ground);
    file.new = Some(file_state(0o644, b"evil\n"));
    let states = merge(&ground, MergeKind::Apply, &[file]).unwrap();
    assert!(untouched(&states[0]), "{states:?}");
    assert_eq!(ground.read("upper/edit"), "1\n2\nthree\n", "what nobody was shown reaches the layer neither");
}
