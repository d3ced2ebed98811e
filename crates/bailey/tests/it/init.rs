//! `bailey init` on a terminal, and `bailey` by itself: their questions, and the files that they write.

use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const MODELS: &str =
    r#"{"object":"list","data":[{"id":"alpha-1"},{"id":"beta-2"},{"id":"evil\u001b[2Jname"}]}"#;

/// A server that lists models, for requests with this key where it wants one.
fn lists(key: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer(stream, key));
        }
    });
    url
}

fn answer(mut stream: TcpStream, key: Option<&str>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let head: Vec<String> =
        lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let is_known = key.is_none_or(|key| head.iter().any(|line| line.ends_with(&format!(" {key}"))));
    let (status, body) = match is_known {
        true => ("200 OK", MODELS),
        false => ("401 Unauthorized", r#"{"error":{"message":"wrong key"}}"#),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
    stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).ok()
}

/// A person of this stage: with a home directory of their own, and without any key.
fn person(stage: &Stage, arguments: &[&str]) -> Command {
    let user = stage.folder().join("ann");
    fs::create_dir_all(&user).unwrap();
    let mut command = stage.bailey(arguments);
    command.env("HOME", user).env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GEMINI_API_KEY");
    command
}

/// Puts a server into the place of one of those that Bailey looks for on this machine.
fn configured(stage: &Stage, name: &str, url: &str) {
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!("[providers.{name}]\nwire = \"openai\"\nbase_url = \"{url}\"\n");
    fs::write(stage.home().join("config.toml"), config).unwrap();
}

#[test]
fn a_local_server_is_found_and_its_model_picked() {
    let stage = Stage::new(&[]);
    configured(&stage, "lmstudio", &lists(None));
    let Some(mut terminal) = Terminal::first(&stage, &person(&stage, &["init"])) else { return };
    terminal.wait_for_in_turn(&["Where does your model run?", "LM Studio, on this machine: 3 models"]);
    terminal.keys("studio");
    terminal.wait_for("› studio");
    terminal.keys("\r");
    let page = terminal.wait_for_in_turn(&["Which model?", "beta-2", "evil"]);
    assert!(!page.contains("\u{1b}[2Jname"), "a model's name does not act: {page}");
    terminal.keys("beta");
    terminal.wait_for("› beta");
    terminal.keys("\r");
    terminal.wait_for_in_turn(&["lmstudio/beta-2", "Your name for commits:"]);
    terminal.keys("\u{1b}[200~Ann \"the\" Author\u{1b}[201~\r");
    terminal.wait_for("Your e-mail for commits:");
    terminal.keys("ann@example.invalid\r");
    terminal.wait_for("Next:");
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
    assert!(config.contains("model = \"lmstudio/beta-2\""), "{config}");
    let git = fs::read_to_string(stage.folder().join("ann/.gitconfig")).unwrap();
    assert!(
        git.contains("name = \"Ann \\\"the\\\" Author\"") && git.contains("ann@example.invalid"),
        "{git}"
    );
}

/// A key is typed unseen and stands only in its store. When the provider refuses it, Bailey asks for another
/// one.
#[test]
fn a_key_is_asked_for_unseen_and_tried() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let url = lists(Some("sk-ant-right-4711"));
    let config = format!(
        "[providers.openai]\nwire = \"openai\"\nbase_url = \"{url}\"\nkey_env = \"OPENAI_API_KEY\"\n"
    );
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let Some(mut terminal) = Terminal::first(&stage, &person(&stage, &["init"])) else { return };
    terminal.wait_for_in_turn(&["Where does your model run?", "OpenAI (asks for a key)"]);
    terminal.keys("openai (");
    terminal.wait_for("› openai (");
    terminal.keys("\r");
    terminal.wait_for("OPENAI_API_KEY (not shown): ");
    terminal.keys("sk-ant-wrong-0815\r");
    terminal.wait_for_in_turn(&["What now?", "Give another key"]);
    terminal.keys("another key");
    terminal.wait_for("› another key");
    terminal.keys("\r");
    terminal.wait_for("OPENAI_API_KEY (not shown): ");
    terminal.keys("sk-ant-right-4711\r");
    terminal.wait_for_in_turn(&["Which model?", "alpha-1"]);
    terminal.keys("\r");
    terminal.wait_for("Your name for commits:");
    terminal.keys("\r");
    terminal.wait_for("Next:");
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("4711") && !shown.contains("0815"), "{shown}");
    let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
    assert!(config.contains("model = \"openai/alpha-1\"") && !config.contains("4711"), "{config}");
    // The control: it is where keys are kept.
    assert!(
        fs::read_to_string(stage.home().join(".env")).unwrap().contains("OPENAI_API_KEY=sk-ant-right-4711")
    );
    assert!(!stage.folder().join("ann/.gitconfig").exists(), "nothing was said, nothing was written");
}

