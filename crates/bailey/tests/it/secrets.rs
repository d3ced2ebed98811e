//! Keys that Bailey holds: in nothing that it writes, prints or sends, whatever form they come back in.

use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_testkit::{Call, Message, ModelServer, Reply};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

/// The provider's key, in the environment.
const OF_ENVIRONMENT: &str = "q7Rk2v/Xz9+LmT4w=Bn8sYd";
/// A value in Bailey's own `.env`.
const OF_FILE: &str = "Vw5&gH8#kP2!zQ6@rT1$";
/// Nobody told Bailey of these: their shape does.
const BY_SHAPE: [&str; 2] = ["ghp_Zk3Lq9Wv7Rt2Yx5Bn8Md4Hs6Jf1Gc0Pa2QeX", "AKIAQ3EGRZ7WVT5LX2NB"];
/// A value of the repository's `.env`, which Bailey never loads.
const OF_REPOSITORY: &str = "nT8xWq3Lz7vKp2Rm";

/// A stage that holds all of them, and a model that asks for this key.
fn stage(script: Vec<Reply>) -> (Stage, ModelServer) {
    let stage = Stage::new(&[("a.txt", "a\n"), (".env", &format!("REPO_API_KEY={OF_REPOSITORY}\n"))]);
    let all = [OF_ENVIRONMENT, OF_FILE, BY_SHAPE[0], BY_SHAPE[1]];
    let lines = all.iter().map(|value| {
        let forms: Vec<String> = forms(value).into_iter().map(|(_, form)| form).collect();
        format!("known: {value} and {}\n", forms.join(" "))
    });
    stage.write("data.txt", &(lines.collect::<String>() + OF_REPOSITORY + "\n"));
    let server = ModelServer::start(script);
    fs::create_dir_all(stage.home()).unwrap();
    let provider = |name: &str, key: &str| {
        format!(
            "[providers.{name}]\nwire = \"anthropic\"\nbase_url = \"{}\"\nkey_env = \"{key}\"\n",
            server.base_url()
        )
    };
    let config = provider("test", "TEST_API_KEY") + &provider("repo", "REPO_API_KEY");
    fs::write(stage.home().join("config.toml"), config).unwrap();
    own_env(&stage, &format!("DEPLOY_TOKEN='{OF_FILE}'\n"));
    (stage, server)
}

/// Writes Bailey's own `.env`, for its owner alone.
fn own_env(stage: &Stage, text: &str) {
    let path = stage.home().join(".env");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// The binary with the key in its environment, and a value too weak to be taken for one.
fn bailey(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = stage.bailey(arguments);
    command.env("TEST_API_KEY", OF_ENVIRONMENT).env("WEAK_TOKEN", "tiny");
    command
}

fn ran(stage: &Stage, arguments: &[&str]) -> Ran {
    Ran::of(bailey(stage, arguments).output().unwrap())
}

/// The ways in which a value may be written, each with its name.
fn forms(value: &str) -> Vec<(String, String)> {
    let mut forms = vec![("plain".to_owned(), value.to_owned())];
    for before in 0..3 {
        let encoded = base64(&[&b"xx"[..before], value.as_bytes()].concat());
        // Characters that also hold bits of what stands beside the value are not its own.
        let own = (8 * before).div_ceil(6)..8 * (before + value.len()) / 6;
        let own = encoded[own].to_owned();
        forms.push((format!("base64 after {before}"), own.clone()));
        forms.push((format!("base64url after {before}"), own.replace('+', "-").replace('/', "_")));
    }
    let hex = |upper: bool| -> String {
        value.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
    };
    forms.extend([("hex".to_owned(), hex(false)), ("HEX".to_owned(), hex(true))]);
    let percent = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    forms.push(("URL".into(), value.bytes().map(percent).collect()));
    forms
}

fn base64(bytes: &[u8]) -> String {
    let mut child =
        Command::new("base64").arg("--wrap=0").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// Where a value is found in these bytes, in any form.
fn leaks(place: &str, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for value in [OF_ENVIRONMENT, OF_FILE, BY_SHAPE[0], BY_SHAPE[1]] {
        // Bailey knows no other form of what it knows by shape only.
        let known = if BY_SHAPE.contains(&value) { 1 } else { usize::MAX };
        for (name, form) in forms(value).into_iter().take(known) {
            if bytes.windows(form.len()).any(|window| window == form.as_bytes()) {
                found.push(format!("{value} as {name} in {place}"));
            }
        }
    }
    found
}

/// Looks through every file below a directory, but for what the human or the agent wrote there themselves.
fn leaks_below(root: &Path) -> (Vec<String>, usize) {
    let (mut found, mut files) = (Vec::new(), 0);
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_theirs = path.ends_with("upper") || path.ends_with("home/.env");
            if is_theirs || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if let Ok(bytes) = fs::read(&path) {
                files += 1;
                found.extend(leaks(&path.display().to_string(), &bytes));
            }
        }
    }
    (found, files)
}

