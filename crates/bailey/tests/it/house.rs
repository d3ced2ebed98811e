//! House rules of the whole product, by their names, each with a control that shows that the test can fail.

use crate::stage::{Ran, Stage};
use bailey_testkit::Reply;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    fs,
    net::TcpListener,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A turn that reads, searches, changes and runs something in the workspace.
fn busy() -> Vec<Reply> {
    vec![
        Reply::calls([
            ("a", "fs_read", json!({ "path": "src/secret-of-the-house.txt" })),
            ("b", "search_grep", json!({ "pattern": "needle" })),
            ("c", "fs_list", json!({ "path": "src" })),
        ]),
        Reply::calls([(
            "d",
            "fs_edit",
            json!({ "path": "src/secret-of-the-house.txt", "old": "needle", "new": "thread" }),
        )]),
        Reply::calls([("e", "command_run", json!({ "command": "cat src/secret-of-the-house.txt" }))]),
        Reply::text("done"),
    ]
}

/// Rule 4: the daemon itself opens no file of a workspace; reads, searches, changes and merges run inside the
/// walls.
#[test]
fn walls_before_workspace() {
    if Command::new("strace").arg("-V").output().is_err() {
        let is_full = std::env::var_os("BAILEY_TEST_ALL").is_some_and(|value| value == "1");
        assert!(!is_full, "the full run needs strace");
        println!("SKIPPED: strace is not installed");
        return;
    }
    let stage = Stage::new(&[("src/secret-of-the-house.txt", "a needle\n"), (".bailey/config.toml", "")]);
    let _model = stage.model(busy());
    let trace = stage.folder().join("trace");
    let mut traced = Command::new("strace");
    traced.args([
        "-f",
        "-y",
        "-qq",
        "-s",
        "4096",
        "-e",
        "trace=open,openat,openat2,creat,clone,clone3,fork,vfork",
        "-o",
    ]);
    traced.arg(&trace).arg(env!("CARGO_BIN_EXE_bailey")).arg("--home").arg(stage.home());
    traced
        .args(["run", "--apply", "--approve", "never", "--model", "test/model", "-C"])
        .arg(stage.project())
        .arg("do it");
    let ran = Ran::of(traced.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(stage.read("src/secret-of-the-house.txt"), "a thread\n", "the apply reached the project");

    let opened = Opened::read(&fs::read_to_string(&trace).unwrap());
    let name = "secret-of-the-house.txt";
    assert!(
        opened.inside.iter().any(|path| path.contains(name)),
        "control: the walls' own processes opened it"
    );
    let project = fs::canonicalize(stage.project()).unwrap().display().to_string();
    let outside: Vec<&String> =
        opened.outside.iter().filter(|path| path.contains(name) || path.starts_with(&project)).collect();
    let settings = ["", "/.bailey", "/.bailey/config.toml"].map(|path| format!("{project}{path}"));
    assert!(
        outside.contains(&&settings[2]),
        "control: what the main process does open of a workspace is found, also beneath a directory: {:?}",
        opened.outside
    );
    let allowed = |path: &str| settings.iter().any(|own| own == path);
    assert!(
        outside.iter().all(|path| allowed(path)),
        "the main process opened files of the workspace: {outside:?}"
    );
}

/// What the processes of a trace opened: the main process with its threads, and everything below the warden.
#[derive(Default)]
struct Opened {
    outside: Vec<String>,
    inside: Vec<String>,
}

impl Opened {
    fn read(trace: &str) -> Self {
        let mut main: HashSet<&str> = HashSet::new();
        let mut opened = Self::default();
        let mut begun: HashMap<&str, String> = HashMap::new();
        for line in trace.lines() {
            let Some((pid, call)) = line.split_once(' ') else { continue };
            let call = call.trim_start();
            if main.is_empty() {
                main.insert(pid);
            }
            // A call that another thread's came between stands on two lines.
            let whole = match (call.strip_suffix("<unfinished ...>"), call.strip_prefix("<... ")) {
                (Some(start), _) => {
                    begun.insert(pid, start.to_owned());
                    continue;
                }
                (None, Some(end)) => {
                    begun.remove(pid).unwrap_or_default() + end.split_once(">").map_or("", |(_, end)| end)
                }
                (None, None) => call.to_owned(),
            };
            let child = whole.rsplit_once("= ").and_then(|(_, child)| child.split_whitespace().next());
            if whole.starts_with("clone") {
                if let Some(child) = child.filter(|_| main.contains(pid) && whole.contains("CLONE_THREAD")) {
                    main.insert(
                        trace
                            .lines()
                            .find_map(|l| l.split(' ').next().filter(|p| *p == child))
                            .unwrap_or(pid),
                    );
                }
            } else if let Some(path) = Self::path(&whole) {
                let list = if main.contains(pid) { &mut opened.outside } else { &mut opened.inside };
                list.push(path);
            }
        }
        opened
    }

    /// What a call opened, or meant to: the path of the descriptor that it returned, else the name that it
    /// was given, below the directory that it was given.
    fn path(call: &str) -> Option<String> {
        let (asked, answer) = call.rsplit_once(" = ")?;
        let got = answer.split_once('<').and_then(|(_, path)| path.rsplit_once('>'));
        if let Some((path, _)) = got {
            return Some(path.to_owned());
        }
        let (before, name) = (asked.split('"').next()?, asked.split('"').nth(1)?);
        let directory =
            before.split_once('<').and_then(|(_, path)| path.rsplit_once('>')).map(|(path, _)| path);
        Some(match directory {
            Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
            _ => name.to_owned(),
        })
    }
}

/// Rule 5, as long as there is no network door: a command reaches nothing, not even the host's own loopback.
#[test]
fn sandbox_has_no_network_but_egress() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x.git", listener.local_addr().unwrap());
    let reached = Arc::new(AtomicUsize::new(0));
    let count = reached.clone();
    thread::spawn(move || {
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });

    let probe = format!("git ls-remote {url}; git ls-remote http://203.0.113.7/x.git");
    let ran = stage.ran(&["--json", "sandbox", "run", "--", "sh", "-c", &probe]);
    assert_eq!(reached.load(Ordering::SeqCst), 0, "the host's loopback was reached from inside: {ran:?}");
    let enforced = &ran.lines()[0]["enforced"];
    assert!(enforced["walls"].as_array().unwrap().contains(&json!("net_namespace")), "{enforced}");
    let lost: u64 = enforced["out_no_routes"].as_str().unwrap().parse().unwrap();
    assert!(lost > 0, "the namespace counted no packet without a route: {enforced}");

    Command::new("git").args(["ls-remote", &url]).output().unwrap();
    assert!(reached.load(Ordering::SeqCst) > 0, "control: outside of the walls the same command reaches it");
}

