//! Copies of a home, and the way back.

use crate::{
    daemon::Daemon,
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// A small file system of its own, as long as the test wants it.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// One at this place, which is there; none, which is said, where nothing can be mounted.
    pub(crate) fn at(place: &Path, size: &str) -> Option<Self> {
        let options = format!("size={size},mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(place).status();
        if !mounted.is_ok_and(|status| status.success()) {
            println!("SKIPPED: no small file system can be mounted here");
            return None;
        }
        Some(Self(place.to_path_buf()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

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
    let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
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

/// When something was last made or removed in a folder.
fn changed(folder: &Path) -> (i64, i64) {
    let about = fs::metadata(folder).unwrap();
    (about.mtime(), about.mtime_nsec())
}

/// Puts a file into a copy, and into its list.
fn put_in(copy: &Path, path: &str) {
    let file = copy.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "{}\n").unwrap();
    let sum = Command::new("sha256sum").arg(path).current_dir(copy).output().unwrap();
    let mut list = fs::OpenOptions::new().append(true).open(copy.join("SHA256SUMS")).unwrap();
    list.write_all(&sum.stdout).unwrap();
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
    let ran = stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
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
    let old = stage.ran(&["--home", before.to_str().unwrap(), "--json", "sessions", "list", "--all"]);
    assert!(old.code != Some(0) || old.lines().len() == 2, "{old:?}");
    nothing_left(&stage);
}

/// Control: with `--yes`, and on a terminal with `y`, the same copy replaces the home.
#[test]
fn a_home_that_is_not_empty_is_replaced_only_after_a_yes() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    let copy = backup(&stage, &[]);
    task(&stage, "of the evening");
    let copy = copy.to_str().unwrap();
    let ran = stage.ran(&["restore", copy]);
    assert!(ran.code == Some(1) && ran.stderr.contains("add --yes"), "{ran:?}");
    assert_eq!(titles(&stage), ["of the evening", "of the morning"]);
    if let Some(mut terminal) = Terminal::start(&stage, &["restore", copy]) {
        terminal.wait_for("Replace the home");
        terminal.keys("n\r");
        let (code, screen) = terminal.end();
        assert!(code == 3 && screen.contains("nothing was changed"), "{screen}");
        assert_eq!(titles(&stage).len(), 2);
        let mut terminal = Terminal::start(&stage, &["restore", copy]).unwrap();
        terminal.wait_for("[y/N] ");
        terminal.keys("y\r");
        assert_eq!(terminal.end().0, 0);
        assert_eq!(titles(&stage), ["of the morning"]);
    }
    let ran = stage.ran(&["restore", "--yes", copy]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("the home as it was before is in"), "{ran:?}");
    nothing_left(&stage);
}

/// What was done after the copy was made is named, with the words by which it is found again.
#[test]
fn work_that_is_younger_than_the_copy_is_named_and_can_be_looked_at() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    let copy = backup(&stage, &[]);
    let write = Reply::calls([("c1", "fs_write", serde_json::json!({ "path": "b.txt", "content": "b\n" }))]);
    let _model = stage.model(vec![write, Reply::text("done")]);
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", "of the evening"]);
    assert!(ran.code == Some(0) && !stage.project().join("b.txt").exists(), "{ran:?}");
    let ran = stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stderr.matches("does not have the last changes of session").count(), 1, "{ran:?}");
    let (_, line) = ran.stderr.split_once("in the old home: ").unwrap();
    let line = line.lines().next().unwrap();
    let bailey = Path::new(env!("CARGO_BIN_EXE_bailey")).parent().unwrap().display().to_string();
    let shell = Command::new("sh")
        .args(["-c", &format!("PATH={bailey}:$PATH; {line}")])
        .current_dir(stage.project())
        .output()
        .unwrap();
    assert!(
        shell.status.success() && String::from_utf8_lossy(&shell.stdout).contains("+b"),
        "{line}: {shell:?}"
    );
}

/// A copy that had what opens the sealed store beside it would open itself.
#[test]
fn the_key_file_of_the_sealed_store_is_in_no_copy_but_where_keys_are() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let key = stage.home().join("seal.key");
    fs::write(&key, "a key\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap_or_default();
    fs::write(&config, format!("{own}\n[secrets]\nkey_file = {key:?}\n")).unwrap();
    assert!(!backup(&stage, &[]).join("seal.key").exists());
    let with = stage.folder().join("with");
    assert!(
        backup(&stage, &["--with-keys", with.to_str().unwrap()]).join("seal.key").exists(),
        "the control"
    );
}

/// A copy is from before the stop, and says nothing of it.
#[test]
fn a_copy_lifts_no_stop_and_a_person_is_told_so() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "before");
    let copy = backup(&stage, &[]);
    let restore = || stage.ran(&["--json", "restore", "--yes", copy.to_str().unwrap()]);
    let run = || stage.ran(&["sandbox", "run", "--", "true"]).code;
    // The control.
    let ran = restore();
    assert_eq!((ran.code, &ran.lines()[0]["stopped"]), (Some(0), &json!(null)), "{ran:?}");
    assert_eq!(run(), Some(0));
    assert_eq!(stage.ran(&["estop"]).code, Some(0));
    let ran = restore();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.lines()[0]["stopped"].is_string(), "{ran:?}");
    assert_ne!(run(), Some(0));
    let told = stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
    assert!(told.stderr.contains("this home has been stopped since"), "{told:?}");
    // The key of the new home has signed that: it outlives its journal as any stop does. Without that key is
    // the control.
    for is_signed in [true, false] {
        if !is_signed {
            fs::remove_file(stage.home().join("journal.key")).unwrap();
        }
        for end in ["", "-wal", "-shm"] {
            fs::remove_file(stage.home().join(format!("journal.db{end}"))).ok();
        }
        assert_eq!(run() == Some(0), !is_signed);
    }
}

