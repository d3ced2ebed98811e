//! Questions answered from elsewhere: another terminal while the task waits, or after its process has ended.

use crate::{schedules::wait, stage::Stage, terminal::Terminal, workspace::newest};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const SEEN: &str = "what the notes say";
const QUESTION: &str = "[n]o or [d]etails: ";

/// A project, and a file outside of it that is shown after a question only.
struct Scene {
    stage: Stage,
    _folder: TempDir,
    file: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
        let file = folder.path().canonicalize().unwrap().join("notes.txt");
        fs::write(&file, format!("{SEEN}\n")).unwrap();
        Self { stage: Stage::new(&[("a.txt", "a\n")]), _folder: folder, file }
    }

    /// The model reads the file, works on, says that it waits, and is done when it knows more.
    fn model(&self) -> ModelServer {
        self.stage.model(vec![
            self.read("c1"),
            Reply::calls([("c2", "fs_read", json!({ "path": "a.txt" }))]),
            Reply::text("I wait for the notes."),
            Reply::text("done"),
        ])
    }

    fn read(&self, id: &str) -> Reply {
        Reply::calls([(id, "fs_read", json!({ "path": self.file }))])
    }

    fn later(&self, arguments: &[&str]) -> crate::stage::Ran {
        let options = ["--model", "test/model", "--approve", "later"];
        self.stage.ran(&[&["--json"], arguments, &options].concat())
    }

    /// The questions that wait for an answer or for being used, once there are any.
    fn questions(&self) -> Vec<Value> {
        let since = Instant::now();
        loop {
            let questions = self.stage.ran(&["--json", "approvals", "list"]).lines();
            if !questions.is_empty() || since.elapsed() > Duration::from_secs(20) {
                return questions;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn question(&self) -> String {
        let questions = self.questions();
        let [question] = questions.as_slice() else { panic!("{questions:?}") };
        question["id"].as_str().unwrap()[..8].to_owned()
    }

    /// Executions of reads of the file, as the journal knows them.
    fn intents(&self) -> usize {
        let file = self.file.display().to_string();
        let is_it = |entry: &&Value| entry["type"] == "intent" && entry["target"].as_str() == Some(&file);
        self.stage.trail().iter().filter(is_it).count()
    }
}

fn last(model: &ModelServer) -> String {
    model.requests().last().unwrap().body.clone()
}

/// From another terminal, with `--pattern`; and where the card has none, it is refused and the question stays
/// open.
#[test]
fn a_yes_for_the_pattern_comes_from_another_terminal() {
    let stage = Stage::new(&[("a.txt", "b\na\n")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let ask = "[[rule]]\nname = \"ask\"\nanswer = \"review\"\nmatch = { command = [\"sort\", \"sh\"] }\n";
    fs::write(stage.home().join("policy/rules.toml"), format!("{}\n{ask}", bailey_policy::DEFAULT_RULES))
        .unwrap();
    let command = |id: &str, line: &str| Reply::calls([(id, "command_run", json!({ "command": line }))]);
    let later = ["--model", "test/model", "--approve", "later"];
    let model =
        stage.model(vec![command("c1", "sort -r a.txt"), command("c2", "sh x.sh"), Reply::text("I wait.")]);
    assert_eq!(stage.ran(&[&["run", "do it"], &later[..]].concat()).code, Some(7));
    drop(model);
    let questions = stage.ran(&["--json", "approvals", "list"]).lines();
    let [sort, sh] = questions.as_slice() else { panic!("{questions:?}") };
    let id = |question: &Value| question["id"].as_str().unwrap().to_owned();
    let none = stage.ran(&["approvals", "approve", &id(sh), "--pattern"]);
    assert!(none.code == Some(1) && none.stderr.contains("no pattern"), "{none:?}");
    assert_eq!(stage.ran(&["--json", "approvals", "show", &id(sh)]).lines()[0]["standing"], "open");
    let shown = stage.ran(&["approvals", "show", &id(sort)]);
    assert!(shown.stdout.contains("every `sort …`") && shown.stderr.contains("[--pattern]"), "{shown:?}");
    let approved = stage.ran(&["approvals", "approve", &id(sort), "--pattern"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let model = stage.model(vec![command("c3", "sort -u a.txt"), Reply::text("done")]);
    let resumed = stage.ran(&[&["sessions", "resume", &newest(&stage), "go on"], &later[..]].concat());
    assert_eq!(resumed.code, Some(7), "the other one still waits: {resumed:?}");
    let ran =
        stage.trail().iter().filter(|entry| entry["type"] == "intent" && entry["kind"] == "exec").count();
    assert_eq!(ran, 2, "the one that was asked, and the one that is covered: {}", last(&model));
}

/// A person who is asked a hundred times says no to all questions of a kind at once. A
/// session asks no more than so many times.
#[test]
fn all_open_questions_of_a_kind_are_answered_with_no_at_once() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let ask = "[[rule]]\nname = \"ask\"\nanswer = \"review\"\nmatch = { command = [\"sort\"] }\n";
    fs::write(stage.home().join("policy/rules.toml"), format!("{}\n{ask}", bailey_policy::DEFAULT_RULES))
        .unwrap();
    fs::write(stage.home().join("config.toml"), "[approvals]\npatience_seconds = 1\n").unwrap();
    let names: Vec<String> = (0..25).map(|at| format!("c{at}")).collect();
    let calls: [_; 26] = std::array::from_fn(|at| match at {
        0 => ("r", "fs_read", json!({ "path": "/etc/hosts" })),
        _ => (names[at - 1].as_str(), "command_run", json!({ "command": format!("sort {at}") })),
    });
    let model = stage.model_beside(vec![Reply::calls(calls), Reply::text("I wait.")]);
    let later = ["run", "do it", "--model", "test/model", "--approve", "later"];
    assert_eq!(stage.ran(&later).code, Some(7));
    assert!(last(&model).contains("questions of this session wait"), "{}", last(&model));
    let open = || {
        let questions = stage.ran(&["--json", "approvals", "list"]).lines();
        questions.iter().map(|question| question["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(open().len(), 20, "{:?}", open());
    let wrong = stage.ran(&["approvals", "reject", "--all", "--kind", "commands"]);
    assert!(wrong.code != Some(0) && wrong.stderr.contains("exec"), "{wrong:?}");
    let reads = open().iter().filter(|kind| *kind == "read").count();
    let rejected = stage.ran(&["--json", "approvals", "reject", "--all", "--kind", "exec"]);
    assert_eq!(rejected.lines()[0]["rejected"], 20 - reads, "{rejected:?}");
    assert_eq!(open(), vec!["read"; reads], "the control: those of another kind wait on");
    stage.ran(&["approvals", "reject", "--all", "--reason", "none of it"]);
    assert_eq!(open().len(), 0);
}

#[test]
fn another_terminal_answers_while_the_task_waits() {
    for (answer, seen, intents) in [("approve", SEEN, 1), ("reject", "not approved: not these notes", 0)] {
        let scene = Scene::new();
        let model = scene.stage.model(vec![scene.read("c1"), Reply::text("done")]);
        let Some(mut terminal) = Terminal::start(&scene.stage, &["run", "--model", "test/model", "do it"])
        else {
            return;
        };
        terminal.wait_for(QUESTION);
        let id = scene.question();
        let shown = scene.stage.ran(&["approvals", "show", &id]);
        assert!(shown.stdout.contains(scene.file.to_str().unwrap()), "{shown:?}");
        assert!(shown.stdout.contains("reads outside the workspace"), "{shown:?}");
        let reason = if answer == "reject" { &["--reason", "not these notes"][..] } else { &[] };
        let answered = scene.stage.ran(&[&["approvals", answer, &id], reason].concat());
        assert_eq!(answered.code, Some(0), "{answered:?}");
        terminal.wait_for(if answer == "approve" {
            "answered elsewhere: yes"
        } else {
            "no: not these notes"
        });
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert!(last(&model).contains(seen), "{answer}: {}", last(&model));
        assert_eq!(scene.intents(), intents, "{answer}");
        let again = scene.stage.ran(&["approvals", "approve", &id]);
        assert!(again.code != Some(0) && again.stderr.contains("settled already"), "{again:?}");
    }
}

#[test]
fn a_task_ends_with_its_questions_open_and_goes_on_with_the_answers() {
    for (answer, seen, intents) in [("approve", SEEN, 1), ("reject", "not approved: not these notes", 0)] {
        let scene = Scene::new();
        let model = scene.model();
        let ended = scene.later(&["run", "do it"]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        assert_eq!(ended.lines().iter().find(|event| event["type"] == "end").unwrap()["reason"], "waiting");
        assert_eq!(model.requests().len(), 3, "the model worked on");
        assert!(
            last(&model).contains("a person is asked") && !last(&model).contains(SEEN),
            "{}",
            last(&model)
        );
        let (id, session) = (scene.question(), newest(&scene.stage));
        // Nobody has answered: it still waits.
        let _idle = scene.stage.model(vec![Reply::text("I still wait.")]);
        assert_eq!(scene.later(&["sessions", "resume", &session]).code, Some(7));
        let reason = if answer == "reject" { &["--reason", "not these notes"][..] } else { &[] };
        assert_eq!(scene.stage.ran(&[&["approvals", answer, &id], reason].concat()).code, Some(0));
        let model = scene.stage.model(vec![Reply::text("done")]);
        let resumed = scene.later(&["sessions", "resume", &session]);
        assert_eq!(resumed.code, Some(0), "{answer}: {resumed:?}");
        assert!(last(&model).contains(seen), "{answer}: {}", last(&model));
        assert_eq!(scene.intents(), intents, "{answer}");
        let begun = resumed.lines().iter().filter(|event| event["type"] == "call").count();
        assert_eq!(begun, intents, "{answer}: whoever looks on sees what runs: {resumed:?}");
        // Once: there is nothing left to go on with.
        let model = scene.stage.model(vec![scene.read("c9"), Reply::text("I wait.")]);
        let more = scene.later(&["sessions", "resume", &session, "read it once more"]);
        assert_eq!(more.code, Some(7), "{more:?}");
        assert!(last(&model).contains("a person is asked"), "the same again is asked anew: {}", last(&model));
        assert_eq!(scene.intents(), intents, "{answer}");
    }
}

#[test]
fn a_yes_to_a_process_that_was_killed_is_used_once_by_whoever_goes_on() {
    let scene = Scene::new();
    let _model = scene.stage.model(vec![scene.read("c1"), Reply::text("done")]);
    let Some(mut terminal) = Terminal::start(&scene.stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    terminal.wait_for(QUESTION);
    let id = scene.question();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(terminal.process().try_into().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    terminal.end();
    assert_eq!(scene.stage.ran(&["approvals", "approve", &id]).code, Some(0));
    assert_eq!(scene.questions()[0]["standing"], "yes");
    let session = newest(&scene.stage);
    let model = scene.stage.model(vec![Reply::text("done"), Reply::text("done")]);
    assert_eq!(scene.later(&["sessions", "resume", &session]).code, Some(0));
    assert!(last(&model).contains(SEEN), "{}", last(&model));
    assert_eq!(scene.intents(), 1);
    let later = scene.later(&["sessions", "resume", &session, "and again"]);
    assert_eq!((later.code, scene.intents()), (Some(0), 1), "{later:?}");
}

#[test]
fn a_yes_that_nothing_used_can_be_taken_back() {
    let scene = Scene::new();
    let _model = scene.model();
    assert_eq!(scene.later(&["run", "do it"]).code, Some(7));
    let (id, session) = (scene.question(), newest(&scene.stage));
    assert_eq!(scene.stage.ran(&["approvals", "approve", &id]).code, Some(0));
    assert_eq!(scene.stage.ran(&["approvals", "reject", &id, "--reason", "I thought again"]).code, Some(0));
    let model = scene.stage.model(vec![Reply::text("done")]);
    assert_eq!(scene.later(&["sessions", "resume", &session]).code, Some(0));
    assert!(last(&model).contains("not approved: I thought again"), "{}", last(&model));
    assert_eq!(scene.intents(), 0);
}

#[test]
fn what_ran_out_is_a_no_and_asked_once_more_with_one_key() {
    let scene = Scene::new();
    // The model answers only when the person has come back.
    let (gate, could_not) = (Gate::default(), Message::text("I could not."));
    let model =
        scene.stage.model(vec![scene.read("c1"), Reply::Held(gate.clone(), could_not), Reply::text("done")]);
    let config = scene.stage.home().join("config.toml");
    let brief = format!("{}\n[approvals]\nanswer_seconds = 3\n", fs::read_to_string(&config).unwrap());
    fs::write(&config, brief).unwrap();
    let Some(mut terminal) = Terminal::start(&scene.stage, &["run", "--model", "test/model", "do it"]) else {
        return;
    };
    terminal.wait_for(QUESTION);
    let id = scene.question();
    terminal.wait_for("[a]sk again");
    let late = scene.stage.ran(&["approvals", "approve", &id]);
    assert!(late.code != Some(0) && late.stderr.contains("settled already"), "{late:?}");
    let listed = scene.stage.ran(&["approvals", "list"]);
    assert!(listed.stdout.contains("ran out") && listed.stderr.contains("approvals again"), "{listed:?}");
    terminal.keys("a\n");
    terminal.wait_for(QUESTION);
    gate.open();
    terminal.keys("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let requests: Vec<String> = model.requests().iter().map(|request| request.body.clone()).collect();
    assert!(
        requests[1].contains("nobody answered in time") && !requests[1].contains(SEEN),
        "{}",
        requests[1]
    );
    assert!(last(&model).contains(SEEN), "{}", last(&model));
    assert_eq!(scene.intents(), 1);
}

/// The turn has ended by then, so the yes begins the work.
#[test]
fn what_is_asked_again_after_its_turn_is_done_at_the_yes() {
    let scene = Scene::new();
    let model =
        scene.stage.model(vec![scene.read("c1"), Reply::text("I could not."), Reply::text("done at last")]);
    let config = scene.stage.home().join("config.toml");
    let brief = format!("{}\n[approvals]\nanswer_seconds = 3\n", fs::read_to_string(&config).unwrap());
    fs::write(&config, brief).unwrap();
    let Some(mut terminal) = Terminal::start(&scene.stage, &["chat", "--model", "test/model"]) else {
        return;
    };
    terminal.wait_for("› ");
    terminal.keys("do it\r");
    terminal.wait_for(QUESTION);
    model.wait_for(2);
    terminal.wait_for("[a]sk again");
    wait("the turn's end", || !scene.stage.entries("turn_ended").is_empty());
    terminal.keys("a\r");
    terminal.wait_for(QUESTION);
    terminal.keys("y");
    terminal.wait_for("done at last");
    assert!(last(&model).contains(SEEN), "{}", last(&model));
    assert_eq!(scene.intents(), 1);
    terminal.keys("\u{15}\u{4}");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn other_rules_make_a_yes_void() {
    let scene = Scene::new();
    let _model = scene.model();
    assert_eq!(scene.later(&["run", "do it"]).code, Some(7));
    // Its person may come hours later.
    let listed = scene.stage.ran(&["approvals", "list"]).stdout;
    assert!(listed.contains("open, 23 h left") || listed.contains("open, 24 h left"), "{listed}");
    let (id, session) = (scene.question(), newest(&scene.stage));
    assert_eq!(scene.stage.ran(&["approvals", "approve", &id]).code, Some(0));
    let rules = scene.stage.home().join("policy");
    fs::create_dir_all(&rules).unwrap();
    let stricter = format!(
        "{}\n[[rule]]\nname = \"notes\"\nanswer = \"deny\"\nreason = \"no notes\"\nmatch = {{ action = \"read\", path = \
         \"{}\" }}\n",
        bailey_policy::DEFAULT_RULES,
        scene.file.display()
    );
    fs::write(rules.join("rules.toml"), stricter).unwrap();
    let model = scene.stage.model(vec![Reply::text("done")]);
    let resumed = scene.later(&["sessions", "resume", &session]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(last(&model).contains("other rules are in force"), "{}", last(&model));
    assert_eq!(scene.intents(), 0);
}

/// A yes is for the system calls that the card stood under; the control goes on under the same ones.
#[test]
fn a_yes_is_for_the_profile_that_it_was_asked_under() {
    let lists = ["base = \"strict\"\n", "base = \"strict\"\nallow = [\"socket\"]\n"];
    for (then, now, is_same) in [
        (("strict", lists[0]), ("strict", lists[0]), true),
        (("strict", lists[0]), ("standard-net", lists[0]), false),
        (("own", lists[0]), ("own", lists[0]), true),
        (("own", lists[0]), ("own", lists[1]), false),
    ] {
        let scene = Scene::new();
        let _model = scene.model();
        let config = scene.stage.home().join("config.toml");
        // Whoever serves as the model is written anew each time.
        let choose = |(profile, list): (&str, &str)| {
            let written = fs::read_to_string(&config).unwrap();
            fs::write(&config, format!("{written}\n[sandbox]\nprofile = \"{profile}\"\n")).unwrap();
            fs::create_dir_all(scene.stage.home().join("profiles")).unwrap();
            fs::write(scene.stage.home().join("profiles/own.toml"), list).unwrap();
        };
        choose(then);
        let ended = scene.later(&["run", "do it"]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        let (id, session) = (scene.question(), newest(&scene.stage));
        assert_eq!(scene.stage.ran(&["approvals", "approve", &id]).code, Some(0));
        let model = scene.stage.model(vec![Reply::text("done")]);
        choose(now);
        let resumed = scene.later(&["sessions", "resume", &session]);
        assert_eq!(resumed.code, Some(if is_same { 0 } else { 7 }), "{then:?} {now:?}: {resumed:?}");
        assert_eq!(scene.intents(), usize::from(is_same), "{then:?} {now:?}");
        assert_eq!(last(&model).contains(SEEN), is_same, "{}", last(&model));
    }
}

#[test]
fn a_question_is_named_by_its_first_digits() {
    let scene = Scene::new();
    let _model = scene.model();
    assert_eq!(scene.later(&["run", "do it"]).code, Some(7));
    let (id, session) = (scene.question(), newest(&scene.stage));
    for name in ["", "zz", &id[..1], &id[..7], "00000000-0000-0000-0000-000000000000"] {
        let ran = scene.stage.ran(&["approvals", "approve", name]);
        assert!(ran.code != Some(0) && ran.stderr.contains("approvals list"), "{name}: {ran:?}");
    }
    assert_eq!(scene.intents(), 0);
    let listed = scene.stage.ran(&["approvals", "list"]).stdout;
    assert!(listed.contains(&id) && listed.contains("open, "), "{listed}");
    // The control: the eight digits that are shown name it, in a home where another session asks, too.
    let _other = scene.model();
    assert_eq!(scene.later(&["run", "do it, too"]).code, Some(7));
    assert_eq!(scene.stage.ran(&["approvals", "approve", &id]).code, Some(0));
    let _idle = scene.stage.model(vec![Reply::text("done")]);
    assert_eq!(scene.later(&["sessions", "resume", &session]).code, Some(0));
    assert_eq!(scene.intents(), 1);
}

const ASK_DEPLOY: &str = r#"
[[rule]]
name = "deploys"
answer = "review"
reason = "a deployment"
match = { command = "deploy.sh" }
"#;

/// Attacks A10, A11 and A13: what stands at the name of an approved program is another by the time it would
/// run.
#[test]
fn a_script_that_changed_after_the_yes_is_not_run() {
    let tricks: [(&str, &[&str]); 4] = [
        ("rewritten", &["printf '#!/bin/sh\\necho TRICKED\\n' > deploy.sh"]),
        ("moved over", &["printf '#!/bin/sh\\necho TRICKED\\n' > new; chmod +x new; mv new deploy.sh"]),
        ("a link", &["printf '#!/bin/sh\\necho TRICKED\\n' > new; chmod +x new; ln -sf new deploy.sh"]),
        ("an interpreter", &["printf '#!/bin/sh\\necho TRICKED\\n' > run; chmod +x run"]),
    ];
    for (name, trick) in tricks {
        for (is_tricked, session) in [(true, false), (false, false), (true, true)] {
            let stage =
                Stage::new(&[("deploy.sh", "#!./run\necho fine\n"), ("run", "#!/bin/sh\nexec sh \"$@\"\n")]);
            for file in ["deploy.sh", "run"] {
                fs::set_permissions(stage.project().join(file), fs::Permissions::from_mode(0o755)).unwrap();
            }
            let deploy = |id: &str| Reply::calls([(id, "command_run", json!({ "command": "./deploy.sh" }))]);
            let change = Reply::calls([("t", "command_run", json!({ "command": trick[0] }))]);
            let again = if is_tricked { vec![change, deploy("d2")] } else { vec![deploy("d2")] };
            let model = stage.model([vec![deploy("d1"), Reply::text("I wait.")], vec![]].concat());
            fs::create_dir_all(stage.home().join("policy")).unwrap();
            let rules = format!("{}{ASK_DEPLOY}", bailey_policy::DEFAULT_RULES);
            fs::write(stage.home().join("policy/rules.toml"), rules).unwrap();
            let later = ["--model", "test/model", "--approve", "later"];
            assert_eq!(stage.ran(&[&["run", "do it"], &later[..]].concat()).code, Some(7), "{name}");
            let question =
                stage.ran(&["--json", "approvals", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
            let of_session = if session { &["--session"][..] } else { &[] };
            let approved = stage.ran(&[&["approvals", "approve", &question], of_session].concat());
            assert_eq!(approved.code, Some(0), "{approved:?}");
            drop(model);
            let id = newest(&stage);
            if is_tricked && !session {
                // Between the yes and its use: by a person, or a command of another session.
                let changed = std::process::Command::new("sh")
                    .args(["-c", trick[0]])
                    .current_dir(stage.project())
                    .status()
                    .unwrap();
                assert!(changed.success());
                let model = stage.model(vec![Reply::text("I wait.")]);
                let resumed = stage.ran(&[&["sessions", "resume", &id], &later[..]].concat());
                assert!(!last(&model).contains("TRICKED"), "{name}: {}", last(&model));
                assert_eq!(resumed.code, Some(7), "{name}: it is asked anew: {resumed:?}");
                let again = stage.ran(&["replay", &id]);
                assert_eq!(again.code, Some(0), "{name}: and can be run again: {again:?}");
                continue;
            }
            let model = stage.model([again, vec![Reply::text("done")]].concat());
            let resumed = stage.ran(&[&["sessions", "resume", &id, "again"], &later[..]].concat());
            let told = last(&model);
            assert!(told.contains("fine"), "{name}: the control: what was approved runs: {told}");
            assert!(!told.contains("TRICKED\\n"), "{name}: {told}");
            assert_eq!(resumed.code, Some(7), "{name}: the second one is asked: {resumed:?}");
        }
    }
}
