//! By a clock that the test moves: what is due each day, and what was due while nobody was there.

use super::home;
use crate::{
    attacks::actor::controls,
    backup::Mounted,
    daemon::{end, pid},
    stage::{Ran, Stage},
};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::Value;
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;
/// Many looks of the daemon at its clock.
const A_WHILE: Duration = Duration::from_secs(2);
/// 2035-03-10, 11:00 UTC.
const BEGIN: u64 = 2_057_137_200;

/// A stage whose program goes by a clock of ours.
struct Moved {
    stage: Stage,
    model: ModelServer,
    /// What the clock showed when it was set, and when that was.
    set: std::cell::Cell<(u64, Instant)>,
}

impl Moved {
    fn new(script: Vec<Reply>) -> Self {
        let stage = Stage::new(&[("a.txt", "a\n")]);
        let model = home(&stage, script);
        let moved = Self { stage, model, set: std::cell::Cell::new((BEGIN, Instant::now())) };
        moved.set(BEGIN);
        moved
    }

    fn file(&self) -> PathBuf {
        self.stage.folder().join("clock")
    }

    /// Sets the clock to a second since 1970, on or back, in one step.
    fn set(&self, to: u64) {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let new = self.file().with_extension("new");
        // As long each time, so that it can be overwritten where it is: who has it open looks into this very
        // file.
        fs::write(&new, format!("{:020}", to - now)).unwrap();
        match fs::File::options().write(true).open(self.file()) {
            // At once, and never empty in between: whoever looked then would see the machine's own clock.
            Ok(mut there) => there.write_all(&fs::read(new).unwrap()).unwrap(),
            Err(_) => fs::rename(new, self.file()).unwrap(),
        }
        self.set.set((to, Instant::now()));
    }

