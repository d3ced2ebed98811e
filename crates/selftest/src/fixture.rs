//! The place of the attacks: a separate home, project and user's home in a temporary place, with baits in
//! them, and an open session over that project. It holds nothing of the user's.

use super::{attack::Attempt, door::Servers};
use crate::probe;
use anyhow::{Context as _, Result};
use bailey_home::{
    config::Config,
    home::{Home, make_private},
};
use bailey_kernel::{Acted, Kernel};
use bailey_protocol::{Action, Command, Enforced, ExecReport, Limits, Profile, Report, Status, WsPath};
use bailey_secrets::{Redactor, Secret, Vault};
use bailey_session::compose::{self, Keys, OpenSession, Session};
use bailey_session::{Host, Opening};
use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{DirBuilderExt as _, PermissionsExt as _},
            net::{SocketAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    sync::Arc,
    time::Duration,
};

/// The longest that a probe may run, in milliseconds.
const PROBE_MS: u64 = 20_000;

/// How often the stand tries to remove the place.
const REMOVALS: usize = 20;

/// Variables that a command gets with its own values, or that every user's shell sets.
const COMMON: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "PWD", "SHLVL", "PYTHONDONTWRITEBYTECODE"];

/// Which side of the walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Inside,
    Outside,
}

/// A directory that is removed when its owner is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // When this runs before the warden's end, both remove the session's folder. One of them then finds
        // fewer files than it saw.
        for _ in 0..REMOVALS {
            if bailey_sandbox::remove(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The place, and the session over it.
pub(crate) struct Fixture {
    pub(crate) home: Home,
    pub(crate) project: PathBuf,
    pub(crate) outside: PathBuf,
    /// The values for the words of probes.
    places: Vec<(&'static str, String)>,
    variables: Vec<String>,
    /// A key that Bailey knows; a file of the project holds it.
    pub(crate) secret: String,
    pub(crate) keys: Keys,
    /// The list of system calls of commands, which is part of the rules' digest.
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) host: Host,
    pub(crate) kernel: Kernel,
    /// The servers for requests of commands.
    pub(crate) servers: Servers,
    _listeners: (TcpListener, [UnixListener; 3]),
    /// The last field, so that it is dropped after everything of the session.
    scratch: Scratch,
}

/// The result of a probe inside.
pub(crate) struct Inside {
    pub(crate) attempt: Attempt,
    /// The limit that ended it.
    pub(crate) limit: Option<String>,
    pub(crate) enforced: Enforced,
    pub(crate) stdout: Vec<u8>,
}

impl Fixture {
    /// Makes the place, and opens the session with the walls and limits of this configuration.
    ///
    /// # Errors
    /// When there is no room for it, or no session can be opened.
    pub(crate) async fn new(mut config: Config) -> Result<Self> {
        let mark = random()?;
        let scratch = Scratch(place(&format!("bailey-prove-{mark}"))?);
        let at = |name: &str| scratch.0.join(name);
        let [user, project, outside] = ["user", "project", "outside"].map(at);
        let home = Home { root: at("home"), user: user.clone(), agent: None };
        make_private(&home.root)?;
        make_private(&home.policy())?;
        let secret = format!("prove-{}", random()?);
        plant(&home, &project, &outside, &secret)?;
        let socket = UnixListener::bind(project.join("server.sock"))?;
        let tool = home.user.join(".cargo/bin");
        fs::create_dir_all(&tool)?;
        let shown_socket = UnixListener::bind(tool.join("s"))?;
        let hidden = format!("bailey-prove-{mark}");
        let hidden_socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&hidden)?)?;
        let server = TcpListener::bind("127.0.0.1:0").context("no server on the loopback")?;
        let servers = Servers::start(&secret)?;
        // The default rule that asks would also keep a request back, because inside a command no human can
        // be asked. The attack tries that nothing passes without a rule, so here the answer of this rule is
        // `pass`.
        let asks = "name = \"web\"\nanswer = \"review\"";
        let rules = bailey_policy::DEFAULT_RULES.replace(asks, "name = \"web\"\nanswer = \"pass\"");
        // A swapped link leads outside, again and again. Behind so many open questions no further question
        // is asked, and the read would wait.
        let asked = "name = \"outside-reads\"\nanswer = \"review\"";
        let rules = rules.replace(asked, "name = \"outside-reads\"\nanswer = \"deny\"");
        fs::write(home.policy().join("default.toml"), rules)?;
        fs::write(home.policy().join("door.toml"), servers.rules())?;
        let text = |path: &Path| path.display().to_string();
        let mut places = vec![
            ("{user}", text(&user)),
            ("{project}", text(&project)),
            ("{outside}", text(&outside)),
            ("{home}", text(&home.root)),
            ("{port}", server.local_addr()?.port().to_string()),
            ("{abstract}", hidden),
            ("{mark}", mark),
        ];
        places.extend(servers.places());
        // The session asks no model, and tells nothing to the owner's witness, extensions and peers.
        (config.witness, config.providers, config.extensions) = (None, BTreeMap::new(), Vec::new());
        config.peers.clear();
        servers.set(&mut config.network)?;
        let mut vault = Vault::default();
        vault.insert(probe::KEY.into(), Secret::new(secret.clone()));
        let keys = Keys { redactor: Redactor::new(&vault), vault: Arc::new(vault) };
        let workspace = WsPath(text(&project));
        let opening = Opening::New(compose::new_session()?);
        let session = Session {
            is_bound: false,
            is_scratch: true,
            ..Session::new(&home, &config, keys.clone(), workspace, opening)
        };
        let OpenSession { host, kernel, .. } = compose::open(session).await?;
        let limits = Limits { wall_ms: PROBE_MS, ..config.command.clone() };
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        // The walls set git's own variables for every command.
        let is_common = |name: &str| COMMON.contains(&name) || name.starts_with("GIT_CONFIG_");
        let variables = names.filter(|name| !is_common(name)).collect();
        Ok(Self {
            home,
            project,
            outside,
            places,
            variables,
            secret,
            keys,
            profile: config.calls.profile(),
            limits,
            host,
            kernel,
            servers,
            _listeners: (server, [socket, shown_socket, hidden_socket]),
            scratch,
        })
    }

    /// A directory of its own in the temporary place.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.0.join(name);
        make_private(&folder)?;
        Ok(folder)
    }

    /// The path where the host would have the file that a probe wrote into its own place.
    pub(crate) fn on_host(&self, file: &str, side: Side) -> PathBuf {
        let yard = if side == Side::Inside { &self.project } else { &self.outside };
        PathBuf::from(self.put(file, &[("{yard}", yard.display().to_string())]))
    }

    fn put(&self, word: &str, own: &[(&'static str, String)]) -> String {
        let all = self.places.iter().chain(own);
        all.fold(word.to_owned(), |word, (name, value)| word.replace(name, value))
    }

    /// A probe's words with the planted places in them.
    pub(crate) fn words(&self, probe: &str, side: Side, pid: Option<u32>) -> Vec<String> {
        let yard = match side {
            Side::Inside => self.host.workspace().0.clone(),
            Side::Outside => self.outside.display().to_string(),
        };
        let own = [("{yard}", yard), ("{pid}", pid.unwrap_or(0).to_string())];
        let mut words = Vec::new();
        for word in probe.split_whitespace() {
            match word {
                "{variables}" => words.extend(self.variables.iter().cloned()),
                word => words.push(self.put(word, &own)),
            }
        }
        words
    }

    /// Runs a probe inside the walls, through the gate like any other effect.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub(crate) async fn inside(&self, words: Vec<String>, limits: Limits) -> Result<Inside> {
        self.run(words, limits, false).await
    }

    /// The same, with a way to the network.
    ///
    /// # Errors
    /// As [`Fixture::inside`].
    pub(crate) async fn at_the_door(&self, words: Vec<String>) -> Result<Inside> {
        self.run(words, self.limits.clone(), true).await
    }

    async fn run(&self, words: Vec<String>, limits: Limits, network: bool) -> Result<Inside> {
        let program = format!("{}/probe", self.host.workspace().0);
        let argv = [program, probe::ARGUMENT.to_owned()].into_iter().chain(words).collect();
        let command = Command {
            argv,
            cwd: self.host.workspace().clone(),
            env: BTreeMap::new(),
            stdin: None,
            network,
            background: false,
            limits,
        };
        let nothing = |why: String| Inside {
            attempt: Attempt::Nothing(why),
            limit: None,
            enforced: Enforced::default(),
            stdout: Vec::new(),
        };
        let output = match self.host.act(Action::Exec(command)).await? {
            Acted::Done(output) => output,
            Acted::Denied(reasons) => return Ok(nothing(format!("the gate: {}", reasons.join("; ")))),
            Acted::Waiting(_) => return Ok(nothing("the rules ask for a human before a command".into())),
        };
        let outcome = output.outcome();
        if let Status::Failed { reason } = &outcome.status {
            return Ok(nothing(reason.clone()));
        }
        let Report::Exec(report) = output.report() else { return Ok(nothing("it came to no end".into())) };
        Ok(Inside {
            attempt: ended(report),
            limit: report.limit.clone(),
            enforced: outcome.enforced.clone().unwrap_or_default(),
            stdout: report.stdout.head.0.clone(),
        })
    }

    /// Runs the same probe outside of the walls, as a plain child of this process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) async fn outside(&self, words: Vec<String>) -> Result<Attempt> {
        let mut command = self.probe();
        command.args(words);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        Ok(said(&output.stdout)
            .unwrap_or_else(|| Attempt::Nothing(format!("the control gave no answer: {}", output.status))))
    }

    /// Starts a process with a bait in its environment.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn planted(&self) -> Result<Planted> {
        let mut command = self.probe();
        command.arg("wait").env(probe::VARIABLE, probe::BAIT).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(said) = &mut child.stdout {
            // When it has written a byte, it can be looked at and traced.
            said.read_exact(&mut [0])?;
        }
        Ok(Planted(child))
    }

    fn probe(&self) -> Process {
        let mut command = Process::new("/proc/self/exe");
        command.arg(probe::ARGUMENT).current_dir(&self.outside).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// A process that the prover started as a target. It ends when this value is dropped.
pub(crate) struct Planted(Child);

impl Planted {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The result that a probe reports.
fn ended(report: &ExecReport) -> Attempt {
    said(&report.stdout.head.0).unwrap_or_else(|| {
        let stderr = String::from_utf8_lossy(&report.stderr.head.0);
        let why = report
            .limit
            .clone()
            .map_or_else(|| stderr.trim().to_owned(), |limit| format!("ended by the {limit}"));
        Attempt::Nothing(format!("the probe gave no answer: {why}"))
    })
}

fn said(stdout: &[u8]) -> Option<Attempt> {
    let text = String::from_utf8_lossy(stdout);
    let last = text.lines().last()?;
    let reached = last.strip_prefix(probe::REACHED).map(|how| Attempt::Reached(how.into()));
    reached.or_else(|| last.strip_prefix(probe::REFUSED).map(|how| Attempt::Refused(how.into())))
}

/// A new directory in the temporary place. Its mode lets every user see into it, so that only the tried
/// walls keep an attack out.
fn place(name: &str) -> Result<PathBuf> {
    let path = std::env::temp_dir().join(name);
    fs::DirBuilder::new()
        .mode(0o755)
        .create(&path)
        .with_context(|| format!("cannot make `{}`: set TMPDIR to where there is room", path.display()))?;
    Ok(fs::canonicalize(&path)?)
}

/// Writes the baits, and the program that attacks.
fn plant(home: &Home, project: &Path, outside: &Path, secret: &str) -> Result<()> {
    let bait = format!("{}{}\n", probe::BAIT, random()?);
    let files = [
        (home.user.join(".ssh/id_ed25519"), &bait),
        (home.user.join("notes.txt"), &bait),
        (home.root.join("bait.key"), &bait),
        (outside.join("notes.txt"), &bait),
        (outside.join(".env"), &bait),
        (project.join(".env"), &bait),
        (project.join("token.txt"), &secret.to_owned()),
        (project.join("plain/passwd"), &probe::INSIDE.to_owned()),
        (project.join(".git/HEAD"), &"ref: refs/heads/main\n".to_owned()),
    ];
    for (path, text) in files {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let program = project.join("probe");
    fs::copy("/proc/self/exe", &program).context("this program's own file cannot be copied")?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn random() -> Result<String> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
