//! How a command begins and ends: what it inherits, what it hands back, and that nothing of it stays.

use crate::direct::direct;
use crate::house::{As, House, descendants, everyone};
use bailey_protocol::{Action, Blob, FileChange, Isolation, Level, Report, Status, Wall, WsPath};
use bailey_sandbox::{OutputStream, WorkError, worker::Request};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn exit_codes_and_signals_come_back() {
    for who in everyone() {
        let house = House::new(who);
        for (line, exit, signal) in [
            ("exit 0", Some(0), None),
            ("exit 3", Some(3), None),
            ("kill -9 $$", None, Some(9)),
            ("kill -TERM $$", None, Some(15)),
            ("sh -c 'exit 255'", Some(255), None),
        ] {
            let ran = house.sh(line).await;
            assert_eq!((ran.report().exit, ran.report().signal), (exit, signal), "{line}");
        }
    }
}

/// A program's process borrows the memory of one that waits beside it, which is not in anybody's way
/// afterwards.
#[tokio::test]
async fn a_program_leads_a_session_as_the_first_child() {
    for who in everyone() {
        let house = House::new(who);
        let mut command = house.command("");
        // Its number, parent, group and session (proc_pid_stat(5)).
        let look = "read -r pid name state of group session rest </proc/self/stat; echo $pid $of $group $session; sleep 0.2; \
                    for each in /proc/[0-9]*/comm; do read -r name <$each; echo -n \"$name \"; done";
        command.argv = ["bash", "-c", look].map(String::from).into();
        let text = house.run(&command, &Isolation::default()).await.ok();
        assert_eq!(text.trim_end(), "3 1 3 3\nbailey-init bash", "{who:?}");
        // Where there may be no process more, no other one waits beside it.
        command.argv = ["cat", "/proc/self/stat"].map(String::from).into();
        command.limits.pids = 1;
        for _ in 0..3 {
            let text = house.run(&command, &Isolation::default()).await.ok();
            let fields: Vec<&str> = text.split(' ').collect();
            let own = *fields.first().unwrap();
            assert!(["2", "3"].contains(&own), "{who:?}: {text}");
            assert_eq!((fields.get(3), fields.get(5)), (Some(&"1"), Some(&own)), "{who:?}: {text}");
        }
    }
}

/// It may be there yet when the program begins: stopped by that for ever, or killed before anything else.
#[tokio::test]
async fn a_program_s_end_is_its_own_whatever_becomes_of_its_neighbour() {
    for who in everyone() {
        let house = House::new(who);
        for signal in ["STOP", "KILL"] {
            for _ in 0..10 {
                house.ready().await;
                let ran = house.sh(&format!("kill -{signal} 2 2>/dev/null; echo here; exit 7")).await;
                let report = ran.report();
                assert_eq!((report.exit, report.signal), (Some(7), None), "{who:?} {signal}");
            }
        }
    }
}