#[test]
fn a_home_keeps_five_copies_and_a_copy_replaces_nothing() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let backups = stage.home().join("backups");
    for number in 1..=6 {
        let copy = backup(&stage, &[]);
        // As if it were of another day.
        fs::rename(&copy, backups.join(format!("2020010{number}T000000Z"))).unwrap();
    }
    backup(&stage, &[]);
    let mut names: Vec<_> =
        fs::read_dir(&backups).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 5);
    assert_eq!(names[0], "20200103T000000Z");
    let to = stage.folder().join("elsewhere");
    let keyed = backup(&stage, &["--with-keys", to.to_str().unwrap()]);
    assert_eq!(keyed, to);
    let again = stage.ran(&["backup", to.to_str().unwrap()]);
    assert!(again.code == Some(1) && again.stderr.contains("replaces nothing"), "{again:?}");
    let inside = stage.ran(&["backup", stage.home().join("mine").to_str().unwrap()]);
    assert!(inside.code == Some(1) && inside.stderr.contains("lies inside the home"), "{inside:?}");
    nothing_left(&stage);
}

/// Writes into a journal past Bailey, as somebody with an SQLite shell would.
fn tamper(journal: &Path, sql: &str) {
    let script = "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute(sys.argv[2])\nd.commit()\nd.execute('PRAGMA wal_checkpoint(TRUNCATE)')\nd.close()\n";
    let done = Command::new("python3").args(["-c", script]).arg(journal).arg(sql).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_journal_whose_chain_is_broken_pushes_no_good_copy_out() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let (journal, backups) = (stage.home().join("journal.db"), stage.home().join("backups"));
    for number in 1..=5 {
        fs::rename(backup(&stage, &[]), backups.join(format!("2020010{number}T000000Z"))).unwrap();
    }
    let good = names(&backups);
    tamper(&journal, "UPDATE entry SET body = CAST(CAST(body AS TEXT) || ' ' AS BLOB) WHERE seq = 3");
    let ran = stage.ran(&["backup"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    for said in ["no backup was made", "older backups stay", "broken at entry 3", "`bailey audit recover`"] {
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    assert_eq!(names(&backups), good);
    let none = stage.folder().join("none");
    assert_eq!(stage.ran(&["backup", none.to_str().unwrap()]).code, Some(5));
    assert!(!none.exists());
    nothing_left(&stage);
    // The control: the same journal, put right.
    tamper(&journal, "UPDATE entry SET body = CAST(rtrim(CAST(body AS TEXT)) AS BLOB) WHERE seq = 3");
    backup(&stage, &[]);
    assert!(names(&backups).len() == 5 && !backups.join(&good[0]).exists());
}

#[test]
fn a_journal_whose_pages_are_damaged_is_named() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let journal = stage.home().join("journal.db");
    tamper(&journal, "CREATE TABLE torn AS SELECT seq, bytes FROM payload");
    // The control.
    backup(&stage, &[stage.folder().join("whole").to_str().unwrap()]);
    let script = "import sqlite3, sys\nprint(sqlite3.connect(sys.argv[1]).execute(\"SELECT rootpage FROM sqlite_schema WHERE name = 'torn'\").fetchone()[0])\n";
    let found = Command::new("python3").args(["-c", script]).arg(&journal).output().unwrap();
    let page: u64 = String::from_utf8(found.stdout).unwrap().trim().parse().unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(&journal).unwrap();
    file.seek(SeekFrom::Start((page - 1) * 4096)).unwrap();
    file.write_all(&[0; 4096]).unwrap();
    let ran = stage.ran(&["backup", stage.folder().join("torn").to_str().unwrap()]);
    assert!(ran.code == Some(5) && ran.stderr.contains("no backup was made"), "{ran:?}");
    assert!(ran.stderr.contains("home/journal.db` is damaged"), "{ran:?}");
    nothing_left(&stage);
}

#[test]
fn what_is_damaged_or_hostile_changes_nothing() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/mine.toml"), "").unwrap();
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
            "differs from the list",
            Box::new(|copy| fs::write(copy.join("config.toml"), "model = \"x/y\"\n").unwrap()),
        ),
        ("a file gone", "is missing", Box::new(|copy| fs::remove_file(copy.join("config.toml")).unwrap())),
        (
            "no list",
            "not a backup of a home",
            Box::new(|copy| fs::remove_file(copy.join("SHA256SUMS")).unwrap()),
        ),
        (
            "a link in a file's place",
            "is a link",
            Box::new(|copy| {
                fs::remove_file(copy.join("config.toml")).unwrap();
                symlink(&outside, copy.join("config.toml")).unwrap();
            }),
        ),
        (
            "a link in a folder's place, to what is as the list says",
            "lies behind one",
            Box::new(|copy| {
                fs::remove_dir_all(copy.join("policy")).unwrap();
                symlink(whole.join("policy"), copy.join("policy")).unwrap();
            }),
        ),
        ("a file of the daemon", "`daemon/socket`", Box::new(|copy| put_in(copy, "daemon/socket"))),
        ("what a session changed", "`sessions/x/a`", Box::new(|copy| put_in(copy, "sessions/x/a"))),
        ("what signs checkpoints", "`journal.key`", Box::new(|copy| put_in(copy, "journal.key"))),
        ("a restore half done", "`restoring.json`", Box::new(|copy| put_in(copy, "restoring.json"))),
        (
            "a path that leads out",
            "names no file of the copy",
            Box::new(|copy| list(copy, &|text| text.replace("  config.toml", "  ../config.toml"))),
        ),
        (
            "a pipe",
            "is not a file",
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
            "differs from the list",
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
        let begun = changed(stage.folder());
        let ran = stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
        assert!(
            ran.code != Some(0) && ran.stderr.contains(why) && ran.stderr.contains("nothing was changed"),
            "{what}: {ran:?}"
        );
        // What a list can tell is looked at before anything is written; that the chain holds, in the journal
        // that it is to be.
        assert_eq!(changed(stage.folder()) != begun, what == "an entry that was changed", "{what}");
        assert_eq!(state(), before, "{what}");
        fs::remove_dir_all(&copy).unwrap();
        nothing_left(&stage);
    }
    // The control: the whole one is taken.
    assert_eq!(stage.ran(&["restore", "--yes", whole.to_str().unwrap()]).code, Some(0));
}

