//! Extensions of the policy in whole sessions, and the guide to them, whose programs run as they stand.

use crate::stage::{Ran, Stage};
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// For those that are not to be late, whatever else the machine does.
const PATIENT: &str = "within_ms = 10_000\n";

/// A file of the guides.
fn guide(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).unwrap()
}

/// Code blocks about extensions in one language.
fn blocks(language: &str) -> Vec<String> {
    let page = guide("extensions.md");
    let (page, _) = page.split_once("\n## The gate for other runtimes\n").unwrap();
    let fence = format!("```{language}\n");
    let parts = page.split(&fence).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

fn python() -> Option<&'static str> {
    let python = Some("/usr/bin/python3").filter(|python| Path::new(python).exists());
    if python.is_none() {
        println!("SKIPPED: there is no /usr/bin/python3");
    }
    python
}

/// Writes a program that the walls show: where it lies, others may read.
fn program(stage: &Stage, name: &str, text: &str) -> PathBuf {
    let file = fs::canonicalize(stage.folder()).unwrap().join(name);
    fs::write(&file, text).unwrap();
    file
}

/// Declares an extension, in front of whatever the configuration says.
fn declare(stage: &Stage, command: &[&str], options: &str) {
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!(
        "[[policy.extension]]\nname = \"x\"\ncommand = {}\nkinds = [\"exec\"]\n{options}",
        json!(command)
    );
    fs::write(stage.home().join("config.toml"), config).unwrap();
}

/// The page's first program, with another judgement in it.
fn judging(judge: &str) -> String {
    let text = blocks("python").remove(0);
    let (head, rest) = text.split_once("def judge(action):\n").unwrap();
    let (_, tail) = rest.split_once("write({\"ready\": 1})").unwrap();
    format!("{head}def judge(action):\n    {judge}\n\nwrite({{\"ready\": 1}}){tail}")
}

/// Has the agent run these commands, one after the other.
fn run(stage: &Stage, commands: &[&[&str]]) -> (Ran, ModelServer) {
    let calls = commands.iter().enumerate();
    let call = |(n, argv): (usize, &&[&str])| {
        Reply::calls([(format!("c{n}").as_str(), "command_run", json!({ "argv": argv }))])
    };
    let script = calls.map(call).chain([Reply::text("done")]).collect();
    // The model of an earlier run goes.
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.split("[providers.test]").next().unwrap()).unwrap();
    let model = stage.model_beside(script);
    (stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]), model)
}

/// The entries of a type, with what they say of an extension.
fn entries(stage: &Stage, kind: &str) -> Vec<Value> {
    stage
        .trail()
        .into_iter()
        .filter(|entry| entry["entry"]["type"] == kind || entry["type"] == kind)
        .collect()
}

#[test]
fn the_pages_first_program_is_asked_as_the_page_says() {
    let (Some(python), stage) = (python(), Stage::new(&[])) else { return };
    let file = program(&stage, "no-deploy.py", &blocks("python")[0]);
    declare(&stage, &[python, file.to_str().unwrap()], PATIENT);
    let (ran, _model) = run(&stage, &[&["echo", "deploy"], &["echo", "hello"]]);
    let results = ran.results();
    assert!(results[0].contains("nothing is deployed from here (extension `x`: deny)"), "{ran:?}");
    assert!(results[1].contains("hello"), "{ran:?}");
    let denied = entries(&stage, "denied");
    assert!(denied.len() == 1 && denied[0].to_string().contains("extension `x`: deny"), "{denied:?}");

    let explained = stage.ran(&["--json", "policy", "explain", "exec", "--", "./deploy"]).lines().remove(0);
    assert_eq!((&explained["verdict"], &explained["extensions"]), (&json!("allow"), &json!(["x"])));
    let listed = stage.ran(&["--json", "policy", "extensions", "list"]).lines().remove(0);
    assert_eq!((&listed["name"], &listed["disabled"]), (&json!("x"), &json!(false)));
    assert_eq!(listed["within_ms"], 10_000, "the control of what is said of one that does not say it");
}

#[test]
fn one_that_does_not_say_how_long_it_may_take_has_100_ms() {
    let stage = Stage::new(&[]);
    let file = program(&stage, "x.py", "1");
    for (options, within) in [("", 100), ("within_ms = 250\n", 250)] {
        declare(&stage, &["python3", file.to_str().unwrap()], options);
        let listed = stage.ran(&["--json", "policy", "extensions", "list"]).lines().remove(0);
        assert_eq!(listed["within_ms"], within, "{options}");
    }
}