/// A rotated key: the old value, or the new one, stands in a place that another one goes before.
#[test]
fn a_value_that_another_store_hides_is_known_where_it_shows() {
    let (stage, _server) = stage(Vec::new());
    let mut command = bailey(&stage, &["sandbox", "run", "--", "cat", "data.txt"]);
    let ran = Ran::of(command.env("DEPLOY_TOKEN", "hR4tY8wQ2zXc6VbN").output().unwrap());
    assert!(ran.code == Some(0) && ran.stdout.contains("known: "), "{ran:?}");
    assert_eq!(leaks("the output", ran.stdout.as_bytes()), [""; 0]);
    assert_eq!(leaks_below(&stage.home()).0, [""; 0]);
}

/// A reply with text and calls.
fn reply(text: &str, calls: Vec<(&str, &str, Value)>) -> Reply {
    let call =
        |(id, name, arguments): (&str, &str, Value)| Call { id: id.into(), name: name.into(), arguments };
    Reply::Message(Message { calls: calls.into_iter().map(call).collect(), ..Message::text(text) })
}

#[test]
fn a_key_is_in_nothing_that_bailey_writes_prints_or_sends() {
    let everything = [OF_ENVIRONMENT, OF_FILE, BY_SHAPE[0], BY_SHAPE[1]].join(" ");
    let command = |line: &str| json!({ "command": line });
    let (stage, server) = stage(vec![
        reply(
            &format!("I guess {everything}"),
            vec![
                ("c1", "command_run", command("cat data.txt; cat data.txt >&2; base64 data.txt")),
                ("c2", "fs_read", json!({ "path": "data.txt" })),
                ("c3", "search_grep", json!({ "pattern": "known" })),
                ("c4", "fs_read", json!({ "path": format!("missing/{OF_ENVIRONMENT}") })),
                (
                    "c5",
                    "command_run",
                    command(&format!(
                        "echo '{everything}' > Makefile; echo x > '{OF_FILE}.txt'; mkdir '{}' && echo x > '{}/y'; \
                         echo '{everything}'; exit 3",
                        BY_SHAPE[0], BY_SHAPE[0]
                    )),
                ),
                ("c6", "no_such_tool", json!({ "all": everything })),
                (
                    "c7",
                    "command_run",
                    command(
                        "od -An -c data.txt >/dev/null; tail -c +1 data.txt; head -c 40 data.txt; tail -c +8 data.txt",
                    ),
                ),
            ],
        ),
        Reply::text(&format!("It was {everything}")),
    ]);
    let tape = stage.folder().join("tape.json");
    let tape = tape.to_str().unwrap();
    let before = format!("please use {everything}");
    let ran_first =
        ran(&stage, &["--json", "run", "--verbose", "--model", "test/m", "--record", tape, &before]);
    assert!(matches!(ran_first.code, Some(0 | 3)), "{ran_first:?}");
    let session =
        ran(&stage, &["--json", "sessions", "list", "--all"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let later: [&[&str]; 10] = [
        &["sessions", "export", &session],
        &["audit", "log"],
        &["--json", "audit", "log"],
        &["audit", "export"],
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["--json", "sessions", "show", &session],
        &["sessions", "diff", &session],
        &["--json", "sessions", "diff", &session],
        &["sessions", "apply", &session],
    ];
    let mut found = leaks("run", (ran_first.stdout + &ran_first.stderr).as_bytes());
    for arguments in later {
        let ran = ran(&stage, arguments);
        found.extend(leaks(&format!("{arguments:?}"), (ran.stdout + &ran.stderr).as_bytes()));
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for (number, request) in requests.iter().enumerate() {
        // Its own words go back to a model as they were: some providers sign them.
        let mut sent = request.json();
        sent["messages"].as_array_mut().unwrap().retain(|message| message["role"] != "assistant");
        found.extend(leaks(&format!("request {number}"), sent.to_string().as_bytes()));
        // The control: the key is where it belongs.
        assert_eq!(request.header("x-api-key"), Some(OF_ENVIRONMENT));
    }
    found.extend(leaks("the recording", &fs::read(tape).unwrap()));
    let (below, files) = leaks_below(&stage.home());
    found.extend(below);
    assert!(files > 2, "the journal and more were read");
    assert!(found.is_empty(), "{found:#?}");
    // The controls: the file holds all of it, the model was told of it, and what is no secret is let through.
    assert_eq!(leaks("data.txt", stage.read("data.txt").as_bytes()).len(), 2 * forms("x").len() + 2);
    assert!(requests[1].body.contains("[redacted:TEST_API_KEY]"), "{}", requests[1].body);
    assert!(requests[1].body.contains("[redacted:DEPLOY_TOKEN]"), "{}", requests[1].body);
    assert!(requests[1].body.contains(OF_REPOSITORY), "the repository's .env was not loaded");
}

#[test]
fn a_file_named_by_a_key_stays_in_the_layer_and_the_rest_is_applied() {
    let make = |name: &str| json!({ "command": format!("echo x > '{name}'; echo b >> a.txt") });
    for (name, is_held) in [(OF_FILE, true), (BY_SHAPE[0], true), ("plain.txt", false)] {
        let script = vec![Reply::calls([("c1", "command_run", make(name))]), Reply::text("done")];
        let (stage, _server) = stage(script);
        let first = ran(&stage, &["--json", "run", "--model", "test/m", "--approve", "never", "do it"]);
        assert_eq!(first.code, Some(0), "{first:?}");
        let session = ran(&stage, &["--json", "sessions", "list", "--all"]).lines()[0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let diff = ran(&stage, &["sessions", "diff", &session]);
        assert_eq!(diff.stdout.contains("its name holds a secret"), is_held, "{diff:?}");
        let applied = ran(&stage, &["sessions", "apply", &session]);
        assert_eq!(applied.code, Some(0), "{applied:?}");
        assert_eq!(stage.project().join(name).exists(), !is_held, "{name}");
        assert_eq!(stage.read("a.txt"), "a\nb\n");
        assert_eq!(ran(&stage, &["sessions", "undo", &session]).code, Some(0));
        assert_eq!(stage.read("a.txt"), "a\n");
        assert!(!stage.project().join(name).exists());
        assert_eq!(leaks_below(&stage.home()).0, Vec::<String>::new());
    }
}

#[test]
fn a_command_by_itself_prints_no_key_into_a_pipe() {
    let (stage, _server) = stage(Vec::new());
    let look = ["sandbox", "run", "--", "sh", "-c", "cat data.txt; cat data.txt >&2; printf '\\377 plain'"];
    let output = bailey(&stage, &look).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = [output.stdout.clone(), output.stderr].concat();
    assert_eq!(leaks("the pipe", &printed), Vec::<String>::new());
    // The controls: it was printed, other bytes as they are, and the file holds all of it.
    assert!(String::from_utf8_lossy(&printed).contains("[redacted:TEST_API_KEY]"));
    assert!(output.stdout.ends_with(b"\xff plain"), "{output:?}", output = output.stdout);
    assert_eq!(leaks("data.txt", stage.read("data.txt").as_bytes()).len(), 2 * forms("x").len() + 2);
}

#[test]
fn a_project_named_by_a_key_is_refused_by_name() {
    let (stage, _server) = stage(Vec::new());
    for (name, code) in [(OF_FILE, Some(1)), ("plain", Some(0))] {
        let project = stage.folder().join(name);
        fs::create_dir(&project).unwrap();
        let ran = Ran::of(
            bailey(&stage, &["sandbox", "run", "--", "true"]).current_dir(&project).output().unwrap(),
        );
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(ran.stderr.contains("holds a secret"), code == Some(1), "{ran:?}");
        assert_eq!(leaks("the error", (ran.stdout + &ran.stderr).as_bytes()), Vec::<String>::new());
        assert_eq!(leaks_below(&stage.home()).0, Vec::<String>::new());
    }
}

#[test]
fn a_key_is_on_no_card_and_no_terminal() {
    let everything = [OF_ENVIRONMENT, OF_FILE, BY_SHAPE[0]].join(" ");
    let write = json!({ "command": "cp data.txt Makefile; cat data.txt" });
    let outside = json!({ "path": format!("/var/lib/{OF_ENVIRONMENT}/x") });
    let (stage, _server) = stage(vec![
        reply(&everything, vec![("c1", "command_run", write), ("c2", "fs_read", outside)]),
        Reply::text(&everything),
    ]);
    let Some(mut terminal) =
        Terminal::run(&stage, &bailey(&stage, &["run", "--verbose", "--model", "test/m", "do it"]))
    else {
        return;
    };
    let question = "[n]o or [d]etails: ";
    let card = terminal.wait_for(question);
    if card.contains("/var/lib/") {
        terminal.keys("n\n");
        terminal.wait_for(question);
    }
    terminal.keys("n\n");
    let (_, screen) = terminal.end();
    assert!(screen.contains("Makefile") && screen.contains("[redacted:TEST_API_KEY]"), "{screen}");
    assert_eq!(leaks("the terminal", screen.as_bytes()), Vec::<String>::new(), "{screen}");
}

#[test]
fn errors_do_not_repeat_a_key_that_a_server_reflects() {
    let reflected = format!("invalid x-api-key {OF_ENVIRONMENT} {}", forms(OF_ENVIRONMENT)[1].1);
    let (stage, server) = stage(vec![Reply::error(401, "authentication_error", &reflected)]);
    let ran = ran(&stage, &["--json", "run", "--model", "test/m", "do it"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("invalid x-api-key"), "{ran:?}");
    assert_eq!(leaks("the error", (ran.stdout + &ran.stderr).as_bytes()), Vec::<String>::new());
    assert_eq!(leaks_below(&stage.home()).0, Vec::<String>::new());
    assert_eq!(server.requests()[0].header("x-api-key"), Some(OF_ENVIRONMENT));
}

#[test]
fn a_repositorys_env_file_gives_no_key() {
    let (stage, server) = stage(vec![Reply::text("never")]);
    let ran = ran(&stage, &["run", "--model", "repo/m", "do it"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("needs a key: set REPO_API_KEY"), "{ran:?}");
    assert_eq!(server.requests().len(), 0);
    // The control: the same line in Bailey's own file does.
    own_env(&stage, &format!("REPO_API_KEY={OF_REPOSITORY}\n"));
    let ran = Ran::of(bailey(&stage, &["run", "--model", "repo/m", "do it"]).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(server.requests()[0].header("x-api-key"), Some(OF_REPOSITORY));
}

#[test]
fn a_command_inside_finds_no_key_and_a_weak_value_masks_nothing() {
    let look = "{ env; cat /proc/*/environ | tr '\\0' '\\n'; set; } 2>/dev/null | rev; echo a tiny word";
    let (stage, server) =
        stage(vec![Reply::calls([("c1", "command_run", json!({ "command": look }))]), Reply::text("done")]);
    let ran = ran(&stage, &["--json", "run", "--model", "test/m", "--approve", "never", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let seen = server.requests()[1].body.clone();
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    for text in [OF_ENVIRONMENT, OF_FILE, "TEST_API_KEY", "DEPLOY_TOKEN", "WEAK_TOKEN"] {
        assert!(!seen.contains(&backwards(text)), "{text}: {seen}");
    }
    assert!(seen.contains(&backwards("LANG=")), "the control: it saw its environment: {seen}");
    // A value that anybody could guess is not masked: masking would confirm the guess.
    assert!(seen.contains("a tiny word"), "{seen}");
}

#[test]
fn credentials_of_ones_own_kind_reach_neither_model_nor_journal_nor_screen() {
    const TICKET: &str = "tck_Ab3Cd4Ef5Gh6Ij7Kl8Mn9";
    const PATTERN: &str = "\n[[secrets.pattern]]\nname = \"our-ticket\"\nprefix = \"tck_\"\ncharacters = \"alnum\"\nat_least = 12\n";
    // Control: without the pattern it is a word like any other.
    for pattern in ["", PATTERN] {
        let stage = Stage::new(&[("notes.txt", &format!("the ticket is {TICKET}\n"))]);
        let script = vec![
            Reply::calls([("c1", "fs_read", json!({ "path": "notes.txt" }))]),
            Reply::text(&format!("it says {TICKET}")),
        ];
        let model = stage.model(script);
        let config = stage.home().join("config.toml");
        let old = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{old}{pattern}")).unwrap();
        let ran = stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "read it"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let request = model.requests().into_iter().nth(1).unwrap().json().to_string();
        let journal = stage.ran(&["audit", "export"]).stdout;
        for (place, text) in [("request", &request), ("journal", &journal), ("events", &ran.stdout)] {
            assert_eq!(text.contains(TICKET), pattern.is_empty(), "{place}: {text}");
            assert_eq!(text.contains("[redacted:our-ticket]"), !pattern.is_empty(), "{place}: {text}");
        }
    }
}

#[test]
fn a_pattern_that_would_take_too_much_out_stops_the_start_where_it_stands() {
    let stage = Stage::new(&[]);
    std::fs::create_dir_all(stage.home()).unwrap();
    let pattern =
        "[[secrets.pattern]]\nname = \"all\"\nprefix = \"2026-\"\ncharacters = \"word\"\nat_least = 8\n";
    std::fs::write(stage.home().join("config.toml"), pattern).unwrap();
    let ran = stage.ran(&["config", "check"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("config.toml:1") && ran.stderr.contains("could begin a digest or a date"),
        "{ran:?}"
    );
}