/// A key that the provider refused is not stored, and the person can turn to another provider.
#[test]
fn a_refused_key_is_not_stored_and_another_provider_can_be_chosen() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let url = lists(Some("sk-ant-right-4711"));
    let config = format!(
        "[providers.openai]\nwire = \"openai\"\nbase_url = \"{url}\"\nkey_env = \"OPENAI_API_KEY\"\n"
    );
    fs::write(stage.home().join("config.toml"), &config).unwrap();
    let is_stored = || fs::read_to_string(stage.home().join(".env")).unwrap().contains("\nOPENAI_API_KEY=");
    let asked = |key: &str| {
        let mut terminal = Terminal::first(&stage, &person(&stage, &[]))?;
        terminal.wait_for_in_turn(&["Where does your model run?", "(none answers yet)"]);
        terminal.keys("openai (");
        terminal.wait_for("› openai (");
        terminal.keys("\r");
        terminal.wait_for("OPENAI_API_KEY (not shown): ");
        terminal.keys(&format!("{key}\r"));
        Some(terminal)
    };
    let Some(mut terminal) = asked("sk-ant-wrong-0815") else { return };
    terminal.wait_for_in_turn(&["What now?", "Another provider"]);
    terminal.keys("provider");
    terminal.wait_for("› provider");
    terminal.keys("\r");
    terminal.wait_for_in_turn(&["Where does your model run?", "OpenAI (asks for a key)"]);
    terminal.keys("\u{1b}");
    let (code, shown) = terminal.end();
    assert!(code == 130 && shown.contains("nothing was stored"), "{code}: {shown}");
    assert!(!is_stored());
    // Nor is a right one, before the model is chosen.
    let mut terminal = asked("sk-ant-right-4711").unwrap();
    terminal.wait_for("Which model?");
    terminal.keys("\u{3}");
    assert_eq!(terminal.end().0, 130);
    assert!(!is_stored());
    assert_eq!(fs::read_to_string(stage.home().join("config.toml")).unwrap(), config);
    // The control: a person who wants it all the same has it.
    let mut terminal = asked("sk-ant-wrong-0815").unwrap();
    terminal.wait_for_in_turn(&["What now?", "Name a model all the same"]);
    terminal.keys("name");
    terminal.wait_for("› name");
    terminal.keys("\r");
    terminal.wait_for("Which model, by its name?");
    terminal.keys("alpha-1\r");
    terminal.wait_for("Your name for commits:");
    assert!(is_stored());
    terminal.keys("\u{3}");
    assert_eq!(terminal.end().0, 130);
}

/// A server by its URL is tried before it is written.
#[test]
fn a_server_by_its_url_is_written_with_its_model() {
    let stage = Stage::new(&[]);
    let url = lists(Some("server-key-4711"));
    let Some(mut terminal) = Terminal::first(&stage, &person(&stage, &["init"])) else { return };
    terminal.wait_for("Where does your model run?");
    terminal.keys("url");
    terminal.wait_for("› url");
    terminal.keys("\r");
    terminal.wait_for("Its URL");
    terminal.keys(&format!("{url}\r"));
    terminal.wait_for_in_turn(&["The server", "It asks for a key"]);
    terminal.keys("\r");
    terminal.wait_for("SERVER_API_KEY (not shown): ");
    terminal.keys("server-key-4711\r");
    terminal.wait_for_in_turn(&["Which model?", "alpha-1"]);
    let before = fs::read_to_string(stage.home().join("config.toml")).unwrap();
    assert!(!before.contains(&url), "{before}");
    terminal.keys("\r");
    terminal.wait_for("Your name for commits:");
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
    let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
    assert!(config.contains(&url) && config.contains("model = \"server/alpha-1\""), "{config}");
    let keys = fs::read_to_string(stage.home().join(".env")).unwrap();
    assert!(keys.contains("SERVER_API_KEY=server-key-4711"));
}

/// Ctrl-C ends the program at each question.
#[test]
fn ctrl_c_ends_the_setup_at_each_question() {
    let stage = Stage::new(&[]);
    configured(&stage, "lmstudio", &lists(None));
    let ends = |until: &dyn Fn(&mut Terminal)| {
        let Some(mut terminal) = Terminal::first(&stage, &person(&stage, &[])) else { return };
        until(&mut terminal);
        terminal.keys("\u{3}");
        let (code, shown) = terminal.end();
        assert!(code == 130 && shown.ends_with('\n'), "{code}: {shown}");
    };
    let to_list = |terminal: &mut Terminal| drop(terminal.wait_for("Where does your model run?"));
    ends(&to_list);
    ends(&|terminal| {
        to_list(terminal);
        terminal.keys("anthropic");
        terminal.wait_for("› anthropic");
        terminal.keys("\r");
        terminal.wait_for("ANTHROPIC_API_KEY (not shown): ");
    });
    let to_name = |terminal: &mut Terminal| {
        to_list(terminal);
        terminal.keys("\r");
        terminal.wait_for("Which model?");
        terminal.keys("\r");
        terminal.wait_for("Your name for commits:");
    };
    ends(&to_name);
    // The model is there now: the four questions of the first conversation are next.
    ends(&|terminal| drop(terminal.wait_for("What should I call you?")));
    ends(&|terminal| {
        terminal.wait_for("What should I call you?");
        terminal.keys("Ann\r");
        terminal.wait_for("What do you want to call your agent?");
    });
    assert!(!stage.home().join("USER.md").exists());
}

