//! `bailey secrets`: where keys lie, and that their values are seen by nobody but the provider.

use crate::{
    stage::{Ran, Stage},
    terminal::Terminal,
};
use bailey_testkit::{ModelServer, Reply};
use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, process::Stdio};

const VALUE: &str = "sk-test-Zq8 'quoted' \"twice\" $x 4711";

fn piped(stage: &Stage, arguments: &[&str], input: &str) -> Ran {
    let mut child = stage
        .bailey(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

/// A stage whose provider `test` takes the key TEST_API_KEY.
fn keyed(secrets: &str) -> (Stage, ModelServer) {
    let stage = Stage::new(&[]);
    let server = ModelServer::start(vec![Reply::text("hello")]);
    fs::create_dir_all(stage.home()).unwrap();
    let config = format!(
        "[secrets]\n{secrets}\n[providers.test]\nwire = \"anthropic\"\nbase_url = \"{}\"\nkey_env = \"TEST_API_KEY\"\n",
        server.base_url()
    );
    fs::write(stage.home().join("config.toml"), config).unwrap();
    (stage, server)
}

fn listed(stage: &Stage, name: &str) -> serde_json::Value {
    let ran = stage.ran(&["--json", "secrets", "list"]);
    assert!(!ran.stdout.contains("4711"), "no value is ever listed: {ran:?}");
    ran.lines().into_iter().find(|line| line["name"] == name).unwrap_or_default()
}

/// What commands use is used, too, and told while it is missing.
#[test]
fn a_list_says_which_server_a_secret_of_commands_goes_to() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    let config = "[[network.key]]\nsecret = \"GIT_TOKEN\"\nat = \"https://git.example.com\"\n";
    fs::write(stage.home().join("config.toml"), config).unwrap();
    let found = listed(&stage, "GIT_TOKEN");
    assert_eq!(found["used_by"], serde_json::json!(["https://git.example.com"]), "{found}");
    assert_eq!(found["origin"], serde_json::json!([]), "{found}");
}

/// A store is read and written as a whole.
#[test]
fn secrets_that_are_stored_at_once_are_all_there() {
    let folder = tempfile::tempdir().unwrap();
    let sealed = format!("store = \"sealed\"\nkey_file = \"{}\"", folder.path().join("key").display());
    for secrets in ["", sealed.as_str()] {
        let (stage, _server) = keyed(secrets);
        let names: Vec<String> = (0..8).map(|number| format!("K{number}_TOKEN")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                let stage = &stage;
                scope.spawn(move || {
                    let ran = piped(stage, &["secrets", "set", name], &format!("{VALUE}{name}"));
                    assert_eq!(ran.code, Some(0), "{ran:?}");
                });
            }
        });
        for name in names {
            assert!(!listed(&stage, &name).is_null(), "{secrets}: {name}");
        }
    }
}

/// What goes before a secret that was just stored, or is there still after one was removed, is named.
#[test]
fn a_secret_that_is_used_all_the_same_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (stage, _server) = keyed(&format!("key_file = \"{}\"", folder.path().join("key").display()));
    let first = piped(&stage, &["secrets", "set", "A_TOKEN"], VALUE);
    assert!(!first.stderr.contains("also holds"), "the control: it is the only one: {first:?}");
    let ran = piped(&stage, &["secrets", "set", "--store", "sealed", "A_TOKEN"], "another-4711-value");
    assert!(ran.stderr.contains("bailey secrets rm A_TOKEN --store env"), "{ran:?}");
    let ran = stage.ran(&["secrets", "rm", "--store", "env", "A_TOKEN"]);
    assert!(ran.stderr.contains("the sealed store also holds `A_TOKEN`"), "{ran:?}");
    let mut command = stage.bailey(&["secrets", "rm", "A_TOKEN"]);
    let ran = Ran::of(command.env("A_TOKEN", "a-third-4711-value").output().unwrap());
    assert!(ran.code == Some(0) && ran.stderr.contains("the variable `A_TOKEN` of this shell"), "{ran:?}");
    let ran = piped(&stage, &["secrets", "set", "A_TOKEN"], "ab12c");
    assert!(ran.code == Some(0) && ran.stderr.contains("too short or too plain"), "{ran:?}");
}