/// A file of holes takes no room where it is, and all of it where it is copied to.
#[test]
fn what_has_no_room_is_not_brought_back() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let copy = stage.folder().join("copy");
    backup(&stage, &[copy.to_str().unwrap()]);
    let small = stage.folder().join("small");
    fs::create_dir(&small).unwrap();
    let Some(_mounted) = Mounted::at(&small, "32m") else { return };
    let restore = || {
        let mut restore = Command::new(env!("CARGO_BIN_EXE_bailey"));
        Ran::of(restore.arg("--home").arg(small.join("home")).arg("restore").arg(&copy).output().unwrap())
    };
    let config = copy.join("config.toml");
    let text = fs::read(&config).unwrap();
    fs::OpenOptions::new().write(true).open(&config).unwrap().set_len(1 << 30).unwrap();
    let ran = restore();
    assert!(ran.code == Some(1) && ran.stderr.contains("nothing was changed"), "{ran:?}");
    assert!(ran.stderr.contains(" needs 102") && ran.stderr.contains("MiB are free in `"), "{ran:?}");
    assert_eq!(names(&small), [""; 0]);
    // The control, also where a restore that was killed left no room.
    fs::write(&config, text).unwrap();
    let cut = small.join("home.restoring-4711");
    fs::create_dir_all(small.join("home/sessions")).unwrap();
    fs::create_dir(&cut).unwrap();
    fs::write(cut.join("journal.db"), vec![b'x'; 64 << 20]).unwrap_err();
    let ran = restore();
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn whoever_is_refused_or_only_asks_leaves_no_new_home() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let copy = stage.folder().join("copy");
    backup(&stage, &[copy.to_str().unwrap()]);
    let torn = stage.folder().join("torn");
    assert!(Command::new("cp").arg("-a").arg(&copy).arg(&torn).status().unwrap().success());
    fs::remove_file(torn.join("config.toml")).unwrap();
    let at = |home: &str, arguments: &[&str]| {
        let mut bailey = Command::new(env!("CARGO_BIN_EXE_bailey"));
        Ran::of(bailey.current_dir(stage.folder()).args(["--home", home]).args(arguments).output().unwrap())
    };
    let is_there = || stage.folder().join("new").exists();
    for from in ["torn", "nowhere"] {
        let ran = at("new/home", &["restore", from]);
        assert!(ran.code == Some(1) && !is_there(), "{from}: {ran:?}");
    }
    let ran = at("new/home", &["status"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no home at `new/home`") && !is_there(), "{ran:?}");
    for arguments in
        [&["stop"][..], &["reload"], &["logs"], &["backup", "b"], &["audit", "verify"], &["audit", "salvage"]]
    {
        let ran = at("new/home", arguments);
        assert!(
            ran.code == Some(1) && ran.stderr.contains("no home at `new/home`"),
            "{arguments:?}: {ran:?}"
        );
        assert!(!is_there(), "{arguments:?}");
    }
    let ran = at("new/home", &["--json", "status"]);
    assert_eq!((ran.code, &ran.lines()[0]), (Some(1), &json!({ "pid": null, "stopped": null })), "{ran:?}");
    assert!(!is_there());
    // What was there stays, also where it is empty.
    fs::create_dir(stage.folder().join("empty")).unwrap();
    assert_eq!(at("empty", &["restore", "torn"]).code, Some(1));
    assert_eq!(names(&stage.folder().join("empty")), [""; 0]);
    // The control: what is not refused makes one.
    let ran = at("new/home", &["restore", "copy"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        stage.folder().join("new/home/journal.db").exists()
            && stage.folder().join("new/home/sessions").exists()
    );
    assert_eq!(at("new/home", &["status"]).code, Some(1));
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
    assert_eq!(stage.ran(&["restore", "--yes", yesterday.to_str().unwrap()]).code, Some(0));
    assert_eq!(titles(&stage), ["of the morning"]);
}

#[test]
fn a_home_in_use_is_not_replaced() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let copy = backup(&stage, &[]);
    let restore = || stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
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
    let layers = names(&stage.home().join("sessions"));
    for step in 0..24 {
        let mut child = stage
            .bailey(&["restore", "--yes", copy.to_str().unwrap()])
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
        // Whoever came next has ended it: what sessions changed is in the home, and the other one has its
        // name.
        assert_eq!(names(&stage.home().join("sessions")), layers, "after {} ms", step * 4);
        assert!(!restoring(&stage).iter().any(|path| said_evening(path)), "after {} ms", step * 4);
        seen[usize::from(found == new)] += 1;
        if found == new {
            // Back to the evening, for the next one.
            let before = befores(&stage).into_iter().find(|path| said_evening(path)).unwrap();
            let aside = stage.folder().join(format!("aside-{step}"));
            fs::rename(stage.home(), &aside).unwrap();
            fs::rename(before, stage.home()).unwrap();
            fs::rename(aside.join("sessions"), stage.home().join("sessions")).unwrap();
        }
    }
    println!("{} kept the one home, {} have the other", seen[0], seen[1]);
    assert!(seen[0] > 0, "none was killed before");
    // And one that nobody kills is done, and leaves nothing of the others.
    assert_eq!(stage.ran(&["restore", "--yes", copy.to_str().unwrap()]).code, Some(0));
    assert_eq!(titles(&stage), new);
    nothing_left(&stage);
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

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// As a kill leaves it at each moment after the copy has the home's place, however far the rest of it came.
#[test]
fn a_restore_that_was_cut_off_is_ended_by_whoever_comes_next() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    let copy = backup(&stage, &[]);
    task(&stage, "of the evening");
    let home = stage.home();
    let parts = || (names(&home.join("sessions")), names(&home.join("backups")));
    let whole = parts();
    assert_eq!(stage.ran(&["restore", "--yes", copy.to_str().unwrap()]).code, Some(0));
    assert_eq!(parts(), whole);
    let [before] = &befores(&stage)[..] else { panic!("{:?}", befores(&stage)) };
    let (mark, old) = (home.join("restoring.json"), stage.folder().join("home.restoring-4711"));
    assert!(!mark.exists());
    for (moved_back, is_named) in [
        (&["sessions", "backups"][..], false),
        (&["sessions", "backups"], true),
        (&["backups"], true),
        (&[], true),
    ] {
        let begun = json!({ "old": old.file_name().unwrap().to_str(), "before": before.file_name().unwrap().to_str() });
        fs::write(&mark, begun.to_string()).unwrap();
        for part in moved_back {
            fs::rename(home.join(part), before.join(part)).unwrap();
        }
        if !is_named {
            fs::rename(before, &old).unwrap();
        }
        assert_eq!(titles(&stage), ["of the morning"], "{moved_back:?}");
        assert_eq!(parts(), whole, "{moved_back:?}");
        assert!(before.join("journal.db").exists() && !old.exists() && !mark.exists(), "{moved_back:?}");
        nothing_left(&stage);
    }
    // Where the other one is gone by then, there is nothing to end.
    fs::write(&mark, json!({ "old": "home.restoring-1", "before": "home.before-1" }).to_string()).unwrap();
    assert_eq!(titles(&stage), ["of the morning"]);
    assert!(!mark.exists());
    assert_eq!(parts(), whole);
}

/// As a kill leaves it after the copy has the home's place: whoever was at the old one wrote a stop into it.
#[test]
fn a_stop_that_was_made_beside_a_restore_holds_in_the_new_home() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "before");
    let copy = backup(&stage, &[]);
    let (home, old) = (stage.home(), stage.folder().join("home.restoring-4711"));
    for (what, is_stopped) in [("the control", false), ("stopped", true), ("nothing left of it", true)] {
        let ran = stage.ran(&["--json", "restore", "--yes", copy.to_str().unwrap()]);
        assert_eq!((ran.code, &ran.lines()[0]["stopped"]), (Some(0), &json!(null)), "{what}: {ran:?}");
        let [before] = &befores(&stage)[..] else { panic!("{what}: {:?}", befores(&stage)) };
        if what == "stopped" {
            let mut stop = Command::new(env!("CARGO_BIN_EXE_bailey"));
            let stopped = Ran::of(stop.arg("--home").arg(before).arg("estop").output().unwrap());
            assert_eq!(stopped.code, Some(0), "{stopped:?}");
        }
        let begun = json!({ "old": "home.restoring-4711", "before": before.file_name().unwrap().to_str() });
        fs::write(home.join("restoring.json"), begun.to_string()).unwrap();
        match what {
            "nothing left of it" => fs::remove_dir_all(before).unwrap(),
            _ => fs::rename(before, &old).unwrap(),
        }
        let run = stage.ran(&["sandbox", "run", "--", "true"]);
        assert_eq!(run.code != Some(0), is_stopped, "{what}: {run:?}");
        assert_eq!(stage.entries("stopped").len(), usize::from(is_stopped), "{what}");
        assert!(!home.join("restoring.json").exists() && !old.exists(), "{what}");
        // The next one begins with a home that nobody stopped.
        fs::remove_dir_all(before).ok();
        fs::remove_file(home.join("journal.db")).unwrap();
        fs::remove_file(home.join("journal.key")).unwrap();
    }
}

