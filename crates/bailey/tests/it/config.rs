//! `bailey config`: where values come from, what mistakes say, and what the environment may do.

use crate::{
    daemon::Daemon,
    stage::{Ran, Stage},
};
use bailey_testkit::{ModelServer, Reply};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

/// A stage whose home has this `config.toml`.
fn configured(config: &str) -> Stage {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), config).unwrap();
    stage
}

/// A key's value and origin.
fn value(stage: &Stage, variables: &[(&str, &str)], key: &str) -> (Value, String) {
    let ran = with(stage, variables, &["--json", "config", "show", "--origin"]);
    let lines = ran.lines();
    let found = lines.iter().find(|line| line["key"] == key).unwrap_or_else(|| panic!("{key}: {ran:?}"));
    (found["value"].clone(), found["origin"].as_str().unwrap().to_owned())
}

fn with(stage: &Stage, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    Ran::of(stage.bailey(arguments).envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn every_value_says_where_it_came_from() {
    let stage = configured(
        "model = \"local/big\"\n\n[limits]\ntool_calls = 50\n\n[providers.local]\nwire = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    );
    let file = fs::canonicalize(stage.home()).unwrap().join("config.toml").display().to_string();
    assert_eq!(value(&stage, &[], "model"), ("local/big".into(), format!("{file}:1")));
    assert_eq!(value(&stage, &[], "limits.tool_calls"), (50.into(), format!("{file}:4")));
    assert_eq!(value(&stage, &[], "providers.local.wire"), ("openai".into(), format!("{file}:7")));
    assert_eq!(value(&stage, &[], "limits.reply_tokens").1, "default");
    let beaten = value(&stage, &[("BAILEY_MODEL", "local/small")], "model");
    assert_eq!(beaten, ("local/small".into(), "$BAILEY_MODEL".into()));
    let shown = stage.ran(&["config", "show", "--origin"]);
    assert!(shown.stdout.contains(&format!("# {file}:4")), "{shown:?}");
}

/// The agent's own file is its words: what they would hide from whoever looks at it is spelled out.
#[test]
fn what_the_agent_is_told_is_shown_with_what_would_hide_in_it() {
    let stage = configured("");
    let text = "# \u{202e}gpj.exe\u{200b}\nname = \"A\u{2066}da\"\nstyle = \"plain\"\n";
    fs::write(stage.home().join("agent.toml"), text).unwrap();
    let shown = stage.ran(&["config", "show"]);
    let hidden = ['\u{202e}', '\u{200b}', '\u{2066}'];
    assert!(text.contains(hidden) && !shown.stdout.contains(hidden), "{shown:?}");
    assert!(shown.stdout.contains("# ⟨U+202E⟩gpj.exe⟨U+200B⟩"), "{shown:?}");
    // The control: what is plain is shown as it is.
    assert!(shown.stdout.ends_with("\nstyle = \"plain\"\n"), "{shown:?}");
}

/// Nothing would ever be sent, and nobody would be told why.
#[test]
fn a_collectors_key_stands_in_no_header_that_has_another_meaning() {
    let with = |header: &str| {
        let config =
            format!("[telemetry]\notlp = \"https://c.example\"\nkey_env = \"K\"\nheader = \"{header}\"\n");
        configured(&config).ran(&["config", "check"])
    };
    for header in ["host", "content-length", "content-type", "cookie", "transfer-encoding", "accept-encoding"]
    {
        let ran = with(header);
        assert_eq!(ran.code, Some(2), "{header}: {ran:?}");
        let is_told = ran.stderr.contains("config.toml:4:1") && ran.stderr.contains("has another meaning");
        assert!(is_told, "{header}: {ran:?}");
    }
    for header in ["authorization", "x-api-key", "api-key", "x-honeycomb-team", "dd-api-key"] {
        let ran = with(header);
        assert_eq!(ran.code, Some(0), "the control: {header}: {ran:?}");
    }
}

#[test]
fn a_project_sets_no_limit_with_which_nothing_would_work() {
    for (value, is_taken) in [(0, false), (1, true)] {
        let settings = format!("[limits]\nturn_tokens = {value}\n");
        let stage = Stage::new(&[(".bailey/config.toml", &settings)]);
        let trusted = stage.ran(&["trust", "add"]);
        assert_eq!(trusted.code == Some(0), is_taken, "{trusted:?}");
        assert_eq!(trusted.stderr.contains("must be 1 or more"), !is_taken, "{trusted:?}");
    }
}

#[test]
fn a_mistake_is_named_with_its_place_and_what_was_meant() {
    for (config, place, words) in [
        ("modle = \"a/b\"\n", "config.toml:1:1", "did you mean `model`"),
        ("[limits]\ntool_cals = 3\n", "config.toml:2:1", "did you mean `tool_calls`"),
        ("[limits]\ntool_calls = \"many\"\n", "config.toml:2:14", "expected a whole number from 0"),
        ("[limits]\ncommand_processes = -1\n", "config.toml:2:", "whole number from 0 to 4294967295"),
        (
            "[sandbox.tiers]\ninternal = \"best\"\n",
            "config.toml:2:",
            "landlock, container, native, gvisor, microvm",
        ),
        ("model = \"a/b\n", "config.toml:1:", "invalid basic string"),
        (
            "[providers.x]\nwire = \"smoke\"\nbase_url = \"http://x\"\n",
            "config.toml:2:8",
            "is not a wire format",
        ),
        ("[providers.x]\nwire = \"openai\"\nbase_url = \"x\"\n", "config.toml:3:1", "must begin with"),
        ("[providers.x]\nwire = \"openai\"\nbase_url = \"https://127.0.0.1:\"\n", "config.toml:3:1", "PORT"),
        ("[providers.x]\nwire = \"openai\"\nbase_url = \"https://h:99999/v1\"\n", "config.toml:3:1", "PORT"),
        ("[providers.x]\nwire = \"openai\"\nbase_url = \"https://:1\"\n", "config.toml:3:1", "HOST"),
        (
            "[providers.x]\nwire = \"openai\"\nbase_url = \"http://me:pw@x\"\n",
            "config.toml:1:",
            "a password in it",
        ),
        ("[limits]\ntool_calls = 0\n", "config.toml:2:1", "1 or more"),
        ("[limits]\nturn_tokens = 0\n", "config.toml:2:1", "1 or more"),
        ("[limits]\ncommand_memory_mib = 0\n", "config.toml:2:1", "1 or more"),
        ("[limits]\ncommand_disk_mib = 0\n", "config.toml:2:1", "1 or more"),
        ("[limits]\ncommand_processes = 0\n", "config.toml:2:1", "1 or more"),
        ("[limits]\nidle_seconds = 0\n", "config.toml:2:1", "1 or more"),
        ("[telemetry]\notlp = \"http://c.example:4318\"\n", "config.toml:2:1", "unencrypted"),
        ("[telemetry]\notlp = \"http://127.0.0.1.example:4318\"\n", "config.toml:2:1", "unencrypted"),
        ("[telemetry]\notlp = \"http://localhost/v1/traces\"\n", "config.toml:2:1", "comes behind"),
        ("[telemetry]\notlp = \"http://localhost/v1/metrics/\"\n", "config.toml:2:1", "comes behind"),
        ("[telemetry]\notlp = \"https://me:pw@c.example\"\n", "config.toml:2:1", "a password in it"),
        ("[telemetry]\nkey_env = \"K\"\n", "config.toml:2:1", "name the collector"),
        (
            "[telemetry]\notlp = \"https://c.example\"\nkey_env = \"K\"\nheader = \"a: b\"\n",
            "config.toml:4:1",
            "is not a header",
        ),
        ("[network]\nprivate = [\"http://h:81/path\"]\n", "config.toml:2:12", "without a path"),
        ("[network]\ntunnels = [\"https://h:81?q\"]\n", "config.toml:2:12", "without a path"),
        (
            "[[network.key]]\nsecret = \"A_KEY\"\nat = \"https://h/api\"\n",
            "config.toml:1:",
            "named by `paths`",
        ),
        (
            "[[network.key]]\nsecret = \"A_KEY\"\nat = \"https://h\"\n[[network.key]]\nsecret = \"B_KEY\"\nvariable = \"A_KEY\"\nat = \"https://h\"\n",
            "config.toml:4:",
            "write another `variable`",
        ),
        (
            "[[network.limit]]\nhost = \"a\"\nsent = \"1 MiB\"\n[[network.limit]]\nhost = \"b\"\n",
            "config.toml:4:",
            "write `sent`",
        ),
        (
            "[network]\nprivate = [\n  \"http://h:81\",\n  \"http://h:82/path\",\n]\n",
            "config.toml:4:",
            "without a path",
        ),
    ] {
        let stage = configured(config);
        for arguments in [["config", "check"], ["config", "show"], ["sessions", "list"]] {
            let ran = stage.ran(&arguments);
            assert_eq!(ran.code, Some(2), "{config:?}: {ran:?}");
            assert!(ran.stderr.contains(place) && ran.stderr.contains(words), "{config:?}: {ran:?}");
        }
    }
    let stage = configured("model = \"nobody/x\"\n");
    let ran = stage.ran(&["config", "check"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("there is no provider `nobody`"), "{ran:?}");
    for url in ["https://127.0.0.1", "http://[::1]:8080/v1", "https://models.example.com/"] {
        let config = format!("[providers.x]\nwire = \"openai\"\nbase_url = \"{url}\"\n");
        assert_eq!(configured(&config).ran(&["config", "check"]).code, Some(0), "the control: {url}");
    }
    assert_eq!(
        configured("[limits]\ntool_calls = 3\n").ran(&["config", "check"]).code,
        Some(0),
        "the control"
    );
    let stage = configured(
        "[network]\nprivate = [\"http://h:81/\"]\n\n[[network.key]]\nsecret = \"A_KEY\"\nat = \"https://h\"\n",
    );
    let ran = stage.ran(&["config", "check"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("bailey secrets set A_KEY"), "{ran:?}");
    let found = stage.ran(&["--json", "doctor", "--offline"]).stdout;
    assert!(found.contains("bailey secrets set A_KEY"), "{found}");
    let ran = with(&stage, &[("A_KEY", "x")], &["config", "check"]);
    assert!(ran.code == Some(0) && !ran.stdout.contains("A_KEY"), "the control: {ran:?}");
    let warned = |url: &str| {
        let provider =
            format!("[providers.x]\nwire = \"openai\"\nbase_url = \"{url}\"\nkey_env = \"A_KEY\"\n");
        let ran = with(&configured(&provider), &[("A_KEY", "x")], &["config", "check"]);
        ran.stdout.contains("is not encrypted")
    };
    assert!(
        warned("http://192.0.2.2:8080/v1") && !warned("http://127.0.0.1:8080/v1"),
        "the second is the control"
    );
    let ran = with(&configured(""), &[("BAILEY_MODLE", "x")], &["config", "check"]);
    assert!(
        ran.stdout.contains("BAILEY_MODLE is not a variable of Bailey")
            && ran.stdout.contains("BAILEY_MODEL,"),
        "{ran:?}"
    );
    let ran = configured("model = \"ollama/\"\n").ran(&["config", "check"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is not a model"), "{ran:?}");
}

#[test]
fn it_starts_from_the_environment_alone() {
    let server = ModelServer::start(vec![Reply::text("hello")]);
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let variables = [
        ("BAILEY_MODEL", "env/some-model"),
        ("BAILEY_BASE_URL", &server.base_url()),
        ("BAILEY_WIRE", "anthropic"),
        ("BAILEY_API_KEY", "key-from-the-environment-4711"),
    ];
    let ran = with(&stage, &variables, &["--json", "run", "--approve", "never", "say hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(format!("{:?}", requests[0]).contains("key-from-the-environment-4711"), "the key is sent");
    assert!(!stage.home().join("config.toml").exists() && !ran.stdout.contains("4711"), "{ran:?}");
    // The control: without the variables nobody can be asked.
    let ran = stage.ran(&["run", "--approve", "never", "say hello"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("no model is configured"), "{ran:?}");
    for (variables, words) in [
        ([("BAILEY_BASE_URL", "ftp://x"), ("BAILEY_WIRE", "openai")], "must begin with"),
        ([("BAILEY_BASE_URL", "http://x:"), ("BAILEY_WIRE", "openai")], "with a port of digits"),
        ([("BAILEY_BASE_URL", "http://x"), ("BAILEY_WIRE", "smoke")], "is not a wire format"),
        ([("BAILEY_BASE_URL", ""), ("BAILEY_WIRE", "openai")], "without BAILEY_BASE_URL"),
        ([("BAILEY_TOOL_CALLS", "many"), ("BAILEY_WIRE", "")], "whole number"),
    ] {
        let ran = with(&stage, &variables, &["config", "check"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{variables:?}: {ran:?}");
    }
}

/// A value of the environment lowers limits and adds a provider of its own; it raises nothing, changes no
/// rule, and gets no key of a provider that the human configured.
#[test]
fn an_environment_value_never_widens_policy() {
    let config = "[limits]\nsession_tokens = 1000\ntool_calls = 10\ncommand_seconds = 60\n\n[providers.env]\nwire = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"MY_API_KEY\"\n";
    let stage = configured(config);
    for (variable, key, own) in [
        ("BAILEY_SESSION_TOKENS", "limits.session_tokens", 1000),
        ("BAILEY_TOOL_CALLS", "limits.tool_calls", 10),
        ("BAILEY_COMMAND_SECONDS", "limits.command_seconds", 60),
    ] {
        assert_eq!(value(&stage, &[(variable, "999999999")], key).0, own, "{variable} raises nothing");
        let lower = value(&stage, &[(variable, "5")], key);
        assert_eq!(lower, (5.into(), format!("${variable}")), "the control: it lowers");
    }
    let address = [("BAILEY_BASE_URL", "http://evil.invalid"), ("BAILEY_API_KEY", "x")];
    let key = "providers.env.base_url";
    assert_eq!(value(&stage, &address, key).0, "http://127.0.0.1:1/v1", "no redirection");
    assert_eq!(
        value(&configured(""), &address, key).0,
        "http://evil.invalid",
        "the control: where there is none"
    );
    // No variable is a rule: whatever is set, the same rules are in force.
    let digest = |variables: &[(&str, &str)]| {
        let lines = with(&stage, variables, &["--json", "policy", "check"]).lines();
        lines[0]["digest"].as_str().unwrap().to_owned()
    };
    let rule = "[[rule]]\nname = \"all\"\nanswer = \"allow\"\nreason = \"x\"\nmatch = {}\n";
    let plain = digest(&[]);
    for name in ["BAILEY_POLICY", "BAILEY_RULES", "BAILEY_APPROVE", "BAILEY_TRUST", "BAILEY_CONTROL_WITHOUT"]
    {
        assert_eq!(digest(&[(name, rule)]), plain, "{name}");
    }
    fs::create_dir_all(stage.home().join("policy")).unwrap();
    fs::write(stage.home().join("policy/own.toml"), rule).unwrap();
    assert_ne!(digest(&[]), plain, "the control: a file of the human's own is a rule");
}

#[test]
fn an_edit_replaces_the_file_only_when_it_has_no_mistake() {
    let stage = configured("# mine\n[limits]\ntool_calls = 7\n");
    let file = stage.home().join("config.toml");
    let edit = |script: &str| with(&stage, &[("EDITOR", script), ("VISUAL", "")], &["config", "edit"]);
    let ran = edit("sed -i s/tool_calls/tool_cals/");
    assert!(ran.code == Some(2) && ran.stderr.contains("did you mean `tool_calls`"), "{ran:?}");
    assert!(ran.stderr.contains("was not changed"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\n[limits]\ntool_calls = 7\n");
    // The draft waits, and the next edit goes on with it.
    let ran = edit("sed -i -e s/tool_cals/tool_calls/ -e s/7/8/");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("this is the unsaved draft"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\n[limits]\ntool_calls = 8\n");
    assert!(edit("true").stderr.contains("nothing was changed"));
    let ran = edit("false");
    assert!(ran.code == Some(1) && ran.stderr.contains("set EDITOR"), "{ran:?}");
    assert!(!stage.home().join("config.toml.draft").exists() || edit("true").code == Some(0));
}

/// A page says `[backup]` and a line: added at the end of the file that `init` wrote, it was a "duplicate
/// key".
#[test]
fn a_table_that_is_there_already_is_named_with_its_line() {
    let stage = configured("[backup]   # copies\n# daily = true\n\n[page]\n\n[backup]\ndaily = true\n");
    let ran = stage.ran(&["config", "check"]);
    let said = "config.toml:6:2: `[backup]` is in line 1 already: what is beneath it here belongs there";
    assert!(ran.code == Some(2) && ran.stderr.contains(said), "{ran:?}");
}

/// Copies that config.toml asked for each day were never made: the daemon had not read it.
#[test]
fn an_edit_says_that_the_daemon_has_not_read_it_yet() {
    let stage = configured("");
    let edit = |line: &str| {
        let editor = format!("sh -c 'echo {line} >> $1' x");
        with(&stage, &[("EDITOR", &editor), ("VISUAL", "")], &["config", "edit"])
    };
    let ran = edit("[backup]");
    assert!(ran.code == Some(0) && !ran.stderr.contains("bailey reload"), "{ran:?}");
    let _daemon = Daemon::start(&stage);
    let ran = edit("daily = true");
    assert!(ran.code == Some(0) && ran.stderr.contains("until you run `bailey reload`"), "{ran:?}");
}

/// A draft that waited was written over what its owner had changed in config.toml meanwhile.
#[test]
fn a_draft_takes_back_nothing_that_was_changed_since() {
    let stage = configured("[limits]\ntool_calls = 7\n");
    let file = stage.home().join("config.toml");
    let edit = |script: &str| with(&stage, &[("EDITOR", script), ("VISUAL", "")], &["config", "edit"]);
    assert_eq!(edit("sed -i s/tool_calls/tool_cals/").code, Some(2));
    fs::write(&file, "[limits]\ntool_calls = 7\nreply_tokens = 99\n").unwrap();
    let ran = edit("sed -i s/7/8/");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("kept as `") && ran.stderr.contains("config.toml.draft.1"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "[limits]\ntool_calls = 8\nreply_tokens = 99\n");
    let aside = fs::read_to_string(stage.home().join("config.toml.draft.1")).unwrap();
    assert_eq!(aside, "[limits]\ntool_cals = 7\n");
    // The same while the editor is open.
    let meanwhile = format!("sh -c 'echo model = 1 >> {}; sed -i s/8/9/ $1' x", file.display());
    let ran = edit(&meanwhile);
    assert!(ran.code == Some(1) && ran.stderr.contains("somebody else changed the file"), "{ran:?}");
    assert!(fs::read_to_string(&file).unwrap().ends_with("model = 1\n"));
}

/// A place that is named in vain is told where the configuration is looked at.
#[test]
fn a_place_of_a_clouds_own_secrets_is_named_in_vain() {
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.home()).unwrap();
    for (key, place, is_told) in [
        ("private", "http://169.254.169.254", true),
        ("private", "http://10.0.0.1", false),
        ("tunnels", "https://169.254.169.254:22", true),
        ("tunnels", "https://10.0.0.1:22", false),
    ] {
        let config = format!("[network]\n{key} = [\"{place}\"]\n");
        fs::write(stage.home().join("config.toml"), config).unwrap();
        let checked = stage.ran(&["config", "check"]);
        assert_eq!(
            (checked.code, checked.stdout.contains("whatever the configuration says")),
            (Some(0), is_told),
            "{checked:?}"
        );
    }
}

/// A repository would bring its own home, with other providers for the user's keys.
#[test]
fn no_directory_that_one_happens_to_be_in_chooses_the_home() {
    let stage = Stage::new(&[("bailey/config.toml", "model = \"evil/model\"\n")]);
    for (name, value) in [("XDG_DATA_HOME", ""), ("XDG_DATA_HOME", "."), ("BAILEY_HOME", "")] {
        let shown = |user: &str| {
            let mut show = Command::new(env!("CARGO_BIN_EXE_bailey"));
            let show = show.args(["--json", "config", "show"]).current_dir(stage.project());
            let show = show.env_clear().env("HOME", user).env("PATH", "/usr/bin:/bin").env(name, value);
            Ran::of(show.output().unwrap())
        };
        let user = stage.folder().join("user");
        fs::create_dir_all(&user).unwrap();
        let ran = shown(user.to_str().unwrap());
        assert!(ran.code == Some(0) && !ran.stdout.contains("evil"), "{name}={value}: {ran:?}");
        assert!(user.join(".bailey").is_dir(), "{name}={value}");
    }
    // The control: where it is said whole, it is meant.
    let home = stage.project().join("bailey");
    let mut show = Command::new(env!("CARGO_BIN_EXE_bailey"));
    let show = show.args(["--json", "config", "show"]).env_clear().env("HOME", stage.folder().join("user"));
    let ran = Ran::of(show.env("BAILEY_HOME", &home).output().unwrap());
    assert!(ran.stdout.contains("evil"), "{ran:?}");
}

/// A home is for its owner alone, and what is not one is not made one.
#[test]
fn what_holds_other_things_is_made_no_home() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let other = stage.folder().join("other");
    fs::create_dir(&other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o777)).unwrap();
    let mode = || fs::metadata(&other).unwrap().permissions().mode() & 0o777;
    let doctor = || {
        let mut list = Command::new(env!("CARGO_BIN_EXE_bailey"));
        Ran::of(list.arg("--home").arg(&other).args(["sessions", "list"]).output().unwrap())
    };
    fs::write(other.join("a.txt"), "").unwrap();
    let ran = doctor();
    assert!(ran.code != Some(0) && ran.stderr.contains("holds other things"), "{ran:?}");
    assert_eq!(mode(), 0o777);
    fs::remove_file(other.join("a.txt")).unwrap();
    assert_eq!((doctor().code, mode()), (Some(0), 0o700), "the control");
}

/// Such a key was "no mistake", and then no session could begin, or the key was never put in.
#[test]
fn a_key_in_a_header_that_the_door_removes_is_a_mistake_where_it_stands() {
    for (header, is_mistake) in [
        ("host", true),
        ("Cookie", true),
        ("bad header", true),
        ("x-forwarded-host", true),
        ("accept-encoding", true),
        ("x-api-key", false),
    ] {
        let stage = configured(&format!(
            "[network]\nprivate = []\n\n[[network.key]]\nsecret = \"A_KEY\"\nat = \"https://e.com\"\nheader = \"{header}\"\n"
        ));
        let ran = stage.ran(&["config", "check"]);
        let said = format!("`A_KEY`: `{}` is no header for a key", header.to_lowercase());
        let is_told = ran.stderr.contains("config.toml:4:") && ran.stderr.contains(&said);
        let expected = if is_mistake { (Some(2), true) } else { (Some(0), false) };
        assert_eq!((ran.code, is_told), expected, "{ran:?}");
    }
}

/// `doctor` found nothing that stops Bailey, and no session could begin.
#[test]
fn a_model_without_its_provider_is_wrong_wherever_it_is_looked_at() {
    let stage = configured("model = \"nope/x\"\n");
    let ran = stage.ran(&["config", "check"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("there is no provider `nope`"), "{ran:?}");
    let found = |stage: &Stage| {
        let ran = stage.ran(&["--json", "doctor", "--offline"]);
        let findings = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_model: Vec<Value> = findings.filter(|it| it["check"] == "model").collect();
        (ran.code, of_model)
    };
    let (code, of_model) = found(&stage);
    assert_eq!((code, of_model.len()), (Some(1), 1), "{of_model:?}");
    assert!(of_model[0]["grade"] == "fail" && of_model[0]["says"].as_str().unwrap().contains("`nope`"));
    let (_, of_model) = found(&configured("model = \"ollama/x\"\n"));
    assert_eq!(of_model, [] as [Value; 0], "the control");
}

/// All of it was looked at when somebody wrote there, and not before.
#[test]
fn what_keeps_a_channel_from_work_is_said_before_anybody_writes_there() {
    let channel = |more: &str| -> Vec<String> {
        let stage = Stage::new(&[]);
        fs::create_dir_all(stage.home()).unwrap();
        let place = stage.project().display().to_string();
        let said = format!("[channels.t]\nkind = \"telegram\"\nkey_env = \"T_KEY\"\n{more}\n");
        fs::write(stage.home().join("config.toml"), said.replace("HERE", &place)).unwrap();
        let without = stage.ran(&["config", "check"]);
        assert!(without.stdout.contains("there is no secret `T_KEY`"), "{without:?}");
        let ran = with(&stage, &[("T_KEY", "x")], &["--json", "config", "check"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let warnings: Vec<String> = serde_json::from_value(ran.lines()[0]["warnings"].clone()).unwrap();
        assert!(!warnings.iter().any(|warning| warning.contains("T_KEY")), "{warnings:?}");
        // Whoever runs the tests may have variables of their own.
        warnings.into_iter().filter(|warning| warning.contains("channel")).collect()
    };
    assert_eq!(channel("workspace = \"HERE\"\nmodel = \"ollama/x\""), [""; 0], "the control");
    for (more, why) in [
        ("workspace = \"HERE/none\"", "none` is not a directory"),
        ("workspace = \"HERE\"\nmodel = \"nope/x\"", "there is no provider `nope`"),
    ] {
        let warnings = channel(more);
        let [warning] = warnings.as_slice() else { panic!("{more}: {warnings:?}") };
        assert!(warning.starts_with("channel `t`: ") && warning.contains(why), "{more}: {warning}");
    }
}

/// One value is set, all else of the file stays, and what would be a mistake changes nothing.
#[test]
fn a_value_is_set_and_a_mistake_is_not() {
    let stage = Stage::new(&[]);
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    let path = stage.home().join("config.toml");
    let before = fs::read_to_string(&path).unwrap();
    let set = |key: &str, value: &str| stage.ran(&["config", "set", key, value]);
    let ran = set("model", "ollama/qwen3-coder");
    assert!(ran.code == Some(0) && ran.stdout.contains("set: model = \"ollama/qwen3-coder\""), "{ran:?}");
    assert_eq!(set("limits.day_tokens", "2_000_000").code, Some(0));
    assert_eq!(set("limits.day_money", "5 USD").code, Some(0));
    let after = fs::read_to_string(&path).unwrap();
    let new: Vec<&str> = after.lines().filter(|line| !before.lines().any(|old| old == *line)).collect();
    assert_eq!(new, ["model = \"ollama/qwen3-coder\"", "day_money = \"5 USD\"", "day_tokens = 2_000_000"]);
    let shown = stage.ran(&["config", "show"]).stdout;
    assert!(shown.contains("limits.day_tokens = 2000000"), "{shown}");
    for (key, value, why) in [
        ("model", "nobody/x", "no provider `nobody`"),
        ("limits.tool_calls", "0", "1 or more"),
        ("limits.tool_cals", "5", "tool_cals"),
        ("limits", "5", "is a table"),
        ("a b", "5", "not a key"),
    ] {
        let ran = set(key, value);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{key}: {ran:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), after, "{key}");
    }
}

/// A channel and its people come from the environment, beside what the file has and never over it.
#[test]
fn a_channel_comes_from_the_environment_alone() {
    let stage = Stage::new(&[]);
    let project = stage.project().display().to_string();
    let with = |arguments: &[&str], variables: &[(&str, &str)]| {
        Ran::of(stage.bailey(arguments).envs(variables.iter().copied()).output().unwrap())
    };
    let variables = [
        ("BAILEY_TELEGRAM_WORKSPACE", project.as_str()),
        ("BAILEY_TELEGRAM_OWNERS", "4711"),
        ("BAILEY_TELEGRAM_USERS", "4711, 815"),
        ("TELEGRAM_BOT_TOKEN", "1:abc"),
    ];
    let none = with(&["--json", "channels", "people"], &[]);
    assert!(!none.stdout.contains("4711"), "the control: {none:?}");
    let people = with(&["channels", "people"], &variables);
    assert!(
        people.code == Some(0) && people.stdout.contains("4711") && people.stdout.contains("815"),
        "{people:?}"
    );
    let origin = with(&["config", "show", "--origin"], &variables).stdout;
    assert!(
        origin.contains("channels.telegram.workspace") && origin.contains("BAILEY_TELEGRAM_WORKSPACE"),
        "{origin}"
    );
    for wrong in ["ann", "4711,", "4711 815"] {
        let ran = with(&["config", "check"], &[("BAILEY_TELEGRAM_OWNERS", wrong)]);
        assert!(ran.code == Some(2) && ran.stderr.contains("BAILEY_TELEGRAM_OWNERS"), "{wrong}: {ran:?}");
    }
    // A channel of the file stays as it is.
    fs::create_dir_all(stage.home()).unwrap();
    let own = "[channels.telegram]\nkind = \"telegram\"\nkey_env = \"MINE\"\nworkspace = \"/mine\"\n";
    fs::write(stage.home().join("config.toml"), own).unwrap();
    let shown = with(&["config", "show"], &variables).stdout;
    assert!(shown.contains("\"/mine\"") && !shown.contains(&project), "{shown}");
}
