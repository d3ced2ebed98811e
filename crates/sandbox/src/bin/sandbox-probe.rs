//! The warden for this crate's tests: a program that does nothing else but become it.
//!
//! It also plays the parent that dies: `sandbox-probe run HOME PROJECT FOLDER PROGRAM…` runs one command and
//! waits, so that a test can kill it half-way.

use bailey_protocol::{Command, Isolation, Limits, Outcome, SessionId, WsPath};
use bailey_sandbox::{Config, Native, Warden, Yard, warden_main};
use std::{collections::BTreeMap, process::ExitCode};

fn main() -> ExitCode {
    if let Some(code) = warden_main(std::env::args_os()) {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [run, home, project, folder, argv @ ..] if run == "run" => {
            let outcome = run_command(home, project, folder, argv);
            ExitCode::from(u8::from(outcome.is_none()))
        }
        _ => ExitCode::from(2),
    }
}

fn run_command(home: &str, project: &str, folder: &str, argv: &[String]) -> Option<Outcome> {
    let session = SessionId::new(0, [0; 10]);
    let yard = Yard { project: project.into(), folder: folder.into(), linked: None, home: None };
    let config = Config {
        user_home: home.into(),
        path: "/usr/bin:/bin".into(),
        sessions: BTreeMap::from([(session, yard.into())]),
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let native = Native::new(Warden::start("/proc/self/exe".as_ref(), &config).ok()?);
    let command = Command {
        argv: argv.to_vec(),
        cwd: WsPath(project.into()),
        env: BTreeMap::new(),
        stdin: None,
        network: false,
        background: false,
        limits: Limits::default(),
    };
    let (out, mut pieces) = tokio::sync::mpsc::channel(1);
    pieces.close();
    let cancel = tokio_util::sync::CancellationToken::new();
    Some(runtime.block_on(native.exec(session, &command, &Isolation::default(), out, &cancel)))
}
