//! How the daemon is, for whoever looks from outside: its file, and its log.

use crate::{
    daemon::{Daemon, PATIENCE, end, pid},
    page::default_model,
    stage::Stage,
};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

/// What the file says, which is whole whenever it is read.
fn health(stage: &Stage) -> Value {
    let text = fs::read_to_string(stage.home().join("health.json")).unwrap();
    let health: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(health["v"], 1);
    health
}

fn wait_for(stage: &Stage, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let health = health(stage);
        if is_so(&health) {
            return health;
        }
        assert!(Instant::now() < deadline, "{what} is not told: {health:#}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_file_says_how_the_daemon_is_and_is_written_when_that_changes() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), Message::text("done"))]);
    default_model(&stage);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let channel = format!(
        "[channels.phone]\nkind = \"telegram\"\nkey_env = \"NOT_SET\"\nworkspace = {:?}\n",
        stage.project()
    );
    fs::write(&config, format!("{own}\n[page]\nlisten = \"127.0.0.1:0\"\n{channel}")).unwrap();
    assert_eq!(stage.ran(&["backup"]).code, Some(0));
    let daemon = Daemon::start(&stage);
    let up = wait_for(&stage, "a channel that cannot be opened", |it| {
        it["page"]["up"] == true
            && it["channels"][0]["note"]
                .as_str()
                .is_some_and(|note| note.contains("bailey secrets set NOT_SET"))
    });
    assert_eq!((&up["state"], &up["pid"]), (&json!("up"), &daemon.status()["pid"]));
    assert_eq!((&up["channels"][0]["name"], &up["channels"][0]["up"]), (&json!("phone"), &json!(false)));
    assert!(up["last_backup"].is_string() && up["disk_free_bytes"].as_u64().unwrap() > 0, "{up:#}");
    assert_eq!(up["sessions"], json!({ "working": 0, "resting": 0, "questions": 0 }));
    let about = || fs::metadata(stage.home().join("health.json")).unwrap();
    assert_eq!(about().permissions().mode() & 0o777, 0o600);

    // While nothing changes it is not written.
    let before = about().ino();
    thread::sleep(Duration::from_secs(3));
    assert_eq!(about().ino(), before);

    let mut chat = stage.bailey(&["chat", "--model", "test/model"]);
    let mut chat = chat.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    chat.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
    model.wait_for(1);
    let working = wait_for(&stage, "a turn", |it| it["sessions"]["working"] == 1);
    assert!(working["journal"]["entry"].as_u64().unwrap() > 1, "{working:#}");
    assert_eq!(working["journal"]["hash"].as_str().unwrap().len(), 64);
    assert_eq!(working["stopped_since"], Value::Null);
    // The turn is waited for, and that is told, too.
    end(pid(&daemon.status()), "-TERM");
    wait_for(&stage, "that it ends", |it| it["state"] == "draining" && it["sessions"]["working"] == 1);
    gate.open();
    let stopped = wait_for(&stage, "that it has ended", |it| it["state"] == "stopped");
    assert_eq!(stopped["sessions"]["working"], 0);
    assert_eq!((&up["page"]["up"], &stopped["page"]["up"]), (&json!(true), &json!(false)));
    chat.kill().ok();
    chat.wait().unwrap();
}

#[test]
fn the_file_says_that_everything_is_stopped() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let gate = Gate::default();
    let model = stage.model(vec![Reply::Held(gate.clone(), Message::text("done"))]);
    default_model(&stage);
    let _daemon = Daemon::start(&stage);
    let mut chat = stage.bailey(&["chat", "--model", "test/model"]);
    let mut chat = chat.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    chat.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
    model.wait_for(1);
    wait_for(&stage, "a turn", |it| it["sessions"]["working"] == 1 && it["stopped_since"].is_null());
    assert_eq!(stage.ran(&["estop"]).code, Some(0));
    // The session that it ended is what the daemon notices.
    let stopped = wait_for(&stage, "the stop", |it| it["stopped_since"].is_string());
    assert_eq!((&stopped["state"], &stopped["sessions"]["working"]), (&json!("up"), &json!(0)));
    gate.open();
    chat.wait().unwrap();
}

