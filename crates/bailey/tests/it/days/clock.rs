//! Days on which the clock is wrong, or jumps because the machine slept. The clock is the real program's: a
//! library in front of the C library's adds what a file says (probes/clock.c).

use super::{RUN, edit_then, net::point, nothing_is_lost, ran, session, tells};
use crate::{
    models::below,
    relay::{self, Death, Mortal, Tls},
    stage::{Ran, Stage},
};
use bailey_testkit::{ModelServer, Reply};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::FileExt as _,
    path::PathBuf,
    process::{Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

const HOUR: i64 = 60 * 60;
/// 2020-01-01, before this program and every certificate of these tests.
const PAST: i64 = 1_577_836_800;

/// How far it is from now to this time, in seconds; both are counted from 1970.
fn until(time: i64) -> i64 {
    time - i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// A clock that is so many seconds wrong.
struct Wrong {
    library: PathBuf,
    seconds: fs::File,
    file: PathBuf,
}

impl Wrong {
    /// A clock on this stage; there is one for each.
    fn by(seconds: i64, stage: &Stage) -> Self {
        let (library, file) = (stage.folder().join("clock.so"), stage.folder().join("seconds"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/probes/clock.c");
        let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        assert!(made.unwrap().success(), "cc, which linked this test, makes a library");
        let wrong = Self { library, seconds: fs::File::create(&file).unwrap(), file };
        wrong.set(seconds);
        wrong
    }

    fn shows(time: i64, stage: &Stage) -> Self {
        Self::by(until(time), stage)
    }

    fn set(&self, seconds: i64) {
        self.seconds.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    fn bailey(&self, stage: &Stage, arguments: &[&str]) -> Command {
        let mut command = stage.bailey(arguments);
        command.env("LD_PRELOAD", &self.library).env("WRONG_CLOCK", &self.file);
        command
    }

    fn ran(&self, stage: &Stage, arguments: &[&str]) -> Ran {
        Ran::of(self.bailey(stage, arguments).output().unwrap())
    }
}

#[test]
fn a_clock_that_is_past_is_told_and_nothing_is_lost() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let server = edit_then(&stage, |_| Reply::text("done"));
    let past = Wrong::shows(PAST, &stage);
    let ended = past.ran(&stage, &RUN);
    tells(&ended, 0, &["clock shows 2020-01-01", "which is past", "timedatectl"]);
    // The project's files are younger than that clock: nobody can tell that they did not change meanwhile. So
    // the session's changes are not merged, but they are there.
    let session = session(&stage);
    let patch = ran(&stage, &["sessions", "diff", &session]);
    assert!(patch.stdout.contains("the clock was put back; apply by hand"), "{patch:?}");
    let told = ran(&stage, &["--json", "sessions", "diff", &session]).lines();
    fs::write(stage.folder().join("patch"), told.iter().find_map(|event| event["diff"].as_str()).unwrap())
        .unwrap();
    stage.git(&["apply", stage.folder().join("patch").to_str().unwrap()]);
    assert_eq!(stage.read("a.txt"), "two\n");
    stage.write("a.txt", "one\n");
    assert_eq!(
        stage.trail()[0]["time"].as_str().unwrap()[..10],
        *"2020-01-01",
        "the control: it was its clock"
    );
    assert_eq!(stage.ran(&RUN).stderr, "", "the control: of a clock that is right nothing is said");
    // Now the journal knows better.
    for wrong in [-24 * HOUR, until(PAST)] {
        past.set(wrong);
        tells(&past.ran(&stage, &RUN), 0, &["behind the journal's newest entry of 20", "timedatectl"]);
    }
    assert_eq!(ran(&stage, &["audit", "verify"]).code, Some(0));
    assert_eq!(ran(&stage, &["--json", "sessions", "list", "--all"]).lines().len(), 4, "none is lost");
    drop(server);
}

#[test]
fn doctor_finds_a_clock_that_is_past_or_behind() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _server = edit_then(&stage, |_| Reply::text("done"));
    assert_eq!(stage.ran(&RUN).code, Some(0));
    let clocks = |wrong: &Wrong| {
        let ran = wrong.ran(&stage, &["--json", "doctor", "--offline"]);
        let found = ran.lines().into_iter().filter(|line| line["check"] == "clock");
        found.map(|line| (line["grade"].clone(), line["says"].to_string(), line["fix"].to_string())).collect()
    };
    let behind: Vec<_> = clocks(&Wrong::by(-HOUR, &stage));
    assert!(behind.len() == 2 && behind[0].0 == "ok" && behind[1].0 == "warn", "{behind:?}");
    assert!(behind[1].1.contains("behind the journal's newest entry"), "{behind:?}");
    let past: Vec<_> = clocks(&Wrong::shows(PAST, &stage));
    assert!(past[0].0 == "fail" && past[0].1.contains("2020-01-01"), "{past:?}");
    assert!([&behind[1], &past[0]].iter().all(|found| found.2.contains("timedatectl")), "{past:?}");
    let right: Vec<_> = clocks(&Wrong::by(0, &stage));
    assert!(right.len() == 1 && right[0].0 == "ok", "the control: {right:?}");
}

#[test]
fn a_certificate_that_a_wrong_clock_refuses_is_told_with_the_clock() {
    let stage = Stage::new(&[]);
    let server = ModelServer::always(Reply::text("safe"));
    let tls = Tls::start("127.0.0.1", (2021, 4000), relay::of(&server), stage.folder());
    point(&stage, &format!("https://{}", tls.address()), "");
    let run = |wrong: i64| {
        let wrong = Wrong::shows(wrong, &stage);
        Ran::of(wrong.bailey(&stage, &RUN).env("SSL_CERT_FILE", &tls.authority).output().unwrap())
    };
    tells(&run(PAST), 4, &["valid only from 2021-01-01", "clock shows 2020-01-01", "timedatectl"]);
    assert_eq!(server.requests().len(), 0);
    assert_eq!(run(PAST + 5 * 366 * 24 * HOUR).code, Some(0), "the control: a clock that is less wrong");
}

/// The machine sleeps for eight hours in the middle of a command, and the connection that was kept to the
/// model is dead when it wakes up, whether that is said or not.
#[test]
fn eight_hours_asleep_and_the_kept_connection_is_dead() {
    for death in [Death::Reset, Death::Silence] {
        let stage = Stage::new(&[("a.txt", "one\n")]);
        let command = json!({ "command": "echo beg''un; sleep 2; echo aw''ake" });
        let server = edit_then(&stage, move |request| match request.body.contains("awake") {
            true => Reply::text("done"),
            false => Reply::calls([("c1", "command_run", command.clone())]),
        });
        let way = Mortal::start(&server);
        point(&stage, &way.base_url(), "[limits]\nfirst_byte_seconds = 2\n");
        let wrong = Wrong::by(0, &stage);
        let mut child =
            wrong.bailey(&stage, &RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = lines.by_ref().map(|line| line.unwrap()).any(|line| line.contains("begun"));
        assert!(begun, "{death:?}");
        assert_eq!((way.connections(), server.requests().len()), (1, 2), "the control: it was kept");
        let processes = below(child.id());
        let send = |signal| {
            for id in &processes {
                kill(Pid::from_raw(i32::try_from(*id).unwrap()), signal).ok();
            }
        };
        send(Signal::SIGSTOP);
        wrong.set(8 * HOUR);
        way.die(death);
        send(Signal::SIGCONT);
        let told: String = lines.map(|line| line.unwrap() + "\n").collect();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{death:?}: {told}");
        assert_eq!(way.connections(), 2, "{death:?}: it was dead");
        let waits = usize::from(matches!(death, Death::Silence));
        assert_eq!(told.matches("trying again").count(), waits, "{death:?}: {told}");
        let trail = stage.trail();
        let second =
            |entry: &serde_json::Value| entry["time"].as_str().unwrap()[11..13].parse::<i64>().unwrap();
        assert_eq!(
            (second(&trail[trail.len() - 1]) - second(&trail[0])).rem_euclid(24),
            8,
            "{death:?}: it slept"
        );
        nothing_is_lost(&stage);
    }
}
