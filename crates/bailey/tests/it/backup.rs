//! Copies of a home, and the way back.

use crate::{
    daemon::Daemon,
    stage::{Ran, Stage},
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

fn task(stage: &Stage, words: &str) -> Ran {
    let _model = stage.model(vec![Reply::text("done")]);
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", words]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn backup(stage: &Stage, options: &[&str]) -> PathBuf {
    let ran = stage.ran(&[&["--json", "backup"], options].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    PathBuf::from(ran.lines()[0]["copy"].as_str().unwrap())
}

fn titles(stage: &Stage) -> Vec<String> {
    let listed = stage.ran(&["--json", "sessions", "list"]).lines();
    listed.iter().map(|it| it["title"].as_str().unwrap().to_owned()).collect()
}

fn befores(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.folder()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.display().to_string().contains("home.before-")).collect()
}

/// That nothing of an attempt is left beside the home.
fn nothing_left(stage: &Stage) {
    let names =
        fs::read_dir(stage.folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> =
        names.filter(|name| name.contains("restoring") || name.contains(".new-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_copy_is_checked_by_anybody_and_brings_a_home_back() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/mine.toml"), "").unwrap();
    fs::write(stage.home().join(".env"), "SOME_KEY=canary-of-the-key\n").unwrap();
    fs::set_permissions(stage.home().join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    // While the daemon runs.
    let daemon = Daemon::start(&stage);
    let copy = backup(&stage, &[]);
    drop(daemon);
    let sums = Command::new("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(&copy)
        .output()
        .unwrap();
    assert!(sums.status.success(), "{}", String::from_utf8_lossy(&sums.stdout));
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o700);
    for left in [".env", "journal.key", "daemon", "sessions", "backups"] {
        assert!(!copy.join(left).exists(), "{left}");
    }
    assert!(copy.join("policy/mine.toml").exists());

    task(&stage, "of the evening");
    fs::write(stage.home().join("policy/mine.toml"), "broken = [").unwrap();
    assert_eq!(titles(&stage), ["of the evening", "of the morning"]);
    let ran = stage.ran(&["restore", copy.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(titles(&stage), ["of the morning"]);
    assert_eq!(fs::read_to_string(stage.home().join("policy/mine.toml")).unwrap(), "");
    // Keys and the other copies go on; that something is missing, the journal says.
    assert!(fs::read_to_string(stage.home().join(".env")).unwrap().contains("canary-of-the-key"));
    assert!(stage.home().join("backups").join(copy.file_name().unwrap()).exists());
    let trail = stage.trail();
    assert_eq!(trail.iter().filter(|it| it["type"] == "restored").count(), 1);
    let verified = stage.ran(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    task(&stage, "after that");
    assert_eq!(titles(&stage), ["after that", "of the morning"]);
    // What was there is beside it, whole: the copy of an evening too late.
    let [before] = &befores(&stage)[..] else { panic!("{:?}", befores(&stage)) };
    let old = stage.ran(&["--home", before.to_str().unwrap(), "--json", "sessions", "list"]);
    assert!(old.code != Some(0) || old.lines().len() == 2, "{old:?}");
    nothing_left(&stage);
}

#[test]
fn a_home_keeps_five_copies_and_a_copy_replaces_nothing() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let backups = stage.home().join("backups");
    for number in 0..6 {
        let copy = backup(&stage, &[]);
        // As if it were of another day.
        fs::rename(&copy, backups.join(format!("2020010{number}T000000Z"))).unwrap();
    }
    backup(&stage, &[]);
    let mut names: Vec<_> =
        fs::read_dir(&backups).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 5);
    assert_eq!(names[0], "20200102T000000Z");
    let to = stage.folder().join("elsewhere");
    let keyed = backup(&stage, &["--with-keys", to.to_str().unwrap()]);
    assert_eq!(keyed, to);
    let again = stage.ran(&["backup", to.to_str().unwrap()]);
    assert!(again.code == Some(1) && again.stderr.contains("replaces nothing"), "{again:?}");
    let inside = stage.ran(&["backup", stage.home().join("mine").to_str().unwrap()]);
    assert!(inside.code == Some(1) && inside.stderr.contains("lies in the home"), "{inside:?}");
    nothing_left(&stage);
}

#[test]
fn what_is_damaged_or_hostile_changes_nothing() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let whole = stage.folder().join("copy");
    backup(&stage, &[whole.to_str().unwrap()]);
    let outside = stage.folder().join("outside");
    fs::write(&outside, "canary\n").unwrap();
    let state = || (stage.trail().len(), fs::read(stage.home().join("config.toml")).unwrap());
    let before = state();
    let list = |copy: &Path, change: &dyn Fn(String) -> String| {
        let text = fs::read_to_string(copy.join("SHA256SUMS")).unwrap();
        fs::write(copy.join("SHA256SUMS"), change(text)).unwrap();
    };
    type Damage<'a> = (&'a str, &'a str, Box<dyn Fn(&Path) + 'a>);
    let damages: Vec<Damage<'_>> = vec![
        (
            "another byte",
            "not what the list says",
            Box::new(|copy| fs::write(copy.join("config.toml"), "model = \"x/y\"\n").unwrap()),
        ),
        ("a file gone", "cannot copy", Box::new(|copy| fs::remove_file(copy.join("config.toml")).unwrap())),
        ("no list", "no copy of a home", Box::new(|copy| fs::remove_file(copy.join("SHA256SUMS")).unwrap())),
        (
            "a link in a file's place",
            "cannot copy",
            Box::new(|copy| {
                fs::remove_file(copy.join("config.toml")).unwrap();
                symlink(&outside, copy.join("config.toml")).unwrap();
            }),
        ),
        (
            "a path that leads out",
            "names no file of the copy",
            Box::new(|copy| list(copy, &|text| text.replace("  config.toml", "  ../config.toml"))),
        ),
        (
            "a pipe",
            "it is no file",
            Box::new(|copy| {
                fs::remove_file(copy.join("config.toml")).unwrap();
                assert!(Command::new("mkfifo").arg(copy.join("config.toml")).status().unwrap().success());
            }),
        ),
        (
            "no journal",
            "has no journal",
            Box::new(|copy| {
                fs::remove_file(copy.join("journal.db")).unwrap();
                list(copy, &|text| {
                    text.lines()
                        .filter(|line| !line.contains("journal.db"))
                        .map(|line| format!("{line}\n"))
                        .collect()
                });
            }),
        ),
        (
            "an entry that was changed",
            "",
            Box::new(|copy| {
                let script = "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute(\"UPDATE entry SET body = CAST(body || ' ' AS BLOB) WHERE seq = 3\")\nd.commit()\n";
                assert!(
                    Command::new("python3")
                        .args(["-c", script])
                        .arg(copy.join("journal.db"))
                        .status()
                        .unwrap()
                        .success()
                );
                let sum = Command::new("sha256sum").arg(copy.join("journal.db")).output().unwrap();
                let sum = String::from_utf8(sum.stdout).unwrap()[..64].to_owned();
                list(copy, &|text| {
                    text.lines()
                        .map(|line| {
                            if line.ends_with("  journal.db") {
                                format!("{sum}  journal.db\n")
                            } else {
                                format!("{line}\n")
                            }
                        })
                        .collect()
                });
            }),
        ),
        (
            "a torn journal",
            "not what the list says",
            Box::new(|copy| {
                let mut file = fs::OpenOptions::new().write(true).open(copy.join("journal.db")).unwrap();
                file.seek(SeekFrom::Start(8192)).unwrap();
                file.write_all(&[0; 4096]).unwrap();
            }),
        ),
    ];
    for (what, why, damage) in damages {
        let copy = stage.folder().join("damaged");
        assert!(Command::new("cp").arg("-a").arg(&whole).arg(&copy).status().unwrap().success());
        damage(&copy);
        let ran = stage.ran(&["restore", copy.to_str().unwrap()]);
        assert!(
            ran.code != Some(0) && ran.stderr.contains(why) && ran.stderr.contains("nothing was changed"),
            "{what}: {ran:?}"
        );
        assert_eq!(state(), before, "{what}");
        fs::remove_dir_all(&copy).unwrap();
        nothing_left(&stage);
    }
    // The control: the whole one is taken.
    assert_eq!(stage.ran(&["restore", whole.to_str().unwrap()]).code, Some(0));
}

#[test]
fn the_daemon_makes_a_copy_each_day() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{own}\n[backup]\ndaily = true\n")).unwrap();
    let backups = stage.home().join("backups");
    let copies = || {
        let entries = fs::read_dir(&backups).into_iter().flatten().flatten();
        // One that is just being made has a name that begins with a dot.
        let whole = entries.filter(|it| !it.file_name().to_string_lossy().starts_with('.'));
        whole.map(|it| it.path()).collect::<Vec<_>>()
    };
    let wait = |count: usize| {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while copies().iter().filter(|copy| copy.join("SHA256SUMS").exists()).count() < count {
            assert!(
                std::time::Instant::now() < deadline,
                "no copy came: {:?} {}",
                copies(),
                stage.ran(&["logs"]).stdout
            );
            thread::sleep(Duration::from_millis(50));
        }
    };
    let daemon = Daemon::start(&stage);
    wait(1);
    drop(daemon);
    let copy = copies().remove(0);
    // One of today is enough; one of yesterday is not.
    drop(Daemon::start(&stage));
    assert_eq!(copies().len(), 1);
    let yesterday = backups.join("20200101T000000Z");
    fs::rename(&copy, &yesterday).unwrap();
    let daemon = Daemon::start(&stage);
    wait(2);
    drop(daemon);
    task(&stage, "of the evening");
    assert_eq!(stage.ran(&["restore", yesterday.to_str().unwrap()]).code, Some(0));
    assert_eq!(titles(&stage), ["of the morning"]);
}

