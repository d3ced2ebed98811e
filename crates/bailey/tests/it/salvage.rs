//! What is still brought over from a journal that was really damaged, and what is said of the rest.

use crate::{
    daemon::Daemon,
    stage::{Ran, Stage},
};
use bailey_testkit::Reply;
use serde_json::Value;
use std::{
    fs,
    io::Read as _,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

const PAGE: u64 = 4096;

fn task(stage: &Stage, words: &str) {
    // Longer than a page, so that it goes on elsewhere.
    let _model = stage.model(vec![Reply::text(&format!("done: {}", "as was asked; ".repeat(700)))]);
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "never", words]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// A journal of three sessions.
fn made() -> Stage {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    ["of the morning", "of noon", "of the evening"].iter().for_each(|words| task(&stage, words));
    settle(&stage);
    stage
}

/// Has the log brought over into the file, as happens now and then.
fn settle(stage: &Stage) {
    let script = "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute('PRAGMA wal_checkpoint(TRUNCATE)')\nd.close()\n";
    let file = stage.home().join("journal.db");
    assert!(Command::new("python3").args(["-c", script]).arg(&file).status().unwrap().success());
    assert!(!fs::metadata(stage.home().join("journal.db-wal")).is_ok_and(|about| about.len() > 0));
}

fn copy(from: &Path, to: &Path) {
    fs::remove_dir_all(to).ok();
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// The entries as they are exported: number, hash, whether its payload is there.
fn entries(stage: &Stage) -> Vec<(u64, String, bool)> {
    let ran = stage.ran(&["audit", "export"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = ran.lines();
    let entry = |(number, line): (usize, &Value)| {
        (number as u64 + 1, line["hash"].as_str().unwrap().to_owned(), !line["payload"].is_null())
    };
    lines.iter().enumerate().map(entry).collect()
}

fn titles(stage: &Stage) -> Vec<String> {
    let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    listed.iter().map(|it| it["title"].as_str().unwrap().to_owned()).collect()
}

fn salvage(stage: &Stage) -> Ran {
    stage.ran(&["--json", "audit", "recover"])
}

fn verify(stage: &Stage) -> Ran {
    stage.ran(&["--json", "audit", "verify"])
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// What lies in the home beside what always does.
fn left(stage: &Stage) -> Vec<String> {
    let names = fs::read_dir(stage.home()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.contains("torn-") || name.contains("salvag")).collect();
    names.sort();
    names
}

/// That a salvage kept a beginning of what was there, byte for byte, says what it lost, and leaves a journal
/// that holds and goes on. What it told.
fn holds(stage: &Stage, what: &str, whole: &[(u64, String, bool)]) -> Value {
    let torn = fs::read(stage.home().join("journal.db")).unwrap();
    let ran = salvage(stage);
    assert_eq!(ran.code, Some(0), "{what}: {ran:?}");
    let told = ran.lines().remove(0);
    let kept = usize::try_from(told["kept"].as_u64().unwrap()).unwrap();
    let verified = verify(stage);
    assert_eq!(verified.code, Some(0), "{what}: {verified:?}");
    let salvages = verified.lines().remove(0)["salvages"].clone();
    assert_eq!(salvages.as_array().unwrap().len(), 1, "{what}");
    assert_eq!(salvages[0]["kept"], told["kept"], "{what}");

    let now = entries(stage);
    let is_lost = |number: u64| {
        let rows = told["payloads"].as_array().unwrap();
        let number_of = |value: &Value| value.as_u64().unwrap();
        rows.iter().any(|row| (number_of(&row[0])..=number_of(&row[1])).contains(&number))
    };
    for ((number, hash, has), (_, hash_now, has_now)) in whole.iter().zip(&now).take(kept) {
        assert_eq!(hash, hash_now, "{what}: entry {number}");
        assert_eq!(*has_now, *has && !is_lost(*number), "{what}: the payload of {number}");
    }
    // The newest checkpoint lies beside the key: that there were more is known whatever was torn.
    assert_eq!(told["known"].as_u64().unwrap(), whole.len() as u64, "{what}");
    if kept < whole.len() {
        assert_eq!(told["signed"]["entries"].as_u64().unwrap(), whole.len() as u64, "{what}: {told}");
    }
    // What is damaged is kept as it was.
    let [aside] = &left(stage)[..] else { panic!("{what}: {:?}", left(stage)) };
    assert_eq!(fs::read(stage.home().join(aside).join("journal.db")).unwrap(), torn, "{what}");
    told
}

#[test]
fn a_page_that_is_gone_costs_what_stood_on_it() {
    let stage = made();
    let good = stage.folder().join("good");
    let whole = entries(&stage);
    let all = titles(&stage);
    copy(&stage.home(), &good);
    let pages = fs::metadata(good.join("journal.db")).unwrap().len() / PAGE;
    assert!(pages > 20, "{pages}");
    let (mut nothing, mut some, mut early) = (0, 0, 0);
    // The first has the header and the schema; few have entries.
    for page in 0..pages {
        copy(&good, &stage.home());
        let file = stage.home().join("journal.db");
        let mut before = [0; PAGE as usize];
        fs::File::open(&file).unwrap().read_exact_at(&mut before, page * PAGE).unwrap();
        if before.iter().all(|byte| *byte == 0) {
            continue;
        }
        write_at(&file, page * PAGE, &[0; PAGE as usize]);
        // Without the first entry nothing can be told from anything.
        if before.windows(9).any(|text| text == br#""genesis""#) {
            let ran = salvage(&stage);
            assert!(ran.code == Some(5) && ran.stderr.contains("the first entry"), "page {page}: {ran:?}");
            continue;
        }
        let told = holds(&stage, &format!("page {page}"), &whole);
        let kept = told["kept"].as_u64().unwrap();
        match (kept == whole.len() as u64, told["payloads"].as_array().unwrap().is_empty()) {
            (true, true) => nothing += 1,
            (true, false) => some += 1,
            (false, _) => early += 1,
        }
        if kept == whole.len() as u64 {
            assert_eq!(titles(&stage).len(), all.len(), "page {page}");
        }
    }
    println!("of {pages} pages: {nothing} cost nothing, {some} payloads, {early} entries");
    assert!(nothing > 0 && some > 0 && early > 0, "{nothing} {some} {early}");
}

#[test]
fn a_header_that_is_gone_costs_nothing_and_sessions_go_on() {
    let stage = made();
    let whole = entries(&stage);
    let key = stage.ran(&["audit", "key"]).stdout;
    let first = key.split_whitespace().next().unwrap().to_owned();
    settle(&stage);
    write_at(&stage.home().join("journal.db"), 0, &[0; 100]);
    let before = verify(&stage);
    assert!(before.code == Some(5) && before.stderr.contains("audit recover"), "{before:?}");
    let told = holds(&stage, "header", &whole);
    assert_eq!(told["kept"].as_u64().unwrap(), whole.len() as u64);
    // Nothing that was signed is missing, so the same line of keys goes on, and has signed the salvage.
    assert_eq!(told["new_keys"], false);
    let verified = stage.ran(&["--json", "audit", "verify", "--key", &first]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(verified.lines()[0]["signed"]["newest"]["entries"], verified.lines()[0]["entries"]);
    assert_eq!(titles(&stage), ["of the evening", "of noon", "of the morning"]);
    let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    let id = listed[1]["id"].as_str().unwrap();
    let model = stage.model(vec![Reply::text("and more")]);
    let resumed = stage.ran(&["sessions", "resume", "--model", "test/model", id, "go on"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(model.requests().remove(0).body.to_string().contains("of noon"));
    assert_eq!(stage.ran(&["audit", "rebuild"]).code, Some(0));
    // A second time there is nothing to do.
    let again = salvage(&stage);
    assert!(again.code == Some(1) && again.stderr.contains("nothing to recover"), "{again:?}");
}

#[test]
fn a_session_goes_on_and_is_told_where_words_were_lost() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    // A message that goes on over pages of its own: one of them is torn.
    task(&stage, &format!("a canary {}", "and more of it; ".repeat(900)));
    settle(&stage);
    let whole = entries(&stage);
    let file = stage.home().join("journal.db");
    let bytes = fs::read(&file).unwrap();
    let is_full = |page: &[u8]| page.windows(15).filter(|it| it == b"and more of it;").count() > 250;
    let page = bytes.chunks(PAGE as usize).position(is_full).unwrap();
    write_at(&file, page as u64 * PAGE, &[0; PAGE as usize]);
    let told = holds(&stage, "a message", &whole);
    assert_eq!(told["kept"].as_u64().unwrap(), whole.len() as u64);
    assert_eq!(told["payloads"].as_array().unwrap().len(), 1, "{told}");
    let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    let model = stage.model(vec![Reply::text("and more")]);
    let id = listed[0]["id"].as_str().unwrap();
    let resumed = stage.ran(&["sessions", "resume", "--model", "test/model", id, "go on"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let asked = model.requests().remove(0).body.to_string();
    assert!(asked.contains("was lost with a torn journal") && !asked.contains("a canary"), "{asked}");
}

#[test]
fn a_file_that_was_cut_off_keeps_what_came_before() {
    let stage = made();
    let good = stage.folder().join("good");
    let whole = entries(&stage);
    copy(&stage.home(), &good);
    let length = fs::metadata(good.join("journal.db")).unwrap().len();
    let mut kept = Vec::new();
    for length in [length - 1, length - PAGE, length - PAGE - 17, length / 2 + 100, length / 4, length / 8] {
        copy(&good, &stage.home());
        let file = fs::OpenOptions::new().write(true).open(stage.home().join("journal.db")).unwrap();
        file.set_len(length).unwrap();
        match salvage(&stage) {
            // Too little for a beginning: nothing is changed, and it is said what can be done.
            Ran { code: Some(5), stderr, .. } => {
                assert!(stderr.contains("no page of") && stderr.contains("bailey restore"), "{stderr}");
                assert_eq!(fs::metadata(stage.home().join("journal.db")).unwrap().len(), length);
                assert!(left(&stage).is_empty(), "{:?}", left(&stage));
                kept.push(0);
            }
            Ran { code: Some(0), .. } => {
                copy(&good, &stage.home());
                let file = fs::OpenOptions::new().write(true).open(stage.home().join("journal.db")).unwrap();
                file.set_len(length).unwrap();
                let told = holds(&stage, &format!("{length} bytes"), &whole);
                kept.push(told["kept"].as_u64().unwrap());
            }
            ran => panic!("{ran:?}"),
        }
    }
    println!("{kept:?} of {}", whole.len());
    assert!(kept.iter().any(|kept| *kept > 0));
    for length in [0, 1, 100] {
        copy(&good, &stage.home());
        let file = stage.home().join("journal.db");
        fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(length).unwrap();
        let ran = salvage(&stage);
        assert!(ran.code == Some(5) && ran.stderr.contains("nothing was changed"), "{length}: {ran:?}");
        assert_eq!(fs::metadata(&file).unwrap().len(), length);
        assert!(left(&stage).is_empty());
    }
}

/// A process that reads the journal, so that its log is not brought over; dropped, it is killed, and leaves
/// all as it is.
struct Reader(Child);

impl Reader {
    fn of(stage: &Stage) -> Self {
        let script = "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute('BEGIN')\nd.execute('SELECT count(*) FROM entry').fetchone()\nprint('reads', flush=True)\nsys.stdin.read()\n";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(stage.home().join("journal.db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        Self(child)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_torn_log_hides_one_page_and_not_what_came_after() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    task(&stage, "of the morning");
    settle(&stage);
    let reader = Reader::of(&stage);
    ["of noon", "of the evening"].iter().for_each(|words| task(&stage, words));
    drop(reader);
    let good = stage.folder().join("good");
    copy(&stage.home(), &good);
    let log = good.join("journal.db-wal");
    let frames = (fs::metadata(&log).unwrap().len() - 32) / (24 + PAGE);
    assert!(frames > 20, "{frames}");
    let whole = entries(&stage);
    let mut kept = Vec::new();
    let damages = [(0, 32), (32, 24), (32 + 24 + PAGE, 5000), (32 + (frames / 2) * (24 + PAGE) + 24, PAGE)];
    for (at, bytes) in damages {
        copy(&good, &stage.home());
        let log = stage.home().join("journal.db-wal");
        write_at(&log, at, &vec![0x5a; usize::try_from(bytes).unwrap()]);
        // To SQLite the log ends there, and all that came after is gone: the chain is shorter than what was
        // signed.
        let before = verify(&stage);
        assert_eq!(before.code, Some(5), "{before:?}");
        // Whoever looked may have brought the good part of the log over: what is salvaged is what is there
        // now.
        copy(&good, &stage.home());
        write_at(&log, at, &vec![0x5a; usize::try_from(bytes).unwrap()]);
        let told = holds(&stage, &format!("log at {at}"), &whole);
        kept.push(told["kept"].as_u64().unwrap());
    }
    println!("{kept:?} of {}", whole.len());
    assert!(kept.iter().filter(|kept| **kept == whole.len() as u64).count() >= 2, "{kept:?}");
}

#[test]
fn a_copy_of_the_home_has_what_the_torn_one_lacks() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    ["of the morning", "of noon"].iter().for_each(|words| task(&stage, words));
    assert_eq!(stage.ran(&["backup"]).code, Some(0));
    task(&stage, "of the evening");
    let whole = entries(&stage);
    settle(&stage);
    // Every page that names the session of the morning: its entries are gone with it, and the copy has them.
    let file = stage.home().join("journal.db");
    let good = stage.folder().join("good");
    copy(&stage.home(), &good);
    let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    let id = listed[2]["id"].as_str().unwrap().as_bytes().to_vec();
    let tear = || {
        let bytes = fs::read(&file).unwrap();
        let names = |page: &[u8]| page.windows(id.len()).any(|window| window == id);
        let torn = bytes.chunks(PAGE as usize).enumerate().filter(|(_, page)| names(page));
        let torn: Vec<u64> = torn.map(|(number, _)| number as u64).collect();
        assert!(torn.len() > 1, "{torn:?}");
        torn.iter().for_each(|number| write_at(&file, number * PAGE, &[0; PAGE as usize]));
    };
    settle(&stage);
    tear();
    let told = holds(&stage, "the morning", &whole);
    assert_eq!(told["kept"].as_u64().unwrap(), whole.len() as u64, "{told}");
    assert_eq!(told["copies"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(titles(&stage), ["of the evening", "of noon", "of the morning"]);
    // The control: without the copy the same damage costs entries.
    copy(&good, &stage.home());
    fs::remove_dir_all(stage.home().join("backups")).unwrap();
    tear();
    let ran = salvage(&stage);
    assert!(ran.code == Some(5) || ran.lines()[0]["kept"].as_u64().unwrap() < whole.len() as u64, "{ran:?}");
}

#[test]
fn what_was_removed_does_not_come_back_from_a_copy() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    ["of the canary", "of noon"].iter().for_each(|words| task(&stage, words));
    assert_eq!(stage.ran(&["backup"]).code, Some(0));
    let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
    assert_eq!(stage.ran(&["sessions", "rm", "--yes", listed[1]["id"].as_str().unwrap()]).code, Some(0));
    settle(&stage);
    let has = |stage: &Stage| {
        let bytes = fs::read(stage.home().join("journal.db")).unwrap();
        bytes.windows(13).any(|window| window == b"of the canary")
    };
    assert!(!has(&stage));
    let pages = fs::metadata(stage.home().join("journal.db")).unwrap().len() / PAGE;
    let zeroes = vec![0; usize::try_from(pages / 2 * PAGE).unwrap()];
    write_at(&stage.home().join("journal.db"), 0, &zeroes);
    let ran = salvage(&stage);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Something was taken from the copy, which still has it.
    assert_eq!(ran.lines()[0]["copies"].as_array().unwrap().len(), 1, "{ran:?}");
    assert_eq!(verify(&stage).code, Some(0));
    assert_eq!(titles(&stage), ["of noon"]);
    assert!(!has(&stage));
}

#[test]
fn tearing_a_journal_on_purpose_hides_nothing_that_was_signed() {
    let stage = made();
    let good = stage.folder().join("good");
    let key = stage.ran(&["audit", "key"]).stdout.split_whitespace().next().unwrap().to_owned();
    let whole = entries(&stage);
    settle(&stage);
    copy(&stage.home(), &good);
    // Whoever can write the file takes the page of the last entries out, and has the owner salvage.
    let tear = |stage: &Stage| {
        let script = "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute('PRAGMA journal_mode=DELETE')\nd.execute('DELETE FROM payload WHERE seq > ?', (int(sys.argv[2]),))\nd.execute('DELETE FROM entry WHERE seq > ?', (int(sys.argv[2]),))\nd.execute('DELETE FROM checkpoint WHERE entries > ?', (int(sys.argv[2]),))\nd.execute('DELETE FROM effect')\nd.commit()\n";
        let cut = (whole.len() - 8).to_string();
        let done = Command::new("python3")
            .args(["-c", script])
            .arg(stage.home().join("journal.db"))
            .arg(cut)
            .status()
            .unwrap();
        assert!(done.success());
        write_at(&stage.home().join("journal.db"), 0, &[0; 100]);
    };
    tear(&stage);
    let told = holds(&stage, "on purpose", &whole);
    assert_eq!(told["kept"].as_u64().unwrap(), whole.len() as u64 - 8);
    // It is in the chain for good, and whoever has the first key is told that it is another line.
    let entry = stage.trail().into_iter().find(|it| it["type"] == "salvaged").unwrap();
    assert_eq!(entry["known"], whole.len().to_string());
    assert_eq!(told["new_keys"], true);
    let other = stage.ran(&["audit", "verify", "--key", &key]);
    assert!(other.code == Some(1) && other.stderr.contains("its key was made anew"), "{other:?}");
    let shown = stage.ran(&["audit", "verify"]);
    assert!(
        shown.stdout.contains(&format!("{} entries were there when checkpoint", whole.len())),
        "{shown:?}"
    );

    // The control: where what was signed is taken away with it, nobody can say that there was more.
    copy(&good, &stage.home());
    tear(&stage);
    fs::remove_file(stage.home().join("journal.key")).unwrap();
    let ran = salvage(&stage);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.lines()[0]["known"].as_u64().unwrap(), whole.len() as u64 - 8);
    assert!(ran.lines()[0]["signed"].is_null());
    // But that it was salvaged stays, and the first key, kept elsewhere, still tells.
    assert_eq!(stage.trail().iter().filter(|it| it["type"] == "salvaged").count(), 1);
    assert_eq!(stage.ran(&["audit", "verify", "--key", &key]).code, Some(1));
}

#[test]
fn a_home_in_use_and_a_journal_that_is_whole_are_left_alone() {
    let stage = made();
    let whole = salvage(&stage);
    assert!(whole.code == Some(1) && whole.stderr.contains("is whole"), "{whole:?}");
    assert!(left(&stage).is_empty());
    let daemon = Daemon::start(&stage);
    let used = salvage(&stage);
    assert!(used.code == Some(1) && used.stderr.contains("bailey stop"), "{used:?}");
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
    let used = salvage(&stage);
    assert!(used.code == Some(1) && used.stderr.contains("in use"), "{used:?}");
    gate.open();
    assert!(run.wait().unwrap().success());
    assert!(left(&stage).is_empty());
}

#[test]
fn a_salvage_killed_at_any_moment_leaves_the_torn_journal_or_the_new_one() {
    let stage = made();
    let good = stage.folder().join("good");
    write_at(&stage.home().join("journal.db"), 0, &[0; 100]);
    copy(&stage.home(), &good);
    let torn = fs::read(good.join("journal.db")).unwrap();
    // How long a whole one takes here.
    let begin = std::time::Instant::now();
    assert_eq!(salvage(&stage).code, Some(0));
    let all = begin.elapsed();
    let mut seen = [0, 0];
    for step in 0..24 {
        copy(&good, &stage.home());
        let mut child =
            stage.bailey(&["audit", "recover"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(all * step / 24);
        child.kill().unwrap();
        child.wait().unwrap();
        let found = verify(&stage);
        match found.code {
            Some(0) => {
                assert_eq!(titles(&stage).len(), 3);
                seen[1] += 1;
            }
            Some(5) => {
                assert_eq!(fs::read(stage.home().join("journal.db")).unwrap(), torn);
                // And the next one is done, and leaves nothing of this one.
                assert_eq!(salvage(&stage).code, Some(0));
                seen[0] += 1;
            }
            _ => panic!("{found:?}"),
        }
        assert_eq!(left(&stage).len(), 1, "{:?}", left(&stage));
    }
    println!("{} left the torn one, {} the new one", seen[0], seen[1]);
    assert!(seen[0] > 0);
}

#[test]
fn a_full_disk_leaves_the_torn_journal_as_it_was() {
    let stage = made();
    write_at(&stage.home().join("journal.db"), 0, &[0; 100]);
    let bytes = fs::metadata(stage.home().join("journal.db")).unwrap().len();
    let small = stage.folder().join("small");
    fs::create_dir(&small).unwrap();
    let room = format!("size={}k", bytes / 1024 + 96);
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &room, "none"]).arg(&small).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return println!("SKIPPED: no small file system can be mounted here");
    }
    let home: PathBuf = small.join("home");
    fs::create_dir(&home).unwrap();
    for name in ["journal.db", "journal.key", "config.toml"] {
        fs::copy(stage.home().join(name), home.join(name)).unwrap();
    }
    let torn = fs::read(home.join("journal.db")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bailey"));
    let ran = Ran::of(command.arg("--home").arg(&home).args(["audit", "recover"]).output().unwrap());
    let after = fs::read(home.join("journal.db")).unwrap();
    let left: Vec<_> = fs::read_dir(&home).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(Command::new("umount").arg(&small).status().unwrap().success());
    assert!(ran.code != Some(0) && ran.stderr.contains("nothing was changed"), "{ran:?}");
    assert_eq!(after, torn);
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("salvag")), "{left:?}");
    // The control: with room it is done.
    assert_eq!(salvage(&stage).code, Some(0));
}