/// Rule 7: configuration, policy, journal, binaries and SOUL.md are out of reach.
#[test]
fn agent_cannot_write_its_own_law() {
    let stage = Stage::new(&[("a.txt", "a\n")]);
    let laws = ["config.toml", "policy/default.toml", "SOUL.md", "journal.db", ".env"];
    assert_eq!(stage.ran(&["init"]).code, Some(0));
    fs::write(stage.home().join("SOUL.md"), "be kind\n").unwrap();
    assert_eq!(stage.ran(&["soul", "accept"]).code, Some(0));
    let home = fs::canonicalize(stage.home()).unwrap();
    let paths: Vec<String> = laws.iter().map(|law| home.join(law).display().to_string()).collect();
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_bailey")).unwrap().display().to_string();

    let mut script: Vec<Reply> = Vec::new();
    for path in paths.iter().chain([&program]) {
        script.push(Reply::calls([
            ("w", "fs_write", json!({ "path": path, "content": "answer = \"allow\"\n" })),
            ("c", "command_run", json!({ "command": format!("echo hostile >> '{path}'") })),
            ("d", "command_run", json!({ "command": format!("rm -rf '{path}'") })),
        ]));
    }
    script.push(Reply::text("done"));
    let server = stage.model_beside(script);
    // The journal is written by Bailey itself all the while; its chain is what must hold.
    let kept =
        || laws.iter().filter(|law| **law != "journal.db").map(|law| fs::read(home.join(law)).unwrap());
    let before: Vec<Vec<u8>> = kept().collect();
    let binary = fs::read(&program).unwrap();
    let ran =
        stage.ran(&["--json", "run", "--model", "test/model", "--approve", "never", "--apply", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let after: Vec<Vec<u8>> = kept().collect();
    assert!(before == after, "a law was changed");
    assert!(fs::read(&program).unwrap() == binary, "the program was changed");
    assert_eq!(stage.ran(&["audit", "verify"]).code, Some(0));
    let trail = stage.trail();
    for path in paths.iter().chain([&program]) {
        assert!(refused(&trail, path), "no refusal names {path}");
    }
    assert!(!trail.iter().any(|entry| entry["kind"] == "change" && entry["type"] == "intent"));
    drop(server);
    for path in &paths {
        assert!(
            writable(Path::new(path)),
            "control: whoever runs Bailey can write {path} outside of the walls"
        );
    }
}

/// Whether a rule denied this path, or its card was answered with no: where nobody is asked, what is only
/// read outside of the workspace ends like that, and a tool that means to change a file looks at it first.
fn refused(trail: &[Value], path: &str) -> bool {
    trail.iter().zip(trail.iter().skip(1)).any(|(entry, next)| {
        let no = entry["type"] == "asked" && next["type"] == "answered" && next["answer"] == "no";
        entry["target"] == json!(path) && (entry["type"] == "denied" || no)
    })
}

fn writable(path: &Path) -> bool {
    fs::OpenOptions::new().append(true).open(path).is_ok()
}
