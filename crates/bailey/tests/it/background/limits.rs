//! What a process in the background may use up: each limit, and as its control the same where there is room.

use super::{KEY, begin, listed, outcomes, process, run, script, until};
use crate::stage::{Ran, Stage};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{fs, process::Stdio};

#[test]
fn eight_processes_run_in_the_background_at_once_and_a_ninth_when_one_has_ended() {
    let stage = Stage::new(&[]);
    let sleep = || begin("exec sleep 600");
    let mut calls: Vec<_> = (0..9).map(|_| sleep()).collect();
    calls.extend([process("process_stop", 3), sleep(), process("process_log", 10), sleep()]);
    let (ran, _) = stage.task(script(&calls), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = ran.results();
    let is_full = |text: &str| text.contains("8 run in the background already, and more cannot: stop one");
    for (place, text) in results[..8].iter().enumerate() {
        assert!(text.contains(&format!("runs in the background as process {}:", place + 1)), "{text}");
    }
    assert!(is_full(&results[8]) && is_full(&results[12]), "{results:?}");
    // The control: the same command with room for it. What never ran has a number all the same.
    assert!(
        results[10].contains("as process 10:") && results[11].starts_with("process 10 runs"),
        "{results:?}"
    );
    let statuses: Vec<_> = outcomes(&stage).iter().map(|it| it["status"]["status"].clone()).collect();
    let failed: Vec<usize> = (0..statuses.len()).filter(|place| statuses[*place] == "failed").collect();
    assert_eq!((statuses.len(), failed), (11, vec![8, 10]), "{statuses:?}");
    assert_eq!(listed(&stage).len(), 0);
}

#[test]
fn a_process_in_the_background_keeps_its_limits() {
    let stage = Stage::new(&[]);
    let begin = |seconds: u64| json!({ "command": "echo begun; exec sleep 600", "background": true, "timeout_s": seconds });
    let gate = Gate::default();
    let held = Message::calls([("c3", "process_log", json!({ "process": 1 }))]);
    let server = stage.model(vec![
        Reply::calls([("c1", "command_run", begin(1))]),
        Reply::calls([("c2", "command_run", begin(500))]),
        Reply::Held(gate.clone(), held),
        Reply::calls([("c4", "process_log", json!({ "process": 2 }))]),
        Reply::text("done"),
    ]);
    let task = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
    let child = stage.bailey(&task).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(3);
    until(|| outcomes(&stage)[0]["report"]["limit"] == "time limit");
    gate.open();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = ran.results();
    assert_eq!(results[2], "process 1 was ended by the time limit\n--- stdout ---\nbegun");
    assert_eq!(results[3], "process 2 runs\n--- stdout ---\nbegun", "control: the other one has longer");
}

#[test]
fn the_log_of_a_process_in_the_background_is_bounded_and_has_no_secret() {
    let stage = Stage::new(&[]);
    let calls = [
        run("mkfifo /tmp/said"),
        begin(
            "head -c 3000000 /dev/zero | tr '\\0' x; printf ' hunter2-Zq'; printf '9!xv7Lm word\\n'; \
             echo said > /tmp/said; exec sleep 600",
        ),
        run("cat /tmp/said"),
        process("process_stop", 1),
        // The control: what fits is kept whole.
        begin("head -c 40000 /dev/zero | tr '\\0' y; echo; echo said > /tmp/said; exec sleep 600"),
        run("cat /tmp/said"),
        process("process_stop", 2),
    ];
    let server = stage.model(script(&calls));
    let task = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
    let ran = Ran::of(stage.bailey(&task).env("ANTHROPIC_API_KEY", KEY).output().unwrap());
    drop(server);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = ran.results();
    let log = &results[3];
    assert!(log.len() < 80 << 10, "{} bytes", log.len());
    assert!(
        log.starts_with("process 1 was stopped\n") && log.contains("bytes left out"),
        "{} bytes",
        log.len()
    );
    // Control: what is no secret is there.
    assert!(log.contains("x [redacted:ANTHROPIC_API_KEY] word"), "{}", &log[log.len() - 200..]);
    let small = &results[6];
    assert!(small.contains(&"y".repeat(40_000)) && !small.contains("left out"), "{} bytes", small.len());
    let [large, small] = &outcomes(&stage)[..] else { panic!("two processes") };
    let kept = |outcome: &Value| {
        let stdout = &outcome["report"]["stdout"];
        let part = |name: &str| stdout[name].to_string().len();
        (part("head") + part("tail"), stdout["total"].clone())
    };
    assert!(kept(large).0 < 3 << 20, "{:?}", kept(large));
    assert!(kept(small).0 > 40_000, "{:?}", kept(small));
    let journal = fs::read(stage.home().join("journal.db")).unwrap();
    assert!(!journal.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
}