#[test]
fn a_home_in_use_is_not_replaced() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let copy = backup(&stage, &[]);
    let restore = || stage.ran(&["restore", copy.to_str().unwrap()]);
    let daemon = Daemon::start(&stage);
    let ran = restore();
    assert!(ran.code == Some(1) && ran.stderr.contains("bailey stop"), "{ran:?}");
    drop(daemon);
    let gate = bailey_testkit::Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), bailey_testkit::Message::text("done"))]);
    let mut run = stage
        .bailey(&["run", "--model", "test/model", "--approve", "never", "wait"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    model.wait_for(1);
    let ran = restore();
    assert!(ran.code == Some(1) && ran.stderr.contains("in use"), "{ran:?}");
    gate.open();
    assert!(run.wait().unwrap().success());
    assert_eq!(restore().code, Some(0));
}

#[test]
fn a_restore_killed_at_any_moment_leaves_one_home_or_the_other() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    let copy = stage.folder().join("copy");
    backup(&stage, &[copy.to_str().unwrap()]);
    task(&stage, "of the evening");
    let (old, new) =
        (vec!["of the evening".to_owned(), "of the morning".to_owned()], vec!["of the morning".to_owned()]);
    let mut seen = [0, 0];
    for step in 0..24 {
        let mut child = stage
            .bailey(&["restore", copy.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(step * 4));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = titles(&stage);
        assert!(found == old || found == new, "after {} ms: {found:?}", step * 4);
        assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
        seen[usize::from(found == new)] += 1;
        if found == new {
            // Back to the evening, for the next one.
            let before = befores(&stage)
                .into_iter()
                .chain(restoring(&stage))
                .find(|path| path.join("journal.db").exists() && said_evening(path))
                .unwrap();
            let aside = stage.folder().join(format!("aside-{step}"));
            fs::rename(stage.home(), &aside).unwrap();
            fs::rename(before, stage.home()).unwrap();
            let sessions = aside.join("sessions");
            if !stage.home().join("sessions").exists() && sessions.exists() {
                fs::rename(sessions, stage.home().join("sessions")).unwrap();
            }
        }
    }
    println!("{} kept the one home, {} have the other", seen[0], seen[1]);
    assert!(seen[0] > 0, "none was killed before");
    // And one that nobody kills is done.
    assert_eq!(stage.ran(&["restore", copy.to_str().unwrap()]).code, Some(0));
    assert_eq!(titles(&stage), new);
}

fn restoring(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.folder()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.display().to_string().contains("home.restoring-")).collect()
}

fn said_evening(home: &Path) -> bool {
    let found = Command::new("grep")
        .args(["-qaF", "of the evening"])
        .arg(home.join("journal.db"))
        .arg(home.join("journal.db-wal"))
        .stderr(Stdio::null())
        .status()
        .unwrap();
    found.success()
}

#[test]
fn a_full_disk_leaves_no_half_copy() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    fs::write(stage.home().join("models.toml"), vec![b'#'; 2 << 20]).unwrap();
    let small = stage.folder().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&small).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return println!("SKIPPED: no small file system can be mounted here");
    }
    let ran = stage.ran(&["backup", small.join("copy").to_str().unwrap()]);
    let left = fs::read_dir(&small).unwrap().count();
    assert!(Command::new("umount").arg(&small).status().unwrap().success());
    assert!(ran.code != Some(0) && ran.stderr.contains("there is no copy; the home is as it was"), "{ran:?}");
    assert_eq!(left, 0);
    let value: Value = json!(titles(&stage));
    assert_eq!(value, json!(["once"]));
}