#[test]
fn each_line_of_the_log_is_an_object_with_a_time_a_level_and_a_message() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home().join("daemon")).unwrap();
    let (config, file) = (stage.home().join("config.toml"), stage.home().join("daemon/log"));
    // A line as it was before there were levels.
    let old =
        json!({ "at": "2026-01-02T03:04:05.006Z", "what": "not_kept", "why": "no room", "session": "01a2" });
    fs::write(&file, format!("{old}\n")).unwrap();
    let printed = |settings: &str| {
        fs::write(&config, settings).unwrap();
        let mut daemon = stage.bailey(&["start", "--foreground"]);
        let daemon = daemon.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while stage.ran(&["status"]).code != Some(0) {
            assert!(Instant::now() < deadline);
        }
        fs::write(&config, "no_such_key = 1\n").unwrap();
        assert_eq!(stage.ran(&["reload"]).code, Some(2));
        fs::write(&config, settings).unwrap();
        end(u64::from(daemon.id()), "-TERM");
        String::from_utf8(daemon.wait_with_output().unwrap().stdout).unwrap()
    };
    // Unasked, nothing is printed.
    assert_eq!(printed(""), "");
    let lines = printed("[telemetry]\nlogs = \"json\"\n");
    let whole = fs::read_to_string(&file).unwrap();
    assert!(!lines.is_empty() && whole.ends_with(&lines), "{lines}\nis not the end of\n{whole}");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let level = line["level"].as_str().unwrap();
        assert!(["info", "warn", "error"].contains(&level) && line["message"].is_string(), "{line}");
        assert!(line["time"].as_str().unwrap().parse::<bailey_protocol::Timestamp>().is_ok(), "{line}");
    }
    let wrong = lines.iter().find(|line| line["what"] == "not_reloaded").unwrap();
    assert_eq!(wrong["level"], "error");
    assert!(wrong["message"].as_str().unwrap().starts_with("not reloaded: ") && lines[0]["level"] == "info");

    // Both forms are shown alike, and told alike.
    let shown = stage.ran(&["logs"]).stdout;
    assert!(shown.starts_with("2026-01-02 03:04:05 UTC not kept session 01a2, why no room\n"), "{shown}");
    assert!(shown.contains(" not reloaded why ") && !shown.contains("message"), "{shown}");
    let first = stage.ran(&["--json", "logs"]).lines().remove(0);
    assert_eq!((&first["time"], &first["level"]), (&old["at"], &json!("error")));
    assert_eq!((&first["message"], &first["session"]), (&json!("not kept: no room"), &json!("01a2")));
}

/// A journal that cannot be read lets nothing begin, however well the daemon is: whoever starts it or asks
/// for it is told.
#[test]
fn that_the_journal_cannot_be_read_is_told_at_the_start_and_afterwards() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let _model = stage.model(vec![Reply::text("done")]);
    default_model(&stage);
    assert_eq!(stage.ran(&["run", "--alone", "x"]).code, Some(0));
    let journal = stage.home().join("journal.db");
    let whole = fs::read(&journal).unwrap();
    let said = "nothing can begin, because the journal cannot be opened";
    fs::write(&journal, "this is no database, however long it may be\n".repeat(400)).unwrap();
    for beside in ["journal.db-wal", "journal.db-shm"] {
        fs::remove_file(stage.home().join(beside)).ok();
    }
    let started = stage.ran(&["start"]);
    assert!(started.code == Some(0) && started.stderr.contains(said), "{started:?}");
    let status = stage.ran(&["status"]);
    assert!(status.stderr.contains(said), "{status:?}");
    let status = stage.ran(&["--json", "status"]).lines().remove(0);
    assert!(status["unreadable"].is_string(), "{status}");
    assert_eq!(stage.ran(&["stop"]).code, Some(0));
    assert_eq!(health(&stage)["state"], "stopped");
    fs::write(&journal, whole).unwrap();
    let daemon = Daemon::start(&stage);
    assert_eq!(stage.ran(&["--json", "status"]).lines().remove(0)["unreadable"], Value::Null, "the control");
    drop(daemon);
}
