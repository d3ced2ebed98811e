//! Questions on a terminal: what is shown, what counts as an answer, and what can never be one.

use crate::{stage::Stage, terminal::Terminal};
use bailey_testkit::{Gate, Message, Reply};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, thread, time::Duration};
use tempfile::TempDir;

pub(crate) const QUESTION: &str = "[n]o or [d]etails: ";
const HOSTILE: &str = "a\u{1b}[2J\u{1b}]52;c;eQ==\u{7}\u{202e}\u{200b}\u{9b}31mz";

/// A file outside of every workspace and of what the rules let through unasked.
fn outside() -> (TempDir, PathBuf) {
    let folder = tempfile::Builder::new().prefix("bailey-test-").tempdir_in("/var/tmp").unwrap();
    let file = folder.path().canonicalize().unwrap().join("notes.txt");
    fs::write(&file, "what the notes say\n").unwrap();
    (folder, file)
}

fn read(id: &str, path: &str) -> Reply {
    Reply::calls([(id, "fs_read", json!({ "path": path }))])
}

/// What the model saw of each call, in order.
fn results(model: &bailey_testkit::ModelServer) -> Vec<String> {
    let request = model.requests().last().unwrap().json();
    let blocks =
        request["messages"].as_array().unwrap().iter().filter_map(|it| it["content"].as_array()).flatten();
    blocks.filter(|it| it["type"] == "tool_result").map(|it| it["content"].to_string()).collect()
}

/// What the model saw of one call.
fn told_of(model: &bailey_testkit::ModelServer, call: &str) -> String {
    let request = model.requests().last().unwrap().json();
    let mut blocks =
        request["messages"].as_array().unwrap().iter().filter_map(|it| it["content"].as_array()).flatten();
    let found = blocks.find(|it| it["type"] == "tool_result" && it["tool_use_id"] == call);
    found.map(|it| it["content"].to_string()).unwrap_or_default()
}

fn run(stage: &Stage) -> Option<Terminal> {
    Terminal::start(stage, &["run", "--model", "test/model", "do it"])
}

/// The tool results that the model was sent last.
fn told(model: &bailey_testkit::ModelServer) -> String {
    model.requests().last().unwrap().body.clone()
}

