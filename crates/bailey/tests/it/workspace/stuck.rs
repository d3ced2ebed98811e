//! A project beneath an overlay of the host's, which exchanges no directory for anything else (`EXDEV`).

use crate::{
    attacks::actor::{Actor, Who},
    tree::Tree,
};
use std::{fs, path::Path};

/// The session of an ordinary user that does this work there, with what mounts the project; none, which is
/// said, where nothing can.
fn session(actor: &Actor, work: &str) -> Option<(String, String)> {
    let [below, above, aside] =
        ["project", "user/above", "user/aside"].map(|name| actor.stage.folder().join(name));
    fs::create_dir_all(&above).unwrap();
    fs::create_dir_all(&aside).unwrap();
    actor.own();
    let [below, above, aside] = [below, above, aside].map(|path| path.display().to_string());
    let mounts =
        format!("mount -t overlay -o lowerdir={below},upperdir={above},workdir={aside} none {below}");
    let ran = actor.amid(&mounts, &["sandbox", "run", "--keep", "--", "sh", "-c", work])?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = actor.bailey(&["--json", "sessions", "list", "--all"]).lines();
    Some((mounts, listed[0]["id"].as_str().unwrap().to_owned()))
}

/// What was prepared beside it goes, too.
#[test]
fn an_apply_that_cannot_put_something_in_place_leaves_nothing_beside_it() {
    let actor = Actor::new(Who::User, &[("f", "f\n")]);
    fs::create_dir(actor.stage.project().join("d")).unwrap();
    let work = "rmdir d; echo file > d; echo agent >> f; mkdir open";
    let Some((mounts, session)) = session(&actor, work) else { return };
    let applied = actor.amid(&mounts, &["sessions", "apply", &session]).unwrap();
    let above = actor.user().join("above");
    let there = Tree::of(&above);
    let there: Vec<&Path> = there.paths().filter(|path| !path.starts_with(".git")).collect();
    assert_eq!(there, ["f", "open"].map(Path::new), "{applied:?}");
    assert!(applied.stdout.contains("the file system does not move it"), "{applied:?}");
}

/// All of it goes, or none: what lay in it is no longer wanted only where something replaces it.
#[test]
fn what_lies_in_a_directory_that_cannot_be_replaced_stays() {
    let files = [("d/x", "x\n"), ("d/deep/y", "y\n"), ("gone/z", "z\n"), ("f", "f\n")];
    let actor = Actor::new(Who::User, &files);
    let Some((mounts, session)) = session(&actor, "rm -r d gone; ln -s f d; echo agent >> f") else { return };
    let applied = actor.amid(&mounts, &["sessions", "apply", &session]).unwrap();
    assert!(applied.stdout.contains("what replaces `d` stays in the session"), "{applied:?}");
    let above = actor.user().join("above");
    let holds = |at: &str| fs::read_to_string(above.join(at)).unwrap();
    assert_eq!((holds("d/x"), holds("d/deep/y")), ("x\n".into(), "y\n".into()));
    assert_eq!(holds("f"), "f\nagent\n", "the control");
    let gone = fs::symlink_metadata(above.join("gone")).unwrap();
    assert!(!gone.is_dir(), "the control: hidden by the overlay");
    // It stays the session's, for when it can be put there.
    let diff = actor.amid(&mounts, &["sessions", "diff", &session]).unwrap();
    assert!(diff.stdout.contains("a/d/x"), "{diff:?}");
}
