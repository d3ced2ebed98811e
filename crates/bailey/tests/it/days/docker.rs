//! The day inside a container: with default options refused, with the line that the refusal names the walls
//! hold.

use crate::{
    attacks::actor::controls,
    engine::{Engine, USER},
    stage::{Ran, Stage},
};
use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
};

/// What a test shows a container of this machine, read-only.
fn shown() -> String {
    let bailey = Path::new(env!("CARGO_BIN_EXE_bailey"));
    format!(
        "--network none -v /usr:/usr:ro -v /etc/alternatives:/etc/alternatives:ro -v '{0}:{0}:ro'",
        bailey.display()
    )
}

/// The line that a refusal names, over the test's image and with this command.
fn line(refusal: &str, mounts: &str, command: &str) -> String {
    let begin = refusal.find("mkdir -p").unwrap_or_else(|| panic!("no line in {refusal}"));
    let (line, _) = refusal[begin..].split_once(" bailey run …").unwrap();
    let line = line.replace(" -it ", " ").replace(" IMAGE", &format!(" {mounts} walls"));
    format!("{line} {command}")
}

#[test]
fn a_container_is_refused_by_default_and_the_line_that_is_named_lets_the_walls_stand() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let folder = fs::canonicalize(stage.folder()).unwrap();
    let Some(engine) = Engine::of(&stage) else { return };
    let (project, user) = (stage.project(), folder.join("user"));
    fs::create_dir(&user).unwrap();
    let bailey = env!("CARGO_BIN_EXE_bailey");
    let mounts = shown();
    let write = format!("{bailey} sandbox run --keep -- sh -c 'echo two > a.txt && cat a.txt'");
    for (uid, capabilities) in [(USER, ""), (0, " --cap-add SYS_ADMIN --cap-add SYS_PTRACE")] {
        for path in [&project, &project.join("a.txt"), &user] {
            chown(path, Some(uid), Some(uid)).unwrap();
        }
        let sh = |script: &str| {
            let ids = format!("--reuid={uid} --regid={uid}");
            let script = format!("exec setpriv {ids} --clear-groups sh -c \"$0\"; {script}");
            let (enter, script) = script.split_once("; ").unwrap();
            let mut command = engine.command("/bin/sh");
            command.args(["-c", enter, script]).env("HOME", &user).current_dir(&project);
            Ran::of(command.output().unwrap())
        };
        let by_default = format!(
            "docker run --rm --user {uid}:{uid} {mounts} -e HOME=/tmp/home -v '{0}:/tmp/home' -v \"$PWD:$PWD\" -w \"$PWD\" walls {write}",
            user.display()
        );
        let refused = sh(&by_default);
        super::tells(&refused, 1, &["a container with default options", "docker run", "seccomp=unconfined"]);
        assert!(!refused.stdout.contains("two"), "nothing ran: {refused:?}");
        assert!(refused.stderr.contains(capabilities), "{refused:?}");
        takes_landlock_alone(&stage, &user, uid == 0, &|| sh(&by_default));
        let named = line(&refused.stderr, &format!("{mounts}{capabilities}"), &write);
        let ran = sh(&named);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "two\n"), "{named}: {ran:?}");
        assert_eq!(stage.read("a.txt"), "one\n", "what it wrote stays in its layer");
        let doctor = sh(&line(
            &refused.stderr,
            &format!("{mounts}{capabilities}"),
            &format!("{bailey} sandbox doctor"),
        ));
        assert_eq!(doctor.code, Some(0), "{doctor:?}");
        fs::remove_dir_all(user.join(".bailey")).unwrap();
    }
    attacks(&engine, &folder);
}

/// With default options, where the owner takes less, the same command works over a copy, and the outcome says
/// behind what.
fn takes_landlock_alone(stage: &Stage, user: &Path, is_root: bool, run: &dyn Fn() -> Ran) {
    let config = user.join(".bailey/config.toml");
    fs::write(&config, "[sandbox.tiers]\ninternal = \"landlock\"\n").unwrap();
    let ran = run();
    let expected = if is_root { (Some(1), "") } else { (Some(0), "two\n") };
    assert_eq!((ran.code, ran.stdout.as_str()), expected, "{ran:?}");
    assert!(ran.stderr.contains("there can be no namespaces here"), "{ran:?}");
    assert_eq!(ran.stderr.contains("is not for root"), is_root, "{ran:?}");
    assert_eq!(stage.read("a.txt"), "one\n", "what it wrote stays in its copy");
    fs::remove_file(config).unwrap();
}

/// The attacks on the walls, by the tests' own program, as an ordinary user in a container that the line's
/// options made.
fn attacks(engine: &Engine, folder: &Path) {
    let scratch = folder.join("scratch");
    fs::create_dir(&scratch).unwrap();
    fs::set_permissions(&scratch, fs::Permissions::from_mode(0o777)).unwrap();
    let controls = controls().display().to_string();
    let tests = env::current_exe().unwrap().display().to_string();
    let target = Path::new(env!("CARGO_BIN_EXE_bailey")).parent().unwrap().display().to_string();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().display().to_string();
    let read_only = |path: &str| ["-v".to_owned(), format!("{path}:{path}:ro")];
    let mut arguments: Vec<String> =
        ["run", "--rm", "--network", "none", "-e", "HOME=/tmp", "-v"].map(str::to_owned).into();
    arguments.push(format!("{}:/tmp", scratch.display()));
    for path in ["/usr", "/etc/alternatives", &target, &source] {
        arguments.extend(read_only(path));
    }
    // The controls are built already, and there is no compiler to look again.
    arguments.extend(["-v".to_owned(), format!("/usr/bin/true:{}:ro", env!("CARGO"))]);
    arguments.extend(["-w".into(), source.clone(), "--user".into(), format!("{USER}:{USER}")]);
    for option in ["seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"] {
        arguments.extend(["--security-opt".into(), option.to_owned()]);
    }
    // One after the other: some count the user's processes.
    arguments.extend(["walls".into(), tests, "as_a_user".into(), "--test-threads=1".into()]);
    assert!(Path::new(&controls).exists());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = engine.docker(&arguments);
    println!("{}", ran.stdout);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let held = ran.stdout.lines().filter(|line| line.ends_with("as_a_user ... ok")).count();
    assert!(held >= 20, "only {held} attacks were tried: {ran:?}");
}
