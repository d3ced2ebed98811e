//! The organisation's rules. Where they lie is no option: the tests put them elsewhere with
//! `bailey-controls`.

use crate::{
    attacks::actor::controls,
    stage::{Ran, Stage},
};
use bailey_testkit::Reply;
use serde_json::json;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const RULES: &str = "[[rule]]\nname = \"no-make\"\nanswer = \"deny\"\nreason = \"ask operations\"\nmatch = { action = \"exec\", \
                     command = \"make\" }\n";

/// A directory of rules; a rule of the same home tries to lift the deny.
fn rules(stage: &Stage) -> PathBuf {
    let dir = stage.folder().join("organisation");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("10.toml"), RULES).unwrap();
    for (path, mode) in
        [(stage.folder().to_path_buf(), 0o755), (dir.clone(), 0o755), (dir.join("10.toml"), 0o644)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let own = "[[rule]]\nname = \"make\"\nanswer = \"allow\"\npriority = 1000\nmatch = { action = [\"exec\", \"model\", \"read\", \
               \"stat\", \"list\", \"search\"] }\n";
    fs::write(stage.home().join("policy/own.toml"), own).unwrap();
    dir
}

fn ran(stage: &Stage, dir: Option<&Path>, arguments: &[&str]) -> Ran {
    let mut command = Command::new(controls());
    command.current_dir(stage.project()).arg("--home").arg(stage.home()).args(arguments).stdin(Stdio::null());
    command.env_remove("BAILEY_HOME").envs(dir.map(|dir| ("BAILEY_CONTROL_ORGANISATION", dir)));
    Ran::of(command.output().unwrap())
}

#[test]
fn an_organisations_deny_holds_whatever_the_home_says() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can own rules of an organisation");
        return;
    }
    let stage = Stage::new(&[]);
    let dir = rules(&stage);
    let verdict = |dir| {
        ran(&stage, dir, &["--json", "policy", "explain", "exec", "--", "make", "x"]).lines().pop().unwrap()
    };
    let with = verdict(Some(dir.as_path()));
    assert_eq!(
        (&with["verdict"], &with["reasons"][0]),
        (&"deny".into(), &"ask operations (organisation rule `no-make`: deny)".into())
    );
    assert_eq!(verdict(None)["verdict"], "allow", "control");

    // In a session, too, whose process is bound.
    let script =
        || vec![Reply::calls([("a", "command_run", json!({ "argv": ["make", "x"] }))]), Reply::text("done")];
    let _model = stage.model(script());
    let denied = ran(&stage, Some(&dir), &["--json", "run", "--model", "test/scripted", "make it"]);
    assert!(denied.stdout.contains("ask operations (organisation rule"), "{denied:?}");
    let _model = stage.model(script());
    let control = ran(&stage, None, &["--json", "run", "--model", "test/scripted", "make it"]);
    assert!(
        !control.stdout.contains("ask operations") && control.stdout.contains("\"allowed\""),
        "{control:?}"
    );
}

#[test]
fn rules_that_somebody_else_could_change_are_a_refusal_to_start() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can own rules of an organisation");
        return;
    }
    let stage = Stage::new(&[]);
    let dir = rules(&stage);
    let check = || ran(&stage, Some(&dir), &["policy", "check"]);
    assert_eq!(check().code, Some(0), "control: {:?}", check());
    fs::set_permissions(dir.join("10.toml"), fs::Permissions::from_mode(0o666)).unwrap();
    let refused = check();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("could be changed by others") && refused.stderr.contains("chmod go-w"),
        "{refused:?}"
    );
}