#[test]
fn homes_that_were_cut_off_before_they_had_their_place_are_removed_by_the_next_restore() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let copy = backup(&stage, &[]);
    let [cut, held, was, other] = ["4711", "4712", "4713", "mine"]
        .map(|process| stage.folder().join(format!("home.restoring-{process}")));
    for folder in [&cut, &held, &was, &other] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(".env"), "SOME_KEY=canary-of-the-key\n").unwrap();
    }
    // What has been a home has these.
    fs::create_dir(was.join("sessions")).unwrap();
    // This one is still being made.
    let made = fs::File::open(&held).unwrap();
    made.lock().unwrap();
    let restore = || assert_eq!(stage.ran(&["restore", "--yes", copy.to_str().unwrap()]).code, Some(0));
    restore();
    assert!(!cut.exists() && held.exists() && was.exists() && other.exists());
    drop(made);
    restore();
    assert!(!held.exists() && was.exists() && other.exists());
}

#[test]
fn what_a_schedule_did_is_not_done_again_after_the_way_back() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    for name in ["done", "ahead"] {
        let added = stage.ran(&["schedule", "add", name, "--cron", "* * * * *", "look around"]);
        assert_eq!(added.code, Some(0), "{added:?}");
    }
    let of = |home: &Path| -> Value {
        serde_json::from_slice(&fs::read(home.join("schedules.json")).unwrap()).unwrap()
    };
    let mut all = of(&stage.home());
    let written = all["done"]["since"].as_str().unwrap().to_owned();
    let id = stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].clone();
    all["done"]["since"] = json!("2020-01-01T00:00:00Z");
    all["done"]["begun"] = json!({ "moment": "2020-01-01T00:01:00Z", "session": id });
    all["ahead"]["since"] = json!("2999-01-01T00:00:00Z");
    fs::write(stage.home().join("schedules.json"), all.to_string()).unwrap();
    let copy = backup(&stage, &[]);
    assert_eq!(stage.ran(&["restore", "--yes", copy.to_str().unwrap()]).code, Some(0));
    let now = of(&stage.home());
    assert!(now["done"]["since"].as_str().unwrap()[..19] >= written[..19], "{now}");
    assert!(now["done"]["begun"].is_null() && now["done"]["task"] == all["done"]["task"], "{now}");
    assert_eq!(now["ahead"], all["ahead"]);
    // The control: the copy has what was to be done then.
    assert_eq!(of(&stage.home().join("backups").join(copy.file_name().unwrap())), all);
}

