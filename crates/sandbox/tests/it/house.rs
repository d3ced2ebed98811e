//! A house for one test: a project, a session, and sandboxes made by a warden that is root or an ordinary
//! user.

use bailey_protocol::{
    Command, Enforced, ExecReport, Isolation, Limits, Outcome, Profile, Report, SessionId, Status, WsPath,
};
use bailey_sandbox::{Config, Native, Warden, Yard};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// An ordinary user without an account, for runs as root.
pub(crate) const STRANGER: u32 = 23_456;

/// Who the warden is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum As {
    Root,
    User,
}

/// Both, when the test runs as root; else the ordinary user that it is.
pub(crate) fn everyone() -> Vec<As> {
    if is_root() {
        return vec![As::Root, As::User];
    }
    println!("SKIPPED as root: the tests run as an ordinary user");
    vec![As::User]
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

pub(crate) struct House {
    pub(crate) native: Arc<Native>,
    pub(crate) project: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) session: SessionId,
    pub(crate) who: As,
    /// Processes of a sandbox that waits for a command: its init, the payload's, and the one that lends that
    /// its memory, where both have their system calls already.
    pub(crate) spare: usize,
    probe: PathBuf,
    // Last, so that the warden is gone before its folders are.
    _dir: tempfile::TempDir,
}

impl Drop for House {
    /// The kernel gives the overlay's own work directory no permissions, so that its owner could not remove
    /// it.
    fn drop(&mut self) {
        drop(fs::set_permissions(self.folder.join("work/work"), fs::Permissions::from_mode(0o700)));
    }
}

pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
}

impl House {
    pub(crate) fn new(who: As) -> Self {
        Self::with(who, |_| {})
    }

