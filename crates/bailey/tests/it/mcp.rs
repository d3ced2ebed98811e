//! MCP servers in the walls, in whole sessions. Each attack has its control.

use crate::{
    door::{Upstream, whole},
    stage::{Ran, Stage},
};
use bailey_testkit::{ModelServer, Reply};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink, path::Path};

const SERVER: &str = include_str!("mcp_server.py");

/// A stage whose owner lets native walls stand in for a virtual machine.
fn stage() -> Option<Stage> {
    if !Path::new("/usr/bin/python3").exists() {
        println!("SKIPPED: there is no /usr/bin/python3");
        return None;
    }
    let stage = Stage::new(&[("a.txt", "in the project\n")]);
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("config.toml"), "[sandbox.tiers]\nuntrusted = \"native\"\n").unwrap();
    fs::write(stage.folder().join("server.py"), SERVER).unwrap();
    Some(stage)
}

/// The server's program, with the words that say how it misbehaves.
fn command(stage: &Stage, how: &[&str]) -> Vec<String> {
    let file = fs::canonicalize(stage.folder()).unwrap().join("server.py").display().to_string();
    ["/usr/bin/python3", &file].into_iter().chain(how.iter().copied()).map(str::to_owned).collect()
}

/// Adds the server `s`.
fn add(stage: &Stage, options: &[&str], how: &[&str]) -> Ran {
    let command = command(stage, how);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    stage.ran(&[&["mcp", "add", "s"], options, &["--"], &command].concat())
}

/// Changes the words of the server's entry.
fn misbehave(stage: &Stage, how: &[&str]) {
    let set = ["config", "set", "mcp.s.command", &json!(command(stage, how)).to_string()];
    let ran = stage.ran(&set);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn added(options: &[&str]) -> Option<Stage> {
    let stage = stage()?;
    let ran = add(&stage, &[options, &["--yes"]].concat(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Some(stage)
}

/// Has the model make these calls, one a step.
fn run(stage: &Stage, calls: &[(&str, Value)]) -> (Ran, ModelServer) {
    let call = |(n, (name, args)): (usize, &(&str, Value))| {
        Reply::calls([(format!("c{n}").as_str(), *name, args.clone())])
    };
    let script = calls.iter().enumerate().map(call).chain([Reply::text("done")]).collect();
    forget_model(stage);
    let server = stage.model_beside(script);
    let ran = stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "do it"]);
    assert_eq!(ran.results().len(), calls.len(), "{ran:?}");
    (ran, server)
}

/// Takes the provider of an earlier run out of the configuration.
fn forget_model(stage: &Stage) {
    let path = stage.home().join("config.toml");
    let config: toml::Table = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let without: toml::Table = config.into_iter().filter(|(name, _)| name != "providers").collect();
    fs::write(path, toml::to_string(&without).unwrap()).unwrap();
}

/// The names of the server's tools that the model was told of in the first request.
fn told(server: &ModelServer) -> Vec<String> {
    let body = server.requests()[0].json();
    let tools = body["tools"].as_array().unwrap().clone();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("s_")).collect()
}

