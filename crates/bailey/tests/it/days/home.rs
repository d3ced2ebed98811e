//! Days on which the home is in trouble: a full disk, a file system without layers, a torn database.

use super::{RUN, edit, edit_then, in_a_namespace, nothing_is_lost, ran, tells};
use crate::stage::{Ran, Stage};
use bailey_testkit::Reply;
use serde_json::json;
use std::{fs, process::Command};

/// The disk fills while a command runs, in a home that is a file system of its own.
const FULL: &str = r#"
mount -t tmpfs -o size=24m none "$H" || exit 99
cp ../config.toml "$H/"
"$BAILEY" --home "$H" run --model test/model --approve never 'do it' > ../out.txt 2>&1 &
for _ in $(seq 200); do grep -q 'begun' ../out.txt && break; sleep 0.1; done
head -c 64000000 /dev/zero > "$H/fill" 2> /dev/null
run=$!
"$BAILEY" --home "$H" run --model test/model --approve never 'while it is full' > ../late.txt 2>&1; echo "late $?"
cat ../late.txt >&2
touch "$P/full"
wait $run; echo "code $?"
rm "$P/full"; cat ../out.txt >&2
rm "$H/fill"
echo "asked $("$BAILEY" --home "$H" --json audit log | grep -c '"kind":"model"')"
"$BAILEY" --home "$H" audit verify; echo "code $?"
session=$("$BAILEY" --home "$H" sessions list --all | cut -c 1-8)
"$BAILEY" --home "$H" sessions diff "$session"; echo "code $?"
"$BAILEY" --home "$H" run --model test/model --approve never 'again' > /dev/null 2>&1; echo "code $?"
"#;

#[test]
fn a_disk_that_fills_is_told_and_what_was_done_is_kept() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let wait = json!({ "command": "echo begun; sleep 4" });
    let server = edit_then(&stage, move |request| match request.body.contains("again") {
        true => Reply::text("done"),
        false => Reply::calls([("c1", "command_run", wait.clone())]),
    });
    fs::rename(stage.home().join("config.toml"), stage.folder().join("config.toml")).unwrap();
    let Some(ran) = in_a_namespace(&stage, FULL) else { return };
    // No journal, no effect: a model is asked as often as the journal says, and who begins while the disk is
    // full asks none. The control: who begins later asks, and edits.
    let asked = |text: &str| server.requests().iter().filter(|request| request.body.contains(text)).count();
    assert!(ran.stdout.contains(&format!("asked {}\n", asked("do it"))), "{} {ran:?}", asked("do it"));
    assert_eq!([asked("while it is full"), asked("again")], [0, 2], "{ran:?}");
    assert!(ran.stdout.contains("late 5"), "{ran:?}");
    for words in ["no space is left", "free some space", "not known: the changes could not be compared"] {
        assert!(ran.stderr.contains(words), "no `{words}` in {ran:?}");
    }
    let codes: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("code ")).collect();
    assert_eq!(codes, ["code 5", "code 0", "code 0", "code 0"], "{ran:?}");
    assert!(ran.stdout.contains("verified") && ran.stdout.contains("+two"), "{ran:?}");
}

/// Makes a home `$N` of which the kernel takes no upper layer, and a `/var/tmp` of its own.
const NO_LAYERS: &str = r#"
N="$PWD/../second"; mkdir "$N" || exit 99
if [ "$KIND" = ramfs ]; then mount -t ramfs none "$N" || exit 99; else
    mount -t tmpfs none "$H" && mkdir "$H/lower" "$H/upper" "$H/work" || exit 99
    mount -t overlay none -o "lowerdir=$H/lower,upperdir=$H/upper,workdir=$H/work" "$N" || exit 99
fi
cp ../config.toml "$N/"; chmod 700 "$N"
mount -t tmpfs -o mode=1777 none /var/tmp || exit 99
"#;

