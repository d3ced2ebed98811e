//! The commands, one file each.

mod add_channel;
mod agent;
mod approvals;
mod audit;
mod budget;
mod config;
mod context;
mod doctor;
mod estop;
mod guide;
mod init;
mod man;
mod mcp;
mod models;
mod policy;
mod ps;
mod sandbox;
mod secrets;
mod sessions;
mod soul;
mod tools;
mod trust;
mod update;
mod version;

pub(crate) use guide::names as guide_names;
pub(crate) use init::is_terminal;

#[cfg(feature = "fuzz")]
pub(crate) use bailey_conversation::chat::server::fuzz as desk;
#[cfg(feature = "fuzz")]
pub(crate) use policy::decide;

use crate::{
    cli::{Audit, Cli, Command},
    home::{Home, NewDirectories},
    print::Printer,
};
use anyhow::{Context as _, Result};
use bailey_channels::command as channels;
use bailey_conversation::{chat, pick as hunks, run};
use bailey_daemon::{command as daemon, schedule};
use bailey_replay::command as replay;
use bailey_session::{home_of, journal, prewarm};
use bailey_web::command as page;
use std::{future::Future, process::ExitCode};

/// Runs a command.
pub(crate) fn run(cli: Cli, printer: &Printer) -> Result<ExitCode> {
    let home = || {
        let home = Home::open(cli.home.clone())?.of_agent(cli.agent.as_deref())?;
        home.forgotten().iter().for_each(|remark| printer.warn(remark));
        anyhow::Ok(home)
    };
    // Whoever asks for what is there makes no home where there is none, such as where its name was mistyped.
    let old_home = || {
        Home::place(cli.home.clone()).and_then(|root| Home::expect(&root))?;
        home()
    };
    match cli.command {
        Command::Version => version::run(printer),
        Command::Update => update::run(old_home().ok().as_ref(), printer),
        Command::Guide { name } => guide::run(name.as_deref(), printer),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::cli::command(), "bailey", &mut script);
            printer.part(String::from_utf8_lossy(&script));
            Ok(ExitCode::SUCCESS)
        }
        Command::Init(asked) => wait(init::run(&home()?, asked, printer)),
        Command::Doctor { offline, verbose } => {
            wait(doctor::run(cli.home.clone(), offline, verbose, printer))
        }
        Command::Prove { lines, all } => wait(bailey_selftest::run(&home()?, &lines, all, printer)),
        Command::Config(command) => config::run(&home()?, command, printer),
        Command::Secrets(command) => secrets::run(&home()?, command, printer),
        Command::Models(command) => wait(models::run(&home()?, command, printer)),
        Command::Trust(command) => trust::run(&home()?, command, printer),
        Command::Agent(command) => agent::run(&home()?, command, printer),
        Command::Soul(command) => soul::run(&home()?, &command, printer),
        Command::Start { foreground, detached, held } => {
            wait(daemon::start(&home()?, foreground, detached, held, printer))
        }
        Command::Stop { patience } => wait(daemon::stop(&old_home()?, patience, printer)),
        Command::Status => {
            let root = Home::place(cli.home.clone())?;
            match Home::is_at(&root)? {
                true => wait(daemon::status(&home()?, printer)),
                false => Ok(daemon::status_of_none(&root, printer)),
            }
        }
        Command::Reload => wait(daemon::reload(&old_home()?, printer)),
        Command::Logs { follow, lines } => wait(daemon::logs(&old_home()?, follow, lines, printer)),
        Command::Backup(asked) => wait(bailey_backup::run(&old_home()?, asked, printer)),
        Command::Restore(asked) => {
            let begun = NewDirectories::at(&Home::place(cli.home.clone())?)?;
            wait(bailey_backup::restore(&home()?, begun, asked, printer))
        }
        Command::Schedule(asked) => wait(schedule::run(&home()?, asked, printer)),
        Command::Channels(channels::Args::Run { channel }) => {
            wait(bailey_channels::bridge(&home()?, &channel, printer))
        }
        Command::Channels(channels::Args::Add(added)) => wait(add_channel::run(&home()?, added, printer)),
        Command::Web(command) => wait(page::run(&home()?, command, printer)),
        Command::Channels(command) => wait(channels::run(&home()?, command, printer)),
        Command::Chat(chat) if cli.desk => wait(chat::server::run(&home()?, chat, printer)),
        Command::Chat(chat) => match cli.handoff {
            None if cli.is_bare => wait(async {
                match init::first(&home()?, &chat, printer).await? {
                    Some(code) => Ok(code),
                    None => chat::keep().await,
                }
            }),
            None => wait(chat::keep()),
            Some(handoff) => wait(chat::run(&home()?, chat, &handoff, printer)),
        },
        Command::Replay(asked) => wait(replay::run(&old_home()?, asked, printer)),
        Command::Policy(command) => wait(policy::run(&home()?, command, printer)),
        Command::Tools(command) => tools::run(&home()?, command, printer),
        Command::Mcp(command) => wait(mcp::run(&home()?, command, printer)),
        Command::Man { directory } => man::run(directory.as_deref(), printer),
        Command::Run(run) => match cli.handoff {
            None => wait(run::run(&home()?, run, printer)),
            Some(handoff) => wait(run::beneath::listen(&home()?, &run, &handoff, printer)),
        },
        Command::Sessions(command) => wait(sessions::run(&old_home()?, command, printer)),
        Command::Approvals(command) => wait(approvals::run(&old_home()?, command, printer)),
        Command::Estop { release: true, drop, .. } => wait(estop::release(&old_home()?, drop, printer)),
        Command::Estop { reason, .. } => wait(estop::run(&home()?, &reason, printer)),
        Command::Ps { stop } => wait(ps::run(&old_home()?, stop.as_deref(), printer)),
        Command::Budget { session } => wait(budget::run(&old_home()?, session.as_deref(), printer)),
        Command::Audit(Audit::Check { file, key }) => audit::check(&file, &key, printer),
        Command::Audit(Audit::Send) => wait(bailey_telemetry::send(&old_home()?, printer)),
        Command::Audit(command) => wait(audit::run(&old_home()?, command, printer)),
        Command::Prewarm(command) => wait(prewarm::run(&home()?, command, printer)),
        Command::Sandbox(command) => wait(sandbox::run(&home()?, command, printer)),
    }
}

/// Runs a command's future on one thread: SQLite has its own threads, and effects their own processes.
fn wait(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime cannot start")?;
    let done = runtime.block_on(work);
    // A question that still waits for the terminal must not keep the program.
    runtime.shutdown_background();
    done
}