/// Whose `.env` is a link has it elsewhere: there it is changed.
#[test]
fn a_linked_env_file_is_changed_where_it_lies() {
    let (stage, _server) = keyed("");
    let elsewhere = stage.home().join("elsewhere");
    fs::write(&elsewhere, "OTHER_TOKEN=x\n").unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, stage.home().join(".env")).unwrap();
    assert_eq!(piped(&stage, &["secrets", "set", "A_TOKEN"], VALUE).code, Some(0));
    assert!(fs::read_to_string(&elsewhere).unwrap().contains("A_TOKEN="));
    assert_eq!(stage.ran(&["secrets", "rm", "A_TOKEN"]).code, Some(0));
    assert!(!fs::read_to_string(&elsewhere).unwrap().contains("A_TOKEN="));
    assert!(stage.home().join(".env").is_symlink());
}

fn run(stage: &Stage) -> Ran {
    stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "hello"])
}

#[test]
fn a_secret_is_stored_listed_used_and_removed_in_each_store() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    let sealed = format!("store = \"sealed\"\nkey_file = \"{}\"", key_file.display());
    for (secrets, file, origin) in
        [("", ".env", ".env"), (sealed.as_str(), "secrets.sealed", "the sealed store")]
    {
        let (stage, server) = keyed(secrets);
        assert!(run(&stage).stderr.contains("TEST_API_KEY"), "the control: without it there is no call");
        assert_eq!(listed(&stage, "TEST_API_KEY")["origin"], serde_json::json!([]));
        fs::write(stage.home().join(".env"), "# mine\nOTHER=1\n").unwrap();
        fs::set_permissions(stage.home().join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
        let ran = piped(&stage, &["secrets", "set", "TEST_API_KEY"], &format!("{VALUE}\n"));
        assert!(ran.code == Some(0) && !format!("{ran:?}").contains("4711"), "{ran:?}");
        let path = stage.home().join(file);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_to_string(&path).unwrap().contains("4711"),
            file == ".env",
            "sealed means sealed"
        );
        assert!(fs::read_to_string(stage.home().join(".env")).unwrap().starts_with("# mine\nOTHER=1\n"));
        let line = listed(&stage, "TEST_API_KEY");
        assert_eq!(
            (&line["origin"], &line["used_by"]),
            (&serde_json::json!([origin]), &serde_json::json!(["test"]))
        );
        let ran = run(&stage);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(format!("{:?}", server.requests()).contains("4711"), "the provider gets it");
        let ran = stage.ran(&["secrets", "rm", "TEST_API_KEY"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(listed(&stage, "TEST_API_KEY")["origin"], serde_json::json!([]));
        assert_eq!(stage.ran(&["secrets", "rm", "TEST_API_KEY"]).code, Some(1));
    }
}

#[test]
fn a_secret_in_the_kernels_keyring_is_listed_used_and_removed() {
    let (stage, server) = keyed("store = \"keyring\"");
    assert!(run(&stage).stderr.contains("TEST_API_KEY"), "the control: without it there is no call");
    let ran = piped(&stage, &["secrets", "set", "TEST_API_KEY"], &format!("{VALUE}\n"));
    if ran.stderr.contains("no keyring for you") {
        println!("SKIPPED: {}", ran.stderr);
        return;
    }
    assert!(ran.code == Some(0) && !format!("{ran:?}").contains("4711"), "{ran:?}");
    assert!(!stage.home().join(".env").exists() && !stage.home().join("secrets.sealed").exists());
    assert_eq!(listed(&stage, "TEST_API_KEY")["origin"], serde_json::json!(["the kernel's keyring"]));
    assert_eq!(run(&stage).code, Some(0));
    assert!(format!("{:?}", server.requests()).contains("4711"), "the provider gets it");
    let (other, _server) = keyed("");
    assert_eq!(listed(&other, "TEST_API_KEY")["origin"], serde_json::json!([]), "each home has its own");
    let ran = stage.ran(&["secrets", "rm", "--store", "keyring", "TEST_API_KEY"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(listed(&stage, "TEST_API_KEY")["origin"], serde_json::json!([]));
    assert!(run(&stage).stderr.contains("TEST_API_KEY"));
}

#[test]
fn a_value_is_never_an_argument_and_what_cannot_be_stored_is_refused() {
    let (stage, _server) = keyed("");
    let ran = stage.ran(&["secrets", "set", "TEST_API_KEY", "sk-test-4711"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("as an argument"), "{ran:?}");
    assert!(!format!("{ran:?}").contains("4711"), "not even to say so: {ran:?}");
    let wrong: [&[&str]; 5] = [
        &["TEST_API_KEY", "-sk-test-4711"],
        &["TEST_API_KEY", "--sk-test-4711"],
        &["-sk-test-4711"],
        &["TEST_API_KEY", "--store", "sk-test-4711"],
        &["TEST_API_KEY", "--store=sk-test-4711"],
    ];
    for arguments in wrong {
        let ran = stage.ran(&[&["secrets", "set"], arguments].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains("as an argument"), "{ran:?}");
        assert!(!format!("{ran:?}").contains("4711"), "{ran:?}");
    }
    // The control: elsewhere what is wrong is named.
    assert!(stage.ran(&["secrets", "list", "--sk-test-4711"]).stderr.contains("4711"));
    for (name, value, code, words) in [
        ("1BAD", "x", 2, "digit"),
        ("a b", "x", 2, "`a b` cannot name"),
        ("", "x", 2, "cannot name"),
        ("TEST_API_KEY", "", 1, "the input was empty"),
        ("TEST_API_KEY", "a\0b", 1, "control character"),
        ("TEST_API_KEY", "key\nnotes\n", 1, "several lines"),
    ] {
        let ran = piped(&stage, &["secrets", "set", name], value);
        assert!(ran.code == Some(code) && ran.stderr.contains(words), "{ran:?}");
    }
    assert!(!stage.home().join(".env").exists());
    fs::write(stage.home().join(".env"), "A=1\n").unwrap();
    fs::set_permissions(stage.home().join(".env"), fs::Permissions::from_mode(0o644)).unwrap();
    let ran = piped(&stage, &["secrets", "set", "TEST_API_KEY"], "x");
    assert!(ran.code == Some(1) && ran.stderr.contains("chmod 600"), "{ran:?}");
}

#[test]
fn a_wrong_or_missing_key_of_the_sealed_store_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    let (stage, _server) = keyed(&format!("store = \"sealed\"\nkey_file = \"{}\"", key_file.display()));
    assert_eq!(piped(&stage, &["secrets", "set", "TEST_API_KEY"], VALUE).code, Some(0));
    let text = fs::read_to_string(&key_file).unwrap();
    fs::write(&key_file, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").unwrap();
    let ran = run(&stage);
    assert!(ran.code == Some(1) && ran.stderr.contains("not the one"), "{ran:?}");
    fs::remove_file(&key_file).unwrap();
    let ran = run(&stage);
    assert!(ran.code == Some(1) && ran.stderr.contains("bring it back"), "{ran:?}");
    assert!(!listed(&stage, "TEST_API_KEY")["origin"].as_array().unwrap().is_empty(), "names need no key");
    fs::write(&key_file, text).unwrap();
    assert!(run(&stage).stderr.contains("chmod 600") || run(&stage).code == Some(0));
}

/// With a passphrase somebody must be there to type it; what needs no key asks nobody.
#[test]
fn a_passphrase_is_asked_for_at_a_turn_and_never_shown() {
    let (stage, server) = keyed("store = \"sealed\"");
    let typed = |arguments: &[&str], answers: &[(&str, &str)]| {
        let mut terminal = Terminal::start(&stage, arguments)?;
        for (question, answer) in answers {
            terminal.wait_for(question);
            terminal.keys(answer);
        }
        Some(terminal.end().1)
    };
    let set = ["secrets", "set", "TEST_API_KEY"];
    let answers = [
        ("TEST_API_KEY (not shown): ", "value-4711\r"),
        ("new sealed store (not shown): ", "open sesame\r"),
        ("again (not shown): ", "open sesame\r"),
    ];
    let Some(shown) = typed(&set, &answers) else { return };
    assert!(shown.contains("stored") && !shown.contains("4711") && !shown.contains("sesame"), "{shown}");
    assert_eq!(stage.ran(&["sessions", "list"]).code, Some(0));
    let turn = ["run", "--model", "test/model", "--approve", "never", "hello"];
    let shown = typed(&turn, &[("sealed store (not shown): ", "open sesame\r")]).unwrap();
    assert!(shown.contains("hello") && !shown.contains("sesame"), "{shown}");
    assert!(format!("{:?}", server.requests()).contains("value-4711"));
    let shown = typed(&turn, &[("sealed store (not shown): ", "open says me\r")]).unwrap();
    assert!(shown.contains("not the one"), "{shown}");
    let shown = typed(&["secrets", "set", "B_TOKEN"], &[("B_TOKEN (not shown): ", "x\u{3}")]).unwrap();
    assert!(shown.contains("nothing was given"), "{shown}");
}
