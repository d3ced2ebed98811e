//! `bailey sandbox run` prints what its command prints as it comes: within the limit, without secrets.

use crate::stage::Stage;
use bailey_protocol::Limits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// For what comes at once, or never.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "hunter2-Zq9!xv7Lm";

/// Prints a piece, waits at the gate, and prints what comes through it.
const GATED: &str =
    "mkfifo /tmp/gate && printf 'first hunter2-Zq' && printf 'note\n' >&2 && cat /tmp/gate && echo last";

fn sandbox(stage: &Stage, options: &[&str], line: &str) -> Command {
    let mut command =
        stage.bailey(&[options, &["sandbox", "run", "--keep", "--", "sh", "-c", line]].concat());
    command.env("ANTHROPIC_API_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What can be read now, once there is something; nothing when nothing came in time.
fn next(out: &mut ChildStdout, patience: Duration) -> String {
    let wait = Timespec { tv_sec: patience.as_secs().try_into().unwrap(), tv_nsec: 0 };
    if poll(&mut [PollFd::new(out, PollFlags::IN)], Some(&wait)).unwrap() == 0 {
        return String::new();
    }
    let mut bytes = vec![0; 1 << 16];
    let read = out.read(&mut bytes).unwrap();
    String::from_utf8(bytes[..read].to_vec()).unwrap()
}

/// The gate of the only session, from outside: once its command is there.
fn gate(stage: &Stage) -> File {
    let found = || -> Option<PathBuf> {
        let session = fs::read_dir(stage.home().join("sessions")).ok()?.flatten().next()?;
        Some(session.path().join("tmp/gate")).filter(|gate| gate.exists())
    };
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(gate) = found() {
            return File::options().write(true).open(gate).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no command came to its gate");
}

fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn output_is_printed_while_the_command_waits() {
    let stage = Stage::new(&[]);
    let mut child = sandbox(&stage, &[], GATED).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut seen = String::new();
    while !seen.contains("first ") {
        let more = next(&mut out, PATIENCE);
        assert_ne!(more, "", "the first part comes before the command goes on: {seen:?}");
        seen += &more;
    }
    assert_eq!(seen, "first ", "what may be the half of a secret is held back");
    gate(&stage).write_all(b"9!xv7Lm second\n").unwrap();
    out.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "first [redacted:ANTHROPIC_API_KEY] second\nlast\n");
    let (code, _, err) = ended(child);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("note\n"), "{err}");
}

#[test]
fn what_scripts_read_comes_at_the_end() {
    // The control: printed at the end, nothing is there while the command waits.
    let stage = Stage::new(&[]);
    let mut child = sandbox(&stage, &["--json"], GATED).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut gate = gate(&stage);
    assert_eq!(next(&mut out, Duration::ZERO), "");
    gate.write_all(b"9!xv7Lm second\n").unwrap();
    drop(gate);
    let mut seen = String::new();
    out.read_to_string(&mut seen).unwrap();
    let outcome: serde_json::Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(
        outcome["report"]["stdout"]["head"], "first [redacted:ANTHROPIC_API_KEY] second\nlast\n",
        "{outcome}"
    );
    assert_eq!(ended(child).0, Some(0));
}

#[test]
fn no_more_is_printed_than_the_limit() {
    let stage = Stage::new(&[]);
    let limit = usize::try_from(Limits::default().output_bytes).unwrap();
    let line = |bytes: usize| format!("head -c {bytes} /dev/zero | tr '\\0' x; echo the end");
    let (code, out, err) = ended(sandbox(&stage, &[], &line(3 * limit)).spawn().unwrap());
    assert_eq!((code, out.len()), (Some(0), limit));
    assert!(out.starts_with("xxx") && out.ends_with("xthe end\n"));
    let left_out = 2 * limit + "the end\n".len();
    assert!(err.contains(&format!("{left_out} bytes left out")), "{err}");
    // Control: what is within it is all there.
    let (code, out, err) = ended(sandbox(&stage, &[], &line(limit - 8)).spawn().unwrap());
    assert_eq!((code, out.len()), (Some(0), limit));
    assert!(!err.contains("left out"), "{err}");
}

#[test]
fn a_reader_that_goes_away_ends_the_command() {
    let stage = Stage::new(&[]);
    let mut child = sandbox(&stage, &[], "exec yes").spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    assert!(next(&mut out, PATIENCE).starts_with("y\n"));
    drop(out);
    let (code, _, err) = ended(child);
    assert_eq!(code, Some(141), "{err}");
    let outcomes = stage.trail().into_iter().filter(|entry| entry["type"] == "outcome");
    let statuses: Vec<_> = outcomes.map(|entry| entry["status"].clone()).collect();
    assert!(statuses.contains(&"cancelled".into()), "{statuses:?}");
}

#[test]
fn a_limit_that_ended_a_command_is_told_with_its_setting() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), "[limits]\ncommand_disk_mib = 1\n").unwrap();
    let line = "head -c 4194304 /dev/zero > large.bin";
    let ran = stage.ran(&["sandbox", "run", "--", "sh", "-c", line]);
    let told = ran.stderr.contains("disk limit of 1 MiB") && ran.stderr.contains("`command_disk_mib`");
    assert!(ran.code != Some(0) && told, "{ran:?}");
    // The control: within the limit nothing is said of it.
    let ran = stage.ran(&["sandbox", "run", "--", "sh", "-c", "head -c 1024 /dev/zero > small.bin"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("limit"), "{ran:?}");
}