    /// Sets it on or back by so much.
    fn go(&self, by: i64) {
        let (to, since) = self.set.get();
        self.set((to + since.elapsed().as_secs()).checked_add_signed(by).unwrap());
    }

    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.stage.project()).arg("--home").arg(self.stage.home()).args(words);
        command.env("TZ", "UTC").env("BAILEY_CONTROL_CLOCK", self.file()).stdin(Stdio::null());
        command
    }

    fn ran(&self, words: &[&str]) -> Ran {
        Ran::of(self.command(controls(), words).output().unwrap())
    }

    fn start(&self) {
        let ran = self.ran(&["start"]);
        assert!(ran.code == Some(0), "{ran:?}");
    }

    fn stop(&self) {
        let ran = self.ran(&["stop", "--patience", "0"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "{what} did not come: {}", self.ran(&["logs"]).stdout);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The copies of the home that are whole, by their names.
    fn copies(&self) -> Vec<String> {
        let entries = fs::read_dir(self.stage.home().join("backups")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    fn days(&self) -> Vec<String> {
        self.copies().iter().map(|name| name[..8].to_owned()).collect()
    }

    /// The moments for which a task was said.
    fn said(&self) -> Vec<String> {
        let trail = self.ran(&["--json", "audit", "log", "-n", "1000000"]).lines();
        let said = trail.iter().filter(|it| it["type"] == "accepted" && it["key"].is_string());
        said.map(|it| it["key"].as_str().unwrap().to_owned()).collect()
    }

    fn missed(&self) -> Vec<Value> {
        self.noted("missed").into_iter().map(|it| it["times"].clone()).collect()
    }

    /// What the daemon noted of this.
    fn noted(&self, what: &str) -> Vec<Value> {
        let logs = self.ran(&["--json", "logs", "-n", "1000"]).lines();
        logs.into_iter().filter(|it| it["what"] == what).collect()
    }

    /// Has the home copied each day.
    fn copy_daily(&self) {
        let config = self.stage.home().join("config.toml");
        let own = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("{own}\n[backup]\ndaily = true\n")).unwrap();
    }
}

#[test]
fn a_copy_is_made_each_day_by_the_clock_and_brings_the_home_back() {
    let moved = Moved::new(vec![Reply::text("seen"), Reply::text("seen again")]);
    moved.copy_daily();
    assert_eq!(moved.ran(&["run", "of the first day"]).code, Some(0));
    moved.start();
    moved.wait("the first copy", || moved.days() == ["20350310"]);
    // Within the day there is no other one, however the clock goes to and fro.
    for by in [HOUR as i64, 10 * HOUR as i64, -(11 * HOUR as i64), 23 * HOUR as i64] {
        moved.go(by);
        thread::sleep(A_WHILE);
        assert_eq!(moved.days(), ["20350310"], "{by}");
    }
    moved.go(HOUR as i64 + 60);
    moved.wait("the second copy", || moved.days() == ["20350310", "20350311"]);
    // Put back into a day that has its copy, it makes none.
    moved.go(-(DAY as i64));
    thread::sleep(A_WHILE);
    moved.go(DAY as i64);
    thread::sleep(A_WHILE);
    assert_eq!(moved.days(), ["20350310", "20350311"]);
    for day in 12..=16 {
        moved.go(DAY as i64 + 60);
        let is_made = || moved.days().last().is_some_and(|last| *last == format!("203503{day}"));
        moved.wait("the day's copy", is_made);
        thread::sleep(Duration::from_millis(500));
    }
    // The last five are kept, one of each day.
    assert_eq!(moved.days(), ["20350312", "20350313", "20350314", "20350315", "20350316"]);
    assert_eq!(moved.noted("copied").len(), 7, "one for each day");
    moved.stop();

    // One that the clock made is a home.
    assert_eq!(moved.ran(&["run", "of the last day"]).code, Some(0));
    let titles = || {
        let sessions = moved.ran(&["--json", "sessions", "list", "--all"]).lines();
        sessions.iter().map(|it| it["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(titles(), ["of the last day", "of the first day"]);
    let copy = moved.stage.home().join("backups").join(&moved.copies()[1]);
    let restored = moved.ran(&["restore", "--yes", copy.to_str().unwrap()]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(titles(), ["of the first day"]);
    let verified = moved.ran(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let session =
        moved.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let shown = moved.ran(&["sessions", "show", &session]).stdout;
    assert!(shown.contains("of the first day") && shown.contains("seen"), "{shown}");
    assert_eq!(moved.days().len(), 5, "its copies go on");
}

#[test]
fn what_was_due_three_times_is_done_once_and_a_clock_put_back_does_nothing_twice() {
    let moved = Moved::new((0..9).map(|_| Reply::text("done")).collect());
    let ran = moved.ran(&["schedule", "add", "noon", "--cron", "0 12 * * *", "look around"]);
    assert!(ran.stderr.contains("2035-03-10 12:00"), "{ran:?}");
    moved.start();
    thread::sleep(A_WHILE);
    assert_eq!(moved.said(), [""; 0]);
    moved.go(HOUR as i64);
    moved.wait("noon", || moved.said() == ["schedule:noon:2035-03-10T12:00:00Z"]);
    moved.stop();
    // Three times nobody is there.
    moved.go(3 * DAY as i64);
    moved.start();
    let last = "schedule:noon:2035-03-13T12:00:00Z";
    moved.wait("the last of three", || moved.said().last().is_some_and(|said| said == last));
    thread::sleep(A_WHILE);
    assert_eq!(
        (moved.said().len(), moved.missed()),
        (2, vec![2.into()]),
        "what came before the last was missed"
    );
    // Back by two days, past times that were done; and on to where it was.
    for by in [-(2 * DAY as i64), HOUR as i64, DAY as i64, 23 * HOUR as i64] {
        moved.go(by);
        thread::sleep(A_WHILE);
        assert_eq!(moved.said().len(), 2, "{by}: {:?}", moved.said());
    }
    // The control: the next one is done.
    moved.go(DAY as i64);
    moved.wait("the next noon", || moved.said().len() == 3);
    assert_eq!(moved.said()[2], "schedule:noon:2035-03-14T12:00:00Z");
    assert_eq!((moved.missed().len(), moved.model.requests().len()), (1, 3));
    moved.stop();
}

/// Tasks that take longer than from one time to the next do not become more and more.
#[test]
fn a_time_whose_predecessor_still_runs_is_skipped_and_told() {
    let gate = Gate::default();
    let held = || Reply::Held(gate.clone(), Message::text("at last"));
    let moved = Moved::new(vec![held(), held(), Reply::text("done")]);
    let ran = moved.ran(&["schedule", "add", "noon", "--cron", "0 12 * * *", "look around"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    moved.start();
    moved.go(HOUR as i64 + 60);
    moved.model.wait_for(1);
    let first = ["schedule:noon:2035-03-10T12:00:00Z"];
    moved.wait("noon", || moved.said() == first);
    for day in 1..=2 {
        moved.go(DAY as i64);
        moved.wait("that it is skipped", || moved.noted("skipped").len() == day);
        thread::sleep(A_WHILE);
        assert_eq!((moved.said().len(), moved.noted("skipped").len()), (1, day), "once each");
    }
    let listed = || moved.ran(&["--json", "schedule", "list"]).lines().remove(0);
    assert_eq!(listed()["skipped"], 2);
    assert_eq!(moved.noted("skipped")[0]["session"], listed()["session"]);
    assert!(
        moved.ran(&["schedule", "list"]).stdout.contains("skipped 2 times because that session still ran")
    );
    // A kill changes nothing of that: it goes on, and is the predecessor still.
    let status = || moved.ran(&["--json", "status"]).lines().remove(0);
    end(pid(&status()), "-KILL");
    moved.wait("its end", || status()["pid"].is_null());
    moved.go(DAY as i64);
    moved.start();
    moved.wait("that it is skipped", || moved.noted("skipped").len() == 3);
    thread::sleep(A_WHILE);
    assert_eq!(moved.said(), first);
    // The control: when it has ended, the next one is done, and nothing is to be told any more.
    gate.open();
    moved
        .wait("its end", || status()["sessions"].as_array().unwrap().iter().all(|it| it["working"] == false));
    moved.go(DAY as i64);
    moved.wait("the next noon", || moved.said().last().unwrap() == "schedule:noon:2035-03-14T12:00:00Z");
    moved.wait("its note", || listed()["skipped"] == 0);
    moved.stop();
}

/// However many there are: those that wait for their turn to be begun again after a kill are not over.
#[test]
fn none_of_many_that_were_cut_off_runs_beside_its_predecessor() {
    let gate = Gate::default();
    let many = 7;
    let held = || Reply::Held(gate.clone(), Message::text("at last"));
    let moved = Moved::new((0..4 * many).map(|_| held()).collect());
    for number in 0..many {
        let name = format!("noon-{number}");
        let ran = moved.ran(&["schedule", "add", &name, "--cron", "0 12 * * *", "look around"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    moved.start();
    moved.go(HOUR as i64 + 60);
    moved.model.wait_for(many);
    let status = || moved.ran(&["--json", "status"]).lines().remove(0);
    let noted = || moved.ran(&["--json", "schedule", "list"]).lines();
    moved.wait("the notes", || noted().iter().all(|it| !it["session"].is_null()));
    end(pid(&status()), "-KILL");
    moved.wait("its end", || status()["pid"].is_null());
    moved.go(DAY as i64);
    moved.start();
    moved.wait("that each is skipped", || moved.noted("skipped").len() >= many);
    thread::sleep(A_WHILE);
    assert_eq!((moved.said().len(), moved.noted("skipped").len()), (many, many), "{:#?}", status());
    gate.open();
    moved.stop();
}

#[test]
fn what_was_due_more_often_than_anybody_counts_is_done_once() {
    let moved = Moved::new((0..5).map(|_| Reply::text("done")).collect());
    let ran = moved.ran(&["schedule", "add", "often", "--cron", "* * * * *", "look around"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Two days later, at the beginning of a minute.
    moved.set(BEGIN + 2 * DAY + 2);
    moved.start();
    let last = ["schedule:often:2035-03-12T11:00:00Z"];
    moved.wait("the last of two days", || moved.said() == last);
    thread::sleep(A_WHILE);
    assert_eq!(moved.said(), last);
    assert_eq!(moved.missed(), ["1000 or more"]);
    // The control: the next minute is done.
    moved.go(60);
    moved.wait("the next minute", || moved.said().len() == 2);
    moved.stop();
}

/// A clock that was years ahead has left five copies: they keep nobody from having one of today, and go
/// before it.
#[test]
fn copies_of_a_clock_that_was_ahead_make_room_for_those_of_today() {
    let moved = Moved::new(Vec::new());
    moved.copy_daily();
    let backups = moved.stage.home().join("backups");
    for day in 1..=5 {
        assert_eq!(moved.ran(&["backup"]).code, Some(0));
        let copy = backups.join(moved.copies().remove(0));
        fs::rename(copy, backups.join(format!("2040010{day}T000000Z"))).unwrap();
    }
    assert_eq!(moved.copies().len(), 5);
    moved.start();
    moved.wait("the copy of today", || moved.days()[0] == "20350310");
    thread::sleep(A_WHILE);
    assert_eq!(moved.days(), ["20350310", "20400102", "20400103", "20400104", "20400105"]);
    assert_eq!(moved.noted("copied").len(), 1, "one is enough");
    // One that this daemon made counts also where the clock is put back a little.
    moved.go(-(HOUR as i64));
    thread::sleep(A_WHILE);
    assert_eq!(moved.noted("copied").len(), 1);
    moved.go(HOUR as i64);
    for day in 11..=15 {
        moved.go(DAY as i64 + 60);
        moved.wait("the day's copy", || moved.days().contains(&format!("203503{day}")));
        thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(moved.days(), ["20350311", "20350312", "20350313", "20350314", "20350315"]);
    // A name of the owner's own is kept for good.
    fs::rename(backups.join(&moved.copies()[0]), backups.join("of-the-spring")).unwrap();
    moved.go(DAY as i64 + 60);
    moved.wait("the day's copy", || moved.days().contains(&"20350316".to_owned()));
    assert!(backups.join("of-the-spring/SHA256SUMS").exists());
    moved.stop();
}

#[test]
fn a_copy_without_room_is_not_begun_and_tried_again_later_and_later() {
    let moved = Moved::new(Vec::new());
    let home = moved.stage.home();
    let Some(_mounted) = Mounted::at(&home, "64m") else { return };
    let _model = super::home(&moved.stage, Vec::new());
    moved.copy_daily();
    // More than half of what there is.
    let large = home.join("large");
    fs::write(&large, vec![b'#'; 40 << 20]).unwrap();
    moved.start();
    let tried = || moved.noted("not_copied");
    moved.wait("the first attempt", || tried().len() == 1);
    let why = tried()[0]["why"].as_str().unwrap().to_owned();
    assert!(why.contains("a backup needs 4") && why.contains("MiB are free"), "{why}");
    let left: Vec<_> = fs::read_dir(home.join("backups")).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    // After an hour, and then after two.
    for (minutes, attempts) in [(50, 1), (11, 2), (61, 2), (60, 3)] {
        // The wait begins when the daemon has looked at what came of the last one.
        thread::sleep(A_WHILE);
        moved.go(minutes * 60);
        thread::sleep(A_WHILE);
        moved.wait("the attempt", || tried().len() >= attempts);
        assert_eq!(tried().len(), attempts, "{minutes} minutes later");
    }
    // The control: with room there is one.
    fs::remove_file(large).unwrap();
    moved.go(4 * HOUR as i64 + 60);
    moved.wait("a copy", || moved.days() == ["20350310"]);
    moved.stop();
}

/// It was tried, and told, at each look at the clock.
#[test]
fn one_that_cannot_be_begun_is_tried_later_and_later_and_done_once_it_can() {
    let moved = Moved::new(vec![Reply::text("done")]);
    let _model = super::home(&moved.stage, vec![Reply::text("done")]);
    let elsewhere = moved.stage.folder().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let directory = elsewhere.display().to_string();
    let ran = moved.ran(&["schedule", "add", "-C", &directory, "each", "--cron", "* * * * *", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fs::remove_dir(&elsewhere).unwrap();
    moved.start();
    moved.go(60);
    let tried = || moved.noted("not_begun");
    moved.wait("the first attempt", || tried().len() == 1);
    assert!(tried()[0]["why"].as_str().unwrap().contains("elsewhere"), "{:?}", tried());
    for (seconds, attempts) in [(5, 1), (10, 2), (20, 2), (12, 3)] {
        thread::sleep(A_WHILE);
        moved.go(seconds);
        thread::sleep(A_WHILE);
        moved.wait("the attempt", || tried().len() >= attempts);
        assert_eq!(tried().len(), attempts, "{seconds} s later");
    }
    // What cannot be read at all is told once for as long as it is so.
    let file = moved.stage.home().join("schedules.json");
    let written = fs::read(&file).unwrap();
    fs::write(&file, "{").unwrap();
    thread::sleep(A_WHILE);
    assert_eq!(moved.noted("no_schedules").len(), 1);
    fs::write(&file, written).unwrap();
    // The control: nothing was lost, and it is done.
    fs::create_dir(&elsewhere).unwrap();
    moved.go(61);
    moved.wait("its task", || moved.said().len() == 1);
    moved.stop();
}

/// The released program has the clock of the machine, whatever the environment says.
#[test]
fn only_the_program_for_tests_has_its_clock_moved() {
    let moved = Moved::new(Vec::new());
    let year = |program: &Path| {
        let words =
            ["schedule", "add", program.file_name().unwrap().to_str().unwrap(), "--cron", "@daily", "x"];
        let ran = Ran::of(moved.command(program, &words).output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stderr.contains(" 2035-03-11 00:00")
    };
    assert!(!year(Path::new(env!("CARGO_BIN_EXE_bailey"))));
    assert!(year(controls()), "the control");
}