    /// A house whose configuration was changed.
    pub(crate) fn with(who: As, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::Builder::new().prefix("walls").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let part = |name: &str| {
            let path = root.join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (project, folder, home) = (part("project"), part("session"), part("home"));
        let mut config = Config {
            user_home: home.clone(),
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            ..Config::default()
        };
        static COUNT: AtomicU8 = AtomicU8::new(0);
        let session = SessionId::new(1, [COUNT.fetch_add(1, Ordering::Relaxed); 10]);
        let yard = Yard { project: project.clone(), folder: folder.clone(), linked: None, home: None };
        config.sessions.insert(session, yard.into());
        change(&mut config);
        let mut exe = root.join("probe");
        fs::copy(env!("CARGO_BIN_EXE_sandbox-probe"), &exe).unwrap();
        while std::process::Command::new(&exe).status().is_err() {
            // Busy: a child that another test has just forked still holds the descriptor that it was written
            // through.
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if is_root() && who == As::User {
            for path in [&project, &folder, &home] {
                chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
            }
            let script = root.join("probe-as-user");
            let line = format!(
                "#!/bin/sh\nexec /usr/bin/setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups {} \"$@\"\n",
                exe.display()
            );
            fs::write(&script, line).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            exe = script;
        }
        let native = Arc::new(Native::new(start(&exe, &config)));
        let has_calls = matches!(config.calls.profile(), Profile::Standard | Profile::StandardNet);
        let (home, spare) = (config.user_home, if has_calls { 3 } else { 2 });
        Self { native, project, folder, home, session, who, spare, probe: exe, _dir: dir }
    }

    /// Writes a file of the project as its owner would.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.give(&self.project);
        path
    }

    /// Gives everything at a path to the warden's user.
    pub(crate) fn give(&self, path: &Path) {
        if !(is_root() && self.who == As::User) {
            return;
        }
        std::os::unix::fs::lchown(path, Some(STRANGER), Some(STRANGER)).unwrap();
        if path.symlink_metadata().unwrap().is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                self.give(&entry.unwrap().path());
            }
        }
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        Command {
            argv: ["sh", "-c", line].map(String::from).into(),
            cwd: WsPath(self.project.to_string_lossy().into_owned()),
            env: BTreeMap::new(),
            stdin: None,
            network: false,
            background: false,
            limits: Limits { wall_ms: 60_000, ..Limits::default() },
        }
    }

    pub(crate) async fn sh(&self, line: &str) -> Ran {
        self.run(&self.command(line), &Isolation::default()).await
    }

    pub(crate) async fn run(&self, command: &Command, isolation: &Isolation) -> Ran {
        self.run_until(command, isolation, &CancellationToken::new()).await
    }

    pub(crate) async fn run_until(
        &self,
        command: &Command,
        isolation: &Isolation,
        cancel: &CancellationToken,
    ) -> Ran {
        let (out, mut pieces) = tokio::sync::mpsc::channel(1);
        pieces.close();
        Ran { outcome: self.native.exec(self.session, command, isolation, out, cancel).await }
    }

    /// How many processes of sandboxes live, without the warden, its holders and what waits for something to
    /// do.
    pub(crate) fn processes_of_sandboxes(&self) -> usize {
        let warden = self.native.warden().id();
        descendants(warden)
            .iter()
            .filter(|pid| **pid != warden && parent(pid).is_some_and(|parent| parent != warden))
            // One that was forked to wait a moment ago is still called like its holder.
            .filter(|pid| {
                !called(**pid).is_none_or(|name| ["bailey-spare", "bailey-holder"].contains(&&*name))
            })
            .count()
    }

    /// Looks at what is left of a sandbox of which the answer is here: at once nothing but its init, and soon
    /// not even that.
    pub(crate) async fn expect_gone(&self, what: &str) {
        let warden = self.native.warden().id();
        // Its name is read once, for it may change between two looks, and the process may end.
        let is_of_it = |pid: &&u32| {
            let own = ["bailey-spare", "bailey-holder", "bailey-init"];
            !called(**pid).is_none_or(|name| own.contains(&&*name))
        };
        let left: Vec<u32> =
            descendants(warden).iter().filter(|pid| **pid != warden).filter(is_of_it).copied().collect();
        assert_eq!(left, Vec::<u32>::new(), "{what}: more than its init is left");
        let begin = Instant::now();
        while self.processes_of_sandboxes() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "{what}: its init does not end");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What is called a payload's process, with what else has the same parent.
    pub(crate) fn payloads(&self) -> Vec<(u32, Vec<u32>)> {
        let all = self.processes();
        let payloads = all.iter().filter(|pid| called(**pid).is_some_and(|name| name == "bailey-payload"));
        let beside = |pid: &u32| {
            all.iter().filter(|other| *other != pid && parent(other) == parent(pid)).copied().collect()
        };
        payloads.map(|pid| (*pid, beside(pid))).collect()
    }

    /// The processes of sandboxes that wait for something to do.
    pub(crate) fn spares(&self) -> Vec<u32> {
        self.processes().into_iter().filter(is_spare).collect()
    }

    /// Waits until commands have one, and where the layer holds something, what looks through it.
    pub(crate) async fn ready(&self) -> Vec<u32> {
        self.native.prepare(self.session).unwrap();
        let begin = Instant::now();
        loop {
            let spares = self.spares();
            let is_bare = fs::read_dir(self.folder.join("upper")).is_ok_and(|mut it| it.next().is_none());
            if spares.len() >= if is_bare { self.spare } else { self.spare + LOOKS } {
                return spares;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "nothing is made ready: {spares:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The program that is this house's warden.
    pub(crate) fn probe(&self) -> &Path {
        &self.probe
    }

    /// The processes of the host that the warden started, itself included.
    pub(crate) fn processes(&self) -> Vec<u32> {
        descendants(self.native.warden().id())
    }
}

/// Processes of a sandbox that waits to look through a layer: its init, and the worker's.
pub(crate) const LOOKS: usize = 2;

fn is_spare(pid: &u32) -> bool {
    called(*pid).is_some_and(|name| name == "bailey-spare")
}

fn parent(pid: &u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// What a process is called; nothing once it has gone.
fn called(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The script may be busy for a moment, too.
fn start(exe: &Path, config: &Config) -> Warden {
    for _ in 0..100 {
        match Warden::start(exe, config) {
            Ok(warden) => return warden,
            Err(error) => println!("{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the warden does not start");
}

/// A process and all that came of it, on the host.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

impl Ran {
    #[track_caller]
    pub(crate) fn report(&self) -> &ExecReport {
        match &self.outcome.report {
            Report::Exec(report) => report,
            other => panic!("no command ran: {:?} {other:?}", self.outcome.status),
        }
    }

    #[track_caller]
    pub(crate) fn enforced(&self) -> &Enforced {
        self.outcome.enforced.as_ref().unwrap_or_else(|| panic!("no walls: {:?}", self.outcome.status))
    }

    /// Standard output and standard error.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.report().stdout.head.lossy(), self.report().stderr.head.lossy())
    }

    /// Standard output of a command that succeeded.
    #[track_caller]
    pub(crate) fn ok(&self) -> String {
        let report = self.report();
        assert_eq!((report.exit, &self.outcome.status), (Some(0), &Status::Done), "{}", self.text());
        report.stdout.head.lossy().trim_end().to_owned()
    }

    #[track_caller]
    pub(crate) fn reason(&self) -> &str {
        match &self.outcome.status {
            Status::Failed { reason } => reason,
            other => panic!("expected a refusal, got {other:?}: {}", self.text()),
        }
    }
}