/// Killed in the middle of a command; then looked at, applied and removed.
const KILLED: &str = r#"
"$BAILEY" --home "$N" run --model test/model --approve never 'do it' > ../out.txt 2>&1 &
for _ in $(seq 200); do grep -q 'begun' ../out.txt && break; sleep 0.1; done
kill -9 $!; wait $!; cat ../out.txt >&2
session=$("$BAILEY" --home "$N" sessions list --all | cut -c 1-8)
readlink "$N/sessions/"*"$session" || echo "in the home"
"$BAILEY" --home "$N" sessions diff "$session"; echo "code $?"
"$BAILEY" --home "$N" sessions apply "$session"; echo "code $?"
"$BAILEY" --home "$N" sessions rm --yes "$session"; echo "code $?"
"$BAILEY" --home "$N" audit verify; echo "code $?"
"$BAILEY" --home "$N" sandbox run -- sh -c 'echo three > a.txt && rm -r part && mkdir part && ls part'; echo "code $?"
ls -A "$N/sessions" /var/tmp/bailey-*
"#;

/// A home of one kind, and a session that is killed there.
fn killed_on(kind: &str, prelude: &str) -> Option<(Ran, Stage)> {
    let stage = Stage::new(&[("a.txt", "one\n"), ("part/b.txt", "one\n")]);
    let wait = json!({ "command": "echo begun; echo more > c.txt; sleep 30" });
    let _server = edit_then(&stage, move |_| Reply::calls([("c1", "command_run", wait.clone())]));
    fs::rename(stage.home().join("config.toml"), stage.folder().join("config.toml")).unwrap();
    let ran = in_a_namespace(&stage, &format!("KIND={kind}\n{prelude}{KILLED}"))?;
    Some((ran, stage))
}

#[test]
fn a_home_that_can_hold_no_layer_has_it_elsewhere_and_a_kill_loses_nothing() {
    for kind in ["overlayfs", "ramfs"] {
        let Some((ended, stage)) = killed_on(kind, NO_LAYERS) else { return };
        let told = [kind, "can hold no session's layer", "`/var/tmp/bailey-0/", "in memory", "--home DIR"];
        for words in told {
            assert!(ended.stderr.contains(words), "{kind}: no `{words}` in {ended:?}");
        }
        let codes: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("code ")).collect();
        assert_eq!(codes, ["code 0"; 5], "{kind}: {ended:?}");
        for words in ["/var/tmp/bailey-0/", "+two", "+more", "verified"] {
            assert!(ended.stdout.contains(words), "{kind}: no `{words}` in {ended:?}");
        }
        assert!(!ended.stdout.contains("in the home"), "{ended:?}");
        let left = ended.stdout.split("/sessions:").nth(1).unwrap();
        assert_eq!(left.trim(), "/var/tmp/bailey-0:", "{kind}: nothing is left: {ended:?}");
        assert_eq!((stage.read("a.txt").as_str(), stage.read("c.txt").as_str()), ("two\n", "more\n"));
    }
    // A control: where the home holds layers, they lie there and nothing is said.
    let on_tmpfs = r#"N="$H"; mount -t tmpfs none "$H" || exit 99; cp ../config.toml "$H/"
        mount -t tmpfs -o mode=1777 none /var/tmp || exit 99"#;
    let Some((ended, _stage)) = killed_on("tmpfs", on_tmpfs) else { return };
    assert!(!ended.stderr.contains("can hold no session's layer"), "{ended:?}");
    assert!(ended.stdout.contains("in the home\n") && ended.stdout.contains("+two"), "{ended:?}");
}

/// What lay elsewhere is gone; then a place elsewhere that is somebody else's; then none at all.
const LOST: &str = r#"
"$BAILEY" --home "$N" sandbox run --keep -- sh -c 'echo kept > kept.txt'; echo "code $?"
session=$("$BAILEY" --home "$N" sessions list --all | cut -c 1-8)
umount /var/tmp && mount -t tmpfs -o mode=1777 none /var/tmp || exit 99
"$BAILEY" --home "$N" sessions diff "$session"; echo "code $?"
"$BAILEY" --home "$N" sessions fork "$session"; echo "code $?"
"$BAILEY" --home "$N" sessions rm --yes "$session"; echo "code $?"
rmdir /var/tmp/bailey-0 && mkdir -m 777 /var/tmp/bailey-0 && chown 54321 /var/tmp/bailey-0
"$BAILEY" --home "$N" sandbox run --keep -- true; echo "code $?"
readlink "$N"/sessions/* | grep -q '^/var/tmp/bailey-0-[0-9a-f]*/' && echo unforeseen
mkdir /var/tmp/plain
"$BAILEY" --home "$N" sandbox run -C /var/tmp/plain -- true; echo "code $?"
"$BAILEY" --home "$N" sandbox run -C /var/tmp -- true; echo "code $?"
for place in /var/tmp /tmp /dev/shm; do
    mount --rbind "$place" "$place" && mount -o remount,ro,bind "$place" || exit 99
