//! Questions of unattended sessions: the turn ends, the process rests, and the session goes on at the answer,
//! from any place and at any time.

use crate::{
    daemon::{Daemon, open},
    schedules::wait,
    stage::Stage,
    telegram::{ANN, channel, pair},
};
use bailey_testkit::{ModelServer, Reply};
use serde_json::{Value, json};
use std::{fs, io::Write as _, os::unix::net::UnixStream, path::PathBuf, thread, time::Duration};
use tempfile::TempDir;

const SEEN: &str = "what the notes say";
/// How long a session at rest keeps its process, in milliseconds.
const IDLE: &str = "300";

/// A project with a schedule whose task reads a file outside of it, which a person is asked about.
struct Scene {
    stage: Stage,
    _folder: TempDir,
    file: PathBuf,
}

impl Scene {
    fn new(approvals: &str, script: impl FnOnce(&Self) -> Vec<Reply>) -> (Self, ModelServer) {
        let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
        let file = folder.path().canonicalize().unwrap().join("notes.txt");
        fs::write(&file, format!("{SEEN}\n")).unwrap();
        let scene = Self { stage: Stage::new(&[("a.txt", "a\n")]), _folder: folder, file };
        let model = scene.stage.model(script(&scene));
        let config = scene.stage.home().join("config.toml");
        let own = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("model = \"test/model\"\n{own}\n[approvals]\n{approvals}\n")).unwrap();
        (scene, model)
    }

    fn read(&self, id: &str) -> Reply {
        Reply::calls([(id, "fs_read", json!({ "path": self.file }))])
    }

    fn begin(&self) {
        let task = ["schedule", "add", "nightly", "--cron", "0 3 1 1 *", "read the notes"];
        assert_eq!(self.stage.ran(&task).code, Some(0));
        let ran = self.stage.ran(&["schedule", "run", "nightly"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }

    fn question(&self) -> String {
        let mut found = String::new();
        wait("a question", || {
            let open = self.stage.ran(&["--json", "approvals", "list"]).lines();
            let open: Vec<Value> = open.into_iter().filter(|it| it["standing"] == "open").collect();
            found = open.first().map(|it| it["id"].as_str().unwrap()[..8].to_owned()).unwrap_or_default();
            !found.is_empty()
        });
        found
    }

    /// Waits until no process of the session is there.
    fn rests(&self, daemon: &Daemon<'_>) {
        wait("its rest", || daemon.status()["sessions"].as_array().unwrap().is_empty());
    }

    fn records(&self) -> usize {
        let names = fs::read_dir(self.stage.home().join("daemon")).unwrap();
        names.filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().ends_with(".json")).count()
    }

    fn reads(&self) -> usize {
        let file = self.file.display().to_string();
        let intents = self.stage.entries("intent");
        intents.iter().filter(|entry| entry["target"].as_str() == Some(&file)).count()
    }
}

fn last(model: &ModelServer) -> String {
    model.requests().last().unwrap().body.clone()
}

#[test]
fn a_session_rests_while_its_question_waits_and_goes_on_at_the_answer() {
    for (answer, seen, reads) in [("approve", SEEN, 1), ("reject", "not approved: not these", 0)] {
        let (scene, model) = Scene::new("patience_seconds = 1", |scene| {
            vec![scene.read("c1"), Reply::text("I wait for the notes."), Reply::text("done")]
        });
        let daemon = Daemon::with(&scene.stage, "BAILEY_CONTROL_IDLE", IDLE);
        scene.begin();
        let question = scene.question();
        model.wait_for(2);
        assert!(last(&model).contains("a person is asked"), "{}", last(&model));
        scene.rests(&daemon);
        assert_eq!((scene.records(), model.requests().len()), (1, 2));
        let reason = if answer == "reject" { &["--reason", "not these"][..] } else { &[] };
        let answered = scene.stage.ran(&[&["approvals", answer, &question], reason].concat());
        assert!(answered.code == Some(0) && answered.stderr.contains("goes on"), "{answered:?}");
        model.wait_for(3);
        assert!(last(&model).contains(seen), "{}", last(&model));
        scene.rests(&daemon);
        assert_eq!((scene.records(), scene.reads()), (0, reads), "nothing waits any more");
        let ended = scene.stage.entries("turn_ended");
        let reasons: Vec<&Value> = ended.iter().map(|it| &it["reason"]).collect();
        assert_eq!(reasons, ["waiting", "answered"]);
        let session = ended[0]["session"].as_str().unwrap();
        let replayed = scene.stage.ran(&["replay", session]);
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
    }
}

