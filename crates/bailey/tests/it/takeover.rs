//! The main process taken over: what whoever found a hole in one of its parsers could do from inside of it.
//!
//! While a command waits for its model or provider, a debugger makes its threads call the kernel
//! ([`inject`]), and its own socket to the warden carries forged orders ([`forge`]). Each refusal has its
//! control: the same in the program `bailey-controls`, with just the binding, or just the warden's doubt,
//! taken away.

mod forge;
pub(crate) mod inject;

use crate::{attacks::actor::controls, stage::Stage};
use bailey_protocol::{Action, Blob, FileChange, Isolation, Profile, WsPath};
use bailey_sandbox::worker::Request;
use bailey_testkit::{Gate, Message, ModelServer, Reply};
use inject::Taken;
use nix::{errno::Errno, libc};
use rustix::fs::SealFlags;
use serde_json::json;
use std::{
    fs,
    io::Write as _,
    net::{TcpListener, TcpStream},
    os::fd::AsFd as _,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A command that says on the session's `/tmp` that it has begun, and waits there for a word.
const WAITS: &str = "touch /tmp/begun; while [ ! -e /tmp/go ]; do sleep 0.1; done";
const KEY: &str = "canary-of-the-key";
/// Of `asm-generic/sockios.h`.
const FIOSETOWN: u64 = 0x8901;

/// A command that hears of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Run,
    Chat,
    /// The second session of a conversation.
    ChatAgain,
    Models,
    /// A session that goes on.
    Resume,
    /// A command inside the walls, without an agent.
    SandboxRun,
}

impl What {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Resume => {
                &["--json", "sessions", "resume", "", "--approve", "never", "--model", "test/model", "go on"]
            }
            Self::SandboxRun => &["--json", "sandbox", "run", "--keep", "--", "sh", "-c", WAITS],
            Self::Run => &["--json", "run", "--approve", "never", "--model", "test/model", "do it"],
            Self::Chat | Self::ChatAgain => {
                &["--json", "chat", "--approve", "never", "--model", "test/model"]
            }
            Self::Models => &["--json", "models"],
        }
    }

    fn typed(self) -> &'static str {
        match self {
            Self::Run | Self::Models | Self::Resume | Self::SandboxRun => "",
            Self::Chat => "do it\n",
            Self::ChatAgain => "/clear\ndo it\n",
        }
    }
}

/// A stage whose user has a key, and a command that waits for its model.
struct Scene {
    stage: Stage,
    gate: Gate,
    what: What,
    child: Child,
    /// The process that hears of the world: the child, or the child's own one.
    process: u32,
    _model: ModelServer,
    /// To a provider that was asked for its list of models, and does not answer.
    _asked: Option<TcpStream>,
}

impl Scene {
    /// `breach` is a variable of the program `bailey-controls`; none: the program itself.
    fn new(what: What, breach: Option<&str>) -> Self {
        let stage = Stage::new(&[("a.txt", "of the workspace\n"), (".env", "TOKEN=canary-of-the-project\n")]);
        let user = stage.folder().join("user");
        fs::create_dir_all(user.join(".ssh")).unwrap();
        fs::write(user.join(".ssh/id"), KEY).unwrap();
        let gate = Gate::default();
        let held = Reply::Held(gate.clone(), Message::text("done"));
        let list = Reply::calls([("c", "fs_list", json!({ "path": "." }))]);
        let before = (what == What::Resume).then(|| Reply::text("begun"));
        let before_it = usize::from(before.is_some());
        let model = stage.model(before.into_iter().chain([list, held]).collect());
        fs::create_dir_all(stage.home().join("policy")).unwrap();
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        if what == What::Models {
            let address = silent.local_addr().unwrap();
            let config = format!("[providers.test]\nwire = \"anthropic\"\nbase_url = \"http://{address}\"\n");
            fs::write(stage.home().join("config.toml"), config).unwrap();
        }
        let mut arguments = what.arguments().to_vec();
        let session;
        if what == What::Resume {
            let run = ["run", "--approve", "never", "--model", "test/model", "begin"];
            assert_eq!(stage.ran(&run).code, Some(0));
            let listed = stage.ran(&["--json", "sessions", "list", "--all"]).lines();
            session = listed[0]["id"].as_str().unwrap().to_owned();
            arguments[3] = &session;
        }
        let run = stage.bailey(&arguments);
        let mut command = Command::new(breach.map_or(Path::new(run.get_program()), |_| controls()));
        command.args(run.get_args()).current_dir(stage.project()).env("HOME", &user).stdin(Stdio::piped());
        for (name, value) in run.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.envs(breach.map(|name| (name, "1")));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(what.typed().as_bytes()).unwrap();
        let asked = (what == What::Models).then(|| silent.accept().unwrap().0);
        match what {
            What::Models => {}
            What::SandboxRun => wait_until(|| folder(&stage).is_some_and(|tmp| tmp.join("begun").exists())),
            _ => model.wait_for(before_it + 2),
        }
        let process = if what.typed().is_empty() { child.id() } else { child_of(child.id()) };
        Self { stage, gate, what, child, process, _model: model, _asked: asked }
    }