#[test]
fn programs_of_a_home_come_back_as_programs() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let set = |name: &str, mode: u32| {
        fs::create_dir_all(stage.home().join("tools")).unwrap();
        fs::write(stage.home().join(name), "#!/bin/sh\n").unwrap();
        fs::set_permissions(stage.home().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("tools/program", 0o755);
    set("tools/text", 0o666);
    let copy = stage.folder().join("copy");
    backup(&stage, &[copy.to_str().unwrap()]);
    assert_eq!(stage.ran(&["restore", "--yes", copy.to_str().unwrap()]).code, Some(0));
    for home in [copy, stage.home()] {
        let mode = |name: &str| fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("tools/program"), mode("tools/text")), (0o700, 0o600), "{}", home.display());
    }
}

#[test]
fn a_home_that_cannot_be_exchanged_stays_and_leaves_no_keys_beside_it() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let home = stage.home();
    fs::create_dir_all(&home).unwrap();
    let Some(_mounted) = Mounted::at(&home, "64m") else { return };
    fs::write(home.join(".env"), "SOME_KEY=canary-of-the-key\n").unwrap();
    fs::set_permissions(home.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    let copy = stage.folder().join("copy");
    backup(&stage, &[copy.to_str().unwrap()]);
    let ran = stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("nothing was changed"), "{ran:?}");
    assert!(fs::read_to_string(home.join(".env")).unwrap().contains("canary-of-the-key"));
    nothing_left(&stage);
}