#[test]
fn every_declaration_of_the_page_is_one() {
    for (place, declaration) in blocks("toml").into_iter().enumerate() {
        let stage = Stage::new(&[]);
        fs::create_dir_all(stage.home()).unwrap();
        fs::write(stage.home().join("config.toml"), declaration).unwrap();
        let checked = stage.ran(&["config", "check"]);
        assert_eq!(checked.code, Some(0), "{place}: {checked:?}");
    }
}

#[test]
fn the_pages_program_for_deno_answers_like_the_first() {
    let Some(deno) = deno() else {
        println!("SKIPPED: there is no deno (`npm install deno` in target/npm brings one)");
        return;
    };
    let stage = Stage::new(&[]);
    let file = program(&stage, "no-deploy.ts", &guide("no-deploy.ts"));
    let command = [deno.to_str().unwrap(), "run", "--no-config", file.to_str().unwrap()];
    declare(&stage, &command, &format!("{PATIENT}profile = \"standard\"\n"));
    let (ran, _model) = run(&stage, &[&["echo", "deploy"], &["echo", "hello"]]);
    let results = ran.results();
    assert!(
        results[0].contains("nothing is deployed from here (extension `x`: deny)"),
        "{ran:?} {:?}",
        stage.trail()
    );
    assert!(results[1].contains("hello"), "{ran:?}");
}

/// The program itself, and not what npm puts in front of it, which would need node inside.
fn deno() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/npm/node_modules");
    let packaged =
        ["deno/deno", "@deno/linux-x64-glibc/deno", "@deno/linux-arm64-glibc/deno"].map(|at| root.join(at));
    let on_path = Command::new("sh").args(["-c", "command -v deno"]).output().ok()?;
    let on_path = PathBuf::from(String::from_utf8(on_path.stdout).ok()?.trim());
    packaged
        .into_iter()
        .chain([on_path])
        .filter_map(|deno| fs::canonicalize(deno).ok())
        .find(|deno| deno.is_file())
}

#[test]
fn an_allow_of_an_extension_lifts_nothing_and_a_denial_of_the_rules_never_asks_it() {
    let (Some(python), stage) = (python(), Stage::new(&[])) else { return };
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rule = "[[rule]]\nname = \"no-make\"\nanswer = \"deny\"\nmatch = { action = \"exec\", command = \"make\" }\n";
    let rules =
        format!("{rule}[[rule]]\nname = \"models\"\nanswer = \"allow\"\nmatch = {{ action = \"model\" }}\n");
    fs::write(stage.home().join("policy/own.toml"), rules).unwrap();
    // Whatever it is asked is heard of by whoever reads its reasons.
    let file = program(&stage, "x.py", &judging("return \"allow\", \"I said \" + action[\"argv\"][0]"));
    declare(&stage, &[python, file.to_str().unwrap()], PATIENT);
    let (ran, _model) = run(&stage, &[&["make", "x"], &["echo", "hello"]]);
    let results = ran.results();
    assert!(results[0].contains("rule `no-make`: deny"), "{ran:?}");
    assert!(!ran.stdout.contains("I said make"), "it was not asked: {ran:?}");
    assert!(ran.stdout.contains("I said echo") && results[1].contains("hello"), "the control: {ran:?}");
}

#[test]
fn its_review_asks_a_human_also_about_what_the_rules_allow() {
    let (Some(python), stage) = (python(), Stage::new(&[])) else { return };
    let judge =
        "return (\"review\", \"look at this\") if action[\"argv\"][-1] == \"x\" else (\"pass\", \"\")";
    let file = program(&stage, "x.py", &judging(judge));
    declare(&stage, &[python, file.to_str().unwrap()], PATIENT);
    let (ran, _model) = run(&stage, &[&["echo", "x"], &["echo", "hello"]]);
    let asked = entries(&stage, "asked");
    assert!(asked.len() == 1 && ran.stdout.contains("look at this (extension `x`: review)"), "{ran:?}");
    let results = ran.results();
    assert!(results[0].contains("not approved") || results[0].contains("denied"), "nobody said yes: {ran:?}");
    assert!(results[1].contains("hello"), "the control: {ran:?}");
}

#[test]
fn one_of_a_tier_that_wants_more_than_there_is_does_not_run() {
    let Some(python) = python() else { return };
    for (tiers, heard) in
        [("", "(extension `x`: deny)"), ("[sandbox.tiers]\nuntrusted = \"native\"\n", "hello")]
    {
        let stage = Stage::new(&[]);
        let file = program(&stage, "x.py", &judging("return \"pass\", \"\""));
        let options = format!("tier = \"untrusted\"\n{PATIENT}\n{tiers}");
        declare(&stage, &[python, file.to_str().unwrap()], &options);
        let doctor = stage.ran(&["--json", "sandbox", "doctor"]);
        let found = doctor.lines().into_iter().find(|found| found["check"] == "tier untrusted").unwrap();
        assert_eq!(found["grade"], if tiers.is_empty() { "fail" } else { "ok" }, "{found}");
        assert!(found["says"].as_str().unwrap().contains("the extension x"), "{found}");
        let (ran, _model) = run(&stage, &[&["echo", "hello"]]);
        assert!(ran.results()[0].contains(heard), "{tiers}: {ran:?}");
        let why = "untrusted code needs the isolation `microvm`";
        let is_told = entries(&stage, "outcome").iter().any(|entry| entry.to_string().contains(why));
        assert_eq!(is_told, tiers.is_empty(), "{tiers}");
    }
}

