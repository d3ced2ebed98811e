//! What an ordinary user may not look into, on either side, and what is too large to be looked at: it holds
//! up nothing else.

use crate::attacks::actor::{Actor, Who};
use std::{fs, os::unix::fs::PermissionsExt as _};

/// As an ordinary user: root may list anything.
#[test]
fn a_directory_that_cannot_be_listed_and_rules_that_cannot_be_read_hold_up_nothing_else() {
    let many = "line\n".repeat(5_000);
    let files = [
        ("d/x", "x\n"),
        ("e/x", "x\n"),
        ("f", "f\n"),
        ("big/.gitignore", many.as_str()),
        ("big/tracked", "one\n"),
    ];
    let actor = Actor::new(Who::User, &files);
    let project = actor.stage.project();
    actor.write("big/user", "not the session's to delete\n");
    let work = "chmod 644 d; mkdir new; echo x > new/x; chmod 644 new; rm -r e; mkdir e; echo n > e/n; echo agent >> f
        mkdir own; seq 5000 > own/.gitignore; echo x > own/x
        echo agent >> big/tracked; echo out > big/out; rm big/user";
    let ran = actor.bailey(&["sandbox", "run", "--keep", "--", "sh", "-c", work]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mode = |mode| fs::set_permissions(project.join("e"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    let listed = actor.bailey(&["--json", "sessions", "list", "--all"]).lines();
    let session = listed[0]["id"].as_str().unwrap();
    let diff = actor.bailey(&["sessions", "diff", session]);
    let many = "stays in the session: `.gitignore` in it is too large for a list of ignore rules";
    let told = ["d stays in the session: cannot be listed", "new stays in the session: cannot be listed"]
        .map(str::to_owned);
    let told = told.into_iter().chain([format!("big {many}"), format!("own {many}")]);
    for line in told.chain(["e stays in the session: cannot be listed in the project".into()]) {
        assert!(diff.stdout.contains(&line), "`{line}` in {diff:?}");
    }
    let applied = actor.bailey(&["sessions", "apply", session, "--approve", "never"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    mode(0o755);
    assert_eq!(actor.stage.read("f"), "f\nagent\n", "the control");
    assert_eq!(
        actor.stage.read("big/tracked"),
        "one\nagent\n",
        "what git tracks is not ignored, whatever the rules"
    );
    assert!(project.join("big/user").exists() && !project.join("big/out").exists());
    assert!(!project.join("own").exists() && !project.join("new").exists());
    assert_eq!((actor.stage.read("d/x"), actor.stage.read("e/x")), ("x\n".into(), "x\n".into()));
    assert_eq!(fs::metadata(project.join("d")).unwrap().permissions().mode() & 0o777, 0o755);
}
