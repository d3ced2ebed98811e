//! Several agents in one home: each is told who it is, has its own model, tools and limits, and goes on with
//! its own sessions.

use crate::{daemon::Daemon, stage::Stage, telegram};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::fs;

fn home(stage: &Stage, script: Vec<Reply>) -> bailey_testkit::ModelServer {
    let model = stage.model(script);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("model = \"test/model\"\n{own}")).unwrap();
    model
}

fn made(stage: &Stage, words: &[&str]) {
    let ran = stage.ran(&[&["agent", "new"], words].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn body(model: &bailey_testkit::ModelServer, number: usize) -> Value {
    serde_json::from_str(&model.requests()[number].body).unwrap()
}

/// The tools that a request names.
fn tools(body: &Value) -> Vec<String> {
    body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_has_its_own_model_tools_limits_and_personality() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let write = || Reply::calls([("c1", "fs_write", json!({ "path": "b.txt", "content": "b\n" }))]);
    let model = home(&stage, vec![write(), Reply::text("I cannot."), write(), Reply::text("Done.")]);
    made(&stage, &["reviewer", "--model", "test/other", "--tools", "fs.read,fs.list", "--tokens", "500000"]);
    let soul = stage.home().join("agents/reviewer/SOUL.md");
    fs::write(&soul, "Be strict about names.\n").unwrap();
    // A personality is told as its owner accepted it, and no session begins before.
    let run = ["run", "--approve", "never", "write b.txt"];
    let as_reviewer = [&run[..], &["--agent", "reviewer"]].concat();
    let refused = stage.ran(&as_reviewer);
    assert!(refused.code == Some(1) && refused.stderr.contains("was never accepted by you"), "{refused:?}");
    assert_eq!(stage.ran(&["soul", "accept", "--agent", "reviewer"]).code, Some(0));
    let ran = stage.ran(&as_reviewer);
    assert!(ran.code == Some(0) && ran.stdout.contains("I cannot."), "{ran:?}");
    let first = body(&model, 0);
    assert_eq!((&first["model"], tools(&first)), (&"other".into(), vec!["fs_read".into(), "fs_list".into()]));
    let text = first.to_string();
    assert!(text.contains("Be strict about names.") && text.contains("Name: reviewer"), "{text}");
    assert!(text.contains("a session 500000 tokens"), "{text}");
    // A tool that it does not have is none.
    assert!(body(&model, 1).to_string().contains("unavailable"), "{}", body(&model, 1));
    // The control: the home's own agent has it, and neither the model nor the personality.
    let ran = stage.ran(&run);
    assert!(ran.code == Some(0) && ran.stdout.contains("b.txt"), "{ran:?}");
    let own = body(&model, 2);
    assert!(own["model"] == "model" && tools(&own).contains(&"fs_write".into()), "{own}");
    assert!(!own.to_string().contains("strict about names") && !own.to_string().contains("Name: reviewer"));
    // The journal says who it was.
    let named: Vec<Value> = stage.trail().into_iter().filter(|it| it["type"] == "agent").collect();
    assert!(named.len() == 1 && named[0]["agent"] == "reviewer", "{named:#?}");
}

#[test]
fn a_session_stays_that_of_its_agent() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let script = ["one", "two", "three", "four", "five", "six"].map(Reply::text);
    let model = home(&stage, script.into());
    made(&stage, &["helper", "--tools", "fs.read"]);
    let ran = stage.ran(&["--json", "run", "--agent", "helper", "--approve", "never", "begin"]);
    let session = ran.lines().iter().find_map(|it| it["session"].as_str().map(str::to_owned)).unwrap();
    let is_helper = |number: usize| tools(&body(&model, number)) == ["fs_read"];
    assert!(is_helper(0));
    // Resumed, forked and run again it is the same, without being named.
    assert_eq!(stage.ran(&["sessions", "resume", &session, "go on"]).code, Some(0));
    assert!(is_helper(1));
    let forked = stage.ran(&["--json", "sessions", "fork", &session]).lines()[0]["session"].clone();
    assert_eq!(stage.ran(&["sessions", "resume", forked.as_str().unwrap(), "on"]).code, Some(0));
    assert!(is_helper(2));
    let first = stage.ran(&["--json", "sessions", "show", &session]).lines()[0]["entry"]["seq"].clone();
    let first = first.as_str().map_or_else(|| first.to_string(), str::to_owned);
    let forked = stage.ran(&["--json", "sessions", "fork", &session, "--at", &first]).lines();
    let shown = stage.ran(&["--json", "sessions", "show", forked[0]["session"].as_str().unwrap()]).lines();
    assert!(shown.iter().any(|it| it["entry"]["type"] == "agent"), "{shown:#?}");
    let replayed = stage.ran(&["replay", &session]);
    assert!(replayed.code == Some(0) && replayed.stdout.contains("same decisions"), "{replayed:?}");
    // It is no other's.
    made(&stage, &["other"]);
    let refused = stage.ran(&["sessions", "resume", &session, "go on", "--agent", "other"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is that of another agent"), "{refused:?}");
    // By the clock and at a channel, beneath the daemon.
    let add = ["schedule", "add", "nightly", "--agent", "helper", "--cron", "@yearly", "by the clock"];
    assert_eq!(stage.ran(&add).code, Some(0));
    let channel = telegram::channel(&stage);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, own.replace("kind = \"telegram\"", "kind = \"telegram\"\nagent = \"helper\""))
        .unwrap();
    let daemon = Daemon::start(&stage);
    assert_eq!(stage.ran(&["schedule", "run", "nightly"]).code, Some(0));
    model.wait_for(4);
    telegram::pair(&stage, &channel, telegram::ANN, "Ann", "owner");
    channel.says(telegram::ANN, "Ann", telegram::ANN, "at the channel");
    model.wait_for(5);
    assert!(is_helper(3) && is_helper(4));
    // Another agent goes on in a session of its own.
    let ours = fs::read_to_string(&config).unwrap();
    fs::write(&config, ours.replace("agent = \"helper\"", "agent = \"other\"")).unwrap();
    assert_eq!(stage.ran(&["stop"]).code, Some(0));
    assert_eq!(stage.ran(&["start"]).code, Some(0));
    channel.says(telegram::ANN, "Ann", telegram::ANN, "who is there?");
    channel.wait_for(telegram::ANN, "six");
    assert!(!is_helper(5));
    fs::write(&config, ours).unwrap();
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    // Whoever is named somewhere stays; and without its agent nobody goes on with a session.
    let kept = stage.ran(&["agent", "remove", "helper"]);
    assert!(kept.code == Some(1) && kept.stderr.contains("the channel `phone`"), "{kept:?}");
    drop(daemon);
    fs::write(&config, own).unwrap();
    let kept = stage.ran(&["agent", "remove", "helper"]);
    assert!(kept.code == Some(1) && kept.stderr.contains("the schedule `nightly`"), "{kept:?}");
    assert_eq!(stage.ran(&["schedule", "rm", "nightly"]).code, Some(0));
    assert_eq!(stage.ran(&["agent", "remove", "helper"]).code, Some(0));
    assert!(!stage.home().join("agents/helper").exists());
    let gone = stage.ran(&["sessions", "resume", &session, "go on"]);
    assert!(gone.code == Some(2) && gone.stderr.contains("there is no agent `helper`"), "{gone:?}");
    assert_eq!(stage.ran(&["sessions", "diff", &session]).code, Some(0));
}

#[test]
fn each_notes_of_itself_in_a_file_of_its_own() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let adapt = Reply::calls([("c1", "agent_adapt", json!({ "name": "Ada" }))]);
    let model = home(&stage, vec![adapt, Reply::text("done"), Reply::text("again")]);
    made(&stage, &["helper"]);
    let folder = stage.home().join("policy");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("default.toml"), bailey_policy::DEFAULT_RULES).unwrap();
    let rule = "[[rule]]\nname = \"trusting\"\nanswer = \"allow\"\npriority = 5\nreason = \"I look at it later\"\n\
                match = { action = \"adapt\", path = \"{bailey}/agents/*/agent.toml\" }\n\
                examples = { deny = [\"adapt {bailey}/agents/helper/settings.toml\"] }\n";
    fs::write(folder.join("own.toml"), rule).unwrap();
    let ran = stage.ran(&["run", "--agent", "helper", "--approve", "never", "you are Ada"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let noted = fs::read_to_string(stage.home().join("agents/helper/agent.toml")).unwrap();
    assert!(noted.contains("Ada") && !stage.home().join("agent.toml").exists(), "{noted}");
    assert_eq!(stage.ran(&["run", "--agent", "helper", "--approve", "never", "who?"]).code, Some(0));
    assert!(body(&model, 2).to_string().contains("Ada"));
}

#[test]
fn no_daemon_takes_a_configuration_whose_agents_are_wrong() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = home(&stage, Vec::new());
    made(&stage, &["helper"]);
    let _channel = telegram::channel(&stage);
    let _daemon = Daemon::start(&stage);
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let with = |agent: &str| {
        let named = format!("kind = \"telegram\"\nagent = \"{agent}\"");
        fs::write(&config, own.replace("kind = \"telegram\"", &named)).unwrap();
        stage.ran(&["reload"])
    };
    let refused = with("helpr");
    assert!(refused.code != Some(0) && refused.stderr.contains("there is no agent `helpr`"), "{refused:?}");
    assert!(refused.stderr.contains("channel `phone`"), "{refused:?}");
    // The control.
    let taken = with("helper");
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let settings = stage.home().join("agents/helper/settings.toml");
    let good = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, "moddel = \"x\"\n").unwrap();
    let refused = stage.ran(&["reload"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("settings.toml"), "{refused:?}");
    fs::write(&settings, good).unwrap();
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    // The same of a schedule's.
    let add = ["schedule", "add", "nightly", "--agent", "helper", "--cron", "@yearly", "x"];
    assert_eq!(stage.ran(&add).code, Some(0));
    fs::write(&config, &own).unwrap();
    assert_eq!(stage.ran(&["reload"]).code, Some(0));
    fs::remove_dir_all(stage.home().join("agents/helper")).unwrap();
    let refused = stage.ran(&["reload"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("schedule `nightly`"), "{refused:?}");
}

#[test]
fn the_limits_of_a_sub_agents_task_are_shown_with_the_others() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let limits = "[limits]\ntask_tokens = 51234\nturn_tokens = 61234\n";
    fs::write(stage.home().join("config.toml"), limits).unwrap();
    let shown = stage.ran(&["budget"]).stdout;
    let line = |whose: &str| shown.lines().find(|line| line.contains(whose)).unwrap_or_default().to_owned();
    assert!(line("by the sub-agent's task").contains("51234 tokens"), "{shown}");
    assert!(line("by the turn").contains("61234 tokens"), "the control: {shown}");
    let limits = stage.ran(&["--json", "budget"]).lines()[0]["limits"].clone();
    let of_task: Vec<&Value> =
        limits.as_array().unwrap().iter().filter(|limit| limit["span"] == "task").collect();
    assert!(of_task.len() == 1 && of_task[0]["limit"] == "51234", "{limits:#}");
}

#[test]
fn what_is_wrong_with_one_is_said() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let _model = home(&stage, Vec::new());
    made(&stage, &["mine"]);
    for (words, code, why) in [
        (&["agent", "new", "mine"][..], 1, "already"),
        (&["agent", "new", "../x"], 1, "cannot name an agent"),
        (&["agent", "new", "--", "-x"], 1, "does not begin with `-`"),
        (&["agent", "new", "a", "--tools", "fs.reed"], 2, "there is no tool `fs.reed`"),
        (&["agent", "new", "a", "--model", "nobody/x"], 2, "nobody"),
        (&["agent", "remove", "a"], 2, "there is no agent `a`"),
        (&["run", "--agent", "..", "x"], 2, "there is no agent `..`"),
    ] {
        let ran = stage.ran(words);
        assert!(ran.code == Some(code) && ran.stderr.contains(why), "{words:?}: {ran:?}");
    }
    assert!(!stage.home().join("agents/a").exists(), "a mistake leaves nothing");
    fs::write(stage.home().join("agents/mine/settings.toml"), "moddel = \"x\"\n").unwrap();
    let ran = stage.ran(&["run", "--agent", "mine", "x"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("settings.toml"), "{ran:?}");
    let listed = stage.ran(&["--json", "agent", "list"]).lines();
    assert!(listed.len() == 1 && listed[0]["problem"].as_str().unwrap().contains("moddel"), "{listed:#?}");
}