#[test]
fn one_that_crashes_twice_is_disabled_for_every_process_until_a_human_enables_it() {
    let (Some(python), stage) = (python(), Stage::new(&[])) else { return };
    let file = program(&stage, "x.py", &judging("sys.exit(\"on fire\")"));
    declare(&stage, &[python, file.to_str().unwrap()], PATIENT);
    let denied = |ran: &Ran, why: &str| assert!(ran.results()[0].contains(why), "{why}: {ran:?}");
    denied(&run(&stage, &[&["true"]]).0, "it crashed (extension `x`: deny)");
    denied(&run(&stage, &[&["true"]]).0, "it crashed (extension `x`: deny)");
    denied(&run(&stage, &[&["true"]]).0, "it is disabled until you enable it again");
    assert_eq!(
        (entries(&stage, "extension_failed").len(), entries(&stage, "extension_disabled").len()),
        (2, 1)
    );
    let log = stage.ran(&["audit", "log", "-n", "1000"]).stdout;
    assert!(
        log.contains("x crashed: it ended with exit code 1 · on fire")
            && log.contains("x is not asked any more"),
        "{log}"
    );
    let listed = stage.ran(&["policy", "extensions", "list"]);
    assert!(listed.stdout.contains("disabled: its kinds are denied"), "{listed:?}");
    // What follows from the entries is what stands.
    let rebuilt = stage.ran(&["--json", "audit", "rebuild"]).lines().remove(0);
    assert_eq!(rebuilt["repaired"], json!({}));

    // A program that was put right is not asked either.
    fs::write(&file, judging("return \"pass\", \"\"")).unwrap();
    denied(&run(&stage, &[&["true"]]).0, "it is disabled until you enable it again");
    assert_eq!(stage.ran(&["policy", "extensions", "enable", "y"]).code, Some(1));
    let enabled = stage.ran(&["policy", "extensions", "enable", "x"]);
    assert!(enabled.code == Some(0) && enabled.stdout.contains("x is asked again"), "{enabled:?}");
    let (ran, _model) = run(&stage, &[&["echo", "hello"]]);
    assert!(ran.results()[0].contains("hello"), "{ran:?}");
}

/// The starts of extensions that the journal has, each with whether it has an outcome.
fn starts(stage: &Stage) -> Vec<(Value, bool)> {
    let trail = stage.trail();
    let ended = |effect: &Value| trail.iter().any(|it| it["type"] == "outcome" && it["effect"] == *effect);
    let intents = trail.iter().filter(|it| it["type"] == "intent" && it["under"].is_object());
    intents.map(|it| (it.clone(), ended(&it["effect"]))).collect()
}

#[test]
fn each_start_is_an_entry_under_a_token_and_a_session_without_extensions_has_none() {
    let (Some(python), stage) = (python(), Stage::new(&[])) else { return };
    declare(&stage, &[python], "");
    fs::write(stage.home().join("config.toml"), "").unwrap();
    run(&stage, &[&["echo", "hello"]]);
    assert!(starts(&stage).is_empty() && entries(&stage, "token_minted").is_empty());
    let file = program(&stage, "x.py", &judging("return \"pass\", \"\""));
    declare(&stage, &[python, file.to_str().unwrap()], PATIENT);
    let (ran, _model) = run(&stage, &[&["echo", "hello"], &["echo", "again"]]);
    assert!(ran.results()[1].contains("again"), "{ran:?}");
    let starts = starts(&stage);
    let [(start, true)] = &starts[..] else { panic!("{starts:?}") };
    let python = fs::canonicalize(python).unwrap();
    assert_eq!(start["target"], json!(format!("{} {}", python.display(), file.display())));
    assert_eq!((&start["role"], &start["purpose"]), (&json!("owner"), &json!("own")));
    let log = stage.ran(&["audit", "log", "-n", "1000"]).stdout;
    assert!(log.contains("for the extension `x`: 2 operations until"), "{log}");
    assert_eq!(entries(&stage, "token_ended").len(), 1);
    let verified = stage.ran(&["--json", "audit", "verify"]).lines().remove(0);
    assert_eq!(verified["signed"]["newest"]["entries"], verified["entries"], "its end is signed, too");
    let rebuilt = stage.ran(&["--json", "audit", "rebuild"]).lines().remove(0);
    assert_eq!(rebuilt["repaired"], json!({}));
}

