//! A project beneath an overlay of the host's, which exchanges no directory for anything else (`EXDEV`).

use crate::{
    attacks::actor::{Actor, Who},
    tree::Tree,
};
use std::{fs, path::Path};

/// The session of an ordinary user that does this work there, with what mounts the project; none, which is said, where nothing can.
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
    let listed = actor.bailey(&["--json", "sessions", "list"]).lines();
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