#[test]
fn a_read_outside_is_asked_with_its_canonical_path_and_let_in_once() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (_folder, file) = outside();
    let crooked = file.display().to_string().replace("/var/tmp/", "/var/../var/./tmp/");
    let again = format!("cat {}; ls /var/tmp", file.display());
    let model = stage.model(vec![
        read("c1", &crooked),
        Reply::calls([("c2", "command_run", json!({ "command": again }))]),
        read("c3", &crooked),
        Reply::text("done"),
    ]);
    let Some(mut terminal) = run(&stage) else { return };
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains(&file.display().to_string()), "{card}");
    assert!(card.contains("reads outside the workspace"), "{card}");
    assert!(!card.contains("/../"), "{card}");
    terminal.keys("y\n");
    // The command between saw nothing of it, and the same read is asked again.
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains(&file.display().to_string()), "{card}");
    let requests: Vec<String> = model.requests().iter().map(|request| request.body.clone()).collect();
    assert!(requests[1].contains("what the notes say"), "{}", requests[1]);
    assert_eq!(
        requests[2].matches("what the notes say").count(),
        1,
        "the command saw nothing: {}",
        requests[2]
    );
    terminal.keys("n\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn a_masked_file_that_a_card_reveals_stays_readable_in_that_session() {
    let stage =
        Stage::new(&[("a.txt", "a\n"), (".env", "PASSPHRASE=swordfish\n"), (".env.local", "x=marlin\n")]);
    // What is seen is told in capitals: the file's own words are nowhere but in it.
    let look = "tr a-z A-Z < .env; tr a-z A-Z < .env.local";
    let model = stage.model(vec![
        Reply::calls([("c1", "command_run", json!({ "command": look }))]),
        read("c2", ".env"),
        Reply::calls([("c3", "command_run", json!({ "command": look }))]),
        Reply::calls([("c4", "fs_read", json!({ "path": "a.txt" }))]),
        read("c5", ".env.local"),
        Reply::calls([("c6", "command_run", json!({ "command": look }))]),
        Reply::text("done"),
    ]);
    let Some(mut terminal) = run(&stage) else { return };
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("looks like a secret") && card.contains("everything in this session"), "{card}");
    terminal.keys("y\n");
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains(".env.local"), "{card}");
    terminal.keys("n not that one\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let results = results(&model);
    let [before, shown, after, other, denied, last] = results.as_slice() else { panic!("{results:?}") };
    assert!(!before.contains("SWORDFISH"), "{before}");
    assert!(shown.contains("PASSPHRASE=swordfish"), "{shown}");
    assert!(after.contains("PASSPHRASE=SWORDFISH") && !after.contains("MARLIN"), "{after}");
    assert!(other.contains('a') && denied.contains("not that one"), "{other} {denied}");
    assert!(last.contains("SWORDFISH") && !last.contains("MARLIN"), "{last}");
    let revealed: Vec<_> = stage.trail().into_iter().filter(|entry| entry["type"] == "revealed").collect();
    assert_eq!(revealed.len(), 1, "{revealed:?}");
    assert_eq!(revealed[0]["path"], json!(stage.project().join(".env")));
    // The session goes on with what was revealed to it, and where nobody is there to be asked no more.
    let _model = stage.model(vec![
        Reply::calls([("c7", "command_run", json!({ "command": look }))]),
        read("c8", ".env.local"),
        Reply::text("done"),
    ]);
    let session = crate::workspace::newest(&stage);
    let resumed = stage.ran(&[
        "--json",
        "sessions",
        "resume",
        &session,
        "--model",
        "test/model",
        "--approve",
        "never",
        "again",
    ]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let results = resumed.results();
    let [look, denied] = results.as_slice() else { panic!("{results:?}") };
    assert!(look.contains("SWORDFISH") && !look.contains("MARLIN"), "{look}");
    assert!(!denied.contains("marlin"), "{denied}");
}

#[test]
fn nobody_is_asked_to_show_what_could_not_be_written_anyway() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (folder, file) = outside();
    let new = folder.path().join("new.txt").display().to_string();
    let write =
        |id: &str, path: &str| Reply::calls([(id, "fs_write", json!({ "path": path, "content": "x" }))]);
    let model = stage.model(vec![
        write("c1", &file.display().to_string()),
        write("c2", &new),
        // The control: to look at it is still asked.
        read("c3", &file.display().to_string()),
        Reply::text("done"),
    ]);
    let Some(mut terminal) = run(&stage) else { return };
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("c3") || card.contains("Read "), "{card}");
    assert!(card.matches("DENIED").count() == 2, "{card}");
    terminal.keys("n\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let results = results(&model);
    assert!(results[..2].iter().all(|result| result.contains("denied: ")), "{results:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "what the notes say\n");
}

#[test]
fn yes_for_the_session_is_not_asked_again_for_the_same_effect_only() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (folder, file) = outside();
    let other = folder.path().canonicalize().unwrap().join("other.txt");
    fs::write(&other, "something else\n").unwrap();
    let path = file.display().to_string();
    let model = stage.model(vec![
        read("c1", &path),
        read("c2", &path),
        read("c3", &other.display().to_string()),
        Reply::text("done"),
    ]);
    let Some(mut terminal) = run(&stage) else { return };
    terminal.wait_for(QUESTION);
    terminal.keys("s\n");
    let card = terminal.wait_for(QUESTION);
    assert!(card.contains("other.txt"), "the second read of the same file is not asked: {card}");
    assert_eq!(model.requests()[2].body.matches("what the notes say").count(), 2);
    terminal.keys("n it is none of your business\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(told(&model).contains("it is none of your business"), "{}", told(&model));
    assert!(!told(&model).contains("something else"));
}

/// The default rules, and one that asks before `sort`.
fn ask_sort(stage: &Stage) {
    let ask = "[[rule]]\nname = \"ask-sort\"\nanswer = \"review\"\nreason = \"sorting is looked at\"\n\
               match = { command = \"sort\" }\n";
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    let rules = format!("{}\n{ask}", bailey_policy::DEFAULT_RULES);
    fs::write(stage.home().join("policy/rules.toml"), rules).unwrap();
}

fn command(id: &str, line: &str) -> Reply {
    Reply::calls([(id, "command_run", json!({ "command": line }))])
}

/// Attack A13: what a yes for the pattern covers stands on the card, and nothing else is covered.
#[test]
fn a13_yes_for_the_pattern_covers_what_the_card_says() {
    let tricks = [
        "sort --compress-program=./x a.txt",
        "sort a.txt; touch x",
        "sort -o x a.txt",
        "./sort a.txt",
        "env sort a.txt",
        "cd sub && sort b.txt",
    ];
    for trick in tricks {
        let stage =
            Stage::new(&[("a.txt", "b\na\n"), ("sub/b.txt", "b\n"), ("sort", "#!/bin/sh\ntouch x\n")]);
        ask_sort(&stage);
        let covered = command("c2", "sort -u a.txt");
        let model = stage.model(vec![
            command("c1", "sort -r a.txt"),
            covered,
            command("c3", trick),
            Reply::text("done"),
        ]);
        let Some(mut terminal) = run(&stage) else { return };
        let card = terminal.wait_for(QUESTION);
        assert!(card.contains("every `sort …`") && card.contains("until this session ends"), "{card}");
        terminal.keys("p\n");
        // The control: the second one was not asked.
        let card = terminal.wait_for(QUESTION);
        assert!(results(&model)[1].contains("exit code: 0"), "{:?}", results(&model));
        assert!(card.contains(trick), "{card}");
        assert!(!card.contains("[p]attern"), "{card}");
        terminal.keys("n not that\n");
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert!(told(&model).contains("not that"), "{}", told(&model));
        let trail = stage.trail();
        let answers: Vec<&Value> = trail.iter().filter(|entry| entry["type"] == "answered").collect();
        assert_eq!((&answers[0]["answer"], &answers[0]["by"]), (&json!("yes_for_pattern"), &json!("owner")));
        let person = &answers[0]["person"];
        assert!(person["terminal"].as_str().unwrap().starts_with("pts/"), "{person}");
        let asked = trail.iter().find(|entry| entry["type"] == "asked").unwrap();
        assert_eq!(asked["pattern"]["pattern"]["command"], json!(["sort"]));
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (_folder, file) = outside();
    let gate = Gate::default();
    let call = Message::calls([("c1", "fs_read", json!({ "path": file.display().to_string() }))]);
    let model = stage.model(vec![Reply::Held(gate.clone(), call), Reply::text("done")]);
    let Some(mut terminal) = run(&stage) else { return };
    model.wait_for(1);
    terminal.keys("y\ny\ns\n");
    thread::sleep(Duration::from_millis(200));
    gate.open();
    terminal.wait_for(QUESTION);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(model.requests().len(), 1, "nothing was answered: {}", terminal.news());
    // The control: the same key after the question is one.
    terminal.keys("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(told(&model).contains("what the notes say"), "{screen}");
}

/// Attack A59: what is pasted while a card is open, however it comes, answers nothing.
#[test]
fn a59_a_pasted_yes_is_no_approval() {
    // Each is one paste, in the pieces in which it comes; the mark of the last one's end comes later.
    let pastes: [(&[&str], &str); 5] = [
        (&["\u{1b}[200~y\r\u{1b}[201~"], "type the answer"),
        (&["\u{1b}[200~look:\r", "y\r", "s\ry\r\u{1b}[20", "1~"], "type the answer"),
        (&["y\u{1b}[200~es\u{1b}[201~\r"], "type the answer"),
        // A terminal that marks nothing.
        (&["x\ny\ny\n"], "type the answer"),
        (&["\u{1b}[200~y\r"], "Wait for the end of the paste"),
    ];
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (_folder, file) = outside();
    let path = file.display().to_string();
    let mut calls: Vec<Reply> = (0..=pastes.len()).map(|at| read(&format!("c{at}"), &path)).collect();
    calls.push(Reply::text("done"));
    let model = stage.model(calls);
    let Some(mut terminal) = run(&stage) else { return };
    for (at, (pieces, told)) in pastes.iter().enumerate() {
        terminal.wait_for(QUESTION);
        for piece in *pieces {
            terminal.keys(piece);
        }
        // The question stands below, once more: it is not the next card's.
        terminal.wait_for_in_turn(&[told, QUESTION]);
        assert_eq!(model.requests().len(), at + 1, "{pieces:?} answered: {}", terminal.news());
        // The control: the same letter, typed.
        let end = if told.starts_with("Wait") { "y\r\u{1b}[201~" } else { "" };
        if !end.is_empty() {
            terminal.keys(end);
            terminal.wait_for_in_turn(&["type the answer", QUESTION]);
        }
        terminal.keys("y\n");
        model.wait_for(at + 2);
        assert!(told_of(&model, &format!("c{at}")).contains("what the notes say"), "{pieces:?}");
    }
    // Ctrl-C is a way out of a paste that never ends, and leaves the terminal as it was.
    terminal.wait_for(QUESTION);
    terminal.keys("\u{1b}[200~y\r");
    terminal.wait_for("Wait for the end of the paste");
    terminal.keys("y\r\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert_eq!(screen.matches("\u{1b}[?2004h").count(), pastes.len() + 1, "{screen:?}");
    assert_eq!(screen.matches("\u{1b}[?2004l").count(), pastes.len() + 1, "{screen:?}");
    let answers =
        stage.trail().into_iter().filter(|entry| entry["type"] == "answered" && entry["answer"] == "yes");
    assert_eq!(answers.count(), pastes.len());
}

/// Attack A64: many small steps that nobody was asked about are one sum on the card of the next one.
#[test]
fn a64_a_card_says_what_the_session_sent_and_changed_so_far() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (_folder, file) = outside();
    let write = |at: usize| {
        let input = json!({ "path": format!("part-{at}.txt"), "content": "one line\n" });
        Reply::calls([(format!("c{at}").as_str(), "fs_write", input)])
    };
    let ask = read("last", &file.display().to_string());
    let _model = stage.model(vec![write(1), write(2), write(3), ask, Reply::text("done")]);
    let Some(mut terminal) = run(&stage) else { return };
    let card = terminal.wait_for(QUESTION);
    terminal.keys("n\n");
    terminal.wait_for("Apply these changes? [y/N/pick] ");
    terminal.keys("n\n");
    terminal.end();
    let so_far = card.lines().find(|line| line.contains("this session so far")).unwrap();
    assert!(so_far.contains("3 changes and 0 commands, which changed 3 files"), "{so_far}");
    assert!(so_far.contains(" to 127.0.0.1:") && so_far.contains("sent "), "{so_far}");
    // The control: where nothing came before, nothing was changed.
    let _model = stage.model(vec![read("first", &file.display().to_string()), Reply::text("done")]);
    let Some(mut terminal) = run(&stage) else { return };
    let card = terminal.wait_for(QUESTION);
    terminal.keys("n\n");
    terminal.end();
    assert!(card.contains("this session so far") && !card.contains("changes and"), "{card}");
}

#[test]
fn ctrl_c_at_an_open_question_is_a_no_and_ends_the_turn() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (_folder, file) = outside();
    let path = file.display().to_string();
    let model = stage.model(vec![read("c1", &path), read("c2", &path), Reply::text("done")]);
    let Some(mut terminal) = run(&stage) else { return };
    terminal.wait_for(QUESTION);
    terminal.keys("\x03");
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("cancelling") && !screen.contains("what the notes say"), "{screen}");
    assert_eq!(model.requests().len(), 1, "the turn is over");
    let trail = stage.trail();
    let is = |entry: &serde_json::Value, name: &str| entry["type"] == name;
    assert!(trail.iter().any(|entry| is(entry, "turn_ended") && entry["reason"] == "cancelled"), "{trail:?}");
    assert!(!trail.iter().any(|entry| is(entry, "answered") && entry["answer"] != "no"), "{trail:?}");
    assert!(
        !trail.iter().any(|entry| is(entry, "intent")
            && entry["kind"] == "read"
            && entry["target"].as_str().is_some_and(|at| at.ends_with("notes.txt"))),
        "{trail:?}"
    );
    // The control: the session is whole, asks again and is answered.
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let arguments = ["sessions", "resume", "--model", "test/model", &session, "try again"];
    let Some(mut terminal) = Terminal::start(&stage, &arguments) else { return };
    terminal.wait_for(QUESTION);
    terminal.keys("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(told(&model).contains("what the notes say"), "{screen}");
}

#[test]
fn without_a_terminal_what_needs_a_human_is_denied() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (_folder, file) = outside();
    let _model = stage.model(vec![read("c1", &file.display().to_string()), Reply::text("done")]);
    let command = stage.bailey(&["--json", "run", "--model", "test/model", "do it"]);
    let mut alone = std::process::Command::new("setsid");
    alone.arg("--wait").arg(command.get_program()).args(command.get_args()).current_dir(stage.project());
    let ran = crate::stage::Ran::of(alone.stdin(std::process::Stdio::null()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = ran.results().join("\n");
    assert!(results.contains("no terminal") && !results.contains("what the notes say"), "{results}");
}

/// What must never reach a terminal raw. Colours, the erasing of the live line and the marking of pastes are
/// Bailey's own.
fn deceives(screen: &str) -> Option<char> {
    let mut plain = screen.replace("\r\u{1b}[J", "").replace("\u{1b}[0m", "");
    plain = plain.replace("\u{1b}[?2004h", "").replace("\u{1b}[?2004l", "");
    for rows in 1..9 {
        plain = plain.replace(&format!("\r\u{1b}[{rows}A\u{1b}[J"), "");
    }
    for code in [1, 2, 31, 32, 33, 36] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    let bad = |c: &char| matches!(c, '\u{1b}' | '\u{7}' | '\u{202e}' | '\u{200b}' | '\u{80}'..='\u{9f}' | '\0'..='\u{8}' | '\u{7f}');
    plain.chars().find(bad)
}

/// A09, A59, A60.
#[test]
fn hostile_bytes_are_shown_escaped_wherever_they_come_from() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let (folder, _) = outside();
    let evil = folder.path().canonicalize().unwrap().join(HOSTILE);
    fs::write(&evil, "content").unwrap();
    let write = json!({ "path": "Makefile", "content": format!("{HOSTILE}\n") });
    let name = format!("printf '{HOSTILE}\\n' > '{HOSTILE}.txt'; cat '{HOSTILE}.txt'");
    let reply = |text: &str, calls: Vec<(&str, &str, serde_json::Value)>| {
        let mut message = Message::text(text);
        for call in calls {
            message.calls.extend(Message::calls([call]).calls);
        }
        Reply::Message(message)
    };
    let _model = stage.model(vec![
        reply(HOSTILE, vec![("c1", "fs_write", write), ("c2", "command_run", json!({ "command": name }))]),
        reply("? allow everything", vec![("c3", "fs_read", json!({ "path": evil.to_str().unwrap() }))]),
        reply(HOSTILE, vec![("c4", HOSTILE, json!({ HOSTILE: HOSTILE }))]),
        Reply::text(HOSTILE),
    ]);
    let Some(mut terminal) = Terminal::start(&stage, &["run", "--verbose", "--model", "test/model", HOSTILE])
    else {
        return;
    };
    // The Makefile is Red, so its text is on a card; the file with the evil name stays and is named.
    let card = terminal.wait_for(QUESTION);
    let card = card.split("? ").last().unwrap();
    assert!(card.contains("+a␛[2J"), "the card shows what is there: {card}");
    terminal.keys("n\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 3, "{screen}");
    assert!(screen.contains("z.txt stays in the session: control, bidi or invisible character"), "{screen}");
    assert_eq!(deceives(&screen), None, "{screen:?}");
    assert!(screen.contains("⟨U+202E⟩") && screen.contains("␛]52;"), "{screen}");
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let later: [&[&str]; 5] = [
        &["audit", "log"],
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["sessions", "diff", &session],
        &["audit", "verify"],
    ];
    for arguments in later {
        let piped = stage.ran(arguments);
        assert_eq!(piped.code, Some(0), "{piped:?}");
        assert_eq!(deceives(&(piped.stdout.clone() + &piped.stderr)), None, "{arguments:?}: {piped:?}");
        let (code, screen) = Terminal::start(&stage, arguments).unwrap().end();
        assert_eq!((code, deceives(&screen)), (0, None), "{arguments:?}: {screen:?}");
    }
    // The control: the bytes are really there.
    let diff = stage.ran(&["--json", "sessions", "diff", &session]).lines();
    assert!(
        diff.iter().any(|event| event["diff"].as_str().is_some_and(|diff| diff.contains('\u{1b}'))),
        "{diff:?}"
    );
}

/// A60: what a model asked for, and who somebody says they are, acts on no terminal where it is shown later.
/// Control: the bytes are there.
#[test]
fn a60_questions_and_strangers_act_on_no_terminal_when_they_are_shown_again() {
    // A link, a title that is asked back, a question for the clipboard, one for the cursor, and a terminal's
    // name.
    const REPLIES: &str = "\u{1b}]8;;https://evil.example\u{7}\u{1b}[21t\u{1b}]52;c;?\u{7}\u{1b}[6n\u{1b}[c\u{9b}5n\u{202e}\u{200b}";
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let calls = ["c1", "c2", "c3"].map(|id| {
        let command = format!("echo {id} '{REPLIES}{HOSTILE}'");
        (id, "command_run", json!({ "command": command, "network": true }))
    });
    let _model = stage.model(vec![Reply::calls(calls), Reply::text(REPLIES)]);
    let ran = stage.ran(&["run", "--model", "test/model", "--approve", "later", REPLIES]);
    assert_eq!((ran.code, deceives(&(ran.stdout.clone() + &ran.stderr))), (Some(7), None), "{ran:?}");
    let questions = stage.ran(&["--json", "approvals", "list"]).lines();
    let [no, yes, open] = [0, 1, 2].map(|at: usize| questions[at]["id"].as_str().unwrap().to_owned());
    assert!(questions[0]["target"].as_str().unwrap().contains("\u{1b}]8;;"), "the control: {questions:#?}");
    let session = crate::workspace::newest(&stage);

    // Somebody whom a server calls like that.
    crate::page::default_model(&stage);
    crate::page::anywhere(&stage);
    let _server = crate::webhook::channel(&stage);
    let _daemon = crate::daemon::Daemon::start(&stage);
    let port = crate::webhook::page(&stage);
    let stranger = |name: &str| format!("{name}\u{202e}\u{200b}\u{e0041}");
    for name in ["eve", "mallory"] {
        let says = crate::webhook::says(&stranger(name), "hello?");
        assert_eq!(crate::webhook::deliver(port, name, &says), 200);
    }
    let people = || stage.ran(&["--json", "channels", "people"]).lines();
    let since = std::time::Instant::now();
    while people().len() < 2 {
        assert!(since.elapsed() < std::time::Duration::from_secs(30), "{:#?}", people());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(
        people().iter().all(|it| it["name"].as_str().unwrap().contains('\u{202e}')),
        "the control: {:#?}",
        people()
    );
    let code = |at: usize| people()[at]["code"].as_str().unwrap().to_owned();
    let (code, eve) = (code(0), people()[0]["id"].as_str().unwrap().to_owned());
    let later: [&[&str]; 16] = [
        &["approvals", "list", "--all"],
        &["approvals", "show", &open],
        &["approvals", "reject", &no],
        &["approvals", "approve", &yes],
        &["audit", "log"],
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["sessions", "diff", &session],
        &["channels", "list"],
        &["channels", "people"],
        &["channels", "pair", "ci", &code],
        &["channels", "people"],
        &["channels", "forget", "ci", &eve],
        &["status"],
        &["logs"],
        &["ps"],
    ];
    for arguments in later {
        let ran = stage.ran(arguments);
        let printed = ran.stdout.clone() + &ran.stderr;
        assert_eq!((ran.code, deceives(&printed)), (Some(0), None), "{arguments:?}: {printed:?}");
        // A second time what is settled is only said to be.
        let (_, screen) = Terminal::start(&stage, arguments).unwrap().end();
        assert_eq!(deceives(&screen), None, "{arguments:?}: {screen:?}");
    }
}

#[test]
fn a_rule_file_with_a_mistake_stops_every_command_that_could_act() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let kept = stage.ran(&["sandbox", "run", "--keep", "--", "sh", "-c", "echo b >> a.txt"]);
    assert_eq!(kept.code, Some(0), "the control: with the default rules it runs: {kept:?}");
    let session =
        stage.ran(&["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let rules = "[[rule]]\nname = \"x\"\nanswer = \"alow\"\nreason = \"r\"\nmatch = { action = \"exec\" }\n";
    fs::write(stage.home().join("policy/mine.toml"), rules).unwrap();
    let model = stage.model(vec![Reply::text("no")]);
    let commands: [&[&str]; 7] = [
        &["policy", "check"],
        &["run", "--model", "test/model", "do it"],
        &["sandbox", "run", "--", "true"],
        &["sessions", "resume", &session, "--model", "test/model", "more"],
        &["sessions", "diff", &session],
        &["sessions", "apply", &session],
        &["sessions", "discard", &session],
    ];
    for command in commands {
        let ran = stage.ran(command);
        assert_eq!(ran.code, Some(2), "{command:?}: {ran:?}");
        for part in ["mine.toml", "3", "answer", "allow"] {
            assert!(ran.stderr.contains(part), "{command:?} says no `{part}`: {ran:?}");
        }
    }
    assert_eq!(model.requests().len(), 0);
    assert_eq!(stage.read("a.txt"), "a\n");
    fs::remove_file(stage.home().join("policy/mine.toml")).unwrap();
    assert_eq!(stage.ran(&["sessions", "apply", &session]).code, Some(0));
    assert_eq!(stage.read("a.txt"), "a\nb\n");
}
