//! A26: where a wall is missing, nothing runs, and the refusal says which and what to do.

use super::actor::{Actor, Who};
use crate::stage::Ran;
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

attack!(a26_a_tier_gets_the_isolation_that_the_owner_wants_of_it_or_nothing);
fn a26_a_tier_gets_the_isolation_that_the_owner_wants_of_it_or_nothing(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let tier = || {
        let ran = actor.bailey(&["--json", "sandbox", "doctor"]);
        let found = ran.lines().into_iter().find(|finding| finding["check"] == "tier internal");
        (ran.code, found.unwrap_or_default()["grade"].as_str().unwrap_or_default().to_owned())
    };
    for level in ["microvm", "gvisor"] {
        actor.configure(&format!("[sandbox.tiers]\ninternal = \"{level}\"\n"));
        let ran = actor.inside(&["sh", "-c", "echo ran > ran.txt; echo ran"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.contains(level) && ran.stderr.contains("internal = \"native\""), "{ran:?}");
        assert_eq!(tier(), (Some(1), "fail".into()));
        let doctor = actor.bailey(&["--json", "sandbox", "doctor"]).lines();
        let of = |check: &str| doctor.iter().find(|finding| finding["check"] == check).unwrap();
        assert!(
            of("tier internal")["says"].as_str().unwrap().contains("only `native` is here"),
            "{doctor:?}"
        );
        assert_eq!(of("walls")["grade"], "ok", "what there is, is tried: {doctor:?}");
    }
    // Below its own, no level can be named that is none.
    actor.configure("[sandbox.tiers]\ninternal = \"none\"\n");
    assert_eq!(actor.inside(&["echo", "ran"]).code, Some(2));
    // The control: what there is, is enough.
    for level in ["native", "container", "landlock"] {
        actor.configure(&format!("[sandbox.tiers]\ninternal = \"{level}\"\n"));
        let ran = actor.inside(&["echo", "ran"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ran\n"), "{ran:?}");
        assert_eq!(tier(), (Some(0), "ok".into()));
    }
    // A project's own word is none about this, also where somebody trusted it.
    let lower = "[sandbox.tiers]\ninternal = \"landlock\"\n";
    actor.write(".bailey/config.toml", lower);
    actor.trust(lower);
    let ran = actor.inside(&["echo", "ran"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("a project may not set"), "{ran:?}");
}

/// Bailey as in a container that forbids namespaces.
fn without_namespaces(actor: &Actor, arguments: &[&str]) -> Ran {
    let script = actor.stage.project().join("older.py").display().to_string();
    let program = actor.stage.folder().join("bin/bailey").display().to_string();
    let home = actor.stage.home().display().to_string();
    let lacking = ["/usr/bin/python3", &script, "clone-namespaces=EPERM", "clone3=ENOSYS", "--"];
    actor.outside(&[&lacking[..], &[&program, "--home", &home], arguments].concat())
}

/// A session over a copy that did this, kept; its name, and what was said of it. None where that cannot be
/// tried here.
fn kept_over_a_copy(actor: &Actor, script: &str) -> Option<(String, Ran)> {
    let ran = without_namespaces(actor, &["sandbox", "run", "--keep", "--", "sh", "-c", script]);
    if ran.code == Some(98) {
        super::actor::could_not_be_tried("in a container that forbids namespaces", &ran.stderr);
        return None;
    }
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = without_namespaces(actor, &["--json", "sessions", "list", "--all"]).lines();
    Some((listed[0]["id"].as_str().unwrap().to_owned(), ran))
}

/// A user whose configuration takes Landlock alone.
fn of_landlock() -> Actor {
    let actor = Actor::new(Who::User, &[("a.txt", "a\n"), (".env", "TOKEN=canary\n"), ("older.py", OLDER)]);
    actor.configure("[sandbox.tiers]\ninternal = \"landlock\"\n");
    actor
}

/// What rules and the configuration name by a path from `/` in the project is meant in the copy, too.
#[test]
fn what_is_named_from_the_root_is_bound_in_a_copy() {
    let actor = of_landlock();
    let named = actor.stage.project().join("notify.sh").display().to_string();
    let notify = format!("[[approvals.escalation]]\nafter_seconds = 60\nnotify = [\"{named}\"]\n");
    actor.configure(&format!("[sandbox.tiers]\ninternal = \"landlock\"\n{notify}"));
    let script = "echo evil > notify.sh; echo mine > mine.txt";
    let Some((session, _)) = kept_over_a_copy(&actor, script) else { return };
    let applied = without_namespaces(&actor, &["sessions", "apply", &session, "--approve", "never"]);
    assert!(format!("{}{}", applied.stdout, applied.stderr).contains("rule `binaries`"), "{applied:?}");
    assert!(!actor.stage.project().join("notify.sh").exists(), "{applied:?}");
    assert_eq!(actor.stage.read("mine.txt"), "mine\n", "the control: {applied:?}");
}

/// Whoever commits all in a copy commits that what was not shown is gone: such a commit moves no branch.
#[test]
fn a_commit_that_deletes_what_was_not_shown_moves_no_branch() {
    let actor = of_landlock();
    let project = actor.stage.project().display().to_string();
    let git = "git -c user.name=a -c user.email=a@example.org";
    let of_owner = |script: &str| {
        let ran = actor.outside(&["sh", "-c", &format!("cd {project} && {script}")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    for (commits, moves) in [("commit -qam second", false), ("commit -qm second a.txt", true)] {
        let script = format!("echo two >> a.txt; {git} {commits}");
        let Some((session, _)) = kept_over_a_copy(&actor, &script) else { return };
        let diff = without_namespaces(&actor, &["sessions", "diff", &session]);
        assert_eq!(diff.stdout.contains("changes `.env`, which looks secret"), !moves, "{diff:?}");
        let applied = without_namespaces(&actor, &["sessions", "apply", &session, "--approve", "never"]);
        let log = of_owner("git log -1 --format=%s && git ls-tree --name-only HEAD .env");
        assert_eq!(log, if moves { "second\n.env\n" } else { "start\n.env\n" }, "{applied:?}");
        of_owner("git checkout -q .");
    }
}

/// A copy that is gone is no session that deleted everything.
#[test]
fn a_session_whose_copy_is_gone_is_not_opened() {
    let actor = of_landlock();
    let Some((session, kept)) = kept_over_a_copy(&actor, "echo b > b.txt") else { return };
    let diff = without_namespaces(&actor, &["sessions", "diff", &session]);
    assert!(diff.code == Some(0) && diff.stdout.contains("b/b.txt"), "the control: {diff:?}");
    let said = kept.stderr.replace(['\n', ' '], "");
    let copy = said.split("`in`").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    std::fs::remove_dir_all(copy).unwrap();
    for what in ["diff", "apply"] {
        let refused = without_namespaces(&actor, &["sessions", what, &session]);
        assert!(refused.code == Some(1) && refused.stderr.contains("is gone"), "{refused:?}");
    }
    assert_eq!(without_namespaces(&actor, &["sessions", "rm", &session, "--yes"]).code, Some(0));
    assert_eq!(actor.stage.read("a.txt"), "a\n");
}

attack!(a26_without_namespaces_landlock_stands_alone_where_the_owner_takes_that);
fn a26_without_namespaces_landlock_stands_alone_where_the_owner_takes_that(who: Who) {
    let actor = Actor::new(
        who,
        &[("a.txt", "a\n"), (".env", "TOKEN=canary\n"), ("c.txt", "c\n"), ("older.py", OLDER)],
    );
    let nested = |arguments: &[&str]| without_namespaces(&actor, arguments);
    let keep = |script: &str| nested(&["sandbox", "run", "--keep", "--", "sh", "-c", script]);
    // Without the owner's word nothing runs.
    let ran = keep("echo ran");
    if ran.code == Some(98) {
        return super::actor::could_not_be_tried("in a container that forbids namespaces", &ran.stderr);
    }
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    let named = ran.stderr.contains("internal = \"landlock\"");
    assert_eq!(named, who == Who::User, "what can stand in is named where it can: {ran:?}");
    actor.configure("[sandbox.tiers]\ninternal = \"landlock\"\n");
    if who == Who::Root {
        let ran = keep("echo ran");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        return assert!(ran.stderr.contains("is not for root"), "{ran:?}");
    }
    let secret = actor.user().join(".ssh/id_ed25519").display().to_string();
    let tries = format!(
        "echo changed > a.txt; echo new > b.txt; rm c.txt; chmod 4755 older.py 2>/dev/null && echo setuid; chmod 755 older.py || echo no mode; cat {secret} .env 2>/dev/null; \
         (exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null; cat {}/a.txt 2>/dev/null; pwd",
        actor.stage.project().display()
    );
    let ran = keep(&tries);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 1, "nothing but where it is: {ran:?}");
    assert!(
        ran.stderr.contains("a copy of") && ran.stderr.contains("bailey guide sandbox"),
        "it is said: {ran:?}"
    );
    assert_eq!(actor.stage.read("a.txt"), "a\n", "the project is as it was");
    let doctor = nested(&["--json", "sandbox", "doctor"]);
    let tier = doctor.lines().into_iter().find(|found| found["check"] == "tier internal").unwrap();
    assert!(
        tier["says"].as_str().unwrap().contains("`landlock` is here") && doctor.code == Some(0),
        "{doctor:?}"
    );
    // Where it begins below the project, it begins there in the copy.
    actor.write("sub/s.txt", "s\n");
    let ran = nested(&["sandbox", "run", "-C", "sub", "--", "cat", "s.txt"]);
    assert_eq!(ran.stdout, "s\n", "{ran:?}");
    assert!(ran.stderr.contains("a copy of"), "it is said, too, of what is not kept: {ran:?}");
    // Its changes are compared, applied and taken back like any other's.
    let listed = nested(&["--json", "sessions", "list", "--all"]).lines();
    let project = actor.stage.project().display().to_string();
    let of_project = listed.iter().find(|session| session["workspace"] == *project).unwrap();
    let session = of_project["id"].as_str().unwrap().to_owned();
    assert!(nested(&["sessions", "fork", &session]).stderr.contains("works on a copy"));
    assert!(nested(&["pool", "add", "--", "true"]).stderr.contains("no workspace can be prepared"));
    let diff = nested(&["sessions", "diff", &session]);
    for part in ["+changed", "b/b.txt", "a/c.txt"] {
        assert!(diff.stdout.contains(part), "{part}: {diff:?}");
    }
    assert!(!diff.stdout.contains("canary"), "{diff:?}");
    let applied = nested(&["sessions", "apply", &session, "--approve", "never"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!((actor.stage.read("a.txt"), actor.stage.read("b.txt")), ("changed\n".into(), "new\n".into()));
    assert!(!actor.stage.project().join("c.txt").exists());
    let undone = nested(&["sessions", "undo", &session]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(actor.stage.read("a.txt"), "a\n");
    assert!(nested(&["sessions", "diff", &session]).stdout.contains("+changed"), "the session still has it");
    assert_eq!(nested(&["sessions", "discard", &session]).code, Some(0));
    assert!(!nested(&["sessions", "diff", &session]).stdout.contains("+changed"));
    // What the prover says there: nothing is not held, and what Landlock and the list of calls hold was
    // tried.
    let proven = nested(&["--json", "prove"]);
    let lines = proven.lines();
    let verdict = |id: &str| lines.iter().find(|line| line["line"] == id).unwrap()["verdict"].clone();
    assert!(lines.iter().all(|line| line["verdict"] != "not_held"), "{proven:?}");
    for id in [
        "home.key",
        "home.file",
        "outside.read",
        "outside.write",
        "project.write",
        "network.socket",
        "walls.tier",
    ] {
        assert_eq!(verdict(id), "held", "{id}: {proven:?}");
    }
    // The control: where there are namespaces, the same configuration gets them.
    let ran = actor.outcome(&["true"]);
    assert_eq!(ran["enforced"]["backend"], "native", "{ran}");
}

const OLDER: &str = include_str!("../probes/older.py");

/// Kernels and containers that lack something, as a filter of system calls plays them; and what the refusal
/// names.
const OLDER_KERNELS: [(&str, &[&str], &[&str]); 9] = [
    ("without Landlock (before 5.13, or not built in)", &["landlock_create_ruleset=ENOSYS"], &["landlock"]),
    ("with Landlock not among `lsm=`", &["landlock_create_ruleset=EOPNOTSUPP"], &["landlock"]),
    ("without filters of system calls", &["seccomp=ENOSYS", "prctl-seccomp=EINVAL"], &["seccomp"]),
    ("without openat2 (before 5.6)", &["openat2=ENOSYS"], &["5.12"]),
    (
        "without mounts by descriptor (before 5.2)",
        &["fsopen=ENOSYS", "open_tree=ENOSYS", "move_mount=ENOSYS"],
        &["5.12"],
    ),
    ("without mount_setattr (before 5.12)", &["mount_setattr=ENOSYS"], &["5.12"]),
    ("in a container that forbids namespaces", &["clone-namespaces=EPERM", "clone3=ENOSYS"], &["namespace"]),
    (
        "in a container that forbids mounts",
        &["fsopen=EPERM", "open_tree=EPERM", "move_mount=EPERM"],
        &["permitted"],
    ),
    ("in a container that forbids pivot_root", &["pivot_root=EPERM"], &["pivot_root"]),
];

attack!(a26_on_an_older_kernel_or_in_a_container_nothing_runs);
fn a26_on_an_older_kernel_or_in_a_container_nothing_runs(who: Who) {
    let actor = Actor::new(who, &[("older.py", OLDER)]);
    let script = actor.stage.project().join("older.py").display().to_string();
    let program = actor.stage.folder().join("bin/bailey").display().to_string();
    let home = actor.stage.home().display().to_string();
    let bailey = [
        program.as_str(),
        "--home",
        &home,
        "sandbox",
        "run",
        "--",
        "sh",
        "-c",
        "echo ran > ran.txt; echo ran",
    ];
    let on = |lacking: &[&str], command: &[&str]| {
        actor.outside(&[&["/usr/bin/python3", &script], lacking, &["--"], command].concat())
    };
    for (what, lacking, named) in OLDER_KERNELS {
        let ran = on(lacking, &bailey);
        if ran.code == Some(98) {
            super::actor::could_not_be_tried(what, &ran.stderr);
            continue;
        }
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{what}: {ran:?}");
        assert!(named.iter().all(|name| ran.stderr.contains(name)), "{what}: {ran:?}");
        assert!(!actor.stage.project().join("ran.txt").exists(), "{what}");
        // The control: there a plain command runs.
        assert_eq!(on(lacking, &["echo", "ran"]).stdout, "ran\n", "{what}");
        println!("held: {what}: {}", ran.stderr.trim());
    }
    // The control: under a filter that refuses nothing that is needed, Bailey's command runs.
    let ran = on(&["memfd_create=ENOSYS"], &["echo", "ran"]);
    assert_eq!(ran.stdout, "ran\n", "{ran:?}");
    assert_eq!(on(&[], &bailey).stdout, "ran\n");
}

attack!(a26_without_control_groups_limits_are_watched_and_said_to_be);
fn a26_without_control_groups_limits_are_watched_and_said_to_be(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    // A mount namespace in which no control group can be reached.
    let hide = "mount -t tmpfs none /sys/fs/cgroup || exit 98; exec \"$@\"";
    let program = actor.stage.folder().join("bin/bailey").display().to_string();
    let home = actor.stage.home().display().to_string();
    let run = |enter: &[&str]| {
        let bailey = [program.as_str(), "--home", &home, "--json", "sandbox", "run", "--", "true"];
        actor.outside(&[enter, &bailey].concat())
    };
    let enforced = |ran: &crate::stage::Ran| ran.lines().pop().unwrap_or_default()["enforced"].clone();
    let ran = run(&["unshare", "--mount", "sh", "-c", hide, "hide"]);
    if ran.code != Some(0) {
        return super::actor::could_not_be_tried("control groups hidden", &ran.stderr);
    }
    let found = enforced(&ran);
    for limit in ["memory_limit", "disk_limit"] {
        assert!(found["watched"].as_array().unwrap().contains(&json!(limit)), "{found}");
    }
    assert!(found["absent"].to_string().contains("no control group of its own can be made here"), "{found}");
    // The control: where root can reach them they hold the memory.
    let found = enforced(&run(&[]));
    let held = found["walls"].as_array().unwrap().contains(&json!("memory_limit"));
    match held {
        true => println!("held: control groups hidden: watched, and said so"),
        false => super::actor::could_not_be_tried("control groups hidden", "there are none to hide"),
    }
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