#[test]
fn what_links_lead_to_is_in_a_copy_and_comes_back() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    let (home, dotfiles) = (stage.home(), stage.folder().join("dotfiles"));
    fs::create_dir_all(dotfiles.join("profiles/more")).unwrap();
    fs::create_dir_all(home.join("policy")).unwrap();
    let rule = "[[rule]]\nname = \"x\"\nanswer = \"deny\"\nreason = \"no\"\nmatch = { action = \"exec\", command = \"frobnicate\" }\n";
    fs::write(dotfiles.join("deny.toml"), rule).unwrap();
    fs::write(dotfiles.join("profiles/more/mine"), "read\n").unwrap();
    fs::rename(home.join("config.toml"), dotfiles.join("config.toml")).unwrap();
    let config = fs::read_to_string(dotfiles.join("config.toml")).unwrap();
    for (name, target) in
        [("policy/deny.toml", "deny.toml"), ("config.toml", "config.toml"), ("profiles", "profiles")]
    {
        symlink(dotfiles.join(target), home.join(name)).unwrap();
    }
    // One file of the home may have two names.
    symlink("deny.toml", home.join("policy/again.toml")).unwrap();
    let copy = backup(&stage, &[]);
    fs::remove_dir_all(&dotfiles).unwrap();
    let ran = stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (name, text) in [
        ("policy/deny.toml", rule),
        ("policy/again.toml", rule),
        ("config.toml", config.as_str()),
        ("profiles/more/mine", "read\n"),
    ] {
        assert!(home.join(name).symlink_metadata().unwrap().is_file(), "{name}");
        assert_eq!(fs::read_to_string(home.join(name)).unwrap(), text, "{name}");
    }

    // What no copy can hold is named, and there is none then.
    let (link, none) = (home.join("policy/link"), stage.folder().join("none"));
    let tried = || stage.ran(&["backup", none.to_str().unwrap()]);
    fs::write(home.join(".env"), "SOME_KEY=canary-of-the-key\n").unwrap();
    fs::set_permissions(home.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    for (target, why) in [
        ("/nowhere/at/all", "leads nowhere"),
        ("/dev/null", "neither a file nor a folder"),
        ("../.env", "which no copy holds"),
        ("../sessions", "which no copy holds"),
        ("..", "which no copy holds"),
        ("/", "which no copy holds"),
        (".", "a link behind 8 others"),
    ] {
        symlink(target, &link).unwrap();
        let ran = tried();
        assert!(
            ran.code == Some(1) && ran.stderr.contains(why) && ran.stderr.contains("link`"),
            "{target}: {ran:?}"
        );
        assert!(ran.stderr.contains("no backup was made") && !none.exists(), "{target}: {ran:?}");
        fs::remove_file(&link).unwrap();
    }
    let large = stage.folder().join("large");
    fs::File::create(&large).unwrap().set_len(65 << 20).unwrap();
    symlink(&large, &link).unwrap();
    let ran = tried();
    assert!(ran.code == Some(1) && ran.stderr.contains("64 MiB, at `policy/link`"), "{ran:?}");
    nothing_left(&stage);
    // The control: without it there is one.
    fs::remove_file(&link).unwrap();
    assert_eq!(tried().code, Some(0));
}