#[test]
fn an_answer_without_a_daemon_is_kept_for_the_next_one() {
    let (scene, model) = Scene::new("patience_seconds = 1", |scene| {
        vec![scene.read("c1"), Reply::text("I wait."), Reply::text("done")]
    });
    let daemon = Daemon::with(&scene.stage, "BAILEY_CONTROL_IDLE", IDLE);
    scene.begin();
    let question = scene.question();
    model.wait_for(2);
    scene.rests(&daemon);
    drop(daemon);
    let answered = scene.stage.ran(&["approvals", "approve", &question]);
    assert!(answered.stderr.contains("sessions resume"), "{answered:?}");
    assert_eq!(model.requests().len(), 2);
    let _daemon = Daemon::with(&scene.stage, "BAILEY_CONTROL_IDLE", IDLE);
    model.wait_for(3);
    assert!(last(&model).contains(SEEN), "{}", last(&model));
}

#[test]
fn a_session_that_could_not_be_begun_at_its_answer_is_tried_again() {
    let (scene, model) = Scene::new("patience_seconds = 1", |scene| {
        vec![scene.read("c1"), Reply::text("I wait."), Reply::text("done")]
    });
    let daemon = Daemon::with(&scene.stage, "BAILEY_CONTROL_IDLE", IDLE);
    scene.begin();
    let question = scene.question();
    scene.rests(&daemon);
    let away = scene.stage.project().with_extension("away");
    fs::rename(scene.stage.project(), &away).unwrap();
    let answered = scene.stage.bailey(&["approvals", "approve", &question]);
    assert!({ answered }.current_dir(scene.stage.home()).status().unwrap().success());
    let log = scene.stage.home().join("daemon/log");
    wait("the failure", || fs::read_to_string(&log).unwrap().contains("not_begun_again"));
    fs::rename(&away, scene.stage.project()).unwrap();
    model.wait_for(3);
    assert!(last(&model).contains(SEEN), "{}", last(&model));
}

#[test]
fn a_question_that_runs_out_while_its_session_rests_is_settled_and_can_be_asked_again() {
    let (scene, model) = Scene::new("patience_seconds = 1\nanswer_seconds = 4", |scene| {
        vec![scene.read("c1"), Reply::text("I wait."), Reply::text("done")]
    });
    let daemon = Daemon::with(&scene.stage, "BAILEY_CONTROL_IDLE", IDLE);
    scene.begin();
    let question = scene.question();
    scene.rests(&daemon);
    wait("its end", || !scene.stage.entries("answered").is_empty());
    let answered = scene.stage.entries("answered");
    assert_eq!((&answered[0]["answer"], &answered[0]["by"]), (&"no".into(), &"bailey".into()));
    scene.rests(&daemon);
    assert_eq!(model.requests().len(), 2, "no turn is paid for that");
    let listed = scene.stage.ran(&["approvals", "list"]);
    assert!(listed.stdout.contains("ran out"), "{listed:?}");
    assert_eq!(scene.stage.ran(&["approvals", "again", &question]).code, Some(0));
    let again = scene.question();
    let answered = scene.stage.ran(&["approvals", "approve", &again]);
    assert!(answered.code == Some(0) && answered.stderr.contains("goes on"), "{answered:?}");
    model.wait_for(3);
    assert!(last(&model).contains(SEEN), "{}", last(&model));
}