    fn user(&self) -> PathBuf {
        fs::canonicalize(self.stage.folder()).unwrap().join("user")
    }

    /// The folder of its only session.
    fn session(&self) -> PathBuf {
        let mut sessions = fs::read_dir(self.stage.home().join("sessions")).unwrap();
        fs::canonicalize(sessions.next().unwrap().unwrap().path()).unwrap()
    }

    /// Lets the model answer, and the run end as if nothing had been.
    fn end(self) {
        self.gate.open();
        if self.what == What::SandboxRun {
            fs::write(folder(&self.stage).unwrap().join("go"), "").unwrap();
        }
        let ran = crate::stage::Ran::of(self.child.wait_with_output().unwrap());
        // A provider that did not answer is no model.
        let code = if self.what == What::Models { 4 } else { 0 };
        assert_eq!(ran.code, Some(code), "what is bound still does its work: {ran:?}");
    }
}

/// What the only session of a home has as its `/tmp`.
fn folder(stage: &Stage) -> Option<PathBuf> {
    let session = fs::read_dir(stage.home().join("sessions")).ok()?.next()?.unwrap();
    Some(session.path().join("tmp"))
}

fn wait_until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(30), "it did not begin");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The one process that this one started.
fn child_of(process: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    children.trim().parse().unwrap()
}

/// Where the calls of [`calls`] reach for.
struct World {
    _folder: tempfile::TempDir,
    socket: PathBuf,
    _unix: UnixListener,
    tcp: TcpListener,
}

impl World {
    fn new() -> Self {
        let make = |at: &str| tempfile::Builder::new().prefix("bailey-").tempdir_in(at).ok();
        let folder = make("/run").or_else(|| make("/tmp")).unwrap();
        let socket = folder.path().join("service.sock");
        let unix = UnixListener::bind(&socket).unwrap();
        Self { _folder: folder, socket, _unix: unix, tcp: TcpListener::bind("127.0.0.1:0").unwrap() }
    }
}

