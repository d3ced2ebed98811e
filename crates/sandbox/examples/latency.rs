//! How long nothing takes: `/bin/true` in fresh walls against bubblewrap's, in turn.
//!
//! `cargo run --release --example latency -- [ROUNDS]`; without bubblewrap only our own time is printed.
#![expect(clippy::print_stdout, reason = "the output is what it is for")]

use bailey_protocol::{Command, Isolation, Limits, Outcome, Report, SessionId, WsPath};
use bailey_sandbox::{Config, Native, StartError, Warden, Yard, warden_main};
use std::{
    collections::BTreeMap,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

/// What bubblewrap is asked for: the nearest it has to our walls (no overlay, Landlock, seccomp or limits).
const BWRAP: &[&str] = &[
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--tmpfs",
    "/",
    "--ro-bind",
    "/usr",
    "/usr",
    "--ro-bind",
    "/etc/ld.so.cache",
    "/etc/ld.so.cache",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--symlink",
    "usr/bin",
    "/bin",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "--bind",
];

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    if let Some(code) = warden_main(std::env::args_os()) {
        return Ok(code);
    }
    let rounds: usize = std::env::args().nth(1).map_or(Ok(50), |rounds| rounds.parse())?;
    let dir = tempfile::tempdir()?;
    let root = dir.path().canonicalize()?;
    let [project, folder, home] = ["project", "session", "home"].map(|name| root.join(name));
    [&project, &folder, &home].into_iter().try_for_each(std::fs::create_dir)?;
    let config = Config { user_home: home, path: "/usr/bin:/bin".into(), ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _guard = runtime.enter();
    let native = native(&config, &project, &folder)?;
    let (mut ours, mut theirs, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        // A pause as between two commands of a model, in which the next sandbox is made ready.
        std::thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        let outcome = runtime.block_on(run(&native, &project));
        ours.push(begin.elapsed());
        if !matches!(&outcome.report, Report::Exec(report) if report.exit == Some(0)) {
            return Err(format!("{:?}", outcome.status).into());
        }
        theirs.extend(time(
            std::process::Command::new("bwrap").args(BWRAP).arg(&project).arg(&project).arg("/bin/true"),
        ));
        bare.extend(time(&mut std::process::Command::new("/bin/true")));
    }
    let [ours, theirs, bare] = [ours, theirs, bare].map(median);
    println!("plain {bare:?}, bubblewrap {theirs:?}, bailey {ours:?} (median of {rounds})");
    println!("bailey / bubblewrap: {:.2}", ours.as_secs_f64() / theirs.as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn native(config: &Config, project: &Path, folder: &Path) -> Result<Native, StartError> {
    let yard = Yard { project: project.into(), folder: folder.into(), linked: None, home: None };
    let mut config = config.clone();
    config.sessions.insert(SessionId::new(0, [0; 10]), yard.into());
    Ok(Native::new(Warden::start(Path::new("/proc/self/exe"), &config)?))
}

async fn run(native: &Native, project: &Path) -> Outcome {
    let command = Command {
        argv: vec!["/bin/true".into()],
        cwd: WsPath(project.display().to_string()),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    };
    let (out, mut pieces) = tokio::sync::mpsc::channel(1);
    pieces.close();
    let cancel = tokio_util::sync::CancellationToken::new();
    native.exec(SessionId::new(0, [0; 10]), &command, &Isolation::default(), out, &cancel).await
}

fn time(command: &mut std::process::Command) -> Option<Duration> {
    let begin = Instant::now();
    let status = command.status().ok()?;
    status.success().then(|| begin.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