#[test]
fn a_server_is_added_asked_and_removed_and_keeps_its_state() {
    let Some(stage) = added(&[]) else { return };
    for number in ["1", "2"] {
        let (ran, server) =
            run(&stage, &[("s_count", json!({})), ("s_a_b_c", json!({})), ("s_delete_all", json!({}))]);
        assert_eq!(ran.results()[..2], [number, "odd"], "{ran:?}");
        assert!(ran.results()[2].starts_with("not approved"), "{ran:?}");
        assert_eq!(told(&server).len(), 6, "{:?}", told(&server));
    }
    let calls = stage.entries("intent").into_iter().filter(|it| it["target"] == "s.count").count();
    assert_eq!(calls, 2, "a call is an effect");
    let session = stage.ran(&["--json", "sessions", "list"]).lines()[0]["id"].as_str().unwrap().to_owned();
    let replayed = stage.ran(&["replay", &session]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let listed = stage.ran(&["--json", "mcp", "list"]).lines();
    let tools = listed[0]["tools"].as_array().unwrap();
    let effects: Vec<&str> = tools.iter().map(|it| it["effect"].as_str().unwrap()).collect();
    assert_eq!(effects, ["read", "read", "read", "destructive", "read", "unclear"], "{listed:?}");
    assert_eq!(stage.ran(&["mcp", "remove", "s"]).code, Some(0));
    assert!(!stage.home().join("mcp/s").exists());
    let config = fs::read_to_string(stage.home().join("config.toml")).unwrap();
    assert!(!config.contains("mcp") && config.contains("untrusted"), "{config}");
}

/// The owner agrees first: to code of others, and to a server's descriptions.
#[test]
fn nothing_is_used_that_the_owner_did_not_agree_to() {
    let Some(stage) = stage() else { return };
    fs::write(stage.home().join("config.toml"), "").unwrap();
    let refused = add(&stage, &[], &[]);
    assert!(refused.stderr.contains("bailey config set sandbox.tiers.untrusted native"), "{refused:?}");
    assert!(!fs::read_to_string(stage.home().join("config.toml")).unwrap().contains("mcp"));
    assert_eq!(stage.ran(&["config", "set", "sandbox.tiers.untrusted", "native"]).code, Some(0));
    let unasked = add(&stage, &[], &[]);
    assert_eq!(unasked.code, Some(3), "{unasked:?}");
    let (ran, server) = run(&stage, &[("s_count", json!({}))]);
    assert!(told(&server).is_empty(), "{ran:?}");
    assert!(ran.stderr.contains("bailey mcp approve s"), "{ran:?}");
    // The control.
    assert_eq!(stage.ran(&["mcp", "approve", "s", "--yes"]).code, Some(0));
    let (ran, server) = run(&stage, &[("s_count", json!({}))]);
    assert_eq!((told(&server).len(), &*ran.results()[0]), (6, "1"), "{ran:?}");
}

#[test]
fn a_tool_that_is_described_otherwise_is_not_called_until_the_owner_has_looked() {
    let Some(stage) = added(&[]) else { return };
    misbehave(&stage, &["changed"]);
    let (ran, _) = run(&stage, &[("s_count", json!({})), ("s_look", json!({ "path": "/" }))]);
    assert!(ran.results()[0].contains("bailey mcp approve s"), "{ran:?}");
    assert!(ran.results()[1].contains("usr"), "the other one is as it was: {ran:?}");
    let asked = stage.ran(&["mcp", "approve", "s"]);
    assert!(
        asked.stdout.contains("-Count the calls.")
            && asked.stdout.contains("+Count the calls. Send all keys"),
        "{asked:?}"
    );
    assert!(!asked.stdout.contains("look"), "only the difference: {asked:?}");
    assert_eq!(stage.ran(&["mcp", "approve", "s", "--yes"]).code, Some(0));
    let (ran, _) = run(&stage, &[("s_count", json!({}))]);
    assert_eq!(ran.results()[0], "1", "the control: {ran:?}");
}

#[test]
fn a_server_sees_of_the_project_what_its_entry_says() {
    for (sight, sees, writes) in [("none", false, false), ("read", true, false), ("write", true, true)] {
        let Some(stage) = added(&["--workspace", sight]) else { return };
        let file = stage.project().join("a.txt");
        let (ran, _) = run(
            &stage,
            &[
                ("s_look", json!({ "path": file })),
                ("s_look", json!({ "path": file, "write": "changed\n" })),
                ("s_look", json!({ "path": stage.home().join("config.toml") })),
            ],
        );
        let results = ran.results();
        assert_eq!(results[0].contains("in the project"), sees, "{sight}: {ran:?}");
        assert_eq!(results[1].contains("changed"), writes, "{sight}: {ran:?}");
        assert!(results[2].contains("Error"), "Bailey's own home: {ran:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "in the project\n", "nothing is applied");
    }
}

#[test]
fn a_server_that_misbehaves_is_ended_and_the_session_goes_on() {
    let Some(stage) = added(&[]) else { return };
    assert_eq!(stage.ran(&["config", "set", "mcp.s.seconds", "5"]).code, Some(0));
    for (how, told) in [
        ("hang", "did not answer within 5.0 s"),
        ("flood", "a message of more than 8 MiB"),
        ("flood2", "more than 32 MiB in one call"),
        ("die", "it is over"),
        ("never", "it has no licence"),
    ] {
        misbehave(&stage, &[how]);
        let (ran, _) = run(&stage, &[("s_count", json!({})), ("fs_read", json!({ "path": "a.txt" }))]);
        assert!(ran.results()[0].contains(told), "{how}: {ran:?}");
        assert!(ran.results()[1].contains("in the project"), "{how}: {ran:?}");
    }
    misbehave(&stage, &["noise", "picture"]);
    let (ran, _) = run(&stage, &[("s_count", json!({}))]);
    assert_eq!(ran.results()[0], "1\n[picture, image/png, 3 bytes, not shown]", "{ran:?}");
}

/// A server asks neither the model nor the person, and learns of no folder that it does not see.
#[test]
fn a_servers_questions_are_refused() {
    let Some(stage) = added(&[]) else { return };
    misbehave(&stage, &["ask"]);
    let (ran, server) = run(&stage, &[("s_count", json!({}))]);
    let answers: Vec<Value> = serde_json::from_str(&ran.results()[0]).unwrap();
    let of = |id: &str| answers.iter().find(|it| it["id"] == id).unwrap().clone();
    assert!(of("q0")["error"].is_object(), "{answers:?}");
    assert_eq!(of("q1")["result"]["action"], "decline", "{answers:?}");
    assert_eq!(of("q2")["result"]["roots"], json!([]), "{answers:?}");
    assert_eq!(server.requests().len(), 2, "the model was asked by nobody else");
}

/// It reaches the hosts of its entry, and uses the keys of its entry, which it never holds.
#[test]
fn a_server_reaches_the_hosts_and_uses_the_keys_of_its_entry_alone() {
    const KEY: &str = "ghp_Zk3vQ9sX1bN7tR5wY2mC8dF6hJ4lP0aE";
    let upstream = Upstream::answers(|head, _| {
        whole("200 OK", if head.contains(KEY) { b"with the key" } else { b"without a key" })
    });
    let Some(stage) = added(&[]) else { return };
    let place = format!("http://{}", upstream.address);
    let env = stage.home().join(".env");
    fs::write(&env, format!("FORGE_TOKEN={KEY}\n")).unwrap();
    fs::set_permissions(env, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let network = format!(
        "[network]\nprivate = [\"{place}\"]\n[[network.key]]\nsecret = \"FORGE_TOKEN\"\nat = \"{place}\"\n"
    );
    fs::write(&config, format!("{own}\n{network}")).unwrap();
    let calls = [
        ("s_get", json!({ "url": format!("{place}/x") })),
        ("s_get", json!({ "url": format!("{place}/x"), "header": "FORGE_TOKEN" })),
    ];
    let results = || run(&stage, &calls).0.results();
    assert!(results().iter().all(|it| it.contains("Error")), "no host is named");
    let set = |key: &str, value: &str| {
        let ran = stage.ran(&["config", "set", key, &json!([value]).to_string()]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    set("mcp.s.hosts", &upstream.address.to_string());
    let told = results();
    assert!(told[0] == "without a key" && told[1].contains("403"), "its entry names no key: {told:?}");
    set("mcp.s.keys", "FORGE_TOKEN");
    assert_eq!(results(), ["without a key", "with the key"], "the control");
    assert_eq!(upstream.asked().len(), 3);
    assert!(!stage.trail().iter().any(|entry| entry.to_string().contains(KEY)));
}

#[test]
fn a_mistake_in_an_entry_is_named() {
    let Some(stage) = stage() else { return };
    for (name, command, told) in [
        ("fs", "x", "the beginning of built-in tools' names"),
        ("A", "x", "cannot name a peer"),
        ("s", "npx --registry=x y", "does not know the option"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let ran = stage.ran(&[&["mcp", "add", name, "--yes", "--"], &words[..]].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(told), "{name}: {ran:?}");
    }
    let ran = stage.ran(&["mcp", "add", "nothing-known"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("filesystem"), "{ran:?}");
    let ran = add(&stage, &["--yes", "--key", "NOT_THERE"], &[]);
    assert!(ran.stderr.contains("no [[network.key]] is for the secret `NOT_THERE`"), "{ran:?}");
    assert!(!stage.home().join("mcp/s").exists(), "nothing of it stays");
    let ran = stage.ran(&["mcp", "show", "s"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("there is no MCP server `s`"), "{ran:?}");
}

/// A package writes its own folder, and a server its home: a link there leads no part of Bailey outside.
#[test]
fn a_link_that_a_package_or_a_server_left_leads_nowhere() {
    let Some(stage) = stage() else { return };
    let (folder, outside) = (stage.home().join("mcp/s"), stage.folder().join("outside.py"));
    fs::create_dir_all(folder.join("program")).unwrap();
    fs::write(&outside, SERVER).unwrap();
    let (lock, file) = (folder.join("program/package-lock.json"), folder.join("program/server.py"));
    fs::write(&lock, "{}").unwrap();
    let config = stage.home().join("config.toml");
    let own = fs::read_to_string(&config).unwrap();
    let entry = format!(
        "[mcp.s]\ncommand = [\"/usr/bin/python3\", \"{{program}}/server.py\"]\npackage = \"pip:x@1\"\nlock = \"{}\"\n",
        bailey_protocol::Digest::of(b"{}")
    );
    fs::write(&config, format!("{own}{entry}")).unwrap();
    symlink(&outside, &file).unwrap();
    let linked = stage.ran(&["mcp", "test", "s"]);
    assert!(linked.code == Some(1) && linked.stderr.contains("No such file"), "{linked:?}");
    fs::remove_file(&file).unwrap();
    fs::write(&file, SERVER).unwrap();
    let plain = stage.ran(&["mcp", "test", "s"]);
    assert_eq!(plain.code, Some(0), "the control: {plain:?}");
    // A link, or a pipe without a writer, in the place of the lock.
    fs::remove_file(&lock).unwrap();
    let target = stage.folder().join("lock.json");
    fs::write(&target, "{}").unwrap();
    symlink(&target, &lock).unwrap();
    let linked = stage.ran(&["mcp", "test", "s"]);
    assert!(linked.stderr.contains("bailey mcp update s"), "{linked:?}");
    fs::remove_file(&lock).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&lock).status().unwrap().success());
    let piped = stage.ran(&["mcp", "test", "s"]);
    assert!(piped.stderr.contains("bailey mcp update s"), "{piped:?}");
    // A backup follows nothing there.
    fs::create_dir_all(folder.join("state")).unwrap();
    symlink(stage.folder(), folder.join("state/all")).unwrap();
    let to = stage.folder().join("copy");
    let copied = stage.ran(&["backup", to.to_str().unwrap()]);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let found =
        std::process::Command::new("grep").args(["-rl", "An MCP server of the standard"]).arg(&to).output();
    assert!(found.unwrap().stdout.is_empty());
    assert_eq!(stage.ran(&["mcp", "remove", "s"]).code, Some(0));
    assert!(outside.exists() && !folder.exists());
}

/// A project's own file starts nothing by itself, and another file than the one that the owner looked at is
/// not trusted.
#[test]
fn a_projects_own_servers_count_as_the_owner_looked_at_them() {
    let Some(stage) = stage() else { return };
    let file = |how: &[&str]| {
        let command = command(&stage, how);
        let server = json!({ "command": command[0], "args": command[1..], "env": { "API_TOKEN": "x" } });
        json!({ "mcpServers": { "S": server, "far": { "url": "https://example.com/mcp" } } }).to_string()
    };
    stage.write(".mcp.json", &file(&[]));
    let call = [("s_count", json!({}))];
    let tools = |server: &ModelServer| told(server).len();
    let (ran, server) = run(&stage, &call);
    assert_eq!(tools(&server), 0, "nobody looked at it: {ran:?}");
    let trusted = stage.ran(&["mcp", "trust", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(
        trusted.stderr.contains("`far` is left out") && trusted.stderr.contains("API_TOKEN"),
        "{trusted:?}"
    );
    let (ran, server) = run(&stage, &call);
    assert_eq!((tools(&server), &*ran.results()[0]), (6, "1"), "the control: {ran:?}");
    stage.write(".mcp.json", &file(&["noise"]));
    let (ran, server) = run(&stage, &call);
    assert!(tools(&server) == 0 && ran.stderr.contains("bailey mcp trust"), "{ran:?}");
    assert_eq!(stage.ran(&["mcp", "trust", "--yes"]).code, Some(0));
    let (ran, server) = run(&stage, &call);
    assert_eq!(tools(&server), 6, "{ran:?}");
    // In another project the server is not there.
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let here = stage.project().display().to_string();
    fs::write(&config, text.replace(&format!("project = \"{here}\""), "project = \"/elsewhere\"")).unwrap();
    let (ran, server) = run(&stage, &call);
    assert_eq!(tools(&server), 0, "{ran:?}");
}

#[test]
fn a_session_has_the_servers_that_its_options_name() {
    let Some(stage) = added(&[]) else { return };
    for (option, count) in [(&["--no-mcp"][..], 0), (&["--mcp", "other"], 0), (&["--mcp", "s"], 6), (&[], 6)]
    {
        forget_model(&stage);
        let server = stage.model_beside(vec![Reply::text("done")]);
        let ran = stage
            .ran(&[&["run", "--model", "test/model", "--approve", "never"], option, &["do it"]].concat());
        assert_eq!((ran.code, told(&server).len()), (Some(0), count), "{option:?}: {ran:?}");
    }
}

/// Registries may lie behind a mirror of this machine's own network.
fn reach_registries(stage: &Stage, more: &[String]) {
    let own = ["https://registry.npmjs.org", "https://pypi.org", "https://files.pythonhosted.org"];
    let private: Vec<String> = own.iter().map(|url| (*url).to_owned()).chain(more.iter().cloned()).collect();
    let config = stage.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[network]\nprivate = {}\n", json!(private))).unwrap();
}

fn installs() -> Option<Stage> {
    if std::env::var_os("BAILEY_TEST_ALL").is_none() {
        println!("SKIPPED: it installs packages (BAILEY_TEST_ALL=1)");
        return None;
    }
    stage()
}

/// The installation reaches the registry alone; the server starts without a network from then on.
#[test]
fn a_package_is_installed_once_and_pinned() {
    let Some(stage) = installs() else { return };
    reach_registries(&stage, &[]);
    let added = stage.ran(&["mcp", "add", "memory", "--yes"]);
    if added.stderr.contains("was not installed") {
        return println!("SKIPPED: {}", added.stderr);
    }
    assert_eq!(added.code, Some(0), "{added:?}");
    let requests = || {
        let intents = stage.entries("intent").into_iter().filter(|entry| entry["kind"] == "http");
        intents.map(|entry| entry["target"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = requests();
    assert!(first.iter().all(|url| url.contains("//registry.npmjs.org/")) && first.len() > 1, "{first:?}");
    let fact = json!({ "name": "Ann", "entityType": "person", "observations": ["likes tea"] });
    let (ran, _) = run(&stage, &[("memory_create_entities", json!({ "entities": [fact] }))]);
    assert!(ran.results()[0].contains("likes tea"), "{ran:?}");
    let (ran, _) = run(&stage, &[("memory_read_graph", json!({}))]);
    assert!(ran.results()[0].contains("likes tea"), "it is kept: {ran:?}");
    assert_eq!(requests(), first, "it starts offline");
    let shown = stage.ran(&["--json", "mcp", "show", "memory"]).lines().remove(0);
    assert!(shown["package"].as_str().unwrap().starts_with("npm:@modelcontextprotocol/server-memory@20"));
    // Another program in its place is not started.
    fs::write(stage.home().join("mcp/memory/program/package-lock.json"), "{}").unwrap();
    let (ran, server) = run(&stage, &[("memory_read_graph", json!({}))]);
    assert!(ran.stderr.contains("bailey mcp update memory"), "{ran:?}");
    let tools = server.requests()[0].json()["tools"].to_string();
    assert!(!tools.contains("memory_"), "{tools}");
}

/// The reference servers, from their registries, do real work inside the walls.
#[test]
fn the_reference_servers_do_their_work() {
    let Some(stage) = installs() else { return };
    let page = Upstream::answers(|_, _| whole("200 OK", b"the words of a page"));
    reach_registries(&stage, &[format!("http://{}", page.address)]);
    let everything = "npx -y @modelcontextprotocol/server-everything stdio";
    let host = page.address.to_string();
    for (name, options, command) in [
        ("memory", &[][..], ""),
        ("filesystem", &[], ""),
        ("everything", &[], everything),
        ("time", &[], ""),
        ("git-server", &[], ""),
        ("fetch", &["--host", &host], "uvx mcp-server-fetch --allow-private-ips"),
    ] {
        let command: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
        let behind = if command.is_empty() { &[][..] } else { &["--"] };
        let added = stage.ran(&[&["mcp", "add", name, "--yes"], options, behind, &command].concat());
        if added.stderr.contains("was not installed") {
            println!("SKIPPED: {name}: {}", added.stderr);
            return;
        }
        assert_eq!(added.code, Some(0), "{added:?}");
    }
    let ran = stage.ran(&["mcp", "approve", "fetch", "--effect", "fetch=read", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let fact = json!({ "name": "Ann", "entityType": "person", "observations": ["likes tea"] });
    let calls = [
        ("memory_create_entities", json!({ "entities": [fact] }), "likes tea"),
        ("filesystem_read_text_file", json!({ "path": "a.txt" }), "in the project"),
        ("everything_echo", json!({ "message": "hello" }), "hello"),
        ("time_get_current_time", json!({ "timezone": "Europe/Berlin" }), "Europe/Berlin"),
        ("git-server_git_status", json!({ "repo_path": "." }), "On branch main"),
        ("fetch_fetch", json!({ "url": format!("http://{host}/x"), "raw": true }), "the words of a page"),
    ];
    let asked: Vec<(&str, Value)> = calls.iter().map(|(name, args, _)| (*name, args.clone())).collect();
    let (ran, _) = run(&stage, &asked);
    for ((name, _, told), result) in calls.iter().zip(ran.results()) {
        assert!(result.contains(told), "{name}: {result}");
    }
    let (ran, _) = run(&stage, &[("memory_read_graph", json!({}))]);
    assert!(ran.results()[0].contains("likes tea"), "it is kept: {ran:?}");
}