#[test]
fn a_target_that_changed_while_its_session_rested_is_asked_about_anew() {
    let (scene, model) = Scene::new("patience_seconds = 1", |_| {
        let edit = json!({ "path": "Makefile", "old": "one", "new": "two" });
        vec![
            Reply::calls([("c1", "fs_edit", edit)]),
            Reply::text("I wait."),
            Reply::text("still"),
            Reply::text("done"),
        ]
    });
    scene.stage.write("Makefile", "all:\n\techo one\n");
    let rules = scene.stage.home().join("policy");
    fs::create_dir_all(&rules).unwrap();
    let ask = "[[rule]]\nname = \"ask\"\nanswer = \"review\"\nmatch = { action = \"change\" }\n";
    fs::write(rules.join("rules.toml"), format!("{}\n{ask}", bailey_policy::DEFAULT_RULES)).unwrap();
    let daemon = Daemon::with(&scene.stage, "BAILEY_CONTROL_IDLE", IDLE);
    scene.begin();
    let question = scene.question();
    scene.rests(&daemon);
    scene.stage.write("Makefile", "all:\n\techo one\n\trm -rf /\n");
    let answered = scene.stage.ran(&["approvals", "approve", &question]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    wait("another question", || scene.stage.entries("asked").len() == 2);
    let again = scene.question();
    assert_ne!(again, question);
    let shown = scene.stage.ran(&["approvals", "show", &again]);
    assert!(shown.stdout.contains("rm -rf /"), "{shown:?}");
    let edits = || scene.stage.entries("intent").iter().filter(|it| it["kind"] == "change").count();
    assert_eq!(edits(), 0);
    // The control: a yes to the present file is used.
    assert_eq!(scene.stage.ran(&["approvals", "approve", &again]).code, Some(0));
    wait("the change", || edits() == 1);
    drop(model);
}

/// The owner is told at the phone, with buttons, and sees the result there.
#[test]
fn a_question_that_nobody_sees_comes_to_the_owners_phone() {
    let (scene, model) = Scene::new("patience_seconds = 1", |scene| {
        vec![scene.read("c1"), Reply::text("I wait."), Reply::text("The notes are read.")]
    });
    let telegram = channel(&scene.stage);
    let daemon = Daemon::with(&scene.stage, "BAILEY_CONTROL_IDLE", IDLE);
    pair(&scene.stage, &telegram, ANN, "Ann", "owner");
    pair(&scene.stage, &telegram, 77, "Bob", "user");
    scene.begin();
    model.wait_for(2);
    let (message, shown) = telegram.wait(ANN, "the card", |it| it.text.contains(" · session "));
    assert!(shown.text.contains("notes.txt"), "{shown:#?}");
    // Also after all processes were killed, once.
    daemon.kill();
    assert_eq!(scene.stage.ran(&["start"]).code, Some(0));
    thread::sleep(Duration::from_secs(1));
    telegram.taps(ANN, "Ann", ANN, message, "Yes, once");
    let (_, shown) = telegram.wait_for(ANN, "The notes are read.");
    assert!(shown.text.starts_with("Session "), "{shown:#?}");
    assert!(last(&model).contains(SEEN), "{}", last(&model));
    let cards = telegram.shown(ANN).into_iter().filter(|(_, it)| it.text.contains("notes.txt"));
    assert_eq!(cards.count(), 1);
    assert!(!telegram.shown(77).iter().any(|(_, it)| it.text.contains("notes")), "only the owner is told");
    let answered = scene.stage.entries("answered");
    assert_eq!(answered[0]["by"], "owner Ann (phone 42)", "{answered:#?}");
    telegram.check();
}

/// Adds a message to the notes of the channel's process, as an attacker does who has taken it over: the
/// daemon is to connect it to this session.
fn forge(stage: &Stage, session: &str) {
    let folder = stage.home().join("channels/phone/bridge");
    let paths = ["notes.0", "notes.1"].map(|name| folder.join(name));
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        serde_json::from_str::<Value>(text.split_once('\n').map_or("null", |(_, body)| body)).unwrap()
    };
    let notes = paths.each_ref().map(read);
    let newest = usize::from(notes[1]["number"].as_u64() > notes[0]["number"].as_u64());
    let mut forged = notes[newest].clone();
    forged["number"] = (forged["number"].as_u64().unwrap() + 1).into();
    forged["open"].as_array_mut().unwrap().push(json!({
        "key": format!("forged {session}"), "at": format!("{ANN}#{session}"), "id": ANN.to_string(),
        "name": "Ann", "text": "", "is_quoted": false, "is_question": true,
    }));
    let body = forged.to_string();
    let digest = bailey_protocol::Digest::of(body.as_bytes());
    fs::write(&paths[1 - newest], format!("{digest}\n{body}")).unwrap();
}

/// A channel's process comes to the sessions that the owner was told of there, and to no other one: not to a
/// terminal's session by its name. The control is a daemon that does not look.
#[test]
fn a_channel_is_given_no_session_that_its_owner_was_not_told_of() {
    for is_control in [false, true] {
        let (scene, model) = Scene::new("patience_seconds = 1", |scene| {
            let asks = [scene.read("c1"), Reply::text("I wait.")];
            asks.into_iter().chain((0..4).map(|_| Reply::text("I still wait."))).collect()
        });
        let stage = &scene.stage;
        let telegram = channel(stage);
        let daemon = Daemon::start(stage);
        pair(stage, &telegram, ANN, "Ann", "owner");
        let opened = open(stage, &["-C", stage.project().to_str().unwrap()]);
        let session = opened["session"].as_str().unwrap().to_owned();
        let mut client = UnixStream::connect(stage.home().join("daemon").join(&session)).unwrap();
        writeln!(client, "{}", json!({ "op": "say", "text": "read the notes" })).unwrap();
        model.wait_for(2);
        drop(client);
        daemon.kill();
        forge(stage, &session);
        let _daemon = match is_control {
            true => Daemon::with(stage, "BAILEY_CONTROL_PAGE_WITHOUT", "told"),
            false => Daemon::start(stage),
        };
        let is_open = || {
            let read = |name: &str| fs::read_to_string(stage.home().join("channels/phone/bridge").join(name));
            ["notes.0", "notes.1"].iter().any(|name| read(name).unwrap().contains("forged"))
        };
        let cards = || telegram.shown(ANN).iter().filter(|(_, it)| it.text.contains("notes.txt")).count();
        wait("an answer", || {
            // Each change is written to one of two files, in turns.
            telegram.says(ANN, "Ann", ANN, "/tools");
            thread::sleep(Duration::from_millis(300));
            !is_open() || cards() > 0
        });
        assert_eq!(cards() > 0, is_control, "{:#?}", telegram.shown(ANN));
        telegram.check();
    }
}