/// What each call came to, by its name: the result, or the error as a negative number. Programs are executed
/// last.
fn calls(scene: &Scene, world: &World, taken: &mut Taken) -> Vec<(&'static str, i64)> {
    let home = scene.stage.home();
    let mut found = Vec::new();
    let open = |taken: &mut Taken, path: &Path, flags: i32| {
        let path = taken.put(path.to_str().unwrap().as_bytes());
        taken.call(libc::SYS_openat, [libc::AT_FDCWD as u64, path, flags as u64, 0o600, 0, 0])
    };
    let project = scene.stage.project();
    for (name, path, flags) in [
        ("read the user's key", scene.user().join(".ssh/id"), libc::O_RDONLY),
        ("read a file of the workspace", project.join("a.txt"), libc::O_RDONLY),
        ("write a file of the workspace", project.join("new.txt"), libc::O_WRONLY | libc::O_CREAT),
        ("write the configuration", home.join("config.toml"), libc::O_WRONLY),
        ("write the agent's own file", home.join("agent.toml"), libc::O_WRONLY | libc::O_CREAT),
        ("write a rule", home.join("policy/mine.toml"), libc::O_WRONLY | libc::O_CREAT),
        ("read another process", PathBuf::from("/proc/1/status"), libc::O_RDONLY),
    ] {
        found.push((name, open(taken, &path, flags)));
    }
    let unix = taken.call(libc::SYS_socket, [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    let address =
        taken.put(&[&1u16.to_ne_bytes(), world.socket.to_str().unwrap().as_bytes(), b"\0"].concat());
    let length = 2 + world.socket.as_os_str().len() as u64 + 1;
    let reached =
        if unix < 0 { unix } else { taken.call(libc::SYS_connect, [unix as u64, address, length, 0, 0, 0]) };
    found.push(("reach a Unix socket", reached));
    let tcp = taken.call(libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    let port = world.tcp.local_addr().unwrap().port();
    let address =
        taken.put(&[&2u16.to_ne_bytes()[..], &port.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat());
    found.push(("reach another port", taken.call(libc::SYS_connect, [tcp as u64, address, 16, 0, 0, 0])));
    // A connection that begins with what is sent asks for no `connect`.
    let tcp = taken.call(libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    let first = [tcp as u64, address, 1, libc::MSG_FASTOPEN as u64, address, 16];
    found.push(("reach another port by its first byte", taken.call(libc::SYS_sendto, first)));
    let parent = u64::from(std::process::id());
    found.push(("signal another process", taken.call(libc::SYS_kill, [parent, 0, 0, 0, 0, 0])));
    let owner = [tcp as u64, libc::F_SETOWN as u64, parent, 0, 0, 0];
    found.push(("have a file signal another process", taken.call(libc::SYS_fcntl, owner)));
    let owner = taken.put(&std::process::id().to_ne_bytes());
    let owner = [tcp as u64, FIOSETOWN, owner, 0, 0, 0];
    found.push(("have a socket signal another process", taken.call(libc::SYS_ioctl, owner)));
    found.push(("trace another process", taken.call(libc::SYS_ptrace, [0x4206, parent, 0, 0, 0, 0])));
    let program = taken.put(b"/bin/true");
    let argv = taken.put(&[program.to_ne_bytes(), 0u64.to_ne_bytes()].concat());
    found.push(("execute a program", taken.call(libc::SYS_execve, [program, argv, 0, 0, 0, 0])));
    found
}

#[test]
fn a_taken_over_main_process_reaches_nothing() {
    let world = World::new();
    for what in [What::Run, What::Chat, What::ChatAgain, What::Models, What::Resume, What::SandboxRun] {
        let scene = Scene::new(what, None);
        let mut tried = 0;
        for thread in inject::threads(scene.process) {
            let mut taken = match Taken::seize(thread) {
                Ok(taken) => taken,
                // It had nothing more to do, and ended.
                Err(Errno::ESRCH) => continue,
                Err(error) => return println!("SKIPPED: ptrace is not allowed here ({error})"),
            };
            let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
            assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
            tried += 1;
            for (name, result) in calls(&scene, &world, &mut taken) {
                let refused = [-i64::from(libc::EACCES), -i64::from(libc::EPERM)];
                assert!(refused.contains(&result), "{what:?} could {name}: {result}");
            }
        }
        assert!(tried > 1, "the journal's threads are there, too");
        scene.end();

        let scene = Scene::new(what, Some("BAILEY_CONTROL_UNBOUND"));
        let mut taken = Taken::seize(scene.process as i32).unwrap();
        for (name, result) in calls(&scene, &world, &mut taken) {
            // A debugger is not traced by whom it traces.
            if name != "trace another process" {
                assert!(result >= 0, "the control: unbound, {what:?} could not {name}: {result}");
            }
        }
        drop(taken);
        assert!(scene.child.wait_with_output().unwrap().status.success(), "it became /bin/true");
    }
}

/// Who keeps a conversation is not bound: so it has one thread, no socket, no file of Bailey's home, and
/// waits.
#[test]
fn the_keeper_of_a_conversation_hears_of_nobody() {
    let scene = Scene::new(What::Chat, None);
    let keeper = scene.child.id();
    assert_eq!(inject::threads(keeper).len(), 1);
    let open = |process: u32| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let targets = descriptors.map(|fd| fs::read_link(fd.unwrap().path()).unwrap().display().to_string());
        targets.collect::<Vec<_>>()
    };
    let inet = |process: u32| {
        let tables = ["tcp", "tcp6", "udp", "udp6"]
            .map(|table| fs::read_to_string(format!("/proc/{process}/net/{table}")));
        let tables: String = tables.into_iter().flatten().collect();
        let is_there = |target: &String| {
            let number = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            number.is_some_and(|number| tables.split_whitespace().any(|word| word == number))
        };
        open(process).iter().any(is_there)
    };
    let home = fs::canonicalize(scene.stage.home()).unwrap().display().to_string();
    let of_home = |process: u32| open(process).iter().any(|target| target.starts_with(&home));
    assert!(inet(scene.process) && of_home(scene.process), "the control: the session has both");
    assert!(!inet(keeper) && !of_home(keeper), "{:?}", open(keeper));
    scene.end();
}

/// A worker's change of a file of the project.
fn change(project: &Path) -> Request {
    Request::Perform {
        action: Action::Change {
            files: vec![FileChange {
                path: WsPath(project.join("a.txt").display().to_string()),
                base: Some(bailey_protocol::Digest::of(b"of the workspace\n")),
                new: Some(Blob::from("of the attacker\n")),
            }],
        },
    }
}

/// What the warden does for whoever holds its socket: a name, and what came of it (its refusal, or what it
/// let out).
fn orders(scene: &Scene) -> Vec<(&'static str, String)> {
    let warden = forge::Warden::of(scene.process);
    let session = scene.session().file_name().unwrap().to_str().unwrap().to_owned();
    let project = scene.stage.project();
    let key = scene.user().join(".ssh/id");
    let cat = |path: &Path| forge::command(&project, &["cat", path.to_str().unwrap()]);
    let reads = |path: &Path| vec![path.to_str().unwrap().to_owned()];
    let reveal = Isolation {
        revealed: vec![WsPath(project.join(".env").display().to_string())],
        ..Isolation::default()
    };
    let change = change(&project);
    let plain = Isolation::default();
    vec![
        ("show the user's key", warden.ask(&session, "Workspace", &reads(&key), &cat(&key), &plain)),
        ("show a masked file", warden.ask(&session, "Workspace", &[], &cat(&project.join(".env")), &reveal)),
        ("write past the layer", warden.ask(&session, "Merge", &[], &json!({ "Work": change }), &plain)),
        (
            "do what can be another thing after it was looked at",
            warden.ask_by(
                SealFlags::empty(),
                &session,
                "Workspace",
                &[],
                &forge::command(&project, &["echo", "done"]),
                &plain,
            ),
        ),
    ]
}

/// The one file of the home that the warden changes is named by nobody but the owner's own process, before it
/// was bound: an order says what it holds, and never where it is.
#[test]
fn of_the_home_a_forged_order_changes_the_agents_own_file_alone() {
    let scene = Scene::new(What::Run, None);
    let home = scene.stage.home();
    let (own, config) = (home.join("agent.toml"), home.join("config.toml"));
    let before = fs::read_to_string(&config).unwrap();
    let warden = forge::Warden::of(scene.process);
    std::os::unix::fs::symlink("config.toml", &own).unwrap();
    let through_it = warden.swap(Some(&before), Some("model = 'theirs'"));
    assert!(through_it.contains("is a link"), "{through_it}");
    fs::remove_file(&own).unwrap();
    fs::hard_link(&config, &own).unwrap();
    let through_it = warden.swap(Some(&before), Some("model = 'theirs'"));
    assert!(through_it.contains("hard link"), "{through_it}");
    fs::remove_file(&own).unwrap();
    let long = warden.swap(None, Some(&"x".repeat(17_000)));
    assert!(long.contains("at most"), "{long}");
    assert_eq!(warden.swap(None, Some("name = 'x'")), "\"Done\"", "the control: it is the agent's own");
    assert_eq!(fs::read_to_string(&own).unwrap(), "name = 'x'");
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
    scene.end();
    // Where no agent works, there is none.
    let scene = Scene::new(What::SandboxRun, None);
    let none = forge::Warden::of(scene.process).swap(None, Some("name = 'x'"));
    assert!(none.contains("no file of its own") && !scene.stage.home().join("agent.toml").exists(), "{none}");
    scene.end();
}

/// The warden serves with its only thread.
#[test]
fn the_warden_waits_for_no_descriptor_of_a_forged_order() {
    let scene = Scene::new(What::Run, None);
    let warden = forge::Warden::of(scene.process);
    let own = scene.stage.home().join("agent.toml");
    let (silent, _end) = rustix::pipe::pipe().unwrap();
    let counter = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let unsealed = rustix::fs::memfd_create("swap", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    for said in [&silent, &counter, &unsealed] {
        let refused = warden.swap_as(said.as_fd());
        assert!(refused.contains("is not sealed"), "{refused}");
    }
    let refused = warden.swap_by_pipe("name = 'x'");
    assert!(refused.contains("is not sealed") && !own.exists(), "{refused}");
    let _unread = warden.swap_unheard();
    assert_eq!(warden.swap(None, Some("name = 'x'")), "\"Done\"", "and it serves on");
    scene.end();

    let scene = Scene::new(What::Run, Some("BAILEY_CONTROL_TRUSTING"));
    let said = forge::Warden::of(scene.process).swap_by_pipe("name = 'x'");
    assert_eq!(said, "\"Done\"", "the control: believed, it reads what may never end");
    scene.end();
}

/// Two processes read an order. What one of them looked at is what the other one does, also where it changes
/// in between.
#[test]
fn what_is_done_is_what_was_looked_at() {
    let scene = Scene::new(What::Run, None);
    let warden = forge::Warden::of(scene.process);
    let (project, folder) = (scene.stage.project(), scene.session());
    let session = folder.file_name().unwrap().to_str().unwrap();
    let beyond = Isolation { profile: Profile::StandardNet, ..Isolation::default() };
    let refused =
        warden.ask(session, "Workspace", &[], &forge::command(&project, &["echo", "forged"]), &beyond);
    assert!(refused.contains("this one asks for `standard-net`"), "{refused}");
    let jobs = [("forged", beyond), ("looked at", Isolation::default())];
    let jobs = jobs.map(|(word, isolation)| (forge::command(&project, &["echo", word]), isolation));
    // The process waits for a model meanwhile, and does so for thirty seconds.
    let begun = Instant::now();
    let rounds = (0..400).take_while(|_| begun.elapsed() < Duration::from_secs(20));
    let asked = rounds.map(|round| {
        // One that waits for it is quicker to read it.
        thread::sleep(Duration::from_millis(10));
        warden.ask_then(session, "Workspace", &jobs, Duration::from_micros(round % 40 * 20))
    });
    let (refused, done): (Vec<_>, Vec<_>) = asked.partition(|came| came.contains("is not sealed"));
    assert!(done.iter().all(|came| came == "looked at\n"), "{done:?}");
    // The control: some were sealed before that was looked at, and some after.
    assert!(!refused.is_empty() && !done.is_empty(), "{refused:?} {done:?}");
    scene.end();
}

#[test]
fn forged_orders_are_refused_by_the_warden() {
    let scene = Scene::new(What::Run, None);
    let asked = orders(&scene);
    let reasons = ["no sandbox may see", "was not revealed", "is one for a", "is not sealed"];
    for ((name, came), reason) in asked.iter().zip(reasons) {
        assert!(came.starts_with("refused: ") && came.contains(reason), "{name}: {came}");
    }
    assert_eq!(scene.stage.read("a.txt"), "of the workspace\n");
    // And what is no forgery is done.
    scene.end();

    let scene = Scene::new(What::Run, Some("BAILEY_CONTROL_TRUSTING"));
    let asked = orders(&scene);
    let came = |name: &str| asked.iter().find(|(asked, _)| *asked == name).unwrap().1.as_str();
    assert_eq!(came("show the user's key"), KEY, "the control: believed, it shows the key");
    assert_eq!(came("show a masked file"), "TOKEN=canary-of-the-project\n");
    assert_eq!(came("do what can be another thing after it was looked at"), "done\n");
    assert_eq!(scene.stage.read("a.txt"), "of the attacker\n", "{}", came("write past the layer"));
    scene.end();
}