#[test]
fn a_program_that_was_changed_meanwhile_is_not_started_again() {
    let Some(python) = python() else { return };
    let crashes =
        judging("sys.exit(1) if action[\"argv\"][-1] == \"x\" else None\n    return \"pass\", \"\"");
    for is_changed in [false, true] {
        let stage = Stage::new(&[]);
        let file = program(&stage, "x.py", &crashes);
        declare(&stage, &[python, file.to_str().unwrap()], PATIENT);
        let gate = Gate::default();
        let call = |name, word| [(name, "command_run", json!({ "argv": ["echo", word] }))];
        let model = stage.model_beside(vec![
            Reply::calls(call("c1", "x")),
            Reply::Held(gate.clone(), Message::calls(call("c2", "hello"))),
            Reply::text("done"),
        ]);
        let arguments = ["--json", "run", "--model", "test/model", "--approve", "never", "do it"];
        let ran = std::thread::scope(|scope| {
            let running = scope.spawn(|| stage.ran(&arguments));
            model.wait_for(2);
            if is_changed {
                // In its place, so that whoever may read it still may.
                fs::write(&file, format!("{crashes}\n# another one")).unwrap();
            }
            gate.open();
            running.join().unwrap()
        });
        let results = ran.results();
        assert!(results[0].contains("it crashed"), "{ran:?}");
        let log = stage.ran(&["audit", "log", "-n", "1000"]).stdout;
        if is_changed {
            let why = "its program or a file of it is not what it was when this session began";
            assert!(results[1].contains("it is not started") && results[1].contains(why), "{ran:?}");
            assert!(log.contains(why), "{log}");
            assert_eq!(starts(&stage).len(), 1);
        } else {
            assert!(results[1].contains("hello"), "the control: {ran:?} {log}");
            assert_eq!(starts(&stage).len(), 2);
        }
    }
}

#[test]
fn one_that_is_late_counts_as_the_owner_said_and_the_journal_says_so() {
    let (Some(python), stage) = (python(), Stage::new(&[])) else { return };
    let file = program(&stage, "x.py", &judging("import time; time.sleep(1000)"));
    let command = [python, file.to_str().unwrap()];
    for (late, heard) in
        [("", "it did not answer in time (extension `x`: deny)"), ("late = \"pass\"\n", "hello")]
    {
        declare(&stage, &command, late);
        let (ran, _model) = run(&stage, &[&["echo", "hello"]]);
        assert!(ran.results()[0].contains(heard), "{late}: {ran:?}");
    }
    let failed = entries(&stage, "extension_failed");
    assert!(
        failed.len() == 2 && failed.iter().all(|entry| entry.to_string().contains("\"late\"")),
        "{failed:?}"
    );
    assert!(entries(&stage, "extension_disabled").is_empty());
}

#[test]
fn another_program_is_another_policy_and_a_declaration_that_cannot_be_is_named() {
    let stage = Stage::new(&[]);
    let file = program(&stage, "x.py", "1");
    let command = ["python3", file.to_str().unwrap()];
    let digest = || stage.ran(&["--json", "policy", "check"]).lines()[0]["digest"].clone();
    let mut digests = vec![digest()];
    declare(&stage, &command, "");
    digests.push(digest());
    assert_eq!(digest(), digests[1], "the same twice, control");
    fs::write(&file, "2").unwrap();
    digests.push(digest());
    declare(&stage, &command, "late = \"pass\"\n");
    digests.push(digest());
    declare(&stage, &command, PATIENT);
    digests.push(digest());
    digests.sort_by_key(Value::to_string);
    digests.dedup();
    assert_eq!(digests.len(), 5);

    let inside = stage.home().join("x.py").display().to_string();
    for (command, options, words) in [
        (vec![], "", "no program"),
        (vec!["python3", &inside], "", "Bailey's own home"),
        (vec!["python3"], "within_ms = 0\n", "must be 1 to 10000"),
        (vec!["python3"], "late = \"allow\"\n", "allow"),
        (vec!["python3"], "files = [\"x.py\"]\n", "no absolute path"),
        (vec!["python3"], "profile = \"standard-net\"\n", "standard-net"),
    ] {
        declare(&stage, &command, options);
        let checked = stage.ran(&["config", "check"]);
        assert!(checked.code == Some(2) && checked.stderr.contains(words), "{words}: {checked:?}");
    }
}
