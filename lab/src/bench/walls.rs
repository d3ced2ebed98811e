//! `/bin/true`: plain, in Bailey's walls, and in bubblewrap's.

use super::case::{Case, compare, compare_after};
use anyhow::{Context as _, Result, ensure};
use bailey_protocol::{Command as Inside, Isolation, Limits, SessionId, Status};
use bailey_sandbox::{Config, Native, Warden, Yard};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tokio::{runtime::Runtime, sync::mpsc};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 100;
/// What the main process holds in one of the comparisons.
const HELD_BYTES: usize = 512 << 20;
/// By then what is made ahead is made, too, and no processor has gone to sleep deeply.
const SHORT: Duration = Duration::from_millis(5);
/// By then what is made ahead is made.
const SOON: Duration = Duration::from_millis(200);

pub(super) fn run(bailey: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let root = fs::canonicalize(folder.path())?;
    let yard = yard(&root)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let walls = Walls::new(bailey, &root, &yard)?;
    let cold = Walls::new(bailey, &root, &yard)?;
    let mut fresh = 1;
    let mut cases = vec![
        Case::new("posix_spawn", || plain(&mut Command::new("/bin/true"))),
        Case::new("Bailey, next command of a session", || walls.run(&runtime, session(0)))
            .after(|| walls.expect(session(0))),
        Case::new("Bailey, two commands without a pause", || {
            walls.run(&runtime, session(0))?;
            walls.run(&runtime, session(0))
        })
        .after(|| walls.expect(session(0))),
        Case::new("Bailey, first command of a session", || {
            fresh += 1;
            cold.run(&runtime, session(fresh))?;
            Ok(())
        }),
    ];
    if has("bwrap") {
        cases.push(Case::new("bwrap --unshare-all, the same view", || plain(&mut bubblewrap(&yard.project))));
        cases.push(Case::new("bwrap --unshare-all --ro-bind / /", || {
            plain(&mut bubblewrap_all(&yard.project))
        }));
    } else {
        println!("SKIPPED bwrap (not installed): apt-get install bubblewrap");
    }
    compare("/bin/true", ROUNDS, 1, cases)?;
    let mut cases = vec![
        Case::new("posix_spawn", || plain(&mut Command::new("/bin/true"))),
        Case::new("Bailey, next command of a session", || walls.run(&runtime, session(0)))
            .after(|| walls.expect(session(0))),
    ];
    if has("bwrap") {
        cases.push(Case::new("bwrap --unshare-all, the same view", || plain(&mut bubblewrap(&yard.project))));
    }
    compare_after(SHORT, "/bin/true, with pauses of 5 ms in place of 20", ROUNDS, 1, cases)?;
    // Whatever forks of itself would copy the tables of these pages each time.
    let held = std::hint::black_box(vec![1u8; HELD_BYTES]);
    let cases = vec![
        Case::new("posix_spawn", || plain(&mut Command::new("/bin/true"))),
        Case::new("Bailey, next command of a session", || walls.run(&runtime, session(0)))
            .after(|| walls.expect(session(0))),
    ];
    compare("/bin/true, while the main process holds 512 MiB", ROUNDS, 1, cases)?;
    drop(held);
    drop(cold);
    walls.idle()?;
    drop(walls);
    undisturbed(bailey, &root, &yard, &runtime)
}

/// As the aims of these figures were measured: with real-time priority, which what is started here inherits,
/// so that nothing else of the machine comes between, and with a short pause, after which no processor sleeps
/// deeply.
fn undisturbed(bailey: &Path, root: &Path, yard: &Yard, runtime: &Runtime) -> Result<()> {
    if !schedule(&["--fifo", "--pid", "1"]) {
        println!(
            "SKIPPED the walls with real-time priority (chrt could not set it): it takes root or CAP_SYS_NICE"
        );
        return Ok(());
    }
    let walls = Walls::new(bailey, root, yard)?;
    let cold = Walls::new(bailey, root, yard)?;
    let mut fresh = 0;
    let mut cases = vec![
        Case::new("posix_spawn", || plain(&mut Command::new("/bin/true"))),
        Case::new("Bailey, next command of a session", || walls.run(runtime, session(0)))
            .after(|| walls.expect(session(0))),
        Case::new("Bailey, first command of a session", || {
            fresh += 1;
            cold.run(runtime, session(fresh))
        }),
    ];
    if has("bwrap") {
        cases.push(Case::new("bwrap --unshare-all, the same view", || plain(&mut bubblewrap(&yard.project))));
    }
    compare_after(SHORT, "/bin/true, with real-time priority and pauses of 5 ms", ROUNDS, 1, cases)?;
    let held = std::hint::black_box(vec![1u8; HELD_BYTES]);
    let cases = vec![
        Case::new("posix_spawn", || plain(&mut Command::new("/bin/true"))),
        Case::new("Bailey, next command of a session", || walls.run(runtime, session(0)))
            .after(|| walls.expect(session(0))),
    ];
    compare_after(SHORT, "the same, while the main process holds 512 MiB", ROUNDS, 1, cases)?;
    drop(held);
    ensure!(schedule(&["--other", "--pid", "0"]), "the priority cannot be given back");
    Ok(())
}

/// Sets how this thread is scheduled (chrt(1)); whether that was let.
fn schedule(options: &[&str]) -> bool {
    let own = std::process::id().to_string();
    let output = Command::new("chrt").args(options).arg(own).output();
    output.is_ok_and(|output| output.status.success())
}