/// The process that it borrows its memory from is sent elsewhere to end; it itself may run wherever this one
/// may.
#[tokio::test]
async fn a_program_may_run_on_every_processor() {
    let allowed = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.map(|list| list.trim().to_owned()).unwrap()
    };
    let outside = allowed(&std::fs::read_to_string("/proc/self/status").unwrap());
    for who in everyone() {
        let house = House::new(who);
        let mut command = house.command("");
        command.argv = ["cat", "/proc/self/status"].map(String::from).into();
        for _ in 0..5 {
            house.ready().await;
            let text = house.run(&command, &Isolation::default()).await.ok();
            assert_eq!(allowed(&text), outside, "{who:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let house = House::new(As::User);
    let mut command = house.command("");
    command.argv = vec!["no-such-program".into()];
    let ran = house.run(&command, &Isolation::default()).await;
    assert!(ran.reason().contains("`no-such-program` was not found"), "{}", ran.reason());
    command.argv = vec!["/etc/passwd".into()];
    let ran = house.run(&command, &Isolation::default()).await;
    assert!(ran.reason().contains("cannot be executed"), "{}", ran.reason());
    let mut command = house.command("true");
    command.cwd.0.push_str("/absent");
    let ran = house.run(&command, &Isolation::default()).await;
    assert!(ran.reason().contains("cannot be entered"), "{}", ran.reason());
}

#[tokio::test]
async fn the_environment_is_made_anew() {
    for who in everyone() {
        let house =
            House::with(who, |config| config.env = BTreeMap::from([("GIVEN".into(), "to all".into())]));
        let mut command = house.command("env");
        command.env = BTreeMap::from([("OWN".into(), "of this one".into())]);
        let text = house.run(&command, &Isolation::default()).await.ok();
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        let known = [
            "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "TERM", "PWD", "GIVEN", "OWN", "SHLVL", "_",
            "OLDPWD",
        ];
        let outside = std::process::Command::new("env").output().unwrap().stdout;
        let outside = String::from_utf8_lossy(&outside).into_owned();
        assert!(outside.contains("CARGO_MANIFEST_DIR="), "the control: there is more outside");
        for name in &names {
            let is_of_a_tool = name.starts_with("GIT_CONFIG_") || *name == "PYTHONDONTWRITEBYTECODE";
            assert!(known.contains(name) || is_of_a_tool, "{who:?} {name}");
        }
        assert!(text.contains("GIVEN=to all") && text.contains("OWN=of this one"));
        assert!(text.contains(&format!("HOME={}", house.home.display())));
    }
}

#[tokio::test]
async fn nothing_is_inherited_but_three_streams() {
    for who in everyone() {
        let house = House::new(who);
        let text = house.sh("ls /proc/self/fd | sort -n | tr '\\n' ' '").await.ok();
        // The fourth is the listing's own.
        assert_eq!(text.trim(), "0 1 2 3", "{who:?}");
        assert_eq!(house.sh("readlink /proc/self/fd/0").await.ok(), "/dev/null");
    }
}

#[tokio::test]
async fn standard_input_is_what_the_command_says() {
    let house = House::new(As::User);
    let mut command = house.command("cat; echo end");
    command.stdin = Some(Blob::from("given\n"));
    assert_eq!(house.run(&command, &Isolation::default()).await.ok(), "given\nend");
    let large = "x".repeat(3 << 20);
    command.stdin = Some(Blob::from(large.as_str()));
    command.argv = vec!["wc".into(), "-c".into()];
    command.env.insert("LARGE".into(), "y".repeat(100_000));
    assert_eq!(house.run(&command, &Isolation::default()).await.ok(), "3145728");
}

#[tokio::test]
async fn output_streams_while_the_command_runs() {
    let house = House::new(As::User);
    let (out, mut pieces) = tokio::sync::mpsc::channel(16);
    let command = house.command("echo one; echo two >&2; sleep 2");
    let isolation = Isolation::default();
    let cancel = CancellationToken::new();
    let begin = Instant::now();
    let heard = async {
        let mut heard = Vec::new();
        while heard.len() < 2 {
            heard.push(pieces.recv().await.unwrap());
        }
        (heard, begin.elapsed())
    };
    let (outcome, (heard, after)) =
        tokio::join!(house.native.exec(house.session, &command, &isolation, out, &cancel), heard);
    assert!(
        heard.iter().any(|(source, bytes)| (*source, bytes.as_ref()) == (OutputStream::Stdout, b"one\n"))
    );
    assert!(
        heard.iter().any(|(source, bytes)| (*source, bytes.as_ref()) == (OutputStream::Stderr, b"two\n"))
    );
    assert!(after < Duration::from_millis(1900) && begin.elapsed() > Duration::from_secs(2), "{after:?}");
    assert_eq!(outcome.status, Status::Done);
}

#[tokio::test]
async fn the_end_of_a_command_ends_what_it_left_behind() {
    for who in everyone() {
        let line = |seconds: &str| {
            format!(
                "exec 3>&1 >/dev/null 2>&1; setsid sleep {seconds} 3>&- & (setsid sh -c 'trap \"\" TERM HUP; sleep {seconds}' 3>&- &)
                nohup sleep {seconds} 3>&- & sleep 0.5; echo started >&3"
            )
        };
        let house = House::new(who);
        let left = Left::new(who, 1);
        house.sh(&line(&left.0)).await.ok();
        house.expect_gone(&format!("{who:?}")).await;
        assert_eq!(left.living(), Vec::<u32>::new(), "{who:?}");
        // The control: without a pid namespace, what left the process group lives on.
        let house = House::with(who, |config| {
            config.without = BTreeSet::from([Wall::PidNamespace]);
            config.tiers.internal = Level::Landlock;
        });
        let mut demanded = Isolation::default();
        demanded.minimum.remove(&Wall::PidNamespace);
        let left = Left::new(who, 2);
        house.run(&house.command(&line(&left.0)), &demanded).await.ok();
        assert!(!left.living().is_empty(), "the control: {who:?}");
        // Where there are no walls at all, whoever was left comes to the sandbox's first process, which ends
        // it.
        let house = direct(who);
        let left = Left::new(who, 3);
        house.sh(&line(&left.0)).await.ok();
        assert_eq!(left.living(), Vec::<u32>::new(), "without walls: {who:?}");
    }
}

/// Sleepers that one test knows by the time that they were to sleep, in seconds. Those that live are ended
/// with it.
pub(crate) struct Left(pub(crate) String);

impl Left {
    pub(crate) fn new(who: As, number: u32) -> Self {
        Self(format!("1000.{number}{:07}{}", std::process::id(), u8::from(who == As::Root)))
    }

    pub(crate) fn living(&self) -> Vec<u32> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
        let sleeps = |pid: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split('\0').eq(["sleep", &self.0, ""])
        };
        pids.filter(sleeps).collect()
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        for pid in self.living() {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}

#[tokio::test]
async fn cancelling_leaves_no_process() {
    for who in everyone() {
        let house = House::new(who);
        for line in ["sleep 1000", "trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done"] {
            let (command, isolation, cancel) =
                (house.command(line), Isolation::default(), CancellationToken::new());
            let stop = async {
                let begin = Instant::now();
                while house.processes_of_sandboxes() < 2 {
                    assert!(begin.elapsed() < Duration::from_secs(20), "the control: it never lived");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
                cancel.cancel();
                Instant::now()
            };
            let (ran, cancelled) = tokio::join!(house.run_until(&command, &isolation, &cancel), stop);
            // Its time limit would end it, too.
            assert!(
                cancelled.elapsed() < Duration::from_secs(20),
                "{who:?} {line}: {:?}",
                cancelled.elapsed()
            );
            assert_eq!(ran.outcome.status, Status::Cancelled);
            assert!(matches!(ran.outcome.report, Report::Exec(_)));
            house.expect_gone(&format!("{who:?} {line}")).await;
        }
    }
}

#[tokio::test]
async fn killing_the_runtime_leaves_no_process() {
    for who in everyone() {
        let house = House::new(who);
        let args = [house.home.as_path(), &house.project, &house.folder];
        let mut parent = std::process::Command::new(house.probe())
            .arg("run")
            .args(args)
            .args(["sh", "-c", "setsid sleep 1000 & sleep 1000"])
            .spawn()
            .unwrap();
        let begin = Instant::now();
        let family = loop {
            let family = descendants(parent.id());
            // Runtime, warden, holder, init, shell and two sleepers.
            if family.len() >= 7 {
                break family;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{who:?}: {family:?}");
            std::thread::sleep(Duration::from_millis(20));
        };
        parent.kill().unwrap();
        parent.wait().unwrap();
        let begin = Instant::now();
        while family.iter().any(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists()) {
            assert!(begin.elapsed() < Duration::from_secs(10), "{who:?}: {family:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The control: what another parent started lives on when that is killed.
        let left = Left::new(who, 3);
        let line = format!("setsid sleep {0} & sleep {0}", left.0);
        let mut parent = std::process::Command::new("sh").args(["-c", &line]).spawn().unwrap();
        let begin = Instant::now();
        while left.living().len() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(20), "the control never began");
            std::thread::sleep(Duration::from_millis(20));
        }
        parent.kill().unwrap();
        parent.wait().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        // One that is just about to execute a program has no arguments for a moment.
        let begin = Instant::now();
        while left.living().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(5), "the control");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The start of a program and its end, in fresh walls each time. Printed, not asserted: machines differ.
#[tokio::test]
async fn the_latency_of_nothing_is_printed() {
    for who in everyone() {
        let house = House::new(who);
        let mut command = house.command("");
        command.argv = vec!["/bin/true".into()];
        let isolation = Isolation::default();
        let mut times = Vec::new();
        for _ in 0..20 {
            let begin = Instant::now();
            house.run(&command, &isolation).await.ok();
            times.push(begin.elapsed());
        }
        times.sort();
        println!("{who:?}: /bin/true in fresh walls: median {:?}, fastest {:?}", times[10], times[0]);
    }
}

/// Whether namespaces can be made in a user namespace of its own, after this; none where that cannot be
/// tried.
fn can_make_after(line: &str) -> Option<bool> {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("probe");
    let probe = env!("CARGO_BIN_EXE_sandbox-probe");
    let text = format!(
        "#!/bin/sh\nexec unshare --user --map-root-user sh -c '{line}; exec {probe} \"$@\"' sh \"$@\"\n"
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    bailey_sandbox::can_make_namespaces(&script).map_err(|error| println!("SKIPPED: {error}")).ok()
}

/// Only two kinds were tried, and nothing ran where another was missing; a shortage that passed took the
/// walls for good.
#[test]
fn each_kind_of_namespaces_is_tried_and_one_that_comes_back_is_waited_for() {
    let Some(control) = can_make_after("true") else { return };
    assert!(control, "the control");
    for kind in ["user", "mnt", "net", "pid", "ipc", "uts", "cgroup"] {
        let line = format!("echo 0 > /proc/sys/user/max_{kind}_namespaces || exit 98");
        let Some(can) = can_make_after(&line) else { return };
        assert!(!can, "{kind}");
        let line = format!("echo 1 > /proc/sys/user/max_{kind}_namespaces || exit 98");
        assert_eq!(can_make_after(&line), Some(true), "the control: {kind}");
    }
    let takes = |seconds: &str| {
        format!("echo 1 > /proc/sys/user/max_mnt_namespaces; unshare --mount sleep {seconds} & sleep 0.1")
    };
    assert_eq!(can_make_after(&takes("0.4")), Some(true), "others gave it back");
    assert_eq!(can_make_after(&takes("3")), Some(false), "the control: nobody inside sees why there is none");
}

/// A worker that is killed is one whose end nobody saw: what only looks is asked for once more, and a change
/// is not.
#[tokio::test]
async fn a_read_whose_worker_dies_is_tried_again_and_a_change_is_not() {
    let house = House::new(As::User);
    let lines = "a line that does not say it\n".repeat(30_000);
    for number in 0..20 {
        house.write(&format!("{number}.txt"), &lines);
    }
    let root = WsPath(house.project.display().to_string());
    let search = Action::Search { root, pattern: Some("(?i)(says|it)+ not".into()), glob: None };
    let files = (0..900).map(|number| FileChange {
        path: WsPath(house.project.join(format!("made/{number}/a")).display().to_string()),
        base: None,
        new: Some(Blob::from(lines.get(..16_384).unwrap())),
    });
    let change = Action::Change { files: files.collect() };
    for (action, ends_well) in [(search, true), (change, false)] {
        let (cancel, isolation) = (CancellationToken::new(), Isolation::default());
        let request = Request::Perform { action };
        let work = house.native.work(house.session, request, &isolation, &cancel);
        let kill = async {
            loop {
                let payloads = house.payloads();
                let has_begun = ends_well || house.folder.join("upper/made").exists();
                if !payloads.is_empty() && has_begun {
                    tokio::time::sleep(Duration::from_millis(40)).await;
                    for (payload, _) in payloads {
                        let _ = kill_process(Pid::from_raw(payload as i32).unwrap(), Signal::KILL);
                    }
                    return;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let (worked, ()) = tokio::join!(work, kill);
        assert_eq!(worked.is_ok(), ends_well, "{worked:?}");
        assert!(ends_well || matches!(worked, Err(WorkError::NoAnswer)), "{worked:?}");
    }
}