#[test]
fn a_lock_is_left_out_by_its_place_and_not_by_its_name() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    let ran = stage.ran(&["agent", "new", "lock"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let home = stage.home();
    for (path, _) in IN.iter().chain(&OUT) {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !path.exists() {
            fs::write(path, "{}\n").unwrap();
        }
    }
    let copy = backup(&stage, &[]);
    for (path, why) in IN {
        assert!(copy.join(path).exists(), "{path}: {why}");
    }
    for (path, why) in OUT {
        assert!(!copy.join(path).exists(), "{path}: {why}");
    }

    // One of before has it, and it comes back with none.
    put_in(&copy, "pool/0.json");
    put_in(&copy, "schedules.lock");
    let ran = stage.ran(&["restore", "--yes", copy.to_str().unwrap()]);
    assert!(ran.code == Some(0) && ran.stderr.contains("anew: pool, schedules.lock"), "{ran:?}");
    assert!(home.join("agents/lock/settings.toml").exists() && !home.join("pool").exists());
    assert!(!home.join("schedules.lock").exists());
}

/// What is in a copy, and what is not, with why.
const IN: [(&str, &str); 4] = [
    ("agents/lock/settings.toml", "an agent may be called so"),
    ("channels/lock/people.json", "and a channel"),
    ("policy/mine.new-2.toml", "and a file of rules"),
    ("profiles/lock", "and a list of system calls"),
];
const OUT: [(&str, &str); 5] = [
    ("channels/lock/lock", "the lock of a channel's people"),
    ("archive/lock", "the lock of the archives"),
    ("schedules.lock", "the lock of schedules"),
    ("agents/lock/settings.toml.new-4711", "what a kill left"),
    ("pool/0.json", "a layer that may be used by then"),
];

#[test]
fn copies_that_were_cut_off_are_removed_by_the_next_one() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let backups = stage.home().join("backups");
    let [cut, held, other] = [".20350310T110000Z.new-4711", ".20350310T110001Z.new-4712", ".mine.new-x"]
        .map(|name| backups.join(name));
    for folder in [&cut, &held, &other] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("journal.db"), "half").unwrap();
    }
    // This one is still being made.
    let made = fs::File::open(&held).unwrap();
    made.lock().unwrap();
    backup(&stage, &[]);
    assert!(!cut.exists() && held.exists() && other.exists());
    drop(made);
    // At another second, for its name.
    thread::sleep(Duration::from_millis(1100));
    backup(&stage, &[]);
    assert!(!held.exists() && other.exists());
}

