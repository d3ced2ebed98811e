//! `bailey doctor`: says what stands, and never that something stands which does not.

use super::actor::{Actor, Who, is_root};
use crate::stage::{Ran, Stage};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _};

fn finding(ran: &Ran, check: &str) -> Value {
    let found = ran.lines().into_iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("no `{check}`: {ran:?}"))
}

attack!(the_doctor_tries_the_walls_and_finds_each_that_is_gone);
fn the_doctor_tries_the_walls_and_finds_each_that_is_gone(who: Who) {
    let actor = Actor::new(who, &[]);
    let ran = actor.bailey(&["--json", "doctor"]);
    assert_eq!(ran.code, Some(0), "the control: all of it stands: {ran:?}");
    for check in ["kernel", "own process", "home", "rules", "walls", "system calls", "layer"] {
        assert_eq!(finding(&ran, check)["grade"], "ok", "{check}: {ran:?}");
    }
    for (wall, name) in [("landlock", "landlock"), ("seccomp", "seccomp"), ("net_namespace", "net namespace")]
    {
        let ran = actor.bailey_without(wall, &["--json", "doctor"]);
        let walls = finding(&ran, "walls");
        assert_eq!((ran.code, &walls["grade"]), (Some(1), &"fail".into()), "{wall}: {ran:?}");
        assert!(walls["says"].as_str().unwrap().contains(name), "{wall}: {walls}");
        assert_eq!(actor.bailey_without(wall, &["sandbox", "doctor"]).code, Some(1), "{wall}");
    }
    let left: Vec<_> =
        fs::read_dir(actor.stage.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_string_lossy().starts_with("doctor")),
        "nothing is left: {left:?}"
    );
}

#[test]
fn the_doctor_names_each_of_its_own_things_that_is_wrong() {
    let stage = Stage::new(&[]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let grade = |check: &str| {
        let ran = stage.ran(&["--json", "doctor"]);
        let found = finding(&ran, check);
        assert!(found["grade"] == "ok" || found["fix"].is_string(), "{found}");
        (found["grade"].as_str().unwrap().to_owned(), ran.code)
    };
    assert_eq!(grade("model keys"), ("warn".into(), Some(0)));
    let ran = stage.ran(&["doctor", "--offline"]);
    assert!(ran.stdout.contains("fix: bailey init") && !ran.stderr.contains("can work"), "{ran:?}");
    fs::write(stage.home().join("config.toml"), "model = \"anthropic/x\"\n").unwrap();
    assert_eq!(grade("model keys").0, "warn", "its key is missing");
    let server = bailey_testkit::ModelServer::always(bailey_testkit::Reply::Error {
        status: 200,
        headers: vec![],
        body: r#"{"object":"list","data":[{"id":"m"}]}"#.into(),
    });
    let usable = format!(
        "model = \"here/m\"\n[providers.here]\nwire = \"openai\"\nbase_url = \"{}\"\n",
        server.base_url()
    );
    fs::write(stage.home().join("config.toml"), usable).unwrap();
    assert_eq!(grade("configuration"), ("ok".into(), Some(0)), "the control");
    assert_eq!(grade("model keys"), ("ok".into(), Some(0)));
    fs::write(stage.home().join("config.toml"), "modle = 1\n").unwrap();
    assert_eq!(grade("configuration"), ("fail".into(), Some(1)));
    fs::write(stage.home().join("config.toml"), "").unwrap();
    fs::write(stage.home().join("policy/bad.toml"), "[[rule]]\nname = 1\n").unwrap();
    assert_eq!(grade("rules"), ("fail".into(), Some(1)));
    fs::remove_file(stage.home().join("policy/bad.toml")).unwrap();
    // With its log still there, SQLite would mend it from that.
    for log in ["journal.db-wal", "journal.db-shm"] {
        fs::remove_file(stage.home().join(log)).ok();
    }
    fs::write(stage.home().join("journal.db"), "this is no database, however long it may be\n".repeat(40))
        .unwrap();
    assert_eq!(grade("journal"), ("fail".into(), Some(1)));
    fs::remove_file(stage.home().join("journal.db")).unwrap();
    fs::set_permissions(stage.home().join(".env"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(grade("model keys"), ("fail".into(), Some(1)));
}

/// The home of somebody else, and one that cannot be written: said with the way out, and nothing is changed
/// there.
#[test]
fn a_home_of_another_user_or_a_read_only_one_is_told() {
    if !is_root() {
        println!("SKIPPED: only root can give a directory away");
        return;
    }
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    std::os::unix::fs::chown(stage.home(), Some(54_321), Some(54_321)).unwrap();
    for arguments in [&["doctor"][..], &["sessions", "list"], &["run", "x"]] {
        let ran = stage.ran(arguments);
        let all = ran.stdout + &ran.stderr;
        assert!(
            ran.code == Some(1) && all.contains("belongs to user 54321") && all.contains("--home DIR"),
            "{all}"
        );
    }
    let actor = Actor::new(Who::User, &[]);
    fs::create_dir_all(actor.stage.home().join("sessions")).unwrap();
    actor.own();
    assert_eq!(actor.bailey(&["sessions", "list"]).code, Some(0), "the control");
    let home = actor.stage.home().display().to_string();
    let script =
        format!("mount --bind '{home}' '{home}' && mount -o remount,ro,bind '{home}' && exec \"$@\"");
    let ran = |arguments: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
        let bailey = actor.command(arguments);
        command
            .arg(bailey.get_program())
            .args(bailey.get_args())
            .env_clear()
            .current_dir(actor.stage.project());
        for (name, value) in bailey.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        Ran::of(command.output().unwrap())
    };
    assert_eq!(ran(&["trust", "show", "--all"]).code, Some(0), "what writes nothing still works");
    let ran = ran(&["run", "--model", "ollama/x", "x"]);
    assert!(ran.stderr.contains("read-only") && ran.stderr.contains("writable"), "{ran:?}");
    assert_eq!(ran.code, Some(5), "{ran:?}");
}