pub(super) fn session(number: u8) -> SessionId {
    SessionId::new(1, [number; 10])
}

pub(super) fn yard(root: &Path) -> Result<Yard> {
    let make = |name: &str| -> Result<PathBuf> {
        let path = root.join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    };
    make("user")?;
    Ok(Yard { project: make("project")?, folder: make("session-0")?, linked: None, home: None })
}

/// A warden, and the sandboxes it makes.
pub(super) struct Walls {
    pub(super) native: Native,
    project: PathBuf,
}

impl Walls {
    pub(super) fn new(bailey: &Path, root: &Path, yard: &Yard) -> Result<Self> {
        // The warden learns of all sessions when it starts.
        let mut sessions = BTreeMap::new();
        for number in 0..=u8::MAX {
            let folder = root.join(format!("session-{number}"));
            fs::create_dir_all(&folder)?;
            sessions.insert(
                session(number),
                Yard { project: yard.project.clone(), folder, linked: None, home: None }.into(),
            );
        }
        let config = Config {
            sessions,
            user_home: root.join("user"),
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            ..Config::default()
        };
        let native = Native::new(Warden::start(bailey, &config)?);
        Ok(Self { native, project: yard.project.clone() })
    }

    fn run(&self, runtime: &Runtime, session: SessionId) -> Result<()> {
        let command = Inside {
            argv: vec!["/bin/true".into()],
            cwd: self.project.display().to_string().as_str().into(),
            env: BTreeMap::new(),
            stdin: None,
            network: false,
            background: false,
            limits: Limits::default(),
        };
        let (out, _) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let isolation = Isolation::default();
        let run = self.native.exec(session, &command, &isolation, out, &cancel);
        let outcome = runtime.block_on(run);
        ensure!(outcome.status == Status::Done, "the sandbox failed: {:?}", outcome.status);
        Ok(())
    }

    /// Prints what the walls keep of memory while nothing is asked for: a page that several processes have
    /// counts in parts.
    fn idle(&self) -> Result<()> {
        self.expect(session(0))?;
        std::thread::sleep(SOON);
        let warden = self.native.warden().id();
        let mut rows = vec![(warden, "the warden")];
        for holder in children(warden)? {
            let name = if children(holder)?.is_empty() { WAITS } else { HOLDS };
            rows.push((holder, name));
            for init in children(holder)? {
                rows.push((init, HOLDS));
                // The payload's borrows the memory of the one beside it.
                rows.extend(children(init)?.into_iter().take(1).map(|payload| (payload, HOLDS)));
            }
        }
        println!("memory of walls that are idle");
        for name in ["the warden", HOLDS, WAITS] {
            let of: Vec<u32> = rows.iter().filter(|(_, of)| *of == name).map(|(pid, _)| *pid).collect();
            let kib = of.iter().map(|pid| proportional(*pid)).sum::<Result<u64>>()?;
            println!("  {:<52} {:>6.2} MiB, memories: {}", name, kib as f64 / 1024.0, of.len());
        }
        println!();
        Ok(())
    }

    /// What the runtime says when it asks the model what to do next.
    pub(super) fn expect(&self, session: SessionId) -> Result<()> {
        Ok(self.native.prepare(session)?)
    }
}

/// Walls of one session after the other, each for one command, with nothing around them. A warden serves
/// those that it was told of.
pub(super) struct Sessions {
    walls: Walls,
    runtime: Runtime,
    numbers: std::ops::RangeInclusive<u8>,
    _folder: tempfile::TempDir,
}

impl Sessions {
    pub(super) fn new(bailey: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = fs::canonicalize(folder.path())?;
        let walls = Walls::new(bailey, &root, &yard(&root)?)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { walls, runtime, numbers: 0..=u8::MAX, _folder: folder })
    }

    /// Whether there was a session left.
    pub(super) fn next(&mut self) -> Result<bool> {
        let Some(number) = self.numbers.next() else { return Ok(false) };
        self.walls.run(&self.runtime, session(number))?;
        self.walls.native.forget(session(number))?;
        Ok(true)
    }
}

/// The rows of what is idle.
const HOLDS: &str = "a session: its holder, a sandbox's init and payload";
const WAITS: &str = "a holder for the next session";

fn children(pid: u32) -> Result<Vec<u32>> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// The proportional set size in KiB (proc(5)).
fn proportional(pid: u32) -> Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).context("no Pss")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}

pub(super) fn plain(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("cannot run it")?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// What Bailey's walls show: programs, a few files of /etc, the project writable, its own /proc, /dev and
/// /tmp.
pub(super) fn bubblewrap(project: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--new-session", "--die-with-parent", "--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "sbin", "lib", "lib64"] {
        command.args(["--symlink", &format!("usr/{name}"), &format!("/{name}")]);
    }
    for file in ["/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/localtime"] {
        command.args(["--ro-bind-try", file, file]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind"]).arg(project).arg(project);
    command.arg("--chdir").arg(project).arg("/bin/true");
    command
}

fn bubblewrap_all(project: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--new-session", "--die-with-parent", "--ro-bind", "/", "/"]);
    command.args(["--proc", "/proc", "--dev", "/dev", "--bind"]).arg(project).arg(project);
    command.arg("--chdir").arg(project).arg("/bin/true");
    command
}
