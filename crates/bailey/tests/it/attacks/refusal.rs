//! A26: where a wall is missing, nothing runs, and the refusal says which and what to do.

use super::actor::{Actor, Who};
use serde_json::json;

/// The minimum by default, by the names in the journal and on screens.
const MINIMUM: [(&str, &str); 9] = [
    ("user_namespace", "user namespace"),
    ("mount_namespace", "mount namespace"),
    ("pid_namespace", "pid namespace"),
    ("net_namespace", "net namespace"),
    ("ipc_namespace", "ipc namespace"),
    ("seccomp", "seccomp"),
    ("no_new_privileges", "no_new_privs"),
    ("no_capabilities", "no capabilities"),
    ("landlock", "landlock"),
];

attack!(a26_each_wall_taken_away_is_a_refusal);
fn a26_each_wall_taken_away_is_a_refusal(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    for (wall, name) in MINIMUM {
        let ran = actor.without(wall, false, &["sh", "-c", "echo ran; echo ran > ran.txt"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{wall}: {ran:?}");
        // An ordinary user without a user namespace does not come so far as to count walls.
        let early = (who, wall) == (Who::User, "user_namespace");
        assert!(ran.stderr.contains(name) || early, "{wall}: {ran:?}");
        assert!(!actor.stage.project().join("ran.txt").exists());
    }
    // The control: the same program with nothing taken away runs it.
    let ran = actor.without("", false, &["echo", "ran"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ran\n"), "{ran:?}");
}

attack!(a26_without_user_namespaces_nothing_runs);
fn a26_without_user_namespaces_nothing_runs(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    // A user namespace in which there can be no further one; the setting is that namespace's own.
    let none = "echo 0 > /proc/sys/user/max_user_namespaces || exit 98; exec \"$@\"";
    let program = actor.stage.folder().join("bin/bailey").display().to_string();
    let home = actor.stage.home().display().to_string();
    let nested = |command: &[&str]| {
        let map = if who == Who::Root { "--map-root-user" } else { "--map-current-user" };
        let enter = ["unshare", "--user", "--mount", map, "--keep-caps", "sh", "-c", none, "none"];
        actor.outside(&[&enter, command].concat())
    };
    let ran = nested(&[
        &program,
        "--home",
        &home,
        "sandbox",
        "run",
        "--",
        "sh",
        "-c",
        "echo ran > ran.txt; echo ran",
    ]);
    if ran.code == Some(98) {
        super::actor::could_not_be_tried("user namespaces disabled", &ran.stderr);
        return;
    }
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("user namespaces are disabled"), "{ran:?}");
    assert!(ran.stderr.contains("max_user_namespaces"), "it says how to get them: {ran:?}");
    assert!(!actor.stage.project().join("ran.txt").exists());
    // The controls: there a plain command runs, and without the setting Bailey's does.
    assert_eq!(nested(&["echo", "ran"]).stdout, "ran\n");
    assert_eq!(actor.inside(&["echo", "ran"]).stdout, "ran\n");
}

attack!(every_result_says_what_was_enforced);
fn every_result_says_what_was_enforced(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let outcome = actor.outcome(&["true"]);
    let enforced = &outcome["enforced"];
    let walls: Vec<&str> =
        enforced["walls"].as_array().unwrap().iter().filter_map(|wall| wall.as_str()).collect();
    for (wall, _) in MINIMUM {
        assert!(walls.contains(&wall), "{wall}: {outcome}");
    }
    assert!(enforced["landlock_abi"].as_u64() >= Some(1), "{outcome}");
    for limit in ["memory_limit", "disk_limit"] {
        let watched = enforced["watched"].as_array().unwrap().contains(&json!(limit));
        assert_ne!(watched, walls.contains(&limit), "{limit} is held or watched: {outcome}");
        println!("{limit}: {}", if watched { "watched" } else { "enforced" });
    }
    // What is absent beyond the minimum has its reason.
    for wall in ["uts_namespace", "cgroup_namespace"] {
        assert!(walls.contains(&wall) || enforced["absent"].to_string().contains("namespace"), "{outcome}");
    }
}

#[test]
fn the_released_program_ignores_what_the_controls_obey() {
    let actor = Actor::new(Who::User, &[("a.txt", "a\n")]);
    let look = ["sh", "-c", "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | tr -d '[:space:]'"];
    let arguments = [&["sandbox", "run", "--"], look.as_slice()].concat();
    let mut command = actor.command(&arguments);
    command.env("BAILEY_CONTROL_WITHOUT", "seccomp,landlock").env("BAILEY_CONTROL_ACCEPT", "1");
    let ran = crate::stage::Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "NoNewPrivs:1Seccomp:2"), "{ran:?}");
    // The control: the program for tests obeys them.
    let ran = actor.without("seccomp,landlock", true, &look);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "NoNewPrivs:1Seccomp:0"), "{ran:?}");
}