/// Where no conversation can begin, the home is set up all the same.
#[test]
fn a_home_directory_is_no_project_and_is_told_after_the_setup() {
    let stage = Stage::new(&[]);
    configured(&stage, "lmstudio", &lists(None));
    let mut bailey = person(&stage, &[]);
    bailey.current_dir(stage.folder().join("ann"));
    let Some(mut terminal) = Terminal::first(&stage, &bailey) else { return };
    terminal.wait_for("Where does your model run?");
    terminal.keys("\r");
    terminal.wait_for("Which model?");
    terminal.keys("\r");
    terminal.wait_for("Your name for commits:");
    terminal.keys("\u{4}");
    let (code, shown) = terminal.end();
    assert!(code == 0 && shown.contains("Bailey is set up; go to a project's directory"), "{code}: {shown}");
}

/// `bailey` by itself sets up where no model is known, else it begins at once; for scripts it is a mistake.
#[test]
fn bailey_by_itself_begins_a_conversation() {
    let stage = Stage::new(&[]);
    let Some(mut terminal) = Terminal::first(&stage, &person(&stage, &[])) else { return };
    terminal.wait_for("Where does your model run?");
    // Esc leaves, and nothing begins.
    terminal.keys("\u{1b}");
    let (code, shown) = terminal.end();
    assert!(code == 130 && shown.contains("nothing was stored"), "{code}: {shown}");
    // Each question can be left out.
    let mut terminal = Terminal::first(&stage, &person(&stage, &[])).unwrap();
    terminal.wait_for_in_turn(&["Where does your model run?", "Decide later"]);
    terminal.keys("later");
    terminal.wait_for("› later");
    terminal.keys("\r");
    terminal.wait_for_in_turn(&["no model was chosen", "Your name for commits:"]);
    terminal.keys("\u{4}");
    let (code, shown) = terminal.end();
    assert!(code == 2 && shown.contains("no model is configured"), "{code}: {shown}");

    let model = stage.model_beside(vec![bailey_testkit::Reply::text("Hello Ann")]);
    let config = stage.home().join("config.toml");
    let old = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("model = \"test/model\"\n{old}")).unwrap();
    fs::write(stage.home().join("USER.md"), "").unwrap();
    let mut terminal = Terminal::first(&stage, &person(&stage, &[])).unwrap();
    terminal.wait_for("› ");
    terminal.keys("hello\r");
    terminal.wait_for("Hello Ann");
    terminal.keys("/quit\r");
    let (code, shown) = terminal.end();
    assert_eq!((code, model.requests().len()), (0, 1), "{shown}");

    // The options of `bailey chat` need no command. A conversation in which nothing happened has no summary.
    let mut terminal = Terminal::first(&stage, &person(&stage, &["-m", "test/other"])).unwrap();
    terminal.wait_for("test/other");
    terminal.keys("/quit\r");
    let (code, shown) = terminal.end();
    assert!(code == 0 && !shown.contains("  spent"), "{code}: {shown}");
    let mut terminal = Terminal::first(&stage, &person(&stage, &["--continue"])).unwrap();
    terminal.wait_for_in_turn(&["hello", "Hello Ann"]);
    terminal.keys("\u{4}");
    assert_eq!(terminal.end().0, 0);
    let ran = Ran::of(person(&stage, &["--continue", "--resume"]).stdin(Stdio::null()).output().unwrap());
    assert!(ran.code == Some(2) && ran.stderr.contains("cannot be used with"), "{ran:?}");

    let mut alone = Command::new(env!("CARGO_BIN_EXE_bailey"));
    let ran = Ran::of(alone.env("BAILEY_HOME", stage.home()).stdin(Stdio::null()).output().unwrap());
    assert!(ran.code == Some(2) && ran.stderr.contains("Work with the agent:"), "{ran:?}");
}

/// Where nothing listens, the look takes no time that a person notices; without a terminal nothing is asked.
#[test]
fn the_look_for_servers_is_short_and_only_for_a_person() {
    let stage = Stage::new(&[]);
    let begin = Instant::now();
    let look = ["--json", "init", "--look", "ollama,lmstudio,llamacpp,vllm"];
    let ran = Ran::of(person(&stage, &look).output().unwrap());
    assert_eq!((ran.code, ran.lines().len()), (Some(0), 4), "{ran:?}");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    // Each look is an effect like any other: it went through the gate, and stands in the journal.
    let asked = stage.entries("intent").into_iter().filter(|entry| entry["kind"] == "model").count();
    assert_eq!(asked, 4);

    let other = Stage::new(&[]);
    let ran = Ran::of(person(&other, &["init"]).stdin(Stdio::null()).output().unwrap());
    assert!(ran.code == Some(0) && !ran.stdout.contains("Where does"), "{ran:?}");
    assert!(!other.home().join("journal.db").exists(), "nothing was asked: {ran:?}");
}