done
"$BAILEY" --home "$N" sandbox run -- true; echo "code $?"
ls -A /var/tmp/bailey-0
"#;

#[test]
fn a_layer_that_went_with_its_place_is_told_and_a_place_of_somebody_else_is_not_used() {
    let stage = Stage::new(&[]);
    fs::write(stage.folder().join("config.toml"), "").unwrap();
    let Some(ended) = in_a_namespace(&stage, &format!("KIND=overlayfs\n{NO_LAYERS}{LOST}")) else { return };
    let codes: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("code ")).collect();
    assert_eq!(
        codes,
        ["code 0", "code 1", "code 0", "code 0", "code 0", "code 0", "code 1", "code 1"],
        "{ended:?}"
    );
    assert!(
        ended.stdout.contains("\nunforeseen\n"),
        "a name that somebody else took is not waited for: {ended:?}"
    );
    for words in [
        "are gone, as after a restart",
        "sessions fork",
        "nor can /var/tmp, /tmp, /dev/shm",
        "`/var/tmp` cannot be a workspace: it is, lies in, or holds `/var/tmp/bailey-0-",
    ] {
        assert!(ended.stderr.contains(words), "no `{words}` in {ended:?}");
    }
    tells(&ended, 0, &["docker run -v"]);
    assert!(ended.stdout.trim_end().ends_with("code 1"), "nothing of ours lies in what is theirs: {ended:?}");
}

/// Moves what the log holds into the database, so that one file is all of it.
fn as_one_file(stage: &Stage) -> bool {
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
                  c.execute('PRAGMA wal_checkpoint(TRUNCATE)'); c.close()";
    let made = Command::new("python3").args(["-c", script]).arg(stage.home().join("journal.db")).status();
    made.is_ok_and(|status| status.success())
}

