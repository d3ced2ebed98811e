//! `bailey`: the program. It reads the command line and dispatches to the rooms.
//!
//! `cli.rs` and `cli/` declare the arguments, `commands.rs` dispatches, and `commands/` has a file for each
//! command that no other room has. The parts of a session are put together in `compose.rs` of the crate
//! `session`.
//!
//! The same file is executed again, with a private first argument, as a warden, a probe or a notifier.
//! [`main`] looks for these arguments first.
//!
//! Read `commands.rs` first.

mod cli;
mod commands;
#[cfg(feature = "fuzz")]
pub mod fuzz;

use bailey_daemon as daemon;
use bailey_home::{
    agents, clock, config, git, home, identity, person, program, project, prompt, stores, trust,
};
#[cfg(feature = "controls")]
use bailey_session::controls;
use bailey_session::{
    agent_file, client, compose, exit, extensions, notifier, place, policy_update, retention, wire, witness,
};
use bailey_telemetry as telemetry;
use bailey_terminal::{self as front, print};
use std::process::ExitCode;

/// The whole program, from its arguments to its exit code.
#[must_use]
pub fn main() -> ExitCode {
    // INVARIANT: before anything else, because a warden inherits nothing and has no runtime and no argument
    // parser.
    if let Some(code) = bailey_sandbox::warden_main(std::env::args_os()) {
        return code;
    }
    // The same of a probe, which an attack on the walls runs in.
    if let Some(code) = bailey_selftest::probe::main(std::env::args_os()) {
        return code;
    }
    // And of a notifier, which runs the owner's own programs.
    if let Some(code) = notifier::main(std::env::args_os()) {
        return code;
    }
    #[cfg(feature = "controls")]
    controls::move_clock();
    let cli = cli::Cli::typed();
    let printer = print::Printer::new(cli.json, cli.color);
    match commands::run(cli, &printer) {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error);
            ExitCode::from(exit::of(&error))
        }
    }
}
