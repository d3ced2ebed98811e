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
    terminal.keys("another");
    terminal.wait_for("› another");
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

/// `bailey` by itself sets up where no model is known, else it begins at once; for scripts it is a mistake.
#[test]
fn bailey_by_itself_begins_a_conversation() {
    let stage = Stage::new(&[]);
    let Some(mut terminal) = Terminal::first(&stage, &person(&stage, &[])) else { return };
    terminal.wait_for("Where does your model run?");
    // Esc leaves: each question can be left out.
    terminal.keys("\u{1b}");
    terminal.wait_for("Your name for commits:");
    terminal.keys("\u{4}");
    let (code, shown) = terminal.end();
    assert!(code == 2 && shown.contains("no model is configured"), "{code}: {shown}");

    let model = stage.model_beside(vec![bailey_testkit::Reply::text("Hello Ann")]);
    let config = stage.home().join("config.toml");
    let old = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("model = \"test/model\"\n{old}")).unwrap();
    fs::write(stage.home().join("USER.md"), "").unwrap();
    let Some(mut terminal) = Terminal::first(&stage, &person(&stage, &[])) else { return };
    terminal.wait_for("› ");
    terminal.keys("hello\r");
    terminal.wait_for("Hello Ann");
    terminal.keys("/quit\r");
    let (code, shown) = terminal.end();
    assert_eq!((code, model.requests().len()), (0, 1), "{shown}");

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