#[test]
fn a_torn_database_is_told_and_not_written_and_a_copy_brings_all_back() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (ended, _server) = stage.task(vec![edit(), Reply::text("done")], &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    if !as_one_file(&stage) {
        println!("SKIPPED: no python3 with sqlite3 to make one file of the database");
        return;
    }
    let path = stage.home().join("journal.db");
    let whole = fs::read(&path).unwrap();
    let middle = whole.len() / 2 - 100;
    let flipped = whole.windows(8).rposition(|bytes| bytes == b"\"intent\"".as_slice());
    let overwritten = |from: usize, to: usize| {
        let mut torn = whole.clone();
        torn[from..to].fill(0xa5);
        torn
    };
    let mut days = vec![
        ("cut", whole[..middle].to_vec(), "is damaged"),
        ("overwritten", overwritten(8192, whole.len()), "is damaged"),
        ("without its beginning", overwritten(0, 100), "is not a Bailey database"),
    ];
    days.extend(flipped.map(|at| ("one word", overwritten(at + 1, at + 2), "journal broken at entry")));
    for (day, torn, words) in days {
        fs::write(&path, &torn).unwrap();
        for arguments in [&RUN[..], &["audit", "verify"], &["sessions", "list"]] {
            let ended = stage.ran(arguments);
            tells(&ended, 5, &[words, "backup", "move it away"]);
            let said = ended.stderr.matches(words).count();
            assert_eq!(said, 1, "{day}: said once: {ended:?}");
        }
        assert!(fs::read(&path).unwrap() == torn, "{day}: nothing was written");
        for beside in ["journal.db-wal", "journal.db-shm"] {
            fs::remove_file(stage.home().join(beside)).ok();
        }
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(ran(&stage, &["audit", "verify"]).code, Some(0), "the control: the copy is whole");
    nothing_is_lost(&stage);
}

#[test]
fn a_journal_that_was_taken_away_or_copied_in_part_is_told_before_a_new_one_begins() {
    const LOG: &str = "journal.db-wal";
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (ended, _server) = stage.task(vec![edit(), Reply::text("done")], &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(stage.ran(&["sessions", "list"]).stderr, "", "the control");
    let copy = |name: &str| fs::read(stage.home().join(name)).ok().map(|bytes| (name.to_owned(), bytes));
    let whole: Vec<_> = ["journal.db", LOG].into_iter().filter_map(copy).collect();
    let away = || {
        for name in ["journal.db", LOG, "journal.db-shm"] {
            fs::remove_file(stage.home().join(name)).ok();
        }
    };
    let told = [
        "holds nothing",
        "`sessions` beside it has 1",
        "the new one is stopped",
        "put a copy of both in place",
    ];
    away();
    tells(&stage.ran(&["sessions", "list"]), 0, &told);
    away();
    fs::write(stage.home().join("journal.db"), "").unwrap();
    tells(&stage.ran(&["audit", "verify"]), 0, &told);
    // Nobody can tell that it was not stopped: a stop is not taken away with the journal that says so.
    assert!(stage.ran(&["status"]).stdout.contains("everything is stopped"));
    tells(
        &stage.ran(&["run", "--approve", "never", "x"]),
        3,
        &["nothing begins until you run `bailey estop --release`"],
    );
    away();
    for (name, bytes) in &whole {
        fs::write(stage.home().join(name), bytes).unwrap();
    }
    nothing_is_lost(&stage);
}

/// Whoever moved a home, or mistyped its name, and looks, finds none, and makes none.
#[test]
fn who_looks_at_what_is_there_makes_no_home() {
    let stage = Stage::new(&[]);
    for arguments in
        [&["sessions", "list"][..], &["approvals", "list"], &["ps"], &["budget"], &["audit", "verify"]]
    {
        tells(&stage.ran(arguments), 1, &["there is no home at"]);
        assert!(!stage.home().exists(), "{arguments:?}");
    }
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    assert_eq!(stage.ran(&["sessions", "list"]).code, Some(0), "the control");
}

/// The disk of the home is so full that not even the index of the journal's log can be made.
const WHOLLY_FULL: &str = r#"
mount -t tmpfs -o size=3m none "$H" || exit 99
"$BAILEY" --home "$H" sandbox run --keep -- true || exit 99
# What it began beside itself ends, too.
sleep 1
rm -f "$H/journal.db-shm"
for size in 64k 4k 1; do dd if=/dev/zero of="$H/fill-$size" bs=$size 2> /dev/null; done
"$BAILEY" --home "$H" sessions list; echo "code $?"
"$BAILEY" --home "$H" --json doctor --offline | grep -e '"journal"' -e '"walls"'
rm "$H"/fill-*
"$BAILEY" --home "$H" audit verify; echo "code $?"
"#;

#[test]
fn a_disk_without_any_room_is_no_damage() {
    let stage = Stage::new(&[]);
    let Some(ran) = in_a_namespace(&stage, WHOLLY_FULL) else { return };
    assert!(ran.stderr.contains("no space is left; free some space"), "{ran:?}");
    assert!(ran.stdout.contains("not tried, for the home cannot be written"), "{ran:?}");
    let all = format!("{}{}", ran.stdout, ran.stderr);
    for wrong in ["audit recover", "4874", "os error 28)\n", "is refused"] {
        assert!(!all.contains(wrong), "{wrong}: {ran:?}");
    }
    assert!(ran.stdout.contains("code 5\n") && ran.stdout.trim_end().ends_with("code 0"), "{ran:?}");
}

/// Where the layer lies elsewhere, what only looks leaves nothing there.
const LOOKED: &str = r#"
"$BAILEY" --home "$N" doctor --offline > ../doctor.txt; "$BAILEY" --home "$N" sandbox doctor > ../doctor.txt
echo "left: $(ls -A /var/tmp/bailey-0)"
"#;

#[test]
fn a_look_at_the_walls_leaves_nothing_elsewhere() {
    let stage = Stage::new(&[]);
    fs::write(stage.folder().join("config.toml"), "").unwrap();
    let Some(ran) = in_a_namespace(&stage, &format!("KIND=overlayfs\n{NO_LAYERS}{LOOKED}")) else { return };
    assert_eq!(ran.stdout, "left: \n", "{ran:?}");
    let told = fs::read_to_string(stage.folder().join("doctor.txt")).unwrap();
    assert!(told.contains("walls "), "the control: it was tried: {told}");
}