#[test]
fn an_old_copy_that_cannot_be_removed_keeps_no_other_one() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "once");
    let backups = stage.home().join("backups");
    let first = backup(&stage, &[]);
    let olds: Vec<PathBuf> = (1..=8).map(|day| backups.join(format!("2020010{day}T000000Z"))).collect();
    for old in &olds {
        let copied = Command::new("cp").arg("-a").arg(&first).arg(old).status();
        assert!(copied.unwrap().success());
    }
    // Where something is mounted, nothing can be removed.
    let held = olds[0].join("sessions");
    fs::create_dir_all(&held).unwrap();
    let Some(_mounted) = Mounted::at(&held, "1m") else { return };
    thread::sleep(Duration::from_millis(1100));
    let ran = stage.ran(&["--json", "backup"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("an old copy stays") && ran.stderr.contains("20200101T000000Z"), "{ran:?}");
    let told = ran.lines().remove(0);
    assert_eq!((&told["removed"], told["stay"].as_array().unwrap().len()), (&json!(4), 1), "{told}");
    assert!(olds[1..5].iter().all(|old| !old.exists()) && olds[5..].iter().all(|old| old.exists()));
    assert!(!olds[0].exists(), "what is there in part is called no copy");
    // It is told each time, and goes when it can.
    thread::sleep(Duration::from_millis(1100));
    let ran = stage.ran(&["--json", "backup"]);
    assert_eq!(ran.lines()[0]["stay"].as_array().unwrap().len(), 1, "{ran:?}");
    let left = || fs::read_dir(&backups).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(left().len(), 6, "{:?}", left());
    let going = left().into_iter().find(|name| name.to_str().unwrap().starts_with(".20200101")).unwrap();
    let umount = Command::new("umount").arg(backups.join(going).join("sessions")).status();
    assert!(umount.unwrap().success());
    thread::sleep(Duration::from_millis(1100));
    assert_eq!(stage.ran(&["--json", "backup"]).lines()[0]["stay"], json!([]));
    assert_eq!(left().len(), 5, "{:?}", left());
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
    assert!(
        ran.code != Some(0) && ran.stderr.contains("no backup was made; the home is unchanged"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("a backup needs ") && ran.stderr.contains("MiB are free"), "{ran:?}");
    assert_eq!(left, 0);
    let value: Value = json!(titles(&stage));
    assert_eq!(value, json!(["once"]));
}
